import { isMap, type Problem, readSettings, type SettingsContext, type SettingsSpec } from '../base/settings/index.ts'
import { unknownName } from '../base/suggest.ts'
import type { Parameter, ParameterType, Profile } from '../checks/profiles/index.ts'
import { kindProblem, readMonitor } from './monitors.ts'
import { conditionsIn, fill, namesIn, namesWithinText, writtenAt } from './placeholders.ts'

/** The setting that a monitor of a profile has besides those of every monitor. */
export const whenSetting = { when: { type: 'texts', doc: '' } } as const satisfies SettingsSpec

/** The problems of a definition that do not depend on parameter values. Their paths are relative to it. */
export async function monitorProblems(
  raw: unknown,
  index: number,
  profile: Profile,
  context: SettingsContext,
): Promise<readonly Problem[]> {
  if (!isMap(raw)) return [{ path: [], message: 'must be settings that begin with `kind:`' }]
  const { when, dependsOn, ...settings } = raw
  const problems: Problem[] = []
  const parameters = Object.keys(profile.parameters)
  const siblings = profile.monitors.map((other) => (isMap(other) ? other['name'] : undefined))
  const texts = readSettings(
    { ...whenSetting, dependsOn: { type: 'texts', doc: '' } },
    { ...(when === undefined ? {} : { when }), ...(dependsOn === undefined ? {} : { dependsOn }) },
    context,
  )
  problems.push(...texts.problems)
  const { name, kind } = settings
  if (typeof name !== 'string' || name === '' || namesIn(name).length > 0) {
    problems.push({ path: ['name'], message: 'is missing: each monitor of a profile needs its own `name:`' })
  } else if (siblings.indexOf(name) !== index) {
    problems.push({ path: ['name'], message: `is already used by another monitor: \`${name}\`` })
  }
  for (const one of texts.values.when ?? []) {
    if (!parameters.includes(one)) problems.push({ path: ['when'], message: unknownName(one, parameters, 'parameter') })
  }
  for (const one of texts.values.dependsOn ?? []) {
    const others = siblings.filter((other) => typeof other === 'string' && other !== name) as readonly string[]
    if (!others.includes(one)) problems.push({ path: ['dependsOn'], message: unknownName(one, others, 'monitor') })
  }
  for (const [key, value] of Object.entries(settings)) {
    const lost =
      namesIn(value).find((one) => !parameters.includes(one)) ??
      conditionsIn(value).find((one) => !parameters.includes(one))
    if (lost !== undefined) problems.push({ path: [key], message: unknownName(lost, parameters, 'parameter') })
    const unfit = namesWithinText(value).find((one) => parameters.includes(one) && !isText(profile.parameters[one]))
    if (unfit !== undefined) problems.push({ path: [key], message: unfitted(unfit, profile.parameters[unfit]) })
  }
  if (namesIn(kind).length > 0) problems.push({ path: ['kind'], message: 'must be text: the name of a monitor kind' })
  if (problems.length > 0) return problems
  const sample = new Map(Object.entries(profile.parameters).map(([key, value]) => [key, sampleOf(value)]))
  const read = await readMonitor(fill(settings, sample), context, kindProblem)
  return read.problems.flatMap(({ path, message }) => {
    const { path: written, value } = writtenAt(settings, path, sample)
    // Values with parameters are checked when these are given.
    return namesIn(value).length > 0 ? [] : [{ path: written, message }]
  })
}

const textTypes: readonly ParameterType[] = ['text', 'url', 'number', 'integer', 'flag', 'duration', 'bytes', 'choice']
const isText = (parameter: Parameter | undefined): boolean =>
  parameter !== undefined &&
  textTypes.includes(parameter.type) &&
  (parameter.required === true || parameter.default !== undefined)

function unfitted(name: string, parameter: Parameter | undefined): string {
  if (parameter?.type === 'secret')
    return `inserts the secret \`${name}\` into a text: use a secret only as the whole value of a setting`
  return parameter && textTypes.includes(parameter.type)
    ? `inserts \`${name}\` into a text, but it is optional: make it required, or give it a default`
    : `inserts \`${name}\` into a text, but it is not text-like: write it alone`
}

const samples: Record<ParameterType, unknown> = {
  text: 'x',
  url: 'http://x.example/',
  number: 1,
  integer: 1,
  flag: true,
  duration: '1s',
  bytes: '1KiB',
  secret: { env: 'X' },
  choice: 'x',
  texts: ['x'],
  threshold: 'off',
}
const sampleOf = ({ type, default: usual, min, values }: Parameter): unknown =>
  usual ?? values?.[0] ?? min ?? samples[type]
