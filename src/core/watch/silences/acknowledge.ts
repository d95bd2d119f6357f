import { isUnreachable, rank, type SubjectState } from '../states/index.ts'
import type { Acknowledgement, SilenceEnding, StoredSilence } from './types.ts'

/** The state of a subject. Undefined: it is not known yet. */
export type StateOfSubject = Pick<SubjectState, 'level' | 'fault' | 'incident'> | 'removed' | undefined

/** Faults of one kind count as the same fault for an acknowledgement: all that make a peer unreachable are one kind. */
const kindOf = (fault: string | undefined): string | undefined => (isUnreachable(fault) ? 'unreachable' : fault)

/** Whether a fault is the acknowledged one, or a milder one. */
export const isAcknowledged = (
  ack: Pick<Acknowledgement, 'level' | 'fault'>,
  { level, fault }: { readonly level: 'warning' | 'failed'; readonly fault?: string | undefined },
): boolean => rank(level) < rank(ack.level) || (level === ack.level && kindOf(fault) === kindOf(ack.fault))

/** Why an acknowledgement no longer applies to its subject, or undefined while it does. */
export function ackEnding(ack: Acknowledgement, state: StateOfSubject): SilenceEnding | undefined {
  if (state === undefined) return undefined
  if (state === 'removed' || state.incident?.id !== ack.incident) return 'over'
  if (rank(state.incident.level) > rank(ack.level)) return 'worse'
  // A fault that has eased, or is recovering, has a class of another level or none.
  if (state.level !== ack.level || kindOf(state.fault) === kindOf(ack.fault)) return undefined
  return 'other fault'
}

/**
 * The ids of the acknowledgements of an incident that ended because its fault is no longer the acknowledged one:
 * receivers that know of the fault have to learn that. Ids rather than times, because acknowledgements end by the clock
 * of the store, which may differ from that of the outbox.
 */
export const lapsedAcks = (incident: string | undefined, entries: readonly StoredSilence[]): readonly string[] =>
  incident === undefined
    ? []
    : entries.flatMap(({ id, ended, ...entry }) =>
        entry.what === 'ack' && entry.incident === incident && (ended?.why === 'worse' || ended?.why === 'other fault')
          ? [id]
          : [],
      )
