import type { ServerType } from '../../protocol/index.ts'
import type { AnyKind } from '../engine/index.ts'

/** Server type → standard port → the service there, as reports name it. */
export type StandardPorts = { readonly [T in ServerType]?: Readonly<Record<number, string>> }

type Registered = {
  readonly load: () => Promise<{ readonly default: AnyKind }>
  /**
   * The standard ports of the kind's servers, by the server type to which such servers belong; the first type has the
   * servers at other ports, too. They are here because a check without configuration reads the ports of every kind, and
   * loads no kind for it.
   */
  readonly ports?: StandardPorts
}

/** Every monitor kind: its name, its loader and its standard ports. A driver is loaded only when its kind runs. */
export const monitors = {
  configuration: { load: () => import('./configuration.ts') },
  deployment: { load: () => import('./deployment.ts') },
  dns: { load: () => import('./dns.ts'), ports: { App: { 53: 'dns' } } },
  domain: { load: () => import('./domain/index.ts') },
  exec: { load: () => import('./exec/index.ts') },
  'file-age': { load: () => import('./file-age.ts') },
  ftp: { load: () => import('./ftp/index.ts'), ports: { Ftp: { 21: 'ftp', 990: 'ftps' } } },
  grpc: { load: () => import('./grpc/index.ts'), ports: { App: { 50051: 'grpc' } } },
  heartbeat: { load: () => import('./heartbeat/index.ts') },
  host: { load: () => import('./host.ts') },
  http: {
    load: () => import('./http/index.ts'),
    ports: { App: { 80: 'http', 443: 'https', 2379: 'etcd', 8080: 'http' }, XcodeV: { 8676: 'vantage' } },
  },
  'http-steps': { load: () => import('./http-steps/index.ts') },
  ldap: {
    load: () => import('./ldap/index.ts'),
    ports: { Identity: { 389: 'ldap', 636: 'ldaps', 3268: 'ldap', 3269: 'ldaps' } },
  },
  listening: { load: () => import('./listening.ts') },
  'mail-queue': { load: () => import('./mail-queue/index.ts') },
  mongo: { load: () => import('./mongo/index.ts'), ports: { Mongo: { 27017: 'mongo' } } },
  mysql: { load: () => import('./mysql/index.ts'), ports: { Sql: { 3306: 'mysql' } } },
  oidc: { load: () => import('./oidc/index.ts') },
  pgbouncer: { load: () => import('./pgbouncer/index.ts'), ports: { Sql: { 6432: 'pgbouncer' } } },
  ping: { load: () => import('./ping/index.ts') },
  postgres: { load: () => import('./postgres/index.ts'), ports: { Sql: { 5432: 'postgres' } } },
  process: { load: () => import('./process.ts') },
  rabbitmq: {
    load: () => import('./rabbitmq/index.ts'),
    ports: { Batch: { 5672: 'rabbitmq', 15672: 'rabbitmq management' } },
  },
  redis: { load: () => import('./redis/index.ts'), ports: { Batch: { 6379: 'redis', 26379: 'redis sentinel' } } },
  self: { load: () => import('./self.ts') },
  'sign-in': { load: () => import('./sign-in.ts') },
  service: { load: () => import('./service.ts') },
  sftp: { load: () => import('./sftp/index.ts'), ports: { Ftp: { 22: 'ssh' } } },
  smtp: { load: () => import('./smtp/index.ts'), ports: { App: { 25: 'smtp', 465: 'smtps', 587: 'smtp' } } },
  sqlite: { load: () => import('./sqlite/index.ts') },
  svc: { load: () => import('./svc.ts') },
  sqlserver: { load: () => import('./sqlserver/index.ts'), ports: { Sql: { 1433: 'sqlserver' } } },
  tcp: {
    load: () => import('./tcp.ts'),
    ports: {
      App: { 1883: 'mqtt', 4222: 'nats', 8883: 'mqtts', 11211: 'memcached', 11300: 'beanstalkd' },
      XcodeC: { 1120: 'carbon' },
    },
  },
  tls: { load: () => import('./tls.ts') },
} as const satisfies Record<string, Registered>

export type KindName = keyof typeof monitors

/** The kinds in the form in which each may have ports. */
export const registered: Readonly<Record<KindName, Registered>> = monitors
