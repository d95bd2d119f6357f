import type { Problem } from '../base/settings/index.ts'
import { didYouMean } from '../base/suggest.ts'
import {
  type DependencyGroup,
  type MonitorOfType,
  type NamedElsewhere,
  type PlannedMonitor,
  writeMonitorOfType,
} from '../checks/engine/index.ts'
import { namedIn, ownNameIn, ServerType } from '../protocol/index.ts'
import type { MonitorRead } from './monitors.ts'

/** A mistake in the entry of a monitor. */
export type MonitorProblem = Problem & {
  /** The monitors of other types that the message names. */
  readonly elsewhere?: readonly NamedElsewhere[] | undefined
  /** The path of another entry that the mistake is about. */
  readonly other?: Problem['path'] | undefined
}

/** The problem in a value around the one that it was found in: its paths begin with these steps. */
export const underPath = (path: Problem['path'], { other, ...problem }: MonitorProblem): MonitorProblem => ({
  ...problem,
  path: [...path, ...problem.path],
  ...(other ? { other: [...path, ...other] } : {}),
})

/** The monitors that svc.yaml lists for each type, including those with mistakes. */
export type ReadsOfType = ReadonlyMap<ServerType, readonly MonitorRead[]>

export type Dependencies = {
  /** In the order of the list; undefined where an entry is wrong by itself. */
  readonly monitors: readonly (PlannedMonitor | undefined)[]
  /** Their paths begin with the index in the list. */
  readonly problems: readonly MonitorProblem[]
}

/** A monitor of the list that a walk along dependencies visits. */
type Visited = MonitorOfType & { readonly index: number }

/**
 * Resolves `dependsOn` into monitors of the same and of other types. An unknown name, an ambiguous name and a cycle are
 * problems: the engine would otherwise wait forever, or for nothing.
 */
export function resolveDependencies(all: ReadsOfType): ReadonlyMap<ServerType, Dependencies> {
  const problems = new Map([...all.keys()].map((type) => [type, [] as MonitorProblem[]]))
  const parents = new Map(
    [...all].map(([type, reads]) => [
      type,
      reads.map(({ dependsOn, dependsOnGroups = [] }, index): Parents => {
        const refuse = (path: Problem['path'], problem: Omit<MonitorProblem, 'path'>): void => {
          problems.get(type)?.push({ path: [index, ...path], ...problem })
        }
        const membersOf = (written: string, path: Problem['path']): readonly MonitorOfType[] => {
          const members = meant(written, { type, index }, all)
          if ('matches' in members) return members.matches
          refuse(path, members)
          return []
        }
        const singles = dependsOn.flatMap((written) => membersOf(written, ['dependsOn']))
        const groups = dependsOnGroups.map(({ atLeast, of, path }) => {
          const members = of.map((written) => membersOf(written, path))
          const distinct = new Map(members.flat().map((one) => [writeMonitorOfType(one), one]))
          if (members.every((one) => one.length > 0) && atLeast > distinct.size) {
            refuse(path.slice(0, -1), {
              message: `needs at least ${atLeast} of ${distinct.size} monitors: lower \`atLeast\`, or name more`,
            })
          }
          return { atLeast, of: [...distinct.values()] }
        })
        return { singles, groups }
      }),
    ]),
  )
  const edges = new Map(
    [...parents].map(([type, ofType]) => [
      type,
      ofType.map(({ singles, groups }) => [...singles, ...groups.flatMap(({ of }) => of)]),
    ]),
  )
  for (const { type, problem } of circles(all, edges)) problems.get(type)?.push(problem)
  return new Map(
    [...all].map(([type, reads]) => [
      type,
      {
        monitors: reads.map(({ monitor }, index) => monitor && withParents(monitor, type, parents.get(type)?.[index])),
        problems: problems.get(type) ?? [],
      },
    ]),
  )
}

/** The monitors and groups on which a monitor depends. */
type Parents = { readonly singles: readonly MonitorOfType[]; readonly groups: readonly DependencyGroup[] }

function withParents(
  monitor: PlannedMonitor,
  type: ServerType,
  { singles, groups }: Parents = { singles: [], groups: [] },
): PlannedMonitor {
  const own = singles.filter((parent) => parent.type === type).map(({ name }) => name)
  const others = new Map(singles.flatMap((one) => (one.type === type ? [] : [[writeMonitorOfType(one), one] as const])))
  return {
    ...monitor,
    dependsOn: [...new Set(own)],
    ...(others.size === 0 ? {} : { dependsOnElsewhere: [...others.values()] }),
    ...(groups.length === 0 ? {} : { dependsOnGroups: groups }),
  }
}

