import { isUnreachable, rank, type SubjectState } from '../states/index.ts'
import type { Acknowledgement, QuietEnding, StoredQuiet } from './types.ts'

/** A subject as the states know it. Undefined: nothing is known of it yet. */
export type StateOfSubject = Pick<SubjectState, 'level' | 'fault' | 'incident'> | 'removed' | undefined

/** Faults of one kind are one fault for whoever acknowledged it: all that keep a peer from being reached are the same. */
const kindOf = (fault: string | undefined): string | undefined => (isUnreachable(fault) ? 'unreachable' : fault)

/** Whether a fault is the one that was acknowledged, or has eased. */
export const isAcknowledged = (
  ack: Pick<Acknowledgement, 'level' | 'fault'>,
  { level, fault }: { readonly level: 'warning' | 'failed'; readonly fault?: string | undefined },
): boolean => rank(level) < rank(ack.level) || (level === ack.level && kindOf(fault) === kindOf(ack.fault))

/** Why an acknowledgement no longer applies to its subject, or undefined while it does. */
export function ackEnding(ack: Acknowledgement, state: StateOfSubject): QuietEnding | undefined {
  if (state === undefined) return undefined
  if (state === 'removed' || state.incident?.id !== ack.incident) return 'over'
  if (rank(state.incident.level) > rank(ack.level)) return 'worse'
  // A fault that has eased, or is on its way back, has a class of another level or none.
  if (state.level !== ack.level || kindOf(state.fault) === kindOf(ack.fault)) return undefined
  return 'other fault'
}

/**
 * Since when everybody has to know that the fault of an incident is no longer the one that was acknowledged. Undefined:
 * nobody acknowledged it, or it is still the same.
 */
export function loudSince(incident: string | undefined, entries: readonly StoredQuiet[]): number | undefined {
  if (incident === undefined) return undefined
  return entries.reduce<number | undefined>((latest, entry) => {
    const { what, ended } = entry
    if (what !== 'ack' || entry.incident !== incident) return latest
    if (ended?.why !== 'worse' && ended?.why !== 'other fault') return latest
    return Math.max(latest ?? ended.at, ended.at)
  }, undefined)
}
