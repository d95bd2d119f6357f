import type { Problem } from '../base/settings/index.ts'
import { didYouMean } from '../base/suggest.ts'
import { monitorKey, type PlannedMonitor, parseKey, writeKey } from '../checks/engine/index.ts'
import { isKindName, ofType } from '../checks/plan/index.ts'
import { ServerType } from '../protocol/index.ts'

/** Why a text cannot be a former key of a monitor of this kind, or undefined. */
export function formerKeyMistake(written: string, kind: string): string | undefined {
  const parts = parseKey(written)
  if (!parts) {
    return 'must be a key: type/kind/name, like Sql/postgres/orders, or Sql/postgres/ for a monitor without a name'
  }
  if (!ServerType.values.some((type) => type === parts.type)) {
    const meant = didYouMean(parts.type, ServerType.values)
    return `begins with something other than a server type: ${meant === undefined ? 'write it like Sql/postgres/orders' : `did you mean \`${meant}\`?`}`
  }
  if (parts.kind === kind) return undefined
  const what = isKindName(parts.kind) ? 'has another kind than this monitor' : 'has a kind that does not exist'
  return `${what}: write ${parts.type}/${kind}/…, or remove it`
}

/** A former key in its one form: a monitor that is named like its kind has the empty name. */
export const formerKey = (written: string): string => {
  const parts = parseKey(written)
  return parts ? writeKey(parts) : written
}

type MonitorsOf = {
  readonly monitors: readonly PlannedMonitor[]
  readonly host: Readonly<Record<string, unknown>> | false
}
type Mistaken = { readonly name: string; readonly problems: readonly Problem[] }
/** A part of what `readTypes` returns. */
type ReadConfig = {
  readonly types: { readonly [T in ServerType]?: MonitorsOf }
  readonly invalid: { readonly [T in ServerType]?: readonly Mistaken[] }
  readonly problems: readonly Problem[]
}
type Document = {
  /** The path of an entry in the document. */
  readonly pathOf: (type: ServerType, monitor: PlannedMonitor) => Problem['path']
  /** `line 3`; with the file for a path in another file than `from`. */
  readonly whereIs: (path: Problem['path'], from: Problem['path']) => string
}
type Placed = { readonly type: ServerType; readonly monitor: PlannedMonitor }

/**
 * The configuration, in which an entry is wrong if a key of its `formerly` is that of a monitor that exists, or is in
 * `formerly` of another one too: what the store keeps under that key would have two owners. Entries with other mistakes
 * count as monitors that exist.
 */
export function refuseFormerKeys<T extends ReadConfig>(read: T, { pathOf, whereIs }: Document): T {
  const all: readonly Placed[] = ServerType.values.flatMap((type) =>
    (read.types[type]?.monitors ?? []).map((monitor) => ({ type, monitor })),
  )
  const living = new Map<string, Problem['path']>([
    ...ServerType.values.flatMap((type) =>
      (read.invalid[type] ?? []).map((one) => [keyOfName(type, one.name), one.problems[0]?.path ?? []] as const),
    ),
    ...all.map(({ type, monitor }) => [monitorKey(ofType(type, monitor)), pathOf(type, monitor)] as const),
  ])
  const claims = Map.groupBy(
    all.flatMap((one) => (one.monitor.formerly ?? []).map((key) => ({ key, ...one }))),
    ({ key }) => key,
  )
  const problemsOf = ({ type, monitor }: Placed): readonly Problem[] =>
    (monitor.formerly ?? []).flatMap((key, index) => {
      const path = [...pathOf(type, monitor), 'formerly', index]
      const owner = living.get(key)
      if (key === monitorKey(ofType(type, monitor))) return [{ path, message: 'is the key of this monitor: remove it' }]
      if (owner !== undefined) {
        const message = `is the key of a monitor that exists, in ${whereIs(owner, path)}: remove the key here, or rename that monitor`
        return [{ path, message }]
      }
      const other = claims.get(key)?.find((claim) => claim.monitor !== monitor)
      if (!other) return []
      const where = whereIs([...pathOf(other.type, other.monitor), 'formerly'], path)
      return [{ path, message: `is also in \`formerly\` in ${where}: keep one of them` }]
    })
  const mistakes = all.flatMap((one) => {
    const problems = problemsOf(one)
    return problems.length === 0 ? [] : [{ ...one, problems }]
  })
  if (mistakes.length === 0) return read
  const types: { [T in ServerType]?: MonitorsOf } = { ...read.types }
  const invalid: { [T in ServerType]?: readonly Mistaken[] } = { ...read.invalid }
  for (const { type, monitor, problems } of mistakes) {
    const config = types[type]
    if (config) types[type] = { ...config, monitors: config.monitors.filter((one) => one !== monitor) }
    invalid[type] = [...(invalid[type] ?? []), { name: monitor.name, problems }]
  }
  return { ...read, types, invalid, problems: [...read.problems, ...mistakes.flatMap(({ problems }) => problems)] }
}

/** The key of an entry with mistakes, which has no more than a MonitorName. Names of kinds contain no space. */
function keyOfName(type: ServerType, name: string): string {
  const [kind = '', ...words] = name.split(' ')
  return writeKey({ type, kind, name: words.join(' ') })
}