/** The monitors that a reference means, or why it means none. */
function meant(
  written: string,
  here: { readonly type: ServerType; readonly index: number },
  all: ReadsOfType,
): { readonly matches: readonly MonitorOfType[] } | Omit<MonitorProblem, 'path'> {
  const tagged = taggedBy(written, here, all)
  if (tagged) return 'members' in tagged ? { matches: tagged.members } : tagged
  const reference = parse(written, here.type, all)
  const matches = find(reference, all)
  return matches.length === 1 ? { matches } : unclear(written, here.type, { ...reference, matches }, all)
}

/** The prefix of a reference to a tag. */
const tagPrefix = 'tag:'

/**
 * The monitors that a reference to a tag means: all with this tag but the one that depends on them. Undefined for a name,
 * also for one of this type that begins like a reference to a tag.
 */
function taggedBy(
  written: string,
  { type, index }: { readonly type: ServerType; readonly index: number },
  all: ReadsOfType,
): { readonly members: readonly MonitorOfType[] } | { readonly message: string } | undefined {
  if (!written.startsWith(tagPrefix) || find({ type, name: written }, all).length > 0) return undefined
  const tag = written.slice(tagPrefix.length)
  const withTag = [...all].flatMap(([ofType, reads]) =>
    reads.flatMap(({ name, tags }, at) =>
      tags.includes(tag) ? [{ isSelf: ofType === type && at === index, name, type: ofType }] : [],
    ),
  )
  const members = withTag.flatMap((one) =>
    one.isSelf || one.name === undefined ? [] : [{ type: one.type, name: one.name }],
  )
  if (members.length > 0) return { members }
  const label = JSON.stringify(written)
  if (withTag.some(({ isSelf }) => isSelf)) {
    return {
      message: `names ${label}, but no other monitor has this tag: remove it, or tag the monitors it depends on`,
    }
  }
  const tags = [...new Set([...all.values()].flatMap((reads) => reads.flatMap((read) => read.tags)))].sort()
  const meant = didYouMean(tag, tags)
  if (meant !== undefined) {
    return { message: `names ${label}, but no monitor has this tag: did you mean \`${tagPrefix}${meant}\`?` }
  }
  const names = tags.map((one) => `${tagPrefix}${one}`)
  const advice = names.length === 0 ? 'add `tags:` to the monitors it depends on' : `write ${quoted(names)}`
  return { message: `names ${label}, but no monitor has this tag: ${advice}, or remove it` }
}

/** A reference of `dependsOn`. */
type Reference = { readonly type: ServerType; readonly name: string }

/** A name of the same type is one even if it contains a slash. */
function parse(written: string, type: ServerType, all: ReadsOfType): Reference {
  const own = { type, name: written }
  const slash = written.indexOf('/')
  const before = ServerType.values.find((each) => each === written.slice(0, slash))
  if (slash < 0 || before === undefined || find(own, all).length > 0) return own
  return { type: before, name: written.slice(slash + 1) }
}

/** Finds monitors of one type, including those with other problems. */
const find = ({ type, name: written }: Reference, all: ReadsOfType): readonly MonitorOfType[] =>
  namedIn(written, monitorsOf(type, all))

/** More names would hide the message. */
const maxNames = 8

const quoted = (names: readonly string[]): string =>
  names
    .slice(0, maxNames)
    .map((name) => `\`${name}\``)
    .join(' or ')

