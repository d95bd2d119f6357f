import type { SettingsSpec } from '../base/settings/index.ts'
import { ExecutionMode } from '../protocol/index.ts'
import { serveSettings } from '../protocol/service/serve-settings.ts'

/** The settings of every monitor in svc.yaml, whatever its kind. */
export const commonSettings = {
  kind: { type: 'text', required: true, doc: 'Monitor kind, such as http' },
  name: {
    type: 'text',
    // No control or format characters, because the name is printed and typed in many places.
    get pattern() {
      return /^(?![\p{Z}])[^\p{C}\p{Zl}\p{Zp}]{1,100}(?<![\p{Z}])$/u
    },
    doc: 'Name, unique among the monitors of its kind, up to 100 printable characters; default: the kind',
  },
  timeout: {
    type: 'duration',
    doc: 'Maximum time for one attempt, up to 10m; default: the deadline of the mode (5s, 10s, 30s)',
  },
  retries: {
    type: 'integer',
    min: 0,
    max: 5,
    default: 0,
    doc: 'Additional attempts after a failure; never after a refused sign-in',
  },
  every: {
    type: 'every',
    least: { Basic: 5_000, Standard: 5_000, Advanced: 5_000 },
    doc: 'Intervals at which svc serve runs the monitor: a duration for Standard, a map of modes, or `off`; at least 5s, and at least its timeout. Default: those of its type, or of `serve:`',
  },
  confirm: {
    type: 'duration',
    min: serveSettings.confirm.min,
    max: serveSettings.confirm.max,
    doc: 'How long a worse result must last before svc serve confirms it; default: that of its type, or of `serve:`',
  },
  flapping: {
    type: 'countOrOff',
    min: serveSettings.flapping.min,
    max: serveSettings.flapping.max,
    doc: 'More faults of a check than this in an hour are one incident, `flapping`; off: each is one. Default: that of its type, or of `serve:`',
  },
  scheduleWrites: {
    type: 'flag',
    default: false,
    doc: 'Whether scheduled runs of svc serve include the checks that `allowWrites` permits',
  },
  for: {
    type: 'duration',
    doc: 'How long every run must exceed a threshold before it counts, up to 7d, such as 15m. Other failures count immediately',
  },
  dependsOn: {
    type: 'texts',
    doc: 'Monitors on which this one depends; it is skipped while one of them cannot be reached: `postgres orders`, or just `orders`; of another type with the type in front: `Sql/postgres orders`, `Sql/orders`. A group is `{any: […]}` or `{atLeast: 2, of: […]}`',
  },
  formerly: {
    type: 'texts',
    doc: 'Former keys of the monitor, as type/kind/name: it keeps the timers and trends that svc stored under them. `Sql/postgres/orders`, or `Sql/postgres/` for a monitor without a name',
  },
  without: {
    type: 'texts',
    doc: 'Checks to leave out, by their names in the tables below, such as a check of a figure that a server does not have; never one that proves the connection or the sign-in. The report names them',
  },
  depth: {
    type: 'choice',
    values: ExecutionMode.values,
    default: 'Basic',
    doc: 'The shallowest mode that runs it; deeper modes include it',
  },
  tags: {
    type: 'texts',
    pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/,
    doc: 'Words that group monitors, up to 63 letters, digits, "-", "_" and "."; those of the type and of the profile are added. `tag:NAME` in `dependsOn` means every monitor with that tag',
  },
  deployment: {
    type: 'flag',
    default: false,
    doc: 'Failures of this monitor are deployment-related, so SuppressDeploymentErrors ignores them',
  },
} as const satisfies SettingsSpec

/**
 * The settings that a kind has besides its own. The kind `heartbeat` had a `flapping` before monitors had one: its type,
 * or `serve:`, says what is flapping of its checks.
 */
export function commonFor(settings: SettingsSpec): SettingsSpec {
  const { flapping, ...others } = commonSettings
  return Object.hasOwn(settings, 'flapping') ? others : { ...others, flapping }
}

/** The settings of a type in its map form, besides `host` and `monitors`. They apply to all of its monitors. */
export const typeSettings = {
  tags: { ...commonSettings.tags, doc: 'Tags of every monitor of this type' },
  every: {
    type: 'every',
    least: serveSettings.every.least,
    doc: 'Intervals at which svc serve runs the monitors of this type; default: those of `serve:`',
  },
  confirm: {
    ...commonSettings.confirm,
    doc: 'How long a worse result of the monitors of this type must last before svc serve confirms it; default: that of `serve:`',
  },
  flapping: {
    ...commonSettings.flapping,
    doc: 'More faults of a check of this type than this in an hour are one incident, `flapping`; off: each is one. Default: that of `serve:`',
  },
} as const satisfies SettingsSpec

/** The settings that a monitor takes from its type, its profile and the entry that uses the profile. */
export type Inherited = { readonly tags: readonly string[] }

/** The tags of all levels, each once, in the order of the alphabet. Undefined without any. */
export function unitedTags(...levels: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  const tags = [...new Set(levels.flatMap((level) => level ?? []))].sort()
  return tags.length === 0 ? undefined : tags
}

/** The longest `timeout`, in milliseconds. */
export const maxTimeout = 10 * 60_000
/** The longest `for`, in milliseconds. Older readings are not kept. */
export const maxFor = 7 * 86_400_000

/** Shorthands at monitor level for the halves of its kind's `latency` threshold. */
export const latencySetting = 'latency'
export const shorthands = ['warn', 'limit'] as const

/** The threshold behind `shorthands` in a kind. Undefined when the kind has no latency, or uses these names itself. */
export function latencyOf(settings: SettingsSpec): Extract<SettingsSpec[string], { type: 'threshold' }> | undefined {
  const latency = settings[latencySetting]
  const taken = shorthands.some((name) => Object.hasOwn(settings, name))
  return latency?.type === 'threshold' && !taken ? latency : undefined
}
