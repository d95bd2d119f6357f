import type { SettingsSpec, Values } from '../../base/settings/index.ts'
import { fitsWhole, monitorsNamed, ServerType, writeNamed } from '../../protocol/index.ts'
import type { NoticeLevel } from './receiver.ts'

/** The settings of every receiver in `notify:` of svc.yaml, whatever its kind. */
export const notifySettings = {
  name: {
    type: 'text',
    required: true,
    pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/,
    doc: 'Name of the receiver: up to 63 letters, digits, "-", "_" and "."',
  },
  kind: { type: 'text', required: true, doc: 'Kind of the receiver, such as webhook' },
  only: {
    type: 'group',
    hasDefaults: true,
    fields: {
      types: { type: 'texts', doc: `Server types: ${ServerType.values.join(', ')}` },
      monitors: {
        type: 'texts',
        doc: 'Monitors by name, with or without their type: `postgres orders`, `Sql/postgres orders`, `Sql/orders`, `Sql/*`; `*` matches any characters of the name with its kind',
      },
      tags: { type: 'texts', doc: 'Tags, of which a monitor has at least one' },
      severity: {
        type: 'choice',
        values: ['warning', 'failed'],
        default: 'warning',
        doc: 'The least severe state that is sent',
      },
    },
    doc: 'What the receiver gets: incidents to which all of these conditions apply. Default: everything',
  },
  remind: {
    type: 'duration',
    min: 60_000,
    max: 30 * 86_400_000,
    doc: 'How often to repeat an incident that continues, at least 1m; default: never. Alertmanager has its own, repeat_interval',
  },
  details: {
    type: 'choice',
    values: ['full', 'classes'],
    default: 'full',
    doc: '`classes`: only the class of the fault, without messages, which may contain names and addresses of servers',
  },
  silences: {
    type: 'choice',
    values: ['honor', 'ignore'],
    default: 'honor',
    doc: '`ignore`: also send what `silences:` silences',
  },
  volatile: {
    type: 'flag',
    default: false,
    doc: 'Whether `svc serve` may send by this receiver without a store, and so repeat messages after a restart; without a store, `svc serve` does not start with a receiver of a kind that needs one unless this is true',
  },
} as const satisfies SettingsSpec

/** A receiver as svc.yaml declares it. */
export type ReceiverConfig = Values<typeof notifySettings> & {
  /** Whether it starts a program, which only the system's svc.yaml can allow. */
  readonly runsProgram?: boolean | undefined
  /** The values of the settings of its kind. */
  readonly settings: unknown
}

/** Whether a pattern of `only.monitors` matches the name of a monitor, alone or after its type. */
export const isMonitor = (pattern: string, { type, monitor }: Pick<Concern, 'type' | 'monitor'>): boolean =>
  [monitor, ...(type === undefined ? [] : [`${type}/${monitor}`])].some((name) => fitsWhole(pattern, name))

/**
 * The pattern for what a person wrote. A pattern that matches stays as it is; an own name becomes the whole name, which all
 * who compare patterns know, in svc and in Alertmanager. `ambiguous`: the monitors that have this own name. Undefined: it
 * matches nothing.
 *
 * @example
 * ```ts
 * const all = [{ type: 'Ftp', monitor: 'tcp t13' }]
 * patternFor('Ftp/*', all) // { pattern: 'Ftp/*' }
 * patternFor('t13', all) // { pattern: 'Ftp/tcp t13' }
 * ```
 */
export function patternFor(
  written: string,
  all: readonly Pick<Concern, 'type' | 'monitor'>[],
): { readonly pattern: string } | { readonly ambiguous: readonly string[] } | undefined {
  if (all.some((one) => isMonitor(written, one))) return { pattern: written }
  const folded = all.map(({ type, monitor }) => ({
    type: type?.toLowerCase(),
    name: monitor.toLowerCase(),
    whole: writeNamed({ type, name: monitor }),
  }))
  const names = [...new Set(monitorsNamed(written.toLowerCase(), folded).map(({ whole }) => whole))]
  const [only, another] = names
  if (only === undefined) return undefined
  return another === undefined ? { pattern: only } : { ambiguous: names }
}

/** The properties of an incident by which a receiver may be limited. */
export type Concern = {
  readonly type?: string | undefined
  readonly monitor: string
  readonly tags: readonly string[]
  readonly level: NoticeLevel
  /** It is about the load of the machine. */
  readonly isLoad?: boolean | undefined
}

/** The manner of a receiver, besides the conditions of `only`. */
type Manner = {
  /** It routes and repeats by itself: it gets every state, as Alertmanager does. */
  readonly routes?: boolean | undefined
}

/** Whether a pattern names the machine itself. One that matches everything does not. */
const namesHost = (pattern: string): boolean => pattern.toLowerCase() === 'host'

/**
 * Whether an incident is for a receiver. Monitors of the machine itself belong to no type.
 *
 * @example
 * ```ts
 * const about = { type: 'Sql', monitor: 'postgres orders', tags: [], level: 'warning' } as const
 * isFor({ monitors: ['Sql/*'], severity: 'warning' }, about) // true
 * isFor({ severity: 'failed' }, about) // false
 * isFor({ severity: 'warning' }, { monitor: 'host', tags: [], level: 'warning', isLoad: true }) // false
 * ```
 */
export const isFor = (
  { types, monitors, tags, severity }: ReceiverConfig['only'],
  concern: Concern,
  { routes = false }: Manner = {},
): boolean =>
  // A busy machine calls nobody unless the receiver asks for the machine by name (M15).
  (!concern.isLoad || concern.level === 'failed' || routes || monitors?.some(namesHost) === true) &&
  (types === undefined || (concern.type !== undefined && types.includes(concern.type))) &&
  (monitors === undefined || monitors.some((pattern) => isMonitor(pattern, concern))) &&
  (tags === undefined || tags.some((tag) => concern.tags.includes(tag))) &&
  (severity === 'warning' || concern.level === 'failed')
