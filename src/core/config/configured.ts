import type { At } from '../base/settings/index.ts'
import { didYouMean } from '../base/suggest.ts'
import { plannedNames } from '../checks/plan/index.ts'
import { isMonitor } from '../watch/notify/index.ts'
import type { readTypes } from './types.ts'

/** The monitors that other sections of svc.yaml may name. */
export type Configured = Pick<Awaited<ReturnType<typeof readTypes>>, 'types' | 'invalid'>

type MonitorName = { readonly type?: string; readonly monitor: string; readonly tags: readonly string[] }

/** The monitors without mistakes, with their tags. */
export const monitorsOf = ({ types }: Configured): readonly MonitorName[] =>
  Object.entries(types).flatMap(([type, { monitors: list }]) =>
    list.map((monitor) => ({ type, monitor: monitor.name, tags: monitor.tags ?? [] })),
  )

/** The entries with mistakes, by their names, so that one mistake does not look like two. */
export const invalidOf = ({ invalid }: Configured): readonly MonitorName[] =>
  Object.entries(invalid).flatMap(([type, list]) => list.map(({ name }) => ({ type, monitor: name, tags: [] })))

/** Reports the patterns that match no monitor. `at`: the list of the patterns. */
export function refuseIdle(patterns: readonly string[], at: At, configured: Configured): void {
  const entries = [...monitorsOf(configured), ...invalidOf(configured)]
  const all = [...entries, ...plannedNames.map((monitor) => ({ monitor, tags: [] }))]
  for (const [index, pattern] of patterns.entries()) {
    if (all.some((one) => isMonitor(pattern, one))) continue
    const names = entries.flatMap(({ type, monitor }) => [monitor, `${type}/${monitor}`])
    at.in(index).report(unknown('a monitor of this file', pattern, names))
  }
}

/** The message about a name that does not exist: `is "Sqll", which is not a server type: did you mean `Sql`?` */
export function unknown(what: string, written: string, names: readonly string[]): string {
  const meant = didYouMean(written, names)
  return `is ${JSON.stringify(written)}, which is not ${what}${meant === undefined ? '' : `: did you mean \`${meant}\`?`}`
}
