import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import { type CutProxy, cutProxy } from '../support/faults/cut-proxy.ts'
import {
  configured,
  conflictingRow,
  deadRows,
  hangingCommits,
  type PlantedFault,
  subscribed,
} from '../support/faults/postgres-faults.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freePort } from '../support/servers/server.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { type Cure, fails, notChecked, type Row, warns } from './row.ts'

const password = 'correct horse'
const env = { POSTGRES: password, WRONG: 'another password' }

const ask = (server: PostgresServer, more: object = {}, user = 'monitor') => ({
  kind: 'postgres',
  url: server.url(user),
  password: { env: 'POSTGRES' },
  restarted: '0s',
  ...more,
})

const accounts = `CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor;
  CREATE ROLE limited LOGIN PASSWORD '${password}'; CREATE ROLE app LOGIN PASSWORD '${password}';
  CREATE SCHEMA svc_probe AUTHORIZATION monitor`

/** check_pgsql and the action of check_postgres that comes nearest. */
const others = (server: PostgresServer, action: string, ...limits: string[]): readonly PeerProgram[] => [
  {
    program: 'check_pgsql',
    args: ['-H', '127.0.0.1', '-P', String(server.port), '-l', 'monitor', '-d', 'postgres'],
    env: { PGPASSWORD: password },
  },
  {
    program: 'check_postgres',
    args: [
      '--action',
      action,
      '-H',
      '127.0.0.1',
      '-p',
      String(server.port),
      '-u',
      'postgres',
      '--db',
      'postgres',
      ...limits,
    ],
  },
]

const planted = async (fault: Promise<PlantedFault>): Promise<Cure> => (await fault).end

/** Sessions that are open until the fault is cured. */
async function sessions(server: PostgresServer, count: number): Promise<Cure> {
  const open: pg.Client[] = []
  for (let n = 0; n < count; n += 1) open.push(await server.client())
  return async () => {
    for (const one of open) await one.end()
  }
}

/** One session that has run `sql` and stays open. */
async function session(server: PostgresServer, sql: string): Promise<Cure> {
  const open = await server.client()
  await open.query(sql)
  await wait(50)
  return () => open.end()
}

async function lockWait(server: PostgresServer): Promise<Cure> {
  await server.query('CREATE TABLE locked ()')
  const [holder, waiter] = [await server.client(), await server.client()]
  await holder.query('BEGIN; LOCK TABLE locked')
  const waiting = waiter.query('BEGIN; LOCK TABLE locked').catch(() => {})
  await until(async () => (await server.query('SELECT 1 FROM pg_locks WHERE NOT granted')).length > 0)
  await wait(100)
  return async () => {
    await holder.query('ROLLBACK')
    await waiting
    await holder.end()
    await waiter.end()
    await server.query('DROP TABLE locked')
  }
}

type Fixture = {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  readonly link: CutProxy
  readonly subscriber: PostgresServer
  readonly subscription: PlantedFault
}

