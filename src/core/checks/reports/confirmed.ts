import { pace } from '../../base/pace.ts'
import type { Family, Labels, Sample } from '../../protocol/service/family.ts'
import { type ExpositionFormat, lineOf, renderLines } from './exposition.ts'
import { maxItems } from './prometheus.ts'

/** A check that the schedule runs, as the metrics show it. Instants are milliseconds since 1970. */
type Check = {
  readonly type?: string | undefined
  readonly monitor: string
  readonly slug: string
  readonly item?: string | undefined
  readonly level: 'ok' | 'warning' | 'failed'
  readonly since: number
  readonly isObserved: boolean
  readonly isSettled: boolean
  readonly blips: number
  /** Why nobody is notified about it. Absent: somebody is. */
  readonly silences?: readonly { readonly source: string }[] | undefined
  readonly incident?: Incident | undefined
}
type Incident = {
  readonly id: string
  readonly level: 'warning' | 'failed'
  readonly cause?: { readonly type?: string | undefined; readonly monitor: string } | undefined
  readonly isUnobserved: boolean
}

/** The series of what is confirmed, before a limit on their number. */
export type ConfirmedSeries = {
  /** How many of them are never omitted. */
  readonly urgent: number
  /** The text with as many of the others as there may be `within` the limit, and the number of those that it omits. */
  readonly text: (
    format: ExpositionFormat,
    within: number,
  ) => Promise<{ readonly text: string; readonly dropped: number }>
}

/**
 * The metrics of what is confirmed. A failure stays for as long as its incident is open, whatever the age of the latest
 * verdict; a check that is fine leaves when its verdict is too old to count. Other work gets its turn meanwhile.
 *
 * Each check has one series. What is true of few checks has series for these only: a warning, the beginning of a state that
 * is not ok, an incident. Those are never omitted, nor is a check whose latest run shows something that is not confirmed:
 * without its series, an alert would take that for certain.
 */
export async function confirmedSeries({
  checks,
  isIsolated,
  mostOthers = Number.POSITIVE_INFINITY,
}: {
  readonly checks: Iterable<Check>
  readonly isIsolated: boolean | undefined
  /** How many series of checks that need no attention a text has at most. The others are counted, and not kept. */
  readonly mostOthers?: number | undefined
}): Promise<ConfirmedSeries> {
  const breathe = pace()
  const all = rows.map((): Check[] => [])
  const isExported = itemLimit()
  const others = rows.map(() => 0)
  let [count, urgent, beyond] = [0, 0, 0]
  for (const check of checks) {
    const isUrgent = needsAttention(check)
    if (isExported(check, isUrgent)) {
      for (let at = 0; at < rows.length; at += 1) {
        const row = rows[at]
        if (row?.value(check) === undefined) continue
        const series = countOf(row, check)
        const before = others[at] ?? 0
        if (isUrgent) urgent += series
        else if (before >= mostOthers) beyond += series
        else others[at] = before + series
        if (isUrgent || before < mostOthers) all[at]?.push(check)
      }
    }
    count += 1
    const turn = count % checksAtOnce === 0 ? breathe() : undefined
    if (turn) await turn
  }
  const isolated = isIsolated === undefined ? '' : lineOf(isolation)({ value: Number(isIsolated) })
  return {
    urgent,
    text: async (format, within) => {
      const texts: string[] = []
      let left = Math.min(within, mostOthers)
      let dropped = beyond
      for (const [at, { write, ...row }] of written.entries()) {
        const lines: string[] = []
        for (const [index, check] of (all[at] ?? []).entries()) {
          const count = countOf(row, check)
          const most = needsAttention(check) ? count : Math.min(count, left)
          if (most > 0) lines.push(...samplesOf(row, check).slice(0, most).map(write))
          if (!needsAttention(check)) left -= most
          dropped += count - most
          const turn = index % checksAtOnce === 0 ? breathe() : undefined
          if (turn) await turn
        }
        texts.push(renderLines(row, lines.join(''), format))
      }
      return { text: [...texts, renderLines(isolation, isolated, format)].join(''), dropped }
    },
  }
}

/** How many checks are handled in one step: to look at the clock takes longer than one of them. */
const checksAtOnce = 32

