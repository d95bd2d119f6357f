/**
 * Quiet: which notifications wait, and until when. Pure, but for the time zones that croner knows. Nothing here changes a
 * state, an exit code or a gate.
 */
export { ClockWindows, clockProblem } from './clock.ts'
export { silenceOf } from './quiet.ts'
export { quietSettings } from './settings.ts'
export type { ClockQuiet, Silence } from './types.ts'
