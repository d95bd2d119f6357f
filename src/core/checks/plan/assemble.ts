import { Fault, isSystemError } from '../../base/errors.ts'
import { demandsSomething, readSettings } from '../../base/settings/index.ts'
import { type ExecutionMode, ServerType } from '../../protocol/index.ts'
import {
  type AnyKind,
  dependenciesOfMonitor,
  includes,
  type NamedElsewhere,
  type PlannedMonitor,
} from '../engine/index.ts'
import { type KindName, monitors, registered } from '../kinds/index.ts'
import type { ProfileName } from '../profiles/index.ts'

/** A monitor as a table or svc.yaml names it, before its kind is loaded and its settings are parsed. */
export type MonitorEntry = {
  readonly kind: KindName
  readonly name: string
  readonly settings: Readonly<Record<string, unknown>>
  /** Makes what the monitor needs before it is planned. Resolves with the reason if that is impossible. */
  readonly prepare?: (() => Promise<string | undefined>) | undefined
}

/** The parts of svc on this machine that its own monitors check. */
export type OwnParts = {
  /** The embedded store's file, or undefined when the store is a remote PostgreSQL database. */
  readonly storePath: string | undefined
  /** Makes the store if it does not exist. Resolves with the reason when it cannot be opened. */
  readonly prepareStore?: (() => Promise<string | undefined>) | undefined
  /** True where svc has a store, and with it its own accounts. */
  readonly accounts?: boolean | undefined
  readonly version: string
}

export type TypePlan = {
  /** The servers that the type represents, in a few words. */
  readonly title: string
  /** Monitors of svc's own parts, used while nothing is configured for the type. */
  readonly own?: (parts: OwnParts) => readonly MonitorEntry[]
  /** The sentence about the part that `own` checked, for the warning that no server is configured. */
  readonly ownSaid?: string
  /** The part of svc that `own` checks, for the headline. */
  readonly ownPart?: string
  /** Kinds that an operator would typically configure for the type, suggested as the next step. */
  readonly kinds: readonly KindName[]
  /** The shipped profile for what the type usually represents. */
  readonly profile?: ProfileName
}

/** Server type → its plan without configuration. A missing type does not compile. */
export const plans: Record<ServerType, TypePlan> = {
  App: {
    title: 'Application server',
    own: (parts) => [{ kind: 'self', name: 'svc', settings: { version: parts.version, storePath: parts.storePath } }],
    ownSaid: 'svc itself was checked',
    ownPart: 'svc itself',
    kinds: ['http', 'http-steps', 'tls', 'svc', 'dns', 'deployment'],
  },
  Sql: {
    title: 'SQL database',
    own: ({ storePath, prepareStore }) =>
      storePath === undefined
        ? []
        : [{ kind: 'sqlite', name: 'own store', settings: { path: storePath, ownStore: true }, prepare: prepareStore }],
    ownSaid: "svc's own store was checked",
    ownPart: "svc's own store",
    kinds: ['postgres', 'pgbouncer', 'mysql', 'sqlserver', 'sqlite'],
  },
  FtpApi: {
    title: 'API in front of FTP accounts',
    kinds: ['http', 'http-steps', 'tls', 'ftp', 'sftp'],
  },
  Ftp: {
    title: 'File transfer server',
    kinds: ['ftp', 'sftp', 'file-age', 'tcp', 'tls'],
  },
  Batch: {
    title: 'Batch job runner',
    kinds: ['service', 'heartbeat', 'process', 'rabbitmq', 'redis', 'file-age', 'http', 'smtp', 'mail-queue'],
  },
  Identity: {
    title: 'Identity provider',
    own: (parts) => (parts.accounts ? [{ kind: 'sign-in', name: 'own accounts', settings: {} }] : []),
    ownSaid: "svc's own sign-in was checked",
    ownPart: "svc's own sign-in",
    kinds: ['oidc', 'ldap', 'http', 'tls'],
  },
  Qc: {
    title: 'Quality control of media files',
    kinds: ['http', 'service', 'process', 'tcp', 'file-age'],
    profile: 'file-qc',
  },
  XcodeV: {
    title: 'Transcoder (Vantage)',
    kinds: ['http', 'tcp', 'file-age'],
    profile: 'vantage',
  },
  XcodeC: {
    title: 'Transcoder (Carbon Coder)',
    kinds: ['tcp', 'file-age'],
    profile: 'carbon',
  },
  MsgVast: { title: 'VAST messaging', kinds: ['http', 'tcp'], profile: 'vast' },
  AsgVast: { title: 'VAST assignment', kinds: ['http', 'tcp'], profile: 'vast' },
  Mongo: { title: 'MongoDB', kinds: ['mongo'] },
  Agents: { title: 'Remote agents', kinds: ['heartbeat', 'file-age', 'svc', 'http', 'tcp'] },
}

