import { createConnection } from 'mysql2/promise'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../support/servers/mariadb.ts'
import { type Pgbouncer, pgbouncerMissing, startPgbouncer } from '../support/servers/pgbouncer.ts'
import {
  debianPostgres,
  debianPostgresMissing,
  type PostgresServer,
  startPostgres,
  tlsSettings,
} from '../support/servers/postgres.ts'
import { freePort, serverFolder } from '../support/servers/server.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { fails, type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())
const password = 'correct horse'
const env = { PASSWORD: password }
const here = "'127.0.0.1'"

type Mariadb = { readonly plain: MariadbServer; readonly galera: MariadbServer; readonly fiveDays: MariadbServer }

const mysql =
  (more: object = {}, name: keyof Mariadb = 'plain') =>
  (servers: Mariadb) => ({
    kind: 'mysql',
    url: servers[name].url('monitor', 'orders'),
    password: { env: 'PASSWORD' },
    restarted: '0s',
    ...more,
  })
/** Executes statements of root, and others to undo them. */
const sql =
  (plant: string, cure: string, name: keyof Mariadb = 'plain') =>
  async (servers: Mariadb) => {
    await servers[name].query(plant)
    return async () => void (await servers[name].query(cure))
  }
const account = `monitor@${here}`
const galera = '/usr/lib/galera/libgalera_smm.so'
/** How a node listens, and gives up another one after about a second. */
const galeraNode = (cluster: string, port: number): readonly string[] => [
  '--wsrep-on=ON',
  `--wsrep-provider=${galera}`,
  `--wsrep-cluster-address=${cluster}`,
  '--wsrep-node-address=127.0.0.1',
  '--wsrep-sst-method=skip',
  `--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:${port};ist.recv_addr=127.0.0.1:${port + 1};evs.keepalive_period=PT0.2S;evs.suspect_timeout=PT1S;evs.inactive_timeout=PT2S;evs.inactive_check_period=PT0.5S`,
  '--binlog-format=ROW',
  '--innodb-autoinc-lock-mode=2',
]
const galeraPort = (node: MariadbServer): string =>
  /listening at tcp:\/\/127\.0\.0\.1:(\d+)/.exec(node.log())?.[1] ?? ''

