import type { Setting, ThresholdUnit } from '../../base/settings/index.ts'

/** A parameter of a profile. Its value is written as in svc.yaml and replaces `${name}`. */
export type Parameter = {
  readonly type: ParameterType
  readonly doc: string
  /** Without `required` and `default`, settings that are only `${name}` are left out when it is not given. */
  readonly required?: boolean | undefined
  /** Other parameters that must be given with it. A flag among them must be on. */
  readonly needs?: readonly string[] | undefined
  readonly default?: unknown
  /** For a choice. */
  readonly values?: readonly string[] | undefined
  /** For a number. */
  readonly min?: number | undefined
  readonly max?: number | undefined
  /** For a threshold. */
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
 * One monitor: the settings of its kind and those of every monitor, as in svc.yaml, with `${parameter}` in the values.
 * A list item may have a `when` too. `$${name}` is the literal text `${name}`, which a step of http-steps replaces with
 * its own value.
 */
export type ProfileMonitor = {
  readonly kind: string
  /** Unique in the profile. */
  readonly name: string
  /** The monitor is left out when one of these parameters is not given. */
  readonly when?: readonly string[]
  /** Names of other monitors of the profile. */
  readonly dependsOn?: readonly string[]
  readonly [setting: string]: unknown
}

/** The usual configuration of a server type. It is data, so that svc.yaml can add, change and replace profiles. */
export type Profile = {
  readonly title: string
  /** The system that the profile represents, how certain that is, and what the profile never does. */
  readonly doc: string
  /** Tags of all its monitors. */
  readonly tags?: readonly string[] | undefined
  readonly parameters: Readonly<Record<string, Parameter>>
  readonly monitors: readonly ProfileMonitor[]
}

/** The placeholder of a parameter in a definition: `${name}`, as in svc.yaml. */
export const placeholder = (name: string): string => `\${${name}}`

/** The setting that validates the value of a parameter. The default is filled in later, as written. */
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
      // The setting that gets the value knows which side of it is a fault.
      return { ...base, type, unit, isMinimum: 'unknown' }
    default:
      return { ...base, type }
  }
}
