import { sanitize } from '../../../base/net/text.ts'
import { ServerType } from '../../../protocol/index.ts'
import type { Mute } from '../receiver.ts'
import { isMonitor } from '../settings.ts'
import { identityOf } from './message.ts'

/**
 * A matcher of a silence, as the API v2 of Alertmanager writes it. A silence covers alerts to which all of its matchers
 * apply.
 */
export type Matcher = {
  readonly name: string
  readonly value: string
  /** Whether the value is a regular expression (RE2), which has to match the whole value of the label. */
  readonly isRegex: boolean
  /** Whether the matcher applies to equal values; otherwise to all others. */
  readonly isEqual: boolean
}

/** How svc reports a receiver that fails. No silence covers that, and no monitor has this check. */
const ownReports = { monitor: 'svc', check: 'receiver' } as const
/** How many characters of a pattern are used: more than a type and a name have. */
const maxPattern = 1_000
/** Placeholders for `*` and for both ends of a pattern, while its text is sanitized like that of a label. */
const star = '\u{e000}'
const edge = '\u{e001}'

/**
 * The matchers of the silences for one target. A pattern usually needs one silence. It needs several if its `*` may
 * stand both for a part of the type and for a part of the name, because matchers of one silence cannot be alternatives.
 *
 * @example
 * ```ts
 * matchersFor({ pattern: 'Sql/*' }, 'prod').length // 1
 * matchersFor({ pattern: 'S*' }, 'prod').length // 2
 * ```
 */
export function matchersFor(target: Mute['targets'][number], server: string): readonly (readonly Matcher[])[] {
  if ('subject' in target) return [exactly({ ...target.subject, server })]
  const common = [matching('alertname', 'SvcFailed|SvcWarning'), equal('server', serverLabel(server))]
  const glob = globOf(target.pattern)
  const typed = [...byRest(glob)].map(([rest, types]) => [
    ...common,
    ...(types.length === ServerType.values.length
      ? [differs('type', '')]
      : types.length === 1
        ? [equal('type', types[0] ?? '')]
        : [matching('type', types.join('|'))]),
    matching('monitor', rest),
  ])
  if (beginsWithType(glob)) return typed
  const own = isMonitor(target.pattern, ownReports) ? [differs('check', ownReports.check)] : []
  return [[...common, matching('monitor', expression([glob])), ...own], ...typed]
}

/** The label `server`, as alerts have it. */
export const serverLabel = (server: string): string => sanitize(server, 256)

/** Matchers for all labels of an identity, including those that must be absent. */
function exactly(subject: Extract<Mute['targets'][number], { subject: unknown }>['subject']): readonly Matcher[] {
  const labels = identityOf(subject)
  return ['server', 'type', 'monitor', 'check', 'item', 'node'].map((name) => equal(name, labels[name] ?? ''))
}

const equal = (name: string, value: string): Matcher => ({ name, value, isRegex: false, isEqual: true })
const differs = (name: string, value: string): Matcher => ({ name, value, isRegex: false, isEqual: false })
const matching = (name: string, value: string): Matcher => ({ name, value, isRegex: true, isEqual: true })

/** Characters, where `star` stands for any number of characters. */
type Glob = readonly string[]

/** The pattern as labels would have its text: their values are sanitized. */
const globOf = (pattern: string): Glob =>
  Array.from(sanitize(`${edge}${pattern.slice(0, maxPattern).replaceAll('*', star)}${edge}`, maxPattern + 2)).slice(
    1,
    -1,
  )

/** A regular expression for the texts that one of these globs matches, in any letter case. */
const expression = (globs: readonly Glob[]): string => {
  const alternatives = globs.map((glob) => glob.map((one) => (one === star ? '.*' : escaped(one))).join(''))
  return `(?i:${alternatives.join('|')})`
}
const escaped = (character: string): string => character.replace(/[\\^$.*+?()[\]{}|]/, '\\$&')

/**
 * For each type, the rest of a glob that names of monitors have to match after the type and its slash. By rest, with
 * its types. Without the rests that the whole glob covers, too.
 */
function byRest(glob: Glob): ReadonlyMap<string, readonly string[]> {
  const rests = new Map<string, readonly string[]>()
  for (const type of ServerType.values) {
    const positions = after(glob, `${type}/`)
    if (positions.length === 0 || (positions.length === 1 && positions[0] === 0)) continue
    const rest = expression(positions.map((at) => glob.slice(at)))
    rests.set(rest, [...(rests.get(rest) ?? []), type])
  }
  return rests
}

/** The positions in a glob at which the match of a text can end, without those that another position includes. */
function after(glob: Glob, text: string): readonly number[] {
  let positions = opened(glob, new Set([0]))
  for (const character of text.toLowerCase()) {
    const next = new Set<number>()
    for (const at of positions) {
      if (glob[at] === star) next.add(at)
      else if (glob[at]?.toLowerCase() === character) next.add(at + 1)
    }
    positions = opened(glob, next)
  }
  // After its last `*`, a glob matches all texts that it matches after an earlier one.
  const last = Math.max(-1, ...[...positions].filter((at) => glob[at] === star))
  const all = [...positions].filter((at) => at >= last && at !== last + 1)
  return (last < 0 ? [...positions] : all).filter((at) => at < glob.length)
}

/** Adds the positions after each `*`, which can match nothing. */
function opened(glob: Glob, positions: Set<number>): ReadonlySet<number> {
  for (const at of positions) if (glob[at] === star) positions.add(at + 1)
  return positions
}

/** Whether a glob begins with a type and a slash. No name of a monitor does: names begin with the kind. */
function beginsWithType(glob: Glob): boolean {
  const text = glob.join('').toLowerCase()
  return ServerType.values.some((type) => text.startsWith(`${type}/`.toLowerCase()))
}
