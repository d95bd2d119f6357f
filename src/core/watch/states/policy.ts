import type { FaultClass } from '../../base/probe-error.ts'
import type { CheckLevel } from './types.ts'

/** The times and counts of confirmation. Times are milliseconds. */

/** A peer that could not be reached is tried again this long after the first bad run began. */
export const retryAfterMs: readonly number[] = [5_000, 10_000, 20_000]
/** Two healthy runs at least this far apart are a recovery. */
export const recoverMs = 10_000
/** Faults are counted over this time. */
export const flapWindowMs = 3_600_000
/** Flapping ends after this time without a fault. */
export const flapCalmMs = 1_800_000
/** Flapping ends after this time at one bad level. */
export const flapDownMs = 300_000
/** A confirmed dependent waits at most this long for what its causes show. */
export const causeWaitMs = 30_000
/** The last run of a cause decides only if it began at most this long before the fault was confirmed. */
export const causeFreshMs = 10_000
/** A process that is called every second stood still if it was not called for longer than this. */
export const standstillMs = 5_000
/** A check is unobserved after this many intervals without a verdict, and after this time at the earliest. */
export const unobservedIntervals = 3
export const unobservedMinMs = 600_000
/** How often svc looks at an item that runs no longer report before it counts as removed. */
export const missingRuns = 2
/** How soon svc looks again at the depth of a fault that shallower runs do not show. It doubles each time. */
export const lookAgainMs = 60_000
/** How soon a run that had no time for a verdict is repeated while a fault is in doubt. */
export const repeatMs = 5_000
/** How often the witnesses are tried while a peer cannot be reached. */
export const witnessEveryMs = 5_000
/** After this time without an answer of any witness, the line itself has failed. */
export const isolatedFailsMs = 600_000

const ranks: Readonly<Record<CheckLevel, number>> = { ok: 0, warning: 1, failed: 2 }
export const rank = (level: CheckLevel): number => ranks[level]
export const worse = (a: CheckLevel, b: CheckLevel): CheckLevel => (ranks[a] >= ranks[b] ? a : b)

const unreachable: ReadonlySet<string | undefined> = new Set<FaultClass>(['dns', 'refused', 'timeout', 'tls'])
/** The peer did not answer at all: such a fault explains those of the monitors that depend on it. */
export const isUnreachable = (fault: string | undefined): boolean => unreachable.has(fault)
/** Whether a server that is being restarted shows such a fault, which is soon tried again. */
export const isRetried = (fault: FaultClass | undefined): boolean => isUnreachable(fault) || fault === 'protocol'