const streaming = async (primary: PostgresServer): Promise<unknown> =>
  await until(
    async () => (await primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")).length > 0,
    30_000,
  )

/** With the statements that the reference names, for the time of a row. */
const readingFiles = async (primary: PostgresServer): Promise<Cure> => {
  const views = 'pg_file_settings, pg_hba_file_rules, pg_config'
  const calls = 'pg_show_all_file_settings(), pg_hba_file_rules(), pg_config()'
  await primary.query(`GRANT SELECT ON ${views} TO monitor; GRANT EXECUTE ON FUNCTION ${calls} TO monitor`)
  return async () =>
    void (await primary.query(
      `REVOKE SELECT ON ${views} FROM monitor; REVOKE EXECUTE ON FUNCTION ${calls} FROM monitor`,
    ))
}

/** Adds lines to a file of the server, which reads it again. */
const withLines =
  (file: string, lines: string) =>
  async ({ primary }: Fixture): Promise<Cure> => {
    const revoke = await readingFiles(primary)
    const path = join(primary.folder, 'data', file)
    const before = readFileSync(path, 'utf8')
    appendFileSync(path, lines)
    await primary.query('SELECT pg_reload_conf()')
    return async () => {
      // A setting that is removed from the file waits for a restart, too.
      const none = file === 'postgresql.auto.conf' ? "shared_preload_libraries = ''\n" : ''
      writeFileSync(path, `${before}${none}`)
      await primary.query('SELECT pg_reload_conf()')
      await revoke()
    }
  }

const nextStartFails: readonly Row<Fixture>[] = (
  [
    [
      'pg_hba.conf',
      'host all all 10.0.0.0/40 trust\n',
      'configuration files',
      'warning',
      /^pg_hba\.conf line \d+: invalid CIDR/,
    ],
    ['postgresql.conf', 'nonsense = 3\n', 'configuration files', 'warning', /^postgresql\.conf line \d+: unrecognized/],
    [
      'postgresql.auto.conf',
      "shared_preload_libraries = 'gone'\n",
      'preload libraries',
      'unhealthy',
      /^gone does not exist: the server does not start again/,
    ],
  ] as const
).map(([file, lines, check, state, says]) => ({
  fault: `a mistake in ${file}: ${lines.trim()}`,
  monitor: ({ primary }) => ask(primary),
  plant: withLines(file, lines),
  expected: { state, check, says },
  shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
  before: 'healthy',
}))

const rows: readonly Row<Fixture>[] = [
  ...nextStartFails,
  {
    fault: 'an account that may read the files of the server, which have no mistake',
    monitor: ({ primary }) => ask(primary),
    plant: async ({ primary }) => await readingFiles(primary),
    expected: { state: 'healthy' },
    peers: ({ primary }) => others(primary, 'connection'),
  },
  {
    fault: 'a database whose collation has another version than the system has now',
    monitor: ({ primary }) => ask(primary),
    plant: async ({ primary }) => {
      await primary.query("CREATE DATABASE sorted TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'")
      await primary.query("UPDATE pg_database SET datcollversion = '1.1' WHERE datname = 'sorted'")
      return async () => void (await primary.query('DROP DATABASE sorted'))
    },
    client: {
      asks: async ({ primary }) =>
        await primary.query('CREATE DATABASE copied TEMPLATE sorted').then(
          () => 'ok',
          (error: Error) => error.message,
        ),
      gets: /collation version mismatch/,
    },
    expected: warns('collation versions', /^sorted: the system sorts text differently since/),
    shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
    before: 'healthy',
  },
  {
    fault: 'a healthy primary',
    monitor: ({ primary }) =>
      ask(primary, {
        role: 'primary',
        replicas: 1,
        allowWrites: true,
        largeTables: 0,
        queries: [{ name: 'jobs', sql: 'SELECT count(*) FROM jobs', atMost: 10 }],
      }),
    expected: { state: 'healthy' },
    peers: ({ primary }) => others(primary, 'connection'),
  },
  {
    fault: 'a healthy standby',
    monitor: ({ standby }) => ask(standby, { role: 'standby' }),
    expected: { state: 'healthy' },
    peers: ({ standby }) => others(standby, 'connection'),
  },
  { fault: 'a healthy subscriber', monitor: ({ subscriber }) => ask(subscriber), expected: { state: 'healthy' } },
  {
    fault: 'the password was changed',
    monitor: ({ primary }) => ask(primary, { password: { env: 'WRONG' } }),
    expected: fails('connect', 'auth', /refused the sign-in of "monitor": password authentication failed/),
  },
  {
    fault: 'the database does not exist',
    monitor: ({ primary }) => ask(primary, { url: primary.url('monitor', 'nowhere') }),
    expected: fails('connect', 'data', /database "nowhere" does not exist/),
  },
  {
    fault: 'nothing listens on the port',
    monitor: () => ({
      kind: 'postgres',
      url: 'postgres://monitor@127.0.0.1:1/postgres',
      password: { env: 'POSTGRES' },
    }),
    expected: fails('connect', 'refused', /refused/),
  },
  {
    fault: 'the server is frozen',
    monitor: ({ primary }) => ask(primary, { timeout: '2s' }),
    plant: async ({ primary }) => {
      primary.freeze()
      return primary.thaw
    },
    expected: fails('connect', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
    peers: ({ primary }) => others(primary, 'connection', '--timeout', '5'),
  },
  {
    fault: 'a standby where a primary is expected',
    monitor: ({ standby }) => ask(standby, { role: 'primary' }),
    expected: fails('role', 'data', /role is standby, expected primary/),
    peers: ({ standby }) => others(standby, 'connection'),
  },
  {
    fault: 'a primary whose transactions only read',
    monitor: ({ primary }) => ask(primary, { role: 'primary' }),
    plant: ({ primary }) => planted(configured(primary, { default_transaction_read_only: 'on' })),
    expected: fails('role', 'data', /read-only \(default_transaction_read_only\)/),
    peers: ({ primary }) => others(primary, 'connection'),
  },
  {
    fault: 'only the role of svc has read-only transactions',
    monitor: ({ primary }) => ask(primary, { role: 'primary', allowWrites: true }),
    plant: async ({ primary }) => {
      await primary.query('ALTER ROLE monitor SET default_transaction_read_only = on')
      return async () => void (await primary.query('ALTER ROLE monitor RESET default_transaction_read_only'))
    },
    client: {
      asks: async ({ primary }) => {
        await primary.query('CREATE TABLE written (id int); DROP TABLE written')
        return 'written'
      },
      gets: /^written$/,
    },
    expected: { state: 'healthy' },
    shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
    before: 'primary, but read-only',
    peers: ({ primary }) => others(primary, 'connection'),
  },
  {
    fault: 'the account lacks a privilege',
    monitor: ({ primary }) => ask(primary, {}, 'limited'),
    expected: warns('longest transaction', /hidden from this account, which needs GRANT pg_monitor TO "limited"$/),
  },
  {
    fault: 'the account lacks a privilege for a check that svc.yaml demands',
    monitor: ({ primary }) => ask(primary, { longestTransaction: { limit: '10m' } }, 'limited'),
    expected: notChecked('longest transaction', /hidden from this account, which needs GRANT pg_monitor TO "limited"$/),
    before: 'warning, exit code 0',
  },
  {
    fault: 'nearly all connections are in use',
    monitor: ({ primary }) => ask(primary),
    plant: ({ primary }) => sessions(primary, 16),
    expected: fails('connections', 'threshold', /17 of 17 usable connections/),
    peers: ({ primary }) => others(primary, 'backends', '-w', '80%', '-c', '95%'),
  },
  {
    fault: 'all connections are in use',
    monitor: ({ primary }) => ask(primary),
    plant: ({ primary }) => sessions(primary, 17),
    expected: fails('connect', 'refused', /has no free connection/),
    peers: ({ primary }) => others(primary, 'backends', '-w', '80%', '-c', '95%'),
  },
  {
    fault: 'a transaction is open for too long',
    monitor: ({ primary }) => ask(primary, { longestTransaction: { limit: '10ms' } }),
    plant: ({ primary }) => session(primary, 'BEGIN; SELECT 1'),
    expected: fails('longest transaction', 'threshold', /^pid \d+, user postgres/),
  },
  {
    fault: 'a session is idle in a transaction',
    monitor: ({ primary }) => ask(primary, { idleInTransaction: { limit: '10ms' } }),
    plant: ({ primary }) => session(primary, 'BEGIN; SELECT 1'),
    expected: fails(
      'idle in transaction',
      'threshold',
      /1 session is idle in a transaction, the longest \(pid \d+, user postgres\)/,
    ),
  },
  {
    fault: 'a session waits for a lock',
    monitor: ({ primary }) => ask(primary, { lockWait: { limit: '50ms' } }),
    plant: ({ primary }) => lockWait(primary),
    expected: fails('lock wait', 'threshold', /1 session is waiting for a lock, the longest for/),
  },
  {
    fault: 'no synchronous standby: every COMMIT hangs',
    monitor: ({ primary }) => ask(primary, { commitWait: { limit: '10ms' } }),
    plant: ({ primary }) => planted(hangingCommits(primary)),
    expected: fails('synchronous standbys', 'threshold', /^a commit waits for 1 standby; streaming standbys: 0/),
    peers: ({ primary }) => others(primary, 'connection'),
  },
  {
    fault: 'a commit waits for a standby that does not confirm it',
    monitor: ({ primary }) => ask(primary, { commitWait: { limit: '10ms' } }),
    plant: async ({ primary, standby }) => {
      standby.freeze()
      // Not `*`: the subscriber would confirm it too.
      const fault = await hangingCommits(primary, '"reporting-1"')
      return async () => {
        standby.thaw()
        await fault.end()
        await streaming(primary)
      }
    },
    expected: fails('commit wait', 'threshold', /^1 commit is waiting for a standby, its statement for/),
  },
  {
    fault: 'a replica is missing',
    monitor: ({ primary }) => ask(primary, { replicas: 2 }),
    expected: fails('replicas', 'threshold', /^1 of 2 expected replicas is streaming/),
    peers: ({ primary }) => others(primary, 'connection'),
  },
  {
    fault: 'the standby has a dead link to its primary',
    monitor: ({ standby }) => ask(standby, { walReceiver: { warn: '3s', limit: '4s' } }),
    plant: async ({ link, standby, primary }) => {
      link.stall()
      await wait(4_500)
      return async () => {
        link.heal('lost')
        await standby.query('SELECT pg_terminate_backend(pid) FROM pg_stat_wal_receiver')
        await streaming(primary)
      }
    },
    expected: fails('wal receiver', 'threshold', /^last message from its primary [\d.]+ s ago/),
    peers: ({ standby }) => others(standby, 'connection'),
  },
  {
    fault: 'the standby cannot reach its primary',
    monitor: ({ standby }) => ask(standby),
    plant: async ({ standby, primary }) => {
      const [row] = await standby.query("SELECT current_setting('primary_conninfo') AS conninfo")
      const follow = async (conninfo: string): Promise<void> => {
        await standby.query(`ALTER SYSTEM SET primary_conninfo = '${conninfo}'`)
        await standby.query('SELECT pg_reload_conf()')
      }
      await follow(`host=127.0.0.1 port=${await freePort()} user=postgres`)
      await until(async () => (await standby.query('SELECT 1 FROM pg_stat_wal_receiver')).length === 0)
      return async () => {
        await follow(String(row?.['conninfo']))
        await streaming(primary)
      }
    },
    expected: fails('wal receiver', 'data', /^not connected to its primary \(no WAL receiver\)/),
    peers: ({ standby }) => others(standby, 'connection'),
  },
  {
    fault: 'the standby does not replay what it receives',
    monitor: ({ standby }) => ask(standby, { replicationLag: { limit: '10ms' } }),
    plant: async ({ primary, standby }) => {
      await standby.query('SELECT pg_wal_replay_pause()')
      await primary.query("COMMENT ON TABLE jobs IS 'changed'")
      await until(
        async () => (await standby.query('SELECT 1 WHERE pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()')).length,
      )
      await wait(50)
      return async () => void (await standby.query('SELECT pg_wal_replay_resume()'))
    },
    expected: fails('replication lag', 'threshold', /replay is paused/),
  },
  {
    fault: 'a standby has much to replay',
    monitor: ({ primary }) => ask(primary, { replicationLag: { warn: '1h' }, replicationBacklog: { limit: '1KiB' } }),
    plant: async ({ primary, standby }) => {
      await standby.query('SELECT pg_wal_replay_pause()')
      await primary.query('CREATE TABLE much AS SELECT generate_series(1, 5000) AS x; DROP TABLE much')
      return async () => void (await standby.query('SELECT pg_wal_replay_resume()'))
    },
    expected: fails('replication backlog', 'threshold', /^reporting-1 has not replayed/),
  },
  {
    fault: 'a replication slot has no consumer',
    monitor: ({ primary }) => ask(primary, { inactiveSlots: { warn: '10ms' } }),
    plant: async ({ primary }) => {
      await primary.query("SELECT pg_create_physical_replication_slot('forgotten', true)")
      await wait(50)
      return async () => void (await primary.query("SELECT pg_drop_replication_slot('forgotten')"))
    },
    expected: warns('slots', /^forgotten has had no consumer for/),
  },
  {
    fault: 'a logical subscription is disabled',
    monitor: ({ subscriber }) => ask(subscriber),
    plant: async ({ subscriber }) => {
      await subscriber.query('ALTER SUBSCRIPTION events DISABLE')
      const running = 'SELECT 1 FROM pg_stat_subscription WHERE pid IS NOT NULL'
      await until(async () => (await subscriber.query(running)).length === 0)
      // The worker counted an error when an earlier row froze or cut its primary, and a disabled subscription with errors fails.
      await subscriber.query('SELECT pg_stat_reset_subscription_stats(NULL)')
      return async () => {
        await subscriber.query('ALTER SUBSCRIPTION events ENABLE')
        await working(subscriber)
      }
    },
    expected: warns('subscriptions', /^events in postgres is disabled/),
    peers: ({ subscriber }) => others(subscriber, 'connection'),
  },
  {
    fault: 'the worker of a logical subscription fails again and again',
    monitor: ({ subscriber }) => ask(subscriber),
    plant: async ({ primary, subscriber }) => await planted(conflictingRow(primary, subscriber)),
    expected: fails('subscriptions', 'data', /events in postgres.*, \d+ errors? since the statistics were reset/),
    peers: ({ subscriber }) => others(subscriber, 'connection'),
  },
  {
    fault: 'the archive command fails',
    monitor: ({ primary }) => ask(primary),
    plant: async ({ primary }) => {
      await archiveWith(primary, 'false')
      await primary.query("COMMENT ON TABLE jobs IS 'archived'; SELECT pg_switch_wal()")
      await until(async () => (await primary.query('SELECT 1 FROM pg_stat_archiver WHERE failed_count > 0')).length)
      return () => archiveAll(primary)
    },
    expected: fails('archiver', 'data', /^archiving is failing: \d+ failures?, /),
    peers: ({ primary }) => others(primary, 'archive_ready', '-w', '10', '-c', '100'),
  },
  {
    fault: 'no archive command is set',
    monitor: ({ primary }) => ask(primary),
    plant: async ({ primary }) => {
      await archiveWith(primary, '')
      return () => archiveAll(primary)
    },
    expected: warns('archiver', /^archive_command is empty/),
    peers: ({ primary }) => others(primary, 'archive_ready', '-w', '10', '-c', '100'),
  },
  {
    fault: 'the archive command hangs',
    monitor: ({ primary }) => ask(primary, { archiveBacklog: { warn: 1, limit: 2 } }),
    plant: async ({ primary }) => {
      await archiveWith(primary, 'sleep 5')
      for (let n = 0; n < 3; n += 1) await primary.query(`COMMENT ON TABLE jobs IS '${n}'; SELECT pg_switch_wal()`)
      return () => archiveAll(primary)
    },
    expected: fails('archive backlog', 'threshold', /^WAL files that wait: [3-9] /),
    peers: ({ primary }) => others(primary, 'archive_ready', '-w', '1', '-c', '2'),
  },
  {
    fault: 'a prepared transaction was forgotten',
    monitor: ({ primary }) => ask(primary, { preparedTransactions: { limit: '10ms' } }),
    plant: async ({ primary }) => {
      await primary.query("BEGIN; CREATE TABLE prepared (); PREPARE TRANSACTION 'order-7'")
      await wait(50)
      return async () => void (await primary.query("ROLLBACK PREPARED 'order-7'"))
    },
    expected: fails('prepared transactions', 'threshold', /\(order-7 of postgres in /),
  },
  {
    fault: 'a sequence is near its end',
    monitor: ({ primary }) => ask(primary),
    plant: async ({ primary }) => {
      await primary.query(
        "CREATE TABLE orders (id serial); GRANT SELECT ON orders_id_seq TO monitor; SELECT setval('orders_id_seq', 2147483000)",
      )
      return async () => void (await primary.query('DROP TABLE orders'))
    },
    expected: fails('sequences', 'threshold', /^public\.orders_id_seq is at 2147483000/),
    peers: ({ primary }) => others(primary, 'sequence', '-w', '70%', '-c', '90%'),
  },
  {
    fault: 'most rows of a table are dead',
    monitor: ({ primary }) => ask(primary),
    plant: ({ primary }) => planted(deadRows(primary, 'dead', 20_000, 0.75)),
    expected: fails('dead tuples', 'threshold', /public\.dead: 75 %/),
    peers: ({ primary }) => others(primary, 'bloat', '-w', '40%', '-c', '80%'),
  },
  {
    fault: 'a large table is due for VACUUM and does not get it',
    monitor: ({ primary }) => ask(primary, { deadTuples: { warn: '98%', limit: '99%' }, lastVacuum: { warn: '1ms' } }),
    plant: ({ primary }) => planted(deadRows(primary, 'unvacuumed', 20_000, 0.75)),
    expected: warns('last vacuum', /public\.unvacuumed/),
  },
  {
    fault: 'rows of a table are dead, beside those of a worse one that svc.yaml leaves out',
    monitor: ({ primary }) => ask(primary, { skipTables: ['/^public\\.staging_/'], lastVacuum: { warn: '1ms' } }),
    plant: async ({ primary }) => {
      const plants = [deadRows(primary, 'staging_1', 20_000, 0.75), deadRows(primary, 'loaded', 40_000, 0.25)]
      const cures = await Promise.all(plants.map(planted))
      return async () => {
        for (const cure of cures) await cure?.()
      }
    },
    expected: warns('dead tuples', /public\.loaded: 25 %/, { never: /staging/ }),
  },
  {
    fault: 'a query of the operator finds too much',
    monitor: ({ primary }) =>
      ask(primary, { queries: [{ name: 'waiting jobs', sql: 'SELECT count(*) FROM jobs', atMost: 10 }] }),
    plant: async ({ primary }) => {
      await primary.query('INSERT INTO jobs SELECT generate_series(1, 25)')
      return async () => void (await primary.query('TRUNCATE jobs'))
    },
    expected: fails('queries', 'threshold', /^waiting jobs: 25/),
  },
]

const working = async (subscriber: PostgresServer): Promise<unknown> =>
  await until(
    async () =>
      (await subscriber.query('SELECT 1 FROM pg_stat_subscription WHERE last_msg_receipt_time IS NOT NULL')).length > 0,
    30_000,
  )

const archiveWith = async (server: PostgresServer, command: string): Promise<void> => {
  await server.query(`ALTER SYSTEM SET archive_command = '${command}'`)
  await server.query('SELECT pg_reload_conf()')
  await until(async () => (await server.query('SHOW archive_command'))[0]?.['archive_command'] === command)
}

/** The archiver works again, and has nothing left to do. */
async function archiveAll(server: PostgresServer): Promise<void> {
  await archiveWith(server, 'true')
  // After three failures, it waits for the next file.
  await server.query("COMMENT ON TABLE jobs IS 'all'; SELECT pg_switch_wal()")
  const waiting = "SELECT 1 FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'"
  await until(async () => (await server.query(waiting)).length === 0, 60_000)
  await server.query("SELECT pg_stat_reset_shared('archiver')")
}

corpus<Fixture>({
  server: 'PostgreSQL 18 with a standby and a subscriber',
  env,
  missing: postgresMissing,
  start: async () => {
    const settings = [
      'wal_level=logical',
      'wal_sender_timeout=2s',
      'hot_standby=on',
      'max_prepared_transactions=5',
      'archive_mode=on',
      // Dead rows stay until a row has been checked.
      'autovacuum_naptime=1h',
    ]
    const fresh = await startPostgres(settings)
    await fresh.query(`${accounts}; CREATE TABLE jobs (id int); GRANT SELECT ON jobs TO monitor;
      GRANT CONNECT ON DATABASE postgres TO app`)
    await archiveWith(fresh, 'true')
    const link = await cutProxy(fresh.port)
    const { primary, standby } = await fresh.standby(link.port)
    await streaming(primary)
    const subscriber = await startPostgres()
    await subscriber.query(accounts)
    const subscription = await subscribed(primary, subscriber)
    await working(subscriber)
    return { primary, standby, link, subscriber, subscription }
  },
  stop: async ({ primary, standby, link, subscriber, subscription }) => {
    await subscription.end()
    await subscriber.remove()
    await standby.remove()
    await link.close()
    await primary.remove()
  },
  rows,
})