/** Why a reference names no monitor, or several, and what to write instead. */
function unclear(
  written: string,
  here: ServerType,
  { type, name, matches }: Reference & { readonly matches: readonly MonitorOfType[] },
  all: ReadsOfType,
): Omit<MonitorProblem, 'path'> {
  const names = JSON.stringify(written)
  const as = (one: MonitorOfType): string => (one.type === here ? one.name : writeMonitorOfType(one))
  const about = (message: string, others: readonly MonitorOfType[] = []): Omit<MonitorProblem, 'path'> => {
    const ofOthers = others.flatMap((one) => (one.type === here ? [] : [{ type: one.type, text: as(one) }]))
    const elsewhere = type === here ? ofOthers : [...ofOthers, { type, text: written }]
    return elsewhere.length === 0 ? { message } : { message, elsewhere }
  }
  if (matches.length > 0) {
    return about(`names ${names}, which is ambiguous: write ${quoted(matches.map(as))}`, matches)
  }
  const ofType = monitorsOf(type, all)
  if (type !== here) {
    if (ofType.length === 0) return about(`names ${names}, but ${type} has no monitors: remove it`)
    const nearest = nearestOf(name, type, all)
    const meant =
      nearest === undefined ? `write ${quoted(ofType.map(as))}, or remove it` : `did you mean \`${as(nearest)}\`?`
    return about(`names ${names}, which is not a monitor of ${type}: ${meant}`, nearest ? [nearest] : ofType)
  }
  const slash = written.indexOf('/')
  const typed = slash < 0 ? undefined : didYouMean(written.slice(0, slash), ServerType.values)
  if (typed !== undefined) {
    const meant = `${typed}/${written.slice(slash + 1)}`
    return {
      message: `names ${names}, but \`${written.slice(0, slash)}\` is not a server type: did you mean \`${meant}\`?`,
      elsewhere: [
        { type: ServerType.values.find((each) => each === typed) ?? here, text: meant },
        { type: ServerType.values.find((each) => each === typed) ?? here, text: written },
      ],
    }
  }
  const others = [...all.keys()].filter((other) => other !== here).flatMap((other) => find({ type: other, name }, all))
  if (others.length > 0) {
    const more = `write ${quoted(others.map(as))} for a monitor of another type`
    const { message, elsewhere = [] } = about(`names ${names}, which is not a monitor of this type: ${more}`, others)
    return { message, elsewhere: [...elsewhere, ...others.map((other) => ({ type: other.type, text: written }))] }
  }
  return about(`names ${names}, which is not a monitor of this type: write ${quoted(ofType.map(as))}, or remove it`)
}

const monitorsOf = (type: ServerType, all: ReadsOfType): readonly MonitorOfType[] =>
  [...new Set((all.get(type) ?? []).flatMap(({ name }) => (name === undefined ? [] : [name])))].map((name) => ({
    type,
    name,
  }))

/** The monitor of a type whose name was probably meant. */
function nearestOf(name: string, type: ServerType, all: ReadsOfType): MonitorOfType | undefined {
  const reads = all.get(type) ?? []
  const candidates = reads.flatMap(({ name: one }) => (one === undefined ? [] : [one, ownNameIn(one)]))
  const nearest = didYouMean(name, candidates)
  const [only, another] = nearest === undefined ? [] : find({ type, name: nearest }, all)
  return another === undefined ? only : undefined
}

/**
 * One problem per cycle within a type, at its first member. A cycle across types is a problem of each of its members, so
 * that the lines of all of them are reported.
 */
function circles(
  all: ReadsOfType,
  parents: ReadonlyMap<ServerType, readonly (readonly MonitorOfType[])[]>,
): readonly { readonly type: ServerType; readonly problem: MonitorProblem }[] {
  const nodes = new Map<string, Visited>()
  for (const [type, reads] of all) {
    for (const [index, { name }] of reads.entries()) {
      const node = name === undefined ? undefined : { type, name, index }
      if (node && !nodes.has(writeMonitorOfType(node))) nodes.set(writeMonitorOfType(node), node)
    }
  }
  const done = new Set<string>()
  const cycles: (readonly Visited[])[] = []
  const walk = (key: string, way: readonly Visited[]): void => {
    const node = nodes.get(key)
    if (!node || done.has(key)) return
    const start = way.indexOf(node)
    if (start >= 0) {
      cycles.push(way.slice(start))
      return
    }
    for (const parent of parents.get(node.type)?.[node.index] ?? []) walk(writeMonitorOfType(parent), [...way, node])
    done.add(key)
  }
  for (const key of nodes.keys()) walk(key, [])
  return cycles.flatMap((members) => {
    const isWithin = members.every(({ type }) => type === members[0]?.type)
    return (isWithin ? members.slice(0, 1) : members).map(({ type, index }) => {
      const around = [...members, ...members.slice(0, 1)]
      const circle = around.map((one) => (isWithin ? one.name : writeMonitorOfType(one))).join(' → ')
      const message = `forms a cycle (${circle}): remove one of these`
      const elsewhere = members.flatMap((one) =>
        one.type === type ? [] : [{ type: one.type, text: writeMonitorOfType(one) }],
      )
      const problem: MonitorProblem = { path: [index, 'dependsOn'], message }
      return { type, problem: elsewhere.length === 0 ? problem : { ...problem, elsewhere } }
    })
  })
}
