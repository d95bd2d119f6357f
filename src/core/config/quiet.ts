import { type Problem, place, readSettings, type SettingsContext } from '../base/settings/index.ts'
import { type ClockQuiet, clockProblem, quietSettings } from '../watch/quiet/index.ts'
import { type Configured, refuseIdle } from './configured.ts'

/** When notifications wait, in the order of the file. */
export type QuietConfig = readonly ClockQuiet[]

/** Reads the `quiet:` section. Paths of problems are relative to it. Loads croner. */
export function readQuiet(
  raw: unknown,
  context: SettingsContext,
  configured: Configured,
): { readonly values: QuietConfig; readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] } {
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
    const read = readSettings(quietSettings, entry, context)
    const inEntry = ({ path, message }: Problem): Problem => ({ path: [index, ...path], message })
    problems.push(...read.problems.map(inEntry))
    warnings.push(...read.warnings.map(inEntry))
    if (read.problems.length > 0) return []
    const { for: forMs, ...values } = read.values
    const quiet: ClockQuiet = { ...values, forMs }
    const problem = clockProblem(quiet)
    if (problem !== undefined) at.report(`cannot be used: ${problem}`)
    if (quiet.monitors.length === 0) at.in('monitors').report('is empty: name a monitor')
    refuseIdle(quiet.monitors, at.in('monitors'), configured)
    return [quiet]
  })
  return { values, problems, warnings }
}