const mariadbRows: readonly Row<Mariadb>[] = [
  {
    fault: 'the account is locked',
    blind: 'held',
    monitor: mysql(),
    plant: sql(`ALTER USER ${account} ACCOUNT LOCK`, `ALTER USER ${account} ACCOUNT UNLOCK`),
    expected: fails('connect', 'auth', /locked/),
  },
  {
    fault: 'the password of the account has expired',
    blind: 'false green',
    monitor: mysql(),
    plant: sql(`ALTER USER ${account} PASSWORD EXPIRE`, `ALTER USER ${account} IDENTIFIED BY '${password}'`),
    expected: fails('query', 'auth', /expired/),
  },
  {
    fault: 'the account has used up the connections that it may open in an hour',
    blind: 'held',
    monitor: mysql(),
    plant: async (servers) => {
      const cure = await sql(
        `ALTER USER ${account} WITH MAX_CONNECTIONS_PER_HOUR 1; FLUSH USER_RESOURCES`,
        `ALTER USER ${account} WITH MAX_CONNECTIONS_PER_HOUR 0; FLUSH USER_RESOURCES`,
      )(servers)
      const used = await createConnection({ host: '127.0.0.1', port: servers.plain.port, user: 'monitor', password })
      await used.end()
      return cure
    },
    expected: fails('connect', 'any', /max_connections_per_hour/, { never: /password/ }),
  },
  {
    fault: 'the server accepts encrypted connections only',
    blind: 'wrong expectation',
    monitor: mysql(),
    plant: sql('SET GLOBAL require_secure_transport = 1', 'SET GLOBAL require_secure_transport = 0'),
    // MariaDB answers as it does to a wrong password.
    expected: fails('connect', 'auth', /refused the sign-in of "monitor"/),
  },
  {
    fault: 'the certificate ends in 5 days',
    blind: 'wrong expectation',
    monitor: mysql({ tls: { mode: 'verify', servername: 'svc.test', caFile: certificates?.caFile } }, 'fiveDays'),
    expected: warns('certificate', /in [45](?:\.\d)? d/),
  },
  {
    fault: 'the server speaks no TLS, and svc requires it',
    blind: 'wrong expectation',
    monitor: mysql({ tls: { mode: 'verify', servername: 'svc.test', caFile: certificates?.caFile } }),
    expected: fails('connect', 'tls', /TLS/),
  },
  {
    fault: 'the server was made read-only and forgotten',
    blind: 'held',
    monitor: mysql({ role: 'source' }),
    plant: sql('SET GLOBAL read_only = 1', 'SET GLOBAL read_only = 0'),
    expected: fails('role', 'data', /read.only/),
  },
  {
    fault: 'a healthy node of Galera',
    blind: 'held',
    monitor: mysql({ allowWrites: true }, 'galera'),
    expected: { state: 'healthy' },
  },
  {
    fault: 'a node of Galera is desynchronized, as during a backup',
    blind: 'held',
    monitor: mysql({}, 'galera'),
    plant: sql('SET GLOBAL wsrep_desync = ON', 'SET GLOBAL wsrep_desync = OFF', 'galera'),
    expected: warns('galera', /Desync/),
  },
  {
    fault: 'a node of Galera refuses all statements (wsrep_reject_queries)',
    blind: 'false green',
    monitor: mysql({}, 'galera'),
    plant: sql('SET GLOBAL wsrep_reject_queries = ALL', 'SET GLOBAL wsrep_reject_queries = NONE', 'galera'),
    mode: 'Standard',
    expected: fails('galera', 'data', /refuses all queries/),
  },
  {
    fault: 'a node of Galera has lost its quorum',
    blind: 'wrong expectation',
    mode: 'Standard',
    monitor: mysql({}, 'galera'),
    plant: async ({ galera: node }) => {
      const other = await startMariadb(galeraNode(`gcomm://127.0.0.1:${galeraPort(node)}`, await freePort()))
      const clusterIs = (state: string): Promise<unknown> =>
        until(
          async () => (await node.query("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_status'"))[0]?.['Value'] === state,
          30_000,
        )
      process.kill(other.pid, 'SIGKILL')
      await clusterIs('non-Primary')
      await other.remove()
      return async () => {
        await node.query("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'")
        await clusterIs('Primary')
      }
    },
    expected: fails('galera', 'data', /not ready for queries/),
  },
]

const mariadbAccounts = `CREATE DATABASE orders; CREATE USER ${account} IDENTIFIED BY '${password}';
  GRANT PROCESS, SLAVE MONITOR ON *.* TO ${account}; GRANT SELECT ON orders.* TO ${account};
  GRANT CREATE, DROP, SELECT, INSERT, DELETE ON orders.svc_probe TO ${account}`

corpus<Mariadb>({
  server: 'MariaDB, blind rows',
  env,
  missing: mariadbMissing ?? opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const folder = serverFolder('mariadb')
    const tls = tlsSettings(certificates.fiveDays, folder)
      .slice(1)
      .map((text) => text.split('=')[1])
    const servers = {
      plain: await startMariadb(['--skip-ssl']),
      galera: await startMariadb(galeraNode('gcomm://', await freePort())),
      fiveDays: await startMariadb([`--ssl-cert=${tls[0]}`, `--ssl-key=${tls[1]}`], folder),
    }
    for (const server of Object.values(servers)) await server.query(mariadbAccounts)
    return servers
  },
  rows: mariadbRows,
})

type Postgres = { readonly plain: PostgresServer; readonly fiveDays: PostgresServer; readonly standby: PostgresServer }

