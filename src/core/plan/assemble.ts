import { type AnyKind, includes, type PlannedMonitor } from '../engine/index.ts'
import { Fault } from '../errors.ts'
import { type KindName, monitors } from '../kinds/index.ts'
import type { ProfileName } from '../profiles/index.ts'
import type { ExecutionMode, ServerType } from '../protocol/index.ts'
import { readSettings } from '../settings/index.ts'

/** A monitor as a table or svc.yaml names it, before its kind is loaded and its settings are read. */
export type MonitorEntry = {
  readonly kind: KindName
  readonly name: string
  readonly settings: Readonly<Record<string, unknown>>
}

/** What lies on this machine that the plan's own parts look at. */
export type OwnParts = {
  /** The embedded store's file, or undefined when the store is a PostgreSQL elsewhere. */
  readonly storePath: string | undefined
  /** True where svc has a store, and with it accounts of its own. */
  readonly accounts?: boolean | undefined
  readonly version: string
}

export type TypePlan = {
  /** What the type stands for, in a few words. */
  readonly title: string
  /** Parts of svc itself that stand for the type while nothing is configured. */
  readonly own?: (parts: OwnParts) => readonly MonitorEntry[]
  /** What `own` checked, for the warning that no server is configured. */
  readonly ownSaid?: string
  /** Ports on which such servers usually listen: looked at, never signed in to. */
  readonly usualPorts: readonly { readonly port: number; readonly what: string }[]
  /** Kinds that an operator would configure for it: the next step of an unconfigured type. */
  readonly kinds: readonly KindName[]
  /** The shipped profile for what the type is taken to stand for. */
  readonly profile?: ProfileName
}

/** Server type → what stands for it without configuration. A type without its row does not compile. */
export const plans: Record<ServerType, TypePlan> = {
  App: {
    title: 'Application server',
    own: (parts) => [{ kind: 'self', name: 'svc', settings: { version: parts.version, storePath: parts.storePath } }],
    ownSaid: 'this program was checked',
    usualPorts: [
      { port: 80, what: 'http' },
      { port: 443, what: 'https' },
      { port: 8080, what: 'http' },
    ],
    kinds: ['http', 'http-steps', 'tls', 'svc', 'dns', 'deployment'],
  },
  Sql: {
    title: 'SQL database',
    own: (parts) =>
      parts.storePath === undefined
        ? []
        : [{ kind: 'sqlite', name: 'own store', settings: { path: parts.storePath, ownStore: true } }],
    ownSaid: "svc's own store was checked",
    usualPorts: [
      { port: 5432, what: 'postgres' },
      { port: 3306, what: 'mysql' },
      { port: 1433, what: 'sqlserver' },
    ],
    kinds: ['postgres', 'mysql', 'sqlserver', 'sqlite'],
  },
  FtpApi: {
    title: 'API in front of FTP accounts',
    usualPorts: [],
    kinds: ['http', 'http-steps', 'tls', 'ftp', 'sftp'],
  },
  Ftp: {
    title: 'File transfer server',
    usualPorts: [
      { port: 21, what: 'ftp' },
      { port: 22, what: 'ssh' },
      { port: 990, what: 'ftps' },
    ],
    kinds: ['ftp', 'sftp', 'file-age', 'tcp', 'tls'],
  },
  Batch: {
    title: 'Batch job runner',
    usualPorts: [
      { port: 5672, what: 'rabbitmq' },
      { port: 6379, what: 'redis' },
    ],
    kinds: ['service', 'heartbeat', 'process', 'rabbitmq', 'redis', 'file-age', 'http', 'smtp'],
  },
  Identity: {
    title: 'Identity provider',
    own: (parts) => (parts.accounts ? [{ kind: 'sign-in', name: 'own accounts', settings: {} }] : []),
    ownSaid: "svc's own sign-in was checked",
    usualPorts: [
      { port: 389, what: 'ldap' },
      { port: 636, what: 'ldaps' },
    ],
    kinds: ['oidc', 'ldap', 'http', 'tls'],
  },
  Qc: {
    title: 'Quality control of media files',
    usualPorts: [],
    kinds: ['http', 'service', 'process', 'tcp', 'file-age'],
    profile: 'file-qc',
  },
  XcodeV: {
    title: 'Transcoder (Vantage)',
    usualPorts: [{ port: 8676, what: 'vantage' }],
    kinds: ['http', 'tcp', 'file-age'],
    profile: 'vantage',
  },
  XcodeC: {
    title: 'Transcoder (Carbon Coder)',
    usualPorts: [{ port: 1120, what: 'carbon' }],
    kinds: ['tcp', 'file-age'],
    profile: 'carbon',
  },
  MsgVast: { title: 'VAST messaging', usualPorts: [], kinds: ['http', 'tcp'], profile: 'vast' },
  AsgVast: { title: 'VAST assignment', usualPorts: [], kinds: ['http', 'tcp'], profile: 'vast' },
  Mongo: { title: 'MongoDB', usualPorts: [{ port: 27_017, what: 'mongo' }], kinds: ['mongo'] },
  Agents: { title: 'Remote agents', usualPorts: [], kinds: ['heartbeat', 'file-age', 'svc', 'http', 'tcp'] },
}

/** Every kind's name, in the registry's order. */
const kindNames = Object.keys(monitors) as readonly KindName[]

export const isKindName = (name: string): name is KindName => Object.hasOwn(monitors, name)

/** Loads a kind; its driver is loaded only when it first observes. */
export const loadKind = async (name: KindName): Promise<AnyKind> => (await monitors[name]()).default

/**
 * The kind whose monitor is the host block. It runs for every type by itself, so it is set under
 * `host:` and is never an entry in a list of monitors.
 */
