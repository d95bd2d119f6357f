import type { ClockWindows } from './clock.ts'
import type { StoredSilence } from './types.ts'

/** Everything that silences notifications: windows by the clock, and entries that people have created. */
export type SilenceRules = {
  readonly clock: readonly ClockWindows[]
  readonly entries: readonly StoredSilence[]
}
