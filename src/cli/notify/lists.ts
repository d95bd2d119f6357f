import { showDuration } from '../../core/base/format.ts'
import { writeDuration } from '../../core/base/settings/index.ts'
import { type ReceiverConfig, receiverAddress } from '../../core/watch/notify/index.ts'
import { integer, oneOf, orNull, string, strings } from '../render/document.ts'
import { list } from '../render/list.ts'
import { styles } from '../render/table.ts'
import type { ReceiverTest } from './notify-test.ts'

type Only = ReceiverConfig['only']

/** `types Sql, App; tags critical; failed` */
const onlyText = ({ types, monitors, tags, severity }: Only): string =>
  [
    ...Object.entries({ types, monitors, tags }).flatMap(([name, values]) =>
      values === undefined ? [] : [`${name} ${values.join(', ')}`],
    ),
    ...(severity === 'failed' ? ['failed'] : []),
  ].join('; ')

/** The receivers of svc.yaml, without secrets. */
export const receivers = list<ReceiverConfig>()({
  around: ['target'],
  rows: 'receivers',
  headline: ['receiver', 'receivers'],
  empty: {
    sentence: 'No receiver of notifications is configured',
    next: 'Add `notify:` to svc.yaml: docs/notifications.md',
  },
  columns: [
    { key: 'name', is: string, title: 'NAME', shrink: 2 },
    { key: 'kind', is: string, title: 'KIND' },
    { key: 'to', value: receiverAddress, is: string, title: 'TO', shrink: 1 },
    { key: 'only', value: ({ only }) => onlyText(only), title: 'ONLY', shrink: 1, optional: true, json: false },
    { key: 'types', value: ({ only }) => only.types ?? [], is: strings, field: false },
    { key: 'monitors', value: ({ only }) => only.monitors ?? [], is: strings, field: false },
    { key: 'tags', value: ({ only }) => only.tags ?? [], is: strings, field: false },
    { key: 'severity', value: ({ only }) => only.severity, is: oneOf('warning', 'failed'), field: false },
    {
      key: 'remindMs',
      value: ({ remind }) => remind,
      is: orNull(integer),
      title: 'REMIND',
      cell: ({ remind }) => (remind === undefined ? '' : writeDuration(remind)),
      optional: true,
    },
    { key: 'details', is: oneOf('full', 'classes'), title: 'DETAILS' },
    { key: 'silences', is: oneOf('honor', 'ignore'), title: 'SILENCES' },
  ],
})

/** The outcomes of the test messages. */
export const receiverTests = list<ReceiverTest>()({
  around: ['target'],
  rows: 'tests',
  columns: [
    { key: 'name', is: string, title: 'NAME', shrink: 3 },
    { key: 'kind', is: string, title: 'KIND' },
    { key: 'to', is: string, title: 'TO', shrink: 2 },
    {
      key: 'result',
      is: oneOf('accepted', 'not accepted', 'refused'),
      title: 'RESULT',
      cell: ({ result }) => ({ text: result, style: result === 'accepted' ? undefined : styles.fail }),
    },
    {
      key: 'durationMs',
      is: integer,
      title: 'TIME',
      align: 'right',
      cell: ({ durationMs }) => showDuration(durationMs),
    },
    { key: 'message', is: orNull(string), title: 'REASON', shrink: 1, least: 20, optional: true },
  ],
})
