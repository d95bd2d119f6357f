import { count } from '../../core/base/format.ts'
import type { HistoryStatus, ImpactCause, ImpactMonitor } from '../../core/protocol/index.ts'
import { flag, integer, oneOf, optional, orNull, string, strings } from '../render/document.ts'
import { type Headline, list } from '../render/list.ts'
import { type CellText, styles } from '../render/table.ts'

/** A monitor that depends on the one of the question. */
export type ImpactRow = {
  readonly type: string
  readonly monitor: string
  readonly runs: boolean
  readonly direct: boolean
  readonly through: readonly string[]
  readonly members: number
  readonly left: number
  readonly needed: number
  /** Undefined: no schedule runs it. */
  readonly state: HistoryStatus | undefined
}

export const impactRow = ({
  ServerType = 'App',
  MonitorName = '',
  Runs = false,
  Direct = false,
  Through = [],
  Members = 1,
  Left = 0,
  Needed = 1,
  Status,
}: ImpactMonitor): ImpactRow => ({
  type: ServerType,
  monitor: MonitorName,
  runs: Runs,
  direct: Direct,
  through: Through,
  members: Members,
  left: Left,
  needed: Needed,
  state: Status,
})

/** `Sql/tcp orders`: a monitor that is taken to be out of reach. */
export const causeName = ({ ServerType = 'App', MonitorName = '' }: ImpactCause): string =>
  `${ServerType}/${MonitorName}`

/** `Sql/tcp orders is failed now`. Undefined where no schedule runs it. */
export const causeNow = (cause: ImpactCause): string | undefined =>
  cause.Status && `${causeName(cause)} is ${cause.Status.toLowerCase()} now`

const states: Readonly<Record<HistoryStatus, CellText>> = {
  Ok: 'ok',
  Warning: { text: 'warning', style: styles.warn },
  Failed: { text: 'failed', style: styles.fail },
  Unobserved: { text: 'unobserved', style: 'caution' },
}

const state = orNull(oneOf('Ok', 'Warning', 'Failed', 'Unobserved'))

/** `dns a (1 of 2 left, needs 1)` for a group. */
function throughText({ through, members, left, needed }: ImpactRow): string {
  const names = through.join(', ')
  return members === 1 ? names : `${names} (${left} of ${members} left, needs ${needed})`
}

/** `without tcp gateway, 3 monitors do not run and 1 does`. */
function headlineOf(rows: readonly ImpactRow[], of: string): Headline {
  const skipped = rows.filter(({ runs }) => !runs).length
  const others = rows.length - skipped
  if (skipped === 0)
    return {
      mark: 'ok',
      sentence: `without ${of}, ${count(others, 'monitor')} that ${others === 1 ? 'depends' : 'depend'} on it still ${others === 1 ? 'runs' : 'run'}`,
    }
  const rest = others === 0 ? '' : `, and ${others} still ${others === 1 ? 'runs' : 'run'}`
  return {
    mark: 'warn',
    sentence: `without ${of}, ${count(skipped, 'monitor')} ${skipped === 1 ? 'does' : 'do'} not run${rest}`,
  }
}

export const impact = list<ImpactRow>()({
  around: ['target', 'of'],
  beneath: 'target',
  documentOnly: {
    target: string,
    of: string,
    causes: strings,
    hiddenMonitors: optional(integer),
  },
  rows: 'dependents',
  headline: (rows, { of }) => headlineOf(rows, of),
  empty: { sentence: 'No monitor depends on it' },
  columns: [
    { key: 'type', is: string, title: 'TYPE', once: true },
    { key: 'monitor', is: string, title: 'MONITOR', shrink: 3 },
    {
      key: 'runs',
      is: flag,
      title: 'EFFECT',
      cell: ({ runs }) => (runs ? 'runs' : { text: 'not run', style: styles.warn }),
    },
    { key: 'direct', is: flag },
    {
      key: 'throughText',
      value: throughText,
      title: 'THROUGH',
      shrink: 1,
      least: 20,
      field: false,
      json: false,
    },
    { key: 'through', is: strings },
    { key: 'members', is: integer },
    { key: 'left', is: integer },
    { key: 'needed', is: integer },
    {
      key: 'state',
      is: state,
      title: 'STATE',
      optional: true,
      cell: ({ state: now }) => (now === undefined ? '' : states[now]),
    },
  ],
})
