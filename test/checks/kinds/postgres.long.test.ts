import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { databaseTarget, PeerSocket } from '../../../src/core/checks/database/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import {
  checksumFailures,
  connections,
  lockWait,
  preparedTransactions,
  server as serverCheck,
  transactionDuration,
  wraparound,
} from '../../../src/core/checks/kinds/postgres/checks.ts'
import { librariesOf, placesOf } from '../../../src/core/checks/kinds/postgres/configuration.ts'
import { openPostgres } from '../../../src/core/checks/kinds/postgres/driver.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import { replicationLag } from '../../../src/core/checks/kinds/postgres/replication.ts'
import { slots } from '../../../src/core/checks/kinds/postgres/slots.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { files } from '../../support/engine/files.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { checked, evaluated, ofRunner, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { endless, peer, speaks } from '../../support/faults/faults.ts'
import { proxy } from '../../support/faults/proxy.ts'
import { type PostgresServer, postgresMissing, startPostgres, tlsSettings } from '../../support/servers/postgres.ts'
import { remove, serverFolder } from '../../support/servers/server.ts'
import { postgresAnswering } from '../../support/simulated/simulated-postgres.ts'
import { until } from '../../support/suite/until.ts'
import { sqlSuite, word } from './sql/suite.ts'

type Settings = Partial<Values<typeof postgres.settings>>

let server: PostgresServer
const run = (settings: Settings = {}, mode: ExecutionMode = 'Basic', options: RunKindOptions = {}) =>
  runKind(postgres, { url: server.url('monitor'), password: secret(word), ...settings }, mode, options)
const one = async (check: string, ...args: Parameters<typeof run>): Promise<Result> =>
  checked(await run(...args), check)
const sessions = (which: string): Promise<Record<string, unknown>[]> =>
  server.query(`SELECT pid, state, query FROM pg_stat_activity WHERE application_name = 'svc-health' AND ${which}`)
// It is a primary of a recent version without TLS, and what these need is not configured.
const absentHere = [
  'configuration files',
  'preload libraries',
  'certificate',
  'queries',
  'wal receiver',
  'newest wal',
  'exclusive backup',
  'write',
  'backup age',
]
const all = postgres.checks.map(({ name }) => name).filter((name) => ![...absentHere, ...ofRunner].includes(name))
const atStandard = (name: string): boolean =>
  postgres.checks.some((check) => check.name === name && check.depth !== 'Advanced')
const role = (attribute: string) => () => server.query(`ALTER ROLE monitor ${attribute}`)
const stranger = (attribute: string) => () => server.query(`ALTER ROLE stranger ${attribute}`)
let other: Awaited<ReturnType<PostgresServer['client']>>

sqlSuite(
  {
    name: 'PostgreSQL',
    missing: postgresMissing,
    start: async () => {
      const archive = ['archive_mode=on', 'archive_command=true']
      server = await startPostgres(['max_prepared_transactions=5', 'wal_level=logical', ...archive])
      await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor;
        CREATE ROLE stranger LOGIN PASSWORD '${word}';
        CREATE TABLE jobs (id int, state text, created_at timestamptz, naive timestamp, ended date);
        CREATE SEQUENCE ids AS int; GRANT USAGE ON SEQUENCE ids TO monitor; GRANT SELECT, INSERT ON jobs TO monitor;
        CREATE TABLE secrets (id int);
        CREATE FUNCTION add_job() RETURNS int LANGUAGE sql AS 'INSERT INTO jobs (id) VALUES (99) RETURNING id';
        INSERT INTO jobs VALUES (1, 'waiting', now() - interval '1 hour', now() AT TIME ZONE 'UTC' - interval '2 hours', NULL),
          (2, 'waiting', now(), now() AT TIME ZONE 'UTC', NULL), (3, 'failed', now(), NULL, '2020-02-02')`)
    },
    stop: () => server.remove(),
    run,
    runWell: (settings = {}, ...more) => run({ restarted: {}, replicas: 0, ...settings }, ...more),
    checks: { Basic: ['connect', 'query'], Standard: all.filter(atStandard), Advanced: all },
    messages: {
      mode: 'Standard',
      of: {
        connect: /^signed in to 127\.0\.0\.1:\d+ as monitor in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
        role: /^primary, PostgreSQL \d+\.\d+$/,
        connections: /^\d+ of 17 usable connections: [\d.]+ % \(warn 80 %, fail 95 %\)$/,
      },
    },
    open: () => sessions('true'),
    log: () => server.log(),
    network: {
      scheme: 'postgres',
      database: 'postgres',
      server: () => server,
      open: openPostgres,
      resources: '',
      refusals: () => server.log().split('password authentication failed').length - 1,
      passwordRefusal: /refused the sign-in of "monitor"/,
      conditions: {
        noPassword: {
          run: () => runKind(postgres, { url: server.url('monitor') }),
          message: /^127\.0\.0\.1:\d+ requires a password, and none is configured: add `password:`$/,
        },
        noAccount: { settings: () => ({ url: server.url('nobody') }) },
        locked: {
          plant: stranger('NOLOGIN'),
          settings: () => ({ url: server.url('stranger') }),
          end: stranger('LOGIN'),
        },
        missingDatabase: {
          settings: () => ({ url: server.url('monitor', 'nowhere') }),
          message: /database "nowhere" does not exist/,
        },
        closedDatabase: {
          plant: async () => {
            await server.query('CREATE DATABASE closed')
            await server.query('REVOKE CONNECT ON DATABASE closed FROM PUBLIC')
          },
          settings: () => ({ url: server.url('monitor', 'closed') }),
          message: /denies "monitor" access to/,
          end: () => server.query('DROP DATABASE closed'),
        },
        full: {
          plant: stranger('CONNECTION LIMIT 0'),
          settings: () => ({ url: server.url('stranger') }),
          message: /has no free connection: too many connections/,
          end: stranger('CONNECTION LIMIT -1'),
        },
      },
      hostile: [
        ['rows before any question', speaks(Buffer.from('D\0\0\0\x0a\0\x02\0\0\0\x01', 'latin1'))],
        ['a row that is shorter than it says', speaks(Buffer.from('T\0\0\0\x08\x7f\xff\0\0E\0\0\0\x04', 'latin1'))],
        ['an endless answer', endless('R')],
      ],
      hostileFaults: [],
      randomAnswer: (bytes) => bytes,
      frozen: { freeze: () => server.freeze(), thaw: () => server.thaw() },
      sleep: 'SELECT pg_sleep(60)',
      sleeping: async () =>
        (await server.query("SELECT application_name FROM pg_stat_activity WHERE wait_event = 'PgSleep'")).map((row) =>
          String(row['application_name']),
        ),
      sleeper: 'svc-health',
      ownLimit: { running: () => sessions("state <> 'idle'") },
      identity: { sql: "SELECT current_setting('application_name') AS name", shows: '[{"name":"svc-health"}]' },
      privileges: {
        account: 'limited',
        kind: postgres,
        begin: async () => {
          other = await server.client()
          await other.query('BEGIN')
          await server.query(`CREATE ROLE limited LOGIN PASSWORD '${word}'`)
        },
        query: (grant) => server.query(grant.replace('<account>', 'limited')),
        unwell: ['longest transaction', 'idle in transaction', 'sequences', 'archive backlog'],
        end: async () => {
          await other.end()
          await server.query('DROP OWNED BY limited')
          await server.query('DROP ROLE limited')
        },
      },
      restarted: true,
      tls: {
        start: async (certificates) => {
          const folder = serverFolder('postgres-tls')
          const secured = await startPostgres(
            tlsSettings(certificates.good, folder),
            'hostnossl all monitor all reject\n',
          )
          await secured.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'`)
          const removeBoth = async (): Promise<void> => {
            await secured.remove()
            remove(folder)
          }
          return { ...secured, remove: removeBoth }
        },
        version: 'TLSv1.3',
        verifiesAddress: true,
        own: (connect) => {
          test('PostgreSQL: auto verifies on the way to another machine, and does without on the way to this one', async () => {
            const plain = await connect('127.0.0.1', { mode: 'auto' })
            expect(plain).toMatchObject({ fault: 'auth', message: expect.stringContaining('no encryption') })
            await using far = await peer((socket) => void socket.once('data', () => socket.end('N')))
            const result = await runKind(
              postgres,
              { url: `postgres://m@[::1]:${far.port}/d`, password: secret(word) },
              'Basic',
              { resolve: async () => ['127.0.0.1'] },
            )
            expect(checked(result, 'connect').status).toBe('failed')
            expect(far.input()).not.toContain('SSL')
          })
        },
      },
      large: {
        million: ['SELECT n, repeat(md5(n::text), 20) FROM generate_series(1, 1000000) AS n'],
        maxBytes: 1024 ** 2,
        text: (characters) => `SELECT repeat('x', ${characters})`,
        flood: "SELECT 1, repeat('x', 1000000) FROM generate_series(1, 400)",
      },
    },
    queries: {
      judged: [
        [
          { name: 'day', sql: 'SELECT ended FROM jobs;', age: { limit: 1 } },
          'failed',
          /^day: oldest \d{4}[\d.]* d \(fail 1 ms\)$/,
        ],
        [{ name: 'flag', sql: 'SELECT true, 17', expect: 'true' }, 'ok', 'flag: is "true"'],
        [{ name: 'share', sql: 'SELECT 0.5::numeric', atLeast: { limit: 0.5 } }, 'ok', 'share: 0.5 (fail below 0.5)'],
      ],
      fails: [
        {
          query: { name: 'gone', sql: 'SELECT 1 FROM gone', atMost: { limit: 1 } },
          message: 'gone: the query failed: relation "gone" does not exist',
          fault: 'data',
          details: ['SQLSTATE 42P01', 'query: SELECT 1 FROM gone'],
        },
        {
          query: { name: 'closed', sql: 'SELECT id FROM secrets', atMost: { limit: 1 } },
          message: 'closed: "monitor" has no permission to read this: permission denied for table secrets',
          fault: 'data',
        },
        {
          query: { name: 'zero', sql: 'SELECT 1 / 0', atMost: { limit: 1 } },
          message: 'zero: the query failed: division by zero',
          fault: 'data',
        },
      ],
      writes: {
        sql: [
          ['a sequence', "SELECT nextval('ids')"],
          ['a function that inserts', 'SELECT add_job()'],
          ['a WITH that deletes', 'WITH gone AS (DELETE FROM jobs RETURNING id) SELECT id FROM gone'],
          ['a lock on rows', 'SELECT id FROM jobs FOR UPDATE'],
          ['a table made of rows', 'SELECT id INTO copy FROM jobs'],
          ['the end of read only', "SELECT set_config('transaction_read_only', 'off', false), nextval('ids')"],
          // svc itself refuses a second statement that it can see; it does not follow nested comments.
          ['two statements', 'SELECT 1 /* a /* b */ c */; DELETE FROM jobs'],
          ['two statements that end the transaction', 'SELECT 1 /* a /* b */ c */; COMMIT; DELETE FROM jobs'],
        ].map(
          ([name = '', sql = '']) =>
            [name, sql, /^jobs: (the query failed|the query was rejected because it writes): ./] as const,
        ),
        state: () =>
          server.query(`SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT is_called FROM ids) AS called,
            (SELECT count(*) FROM pg_class WHERE relname = 'copy') AS copies`),
      },
      slow: {
        sql: 'SELECT 1 FROM pg_sleep(60)',
        message: 'slow: canceling statement due to statement timeout',
        next: /^next: (1 \(fail 1\)|not run: )/,
        timeoutMs: 1_500,
      },
      wide: (rows) => `SELECT repeat(n::text || 'x', 600) FROM generate_series(1, ${rows}) n`,
      powers: [
        { name: 'SUPERUSER', plant: role('SUPERUSER'), end: role('NOSUPERUSER'), as: 'as a superuser' },
        {
          name: 'REPLICATION',
          plant: role('REPLICATION'),
          end: role('NOREPLICATION'),
          as: 'as an account with REPLICATION',
        },
        {
          name: 'SUPERUSER REPLICATION',
          plant: role('SUPERUSER REPLICATION'),
          end: role('NOSUPERUSER NOREPLICATION'),
          as: 'as a superuser',
        },
      ],
    },
  },
  ({ ask, opened, nothingOpen }) => {
    test('PostgreSQL: what stands in the environment and in no setting is not used', async () => {
      process.env.PGPASSWORD = word
      process.env.PGSSLMODE = 'require'
      onTestFinished(() => {
        delete process.env.PGPASSWORD
        delete process.env.PGSSLMODE
      })

      const { message, fault } = await one('connect', { password: secret('wrong') })
      expect([fault, message]).toEqual(['auth', expect.stringContaining('password authentication failed')])
      const none = await runKind(postgres, { url: server.url('monitor') })
      expect(checked(none, 'connect')).toMatchObject({
        fault: 'auth',
        message: `${server.address} requires a password, and none is configured: add \`password:\``,
      })
    })

    test('PostgreSQL: a database that is dropped stops the next run, not this process', async () => {
      await server.query('CREATE DATABASE short')
      const url = server.url('monitor', 'short')
      expect(await one('query', { url })).toMatchObject({ status: 'ok' })
      await server.query('DROP DATABASE short')
      expect(await one('connect', { url })).toMatchObject({ fault: 'data' })
    })

    test('PostgreSQL: a cancel request that overtakes its query is sent again', async () => {
      await using late = await proxy(server.port, 0, 50, 150)
      const control = new AbortController()
      const socket = await PeerSocket.reach('127.0.0.1', late.port, control.signal)
      const opened = { socket, ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000, files }
      const target = databaseTarget({ url: server.url('monitor'), password: secret(word) }, late.port)
      const session = await openPostgres({ ...target, port: late.port }, opened)
      const query = session.ask('SELECT pg_sleep(60)').catch((error: unknown) => error)
      await wait(20)
      control.abort()
      await session.close()
      expect(await query).toBeInstanceOf(Error)
      await until(async () => (await sessions("state = 'active'")).length === 0)
    })

    test('PostgreSQL: a view that somebody holds locked is that check only; the others go on', async () => {
      const holder = await server.client()
      await holder.query('BEGIN; LOCK TABLE pg_stat_archiver IN ACCESS EXCLUSIVE MODE')
      onTestFinished(() => holder.end())

      const results = await run({ restarted: {} }, 'Advanced')
      expect(results.filter((result) => result.status !== 'ok')).toEqual([
        expect.objectContaining({ check: 'archiver', fault: 'timeout', message: 'timed out waiting for a lock' }),
      ])
      expect(checked(results, 'checksum failures').status).toBe('ok')
    })

    test('PostgreSQL: what users have put in their schemas is never called', async () => {
      await server.query(`CREATE SCHEMA trap; GRANT USAGE ON SCHEMA trap TO PUBLIC;
        CREATE VIEW trap.pg_stat_activity AS SELECT pg_sleep(60)::text; GRANT SELECT ON trap.pg_stat_activity TO PUBLIC;
        CREATE FUNCTION trap.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT pg_sleep(60) IS NULL';
        ALTER ROLE monitor SET search_path = trap, pg_catalog`)
      const results = await run({ restarted: {} }, 'Advanced', { timeoutMs: 5_000 })
      await server.query('ALTER ROLE monitor RESET search_path; DROP SCHEMA trap CASCADE')
      expect(results.filter((result) => result.status !== 'ok')).toEqual([])
    })
    test('PostgreSQL: a view that is not for this account is that check only, with the cure, and no refused sign-in', async () => {
      await server.query('REVOKE SELECT ON pg_stat_archiver FROM PUBLIC')
      onTestFinished(async () => void (await server.query('GRANT SELECT ON pg_stat_archiver TO PUBLIC')))

      const bad = (await run({ restarted: {} }, 'Advanced')).filter((result) => result.status !== 'ok')
      expect(bad).toEqual([
        expect.objectContaining({
          check: 'archiver',
          status: 'warning',
          notChecked: 'permission',
          message:
            'not checked: "monitor" lacks a privilege, which GRANT pg_monitor TO "monitor" grants: permission denied for view pg_stat_archiver',
        }),
      ])
      expect(bad[0]?.details?.[0]).toBe('GRANT pg_monitor TO "monitor"')
    })

    test('PostgreSQL: a session that waits for a lock for too long', async () => {
      const [holder, waiter] = [await server.client(), await server.client()]
      await holder.query('CREATE TABLE wanted ()')
      await holder.query('BEGIN; LOCK TABLE wanted')
      // It has run for longer than it waits, and only the wait counts.
      const started = performance.now()
      const waiting = waiter.query('DO $$ BEGIN PERFORM pg_sleep(0.5); LOCK TABLE wanted; END $$').catch(() => {})
      await until(
        async () =>
          (await server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DO %'"))
            .length,
      )
      await wait(100)
      const result = await one('lock wait', { lockWait: { warn: 10, limit: 50 } }, 'Standard')
      const took = performance.now() - started
      await holder.query('ROLLBACK')
      await waiting
      await holder.query('DROP TABLE wanted')
      await Promise.all([holder.end(), waiter.end()])
      expect(result).toMatchObject({ status: 'failed', fault: 'threshold' })
      expect(result.message).toMatch(/^1 session is waiting for a lock, the longest for [\d.]+ m?s/)
      expect(result.measurement?.value).toBeLessThan(took - 500)
      expect(result.details?.[0]).toMatch(/^inspect: SELECT pg_blocking_pids\(\d+\)$/)
    })

    test('PostgreSQL: another role than expected, and a read-only primary', async () => {
      expectResult(await one('role', { role: 'standby' }, 'Standard'), '(data): role is primary, expected standby')
      await server.query('ALTER DATABASE postgres SET default_transaction_read_only = on')
      expect(await one('role', { role: 'primary' }, 'Standard')).toMatchObject({ fault: 'data' })
      expect(await one('role', {}, 'Standard')).toMatchObject({ status: 'warning' })
      await server.query('BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT')
    })

    test.each(['ALTER ROLE monitor', 'ALTER ROLE monitor IN DATABASE postgres'])(
      'H44 PostgreSQL: read-only transactions of the role of svc alone (%s) are a note',
      async (alter) => {
        await server.query('CREATE SCHEMA svc_probe AUTHORIZATION monitor')
        await server.query(`${alter} SET default_transaction_read_only = on`)
        onTestFinished(async () => {
          await server.query(`${alter} RESET default_transaction_read_only`)
          await server.query('DROP SCHEMA svc_probe CASCADE')
        })

        const results = await run({ role: 'primary', allowWrites: true, restarted: {} }, 'Advanced')
        expect(checked(results, 'role')).toMatchObject({ status: 'ok', details: [expect.stringContaining('role')] })
        expect(checked(results, 'write')).toMatchObject({ status: 'ok' })
        expect(await server.query('SELECT FROM svc_probe.round_trip')).toEqual([])
      },
    )

    test('H45 PostgreSQL: a password that expires warns, then fails, and one that nobody asks for does not', async () => {
      const expiry = () => one('password expiry', {}, 'Standard')
      const until = (when: string) => server.query(`ALTER ROLE monitor VALID UNTIL '${when}'`)
      const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
      expect(await expiry()).toMatchObject({ status: 'ok', message: 'the password of "monitor" does not expire' })
      try {
        await until(inDays(15))
        expect(await expiry()).toMatchObject({ status: 'ok' })
        await until(inDays(10))
        expectResult(await expiry(), 'warning', /^the password of "monitor" expires in (?:10|9(?:\.\d+)?) d/)
        await until(inDays(0.1))
        expectResult(await expiry(), 'failed (threshold)', { measurement: { unit: 'milliseconds' } })
      } finally {
        await until('infinity')
      }
      expect(await expiry()).toMatchObject({ status: 'ok' })
    })

    test('H45 PostgreSQL: a role whose password has expired and that has sessions open is a warning', async () => {
      const open = new pg.Client({
        host: '127.0.0.1',
        port: server.port,
        user: 'stranger',
        password: word,
        database: 'postgres',
      })
      await open.connect()
      await server.query("ALTER ROLE stranger VALID UNTIL '2020-01-01'")
      onTestFinished(async () => {
        await open.end()
        await server.query("ALTER ROLE stranger VALID UNTIL 'infinity'")
      })

      const results = await run({}, 'Standard')
      expect(results.filter(({ check }) => check === 'password expiry')).toMatchObject([
        { status: 'ok' },
        { status: 'warning', message: expect.stringMatching(/^the password of "stranger", which has 1 session open/) },
      ])
    })

    test('PostgreSQL: dates are read whatever the session shows them like', async () => {
      await server.query(
        "ALTER ROLE monitor SET DateStyle = 'German'; ALTER ROLE monitor SET TimeZone = 'Asia/Kathmandu'",
      )
      const result = await ask([
        { sql: 'SELECT max(created_at) FROM jobs', age: { limit: 3_600_000 } },
        { sql: 'SELECT naive FROM jobs WHERE id = 2', age: { limit: 3_600_000 } },
      ])
      await server.query('ALTER ROLE monitor RESET DateStyle; ALTER ROLE monitor RESET TimeZone')
      expect(result.map(({ status }) => status)).toEqual(['ok', 'ok'])
    })

    test.each([49, 50, 51, 100])('PostgreSQL: rows that come in portions are read to the last: %i', async (n) => {
      const { session } = await opened()
      const { rows, more, cells } = await session.read(`SELECT n FROM generate_series(1, ${n}) n`, false)
      expect([rows, more, cells.at(-1)]).toEqual([n, false, String(n)])
      await session.close()
    })

    test('PostgreSQL: a query that is slow by the row is ended in the time of one, and not of each portion', async () => {
      const result = await ask(
        [{ name: 'slow', sql: 'SELECT n FROM generate_series(1, 1000) n, pg_sleep(0.005 + 0 * n)', atMost: {} }],
        'Standard',
        { timeoutMs: 1_500 },
      )
      expect(result.map(({ fault, message }) => [fault, message])).toEqual([
        [
          'timeout',
          expect.stringMatching(/^slow: (canceling statement due to statement timeout|the query was called off)/),
        ],
      ])
      await nothingOpen()
    })
  },
)

