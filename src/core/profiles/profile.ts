import type { Setting, ThresholdUnit } from '../settings/index.ts'

/** What an operator gives a profile. Values are written as svc.yaml writes them; they go where `${name}` stands. */
export type Parameter = {
  readonly type: ParameterType
  readonly doc: string
  /** Without `required` and `default`, settings that are only `${name}` are left out where it is not given. */
  readonly required?: boolean | undefined
  /** Other parameters that must be given with it; a flag among them must be on. */
  readonly needs?: readonly string[] | undefined
  readonly default?: unknown
  /** Of a choice. */
  readonly values?: readonly string[] | undefined
  /** Of a number. */
  readonly min?: number | undefined
  readonly max?: number | undefined
  /** Of a threshold. */
  readonly unit?: ThresholdUnit | undefined
}

export const parameterTypes = [
  'text',
  'url',
  'number',
  'integer',
  'flag',
  'duration',
  'bytes',
  'secret',
  'choice',
  'texts',
  'threshold',
] as const satisfies readonly Setting['type'][]
export type ParameterType = (typeof parameterTypes)[number]

/**
 * One monitor: settings of its kind and of every monitor, as svc.yaml writes them, with `${parameter}` in
 * the values. An item of a list among them may have a `when` too. `$${name}` is the text `${name}`: what a
 * step of http-steps takes for a value of its own.
 */
export type ProfileMonitor = {
  readonly kind: string
  /** Unique in the profile. */
  readonly name: string
  /** Parameters without which it is left out. */
  readonly when?: readonly string[]
  /** Names of other monitors of the profile. */
  readonly dependsOn?: readonly string[]
  readonly [setting: string]: unknown
}

/** What a server type usually needs: data, so that svc.yaml can add, change and replace it. */
export type Profile = {
  readonly title: string
  /** What it stands for, how sure that is, and what it never does. */
  readonly doc: string
  readonly parameters: Readonly<Record<string, Parameter>>
  readonly monitors: readonly ProfileMonitor[]
}

/** Where what is given for a parameter stands in a definition: `${name}`, as svc.yaml writes it. */
export const placeholder = (name: string): string => `\${${name}}`

/** Where a value of http-steps itself stands in a definition: a captured one, or one of `values`. */
export const ofSteps = (name: string): string => `$${placeholder(name)}`

/** A parameter as the table of settings that checks what is given for it. Its default is filled in later, as written. */
export function parameterSetting(parameter: Parameter): Setting {
  const { type, doc, required, values = [], min, max, unit = 'ratio' } = parameter
  const base = { doc, ...(required === true ? { required: true as const } : {}) }
  switch (type) {
    case 'url':
      return { ...base, type, protocols: ['http', 'https'] }
    case 'number':
    case 'integer':
      return { ...base, type, ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) }
    case 'choice':
      return { ...base, type, values }
    case 'threshold':
      return { ...base, type, unit }
    default:
      return { ...base, type }
  }
}