/** The types that check parts of svc itself while nothing is configured for them. */
export const ownTypes = (parts: OwnParts | undefined): readonly ServerType[] =>
  ServerType.values.filter((type) => ownEntries(type, parts).length > 0)

const ownEntries = (type: ServerType, parts: OwnParts | undefined): readonly MonitorEntry[] =>
  (parts && plans[type].own?.(parts)) ?? []

/**
 * The ports on which the servers of a type usually listen, as their kinds declare them, in ascending order. svc connects
 * to them but never signs in.
 */
export const standardPorts = (type: ServerType): readonly { readonly port: number; readonly what: string }[] =>
  Object.values(registered)
    .flatMap(({ ports }) => Object.entries(ports?.[type] ?? {}))
    .map(([port, what]) => ({ port: Number(port), what }))
    .sort((a, b) => a.port - b.port)

/** The names of all kinds, in the registry's order. */
const kindNames = Object.keys(monitors) as readonly KindName[]

export const isKindName = (name: string): name is KindName => Object.hasOwn(monitors, name)

/** Loads a kind. Its driver is loaded only at the first observation. */
export const loadKind = async (name: KindName): Promise<AnyKind> => (await monitors[name].load()).default

/**
 * The kind behind the host block. It runs for every type, so it is configured under `host:` and never in a list of
 * monitors.
 */
export const hostKind = 'host' satisfies KindName

/** The kinds that entries in svc.yaml may name. */
export async function configurableKinds(): Promise<readonly AnyKind[]> {
  const kinds = await Promise.all(kindNames.map(loadKind))
  return kinds.filter((kind) => !kind.internal && kind.name !== hostKind)
}

/** The MonitorName: kind and name, or the kind alone when both are the same. */
export const monitorName = (kind: string, name: string): string => (name === kind ? kind : `${kind} ${name}`)

/** The deeper of two modes. */
export const deeper = (a: ExecutionMode, b: ExecutionMode): ExecutionMode => (includes(a, b) ? a : b)

/** The shallowest mode in which a kind checks anything, but at least `expected`. */
export function depthOf(kind: AnyKind, expected: ExecutionMode): ExecutionMode {
  const [first, ...rest] = kind.checks.map((check) => check.depth)
  if (first === undefined) return expected
  return deeper(
    expected,
    rest.reduce((shallowest, depth) => (includes(shallowest, depth) ? depth : shallowest), first),
  )
}

/** The kind of all notices. */
export const noticeKind = 'configuration' satisfies KindName

/** A monitor with a fixed message: what the configuration lacks, or why a part could not be checked. */
export async function staticMonitor(
  name: string,
  level: 'warn' | 'fail' | 'not checked',
  message: string,
): Promise<PlannedMonitor> {
  const kind = await loadKind(noticeKind)
  return {
    name,
    kind,
    settings: { message, level },
    depth: 'Basic',
    host: false,
    dependsOn: [],
    retries: 0,
    deployment: false,
  }
}

/**
 * Takes the place of an entry of svc.yaml with mistakes: it never passes and reports them. `elsewhere`: the monitors of
 * other types that they name.
 */
export async function uncheckedMonitor(
  name: string,
  mistakes: readonly string[],
  elsewhere: readonly NamedElsewhere[] = [],
): Promise<PlannedMonitor> {
  const monitor = await staticMonitor(name, 'not checked', mistakes.join('; '))
  return elsewhere.length === 0 ? monitor : { ...monitor, elsewhere }
}

const dependsElsewhere = ({ type, dependsOnElsewhere = [], dependsOnGroups = [] }: PlannedMonitor): boolean =>
  dependsOnElsewhere.length > 0 || dependsOnGroups.some(({ of }) => of.some((one) => one.type !== type))

