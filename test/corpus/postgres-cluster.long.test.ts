import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { expect } from 'vitest'
import { includes } from '../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { type CutProxy, cutProxy } from '../support/faults/cut-proxy.ts'
import { type PlantedFault, subscribed } from '../support/faults/postgres-faults.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { type Cure, type Expected, fails, type Row, warns } from './row.ts'

const password = 'correct horse'
const env = { POSTGRES: password }

/** A primary, a standby of it behind a proxy, a standby of that standby, and a logical subscriber of the primary. */
type Fixture = {
  readonly primary: PostgresServer
  readonly link: CutProxy
  readonly middle: PostgresServer
  readonly leaf: PostgresServer
  readonly subscriber: PostgresServer
  readonly subscription: PlantedFault
}

const ask =
  <Name extends string>(which: Name, more: object = {}) =>
  (fixture: { readonly [name in Name]: PostgresServer }) => ({
    kind: 'postgres',
    url: fixture[which].url('monitor'),
    password: { env: 'POSTGRES' },
    restarted: '0s',
    // Other programs may keep the processors busy.
    latency: { limit: '60s' },
    clock: { limit: '60s' },
    ...more,
  })

/** One fault in each mode: shallower modes than `from` do not ask, and report a healthy server. */
const inEachMode = <Server>(from: ExecutionMode, row: Row<Server>): Row<Server> => {
  const at = (mode: ExecutionMode): Expected => (includes(mode, from) ? row.expected : { state: 'healthy' })
  return { ...row, env, shallower: { Basic: at('Basic'), Standard: at('Standard') } }
}

const replayed = async (standby: PostgresServer): Promise<unknown> =>
  await until(
    async () =>
      (
        await standby.query(
          'SELECT 1 FROM pg_stat_wal_receiver WHERE latest_end_lsn <= pg_last_wal_replay_lsn() AND status = $$streaming$$',
        )
      ).length > 0,
    60_000,
  )

/** Sets parameters of a standby, which may have no connection of its own for a moment. */
async function follow(standby: PostgresServer, settings: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) await standby.query(`ALTER SYSTEM SET ${name} = '${value}'`)
  await standby.query('SELECT pg_reload_conf()')
}

const rowsOf = async (server: PostgresServer, table: string): Promise<number> =>
  Number((await server.query(`SELECT count(*) AS count FROM ${table}`))[0]?.['count'])

/** The counts of a plain client in a table of this server and of the one that it copies. */
const counts =
  <Name extends string>(table: string, copy: Name, original: 'primary' = 'primary') =>
  async (fixture: { readonly [name in Name | 'primary']: PostgresServer }): Promise<string> => {
    const [here, there] = [await rowsOf(fixture[copy], table), await rowsOf(fixture[original], table)]
    return `${here === there ? 'all' : 'not all'} rows: ${here} of ${there}`
  }
/** The answer of a server: the number of rows, or the text of its error. */
async function answerOf(server: PostgresServer, sql: string): Promise<string> {
  try {
    const results = (await server.query(sql)) as readonly unknown[] | undefined
    return `${results?.length ?? 0} rows`
  } catch (error) {
    return (error as Error).message
  }
}
const answer =
  (sql: string) =>
  ({ primary }: { readonly primary: PostgresServer }): Promise<string> =>
    answerOf(primary, sql)

/** The next number of `jobs`, on the primary. */
async function insertJob({ primary }: Fixture): Promise<void> {
  await primary.query('INSERT INTO jobs SELECT count(*) + 1 FROM jobs')
}

/** The refusal of an ordinary account, as the text of the error. */
async function refusalOf(server: PostgresServer, database = 'postgres'): Promise<string> {
  const client = new pg.Client({ host: '127.0.0.1', port: server.port, user: 'app', password, database })
  client.on('error', () => {})
  try {
    await client.connect()
    return 'none'
  } catch (error) {
    return (error as Error).message
  } finally {
    await client.end().catch(() => {})
  }
}

/** Sessions of the ordinary account. */
async function sessions(server: PostgresServer, count: number, database = 'postgres'): Promise<Cure> {
  const open: pg.Client[] = []
  for (let n = 0; n < count; n += 1) {
    const client = new pg.Client({ host: '127.0.0.1', port: server.port, user: 'app', password, database })
    client.on('error', () => {})
    await client.connect()
    open.push(client)
  }
  return async () => {
    for (const one of open) await one.end()
  }
}

/** Waits until the server has let go of the sessions of the ordinary account. */
const noSessions = async (server: PostgresServer): Promise<unknown> =>
  await until(async () => (await server.query("SELECT 1 FROM pg_stat_activity WHERE usename = 'app'")).length === 0)

