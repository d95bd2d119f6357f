import {
  type Setting,
  type SettingsSpec,
  type Threshold,
  type ThresholdUnit,
  writeBytes,
  writeDuration,
  writeEvery,
  writeFigure,
} from '../../base/settings/index.ts'
import { type ExecutionMode, ServerType } from '../../protocol/index.ts'
import {
  type AnyKind,
  type DeclaredResult,
  includes,
  type PlannedMonitor,
  plannedChecks,
  writeMonitorOfType,
} from '../engine/index.ts'
import { loadProfile, type Parameter, profileNames } from '../profiles/index.ts'
import { configurableKinds, deeper, hostKind, loadKind, plans } from './assemble.ts'

/** One row of `svc monitors list`. */
export type PlanRow = {
  readonly MonitorName: string
  readonly Kind: string
  readonly Depth: ExecutionMode
  readonly Checks: readonly { readonly Name: string; readonly Depth: ExecutionMode; readonly Doc: string }[]
  readonly Host: boolean
  /** The monitors on which it depends, those of other types with their type. Absent: none. */
  readonly DependsOn?: readonly string[] | undefined
  /** Absent: none. */
  readonly Tags?: readonly string[] | undefined
}

/**
 * The monitors on which one of `type` depends, by the names that `dependsOn` accepts. A group is one text:
 * `any of dns a, dns b`, or `2 of dns a, dns b, dns c`.
 */
export const dependenciesOf = (
  {
    dependsOn,
    dependsOnElsewhere = [],
    dependsOnGroups = [],
  }: Pick<PlannedMonitor, 'dependsOn' | 'dependsOnElsewhere' | 'dependsOnGroups'>,
  type?: ServerType,
): readonly string[] => [
  ...dependsOn,
  ...dependsOnElsewhere.map(writeMonitorOfType),
  ...dependsOnGroups.map(
    ({ atLeast, of }) =>
      `${atLeast === 1 ? 'any' : atLeast} of ${of.map((one) => (one.type === type ? one.name : writeMonitorOfType(one))).join(', ')}`,
  ),
]

/** The monitors and checks that a run of a plan in a mode would include, without running it. */
export function describePlan(planned: readonly PlannedMonitor[], mode: ExecutionMode): readonly PlanRow[] {
  return planned
    .filter((monitor) => includes(mode, monitor.depth))
    .map((monitor) => ({
      MonitorName: monitor.name,
      Kind: monitor.kind.name,
      Depth: monitor.depth,
      Checks: plannedChecks(monitor, mode).map((check) => ({
        Name: check.name,
        Depth: deeper(check.depthWith?.(monitor.settings as never) ?? check.depth, monitor.depth),
        Doc: check.doc,
      })),
      Host: monitor.host,
      DependsOn: dependenciesOf(monitor).length === 0 ? undefined : dependenciesOf(monitor, monitor.type),
      Tags: monitor.tags,
    }))
}

export type SettingRow = {
  /** `header.name` is in a group, `headers[].name` is in each group of a list. */
  readonly name: string
  readonly type: string
  /** The default as svc.yaml writes it, or undefined. */
  readonly default: string | undefined
  readonly required: boolean
  readonly doc: string
}
export type KindRow = Pick<AnyKind, 'name' | 'title' | 'cost' | 'exposure' | 'optionalParts'> & {
  readonly settings: readonly SettingRow[]
  readonly checks: readonly DeclaredResult[]
}

/** Every kind that svc.yaml may configure, including the host block. */
export async function describeKinds(): Promise<readonly KindRow[]> {
  const kinds = [await loadKind(hostKind), ...(await configurableKinds())]
  return kinds.map(describeKind).sort((a, b) => (a.name < b.name ? -1 : 1))
}

const describeKind = (kind: AnyKind): KindRow => ({
  name: kind.name,
  title: kind.title,
  cost: kind.cost,
  exposure: kind.exposure,
  optionalParts: kind.optionalParts,
  settings: describeSettings(kind.settings),
  checks: kind.checks,
})

/** The rows of a settings table, with groups flattened. */
export function describeSettings(spec: SettingsSpec, prefix = ''): readonly SettingRow[] {
  return Object.entries(spec).flatMap(([name, setting]) => {
    const row: SettingRow = {
      name: `${prefix}${name}`,
      type: typeName(setting),
      default: writeDefault(setting),
      required: setting.required === true,
      doc: setting.doc,
    }
    if (setting.type === 'group') return [row, ...describeSettings(setting.fields, `${row.name}.`)]
    if (setting.type === 'groups') return [row, ...describeSettings(setting.fields, `${row.name}[].`)]
    return [row]
  })
}

