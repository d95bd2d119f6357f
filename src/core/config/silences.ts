import { type Problem, place, readSettings, type SettingsContext } from '../base/settings/index.ts'
import { type ClockSilence, clockProblem, silenceSettings } from '../watch/silences/index.ts'
import { type Configured, patternsFor } from './configured.ts'

/** When notifications wait, in the order of the file. */
export type SilenceConfig = readonly ClockSilence[]

/** Reads the `silences:` section. Paths of problems are relative to it. Loads croner. */
export function readSilences(
  raw: unknown,
  context: SettingsContext,
  configured: Configured,
): { readonly values: SilenceConfig; readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] } {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const reading = { problems, warnings, context }
  if (!Array.isArray(raw)) {
    problems.push({ path: [], message: 'must be a list: write "- monitors: …" under it' })
    return { values: [], problems, warnings }
  }
  const entries: readonly unknown[] = raw
  const values = entries.flatMap((entry, index) => {
    const at = place([index], reading)
    const read = readSettings(silenceSettings, entry, context)
    const inEntry = ({ path, message }: Problem): Problem => ({ path: [index, ...path], message })
    problems.push(...read.problems.map(inEntry))
    warnings.push(...read.warnings.map(inEntry))
    if (read.problems.length > 0) return []
    const { for: forMs, ...values } = read.values
    const silence: ClockSilence = { ...values, forMs }
    const problem = clockProblem(silence)
    if (problem !== undefined) at.report(`cannot be used: ${problem}`)
    if (silence.monitors.length === 0) at.in('monitors').report('is empty: name a monitor')
    return [{ ...silence, monitors: patternsFor(silence.monitors, at.in('monitors'), configured) }]
  })
  return { values, problems, warnings }
}
