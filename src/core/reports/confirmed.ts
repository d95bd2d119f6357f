import type { Family, Labels, Sample } from './exposition.ts'

/** What the metrics show of a check that the schedule runs. Instants are milliseconds since 1970. */
type Check = {
  readonly type?: string | undefined
  readonly monitor: string
  readonly slug: string
  readonly item?: string | undefined
  readonly level: 'ok' | 'warning' | 'failed'
  readonly since: number
  readonly isObserved: boolean
  readonly blips: number
  readonly incident?: Incident | undefined
}
type Incident = {
  readonly id: string
  readonly level: 'warning' | 'failed'
  readonly cause?: { readonly type?: string | undefined; readonly monitor: string } | undefined
  readonly isUnobserved: boolean
}

/**
 * The metrics of what is confirmed. A failure stays for as long as its incident is open, whatever the age of the latest
 * verdict; a check that is fine leaves when its verdict is too old to count.
 */
export function confirmedFamilies({
  checks,
  isIsolated,
}: {
  readonly checks: readonly Check[]
  readonly isIsolated: boolean | undefined
}): readonly Family[] {
  const stands = ({ isObserved, incident }: Check): boolean =>
    isObserved || (incident !== undefined && !incident.isUnobserved)
  const counting = checks.filter(stands)
  return [
    {
      name: 'svc_check_confirmed',
      type: 'gauge',
      help: '1 if the confirmed state of the check is ok or a warning, 0 if it is a failure. Only of checks that the schedule runs.',
      samples: counting.map((check) => sample(check, check.level === 'failed' ? 0 : 1)),
    },
    {
      name: 'svc_check_confirmed_warning',
      type: 'gauge',
      help: '1 if the confirmed state of the check is a warning, or if nothing observes it any more; 0 if not.',
      samples: checks
        .filter((check) => stands(check) || check.incident !== undefined)
        .map((check) => sample(check, check.level === 'warning' || check.incident?.isUnobserved ? 1 : 0)),
    },
    {
      name: 'svc_check_confirmed_since_timestamp_seconds',
      type: 'gauge',
      help: 'When the first run began that showed the confirmed state, in Unix time.',
      samples: counting.map((check) => sample(check, Math.round(check.since) / 1_000)),
    },
    {
      name: 'svc_check_blips',
      type: 'counter',
      help: 'Faults of the check that were over before they were confirmed.',
      samples: checks.filter(({ blips }) => blips > 0).map((check) => sample(check, check.blips)),
    },
    {
      name: 'svc_incident',
      type: 'info',
      help: 'Open incidents. The role is cause, or victim of the monitor that the cause names.',
      samples: checks.flatMap((check) => (check.incident ? [incidentSample(check, check.incident)] : [])),
    },
    {
      name: 'svc_isolated',
      type: 'gauge',
      help: '1 while no witness answers, so that nothing is known of other machines; 0 if one does. Absent without witnesses.',
      samples: isIsolated === undefined ? [] : [{ value: Number(isIsolated) }],
    },
  ]
}

const labelsOf = ({ type, monitor, slug, item }: Check): Labels => ({ type, monitor, check: slug, item })

const sample = (check: Check, value: number): Sample => ({ labels: labelsOf(check), value })

function incidentSample(check: Check, { id, level, cause }: Incident): Sample {
  const { type, ...names } = labelsOf(check)
  const causeName = cause && (cause.type === undefined ? cause.monitor : `${cause.type}/${cause.monitor}`)
  const role = cause === undefined ? 'cause' : 'victim'
  return { labels: { incident: id, severity: level, type, ...names, role, cause: causeName }, value: 1 }
}