const postgres =
  (more: object = {}, name: keyof Postgres = 'plain', database?: string) =>
  (servers: Postgres) => ({
    kind: 'postgres',
    url: servers[name].url('monitor', database),
    password: { env: 'PASSWORD' },
    restarted: '0s',
    ...more,
  })
const statements =
  (plant: readonly string[], cure: readonly string[]) =>
  async ({ plain }: Postgres) => {
    for (const one of plant) await plain.query(one)
    return async () => {
      for (const one of cure) await plain.query(one)
    }
  }
const set = (name: string, value: string) => async (servers: Postgres) => {
  const [before] = await servers.plain.query(`SHOW ${name}`)
  const shows = async (expected: unknown): Promise<unknown> =>
    await until(async () => (await servers.plain.query(`SHOW ${name}`))[0]?.[name] === expected)
  await statements([`ALTER SYSTEM SET ${name} = '${value}'`, 'SELECT pg_reload_conf()'], [])(servers)
  await shows(value)
  return async () => {
    await statements([`ALTER SYSTEM SET ${name} = '${String(before?.[name])}'`, 'SELECT pg_reload_conf()'], [])(servers)
    await shows(before?.[name])
  }
}

const postgresRows: readonly Row<Postgres>[] = [
  {
    fault: 'the certificate ends in 5 days',
    blind: 'held',
    monitor: postgres({ tls: { mode: 'verify', caFile: certificates?.caFile } }, 'fiveDays'),
    expected: warns('certificate', /in [45](?:\.\d)? d/),
  },
  {
    fault: 'the account may no longer sign in (NOLOGIN)',
    blind: 'held',
    monitor: postgres(),
    plant: statements(['ALTER ROLE monitor NOLOGIN'], ['ALTER ROLE monitor LOGIN']),
    expected: fails('connect', 'auth', /not (?:permitted|allowed) to log in/),
  },
  {
    fault: 'the password of the account is no longer valid (VALID UNTIL)',
    blind: 'held',
    monitor: postgres(),
    plant: statements(["ALTER ROLE monitor VALID UNTIL '2020-01-01'"], ["ALTER ROLE monitor VALID UNTIL 'infinity'"]),
    expected: fails('connect', 'auth', /refused the sign-in/),
  },
  {
    fault: 'the account has used up its own connections',
    blind: 'held',
    monitor: postgres(),
    plant: statements(['ALTER ROLE monitor CONNECTION LIMIT 0'], ['ALTER ROLE monitor CONNECTION LIMIT -1']),
    expected: fails('connect', 'any', /too many connections for role|connection limit/i, {
      never: /server accepts no more connections/,
    }),
  },
  {
    fault: 'the database accepts no connections (ALLOW_CONNECTIONS)',
    blind: 'held',
    monitor: postgres({}, 'plain', 'orders'),
    plant: statements(
      ['ALTER DATABASE orders WITH ALLOW_CONNECTIONS false'],
      ['ALTER DATABASE orders WITH ALLOW_CONNECTIONS true'],
    ),
    expected: fails('connect', 'any', /"orders".*not currently accepting connections|accepts no connections/),
  },
  {
    fault: 'no line of pg_hba.conf admits the account',
    blind: 'held',
    env: { PASSWORD: password },
    monitor: (servers) => ({ ...postgres()(servers), url: servers.plain.url('stranger') }),
    plant: statements(["CREATE ROLE stranger LOGIN PASSWORD 'correct horse'"], ['DROP ROLE stranger']),
    expected: fails('connect', 'auth', /pg_hba\.conf/),
  },
  {
    fault: 'all transactions are read-only by default, and svc may write',
    blind: 'held',
    monitor: postgres({ allowWrites: true }),
    plant: set('default_transaction_read_only', 'on'),
    expected: fails('write', 'any', /read-only/),
  },
  {
    fault: 'archiving is on without a command, so that WAL accumulates',
    blind: 'held',
    monitor: postgres(),
    plant: set('archive_command', ''),
    expected: warns('archiver', /archive_command/),
  },
  {
    fault: 'autovacuum is switched off',
    blind: 'held',
    monitor: postgres(),
    plant: set('autovacuum', 'off'),
    expected: warns('last vacuum', /autovacuum/),
  },
  {
    fault: 'replay on the standby is paused and forgotten',
    blind: 'held',
    monitor: postgres({ replicationLag: { limit: '500ms' } }, 'standby'),
    plant: async ({ plain, standby }) => {
      await standby.query('SELECT pg_wal_replay_pause()')
      await plain.query('CREATE TABLE late (id int)')
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      return async () => {
        await standby.query('SELECT pg_wal_replay_resume()')
        await plain.query('DROP TABLE late')
      }
    },
    expected: fails('replication lag', 'any', /paused/),
  },
]

