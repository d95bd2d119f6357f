import { sanitizeAndCut } from '../base/sanitize.ts'
import {
  type Every,
  isMap,
  type Problem,
  type Raw,
  readSettings,
  type SettingsContext,
  unknownKey,
} from '../base/settings/index.ts'
import { didYouMean } from '../base/suggest.ts'
import type { PlannedMonitor } from '../checks/engine/index.ts'
import { hostKind, hostMonitor, isConfigured, loadKind, loadTypeFor, plannedNames } from '../checks/plan/index.ts'
import { ServerType } from '../protocol/index.ts'
import { type Inherited, typeSettings } from './common.ts'
import {
  type Dependencies,
  type MonitorProblem,
  type ReadsOfType,
  resolveDependencies,
  underPath,
} from './dependencies.ts'
import { kindIn } from './long-form.ts'
import { kindProblem, type MonitorRead, monitorGrammar, readMonitor } from './monitors.ts'
import type { PlacedRead } from './profile-use.ts'
import type { Profiles } from './profiles.ts'

/** An entry with mistakes: what it would be called, and its problems. */
export type InvalidMonitor = { readonly name: string; readonly problems: readonly MonitorProblem[] }

export type TypeConfig = {
  /** Without a list of monitors: the host block, if its settings switch on a check. */
  readonly monitors: readonly PlannedMonitor[]
  /** How often svc serve runs the monitors of the type by itself. Absent: as all monitors. */
  readonly every?: Every | undefined
  /** Milliseconds that a worse result must last before it is confirmed. Absent: as all monitors. */
  readonly confirm?: number | undefined
  /** More faults than this in an hour are flapping. Absent: as all monitors. */
  readonly flapping?: number | 'off' | undefined
  /** The settings of the host block, or false to leave it out or if it is in `monitors`. */
  readonly host: Readonly<Record<string, unknown>> | false
}
export type Types = { readonly [T in ServerType]?: TypeConfig }
type TypesRead = {
  readonly types: Types
  /** The entries with mistakes, by type. */
  readonly invalid: { readonly [T in ServerType]?: readonly InvalidMonitor[] }
  readonly problems: readonly MonitorProblem[]
  readonly warnings: readonly MonitorProblem[]
}

/**
 * Reads the `types:` section. Paths of problems are relative to it. Loads the kinds that it names, but no drivers.
 * Without `profiles`, entries use the built-in ones. `usualHost`: the settings of the host block of a type that does not
 * give them itself.
 */
export async function readTypes(
  raw: unknown,
  context: SettingsContext,
  profiles?: Profiles,
  usualHost: TypeConfig['host'] = {},
): Promise<TypesRead> {
  if (raw === null || raw === undefined) return { types: {}, invalid: {}, problems: [], warnings: [] }
  if (!isMap(raw)) {
    const message = 'must map server types to their monitors: write `Sql:` and a list under it'
    return { types: {}, invalid: {}, problems: [{ path: [], message }], warnings: [] }
  }
  const types: { [T in ServerType]?: TypeConfig } = {}
  const invalid: { [T in ServerType]?: readonly InvalidMonitor[] } = {}
  const problems: MonitorProblem[] = []
  const warnings: MonitorProblem[] = []
  const lists = new Map<ServerType, MonitorList>()
  for (const type of ServerType.values) {
    const listed = Object.hasOwn(raw, type) ? listedIn(raw[type]) : undefined
    if (!listed) continue
    const { inherited } = readTypeSettings(raw[type], context)
    lists.set(type, await readMonitors(listed, { context, profiles, inherited }))
  }
  const reads: ReadsOfType = new Map([...lists].map(([type, { placed: list }]) => [type, list.map(({ read }) => read)]))
  const dependencies = resolveDependencies(reads)
  for (const [name, value] of Object.entries(raw)) {
    const type = ServerType.values.find((candidate) => candidate === name)
    if (!type) {
      problems.push({ path: [name], message: await unknownType(name, listedIn(value) ?? []) })
      continue
    }
    const list = lists.get(type)
    const monitors = list && monitorsIn(list, dependencies.get(type) ?? noDependencies)
    const read = await readType(value, context, usualHost, monitors)
    types[type] = { ...read.config, host: hostOf(value, read.config, usualHost), ...ownOf(value, context) }
    const invalidHere = placed(read, [name])
    if (invalidHere.length > 0) invalid[type] = invalidHere
    problems.push(...under(read.problems, [name]))
    warnings.push(...under(read.warnings, [name]))
    if (!isConfigured(read.config.monitors) && read.problems.length === 0) {
      const lacks =
        isMap(value) && isMap(value['host']) ? 'no monitors, and its host: switches on no check' : 'no monitors'
      warnings.push({ path: [name], message: `has ${lacks}: ${name} is not configured` })
    }
  }
  return { types, invalid, problems, warnings }
}