/**
 * Finds, for the monitors of one type, the monitors of other types on which they depend, and those on which these depend.
 * `all` are the monitors of all types, each with its type.
 */
export function dependenciesElsewhere(
  all: readonly PlannedMonitor[],
): (planned: readonly PlannedMonitor[]) => readonly PlannedMonitor[] {
  const keyOf = ({ type, name }: Pick<PlannedMonitor, 'type' | 'name'>): string => `${type} ${name}`
  const byKey = new Map(all.map((monitor) => [keyOf(monitor), monitor]))
  const parentsOf = (monitor: PlannedMonitor): readonly PlannedMonitor[] =>
    dependenciesOfMonitor(monitor).flatMap(({ of }) => of.flatMap((one) => byKey.get(keyOf(one)) ?? []))
  return (planned) => {
    if (planned.every((monitor) => !dependsElsewhere(monitor))) return []
    const reached = new Set<PlannedMonitor>()
    const pending = [...planned]
    for (let monitor = pending.pop(); monitor; monitor = pending.pop()) {
      const parents = parentsOf(monitor).filter((parent) => !reached.has(parent))
      for (const parent of parents) reached.add(parent)
      pending.push(...parents)
    }
    const types = new Set(planned.map(({ type }) => type))
    return [...reached].filter(({ type }) => !types.has(type))
  }
}

/**
 * Whether svc.yaml configures a server type that has these monitors (K10). A host block that switches on a check is one
 * of them where the type has no other (`hostMonitor`).
 */
export const isConfigured = (monitors: readonly PlannedMonitor[] = []): boolean => monitors.length > 0

type HostSettings = Readonly<Record<string, unknown>>

/**
 * The monitor of a type whose only checks are those that its `host:` settings switch on, or undefined if they switch on
 * none. It counts as a check of the type, and runs from the mode of the shallowest of these checks. `usual`: settings that
 * apply to every type, and switch on none of its checks. All settings must be valid.
 */
export async function hostMonitor(
  settings: HostSettings,
  usual: HostSettings = {},
): Promise<PlannedMonitor | undefined> {
  const block = await planned({ kind: hostKind, name: hostKind, settings: { ...usual, ...settings } }, false)
  const values = block.settings as Readonly<Record<string, unknown>>
  const isOn = (name: string): boolean =>
    Object.hasOwn(settings, name) &&
    block.configured?.has(name) === true &&
    demandsSomething(settings[name], values[name])
  const depths = block.kind.checks.flatMap(({ depth, settings: own = [] }) => (own.some(isOn) ? [depth] : []))
  return depths.length === 0 ? undefined : { ...block, depth: shallowestOf(depths) }
}

const shallowestOf = (depths: readonly ExecutionMode[]): ExecutionMode =>
  depths.reduce((a, b) => (includes(a, b) ? b : a))

type ListeningPort = { readonly port: number; readonly what: string; readonly banner?: string | undefined }

export type AssembleOptions = {
  /** The type's monitors in svc.yaml. */
  readonly configured: readonly PlannedMonitor[]
  /** The `host:` settings of svc.yaml, or false to leave the host block out. */
  readonly host: Readonly<Record<string, unknown>> | false
  /** Undefined where only what is configured counts. */
  readonly parts: OwnParts | undefined
  /** Finds the usual ports of a type that are open on this machine: connects and reads the banner, never signs in. */
  readonly listening: (
    ports: readonly { readonly port: number; readonly what: string }[],
    signal: AbortSignal,
  ) => Promise<readonly ListeningPort[]>
  readonly signal: AbortSignal
  /** The mode of the run, if known. A plan without any monitor due in that mode then says so. */
  readonly mode?: ExecutionMode | undefined
}

/**
 * The monitors of one server type. The plan never succeeds without having checked something of that type: the host
 * block alone does not count, unless its settings are all that svc.yaml has for the type (`hostMonitor`).
 */
export async function assemble(type: ServerType, options: AssembleOptions): Promise<readonly PlannedMonitor[]> {
  const monitors = await monitorsOf(type, options)
  return monitors.map((monitor) => ofType(type, monitor))
}

/** The monitor with its type. The host block observes the same machine for every type, so it belongs to none. */
export function ofType(type: ServerType, monitor: PlannedMonitor): PlannedMonitor {
  if (monitor.kind.name === hostKind) return monitor
  const before = withType.get(monitor)
  if (before?.type === type) return before
  const made = { ...monitor, type }
  withType.set(monitor, made)
  return made
}
/** The plans of all modes and the schedule have the same monitors, of which much is kept. */
const withType = new WeakMap<PlannedMonitor, PlannedMonitor>()

