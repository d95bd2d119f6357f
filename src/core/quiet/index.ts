/**
 * Quiet: which notifications wait, and until when. Pure, but for the time zones that croner knows. Nothing here changes a
 * state, an exit code or a gate.
 */
export { ackEnding, loudSince, type StateOfSubject } from './acknowledge.ts'
export { ClockWindows, clockProblem } from './clock.ts'
export { mutesOf } from './mutes.ts'
export {
  acksThatEnd,
  isInForce,
  type QuietRules,
  type ResultOfRun,
  silencesOf,
  silencesOfMonitors,
  silencesOfResult,
} from './quiet.ts'
export { quietSettings } from './settings.ts'
export type {
  Acknowledgement,
  ClockQuiet,
  HandMade,
  HandQuiet,
  QuietEnding,
  Silence,
  SilenceSource,
  StoredQuiet,
} from './types.ts'