/** The entries of a type with mistakes, and one more for mistakes that belong to no entry. */
function placed({ invalid, problems }: TypeRead, path: Problem['path']): readonly InvalidMonitor[] {
  const ofEntries = new Set(invalid.flatMap((one) => one.problems))
  const others = problems.filter((problem) => !ofEntries.has(problem))
  const all = others.length === 0 ? invalid : [...invalid, { name: 'Configuration', problems: others }]
  return all.map(({ name, problems: own }) => ({ name, problems: under(own, path) }))
}

/** `listed`: what the file has under the name. */
async function unknownType(name: string, listed: readonly unknown[]): Promise<string> {
  const { typeFor, typeOfKinds } = await loadTypeFor()
  const meant = didYouMean(name, ServerType.values)
  // `HTTP` is near `Ftp`, and means something else.
  const exact = meant?.toLowerCase() === name.toLowerCase() ? undefined : typeFor(name)
  if (meant !== undefined && exact === undefined) return `is not a server type: did you mean \`${meant}\`?`
  const kinds = listed.flatMap((entry) => (isMap(entry) ? (kindIn(entry, monitorGrammar) ?? []) : []))
  const home = exact ?? typeOfKinds(kinds) ?? typeFor(name, true)
  if (home !== undefined) return `is not a server type: put its monitors under \`${home}\``
  return `is not a server type: use one of ${ServerType.values.join(', ')}; \`App\` is for what fits no other`
}

type TypeRead = {
  readonly config: TypeConfig
  /** The entries with mistakes. `problems` contains theirs too. */
  readonly invalid: readonly InvalidMonitor[]
  readonly problems: readonly MonitorProblem[]
  readonly warnings: readonly MonitorProblem[]
}
const nothing: TypeRead = { config: { monitors: [], host: {} }, invalid: [], problems: [], warnings: [] }

const noDependencies: Dependencies = { monitors: [], problems: [] }

/** The entries of a type, in either of its forms, if they are a list. */
function listedIn(raw: unknown): readonly unknown[] | undefined {
  const listed = isMap(raw) ? raw['monitors'] : raw
  return Array.isArray(listed) ? listed : undefined
}

/**
 * Reads one type: a plain list of monitors, or a map with the host block's settings and that list. `monitors` is what
 * the list contains, if there is one.
 */
async function readType(
  raw: unknown,
  context: SettingsContext,
  usualHost: TypeConfig['host'],
  monitors: TypeRead = nothing,
): Promise<TypeRead> {
  if (raw === null) return nothing
  if (Array.isArray(raw)) return monitors
  if (!isMap(raw)) {
    const message = 'must be a list of monitors: write "- kind: …" under it'
    return { ...nothing, problems: [{ path: [], message }] }
  }
  const unknown = Object.keys(raw).filter((key) => !typeKeys.includes(key))
  const problems: MonitorProblem[] = unknown.map((key) => ({ path: [key], message: misplaced(key) }))
  problems.push(...readTypeSettings(raw, context).problems)
  const host = await readHost(raw['host'], context)
  problems.push(...under(host.problems, ['host']))
  const listed = raw['monitors'] ?? []
  if (!Array.isArray(listed)) {
    problems.push({ path: ['monitors'], message: 'must be a list of monitors: write "- kind: …" under it' })
    return { ...nothing, problems }
  }
  const invalid = monitors.invalid.map(({ name, problems: own }) => ({ name, problems: under(own, ['monitors']) }))
  const ofEntries = new Set(monitors.invalid.flatMap((one) => one.problems))
  const others = under(
    monitors.problems.filter((problem) => !ofEntries.has(problem)),
    ['monitors'],
  )
  return {
    config: await withHost(host, usualHost, listed, monitors.config.monitors),
    invalid,
    problems: [...problems, ...invalid.flatMap((one) => one.problems), ...others],
    warnings: under(monitors.warnings, ['monitors']),
  }
}

