import type { At, Problem } from '../base/settings/index.ts'
import { didYouMean } from '../base/suggest.ts'
import { plannedNames } from '../checks/plan/index.ts'
import { monitorsNamed } from '../protocol/index.ts'
import { patternFor } from '../watch/notify/index.ts'
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

/** The patterns for what is written. Reports what matches no monitor or is ambiguous. `at`: the list that is written. */
export function patternsFor(written: readonly string[], at: At, configured: Configured): readonly string[] {
  const entries = [...monitorsOf(configured), ...invalidOf(configured)]
  const all = [...entries, ...plannedNames.map((monitor) => ({ monitor, tags: [] }))]
  return written.flatMap((one, index) => {
    const meant = patternFor(one, all)
    if (meant && 'pattern' in meant) return [meant.pattern]
    const names = entries.flatMap(({ type, monitor }) => [monitor, `${type}/${monitor}`])
    const mistake = meant
      ? `is ${JSON.stringify(one)}, which is ambiguous: write ${meant.ambiguous.map((name) => `\`${name}\``).join(' or ')}`
      : unknown('a monitor of this file', one, names)
    at.in(index).report(mistake)
    return []
  })
}

/** The mistakes in the badges of `serve:`. Each is a type or one monitor, as callers write it in the path. */
export function badgeProblems(badges: readonly string[], configured: Configured): readonly Problem[] {
  if (invalidOf(configured).length > 0) return []
  const types = Object.keys(configured.types)
  const all = monitorsOf(configured).map(({ type = '', monitor }) => ({ type, name: monitor }))
  const names = [...types, ...all.map(({ type, name }) => `${type}/${name}`)]
  return badges.flatMap((one, index) => {
    const isMonitor = one.includes('/') && monitorsNamed(one, all).length === 1
    if (types.includes(one) || isMonitor) return []
    return [
      { path: ['badges', index], message: unknown('a type or a monitor of this file, as in `App/shop`', one, names) },
    ]
  })
}

/** The message about a name that does not exist: `is "Sqll", which is not a server type: did you mean `Sql`?` */
export function unknown(what: string, written: string, names: readonly string[]): string {
  const meant = didYouMean(written, names)
  return `is ${JSON.stringify(written)}, which is not ${what}${meant === undefined ? '' : `: did you mean \`${meant}\`?`}`
}
