import { readSettings } from '../../../src/core/base/settings/index.ts'
import httpSteps from '../../../src/core/checks/kinds/http-steps/index.ts'
import type { KindName } from '../../../src/core/checks/kinds/index.ts'
import { kindsWithRows, type SilentRow } from './kind-rows.ts'
import { secret } from './run-kind.ts'

export const account = { username: 'monitor', password: secret('wrong-horse-7') }

/** How each kind that speaks over TCP gets to a server. */
export const tcpKinds: Partial<Record<KindName, SilentRow>> = {
  deployment: {
    mode: 'Advanced',
    settings: (port, host) => ({ url: `http://${host}:${port}/version`, expected: '1' }),
  },
  ftp: { settings: (port, host) => ({ host, port, tls: 'off' }) },
  grpc: { mode: 'Standard', settings: (port, host) => ({ host, port }) },
  http: { settings: (port, host) => ({ url: `http://${host}:${port}/` }) },
  'http-steps': {
    mode: 'Advanced',
    settings: (port, host) => {
      const raw = { url: `http://${host}:${port}/`, steps: [{ name: 'first', path: '/' }] }
      return readSettings(httpSteps.settings, raw, { env: {}, folder: '/' }).values
    },
  },
  ldap: { settings: (port, host) => ({ url: `ldap://${host}:${port}` }) },
  mongo: { settings: (port, host) => ({ url: `mongodb://${host}:${port}` }) },
  mysql: { settings: (port, host) => ({ url: `mysql://monitor@${host}:${port}/`, password: account.password }) },
  oidc: { settings: (port, host) => ({ issuer: `http://${host}:${port}` }) },
  pgbouncer: { settings: (port, host) => ({ url: `postgres://monitor@${host}:${port}/`, password: account.password }) },
  postgres: { settings: (port, host) => ({ url: `postgres://monitor@${host}:${port}/`, password: account.password }) },
  rabbitmq: { settings: (port, host) => ({ url: `http://${host}:${port}`, ...account }) },
  redis: { settings: (port, host) => ({ url: `redis://${host}:${port}` }) },
  sftp: { settings: (port, host) => ({ host, port }) },
  smtp: { settings: (port, host) => ({ host, port }) },
  svc: { settings: (port, host) => ({ url: `http://${host}:${port}`, type: 'App' }) },
  sqlserver: { settings: (port, host) => ({ url: `sqlserver://monitor@${host}:${port}`, password: account.password }) },
  tls: { settings: (port, host) => ({ host, port }) },
  ...Object.fromEntries(kindsWithRows.flatMap((row) => (row.silent === 'no TCP' ? [] : [[row.kind, row.silent]]))),
}
