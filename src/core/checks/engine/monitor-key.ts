import { createHash } from 'node:crypto'
import { isLoopbackHost } from '../../base/loopback.ts'
import type { Setting, SettingsSpec, Target } from '../../base/settings/index.ts'
import type { ServerType } from '../../protocol/index.ts'

/** The parts of a monitor's key. */
export type KeyParts = {
  /** A server type. Empty for the host block, which is the same for every type. */
  readonly type: string
  readonly kind: string
  /** The monitor's own name in svc.yaml. Empty for a monitor without one, and for one that is named like its kind. */
  readonly name: string
}

/** The parts of a planned monitor that identify it. */
export type IdentifiedMonitor = {
  /** The MonitorName: kind and name, or the kind alone. */
  readonly name: string
  /** The part of its kind that says what it observes. */
  readonly kind: {
    readonly name: string
    readonly settings: SettingsSpec
    readonly runsOn: 'machine' | 'network'
    readonly target?: ((settings: never) => Target) | undefined
  }
  readonly settings: unknown
  readonly configured?: ReadonlySet<string> | undefined
  /** Its server type. Absent: it belongs to none, as the host block does. */
  readonly type?: ServerType | undefined
}

/**
 * The key of a monitor: `type/kind/name`, as in `Sql/postgres/orders`. All that outlives a run belongs to it. It is
 * unique in svc.yaml, because a type refuses a second monitor with the same kind and name.
 *
 * @example
 * ```ts
 * writeKey({ type: 'Sql', kind: 'postgres', name: 'orders' }) // 'Sql/postgres/orders'
 * ```
 */
export const writeKey = ({ type, kind, name }: KeyParts): string => `${type}/${kind}/${name === kind ? '' : name}`

/** The key of a planned monitor. */
export const monitorKey = (monitor: Pick<IdentifiedMonitor, 'name' | 'kind' | 'type'>): string =>
  writeKey({ type: monitor.type ?? '', kind: monitor.kind.name, name: plainName(monitor) })

const plainName = ({ name, kind }: Pick<IdentifiedMonitor, 'name' | 'kind'>): string =>
  name.startsWith(`${kind.name} `) ? name.slice(kind.name.length + 1) : name

/**
 * The parts of a written key, or undefined for a text that is none. A name may contain slashes; `Sql/postgres/` is the
 * monitor without a name. Whether the type and the kind exist is for the caller to check.
 *
 * @example
 * ```ts
 * parseKey('Sql/postgres/orders') // { type: 'Sql', kind: 'postgres', name: 'orders' }
 * ```
 */
export function parseKey(written: string): KeyParts | undefined {
  const [, type, kind, name] = /^([^/]+)\/([^/]+)\/(.*)$/su.exec(written) ?? []
  if (type === undefined || kind === undefined || name === undefined) return undefined
  return { type, kind, name: name === kind ? '' : name }
}

/**
 * The object that a monitor observes, as a short text: equal as long as the settings that its kind marks with
 * `observed` are, such as host, URL, path and query. Thresholds, expectations and credentials change nothing in it.
 */
export function observedBy({ kind, settings }: Pick<IdentifiedMonitor, 'kind' | 'settings'>): string {
  const parts = observedIn(kind.settings, settings) ?? []
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)
}

/** The values of the settings that say what is observed, by name; undefined where a group has none. */
function observedIn(spec: SettingsSpec, values: unknown): unknown {
  const byName = (values ?? {}) as Readonly<Record<string, unknown>>
  const entries = Object.entries(spec).flatMap(([name, setting]) => {
    const value = byName[name] === undefined ? undefined : observedValue(setting, byName[name])
    return value === undefined ? [] : [[name, value]]
  })
  return entries.length === 0 ? undefined : entries
}

function observedValue(setting: Setting, value: unknown): unknown {
  if (setting.type === 'group') return observedIn(setting.fields, value)
  if (setting.type === 'groups') {
    const items = (value as readonly unknown[]).map((item) => observedIn(setting.fields, item) ?? null)
    return items.some((item) => item !== null) ? items : undefined
  }
  if (setting.type === 'url') return withoutAccount(String(value))
  return setting.observed ? value : undefined
}

/** A URL without the account that it may name: another account sees the same server. */
const withoutAccount = (url: string): string => url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^@/?#]*@/i, '$1')

/**
 * Whether each machine observes something of its own: the machine itself, a server at a loopback address or a local
 * socket, or a peer that its own configuration names, such as its name servers.
 */
export function isOfMachine({ kind, settings }: Pick<IdentifiedMonitor, 'kind' | 'settings'>): boolean {
  if (kind.runsOn === 'machine') return true
  const { host }: Target = kind.target?.(settings as never) ?? {}
  return host === undefined || host === '' || host.startsWith('/') || isLoopbackHost(host)
}
