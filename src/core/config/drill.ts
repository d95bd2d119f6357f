import { cronOf, readCronOnce, zoneProblem } from '../base/cron.ts'
import { type Problem, readSettings, type SettingsContext } from '../base/settings/index.ts'
import { type DrillConfig, drillSettings } from '../watch/drill/index.ts'
import { drillMistake } from '../watch/notify/index.ts'
import { unknown } from './configured.ts'
import type { NotifyConfig } from './notify.ts'

/**
 * Reads the `drill:` section. Paths of problems are relative to it. `notify`: undefined where it has mistakes. Loads
 * croner.
 */
export function readDrill(
  raw: unknown,
  context: SettingsContext,
  notify: NotifyConfig | undefined,
): {
  readonly values: DrillConfig | undefined
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
} {
  const { values, problems: mistakes, warnings } = readSettings(drillSettings, raw, context)
  const problems: Problem[] = [...mistakes]
  const report = (path: Problem['path'], message: string): void => void problems.push({ path, message })
  const { every, when, timezone } = values
  const through = mistakes.length > 0 ? [] : values.through
  if (every !== undefined && when !== undefined) report(['when'], 'cannot be used beside every: keep one')
  const zone = zoneProblem(timezone)
  if (zone !== undefined) report([], `cannot be used: ${zone}`)
  else if (when !== undefined) {
    const cron = cronOf('when', when, timezone, readCronOnce)
    if ('problem' in cron) report([], `cannot be used: ${cron.problem}`)
    else if (cron.after(Date.now()) === undefined) report(['when'], 'is never: write a time that exists')
  }
  if (mistakes.length === 0 && through.length === 0) report(['through'], 'is empty: name a receiver of notify:')
  for (const [index, name] of through.entries()) {
    if (through.indexOf(name) < index) report(['through', index], 'is there twice: remove one')
    const receiver = notify?.find((one) => one.name === name)
    if (notify !== undefined && receiver === undefined) {
      report(
        ['through', index],
        unknown(
          'a receiver of notify:',
          name,
          notify.map((one) => one.name),
        ),
      )
    }
    const why = receiver === undefined ? undefined : drillMistake(receiver)
    if (why !== undefined) report(['through', index], `${name} ${why}`)
  }
  return { values: problems.length === 0 ? values : undefined, problems, warnings }
}
