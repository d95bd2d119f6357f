import type { AnyMonitorKind } from '../monitor.ts'

type Load = () => Promise<{ readonly default: AnyMonitorKind }>

/** Every monitor kind: its name and how to load it. A driver is loaded only when its kind is due. */
export const monitors = {
  configuration: () => import('./configuration.ts'),
  deployment: () => import('./deployment.ts'),
  dns: () => import('./dns.ts'),
  exec: () => import('./exec.ts'),
  'file-age': () => import('./file-age.ts'),
  ftp: () => import('./ftp.ts'),
  heartbeat: () => import('./heartbeat.ts'),
  host: () => import('./host.ts'),
  http: () => import('./http.ts'),
  'http-steps': () => import('./http-steps.ts'),
  ldap: () => import('./ldap.ts'),
  listening: () => import('./listening.ts'),
  mongo: () => import('./mongo.ts'),
  mysql: () => import('./mysql.ts'),
  oidc: () => import('./oidc.ts'),
  postgres: () => import('./postgres.ts'),
  process: () => import('./process.ts'),
  rabbitmq: () => import('./rabbitmq.ts'),
  redis: () => import('./redis.ts'),
  self: () => import('./self.ts'),
  'sign-in': () => import('./sign-in.ts'),
  service: () => import('./service.ts'),
  sftp: () => import('./sftp.ts'),
  smtp: () => import('./smtp.ts'),
  sqlite: () => import('./sqlite.ts'),
  svc: () => import('./svc.ts'),
  sqlserver: () => import('./sqlserver.ts'),
  tcp: () => import('./tcp.ts'),
  tls: () => import('./tls.ts'),
} as const satisfies Record<string, Load>

export type KindName = keyof typeof monitors
