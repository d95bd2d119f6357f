import type { KindName } from '../kinds/index.ts'
import type { ProfileName } from '../profiles/index.ts'
import type { ServerType } from '../protocol/index.ts'

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