const misplaced = (key: string): string =>
  key === 'kind' ? 'belongs to a monitor: begin it with "- " to make a list' : unknownKey(key, typeKeys)

const typeKeys: readonly string[] = ['host', 'monitors', ...Object.keys(typeSettings)]

/**
 * Reads the settings of the map form of a type, which are for all of its monitors. Paths of problems are relative to
 * the type.
 */
function readTypeSettings(
  raw: unknown,
  context: SettingsContext,
): Pick<TypeConfig, 'every' | 'confirm' | 'flapping'> & {
  readonly inherited: Inherited
  readonly problems: readonly MonitorProblem[]
} {
  if (!isMap(raw)) return { inherited: { tags: [] }, problems: [] }
  const own = Object.fromEntries(Object.keys(typeSettings).flatMap((key) => (key in raw ? [[key, raw[key]]] : [])))
  const { values, problems } = readSettings(typeSettings, own, context)
  const { tags = [], every, confirm, flapping } = values
  return { inherited: { tags }, every, confirm, flapping, problems }
}

/** The monitors and the host block of a type. `listed` are the entries of its list. */
async function withHost(
  { value, problems }: HostRead,
  usual: TypeConfig['host'],
  listed: readonly unknown[],
  monitors: readonly PlannedMonitor[],
): Promise<TypeConfig> {
  if (problems.length > 0) return { monitors, host: {} }
  const only = listed.length > 0 || value === false ? undefined : await hostMonitor(value, usual || {})
  return only ? { monitors: [only], host: false } : { monitors, host: value }
}

/**
 * The settings of the host block of a type: its own, and for those that it does not give the ones that svc.yaml gives to
 * all types.
 */
function hostOf(raw: unknown, { host }: TypeConfig, usual: TypeConfig['host']): TypeConfig['host'] {
  if (host === false) return false
  return isMap(raw) && isMap(raw['host']) ? { ...usual, ...host } : usual
}

type HostRead = { readonly value: TypeConfig['host']; readonly problems: readonly MonitorProblem[] }

/** Reads `host:` of a type, or of svc.yaml for all types. The settings are kept as written: the host block is planned later. */
export async function readHost(raw: unknown, context: SettingsContext): Promise<HostRead> {
  if (raw === undefined || raw === null) return { value: {}, problems: [] }
  if (raw === false) return { value: false, problems: [] }
  if (!isMap(raw)) {
    const message = 'must be settings of the host block, or false to leave it out'
    return { value: {}, problems: [{ path: [], message }] }
  }
  const kind = await loadKind(hostKind)
  return { value: raw, problems: readSettings(kind.settings, raw, context).problems }
}

/** Whether an entry of a list of monitors uses a profile. */
const usesProfile = (raw: unknown): raw is Raw => isMap(raw) && Object.hasOwn(raw, 'profile')

/** The monitors of a list, before their dependencies are resolved. */
type MonitorList = {
  readonly placed: readonly (PlacedRead & { readonly entry: number })[]
  /** Entries with mistakes that make no monitor. */
  readonly ofEntries: readonly EntryProblems[]
  readonly warnings: readonly MonitorProblem[]
}

/** How the monitors of a type run by themselves and are confirmed, as far as the type says so. */
function ownOf(raw: unknown, context: SettingsContext): Pick<TypeConfig, 'every' | 'confirm' | 'flapping'> {
  const { every, confirm, flapping } = readTypeSettings(raw, context)
  return {
    ...(every === undefined ? {} : { every }),
    ...(confirm === undefined ? {} : { confirm }),
    ...(flapping === undefined ? {} : { flapping }),
  }
}

type ReadContext = {
  readonly context: SettingsContext
  readonly profiles: Profiles | undefined
  readonly inherited: Inherited
}

