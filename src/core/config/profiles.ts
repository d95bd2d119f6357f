import {
  isMap,
  type Problem,
  type Raw,
  readSettings,
  type SettingsContext,
  type SettingsSpec,
  unknownKey,
} from '../base/settings/index.ts'
import { unknownName } from '../base/suggest.ts'
import {
  isProfileName,
  loadProfile,
  type Parameter,
  type ParameterType,
  type Profile,
  type ProfileMonitor,
  parameterSetting,
  parameterTypes,
  profileNames,
} from '../checks/profiles/index.ts'
import { commonSettings } from './common.ts'
import { asWritten } from './long-form.ts'
import { longMonitor } from './monitors.ts'
import { monitorProblems, whenSetting } from './profile-definition.ts'

/** The settings of an entry that uses a profile, besides the profile's own parameters. */
export const useSettings = {
  profile: { type: 'text', required: true, doc: 'Name of a profile, built-in or from `profiles:`' },
  name: { ...commonSettings.name, doc: 'Prefix of the names of its monitors; default: the name of the profile' },
  dependsOn: {
    type: 'texts',
    doc: 'Monitors of the same type that must not fail, or none of these monitors is run',
  },
  tags: { ...commonSettings.tags, doc: 'Tags of its monitors, in addition to those of the type and the profile' },
  without: { type: 'texts', doc: 'Monitors of the profile to exclude' },
} as const satisfies SettingsSpec
/** The settings of a profile that apply to all of its monitors. */
export const profileSettings = {
  tags: { ...commonSettings.tags, doc: 'Tags of every monitor of this profile' },
} as const satisfies SettingsSpec
/** Read separately: changed settings of the profile's monitors, by name. */
export const changeKey = 'change'
const taken = [...Object.keys(useSettings), changeKey, 'kind']

/** The fields of a parameter's definition, except `default`, which has the parameter's own type. */
export const parameterFields = {
  type: { type: 'choice', values: parameterTypes, required: true, doc: 'Type of its value' },
  doc: { type: 'text', required: true, doc: 'Description for users of the profile' },
  required: { type: 'flag', doc: 'Whether a value is required' },
  needs: { type: 'texts', doc: 'Other parameters that this one requires' },
  values: { type: 'texts', doc: 'Values of a choice' },
  min: { type: 'number', doc: 'Minimum of a number' },
  max: { type: 'number', doc: 'Maximum of a number' },
  unit: {
    type: 'choice',
    values: ['duration', 'percent', 'bytes', 'count', 'ratio', 'days'],
    doc: 'Unit of a threshold; default: ratio, a bare number',
  },
} as const satisfies SettingsSpec

/** The form of names. They appear in `${…}` and in the names of monitors. */
export const nameOfParameter = /^[a-z][A-Za-z0-9]{0,39}$/
export const nameOfProfile = /^[A-Za-z0-9][\w.-]{0,39}$/

/** Profiles by name. The file's own override the built-in ones. */
export type Profiles = {
  readonly names: readonly string[]
  /** Undefined for an unknown name. `report` for an invalid definition, whose problems are reported separately. */
  readonly find: (name: string) => Promise<Profile | 'wrong' | undefined>
}
export type ProfilesRead = { readonly profiles: Profiles; readonly problems: readonly Problem[] }

const over = (own: ReadonlyMap<string, Profile | 'wrong'>): Profiles => ({
  names: [...new Set([...own.keys(), ...profileNames])].sort(),
  find: async (name) => own.get(name) ?? (isProfileName(name) ? await loadProfile(name) : undefined),
})
/** The built-in profiles only. */
export const shippedProfiles = over(new Map())

/** Reads the `profiles:` section. Paths of problems are relative to it. */
export async function readProfiles(raw: unknown, context: SettingsContext): Promise<ProfilesRead> {
  const own = new Map<string, Profile | 'wrong'>()
  const problems: Problem[] = []
  if (raw !== null && raw !== undefined && !isMap(raw)) {
    problems.push({ path: [], message: 'must map names to profiles: write `name:` and its monitors under it' })
  } else {
    for (const [name, definition] of Object.entries(raw ?? {})) {
      const read = await readProfile(definition, context)
      const misnamed = nameOfProfile.test(name)
        ? []
        : [{ path: [], message: 'is not a valid profile name: use up to 40 letters, digits, "-", "_" and "."' }]
      const more = [...misnamed, ...read.problems].map((problem) => ({ ...problem, path: [name, ...problem.path] }))
      problems.push(...more)
      own.set(name, more.length > 0 || !read.profile ? 'wrong' : read.profile)
    }
  }
  return { profiles: over(own), problems }
}

type ProfileRead = { readonly profile: Profile | undefined; readonly problems: readonly Problem[] }