/** Whether the check is not ok, or its latest run shows something that is not confirmed. */
const needsAttention = ({ level, isSettled, incident }: Check): boolean =>
  level !== 'ok' || !isSettled || incident !== undefined

/** Whether a check counts: it is observed, or known to have failed. */
const isCounted = ({ isObserved, incident }: Check): boolean =>
  isObserved || (incident !== undefined && !incident.isUnobserved)

/** Of the items of a check, those that need attention and some others. */
function itemLimit(): (check: Check, isUrgent: boolean) => boolean {
  const counts = new Map<string, number>()
  return ({ type, monitor, slug, item }, isUrgent) => {
    if (item === undefined || isUrgent) return true
    const check = JSON.stringify([type, monitor, slug])
    const count = (counts.get(check) ?? 0) + 1
    counts.set(check, count)
    return count <= maxItems
  }
}

type Row = Omit<Family, 'samples'> & {
  /** Undefined: the check has no such series. */
  readonly value: (check: Check) => number | undefined
  /** Those of each sample. Absent: one sample with those of the check. */
  readonly labelsFor?: (check: Check, own: Labels) => readonly Labels[]
}

/** How many series of this row a check has that has any. */
const countOf = ({ labelsFor }: Row, check: Check): number => labelsFor?.(check, {}).length ?? 1

/** Its series, made only where the limit keeps some of them. */
function samplesOf({ value, labelsFor }: Row, check: Check): readonly Sample[] {
  const own = labelsOf(check)
  return (labelsFor?.(check, own) ?? [own]).map((labels) => ({ labels, value: value(check) ?? Number.NaN }))
}

const rows: readonly Row[] = [
  {
    name: 'svc_check_confirmed',
    type: 'gauge',
    help: '1 if the confirmed state of the check is ok or a warning, 0 if it is a failure. Only of checks that the schedule runs.',
    value: (check) => (isCounted(check) ? Number(check.level !== 'failed') : undefined),
  },
  {
    name: 'svc_check_confirmed_warning',
    type: 'gauge',
    help: '1 if the confirmed state of the check is a warning, or if nothing observes it any more; absent otherwise.',
    value: (check) =>
      (check.level === 'warning' && isCounted(check)) || check.incident?.isUnobserved === true ? 1 : undefined,
  },
  {
    name: 'svc_check_confirmed_since_timestamp_seconds',
    type: 'gauge',
    help: 'When the first run began that showed the confirmed state, in Unix time; absent where that is ok.',
    value: (check) => (check.level !== 'ok' && isCounted(check) ? Math.round(check.since) / 1_000 : undefined),
  },
  {
    name: 'svc_check_blips',
    type: 'counter',
    help: 'Faults of the check that were over before they were confirmed.',
    value: ({ blips }) => (blips > 0 ? blips : undefined),
  },
  {
    name: 'svc_incident',
    type: 'info',
    help: 'Open incidents. The role is cause, or victim of the monitor that the cause names.',
    value: ({ incident }) => (incident === undefined ? undefined : 1),
    labelsFor: ({ incident }, own) => [incident === undefined ? own : incidentLabels(incident, own)],
  },
  {
    name: 'svc_check_silenced',
    type: 'gauge',
    help: '1 for a check about which svc notifies nobody, by hand, by silences: in svc.yaml (clock) or by an acknowledgement (ack); absent otherwise.',
    value: ({ silences = [] }) => (silences.length === 0 ? undefined : 1),
    labelsFor: ({ silences = [] }, own) =>
      [...new Set(silences.map(({ source }) => source))].map((source) => ({ ...own, source })),
  },
]

const written = rows.map((row) => ({ ...row, write: lineOf(row) }))

const isolation: Omit<Family, 'samples'> = {
  name: 'svc_isolated',
  type: 'gauge',
  help: '1 while no witness answers, so that nothing is known of other machines; 0 if one does. Absent without witnesses.',
}

const labelsOf = ({ type, monitor, slug, item }: Check): Labels => ({ type, monitor, check: slug, item })

function incidentLabels({ id, level, cause }: Incident, { type, ...names }: Labels): Labels {
  const causeName = cause && (cause.type === undefined ? cause.monitor : `${cause.type}/${cause.monitor}`)
  const role = cause === undefined ? 'cause' : 'victim'
  return { incident: id, severity: level, type, ...names, role, cause: causeName }
}
