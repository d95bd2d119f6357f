/**
 * Why a pattern is given up, as the source of a pattern: svc says that it backtracks once it has had 250 ms of processor
 * time, which a busy machine may not give it in the 2 s that svc waits.
 */
export const givenUp =
  '(?:did not end within 250 ms, so it backtracks; write it without nested repeats|got less than 250 ms of processor time in 2000 ms: this machine is too busy)'