test('H47 PostgreSQL: a library is looked for in each folder of the path, with and without its ending', () => {
  expect(librariesOf('pg_stat_statements, "$libdir/other",')).toEqual(['pg_stat_statements', '$libdir/other'])
  expect(placesOf('a', '$libdir:/opt/$x', '/lib')).toEqual(['/lib/a.so', '/lib/a', '/opt/$x/a.so', '/opt/$x/a'])
  expect(placesOf('$libdir/plugins/a', '/opt', '/lib')).toEqual(['/lib/plugins/a.so', '/lib/plugins/a'])
})

test('PostgreSQL: a server that reports none of its figures (simulated) passes no check of them', async () => {
  await using silent = await peer(postgresAnswering('one', 23, '1'))
  const url = `postgres://monitor@127.0.0.1:${silent.port}/d`
  const results = await runKind(postgres, { url, replicas: 1, role: 'primary' }, 'Advanced')
  expect(results.filter(({ status }) => status === 'ok').map(({ check }) => check)).toEqual(['connect', 'query'])
  const reported = results.map(({ check }) => check)
  // It is without TLS, writes and queries are not configured, and one result reports the failure of what three share.
  // The account may not read the files of the server.
  const files = ['configuration files', 'preload libraries']
  const unconfigured = ['backup age', 'write', 'queries']
  const absent = ['certificate', 'newest wal', 'replication backlog', 'replicas', ...files, ...unconfigured]
  const all = postgres.checks.map(({ name }) => name).filter((name) => !ofRunner.includes(name))
  expect(all.filter((name) => !reported.includes(name))).toEqual(absent)
})

