/** How often the holder of a lease renews it. Milliseconds, as all times here. */
export const beatMs = 2_000
/** How often a node looks at a lease that it does not hold. */
export const lookMs = 1_000
/** A question to the store without an answer for this long has failed. */
export const answerTimeoutMs = 5_000
/** A holder stops this long after it sent its last renewal that succeeded, by its monotonic clock. */
export const stopMs = 7_000
/** A node takes a lease that it has seen unchanged for this long, by its monotonic clock. */
export const takeMs = 7_000
/** The time for which a node waits longer if most nodes have another configuration. */
export const minorityMs = 3_000
/** A node that saw nothing for this long, because it stood still or the store did not answer, begins to watch a lease anew. */
export const gapMs = 4_000
/** A node is live until this long after it last renewed its row, by the clock of the store. For people and for questions. */
export const outMs = 10_000
/** After this time of failed attempts, a node that does not reach the store sends messages by itself. */
export const aloneMs = 60_000
/** From this long without the store on, a node asks those before it who speaks, and counts as one that does. */
export const askFromMs = 45_000
/** How often it asks them. */
export const askEveryMs = 5_000
/** For how long an answer keeps it silent, from its question on. */
export const answerHoldsMs = 12_000
/** How many nodes it asks: the first ones. */
export const mostAsked = 8
/** A node that has been out for this long is reported. */
export const reportedOutMs = 60_000
/** For this long, what only another configuration has waits, untold, until all live nodes have the same one. */
export const rolloutMs = 600_000
/** A holder that no witness has answered for this long gives its lease to a node that has a network. */
export const isolatedMs = 10_000
/** How many questions a node asks others in a minute: they pay a run for each. Beyond that, its own verdict counts. */
export const mostQuestions = 10
/** A process that stood still for this long asks the store before it runs or sends anything. */
export const standstillMs = 5_000
