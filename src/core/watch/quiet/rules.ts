import type { ClockWindows } from './clock.ts'
import type { StoredQuiet } from './types.ts'

/** Everything that silences notifications: windows by the clock, and entries that people have created. */
export type QuietRules = {
  readonly clock: readonly ClockWindows[]
  readonly entries: readonly StoredQuiet[]
}
