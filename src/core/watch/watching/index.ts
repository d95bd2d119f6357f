/**
 * Whether svc monitors as it should: the one decision that controls the watchdog and the ping of a dead man's switch.
 */
export {
  afterPing,
  afterSample,
  type Condition,
  isSteady,
  newPinging,
  newVigil,
  type Pinging,
  pingDue,
  problemOf,
  type Vigil,
} from './vigil.ts'
