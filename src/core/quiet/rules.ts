import type { ClockWindows } from './clock.ts'
import type { StoredQuiet } from './types.ts'

/** What silences notifications at a time: windows by the clock, and entries that somebody made. */
export type QuietRules = {
  readonly clock: readonly ClockWindows[]
  readonly entries: readonly StoredQuiet[]
}