async function readMonitors(
  raw: readonly unknown[],
  { context, profiles, inherited }: ReadContext,
): Promise<MonitorList> {
  const placed: (PlacedRead & { readonly entry: number })[] = []
  const ofEntries: EntryProblems[] = []
  const warnings: MonitorProblem[] = []
  for (const [entry, one] of raw.entries()) {
    if (!usesProfile(one)) {
      placed.push({ read: await readMonitor(one, context, kindProblem, inherited), place: (path) => path, entry })
      continue
    }
    const { readUse } = await import('./profile-use.ts')
    const use = await readUse(one, { context, profiles, inherited })
    placed.push(...use.reads.map((read) => ({ ...read, entry })))
    warnings.push(...under(use.warnings, [entry]))
    // Without a problem of its own, it uses a profile whose definition has some.
    if (use.reads.length === 0) ofEntries.push({ name: nameOfUse(one), entry, problems: under(use.problems, [entry]) })
  }
  return { placed, ofEntries, warnings }
}

/** The monitors of a list with their dependencies, and the mistakes in its entries. */
function monitorsIn({ placed, ofEntries, warnings: warned }: MonitorList, resolved: Dependencies): TypeRead {
  const warnings = [...warned]
  const reads = placed.map(({ read }) => read)
  /** Converts a path that begins with the index of a monitor to one that begins with the index of its entry. */
  const placeOf = ([index, ...rest]: Problem['path']): Problem['path'] => {
    const one = placed[Number(index)]
    return one === undefined ? rest : [one.entry, ...one.place(rest)]
  }
  const where = ({ path, other, ...more }: MonitorProblem): MonitorProblem => ({
    path: placeOf(path),
    ...(other ? { other: placeOf(other) } : {}),
    ...more,
  })
  for (const [index, { warnings: own }] of reads.entries()) warnings.push(...under(own, [index]).map(where))
  const between = Map.groupBy([...twice(reads), ...resolved.problems], ({ path }) => path[0])
  const problemsAt = reads.map(({ problems }, index) => [...under(problems, [index]), ...(between.get(index) ?? [])])
  const ofMonitors = reads.flatMap(({ name }, index): readonly EntryProblems[] => {
    const problems = problemsAt[index] ?? []
    return problems.length === 0 ? [] : [{ name, entry: placed[index]?.entry ?? 0, problems: problems.map(where) }]
  })
  const monitors = resolved.monitors.filter((monitor, index) => monitor && problemsAt[index]?.length === 0)
  const right = monitors.flatMap((monitor) => monitor ?? [])
  const invalid = withNames(
    [...ofMonitors, ...ofEntries],
    right.map(({ name }) => name),
  )
  return {
    config: { monitors: right, host: {} },
    invalid,
    problems: invalid.flatMap(({ problems }) => problems),
    warnings,
  }
}

type EntryProblems = {
  /** As written, if it has one. */
  readonly name: string | undefined
  /** Its index in the list. */
  readonly entry: number
  readonly problems: readonly MonitorProblem[]
}

const nameOfUse = ({ name, profile }: Raw): string | undefined =>
  [name, profile].find((text) => typeof text === 'string')

const maxName = 120

/** Gives every wrong entry a name that no other monitor of the type has. */
function withNames(entries: readonly EntryProblems[], right: readonly string[]): readonly InvalidMonitor[] {
  const taken = new Set([...right, ...plannedNames])
  return entries.map(({ name, entry, problems }) => {
    const place = `entry ${entry + 1}`
    const written = sanitizeAndCut(name ?? '', maxName)
    const candidates = written === '' ? [place] : [written, `${written} (${place})`]
    for (let more = 2; candidates.every((one) => taken.has(one)); more += 1)
      candidates.push(`${written} (${place}.${more})`)
    const free = candidates.find((one) => !taken.has(one)) ?? place
    taken.add(free)
    return { name: free, problems }
  })
}

/** Reports duplicate names: a MonitorName identifies one monitor in responses, selections and `dependsOn`. */
function twice(reads: readonly MonitorRead[]): readonly MonitorProblem[] {
  const firsts = new Map<string, number>()
  return reads.flatMap(({ name, isUnknownKind = false }, index) => {
    if (name === undefined) return []
    const first = firsts.get(name)
    if (first === undefined) firsts.set(name, index)
    if (isUnknownKind || first === undefined) return []
    const message = `has the same name as another monitor, \`${name}\`: give it another \`name:\``
    return [{ path: [index], message, other: [first] }]
  })
}

const under = (problems: readonly MonitorProblem[], path: Problem['path']): readonly MonitorProblem[] =>
  problems.map((problem) => underPath(path, problem))
