/**
 * Silences: which notifications wait, and until when. Pure, but for the time zones that croner knows. Nothing here changes a
 * state, an exit code or a gate.
 */
export { ackEnding, lapsedAcks, type StateOfSubject } from './acknowledge.ts'
export { ClockWindows, clockProblem } from './clock.ts'
export { mutesOf, type RenamedSubject, renamedAmong } from './mutes.ts'
export type { SilenceRules } from './rules.ts'
export { silenceSettings } from './settings.ts'
export {
  acksThatEnd,
  isAbout,
  isInForce,
  type ResultOfRun,
  silencesOf,
  silencesOfMonitors,
  silencesOfResult,
  warningAckedAt,
} from './silence.ts'
export type {
  Acknowledgement,
  ClockSilence,
  HandMade,
  HandSilence,
  Silence,
  SilenceCause,
  SilenceEnding,
  StoredSilence,
} from './types.ts'
