import { read } from './read.ts'
import type { Entry, ReportOptions } from './reading.ts'

/** The exit codes of a Nagios plugin: OK, WARNING, CRITICAL, UNKNOWN. */
export type NagiosState = 0 | 1 | 2 | 3

/** A host that does not answer is critical, not unknown (plugin guidelines). */
const critical = new Set([3, 6, 7, 8])
/** The exit code of a target that did not answer in time. */
const timeoutExit = 7
/** The exit code of a local configuration that cannot be used. */
const localExit = 12
const badness: Record<NagiosState, number> = { 0: 0, 1: 1, 3: 2, 2: 3 }

function stateOf(entry: Entry, { timeoutState }: ReportOptions): NagiosState {
  const reading = read(entry)
  // Nothing is known of what was not checked.
  if (reading.level === 'not checked') return 3
  if (reading.level === 'fail') return entry.ExitCode === localExit ? 3 : 2
  if (reading.level === 'warn') return 1
  if (reading.level === 'ok' && entry.ExitCode === 0) return 0
  const code = reading.error?.exitCode ?? entry.ExitCode
  if (code === timeoutExit && timeoutState === 'unknown') return 3
  return critical.has(code) ? 2 : 3
}

/** The worst state of the entries: CRITICAL, then UNKNOWN, then WARNING. Without entries it is UNKNOWN. */
export function nagiosState(entries: readonly Entry[], options: ReportOptions = {}): NagiosState {
  if (entries.length === 0) return 3
  return entries
    .map((entry) => stateOf(entry, options))
    .reduce((most, state) => (badness[state] > badness[most] ? state : most), 0)
}
