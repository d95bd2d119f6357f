import { afterAll, beforeAll, expect, test } from 'vitest'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { runKind, secret } from '../../support/engine/run-kind.ts'
import { mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { nginxMissing, startNginx } from '../../support/servers/nginx.ts'
import { pgbouncerMissing, startPgbouncer } from '../../support/servers/pgbouncer.ts'
import { postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { administrator, rabbitmqMissing, startRabbitmq } from '../../support/servers/rabbitmq.ts'
import { redisMissing, startRedis } from '../../support/servers/redis.ts'
import { slapdMissing, startSlapd } from '../../support/servers/slapd.ts'
import { sshdMissing, startSshd } from '../../support/servers/sshd.ts'
import { startVsftpd, vsftpdMissing } from '../../support/servers/vsftpd.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type Server = {
  readonly port: number
  readonly freeze: () => void
  readonly thaw: () => void
  readonly remove: () => Promise<void>
}
type Row = {
  readonly name: string
  readonly missing: string | undefined
  readonly kind: KindName
  readonly start: () => Promise<Server>
  readonly settings: (server: Server) => Readonly<Record<string, unknown>>
}
const host = '127.0.0.1'
const password = secret('correct-horse-7')

const rows: readonly Row[] = [
  {
    name: 'Redis',
    missing: redisMissing,
    kind: 'redis',
    start: () => startRedis(),
    settings: ({ port }) => ({ url: `redis://${host}:${port}` }),
  },
  {
    name: 'PostgreSQL',
    missing: postgresMissing,
    kind: 'postgres',
    start: () => startPostgres(),
    settings: ({ port }) => ({ url: `postgres://postgres@${host}:${port}/postgres` }),
  },
  {
    name: 'MariaDB',
    missing: mariadbMissing,
    kind: 'mysql',
    start: () => startMariadb(),
    settings: ({ port }) => ({ url: `mysql://monitor@${host}:${port}/`, password }),
  },
  {
    name: 'PgBouncer',
    missing: pgbouncerMissing,
    kind: 'pgbouncer',
    start: () => startPgbouncer({ users: { stats: 'correct-horse-7' }, databases: {} }),
    settings: ({ port }) => ({ url: `postgres://stats@${host}:${port}/`, password }),
  },
  {
    name: 'nginx',
    missing: nginxMissing,
    kind: 'http',
    start: () => startNginx(),
    settings: ({ port }) => ({ url: `http://${host}:${port}/` }),
  },
  {
    name: 'RabbitMQ',
    missing: rabbitmqMissing,
    kind: 'rabbitmq',
    start: () => startRabbitmq(),
    settings: ({ port }) => ({
      url: `http://${host}:${port}`,
      username: administrator.username,
      password: secret(administrator.password),
    }),
  },
  {
    name: 'OpenLDAP',
    missing: slapdMissing,
    kind: 'ldap',
    start: () => startSlapd(),
    settings: ({ port }) => ({ url: `ldap://${host}:${port}` }),
  },
  {
    name: 'vsftpd',
    missing: vsftpdMissing,
    kind: 'ftp',
    start: () => startVsftpd(),
    settings: ({ port }) => ({ host, port, tls: 'off' }),
  },
  {
    name: 'sshd',
    missing: sshdMissing,
    kind: 'sftp',
    start: () => startSshd(),
    settings: ({ port }) => ({ host, port }),
  },
]

for (const { name, missing, kind: kindName, start, settings } of rows) {
  peerSuite(missing, `a frozen ${name}`, () => {
    let server: Server
    beforeAll(async () => {
      server = await start()
    }, 180_000)
    afterAll(async () => {
      server.thaw()
      await server.remove()
    })

    test(`H21 ${name} under SIGSTOP accepts the connection and sends nothing, and the message says for how long`, async () => {
      const kind = (await monitors[kindName].load()).default as AnyKind as Kind<SettingsSpec>
      const look = async () =>
        (await runKind(kind, settings(server) as never, 'Basic', { timeoutMs: 3_000 }))
          .filter(({ status }) => status === 'failed')
          .map(({ fault, message }) => `${fault}: ${message}`)
          .join('\n')
      const silent =
        /^timeout: 127\.0\.0\.1:\d+ accepted the connection but sent nothing for (?:[2-9]|\d\d)(?:\.\d+)? s/m
      expect(await look()).not.toMatch(/sent nothing/)
      server.freeze()
      // A process with many threads stops a moment after the signal.
      await expect.poll(look, { timeout: 30_000, interval: 100 }).toMatch(silent)
      server.thaw()
    }, 60_000)
  })
}
