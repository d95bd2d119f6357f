/** The times and counts of notifications. Times are milliseconds. */

/** A begin, a rise and a reminder rest on a verdict that is younger than this. */
export const freshMs = 60_000
/** How often svc runs a monitor again while such a verdict is missing. */
export const lookEveryMs = 30_000
/** A fault that goes on is sent after this time even if no run comes to a verdict. */
export const lookAtMostMs = 120_000
/** Two healthy runs at least this far apart are a recovery where the states do not have the incident. */
export const wellMs = 10_000
/** Messages that are due within this time become one message of a receiver that folds. */
export const foldMs = 10_000
/** A receiver that folds gets the next message no sooner. */
export const messageEveryMs = 60_000
/** The pause after the first attempt that failed. It doubles each time. */
export const firstPauseMs = 1_000
export const maxPauseMs = 300_000
/** `Retry-After` of a receiver is obeyed up to this time. */
export const maxRetryAfterMs = 3_600_000
/** A message that a receiver refuses is sent, and logged, again after this time. */
export const refusedEveryMs = 300_000
/** A receiver that has failed for this time has an incident of its own. */
export const brokenMs = 600_000
/** An end that nobody accepts is given up after this time. */
export const giveUpMs = 7 * 86_400_000
/** No receiver keeps more ends of one check waiting. */
export const mostEnds = 100
/** How soon svc tries again after it could not store an attempt. */
export const withheldMs = 1_000
