import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { type Exim, eximMissing, startExim } from '../support/servers/exim.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../support/servers/mariadb.ts'
import { type Pgbouncer, pgbouncerMissing, startPgbouncer } from '../support/servers/pgbouncer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { type RedisServer, redisMissing, startRedis } from '../support/servers/redis.ts'
import { type Slapd, slapdMissing, startSlapd } from '../support/servers/slapd.ts'
import { type Sshd, sshdMissing, startSshd } from '../support/servers/sshd.ts'
import { startVsftpd, type Vsftpd, vsftpdMissing } from '../support/servers/vsftpd.ts'
import { corpus } from './corpus.ts'
import { type Expected, fails, type Row, warns } from './row.ts'

const password = 'correct horse'

/** Servers at one address of loopback, and a hosts file of its own that gives their names a second one, which is dead. */
type Servers = {
  readonly mounts: MountNamespace
  readonly redis: RedisServer
  readonly postgres: PostgresServer
  readonly mariadb: MariadbServer
  readonly pgbouncer: Pgbouncer
  readonly slapd: Slapd
  readonly sshd: Sshd
  readonly vsftpd: Vsftpd
  readonly exim: Exim
}

/** `live-first` and `dead-first` have the same two addresses; `one` has the live one. */
const hostsFile = `127.0.0.1 localhost one.svc.test live-first.svc.test
127.0.3.2 live-first.svc.test dead-first.svc.test
127.0.0.1 dead-first.svc.test
`
type Name = 'one' | 'live-first' | 'dead-first'
type Monitor = (servers: Servers, host: string) => Readonly<Record<string, unknown>>

const secret = { password: { env: 'SVC_TWO_ADDRESSES' } }
/** The monitor of each server, and the check that meets the dead address. */
const monitors: Readonly<Record<string, readonly [check: string, monitor: Monitor]>> = {
  'a Redis': [
    'connect',
    ({ redis: { port } }, host) => ({ kind: 'redis', url: `redis://${host}:${port}`, restarted: '0s' }),
  ],
  'a PostgreSQL': [
    'connect',
    ({ postgres: { port } }, host) => ({
      kind: 'postgres',
      url: `postgres://monitor@${host}:${port}/postgres`,
      restarted: '0s',
      ...secret,
    }),
  ],
  'a MariaDB': [
    'connect',
    ({ mariadb: { port } }, host) => ({
      kind: 'mysql',
      url: `mysql://monitor@${host}:${port}/`,
      restarted: '0s',
      ...secret,
    }),
  ],
  'a PgBouncer': [
    'connect',
    ({ pgbouncer: { port } }, host) => ({
      kind: 'pgbouncer',
      url: `postgres://stats@${host}:${port}/pgbouncer`,
      ...secret,
    }),
  ],
  'an OpenLDAP': ['connect', ({ slapd: { port } }, host) => ({ kind: 'ldap', url: `ldap://${host}:${port}` })],
  'an sshd': ['banner', ({ sshd: { port, hostKey } }, host) => ({ kind: 'sftp', host, port, hostKey: [hostKey] })],
  'a vsftpd': ['banner', ({ vsftpd: { port } }, host) => ({ kind: 'ftp', host, port, tls: 'off' })],
  'an Exim': ['banner', ({ exim: { port } }, host) => ({ kind: 'smtp', host, port, tls: 'off' })],
}

const healthy: Expected = { state: 'healthy' }
const dead = /^127\.0\.3\.2:\d+ refused the connection/

const rows = Object.entries(monitors).flatMap(([server, [check, monitor]]): readonly Row<Servers>[] => {
  const at = (name: Name) => (servers: Servers) => monitor(servers, `${name}.svc.test`)
  const warning: Expected = warns(check, dead)
  const failed: Expected = fails(check, 'refused', dead)
  const both = { expected: failed, shallower: { Basic: warning, Standard: warning }, before: 'healthy' } as const
  return [
    {
      fault: `${server} at one address`,
      monitor: at('one'),
      expected: healthy,
      shallower: { Basic: healthy, Standard: healthy },
    },
    { fault: `${server}, of whose two addresses the second is dead`, monitor: at('live-first'), ...both },
    {
      ...both,
      fault: `${server}, of whose two addresses the first is dead`,
      monitor: at('dead-first'),
      before: 'warning',
    },
  ]
})

const missing =
  mountNamespaceMissing ??
  redisMissing ??
  postgresMissing ??
  mariadbMissing ??
  pgbouncerMissing ??
  slapdMissing ??
  sshdMissing ??
  vsftpdMissing ??
  eximMissing

corpus<Servers>({
  server: 'servers under names with two addresses',
  missing,
  start: async () => {
    process.env.SVC_TWO_ADDRESSES = password
    const [redis, postgres, mariadb, slapd, sshd, vsftpd, exim, mounts] = await Promise.all([
      startRedis(),
      startPostgres(),
      startMariadb(),
      startSlapd({}),
      startSshd(),
      startVsftpd(),
      startExim([]),
      startMountNamespace(),
    ])
    await postgres.query(`CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor`)
    await mariadb.query(`CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${password}'`)
    await mariadb.query("GRANT SELECT, SLAVE MONITOR, BINLOG MONITOR, PROCESS ON *.* TO monitor@'127.0.0.1'")
    const databases = { postgres: `host=127.0.0.1 port=${postgres.port} dbname=postgres` }
    const pgbouncer = await startPgbouncer({ users: { stats: password }, databases })
    const path = join(mounts.folder, 'hosts')
    writeFileSync(path, hostsFile)
    await mounts.shell(`mount --bind ${path} /etc/hosts`)
    return { mounts, redis, postgres, mariadb, pgbouncer, slapd, sshd, vsftpd, exim }
  },
  stop: async ({ mounts, redis, postgres, mariadb, pgbouncer, slapd, sshd, vsftpd, exim }) => {
    process.env.SVC_TWO_ADDRESSES = undefined
    await mounts.remove()
    await Promise.all([
      redis.remove(),
      postgres.remove(),
      mariadb.remove(),
      pgbouncer.remove(),
      slapd.remove(),
      sshd.remove(),
      vsftpd.remove(),
      exim.remove(),
    ])
  },
  mounts: ({ mounts }) => mounts,
  rows,
})