const typeNames: Record<Exclude<Setting['type'], 'choice' | 'threshold'>, string> = {
  text: 'text',
  url: 'URL',
  number: 'number',
  integer: 'whole number',
  countOrOff: 'whole number or off',
  flag: 'true or false',
  duration: 'duration',
  bytes: 'bytes',
  secret: 'secret',
  texts: 'list of texts',
  map: 'map of texts',
  template: 'any value',
  every: 'duration, map of durations, or off',
  group: 'settings',
  groups: 'list of settings',
}
const unitNames: Record<ThresholdUnit, string> = {
  duration: 'durations',
  percent: 'percent',
  bytes: 'bytes',
  count: 'counts',
  ratio: 'ratios',
  days: 'days',
}

function typeName(setting: Setting): string {
  if (setting.type === 'map' && setting.secrets) return 'map of secrets'
  if ('negatable' in setting && setting.negatable) return `${typeNames[setting.type]} or {not: text}`
  if (setting.type === 'choice') return setting.values.join(' or ')
  if (setting.type === 'threshold') return `warn and limit in ${unitNames[setting.unit]}`
  if (setting.type === 'countOrOff') return `${typeNames[setting.type]}, ${setting.min} to ${setting.max}`
  if (!hasRange(setting)) return typeNames[setting.type]
  const range = writeRange(setting)
  return `${typeNames[setting.type]}${range === undefined ? '' : `, ${range}`}`
}

type Ranged = Extract<Setting, { type: 'number' | 'integer' | 'bytes' | 'duration' }>
const hasRange = (setting: Setting): setting is Ranged =>
  setting.type === 'number' || setting.type === 'integer' || setting.type === 'bytes' || setting.type === 'duration'

/** The range of a figure, in the syntax of svc.yaml: `1KiB to 64MiB`. Undefined if it has none. */
export function writeRange({ type, min, max }: Ranged) {
  const write = type === 'bytes' ? writeBytes : type === 'duration' ? writeDuration : String
  if (min === undefined) return max === undefined ? undefined : `up to ${write(max)}`
  return `${write(min)} ${max === undefined ? 'or more' : `to ${write(max)}`}`
}

/** The default of a setting, in the syntax of svc.yaml. */
export function writeDefault(setting: Setting): string | undefined {
  if (!('default' in setting) || setting.default === undefined) return undefined
  if (setting.type === 'duration') return writeDuration(setting.default)
  if (setting.type === 'bytes') return writeBytes(setting.default)
  if (setting.type === 'threshold') return writeThreshold(setting.default, setting.unit)
  if (setting.type === 'every') return writeEvery(setting.default)
  if (setting.type === 'texts') return `[${setting.default.map(yamlItem).join(', ')}]`
  return String(setting.default)
}

/** Quotes items that YAML would interpret, e.g. a star is an alias. Words stay unquoted. */
const yamlItem = (text: string): string => (/^[\w<./][^,:#[\]{}]*$/.test(text) ? text : JSON.stringify(text))

const writeThreshold = (threshold: Threshold, unit: ThresholdUnit): string => {
  const halves = (['warn', 'limit'] as const).flatMap((name) => {
    const value = threshold[name]
    return value === undefined ? [] : [`${name}: ${writeFigure(value, unit)}`]
  })
  return `{${halves.join(', ')}}`
}

/** One row of `svc monitors profiles`. */
export type ProfileRow = {
  readonly name: string
  readonly title: string
  readonly doc: string
  /** The server types that it is meant for. */
  readonly types: readonly ServerType[]
  readonly parameters: readonly {
    readonly name: string
    readonly type: string
    /** The default as svc.yaml writes it, or undefined. */
    readonly default: string | undefined
    readonly required: boolean
    readonly doc: string
  }[]
  readonly monitors: readonly { readonly name: string; readonly kind: string; readonly depth: string }[]
}

/** All profiles that ship with svc. */
export const describeProfiles = (): Promise<readonly ProfileRow[]> =>
  Promise.all(
    profileNames.map(async (name) => {
      const { title, doc, parameters, monitors } = await loadProfile(name)
      return {
        name,
        title,
        doc,
        types: ServerType.values.filter((type) => plans[type].profile === name),
        parameters: Object.entries(parameters).map(([key, parameter]) => ({
          name: key,
          type: parameter.type === 'threshold' ? `threshold (${parameter.unit ?? 'ratio'})` : parameter.type,
          default: parameter.default === undefined ? undefined : written(parameter.default),
          required: parameter.required === true,
          doc: parameter.doc,
        })),
        monitors: monitors.map((monitor) => ({
          name: monitor.name,
          kind: monitor.kind,
          depth: typeof monitor['depth'] === 'string' ? monitor['depth'] : 'Basic',
        })),
      }
    }),
  )

/** Formats a threshold as svc.yaml would: `{warn: 5, limit: 10}`. */
function written(usual: Parameter['default']): string {
  if (Array.isArray(usual)) return `[${usual.map(String).join(', ')}]`
  if (typeof usual !== 'object' || usual === null) return String(usual)
  return `{${Object.entries(usual)
    .map(([key, value]) => `${key}: ${String(value)}`)
    .join(', ')}}`
}
