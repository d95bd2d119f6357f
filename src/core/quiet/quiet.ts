import { isMonitor } from '../notify/index.ts'
import type { Incident, StoredSubject } from '../states/index.ts'
import type { ClockWindows } from './clock.ts'
import type { Silence } from './types.ts'

/** A monitor by its names. */
type MonitorName = Pick<StoredSubject, 'type' | 'monitor'>

/**
 * Why notifications about a subject wait at a time: the window that lasts longest. What fails because of a quiet monitor is
 * quiet as well. Says nothing about states: whoever requests them gets them as they are.
 */
export function silenceOf(
  subject: MonitorName,
  incident: Pick<Incident, 'cause'> | undefined,
  clock: readonly ClockWindows[],
  now: number,
): Silence | undefined {
  const concerned: readonly MonitorName[] = incident?.cause ? [subject, incident.cause] : [subject]
  const silences = clock.flatMap((windows): readonly Silence[] => {
    const { monitors, reason } = windows.rule
    const window = windows.at(now)
    if (!window || !concerned.some((one) => monitors.some((pattern) => isMonitor(pattern, one)))) return []
    return [{ until: window.until, reason }]
  })
  return silences.toSorted((one, other) => other.until - one.until)[0]
}
