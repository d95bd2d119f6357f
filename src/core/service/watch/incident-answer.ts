import type { HistoryIncident, ServerType } from '../../protocol/index.ts'
import { explaining, type IncidentRecord } from '../../watch/states/index.ts'

/** How many incidents of each monitor an answer lists, and how many victims of each by name. */
const mostOfMonitor = 100
const mostNames = 100
/** How many incidents are read, with those of victims. */
export const mostRead = 10_000

export type IncidentQuestion = {
  /** The latest first. */
  readonly records: readonly IncidentRecord[]
  /** Whether the caller may read the details of a type. */
  readonly reads: (type: ServerType) => boolean
  /** The types that show what the machine itself has under this key. Undefined: all. */
  readonly typesOfHost: (key: string) => readonly string[] | undefined
  /** Milliseconds since 1970. */
  readonly now: number
}

type MonitorOfType = { readonly type: string; readonly name: string }

/**
 * The incidents of each monitor in a time, the latest first, with their causes and victims. What belongs to types that the
 * caller may not read counts, and has no name.
 */
export function incidentsByMonitor({
  records,
  reads,
  typesOfHost,
  now,
}: IncidentQuestion): (monitor: MonitorOfType) => readonly HistoryIncident[] {
  const byMonitor = Map.groupBy(records, ({ type, monitor }) => nameOf({ type, monitor }))
  const victims = victimsAmong(records, now)
  const readable = ({ type }: { readonly type?: ServerType | undefined }): boolean => type !== undefined && reads(type)
  const incidentOf = (one: IncidentRecord): HistoryIncident => {
    const monitors = victims(one)
    return {
      Id: one.id,
      MonitoringName: one.check,
      Item: one.item,
      From: new Date(one.beganAt),
      To: one.endedAt === undefined ? undefined : new Date(one.endedAt),
      Duration: Math.max(0, (one.endedAt ?? now) - one.beganAt),
      Status: one.isUnobserved ? 'Unobserved' : one.level === 'failed' ? 'Failed' : 'Warning',
      Ending: one.ending === undefined ? undefined : endings[one.ending],
      Fault: one.fault,
      Message: one.message,
      Cause: one.cause && (readable(one.cause) ? nameOf(one.cause) : 'a monitor of another type'),
      Victims: monitors.filter(readable).slice(0, mostNames).map(nameOf),
      VictimCount: monitors.length,
    }
  }
  return ({ type, name }) => {
    const ofMachine = (byMonitor.get(name) ?? []).filter(({ key }) => typesOfHost(key)?.includes(type) !== false)
    return [...(byMonitor.get(`${type}/${name}`) ?? []), ...ofMachine].slice(0, mostOfMonitor).map(incidentOf)
  }
}

const endings = { recovered: 'Recovered', removed: 'Removed', unknown: 'Unknown' } as const

/** `Sql/tcp db`, as `dependsOn` writes it; without a type for the machine itself. */
const nameOf = ({ type, monitor }: Pick<IncidentRecord, 'type' | 'monitor'>): string =>
  type === undefined ? monitor : `${type}/${monitor}`

/** Whether two incidents were open at the same time. */
const overlap = (one: IncidentRecord, other: IncidentRecord, now: number): boolean =>
  one.beganAt <= (other.endedAt ?? now) && other.beganAt <= (one.endedAt ?? now)

/**
 * The monitors with an incident that rests on another one, also those behind one of them: each once, by the incident that
 * began last. Of several incidents of a monitor, the one that explains them has them. `records`: the latest first.
 */
export function victimsAmong(
  records: readonly IncidentRecord[],
  now: number,
): (incident: IncidentRecord) => readonly IncidentRecord[] {
  const byCause = Map.groupBy(
    records.filter(({ cause }) => cause !== undefined),
    ({ cause }) => cause?.key ?? '',
  )
  const byMonitor = Map.groupBy(records, ({ key }) => key)
  const explains = (incident: IncidentRecord, victim: IncidentRecord): boolean => {
    const ofMonitor = byMonitor.get(incident.key) ?? []
    const open = ofMonitor.filter((one) => overlap(one, victim, now) && overlap(one, incident, now))
    return explaining(open)?.id === incident.id
  }
  return (incident) => {
    const victims = new Map<string, IncidentRecord>()
    const waiting = [incident.key]
    for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
      for (const one of byCause.get(key) ?? []) {
        if (one.key === incident.key || victims.has(one.key) || !overlap(incident, one, now)) continue
        if (key === incident.key && !explains(incident, one)) continue
        victims.set(one.key, one)
        waiting.push(one.key)
      }
    }
    return [...victims.values()]
  }
}