async function monitorsOf(type: ServerType, options: AssembleOptions): Promise<readonly PlannedMonitor[]> {
  const { configured, host, mode } = options
  const block = host === false ? [] : [await hostBlock(host)]
  if (!isConfigured(configured)) return [...block, ...(await unconfigured(type, options))]
  const shallowest = shallowestOf(configured.map((monitor) => monitor.depth))
  if (mode === undefined || includes(mode, shallowest)) return [...block, ...configured]
  const message = `${type}: no monitor runs in ${mode}: the shallowest is ${shallowest}, use --mode ${shallowest}`
  return [...block, ...configured, await staticMonitor(missingName, 'fail', message)]
}

/** The kind that reports which usual ports are open. */
const listeningKind = 'listening' satisfies KindName

/** The monitor that says what the configuration lacks. */
const missingName = 'Configuration'

/** The names of the monitors that svc may plan for every type besides those of svc.yaml. */
export const plannedNames: readonly string[] = [hostKind, listeningKind, missingName]

/** The kinds of all monitors that svc plans by itself, independent of the configuration. */
export const ownKinds = (parts: OwnParts | undefined): readonly KindName[] => [
  hostKind,
  noticeKind,
  listeningKind,
  ...ServerType.values.flatMap((type) => ownEntries(type, parts).map(({ kind }) => kind)),
]

/** The host block of a type with these settings. */
export const hostBlock = (settings: Readonly<Record<string, unknown>>): Promise<PlannedMonitor> =>
  planned({ kind: hostKind, name: hostKind, settings }, true)

async function unconfigured(type: ServerType, options: AssembleOptions): Promise<readonly PlannedMonitor[]> {
  const plan = plans[type]
  const [own, open] = await Promise.all([
    Promise.all(ownEntries(type, options.parts).map(ownMonitor)),
    discovered(standardPorts(type), options),
  ])
  const configuration =
    own.length === 0
      ? await staticMonitor(missingName, 'fail', `${type} is not configured here: add it under types: in svc.yaml`)
      : {
          ...(await staticMonitor(
            missingName,
            'warn',
            `${type}: no server configured; ${plan.ownSaid ?? 'parts of svc were checked'}`,
          )),
          ownPart: plan.ownPart,
        }
  if (open.length === 0) return [...own, configuration]
  const ports = open.map(({ port, what }) => ({ port, what }))
  const listening = await planned({ kind: listeningKind, name: listeningKind, settings: { ports } }, true)
  return [...own, configuration, listening]
}

async function ownMonitor(entry: MonitorEntry): Promise<PlannedMonitor> {
  const problem = await entry.prepare?.()
  return problem === undefined
    ? await planned(entry, false)
    : await staticMonitor(monitorName(entry.kind, entry.name), 'fail', problem)
}

/** A port scan that the operating system refuses must not fail the answer: it reports no open ports. */
async function discovered(
  ports: ReturnType<typeof standardPorts>,
  options: AssembleOptions,
): Promise<readonly ListeningPort[]> {
  if (ports.length === 0) return []
  try {
    return await options.listening(ports, options.signal)
  } catch (error) {
    options.signal.throwIfAborted()
    if (isSystemError(error)) return []
    throw error
  }
}

/**
 * Plans an entry. Invalid settings of the host block are the user's mistake (Fault `Local`); all others are defects.
 */
async function planned(entry: MonitorEntry, host: boolean): Promise<PlannedMonitor> {
  const kind = await loadKind(entry.kind satisfies KindName)
  const { values, configured, problems } = readSettings(kind.settings, entry.settings, { env: {}, folder: '.' })
  const [problem] = problems
  if (problem) {
    const sentence = `${entry.kind}: ${problem.path.join('.')} ${problem.message}`
    throw entry.kind === hostKind ? new Fault('Local', sentence) : new Error(sentence)
  }
  return {
    name: monitorName(entry.kind, entry.name),
    kind,
    settings: values,
    configured,
    depth: depthOf(kind, 'Basic'),
    host,
    dependsOn: [],
    retries: 0,
    deployment: false,
  }
}
