import {
  isMap,
  type Problem,
  type Raw,
  readSettings,
  type SettingsContext,
  type SettingsSpec,
  valueIn,
} from '../base/settings/index.ts'
import { unknownName } from '../base/suggest.ts'
import { monitorName } from '../checks/plan/index.ts'
import { type Profile, type ProfileMonitor, parameterSetting } from '../checks/profiles/index.ts'
import { type Inherited, unitedTags } from './common.ts'
import { kindProblem, type MonitorRead, readMonitor } from './monitors.ts'
import { fill, isPresent, nameAlone, namesIn, writtenAt } from './placeholders.ts'
import { changeKey, type Profiles, shippedProfiles, useSettings } from './profiles.ts'

/** A monitor of a list, and how its paths map to the entry. */
export type PlacedRead = {
  readonly read: MonitorRead
  /** Maps a path within the monitor to one within the entry. */
  readonly place: (path: Problem['path']) => Problem['path']
}
type UseRead = {
  readonly reads: readonly PlacedRead[]
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

type UseContext = {
  readonly context: SettingsContext
  /** Absent: the built-in ones. */
  readonly profiles?: Profiles | undefined
  readonly inherited: Inherited
}

/** Expands an entry that uses a profile into monitors. Paths of problems are relative to the entry. */
export async function readUse(
  raw: Raw,
  { context, profiles = shippedProfiles, inherited }: UseContext,
): Promise<UseRead> {
  const refused = (path: Problem['path'], message: string): UseRead => ({
    reads: [],
    problems: [{ path, message }],
    warnings: [],
  })
  const { profile: name, [changeKey]: change, ...rest } = raw
  if (typeof name !== 'string') return refused(['profile'], 'must be text: the name of a profile')
  const profile = await profiles.find(name)
  if (profile === undefined) return refused(['profile'], unknownName(name, profiles.names, 'profile'))
  // The definition has reported its own problems.
  if (profile === 'wrong') return { reads: [], problems: [], warnings: [] }
  if (Object.hasOwn(raw, 'kind'))
    return refused(['kind'], 'cannot be combined with `profile:`: write one entry for each')
  const spec = Object.entries(profile.parameters).map(([key, parameter]) => [key, parameterSetting(parameter)])
  const table: SettingsSpec = { ...(Object.fromEntries(spec) as SettingsSpec), ...useSettings }
  const read = readSettings(table, { ...rest, profile: name }, context)
  const use = readSettings(useSettings, pick(rest, name), context).values
  const changes = readChanges(change, profile)
  const left = leftOut(use.without ?? [], profile, changes.changes)
  const problems = [...read.problems, ...changes.problems, ...left]
  if (problems.length > 0) return { reads: [], problems, warnings: read.warnings }
  const values = new Map(
    Object.entries(profile.parameters).map(([key, { default: usual }]) => [key, valueIn(rest, key, table) ?? usual]),
  )
  const lacking = lackingNeeds(profile, values, rest)
  if (lacking.length > 0) return { reads: [], problems: lacking, warnings: read.warnings }
  const monitors = profile.monitors.filter((one) => !use.without?.includes(one.name) && isDue(one, values))
  if (monitors.length === 0) return refused([], 'excludes every monitor of the profile: nothing would be checked')
  const absent = Object.keys(changes.changes).find((one) => monitors.every((monitor) => monitor.name !== one))
  if (absent !== undefined) return refused([changeKey, absent], absence(absent, profile))
  const prefix = use.name ?? name
  const names = new Map(monitors.map((one) => [one.name, monitorName(one.kind, `${prefix} ${one.name}`)]))
  const tags = unitedTags(inherited.tags, profile.tags, use.tags) ?? []
  const reads: PlacedRead[] = []
  for (const one of monitors) {
    const changed = (Object.hasOwn(changes.changes, one.name) ? changes.changes[one.name] : undefined) ?? {}
    const { when: _, dependsOn = [], ...settings } = one
    const inner = dependsOn.flatMap((other) => names.get(other) ?? [])
    const filled = fill(settings, values) as Raw
    const monitor = {
      ...filled,
      // The first monitors of the profile depend on what the entry depends on; the others depend on it through them.
      dependsOn: inner.length > 0 ? inner : (use.dependsOn ?? []),
      ...changed,
      name: `${prefix} ${one.name}`,
    }
    const about = `(in its monitor \`${one.name}\`)`
    const place = placer(one, changed, values, rest)
    const monitorRead = await readMonitor(monitor, context, kindProblem, { tags })
    reads.push({ read: { ...monitorRead, ...worded(monitorRead, about, place) }, place })
  }
  return { reads, problems: [], warnings: read.warnings }
}

const pick = (raw: Raw, profile: string): Raw => ({
  ...Object.fromEntries(Object.keys(useSettings).flatMap((key) => (Object.hasOwn(raw, key) ? [[key, raw[key]]] : []))),
  profile,
})

/** Whether a monitor is included: not when a parameter that it needs is missing or `false`. */
const isDue = (monitor: ProfileMonitor, values: ReadonlyMap<string, unknown>): boolean =>
  (monitor.when ?? []).every((name) => isPresent(name, values))

/** Reports parameters that are given without another one that they need. */
function lackingNeeds(profile: Profile, values: ReadonlyMap<string, unknown>, rest: Raw): readonly Problem[] {
  return Object.entries(profile.parameters).flatMap(([key, { needs = [] }]) => {
    const lost =
      Object.hasOwn(rest, key) && isPresent(key, values) ? needs.filter((one) => !isPresent(one, values)) : []
    if (lost.length === 0) return []
    const labels = lost.map((one) => (profile.parameters[one]?.type === 'flag' ? `\`${one}: true\`` : `\`${one}:\``))
    return [{ path: [key], message: `requires ${labels.join(' and ')}` }]
  })
}

function absence(name: string, profile: Profile): string {
  const needed = profile.monitors.find((one) => one.name === name)?.when ?? []
  return needed.length > 0
    ? `changes a monitor that is not included: set ${needed.map((one) => `\`${one}:\``).join(' and ')}`
    : 'changes a monitor that `without:` excludes: remove one of the two'
}

type Changes = { readonly changes: Readonly<Record<string, Raw>>; readonly problems: readonly Problem[] }

function readChanges(raw: unknown, profile: Profile): Changes {
  if (raw === undefined) return { changes: {}, problems: [] }
  if (!isMap(raw)) {
    const message = "must map the profile's monitors to settings: write `online: {warn: 2s}` under it"
    return { changes: {}, problems: [{ path: [changeKey], message }] }
  }
  const names = profile.monitors.map(({ name }) => name)
  const problems: Problem[] = []
  const changes: Record<string, Raw> = {}
  for (const [name, settings] of Object.entries(raw)) {
    const path = [changeKey, name]
    if (!names.includes(name)) problems.push({ path, message: unknownName(name, names, 'monitor of the profile') })
    else if (!isMap(settings)) problems.push({ path, message: 'must be settings (`name: value`)' })
    else {
      const fixed = ['kind', 'name'].find((key) => Object.hasOwn(settings, key))
      if (fixed !== undefined) {
        problems.push({
          path: [...path, fixed],
          message: 'cannot be changed: exclude the monitor, and add your own',
        })
      }
      changes[name] = settings
    }
  }
  return { changes, problems }
}

function leftOut(
  without: readonly string[],
  profile: Profile,
  changes: Readonly<Record<string, Raw>>,
): readonly Problem[] {
  const names = profile.monitors.map(({ name }) => name)
  return without.flatMap((name) => {
    if (!names.includes(name))
      return [{ path: ['without'], message: unknownName(name, names, 'monitor of the profile') }]
    return Object.hasOwn(changes, name)
      ? [{ path: [changeKey, name], message: absence(name, { ...profile, monitors: [] }) }]
      : []
  })
}

/** Maps a monitor's setting to the place in the entry that it comes from. */
function placer(
  definition: ProfileMonitor,
  changed: Raw,
  values: ReadonlyMap<string, unknown>,
  uses: Raw,
): (path: Problem['path']) => Problem['path'] {
  return (path) => {
    const [top] = path
    if (typeof top === 'string' && Object.hasOwn(changed, top)) return [changeKey, definition.name, ...path]
    if (top === 'dependsOn' && Object.hasOwn(uses, 'dependsOn')) return path
    for (const [index] of path.entries()) {
      const { value } = writtenAt(definition, path.slice(0, index + 1), values)
      const alone = nameAlone(value)
      if (alone !== undefined) return Object.hasOwn(uses, alone) ? [alone, ...path.slice(index + 1)] : []
    }
    const { value } = writtenAt(definition, path, values)
    const parameter = typeof value === 'string' ? namesIn(value).find((name) => Object.hasOwn(uses, name)) : undefined
    return parameter !== undefined && values.has(parameter) ? [parameter] : []
  }
}

/**
 * Adds the monitor and the setting to each problem. A warning that the parameter has already caused is not repeated.
 */
function worded(
  read: MonitorRead,
  about: string,
  place: (path: Problem['path']) => Problem['path'],
): Pick<MonitorRead, 'problems' | 'warnings'> {
  const reworded = (problem: Problem): Problem => {
    const to = place(problem.path)
    const lost = to.length === 0 && problem.path.length > 0 ? `${problem.path.join('.')} ` : ''
    return { ...problem, message: to[0] === changeKey ? problem.message : `${lost}${problem.message} ${about}` }
  }
  return {
    problems: read.problems.map(reworded),
    warnings: read.warnings.filter(({ path }) => place(path)[0] === changeKey),
  }
}