export const hostKind = 'host' satisfies KindName

/** The kinds that an entry in svc.yaml may name. */
export async function configurableKinds(): Promise<readonly AnyKind[]> {
  const kinds = await Promise.all(kindNames.map(loadKind))
  return kinds.filter((kind) => !kind.internal && kind.name !== hostKind)
}

/** MonitorName: kind and name, or the kind alone when that is the name. */
export const monitorName = (kind: string, name: string): string => (name === kind ? kind : `${kind} ${name}`)

/** The deeper of two modes. */
export const deeper = (a: ExecutionMode, b: ExecutionMode): ExecutionMode => (includes(a, b) ? a : b)

/** The shallowest mode in which a kind looks at anything, and no shallower than `wanted`. */
export function depthOf(kind: AnyKind, expected: ExecutionMode): ExecutionMode {
  const [first, ...rest] = kind.checks.map((check) => check.depth)
  if (first === undefined) return expected
  return deeper(
    expected,
    rest.reduce((shallowest, depth) => (includes(shallowest, depth) ? depth : shallowest), first),
  )
}

/** The kind of every notice. */
export const noticeKind = 'configuration' satisfies KindName

/** A monitor that says one line: what the configuration lacks, or why a part could not be looked at. */
export async function staticMonitor(name: string, level: 'warn' | 'fail', message: string): Promise<PlannedMonitor> {
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

type ListeningPort = { readonly port: number; readonly what: string; readonly banner?: string | undefined }

export type AssembleOptions = {
  /** The type's monitors in svc.yaml. */
  readonly configured: readonly PlannedMonitor[]
  /** What svc.yaml sets of the host block, or false to leave it out. */
  readonly host: Readonly<Record<string, unknown>> | false
  readonly parts: OwnParts
  /** Which of a type's usual ports listen on this machine: connect and banner, never a sign-in. */
  readonly listening: (
    ports: readonly { readonly port: number; readonly what: string }[],
    signal: AbortSignal,
  ) => Promise<readonly ListeningPort[]>
  readonly signal: AbortSignal
  /** The mode of the run, where it is known: then a plan of which nothing is due says so. */
  readonly mode?: ExecutionMode | undefined
}

/**
 * The monitors of one server type. Never a plan that could succeed without having looked at
 * anything of that type: the host block alone does not count.
 */
export async function assemble(type: ServerType, options: AssembleOptions): Promise<readonly PlannedMonitor[]> {
  const { configured, host, mode } = options
  const block = host === false ? [] : [await hostBlock(host)]
  if (configured.length === 0) return [...block, ...(await unconfigured(type, options))]
  const shallowest = configured.map((monitor) => monitor.depth).reduce((a, b) => (includes(a, b) ? b : a))
  if (mode === undefined || includes(mode, shallowest)) return [...block, ...configured]
  const message = `${type}: nothing of it is checked in ${mode}: its monitors begin in ${shallowest}, use --mode ${shallowest}`
  return [...block, ...configured, await staticMonitor('Configuration', 'fail', message)]
}

/** What says which usual ports are listened on. */
const listeningKind = 'listening' satisfies KindName

/** The kinds of all monitors that svc plans by itself, whatever is configured. */
export const ownKinds = (parts: OwnParts): readonly KindName[] => [
  hostKind,
  noticeKind,
  listeningKind,
  ...Object.values(plans).flatMap((plan) => (plan.own?.(parts) ?? []).map(({ kind }) => kind)),
]

const hostBlock = (settings: Readonly<Record<string, unknown>>): Promise<PlannedMonitor> =>
  planned({ kind: hostKind, name: hostKind, settings }, true)

async function unconfigured(type: ServerType, options: AssembleOptions): Promise<readonly PlannedMonitor[]> {
  const plan = plans[type]
  const [own, open] = await Promise.all([
    Promise.all((plan.own?.(options.parts) ?? []).map((entry) => planned(entry, false))),
    discovered(plan.usualPorts, options),
  ])
  const configuration =
    own.length === 0
      ? await staticMonitor('Configuration', 'fail', `${type} is not configured here: add it under types: in svc.yaml`)
      : await staticMonitor(
          'Configuration',
          'warn',
          `${type}: no server configured; ${plan.ownSaid ?? 'parts of svc were checked'}`,
        )
  if (open.length === 0) return [...own, configuration]
  const ports = open.map(({ port, what }) => ({ port, what }))
  const listening = await planned({ kind: listeningKind, name: listeningKind, settings: { ports } }, true)
  return [...own, configuration, listening]
}

/** A look around must not cost the answer: what cannot be looked at is not reported as listening. */
async function discovered(
  ports: readonly { readonly port: number; readonly what: string }[],
  options: AssembleOptions,
): Promise<readonly ListeningPort[]> {
  if (ports.length === 0) return []
  const open = await options.listening(ports, options.signal).catch(() => [])
  options.signal.throwIfAborted()
  return open
}

/** Plans an entry. What is wrong with the host block is the user's (Fault `Local`), with any other our defect. */
async function planned(entry: MonitorEntry, host: boolean): Promise<PlannedMonitor> {
  const kind = await loadKind(entry.kind satisfies KindName)
  const { values, problems } = readSettings(kind.settings, entry.settings, { env: {}, folder: '.' })
  const [problem] = problems
  if (problem) {
    const sentence = `${entry.kind}: ${problem.path.join('.')} ${problem.message}`
    throw entry.kind === hostKind ? new Fault('Local', sentence) : new Error(sentence)
  }
  return {
    name: monitorName(entry.kind, entry.name),
    kind,
    settings: values,
    depth: depthOf(kind, 'Basic'),
    host,
    dependsOn: [],
    retries: 0,
    deployment: false,
  }
}
