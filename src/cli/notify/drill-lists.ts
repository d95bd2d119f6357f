import { showDuration } from '../../core/base/format.ts'
import type { Drill, DrillHop, DrillResult } from '../../core/protocol/index.ts'
import { integer, oneOf, orNull, string, strings } from '../render/document.ts'
import { list } from '../render/list.ts'
import { type CellText, styles } from '../render/table.ts'

/** A hop of a drill. */
export type HopRow = {
  readonly receiver: string | undefined
  readonly hop: string
  /** Which one of several instances. */
  readonly place: string | undefined
  readonly result: 'proven' | 'not proven' | 'failed' | 'waiting'
  readonly durationMs: number | undefined
  readonly message: string
}

const words: Readonly<Record<DrillResult, HopRow['result']>> = {
  Proven: 'proven',
  NotProven: 'not proven',
  Failed: 'failed',
  Waiting: 'waiting',
}
const cells: Readonly<Record<HopRow['result'], CellText>> = {
  proven: 'proven',
  'not proven': { text: 'not proven', style: 'caution' },
  failed: { text: 'failed', style: styles.fail },
  waiting: { text: 'waiting', style: 'caution' },
}

export const hopRow = ({
  Receiver,
  Hop = '',
  Place,
  Result = 'Waiting',
  Duration,
  Message = '',
}: DrillHop): HopRow => ({
  receiver: Receiver,
  hop: Hop,
  place: Place,
  result: words[Result],
  durationMs: Duration === undefined ? undefined : Math.round(Duration),
  message: Message,
})

export const resultIn = ({ Result = 'Waiting' }: Drill): HopRow['result'] => words[Result]

const result = oneOf('proven', 'not proven', 'failed', 'waiting')

/** The hops of a drill. */
export const drill = list<HopRow>()({
  around: ['target'],
  documentOnly: {
    target: string,
    id: string,
    by: string,
    through: strings,
    beganAt: string,
    endedAt: orNull(string),
    result,
  },
  beneath: 'target',
  rows: 'hops',
  columns: [
    {
      key: 'receiver',
      is: orNull(string),
      title: 'RECEIVER',
      cell: ({ receiver }) => receiver ?? '',
      shrink: 3,
    },
    {
      key: 'hop',
      is: string,
      title: 'HOP',
      cell: ({ hop, place }) => (place === undefined ? hop : `${hop} ${place}`),
      shrink: 2,
    },
    { key: 'place', is: orNull(string) },
    { key: 'result', is: result, title: 'RESULT', cell: ({ result: of }) => cells[of] },
    {
      key: 'durationMs',
      is: orNull(integer),
      title: 'TIME',
      align: 'right',
      cell: ({ durationMs }) => (durationMs === undefined ? '' : showDuration(durationMs)),
    },
    { key: 'message', is: string, title: 'MESSAGE', shrink: 1, least: 20 },
  ],
})
