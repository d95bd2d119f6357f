import type { Incident, StoredSubject } from '../../../src/core/watch/states/index.ts'

/** Faults that follow from the time alone, so that each process finds the same: several monitors, each with a fault in every few minutes. */

const second = 1_000
const minute = 60 * second
const monitors = 4
/** After this time a fault is confirmed, and a recovery. */
const confirmMs = 20 * second
const recoverMs = 10 * second

export const subjects: readonly StoredSubject[] = Array.from({ length: monitors }, (_, at) => ({
  key: `Sql/postgres/${at}`,
  type: 'Sql',
  monitor: `postgres ${at}`,
  check: 'connect',
}))

type Fault = { readonly id: string; readonly begin: number; readonly end: number }

/** The fault of a monitor at a time, or the latest before. From `stopAt` on, the first one has a fault that stands, and the others have none. */
function faultAt(monitor: number, at: number, stopAt: number): Fault | undefined {
  if (at >= stopAt && monitor === 0) return { id: 'last', begin: stopAt, end: Number.POSITIVE_INFINITY }
  const every = (5 + monitor) * minute
  const number = Math.floor(Math.min(at, stopAt) / every)
  const begin = number * every + minute
  if (begin > at || begin >= stopAt) return undefined
  return { id: `m${monitor}n${number}`, begin, end: Math.min(begin + (1 + monitor) * minute, stopAt) }
}

/** The confirmed incident of a monitor, and its latest verdict. Times are milliseconds since `origin`. */
export function stateAt(monitor: number, at: number, stopAt: number, origin: number) {
  const fault = faultAt(monitor, at, stopAt)
  const ranAt = at - (at % (2 * second))
  const isBad = (time: number): boolean => {
    const one = faultAt(monitor, time, stopAt)
    return one !== undefined && one.begin <= time && time < one.end
  }
  const isOpen = fault !== undefined && at >= fault.begin + confirmMs && at < fault.end + recoverMs
  const level = isBad(ranAt) ? ('failed' as const) : ('ok' as const)
  const incident: Incident | undefined = isOpen
    ? {
        id: fault.id,
        beganAt: origin + fault.begin,
        confirmedAt: origin + fault.begin + confirmMs,
        level: 'failed',
        message: 'it is down',
        isFlapping: false,
        isUnobserved: false,
      }
    : undefined
  const since = fault === undefined ? 0 : level === 'failed' ? fault.begin : fault.end
  const latest = { level, at: origin + ranAt, since: origin + Math.min(since, ranAt) }
  return { level: incident?.level ?? ('ok' as const), incident, latest, message: level, depth: 'Basic' as const }
}