async function readProfile(raw: unknown, context: SettingsContext): Promise<ProfileRead> {
  if (!isMap(raw)) {
    return { profile: undefined, problems: [{ path: [], message: 'must be a profile: write `monitors:` under it' }] }
  }
  const { title, doc, tags, parameters: givenParameters, monitors, ...others } = raw
  const keys = ['title', 'doc', 'tags', 'parameters', 'monitors']
  const problems: Problem[] = Object.keys(others).map((key) => ({ path: [key], message: unknownKey(key, keys) }))
  for (const [key, text] of Object.entries({ title, doc })) {
    if (text !== undefined && typeof text !== 'string') problems.push({ path: [key], message: 'must be text' })
  }
  const ofAll = readSettings(profileSettings, tags === undefined ? {} : { tags }, context)
  problems.push(...ofAll.problems)
  const { parameters, problems: parameterProblems } = readParameters(givenParameters, context)
  problems.push(...parameterProblems)
  if (!Array.isArray(monitors) || monitors.length === 0) {
    problems.push({ path: ['monitors'], message: 'must be a list of monitors: write "- kind: …" under it' })
    return { profile: undefined, problems }
  }
  const forms = await Promise.all(
    (monitors as readonly unknown[]).map(async (one) => (isMap(one) ? await longMonitor(one, whenSetting) : undefined)),
  )
  const entries = (monitors as readonly unknown[]).map((one, index) => forms[index]?.entry ?? one)
  const profile: Profile = {
    title: typeof title === 'string' ? title : '',
    doc: typeof doc === 'string' ? doc : '',
    ...(ofAll.values.tags ? { tags: ofAll.values.tags } : {}),
    parameters,
    monitors: (entries as readonly ProfileMonitor[]).map(withLists),
  }
  for (const [index, monitor] of entries.entries()) {
    const form = forms[index]
    const ofEntry = form && !form.entry ? [] : await monitorProblems(monitor, index, profile, context)
    const more = [...(form?.problems ?? []), ...(form ? asWritten(ofEntry, form.written) : ofEntry)]
    problems.push(...more.map(({ path, message }) => ({ path: ['monitors', index, ...path], message })))
  }
  return { profile, problems }
}

/** A single text counts as a list of one. Values that are not maps have been reported as problems. */
function withLists(monitor: ProfileMonitor): ProfileMonitor {
  if (!isMap(monitor)) return monitor
  const list = (key: 'when' | 'dependsOn') => (typeof monitor[key] === 'string' ? { [key]: [monitor[key]] } : {})
  return { ...monitor, ...list('when'), ...list('dependsOn') } as ProfileMonitor
}

function readParameters(
  raw: unknown,
  context: SettingsContext,
): { readonly parameters: Readonly<Record<string, Parameter>>; readonly problems: readonly Problem[] } {
  if (raw === undefined || raw === null) return { parameters: {}, problems: [] }
  if (!isMap(raw)) {
    return { parameters: {}, problems: [{ path: ['parameters'], message: 'must map names to parameters' }] }
  }
  const parameters: Record<string, Parameter> = {}
  const problems: Problem[] = []
  for (const [name, definition] of Object.entries(raw)) {
    const report = (message: string, ...path: readonly (string | number)[]): void => {
      problems.push({ path: ['parameters', name, ...path], message })
    }
    if (!nameOfParameter.test(name))
      report('is not a valid parameter name: use letters and digits, beginning with a lower-case letter')
    else if (taken.includes(name)) report('is reserved for entries that use a profile: choose another name')
    const { default: usual, ...rest } = isMap(definition) ? definition : ({} as Raw)
    const read = readSettings(parameterFields, isMap(definition) ? rest : definition, context)
    for (const { path, message } of read.problems) report(message, ...path)
    const type = read.values.type as ParameterType | undefined
    // Kept even if invalid, so that uses of it are not reported as unknown.
    if (nameOfParameter.test(name))
      parameters[name] = { ...read.values, doc: read.values.doc ?? '', type: type ?? 'text', default: usual }
    if (read.problems.length > 0 || usual === undefined) continue
    if (type === 'secret') report('is not allowed: users of the profile provide the secret', 'default')
    if (read.values.required) report('has no effect: the parameter is required', 'default')
    const { required: _, ...optional } = parameters[name] ?? { type: 'text', doc: '' }
    const checked = readSettings({ default: parameterSetting(optional) }, { default: usual }, context)
    for (const { path, message } of checked.problems) report(message, ...path)
  }
  for (const [name, { needs = [] }] of Object.entries(parameters)) {
    const lost = needs.find((one) => one === name || !Object.hasOwn(parameters, one))
    if (lost === undefined) continue
    const others = Object.keys(parameters).filter((one) => one !== name)
    problems.push({ path: ['parameters', name, 'needs'], message: unknownName(lost, others, 'other parameter') })
  }
  return { parameters, problems }
}
