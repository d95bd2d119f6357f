/**
 * Quiet: which notifications wait, and until when. Pure, but for the time zones that croner knows. Nothing here changes a
 * state, an exit code or a gate.
 */
export { ackEnding, lapsedAcks, type StateOfSubject } from './acknowledge.ts'
export { ClockWindows, clockProblem } from './clock.ts'
export { mutesOf } from './mutes.ts'
export {
  acksThatEnd,
  isInForce,
  type ResultOfRun,
  silencesOf,
  silencesOfMonitors,
  silencesOfResult,
} from './quiet.ts'
export type { QuietRules } from './rules.ts'
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
