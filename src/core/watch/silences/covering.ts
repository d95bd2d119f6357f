import { entryOf, oncePerObject } from '../../base/lazy.ts'
import { nameMatcher } from '../../protocol/index.ts'
import type { ClockWindows } from './clock.ts'
import type { SilenceRules } from './rules.ts'
import type { HandSilence } from './types.ts'

type MonitorName = { readonly type?: string | undefined; readonly monitor: string }
type Rule = ClockWindows | HandSilence

/** Everything with a pattern that covers a monitor, whether or not it is in force. */
export type Covering = { readonly clock: readonly ClockWindows[]; readonly byHand: readonly HandSilence[] }

/**
 * Finds what covers a monitor, compared as by `isMonitor`. Looks up names without `*`, and keeps the result for each
 * monitor as long as the rules: each scrape of /metrics asks for all monitors.
 */
export const coveringIn = oncePerObject((rules: SilenceRules): ((monitor: MonitorName) => Covering) => {
  const byName = new Map<string, Rule[]>()
  const others: { readonly matches: (name: string) => boolean; readonly rule: Rule }[] = []
  const add = (rule: Rule, patterns: readonly string[]): void => {
    for (const pattern of patterns) {
      const name = pattern.toLowerCase()
      if (pattern.includes('*')) others.push({ matches: nameMatcher(pattern), rule })
      else entryOf(byName, name, (): Rule[] => []).push(rule)
    }
  }
  for (const windows of rules.clock) add(windows, windows.rule.monitors)
  for (const entry of rules.entries) if (entry.what === 'silence' && !entry.ended) add(entry, entry.monitors)

  const find = ({ type, monitor }: MonitorName): Covering => {
    const names = [monitor, ...(type === undefined ? [] : [`${type}/${monitor}`])].map((name) => name.toLowerCase())
    const rulesOfOne = new Set<Rule>([
      ...names.flatMap((name) => byName.get(name) ?? []),
      ...others.flatMap(({ matches, rule }) => (names.some(matches) ? [rule] : [])),
    ])
    const byHand = [...rulesOfOne].filter((rule): rule is HandSilence => 'what' in rule)
    return { clock: [...rulesOfOne].filter((rule): rule is ClockWindows => !('what' in rule)), byHand }
  }
  const covering = new Map<string, Covering>()
  return (one) => {
    const key = JSON.stringify([one.type, one.monitor])
    const existing = covering.get(key)
    if (existing) return existing
    const made = find(one)
    covering.set(key, made)
    return made
  }
})