const healthy: readonly Row<Fixture>[] = (['primary', 'middle', 'leaf', 'subscriber'] as const).map((which) =>
  inEachMode<Fixture>('Basic', {
    fault: `a healthy cluster, ${which === 'middle' ? 'its standby' : which === 'leaf' ? 'the standby of its standby' : `its ${which}`}`,
    monitor: ask(which, which === 'primary' ? { role: 'primary', replicas: 1 } : {}),
    client: { asks: counts('jobs', which === 'subscriber' ? 'primary' : which), gets: /^all rows/ },
    plant: async ({ middle, leaf }) => {
      await replayed(middle)
      await replayed(leaf)
      return undefined
    },
    expected: { state: 'healthy' },
  }),
)

const rows: readonly Row<Fixture>[] = [
  ...healthy,
  inEachMode<Fixture>('Standard', {
    fault: 'a standby with neither primary_conninfo nor restore_command: its clients read old rows',
    monitor: ask('leaf'),
    client: { asks: counts('jobs', 'leaf'), gets: /^not all rows/ },
    plant: async (fixture) => {
      const { leaf } = fixture
      const [row] = await leaf.query("SELECT current_setting('primary_conninfo') AS conninfo")
      await follow(leaf, { primary_conninfo: '' })
      await until(async () => (await leaf.query('SELECT 1 FROM pg_stat_wal_receiver')).length === 0)
      await insertJob(fixture)
      return async () => {
        await follow(leaf, { primary_conninfo: String(row?.['conninfo']) })
        await replayed(leaf)
      }
    },
    expected: fails('wal receiver', 'data', /^neither primary_conninfo nor restore_command is set/),
  }),
  inEachMode<Fixture>('Standard', {
    fault: 'a standby whose upstream is a standby that is cut off itself: its clients read old rows',
    monitor: ask('leaf', { newestWal: { limit: '500ms' } }),
    client: { asks: counts('jobs', 'leaf'), gets: /^not all rows/ },
    plant: (fixture) => cutOff(fixture),
    expected: fails('newest wal', 'threshold', /^the newest WAL arrived/),
  }),
  inEachMode<Fixture>('Standard', {
    fault: 'a standby that feeds another one is cut off from the primary',
    monitor: ask('middle'),
    client: { asks: counts('jobs', 'middle'), gets: /^not all rows/ },
    plant: (fixture) => cutOff(fixture),
    expected: fails('wal receiver', 'data', /^not connected to its primary/),
  }),
  inEachMode<Fixture>('Basic', {
    fault: 'a slot that Patroni keeps on a standby for another member',
    monitor: ask('middle', { inactiveSlots: { warn: '1ms' } }),
    client: { asks: counts('jobs', 'middle'), gets: /^all rows/ },
    plant: async ({ middle }) => {
      await middle.query("SELECT pg_create_physical_replication_slot('member_3', true)")
      await wait(50)
      return async () => void (await middle.query("SELECT pg_drop_replication_slot('member_3')"))
    },
    expected: { state: 'healthy' },
  }),
  inEachMode<Fixture>('Basic', {
    fault: 'a sequence that was made after the account got its privileges',
    monitor: ask('primary'),
    plant: async ({ primary }) => {
      await primary.query('CREATE TABLE fresh (id serial, big bigserial)')
      return async () => void (await primary.query('DROP TABLE fresh'))
    },
    expected: { state: 'healthy' },
  }),
  {
    fault: 'a query on the standby delays replay for a moment after the primary was idle for longer than the limit',
    monitor: ask('leaf', { replicationLag: { limit: '11s' } }),
    plant: async (fixture) => {
      const { primary, leaf } = fixture
      await insertJob(fixture)
      await replayed(leaf)
      const reader = await leaf.client()
      await reader.query('BEGIN; SELECT * FROM jobs')
      // The time for which the primary is idle: a lag of that length would fail.
      await wait(12_000)
      await primary.query('LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE; TRUNCATE jobs')
      await until(async () => (await leaf.query('SELECT 1 FROM pg_locks WHERE NOT granted')).length > 0)
      return async () => {
        await reader.query('COMMIT')
        await reader.end()
        await replayed(leaf)
      }
    },
    expected: { state: 'healthy' },
  },
  inEachMode<Fixture>('Advanced', {
    fault: 'a query on the standby keeps it from replaying: its other clients hang',
    monitor: ask('leaf', { replicationLag: { limit: '500ms' } }),
    client: {
      asks: ({ leaf }) => answerOf(leaf, "SET lock_timeout = '500ms'; SELECT * FROM jobs"),
      gets: /lock timeout/,
    },
    plant: async (fixture) => {
      const { primary, leaf } = fixture
      await insertJob(fixture)
      await replayed(leaf)
      const reader = await leaf.client()
      await reader.query('BEGIN; SELECT * FROM jobs')
      await primary.query('LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE; TRUNCATE jobs')
      await until(async () => (await leaf.query('SELECT 1 FROM pg_locks WHERE NOT granted')).length > 0)
      await wait(600)
      return async () => {
        await reader.query('COMMIT')
        await reader.end()
        await replayed(leaf)
      }
    },
    expected: fails('replication lag', 'threshold', /^lag [\d.]+ /),
  }),
  inEachMode<Fixture>('Basic', {
    fault: 'a standby that recovery_min_apply_delay keeps an hour behind',
    monitor: ask('leaf', { replicationLag: { limit: '50ms' } }),
    client: { asks: counts('jobs', 'leaf'), gets: /^not all rows/ },
    plant: async (fixture) => {
      const { leaf } = fixture
      await follow(leaf, { recovery_min_apply_delay: '1h' })
      const delaySetting = async () =>
        (await leaf.query('SHOW recovery_min_apply_delay'))[0]?.['recovery_min_apply_delay']
      await until(async () => (await delaySetting()) === '1h')
      const before = await rowsOf(leaf, 'jobs')
      await insertJob(fixture)
      const delayed = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'RecoveryApplyDelay'"
      await until(async () => (await leaf.query(delayed)).length > 0)
      expect(await rowsOf(leaf, 'jobs')).toBe(before)
      return async () => {
        await follow(leaf, { recovery_min_apply_delay: '0' })
        await replayed(leaf)
      }
    },
    expected: { state: 'healthy' },
  }),
  inEachMode<Fixture>('Standard', {
    fault: 'a table of a subscription that never gets ready: clients of the subscriber read none of its rows',
    monitor: ask('subscriber'),
    client: { asks: counts('invoices', 'subscriber'), gets: /^not all rows: 1 of 3$/ },
    plant: (fixture) => neverReady(fixture),
    expected: fails('subscriptions', 'data', /public\.invoices/),
  }),
  inEachMode<Fixture>('Standard', {
    fault: 'an account has used up its connections: a client is refused',
    monitor: ask('primary'),
    client: { asks: ({ primary }) => refusalOf(primary), gets: /^too many connections for role "app"$/ },
    plant: async ({ primary }) => {
      await primary.query('ALTER ROLE app CONNECTION LIMIT 2')
      const end = await sessions(primary, 2)
      return async () => {
        await end()
        await noSessions(primary)
        await primary.query('ALTER ROLE app CONNECTION LIMIT -1')
      }
    },
    expected: fails('connection limits', 'threshold', /^2 of 2 connections of the role app/),
  }),
  inEachMode<Fixture>('Standard', {
    fault: 'a database has used up its connections: a client is refused',
    monitor: ask('primary'),
    client: {
      asks: ({ primary }) => refusalOf(primary, 'orders'),
      gets: /^too many connections for database "orders"$/,
    },
    plant: async ({ primary }) => {
      await primary.query('ALTER DATABASE orders CONNECTION LIMIT 2')
      const end = await sessions(primary, 2, 'orders')
      return async () => {
        await end()
        await noSessions(primary)
        await primary.query('ALTER DATABASE orders CONNECTION LIMIT -1')
      }
    },
    expected: fails('connection limits', 'threshold', /^2 of 2 connections of the database orders/),
  }),
  inEachMode<Fixture>('Advanced', {
    fault: 'a unique index that could not be built: a table keeps its duplicates',
    monitor: ask('primary'),
    client: { asks: answer("INSERT INTO names VALUES ('b'); SELECT FROM names"), gets: /rows$/ },
    plant: async ({ primary }) => {
      await primary.query('CREATE TABLE names (name text)')
      await primary.query("INSERT INTO names VALUES ('a'), ('a')")
      await expect(primary.query('CREATE UNIQUE INDEX CONCURRENTLY names_once ON names (name)')).rejects.toThrow(
        /unique/,
      )
      return async () => void (await primary.query('DROP TABLE names'))
    },
    expected: warns('invalid indexes', /public\.names_once/),
  }),
  inEachMode<Fixture>('Advanced', {
    fault: 'the checkpointer hangs: the CHECKPOINT of a client does not return',
    monitor: ask('primary', { checkpointAge: { limit: '0.001%' } }),
    client: { asks: answer("SET statement_timeout = '500ms'; CHECKPOINT"), gets: /timeout|CHECKPOINT/ },
    plant: async ({ primary }) => {
      await primary.query('CHECKPOINT')
      const [row] = await primary.query("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
      const pid = Number(row?.['pid'])
      process.kill(pid, 'SIGSTOP')
      await primary.query("COMMENT ON TABLE jobs IS 'much'; SELECT pg_switch_wal()")
      await primary.query("COMMENT ON TABLE jobs IS 'more'; SELECT pg_switch_wal()")
      // The server reports whole seconds.
      await wait(1_500)
      return async () => {
        process.kill(pid, 'SIGCONT')
        await primary.query('CHECKPOINT')
      }
    },
    expected: fails('checkpoint age', 'threshold', /^the last checkpoint began [\d.]+ s ago/),
  }),
  {
    fault: 'an idle primary after a burst of writes while a checkpoint ran',
    // In percent of 5 min: 1 s.
    monitor: ask('primary', { checkpointAge: { warn: '0.3%', limit: '0.4%' } }),
    client: { asks: answer('SELECT FROM jobs LIMIT 1'), gets: /rows?$/ },
    plant: async ({ primary }) => {
      const aside = await primary.client()
      // Pages for the checkpoint to write slowly, and WAL that no page belongs to.
      await primary.query(
        'CREATE TABLE pages AS SELECT g, repeat(chr(65), 2000) AS t FROM generate_series(1, 200) AS g',
      )
      await primary.query('ALTER SYSTEM SET checkpoint_completion_target = 0.02')
      await primary.query('SELECT pg_reload_conf()')
      const done = aside.query("SELECT pg_backup_start('svc', false)")
      const slow = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'CheckpointWriteDelay'"
      await until(async () => (await primary.query(slow)).length > 0)
      await primary.query(
        "SELECT pg_logical_emit_message(false, 'svc', repeat('x', 1000000)) FROM generate_series(1, 33)",
      )
      await done
      await aside.end()
      await wait(2_500)
      return async () => {
        await primary.query('DROP TABLE pages')
        await primary.query('ALTER SYSTEM RESET checkpoint_completion_target')
        await primary.query('SELECT pg_reload_conf()')
      }
    },
    expected: { state: 'healthy' },
    shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
    before: 'checkpoint age 1000 %',
  },
  inEachMode<Fixture>('Advanced', {
    fault: 'a changed setting waits for a restart: a client sees the old value',
    monitor: ask('primary'),
    client: { asks: answer("SELECT WHERE current_setting('max_locks_per_transaction') = '128'"), gets: /^0 rows$/ },
    plant: async ({ primary }) => {
      const [before] = await primary.query('SHOW max_locks_per_transaction')
      await primary.query('ALTER SYSTEM SET max_locks_per_transaction = 128')
      await primary.query('SELECT pg_reload_conf()')
      const pending = "SELECT 1 FROM pg_settings WHERE pending_restart AND name = 'max_locks_per_transaction'"
      await until(async () => (await primary.query(pending)).length > 0)
      return async () => {
        // A parameter that is removed from the file counts as pending, too.
        const value = String(before?.['max_locks_per_transaction'])
        await primary.query(`ALTER SYSTEM SET max_locks_per_transaction = ${value}`)
        await primary.query('SELECT pg_reload_conf()')
        await until(async () => (await primary.query(pending)).length === 0)
      }
    },
    expected: warns('pending restart', /max_locks_per_transaction/),
  }),
]

/** The standby in the middle loses the primary. The last one hears from the middle, and gets no row any more. */
async function cutOff(fixture: Fixture): Promise<Cure> {
  const { link, primary, middle, leaf } = fixture
  await replayed(leaf)
  const before = await rowsOf(leaf, 'jobs')
  const [row] = await middle.query("SELECT current_setting('primary_conninfo') AS conninfo")
  await follow(middle, { primary_conninfo: 'host=127.0.0.1 port=1 user=postgres' })
  link.cutNow({ client: 'reset', server: 'reset' })
  await until(async () => (await middle.query('SELECT 1 FROM pg_stat_wal_receiver')).length === 0)
  await insertJob(fixture)
  await wait(600)
  expect(await rowsOf(leaf, 'jobs')).toBe(before)
  expect(await rowsOf(primary, 'jobs')).toBe(before + 1)
  expect(await leaf.query('SELECT status FROM pg_stat_wal_receiver')).toEqual([{ status: 'streaming' }])
  return async () => {
    await follow(middle, { primary_conninfo: String(row?.['conninfo']) })
    await until(async () => (await rowsOf(leaf, 'jobs')) === before + 1, 60_000)
    await replayed(leaf)
  }
}

/** The copy of a new table fails, because the subscriber has one of its rows already. */
async function neverReady({ primary, subscriber }: Fixture): Promise<Cure> {
  await primary.query('CREATE TABLE invoices (id int PRIMARY KEY)')
  await primary.query('INSERT INTO invoices SELECT generate_series(1, 3)')
  await subscriber.query('CREATE TABLE invoices (id int PRIMARY KEY)')
  await subscriber.query('INSERT INTO invoices VALUES (2)')
  await primary.query('ALTER PUBLICATION events ADD TABLE invoices')
  await subscriber.query('ALTER SUBSCRIPTION events REFRESH PUBLICATION')
  // Newer versions count errors of copies elsewhere than those of rows.
  const failed = 'SELECT 1 FROM pg_stat_subscription_stats AS s WHERE (to_jsonb(s)->>$$sync_error_count$$)::int > 0'
  await until(async () => (await subscriber.query(failed)).length > 0, 60_000)
  return async () => {
    await primary.query('ALTER PUBLICATION events DROP TABLE invoices')
    await subscriber.query('ALTER SUBSCRIPTION events REFRESH PUBLICATION')
    await primary.query('DROP TABLE invoices')
    await subscriber.query('DROP TABLE invoices')
    await subscriber.query('SELECT pg_stat_reset_subscription_stats(NULL)')
  }
}

corpus<Fixture>({
  server: 'PostgreSQL 18, a cascade of three and a subscriber',
  env,
  missing: postgresMissing,
  start: async () => {
    const settings = ['wal_level=logical', 'hot_standby=on']
    const fresh = await startPostgres(settings)
    await fresh.query(`CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor;
      CREATE ROLE app LOGIN PASSWORD '${password}'; CREATE TABLE jobs (id int)`)
    await fresh.query('CREATE DATABASE orders')
    const link = await cutProxy(fresh.port)
    const first = await fresh.standby(link.port)
    const { primary } = first
    await replayed(first.standby)
    const { primary: middle, standby: leaf } = await first.standby.standby()
    await replayed(middle)
    await replayed(leaf)
    const subscriber = await startPostgres()
    await subscriber.query(`CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor`)
    const subscription = await subscribed(primary, subscriber)
    return { primary, link, middle, leaf, subscriber, subscription }
  },
  stop: async ({ primary, link, middle, leaf, subscriber, subscription }) => {
    await subscription.end()
    for (const server of [subscriber, leaf, middle]) await server.remove()
    await link.close()
    await primary.remove()
  },
  rows,
})

corpus<Pick<Fixture, 'primary'>>({
  server: 'PostgreSQL 18 with a limit for slots',
  env,
  missing: postgresMissing,
  start: async () => {
    const primary = await startPostgres(['max_slot_wal_keep_size=1MB'])
    await primary.query(`CREATE ROLE monitor LOGIN PASSWORD '${password}'; GRANT pg_monitor TO monitor;
      CREATE TABLE jobs (id int)`)
    return { primary }
  },
  rows: [
    {
      fault: 'no slot has reached the limit',
      monitor: ask('primary'),
      plant: async ({ primary }) => {
        await primary.query("SELECT pg_create_physical_replication_slot('replica_2')")
        return async () => void (await primary.query("SELECT pg_drop_replication_slot('replica_2')"))
      },
      expected: { state: 'healthy' },
    },
    inEachMode<Pick<Fixture, 'primary'>>('Advanced', {
      fault: 'a replication slot has lost WAL: its consumer is refused',
      monitor: ask('primary'),
      client: { asks: answer("SELECT pg_replication_slot_advance('replica_2', pg_current_wal_lsn())"), gets: /slot/ },
      plant: async ({ primary }) => {
        await primary.query("SELECT pg_create_physical_replication_slot('replica_2', true)")
        for (let n = 0; n < 4; n += 1) await primary.query(`COMMENT ON TABLE jobs IS '${n}'; SELECT pg_switch_wal()`)
        await primary.query('CHECKPOINT')
        const lost = "SELECT 1 FROM pg_replication_slots WHERE slot_name = 'replica_2' AND wal_status = 'lost'"
        await until(async () => (await primary.query(lost)).length > 0)
        return async () => void (await primary.query("SELECT pg_drop_replication_slot('replica_2')"))
      },
      expected: fails('slots', 'data', /^replica_2 has lost WAL/),
    }),
  ],
})
