/** How often a node renews its row. Milliseconds, as all times here. */
export const renewEveryMs = 3_000
/** A renewal without an answer for this long has failed. */
export const renewTimeoutMs = 5_000
/**
 * A node is out this long after its last renewal: by the clock of the store for the others, and for itself by its monotonic
 * clock, from when it sent the renewal. So it stops before another one takes over.
 */
export const outMs = 10_000
/** After this time of failed attempts, a node that does not reach the store sends messages by itself. */
export const aloneMs = 60_000
/** A node that has been out for this long is reported. */
export const reportedOutMs = 60_000
/** For this long, nobody removes what only an absent node has: it may be restarting. */
export const awayMs = 600_000
/** How many questions a node asks at a time: others pay a run for each. Beyond that, its own verdict counts. */
export const mostQuestions = 100
/** A process that stood still for this long asks the store before it runs or sends anything. */
export const standstillMs = 5_000
