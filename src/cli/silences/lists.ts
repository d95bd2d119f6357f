import { count } from '../../core/base/format.ts'
import type { NotSilenced, SilencedMonitor, SilenceEntry } from '../../core/protocol/index.ts'
import { dateTime, oneOf, optional, orNull, string, strings } from '../render/document.ts'
import { type ListOutput, list } from '../render/list.ts'
import { type FactRows, headline, moment, pairs } from '../render/table.ts'

/** An entry of what is silenced, as the lists show it. */
export type SilenceRow = {
  /** Undefined for a silence by the clock. */
  readonly id: string | undefined
  readonly source: 'hand' | 'clock' | 'ack'
  readonly monitors: readonly string[]
  readonly check: string | undefined
  readonly item: string | undefined
  readonly from: Date | undefined
  readonly until: Date | undefined
  readonly by: string | undefined
  readonly reason: string | undefined
  /** The monitors that it covers. Only right after its creation. */
  readonly covers?: readonly string[] | undefined
}

const sources = { Hand: 'hand', Clock: 'clock', Ack: 'ack' } as const

export const silenceRow = (entry: SilenceEntry, covers?: readonly string[]): SilenceRow => ({
  id: entry.Id,
  source: sources[entry.Source ?? 'Hand'],
  monitors: entry.Monitors ?? [],
  check: entry.MonitoringName,
  item: entry.Item,
  from: entry.From,
  until: entry.Until,
  by: entry.By,
  reason: entry.Reason,
  covers,
})

export const monitorName = ({ ServerType: type, MonitorName: name = '' }: SilencedMonitor): string =>
  type === undefined ? name : `${type}/${name}`

/** `Sql/postgres orders: replication lag (replica 2)` */
const subjectText = ({ monitors, check, item }: SilenceRow): string => {
  const of = check === undefined ? '' : `: ${check}`
  return `${monitors.join(', ')}${of}${item === undefined ? '' : ` (${item})`}`
}

const sourceWords = { hand: 'silence', clock: 'svc.yaml', ack: 'acknowledged' } as const

export const silences = list<SilenceRow>()({
  around: ['target'],
  beneath: 'target',
  rows: 'silences',
  headline: (rows) => ({
    mark: 'ok',
    sentence:
      rows.length === 0
        ? 'nothing is silenced'
        : rows.length === 1
          ? '1 entry is in force'
          : `${rows.length} entries are in force`,
  }),
  empty: { sentence: 'Nothing is silenced', next: "To silence:   svc silence 'Sql/*' --for 2h --reason 'patch night'" },
  columns: [
    { key: 'id', is: orNull(string), title: 'ID' },
    {
      key: 'source',
      is: oneOf('hand', 'clock', 'ack'),
      title: 'WHAT',
      cell: ({ source }) => sourceWords[source],
    },
    { key: 'monitors', is: strings, title: 'MONITORS', cell: subjectText, shrink: 2, least: 16 },
    { key: 'check', is: orNull(string) },
    { key: 'item', is: orNull(string) },
    { key: 'from', is: orNull(dateTime), field: false },
    { key: 'until', is: orNull(dateTime), title: 'UNTIL', cell: ({ until }) => (until ? moment(until) : '') },
    { key: 'by', is: orNull(string), title: 'BY', shrink: 3 },
    { key: 'reason', is: orNull(string), title: 'REASON', shrink: 1, least: 12 },
    { key: 'covers', is: optional(strings), field: false, absent: 'json' },
  ],
})

/** Names that an answer lists. */
const maxNames = 20

/** The silences or acknowledgements that a command has just made. */
export function renderSilences(rows: readonly SilenceRow[], target: string, output: ListOutput, more = 0): string {
  const [first] = rows
  if (!output.screen.isTTY || output.json || !first)
    return silences.render(rows, { target }, { ...output, header: false })
  const { screen } = output
  const covers = first.covers ?? []
  const names = covers.slice(0, maxNames)
  const left = covers.length - names.length + more
  const until = first.until ? moment(first.until) : ''
  const isAck = first.source === 'ack'
  const sentence = isAck
    ? `${count(rows.length, 'fault is', 'faults are')} acknowledged`
    : `${count(covers.length + more, 'monitor is', 'monitors are')} silenced until ${until}`
  const facts: FactRows = [
    ['Target', target],
    ...(isAck
      ? [
          ...rows.map((row): FactRows[number] => [row.id ?? '', subjectText(row)]),
          ['Until', `they recover, get worse or change; ${until} at the latest`] as const,
        ]
      : [
          ['Id', first.id ?? ''] as const,
          ['Covers', `${names.join(', ')}${left > 0 ? `, and ${left} more` : ''}`] as const,
        ]),
    ['Reason', first.reason ?? ''],
  ]
  return `${headline('ok', sentence, screen)}\n${pairs(facts, screen)}`
}

/** The silence or acknowledgement that a command has just ended. */
export function renderEnded(row: SilenceRow, target: string, output: ListOutput): string {
  const forMachines = silences.single(row, { target }, output)
  if (forMachines !== undefined) return forMachines
  const { screen } = output
  const facts: FactRows = [
    ['Target', target],
    ['Was', subjectText(row)],
  ]
  const what = row.source === 'ack' ? 'the acknowledgement' : 'the silence'
  return `${headline('ok', `${what} ${row.id ?? ''} has ended: what still stands is sent now`, screen)}\n${pairs(facts, screen)}`
}

/** `am at https://am1:9093 has no silence: HTTP 401` */
export const notSilencedLine = ({ Receiver = '', Place = '', Message = '' }: NotSilenced): string =>
  `Warning: receiver ${Receiver}, ${Place}: the silences there are not up to date: ${Message}`
