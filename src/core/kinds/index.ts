import type { AnyKind } from '../engine/index.ts'

type Load = () => Promise<{ readonly default: AnyKind }>

/** Every monitor kind: its name and its loader. A driver is loaded only when its kind runs. */
export const monitors = {
  configuration: () => import('./configuration.ts'),
  deployment: () => import('./deployment.ts'),
  dns: () => import('./dns.ts'),
  exec: () => import('./exec/index.ts'),
  'file-age': () => import('./file-age.ts'),
  ftp: () => import('./ftp/index.ts'),
  grpc: () => import('./grpc/index.ts'),
  heartbeat: () => import('./heartbeat/index.ts'),
  host: () => import('./host.ts'),
  http: () => import('./http/index.ts'),
  'http-steps': () => import('./http-steps/index.ts'),
  ldap: () => import('./ldap/index.ts'),
  listening: () => import('./listening.ts'),
  'mail-queue': () => import('./mail-queue/index.ts'),
  mongo: () => import('./mongo/index.ts'),
  mysql: () => import('./mysql/index.ts'),
  oidc: () => import('./oidc/index.ts'),
  pgbouncer: () => import('./pgbouncer/index.ts'),
  ping: () => import('./ping/index.ts'),
  postgres: () => import('./postgres/index.ts'),
  process: () => import('./process.ts'),
  rabbitmq: () => import('./rabbitmq/index.ts'),
  redis: () => import('./redis/index.ts'),
  self: () => import('./self.ts'),
  'sign-in': () => import('./sign-in.ts'),
  service: () => import('./service.ts'),
  sftp: () => import('./sftp/index.ts'),
  smtp: () => import('./smtp/index.ts'),
  sqlite: () => import('./sqlite/index.ts'),
  svc: () => import('./svc.ts'),
  sqlserver: () => import('./sqlserver/index.ts'),
  tcp: () => import('./tcp.ts'),
  tls: () => import('./tls.ts'),
} as const satisfies Record<string, Load>

export type KindName = keyof typeof monitors