const postgresAccounts = `CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor;
  CREATE SCHEMA svc_probe AUTHORIZATION monitor`

corpus<Postgres>({
  server: 'PostgreSQL 15, blind rows',
  env,
  missing: debianPostgresMissing ?? opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const tls = tlsSettings(certificates.fiveDays, serverFolder('postgres'))
    const fiveDays = await startPostgres(tls, '', debianPostgres)
    const fresh = await startPostgres(
      ['archive_mode=on', 'wal_level=replica', 'hot_standby=on'],
      'host all stranger 127.0.0.1/32 reject\n',
      debianPostgres,
    )
    await fresh.query("ALTER SYSTEM SET archive_command = 'true'")
    await fiveDays.query(postgresAccounts)
    await fresh.query(postgresAccounts)
    await fresh.query('CREATE DATABASE orders')
    const { primary, standby } = await fresh.standby()
    await until(async () => (await primary.query('SELECT 1 FROM pg_stat_replication')).length === 1)
    return { plain: primary, standby, fiveDays }
  },
  rows: postgresRows,
})

type Pool = { readonly pool: Pgbouncer }
const tlsPool = (): Promise<Pgbouncer> => {
  if (!certificates) throw new Error('no certificates')
  const [, cert, key] = tlsSettings(certificates.fiveDays, serverFolder('pgbouncer')).map((text) => text.split('=')[1])
  return startPgbouncer({
    users: { stats: password },
    databases: { orders: 'host=127.0.0.1 port=1 dbname=orders' },
    settings: { client_tls_sslmode: 'require', client_tls_cert_file: cert ?? '', client_tls_key_file: key ?? '' },
  })
}

corpus<Pool>({
  server: 'PgBouncer, blind rows',
  env,
  missing: pgbouncerMissing ?? opensslMissing(),
  start: async () => ({ pool: await tlsPool() }),
  rows: [
    {
      fault: 'healthy, with a limit of its own for the certificate',
      monitor: ({ pool }) => ({
        kind: 'pgbouncer',
        url: pool.url('stats', 'pgbouncer'),
        password: { env: 'PASSWORD' },
        tls: { mode: 'verify', caFile: certificates?.caFile },
        certificate: { warn: '3d', limit: '2d' },
      }),
      expected: { state: 'healthy' },
    },
    {
      fault: 'the certificate ends in 5 days',
      blind: 'held',
      monitor: ({ pool }) => ({
        kind: 'pgbouncer',
        url: pool.url('stats', 'pgbouncer'),
        password: { env: 'PASSWORD' },
        tls: { mode: 'verify', caFile: certificates?.caFile },
      }),
      expected: warns('certificate', /in [45](?:\.\d)? d/),
    },
    {
      fault: 'the server accepts encrypted connections only',
      blind: 'wrong expectation',
      monitor: ({ pool }) => ({
        kind: 'pgbouncer',
        url: pool.url('stats', 'pgbouncer'),
        password: { env: 'PASSWORD' },
      }),
      expected: fails('connect', 'any', /SSL required/),
    },
  ],
})
