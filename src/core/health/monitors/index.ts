import type { AnyMonitorKind } from '../monitor.ts'

type Load = () => Promise<{ readonly default: AnyMonitorKind }>

/** Every monitor kind: its name and how to load it. A driver is loaded only when its kind is due. */
export const monitors = {
  configuration: () => import('./configuration.ts'),
  deployment: () => import('./deployment.ts'),
  dns: () => import('./dns.ts'),
  'file-age': () => import('./file-age.ts'),
  host: () => import('./host.ts'),
  http: () => import('./http.ts'),
  listening: () => import('./listening.ts'),
  mysql: () => import('./mysql.ts'),
  postgres: () => import('./postgres.ts'),
  process: () => import('./process.ts'),
  self: () => import('./self.ts'),
  sqlite: () => import('./sqlite.ts'),
  tcp: () => import('./tcp.ts'),
  tls: () => import('./tls.ts'),
} as const satisfies Record<string, Load>

export type KindName = keyof typeof monitors