describe('postgres: figures against limits', () => {
  const status = (results: readonly Result[]): string => results.map((result) => result.status).join(' ')
  const server = { isStandby: false, readOnly: false, roleReadsOnly: false, version: '17.2', upMs: 3_600_000 } as const
  const replica = { name: 'r1', state: 'streaming', logical: false, bytes: 0, lagMs: undefined, silentMs: 1_000 }
  const primary = { user: 'monitor', hidden: 0, replay: undefined }
  const lag = (...list: { readonly bytes: number; readonly lagMs: number; readonly silentMs?: number }[]) =>
    evaluated(replicationLag, { ...primary, replicas: list.map((one) => ({ ...replica, ...one })) })

  test('PostgreSQL: boundaries belong to what is well', () => {
    const used = (connected: number, usable = 100) => status(evaluated(connections, { used: connected, usable }))
    expect(used(80)).toBe('ok')
    expect(used(81)).toBe('warning')
    expect(used(95)).toBe('warning')
    expect(used(96)).toBe('failed')
    expect(used(1, 0)).toBe('failed')
    expect(status(evaluated(serverCheck, { ...server, upMs: 60_000 }))).toBe('ok ok')
    expect(status(evaluated(serverCheck, { ...server, upMs: 59_999 }))).toBe('ok warning')
    const transaction = (maxMs: number) =>
      status(evaluated(transactionDuration, { user: 'monitor', hidden: 0, who: 'pid 1', maxMs }))
    expect(transaction(120_000)).toBe('ok')
    expect(transaction(120_001)).toBe('warning')
    expect(transaction(300_001)).toBe('failed')
    const wait = (maxMs: number) =>
      status(evaluated(lockWait, { user: 'monitor', waiting: 1, hidden: 0, pid: 1, maxMs }))
    expect(wait(60_000)).toBe('ok')
    expect(wait(60_001)).toBe('warning')
    expect(wait(120_001)).toBe('failed')
    const prepared = (oldestMs: number) => status(evaluated(preparedTransactions, { prepared: 1, who: 'x', oldestMs }))
    expect(prepared(1_000)).toBe('ok')
    expect(prepared(30_001)).toBe('failed')
    const pages = { on: true, isCounted: true }
    expect(status(evaluated(checksumFailures, { ...pages, failures: [] }))).toBe('ok')
    expect(evaluated(checksumFailures, { ...pages, failures: ['postgres: 1'] })[0]).toMatchObject({ fault: 'data' })
  })
  test('PostgreSQL: hidden sessions are not checked, but never hide a transaction that is too long', () => {
    const hidden = { user: 'monitor', hidden: 2 }
    expect(evaluated(transactionDuration, { ...hidden, who: '', maxMs: undefined })[0]).toMatchObject({
      status: 'warning',
      notChecked: 'permission',
    })
    expectResult(evaluated(transactionDuration, { ...hidden, who: 'pid 1', maxMs: 400_000 })[0], '(threshold)')
  })
  test('PostgreSQL: replication lag: nothing to replay means no lag, whatever the clock says', () => {
    expect(status(lag({ bytes: 0, lagMs: 3_600_000 }))).toBe('ok')
    const behind = (lagMs: number) => lag({ bytes: 4_096, lagMs })
    expect(status(behind(5_000))).toBe('ok')
    expect(status(behind(5_001))).toBe('warning')
    expect(status(behind(30_001))).toBe('failed')
    expect(behind(412_000)[0]?.message).toBe('r1 lags by 6.9 min (warn 5 s, fail 30 s)')
  })
  test('PostgreSQL: a replica that has not replayed everything, and reports no lag, is not one without lag', () => {
    const one = { ...replica, bytes: 4_096 }
    expect(evaluated(replicationLag, { ...primary, replicas: [one] })[0]).toMatchObject({
      notChecked: 'missing',
      message: 'not checked: the lag of r1 is not reported, and it has not replayed 4 KiB',
    })
    const late = { ...replica, name: 'r2', bytes: 4_096, lagMs: 40_000 }
    expect(evaluated(replicationLag, { ...primary, replicas: [one, late] })[0]).toMatchObject({
      fault: 'threshold',
      measurement: { value: 40_000 },
    })
  })
  test('PostgreSQL: a replica that is behind and silent for longer than it reports is behind by that silence', () => {
    const silent = (silentMs: number) => status(lag({ bytes: 4_096, lagMs: 3, silentMs }))
    expect(silent(19_000)).toBe('ok')
    expect(silent(31_000)).toBe('failed')
  })
  test('PostgreSQL: a standby: paused, unconnected, or fed from an archive', () => {
    const behind = {
      connected: true,
      follows: true,
      restores: false,
      silentMs: 30_000,
      newestMs: 30_000,
      paused: false,
      current: false,
      sinceReplayMs: 30_000,
      isWriting: true,
      blockedMs: undefined,
      waits: { atLeastMs: 0, atMostMs: undefined },
      waitsFor: '',
      delayMs: 0,
      bytes: 0,
      isLimited: false,
    }
    type Replay = Omit<typeof behind, 'blockedMs' | 'waits'> & {
      readonly blockedMs: number | undefined
      readonly waits: { readonly atLeastMs: number; readonly atMostMs: number | undefined }
    }
    const replay = (more: Partial<Replay> = {}) =>
      evaluated(replicationLag, { ...primary, replicas: [], replay: { ...behind, ...more } })
    expect(status(replay())).toBe('warning')
    expect(status(replay({ sinceReplayMs: 30_001 }))).toBe('failed')
    expect(status(replay({ current: true, sinceReplayMs: 1e9 }))).toBe('ok')
    expect(replay({ connected: false, current: true })[0]).toMatchObject({ fault: 'data' })
    expect(status(replay({ connected: false, follows: false, restores: true, current: true }))).toBe('ok')
    expect(replay({ connected: false, follows: false, current: true })[0]).toMatchObject({
      fault: 'data',
      message: 'neither primary_conninfo nor restore_command is set: no WAL reaches this standby',
    })
    const archive = { connected: false, follows: false, restores: true, sinceReplayMs: 1e6 }
    const restored = replay({ ...archive, waitsFor: 'RecoveryRetrieveRetryInterval' })
    expectResult(restored[0], 'ok: has replayed all that its archive contains; last replay 16.7 min ago')
    expect(status(replay({ ...archive, waitsFor: 'RecoveryRetrieveRetryInterval', isLimited: true }))).toBe('failed')
    expect(status(replay({ current: true, silentMs: 35_000 }))).toBe('ok')
    expect(replay({ current: true, silentMs: 64_000 })[0]).toMatchObject({
      fault: 'threshold',
      measurement: { value: 64_000, limit: 30_000 },
    })
  })
  test('PostgreSQL: a standby is behind by what has waited for certain, unless its primary keeps writing', () => {
    const behind = {
      connected: true,
      follows: true,
      restores: false,
      silentMs: 100,
      newestMs: 2_500,
      paused: false,
      current: false,
      sinceReplayMs: 72_000,
      isWriting: false,
      blockedMs: undefined,
      waits: { atLeastMs: 0, atMostMs: undefined },
      waitsFor: '',
      delayMs: 0,
      bytes: 8_192,
      isLimited: false,
    }
    const lagMs = (more: object = {}) =>
      evaluated(replicationLag, { ...primary, replicas: [], replay: { ...behind, ...more } })[0]?.measurement?.value
    expect(lagMs()).toBe(2_500)
    expect(lagMs({ isWriting: true })).toBe(72_000)
    expect(lagMs({ blockedMs: 40_000 })).toBe(40_000)
    expect(lagMs({ waits: { atLeastMs: 61_000, atMostMs: undefined } })).toBe(61_000)
    expect(lagMs({ isWriting: true, waits: { atLeastMs: 0, atMostMs: 9_000 } })).toBe(9_000)
    expect(lagMs({ newestMs: 600_000 })).toBe(72_000)
    expect(lagMs({ newestMs: undefined })).toBe(72_000)
    expect(lagMs({ waitsFor: 'RecoveryApplyDelay', isWriting: true })).toBe(0)
    expect(lagMs({ delayMs: 70_000, isWriting: true })).toBe(2_000)
    const replay = { ...behind, delayMs: 3_600_000, paused: true }
    expect(evaluated(replicationLag, { ...primary, replicas: [], replay })[0]).toMatchObject({
      status: 'warning',
      message: 'lag 0 ms beyond recovery_min_apply_delay of 1 h (warn 5 s, fail 30 s); replay is paused',
    })
    const allowed = { replicationLag: { warn: 72_000 } }
    expect(evaluated(replicationLag, { ...primary, replicas: [], replay }, allowed)[0]).toMatchObject({
      status: 'ok',
      message: 'lag 0 ms beyond recovery_min_apply_delay of 1 h (warn 1.2 min); replay is paused',
    })
  })
  test('PostgreSQL: slots: too much is a warning unless a limit is set; unused for long is one too, and a lost one fails', () => {
    const slot = { name: 's', active: true, idle: undefined, bytes: 0, lost: false, isSpare: false }
    const at = (
      more: Partial<Omit<typeof slot, 'idle'>> & {
        readonly idle?: { atLeastMs: number; atMostMs: number | undefined }
      },
      options: Partial<Values<typeof slots.settings>> = {},
    ) => evaluated(slots, [{ ...slot, ...more }], options)
    const idle = (atLeastMs: number, atMostMs: number | undefined = atLeastMs) => ({
      active: false,
      idle: { atLeastMs, atMostMs },
    })
    expect(status(at({ bytes: 10 * 1024 ** 3 }))).toBe('ok')
    const large = { bytes: 10 * 1024 ** 3 + 1 }
    expect(status(at(large))).toBe('warning')
    expect(status(at(large, { slots: { limit: 1 } }))).toBe('failed')
    expect(status(at(idle(600_000)))).toBe('ok')
    expect(status(at(idle(600_001)))).toBe('warning')
    expect(at(idle(300_000))[0]?.message).toBe('1 slot, 1 without a consumer for a short time')
    expect(status(at({ active: false, idle: { atLeastMs: 0, atMostMs: undefined } }))).toBe('warning')
    expect(status(at({ ...idle(600_001), isSpare: true }))).toBe('ok')
    expect(status(at({ ...idle(600_001), ...large, isSpare: true }))).toBe('warning')
    expect(at({ lost: true })[0]).toMatchObject({ fault: 'data', message: 's has lost WAL that its consumer needs' })
  })
  test('PostgreSQL: wraparound is judged against the age of emergency measures', () => {
    const at = (age: number) =>
      status(evaluated(wraparound, { database: 'd', of: 'transaction', age, failsafe: 1.6e9 }))
    // A forced vacuum of a healthy server begins at 2e8.
    expect(at(2.1e8)).toBe('ok')
    expect(at(1.44e9)).toBe('ok')
    expect(at(1.45e9)).toBe('warning')
    expect(at(1.53e9)).toBe('failed')
  })
})
