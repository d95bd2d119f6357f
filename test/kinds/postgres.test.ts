import { X509Certificate } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  clockSetting,
  databaseTarget,
  evaluateClock,
  PeerSocket,
  type TlsSetting,
} from '../../src/core/database/index.ts'
import { type Kind, limits, type Result } from '../../src/core/engine/index.ts'
import {
  connections,
  lockWait,
  longestTransaction,
  preparedTransactions,
  server as serverCheck,
  wraparound,
} from '../../src/core/kinds/postgres/checks.ts'
import { openPostgres } from '../../src/core/kinds/postgres/driver.ts'
import postgres from '../../src/core/kinds/postgres/index.ts'
import { replicationLag, slots } from '../../src/core/kinds/postgres/replication.ts'
import type { Values } from '../../src/core/settings/index.ts'
import { type Certificates, makeCertificates } from '../support/certs.ts'
import { endsByDeadline } from '../support/deadline.ts'
import { blackHole, endless, peer, refusedPort, settled, speaks } from '../support/faults.ts'
import { suiteWith } from '../support/peer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/postgres.ts'
import { proxy } from '../support/proxy.ts'
import { checked, evaluated, type RunKindOptions, rowsAsResult, runKind, secret } from '../support/run-kind.ts'
import { asServer } from '../support/server.ts'
import { postgresAnswering } from '../support/simulated-postgres.ts'
import { until } from '../support/until.ts'

const word = 'correct horse'
type Overrides = Partial<Values<typeof postgres.settings>>

suiteWith(postgresMissing, 'postgres', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres([
      'max_prepared_transactions=5',
      'archive_mode=on',
      'archive_command=true',
      'wal_level=logical',
    ])
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
    await server.query(`CREATE ROLE stranger LOGIN PASSWORD '${word}'`)
  })
  afterAll(() => server.remove())

  const run = (
    overrides: Overrides = {},
    mode: 'Basic' | 'Standard' | 'Advanced' = 'Basic',
    options: RunKindOptions = {},
  ) => runKind(postgres, { url: server.url('monitor'), password: secret(word), ...overrides }, mode, options)
  const one = async (check: string, ...args: Parameters<typeof run>): Promise<Result> =>
    checked(await run(...args), check)
  /** What svc has open on the server, once it has had a moment to end. */
  async function left(which = 'true'): Promise<unknown[]> {
    let rows: unknown[] = []
    for (let tries = 0; tries < 200; tries += 1) {
      rows = await server.query(
        `SELECT pid, state, query FROM pg_stat_activity WHERE application_name = 'svc-health' AND ${which}`,
      )
      if (rows.length === 0) return rows
      await wait(50)
    }
    return rows
  }

  describe('a healthy server', () => {
    test('each mode runs its checks and those of the shallower ones, and all are ok', async () => {
      const names = async (mode: 'Basic' | 'Standard' | 'Advanced'): Promise<string[]> => {
        const results = await run({ restarted: {}, replicas: 0 }, mode)
        expect(results.filter((result) => result.status !== 'ok')).toEqual([])
        expect(results.every((result) => result.address === server.address)).toBe(true)
        return results.map((result) => result.check)
      }
      // It is without TLS, and has no custom queries.
      const all = postgres.checks
        .map((check) => check.name)
        .filter((name) => !['certificate', 'queries'].includes(name))
      expect(await names('Basic')).toEqual(['connect', 'query'])
      expect(await names('Standard')).toEqual(all.slice(0, 7))
      expect(await names('Advanced')).toEqual(all)
      expect(await left()).toEqual([])
    })
    test('the clock is compared with the local one, as far as a difference is certain', async () => {
      const off = (ms: number) => one('clock', {}, 'Advanced', { date: () => new Date(Date.now() + ms) })
      const agrees = await off(0)
      expect(agrees).toMatchObject({ status: 'ok', measurement: { value: 0, limit: 30_000 } })
      expect(agrees.message).toMatch(/^server clock in sync, ±[\d.]+ m?s \(/)
      const behind = await off(600_000)
      expect(behind).toMatchObject({ status: 'failed', fault: 'threshold' })
      expect(behind.message).toBe("the server's clock is behind ours by 10 min (limit 30 s)")
      const ahead = await off(-12_000)
      expect(ahead.status).toBe('warning')
      expect(ahead.message).toMatch(/^the server's clock is ahead of ours by 1[\d.]+ s \(warns above 2 s\)$/)
    })
    test('it reports what it observes', async () => {
      const results = await run({}, 'Standard')
      const textOf = (check: string): string => checked(results, check).message
      expect(textOf('connect')).toMatch(/^signed in to 127\.0\.0\.1:\d+ as monitor in [\d.]+ m?s \(limit 3 s\)$/)
      expect(textOf('role')).toMatch(/^primary, PostgreSQL \d+\.\d+$/)
      expect(textOf('connections')).toMatch(/^\d+ of 17 usable connections: [\d.]+ % \(limit 95 %\)$/)
    })
    test('variables of the environment are ignored', async () => {
      process.env.PGPASSWORD = word
      process.env.PGSSLMODE = 'require'
      try {
        const { message, fault } = await one('connect', {
          password: secret('wrong'),
        })
        expect([fault, message]).toEqual(['auth', expect.stringContaining('password authentication failed')])
        const none = await runKind(postgres, { url: server.url('monitor') })
        expect(checked(none, 'connect')).toMatchObject({
          fault: 'auth',
          message: `${server.address} requires a password, and none is configured: add \`password:\``,
        })
      } finally {
        delete process.env.PGPASSWORD
        delete process.env.PGSSLMODE
      }
    })
  })

  describe('a server that cannot be reached or refuses the sign-in', () => {
    test('refused: nothing listens', async () => {
      const url = `postgres://monitor@127.0.0.1:${await refusedPort()}/postgres`
      expect(await one('connect', { url })).toMatchObject({
        status: 'failed',
        fault: 'refused',
        message: expect.stringContaining('refused the connection'),
      })
    })
    test('black hole: accepted and never answered ends at the deadline, and leaves no socket', async () => {
      await using hole = await peer(blackHole)
      const url = `postgres://monitor@127.0.0.1:${hole.port}/postgres`
      const result = await endsByDeadline(400, one('connect', { url }, 'Basic', { timeoutMs: 400 }))
      expect(result).toMatchObject({ fault: 'timeout', message: `127.0.0.1:${hole.port} did not answer within 0.4 s` })
      await hole.close()
      expect(await settled('')).toBe('')
    })
    test('slow: each answer late by 150 ms is a threshold, with the figure', async () => {
      await using slow = await proxy(server.port, 150)
      const url = `postgres://monitor@127.0.0.1:${slow.port}/postgres`
      const results = await run({ url, latency: { warn: 50, limit: 120 } })
      for (const check of ['connect', 'query']) {
        expect(checked(results, check)).toMatchObject({
          status: 'failed',
          fault: 'threshold',
          measurement: { limit: 120 },
        })
        expect(checked(results, check).measurement?.value).toBeGreaterThan(150)
      }
    })
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      const shared = limits()
      const wrong = { password: secret('hunter2-wrong') }
      const result = await one('connect', wrong, 'Basic', { limits: shared, retries: 3 })
      expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(result.message).toContain('refused the sign-in of "monitor"')
      expect(JSON.stringify(result)).not.toContain('hunter2')
      const refusals = (): number => server.log().split('password authentication failed').length
      const before = refusals()
      expect((await one('sign-in', wrong, 'Basic', { limits: shared })).message).toContain('not signed in')
      expect(refusals()).toBe(before)
    })
    test('an account that is not allowed from this address is auth', async () => {
      await server.query('ALTER ROLE stranger NOLOGIN')
      expect(await one('connect', { url: server.url('stranger') })).toMatchObject({ fault: 'auth' })
      await server.query('ALTER ROLE stranger LOGIN')
    })
    test('a missing database is data, and named', async () => {
      const result = await one('connect', { url: server.url('monitor', 'nowhere') })
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toContain('database "nowhere" does not exist')
    })
    test('a database that is closed to this account is data: the password was correct', async () => {
      await server.query('CREATE DATABASE closed')
      await server.query('REVOKE CONNECT ON DATABASE closed FROM PUBLIC')
      const result = await one('connect', { url: server.url('monitor', 'closed') })
      await server.query('DROP DATABASE closed')
      expect(result).toMatchObject({ fault: 'data', message: expect.stringContaining('denies "monitor" access to') })
    })
    test('a database that is dropped fails the next run, not this process', async () => {
      await server.query('CREATE DATABASE short')
      const url = server.url('monitor', 'short')
      expect(await one('query', { url })).toMatchObject({ status: 'ok' })
      await server.query('DROP DATABASE short')
      expect(await one('connect', { url })).toMatchObject({ fault: 'data' })
    })
    test('too many clients are reported as such, and are not a refused sign-in', async () => {
      await server.query('ALTER ROLE stranger CONNECTION LIMIT 0')
      const result = await one('connect', { url: server.url('stranger') })
      expect(result).toMatchObject({
        fault: 'refused',
        message: expect.stringContaining('has no free connection: too many connections'),
      })
      await server.query('ALTER ROLE stranger CONNECTION LIMIT -1')
    })
    test.each([
      ['an SSH server', speaks('SSH-2.0-OpenSSH_9.2\r\n')],
      ['an HTTP server', speaks('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')],
      ['zeroes', speaks(Buffer.alloc(4_096))],
      ['rows before any question', speaks(Buffer.from('D\0\0\0\x0a\0\x02\0\0\0\x01', 'latin1'))],
      ['a row that is shorter than it says', speaks(Buffer.from('T\0\0\0\x08\x7f\xff\0\0E\0\0\0\x04', 'latin1'))],
      ['an endless answer', endless('R')],
      ['a connection that is closed at once', (socket) => void socket.end()],
      ['a connection that is reset', (socket) => void socket.resetAndDestroy()],
    ] satisfies [string, Parameters<typeof peer>[0]][])('%s is a failure, and nothing breaks', async (_, behave) => {
      await using other = await peer(behave)
      const url = `postgres://monitor@127.0.0.1:${other.port}/postgres`
      const result = await one('connect', { url }, 'Basic', { timeoutMs: 700 })
      expect(result.status).toBe('failed')
      expect(['protocol', 'timeout']).toContain(result.fault)
    })
    test('200 answers of random bytes are 200 failures, and nothing breaks', async () => {
      for (let round = 0; round < 200; round += 1) {
        const bytes = Buffer.from(Array.from({ length: 64 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
        await using other = await peer((socket) => void socket.end(bytes))
        const result = await one('connect', { url: `postgres://m@127.0.0.1:${other.port}/d` }, 'Basic', {
          timeoutMs: 300,
        })
        expect(result.status).toBe('failed')
      }
    })
    test('a frozen server ends at the deadline, and no session of svc exists when it continues', async () => {
      server.freeze()
      let result: Result
      try {
        result = await endsByDeadline(500, one('connect', {}, 'Basic', { timeoutMs: 500 }))
      } finally {
        server.thaw()
      }
      expect(result).toMatchObject({ fault: 'timeout', message: `${server.address} did not answer within 0.5 s` })
      expect(await left()).toEqual([])
    })
    test('svc resolves the name, and skips an address that refuses with a warning', async () => {
      const resolve = async (): Promise<readonly string[]> => ['127.0.0.2', '127.0.0.1']
      const url = `postgres://monitor@db.example.test:${server.port}/postgres`
      const results = await run({ url, tls: { mode: 'off' } }, 'Basic', { resolve })
      expect(results[0]).toMatchObject({ status: 'warning', address: `127.0.0.2:${server.port}` })
      expect(results.at(-1)).toMatchObject({ check: 'query', status: 'ok', address: server.address })
    })
  })

  describe('a run ends what it started on the server', () => {
    /** The session of the kind, with a statement of the test's own. */
    const asking = (sql: string, msLeft: (left: number) => number, port = server.port): Kind => ({
      name: 'asking',
      title: '',
      settings: {},
      runsOn: 'network',
      checks: [{ name: 'ask', depth: 'Basic', doc: '' }],
      async *run(_, context) {
        const { signal } = context
        const target = databaseTarget({ url: server.url('monitor'), password: secret(word) }, port)
        const socket = await PeerSocket.reach('127.0.0.1', port, signal)
        const address = `127.0.0.1:${port}`
        const opened = { socket, ip: '127.0.0.1', address, signal, msLeft: () => msLeft(context.msLeft()) }
        const session = await openPostgres({ ...target, port }, opened)
        try {
          yield rowsAsResult(await session.ask(sql))
        } finally {
          await session.close()
          socket.destroy()
        }
      },
    })
    const sleeping = (): Promise<unknown[]> =>
      server.query(
        "SELECT application_name FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()",
      )
    test('a query that hangs is cancelled at the deadline', async () => {
      // The server's own limit is far off: it is the cancel request that ends it.
      const kind = asking('SELECT pg_sleep(60)', () => 60_000)
      const result = endsByDeadline(2_000, runKind(kind, {}, 'Basic', { timeoutMs: 2_000 }))
      await until(async () => (await sleeping()).length > 0)
      expect(await sleeping()).toEqual([{ application_name: 'svc-health' }])
      expect((await result)[0]).toMatchObject({ fault: 'timeout' })
      expect(await left()).toEqual([])
      expect(await settled('')).toBe('')
    })
    test('where no cancel request gets through, the server itself ends it at the deadline', async () => {
      await using once = await proxy(server.port, 0, 1)
      const kind = asking('SELECT pg_sleep(60)', (msLeft) => msLeft, once.port)
      const results = await endsByDeadline(1_000, runKind(kind, {}, 'Basic', { timeoutMs: 1_000 }))
      expect(results[0]).toMatchObject({ fault: 'timeout' })
      // The server has not heard that the connection is gone; but nothing runs, and nothing is open. The statement would
      // sleep for longer than this test may take.
      expect(await left("state <> 'idle'")).toEqual([])
    })
    test('a cancel request that overtakes its query is sent again', async () => {
      await using late = await proxy(server.port, 0, 50, 150)
      const control = new AbortController()
      const socket = await PeerSocket.reach('127.0.0.1', late.port, control.signal)
      const opened = { socket, ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000 }
      const target = databaseTarget({ url: server.url('monitor'), password: secret(word) }, late.port)
      const session = await openPostgres({ ...target, port: late.port }, opened)
      const pendingQuery = session.ask('SELECT pg_sleep(60)').catch((error: unknown) => error)
      await wait(20)
      control.abort()
      await session.close()
      expect(await pendingQuery).toBeInstanceOf(Error)
      expect(await left("state = 'active'")).toEqual([])
    })
    test('a cancellation while the driver loads takes effect', async () => {
      const control = new AbortController()
      const socket = await PeerSocket.reach('127.0.0.1', server.port, control.signal)
      const opened = { socket, ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000 }
      const opening = openPostgres(databaseTarget({ url: server.url('monitor'), password: secret(word) }, 0), opened)
      control.abort(new Error('too late'))
      await expect(opening).rejects.toThrow('too late')
      socket.destroy()
    })
    test('a run that is cancelled ends the query too', async () => {
      const control = new AbortController()
      const kind = asking('SELECT pg_sleep(60)', () => 60_000)
      const result = runKind(kind, {}, 'Basic', { signal: control.signal }).catch((error: unknown) => error)
      await until(async () => (await sleeping()).length > 0)
      control.abort(new Error('called off'))
      expect(await result).toMatchObject({ message: 'called off' })
      expect(await left()).toEqual([])
    })
    test('a run that is cancelled at any moment leaves no query, no session and no socket', async () => {
      for (let ms = 0; ms < 60; ms += 3) {
        const control = new AbortController()
        const result = run({}, 'Advanced', { signal: control.signal }).catch(() => [])
        const query = runKind(
          asking('SELECT pg_sleep(60)', () => 60_000),
          {},
          'Basic',
          { signal: control.signal },
        )
        await Promise.all([wait(ms).then(() => control.abort()), result, query.catch(() => [])])
      }
      expect(await left()).toEqual([])
      expect(await settled('')).toBe('')
    })
    test('it only reads, and under the name svc-health', async () => {
      const ask = async (sql: string): Promise<Result | undefined> =>
        (
          await runKind(
            asking(sql, (msLeft) => msLeft),
            {},
            'Basic',
          )
        )[0]
      expect(await ask('CREATE TABLE x (y int)')).toMatchObject({
        fault: 'protocol',
        message: expect.stringContaining('in a read-only transaction'),
      })
      expect(await ask("SELECT current_setting('application_name') AS name")).toMatchObject({
        message: '[{"name":"svc-health"}]',
      })
    })
    test('a locked view fails that check only; the others continue', async () => {
      const holder = await server.client()
      await holder.query('BEGIN; LOCK TABLE pg_stat_archiver IN ACCESS EXCLUSIVE MODE')
      try {
        const results = await run({ restarted: {} }, 'Advanced')
        expect(results.filter((result) => result.status !== 'ok')).toEqual([
          expect.objectContaining({ check: 'archiver', fault: 'timeout', message: 'timed out waiting for a lock' }),
        ])
        expect(checked(results, 'checksum failures').status).toBe('ok')
      } finally {
        await holder.end()
      }
    })
    test('objects in the schemas of users are never called', async () => {
      await server.query(`CREATE SCHEMA trap; GRANT USAGE ON SCHEMA trap TO PUBLIC;
        CREATE VIEW trap.pg_stat_activity AS SELECT pg_sleep(60)::text; GRANT SELECT ON trap.pg_stat_activity TO PUBLIC;
        CREATE FUNCTION trap.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT pg_sleep(60) IS NULL';
        ALTER ROLE monitor SET search_path = trap, pg_catalog`)
      const results = await run({ restarted: {} }, 'Advanced', { timeoutMs: 5_000 })
      await server.query('ALTER ROLE monitor RESET search_path; DROP SCHEMA trap CASCADE')
      expect(results.filter((result) => result.status !== 'ok')).toEqual([])
    })
  })

  describe('checks of a real server', () => {
    test('a denied view fails that check only, with the remedy, and is not a refused sign-in', async () => {
      await server.query('REVOKE SELECT ON pg_stat_archiver FROM PUBLIC')
      try {
        const bad = (await run({ restarted: {} }, 'Advanced')).filter((result) => result.status !== 'ok')
        expect(bad).toEqual([
          expect.objectContaining({
            check: 'archiver',
            fault: 'data',
            message: '"monitor" lacks a privilege for this check: permission denied for view pg_stat_archiver',
          }),
        ])
        expect(bad[0]?.details?.[0]).toBe('GRANT pg_monitor TO "monitor"')
      } finally {
        await server.query('GRANT SELECT ON pg_stat_archiver TO PUBLIC')
      }
    })
    test('an account with only the privileges that the checks declare sees all', async () => {
      const other = await server.client()
      await other.query('BEGIN')
      await server.query(`CREATE ROLE limited LOGIN PASSWORD '${word}'`)
      const unwell = async (): Promise<string[]> => {
        const results = await run({ url: server.url('limited'), restarted: {} }, 'Advanced')
        return results.filter(({ status }) => status !== 'ok').map(({ check }) => check)
      }
      try {
        expect(await unwell()).toEqual(['longest transaction'])
        for (const { privilege } of postgres.checks) {
          if (privilege) await server.query(privilege.replace('<account>', 'limited'))
        }
        expect(await unwell()).toEqual([])
      } finally {
        await other.end()
        await server.query('DROP ROLE limited')
      }
    })
    test('sessions that are hidden from this account are reported, and do not count as healthy', async () => {
      const other = await server.client()
      await other.query('BEGIN')
      const results = await run({ url: server.url('stranger') }, 'Standard')
      await other.end()
      expect(checked(results, 'longest transaction')).toMatchObject({
        fault: 'data',
        message: expect.stringMatching(/hidden from this account/),
        details: ['GRANT pg_monitor TO "stranger"'],
      })
      expect(checked(results, 'connections').measurement?.value).toBeGreaterThan(100 / 17)
    })
    test('a transaction that is open too long is reported with its owner', async () => {
      const other = await server.client()
      await other.query('BEGIN; SELECT 1')
      await wait(80)
      const result = await one('longest transaction', { longestTransaction: { warn: 10, limit: 60 } }, 'Standard')
      await other.end()
      expect(result).toMatchObject({ status: 'failed', fault: 'threshold' })
      expect(result.message).toMatch(/^pid \d+, user postgres, idle in transaction, for \d+ ms \(limit 60 ms\)$/)
    })
    test('a session that waits for a lock too long is reported', async () => {
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
      expect(result.message).toMatch(/^1 session is waiting for a lock, the longest for \d+ ms/)
      expect(result.measurement?.value).toBeLessThan(took - 500)
      expect(result.details?.[0]).toMatch(/^inspect: SELECT pg_blocking_pids\(\d+\)$/)
    })
    test('an unexpected role, and a read-only primary, are reported', async () => {
      expect(await one('role', { role: 'standby' }, 'Standard')).toMatchObject({
        fault: 'data',
        message: 'role is primary, expected standby',
      })
      await server.query('ALTER ROLE monitor SET default_transaction_read_only = on')
      expect(await one('role', { role: 'primary' }, 'Standard')).toMatchObject({ fault: 'data' })
      expect(await one('role', {}, 'Standard')).toMatchObject({ status: 'warning' })
      await server.query('ALTER ROLE monitor RESET default_transaction_read_only')
    })
    test('a slot without a consumer, and one that retains too much, are reported', async () => {
      await server.query("SELECT pg_create_physical_replication_slot('forgotten', true)")
      try {
        await wait(20)
        const result = await one('slots', { inactiveSlots: { warn: 10 } }, 'Advanced')
        expect(result.status).toBe('warning')
        expect(result.message).toMatch(
          /^forgotten has had no consumer for \d+ ms and retains .* \(warns above 10 ms\)$/,
        )
        await server.query('CREATE TABLE much AS SELECT generate_series(1, 5000) AS x; DROP TABLE much')
        expect(await one('slots', { slots: { limit: 10_000 } }, 'Advanced')).toMatchObject({ fault: 'threshold' })
      } finally {
        await server.query("SELECT pg_drop_replication_slot('forgotten')")
      }
    })
    test('an archiver that fails is reported', async () => {
      await server.query("ALTER SYSTEM SET archive_command = 'false'")
      await server.query('SELECT pg_reload_conf()')
      // The command line goes before the file: nothing changes there until it is left out.
      await server.query('SELECT pg_switch_wal()')
      expect(await one('archiver', {}, 'Advanced')).toMatchObject({ status: 'ok' })
    })
    test('a forgotten prepared transaction is reported', async () => {
      await server.query("BEGIN; CREATE TABLE p (); PREPARE TRANSACTION 'order-7'")
      await wait(30)
      const result = await one('prepared transactions', { preparedTransactions: { limit: 20 } }, 'Advanced')
      await server.query("ROLLBACK PREPARED 'order-7'")
      expect(result).toMatchObject({ fault: 'threshold' })
      expect(result.message).toMatch(
        /^1 transaction is waiting for the second phase, the oldest \(order-7 of postgres in postgres\) for/,
      )
    })
    test('a page with a wrong checksum is reported', async () => {
      await server.query('CREATE TABLE page AS SELECT 1 AS x; CHECKPOINT')
      const [row] = await server.query("SELECT pg_relation_filepath('page') AS path")
      server = await server.restart()
      const file = join(server.folder, 'data', String(row?.path))
      const bytes = readFileSync(file)
      bytes.fill(0x55, 8_000, 8_100)
      writeFileSync(file, bytes)
      await expect(server.query('SELECT * FROM page')).rejects.toThrow(/invalid page/)
      const actual = await until(async () => {
        const result = await one('checksum failures', {}, 'Advanced')
        return result.status === 'failed' && result
      })
      await server.query('DROP TABLE page')
      await server.query('SELECT pg_stat_reset()')
      expect(actual).toMatchObject({ status: 'failed', fault: 'data' })
      expect(actual.message).toContain('postgres: 1')
    })
    test('a server that was restarted is a warning', async () => {
      expect(await one('restarted', {}, 'Standard')).toMatchObject({ status: 'warning' })
    })
  })

  describe('a primary and its standby', () => {
    let primary: PostgresServer
    let standby: PostgresServer
    beforeAll(async () => {
      const fresh = await startPostgres(['archive_mode=on', 'archive_command=false'])
      await fresh.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
      ;({ primary, standby } = await fresh.standby())
      await until(
        async () => (await primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")).length,
      )
    })
    afterAll(async () => {
      await standby.remove()
      await primary.remove()
    })
    const at = async (which: PostgresServer, check: string, overrides: Overrides = {}): Promise<Result> =>
      checked(await run({ url: which.url('monitor'), ...overrides }, 'Advanced'), check)

    test('a standby that has replayed everything has no lag, however long the primary is idle', async () => {
      await until(async () => (await at(standby, 'replication lag')).status === 'ok')
      expect(await at(standby, 'replication lag', { replicationLag: { limit: 0 } })).toMatchObject({
        status: 'ok',
        measurement: { value: 0 },
      })
      expect(await at(standby, 'role', { role: 'standby' })).toMatchObject({ status: 'ok' })
      expect(await at(standby, 'role', { role: 'primary' })).toMatchObject({ fault: 'data' })
    })
    test('the primary knows its replicas by name, and counts them', async () => {
      await until(async () => (await at(primary, 'replication lag', { replicationLag: { limit: 0 } })).status === 'ok')
      expect((await at(primary, 'replication lag')).message).toContain('reporting-1 lags by')
      expect(await at(primary, 'replicas', { replicas: 1 })).toMatchObject({ status: 'ok' })
      expect(await at(primary, 'replicas', { replicas: 2 })).toMatchObject({
        fault: 'threshold',
        message: '1 of 2 expected replicas is streaming',
        details: ['reporting-1: streaming'],
      })
    })
    test('a standby that does not replay has lag, on both ends', async () => {
      await standby.query('SELECT pg_wal_replay_pause()')
      await primary.query('CREATE TABLE later AS SELECT generate_series(1, 100)')
      const actual = await until(async () => {
        const result = await at(standby, 'replication lag', { replicationLag: { limit: 100 } })
        return result.fault === 'threshold' && result
      })
      expect(actual).toMatchObject({ fault: 'threshold', message: expect.stringMatching(/; replay is paused$/) })
      expect(actual.details).toEqual([expect.stringContaining('pg_wal_replay_resume()')])
      expect((await at(primary, 'replication lag')).details?.[0]).toMatch(/^reporting-1: streaming, [1-9]/)
      await standby.query('SELECT pg_wal_replay_resume()')
    })
    test('synchronous standbys are counted, and missing ones are reported before commits block', async () => {
      const check = 'synchronous standbys'
      const configure = async (settings: Readonly<Record<string, string>>, isIn: string): Promise<void> => {
        for (const [name, value] of Object.entries(settings))
          await primary.query(`ALTER SYSTEM SET ${name} = '${value}'`)
        await primary.query('SELECT pg_reload_conf()')
        await until(async () => (await primary.query(`SELECT 1 WHERE ${isIn}`)).length)
      }
      const states = '(SELECT sync_state FROM pg_stat_replication)'
      const names = "current_setting('synchronous_standby_names')"
      expect(await at(primary, check)).toMatchObject({
        status: 'ok',
        message: 'no commit waits for a standby (synchronous_standby_names is empty)',
      })
      try {
        await configure({ synchronous_standby_names: '"reporting-1", other' }, `${states} = 'sync'`)
        expect(await at(primary, check)).toMatchObject({ status: 'ok', measurement: { value: 1, warn: 1 } })
        expect(await at(primary, check, { spareStandbys: { warn: 1, limit: 0 } })).toMatchObject({
          status: 'warning',
          message: 'a commit waits for 1 standby; streaming standbys: 1 (warns below 2)',
          measurement: { value: 1, warn: 2, limit: 1, bound: 'atLeast' },
        })
        await configure({ synchronous_standby_names: 'ANY 1 (*)' }, `${states} = 'quorum'`)
        expect(await at(primary, check)).toMatchObject({ status: 'ok', measurement: { value: 1, warn: 1 } })

        await primary.query(`CREATE ROLE limited LOGIN PASSWORD '${word}'`)
        await configure({ synchronous_standby_names: 'FIRST 2 ("reporting-1", other)' }, `${names} LIKE 'FIRST%'`)
        const commit = primary.query('CREATE TABLE waits_for_a_standby ()')
        await until(
          async () => (await primary.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).length,
        )
        expect(await at(primary, check)).toMatchObject({
          status: 'warning',
          message: 'a commit waits for 2 standbys; streaming standbys: 1 (warns below 2)',
        })
        const strict: Overrides = { spareStandbys: { limit: 0 } }
        expect(await at(primary, check, strict)).toMatchObject({
          status: 'failed',
          fault: 'threshold',
          message: 'a commit waits for 2 standbys; streaming standbys: 1 (at least 2)',
          measurement: { value: 1, unit: 'count', limit: 2, bound: 'atLeast' },
          details: ['1 commit is waiting for a standby now', expect.stringContaining('inspect: SELECT')],
        })
        const results = await run({ url: primary.url('limited') }, 'Advanced')
        expect(checked(results, check)).toMatchObject({
          fault: 'data',
          message: '1 replica is hidden from this account',
          details: ['GRANT pg_monitor TO "limited"'],
        })
        await configure({ synchronous_commit: 'local' }, "current_setting('synchronous_commit') = 'local'")
        expect(await at(primary, check, strict)).toMatchObject({
          status: 'warning',
          message: expect.stringMatching(/streaming standbys: 1 .*; synchronous_commit is local, so only/),
        })
        await configure({ synchronous_standby_names: '' }, `${names} = ''`)
        await commit
        const onStandby = await run({ url: standby.url('monitor') }, 'Advanced')
        expect(onStandby.map((result) => result.check)).not.toContain(check)
      } finally {
        await primary.query('ALTER SYSTEM RESET ALL')
        await primary.query('SELECT pg_reload_conf()')
      }
    })
    test('a server that reports no values of its standbys (simulated) does not count as healthy', async () => {
      await using silent = await peer(postgresAnswering('one', 23, '1'))
      const results = await run({ url: `postgres://monitor@127.0.0.1:${silent.port}/d` }, 'Advanced')
      expect(checked(results, 'query').status).toBe('ok')
      expect(checked(results, 'synchronous standbys')).toMatchObject({
        fault: 'protocol',
        message: expect.stringContaining('the server does not report its synchronous standbys'),
      })
    })
    test('an archiver that fails on the primary is reported', async () => {
      await primary.query('SELECT pg_switch_wal()')
      await until(async () => (await at(primary, 'archiver')).status === 'failed')
      const result = await at(primary, 'archiver')
      expect(result).toMatchObject({ fault: 'data' })
      expect(result.message).toMatch(
        /^archiving is failing: \d+ failures?, most recently for [0-9A-F]{24}; never succeeded$/,
      )
    })
    test('a standby that has lost its primary reports that, and is not ok for having replayed everything', async () => {
      await primary.stop()
      await until(async () => (await at(standby, 'replication lag')).status === 'failed')
      expect(await at(standby, 'replication lag')).toMatchObject({
        fault: 'data',
        message: expect.stringMatching(/^not connected to its primary \(no WAL receiver\); last replay .* ago$/),
      })
    })
  })

  describe('TLS', () => {
    let certificates: Certificates
    let secured: PostgresServer
    beforeAll(async () => {
      certificates = makeCertificates()
      const folder = join(server.folder, 'tls')
      const { mkdirSync, chownSync } = await import('node:fs')
      mkdirSync(folder)
      for (const [name, text] of [
        ['key.pem', certificates.good.key],
        ['cert.pem', certificates.good.cert],
      ] as const) {
        writeFileSync(join(folder, name), text, { mode: 0o600 })
        if (asServer.uid !== undefined) chownSync(join(folder, name), asServer.uid, asServer.gid)
      }
      const files = [`ssl_cert_file=${join(folder, 'cert.pem')}`, `ssl_key_file=${join(folder, 'key.pem')}`]
      secured = await startPostgres(['ssl=on', ...files], 'hostnossl all monitor all reject\n')
      await secured.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'`)
    })
    afterAll(async () => {
      certificates.remove()
      await secured.remove()
    })
    const tls = async (host: string, more: TlsSetting): Promise<Result> => {
      const url = `postgres://monitor@${host}:${secured.port}/postgres`
      const options = { resolve: async () => ['127.0.0.1'] }
      return checked(await run({ url, tls: more }, 'Basic', options), 'connect')
    }
    test('a trusted certificate for the right name or address lets the sign-in go on', async () => {
      const { caFile } = certificates
      for (const result of [
        await tls('svc.test', { mode: 'verify', caFile }),
        await tls('127.0.0.1', { mode: 'verify', caFile }),
      ]) {
        expect(result).toMatchObject({ status: 'ok', message: expect.stringContaining('as monitor over TLSv1.3 in') })
      }
      expect(await tls('other.test', { mode: 'verify', caFile, servername: 'svc.test' })).toMatchObject({
        status: 'ok',
      })
    })
    test('from Standard on the remaining days of its certificate are a value, and so is its last day', async () => {
      const { caFile, good } = certificates
      const url = `postgres://monitor@svc.test:${secured.port}/postgres`
      const options = { resolve: async () => ['127.0.0.1'] }
      const at = (mode: 'Basic' | 'Standard', more: object = {}) =>
        run({ url, tls: { mode: 'verify', caFile }, ...more }, mode, options)
      const end = new X509Certificate(good.cert).validToDate
      expect(checked(await at('Standard'), 'certificate')).toMatchObject({
        status: 'ok',
        measurement: { unit: 'days', warn: 20, limit: 3, bound: 'atLeast', at: end },
      })
      expect(checked(await at('Standard', { certificate: { warn: 100_000 } }), 'certificate').status).toBe('warning')
      expect((await at('Basic')).map(({ check }) => check)).not.toContain('certificate')
    })
    test('an unknown issuer or another name is tls, before any password is sent', async () => {
      expect(await tls('svc.test', { mode: 'verify' })).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(await tls('other.test', { mode: 'verify', caFile: certificates.caFile })).toMatchObject({
        fault: 'tls',
        message: expect.stringMatching(/altnames|does not match/i),
      })
    })
    test('auto verifies the certificate of another machine, and not of this one', async () => {
      const plain = await tls('127.0.0.1', { mode: 'auto' })
      expect(plain).toMatchObject({ fault: 'auth', message: expect.stringContaining('no encryption') })
      const url = `postgres://monitor@db.test:${server.port}/postgres`
      await using far = await peer((socket) => void socket.once('data', () => socket.end('N')))
      const result = await runKind(
        postgres,
        { url: `postgres://m@[::1]:${far.port}/d`, password: secret(word) },
        'Basic',
        {
          resolve: async () => ['127.0.0.1'],
        },
      )
      expect(checked(result, 'connect').status).toBe('failed')
      expect(far.input()).not.toContain('SSL')
      expect(
        await one('connect', { url, tls: { mode: 'verify' } }, 'Basic', { resolve: async () => ['127.0.0.1'] }),
      ).toMatchObject({
        fault: 'tls',
        message: `${server.address} does not offer TLS`,
        details: [expect.stringContaining('tls: {mode: off}')],
      })
    })
  })

  test('the whole test run leaves nothing on the server, and no password in its log', async () => {
    expect(await left()).toEqual([])
    expect(server.log()).not.toContain('hunter2')
    expect(readdirSync(server.folder)).toContain('data')
  })
})

describe('postgres: values against limits', () => {
  const status = (results: readonly Result[]): string => results.map((result) => result.status).join(' ')
  const server = { role: 'primary', readOnly: false, version: '17.2', upMs: 3_600_000 } as const
  const replica = { name: 'r1', state: 'streaming', bytes: 0, lagMs: undefined, silentMs: 1_000 }
  const primary = { user: 'monitor', hidden: 0, replay: undefined }
  const lag = (...list: { readonly bytes: number; readonly lagMs: number; readonly silentMs?: number }[]) =>
    evaluated(replicationLag, { ...primary, replicas: list.map((one) => ({ ...replica, ...one })) })

  test('the clock is ok at its boundaries, in both directions', () => {
    const clock = (aheadMs: number) => evaluateClock({ aheadMs, tripMs: 1 }, clockSetting.default).status
    expect([2_000, -2_000, 2_001, -30_000, -30_001].map(clock)).toEqual(['ok', 'ok', 'warning', 'warning', 'failed'])
  })

  test('values are ok at their boundaries', () => {
    const used = (connected: number, usable = 100) => status(evaluated(connections, { used: connected, usable }))
    expect(used(80)).toBe('ok')
    expect(used(81)).toBe('warning')
    expect(used(95)).toBe('warning')
    expect(used(96)).toBe('failed')
    expect(used(1, 0)).toBe('failed')
    expect(status(evaluated(serverCheck, { ...server, upMs: 60_000 }))).toBe('ok ok')
    expect(status(evaluated(serverCheck, { ...server, upMs: 59_999 }))).toBe('ok warning')
    const transaction = (longestMs: number) =>
      status(evaluated(longestTransaction, { user: 'monitor', hidden: 0, who: 'pid 1', longestMs }))
    expect(transaction(120_000)).toBe('ok')
    expect(transaction(120_001)).toBe('warning')
    expect(transaction(300_001)).toBe('failed')
    const wait = (longestMs: number) => status(evaluated(lockWait, { waiting: 1, pid: 1, longestMs }))
    expect(wait(60_000)).toBe('ok')
    expect(wait(60_001)).toBe('warning')
    expect(wait(120_001)).toBe('failed')
    const prepared = (oldestMs: number) => status(evaluated(preparedTransactions, { prepared: 1, who: 'x', oldestMs }))
    expect(prepared(1_000)).toBe('ok')
    expect(prepared(30_001)).toBe('failed')
  })
  test('hidden sessions fail, but never hide a transaction that is too long', () => {
    const hidden = { user: 'monitor', hidden: 2 }
    expect(evaluated(longestTransaction, { ...hidden, who: '', longestMs: 0 })[0]).toMatchObject({ fault: 'data' })
    expect(evaluated(longestTransaction, { ...hidden, who: 'pid 1', longestMs: 400_000 })[0]).toMatchObject({
      fault: 'threshold',
    })
  })
  test('replication lag: without WAL to replay there is no lag, whatever the clock shows', () => {
    expect(status(lag({ bytes: 0, lagMs: 3_600_000 }))).toBe('ok')
    const behind = (lagMs: number) => lag({ bytes: 4_096, lagMs })
    expect(status(behind(5_000))).toBe('ok')
    expect(status(behind(5_001))).toBe('warning')
    expect(status(behind(30_001))).toBe('failed')
    expect(behind(412_000)[0]?.message).toBe('r1 lags by 6.9 min (limit 30 s)')
  })
  test('a replica that is behind and silent for longer than it reports lags by that silence', () => {
    const silent = (silentMs: number) => status(lag({ bytes: 4_096, lagMs: 3, silentMs }))
    expect(silent(19_000)).toBe('ok')
    expect(silent(31_000)).toBe('failed')
  })
  test('a standby: paused, unconnected, or fed from an archive', () => {
    const behind = { connected: true, follows: true, paused: false, current: false, sinceReplayMs: 30_000 }
    const replay = (more: Partial<typeof behind> = {}) =>
      evaluated(replicationLag, { ...primary, replicas: [], replay: { ...behind, ...more } })
    expect(status(replay())).toBe('warning')
    expect(status(replay({ sinceReplayMs: 30_001 }))).toBe('failed')
    expect(status(replay({ current: true, sinceReplayMs: 1e9 }))).toBe('ok')
    expect(replay({ connected: false, current: true })[0]).toMatchObject({ fault: 'data' })
    expect(status(replay({ connected: false, follows: false, current: true }))).toBe('ok')
  })
  test('slots: too much is a warning unless a limit is set, and so is one that is long unused or lost', () => {
    const slot = { name: 's', active: true, inactiveMs: undefined as number | undefined, bytes: 0, lost: false }
    const at = (more: Partial<typeof slot>, overrides: Partial<Values<typeof slots.settings>> = {}) =>
      evaluated(slots, [{ ...slot, ...more }], overrides)
    expect(status(at({ bytes: 10 * 1024 ** 3 }))).toBe('ok')
    const large = { bytes: 10 * 1024 ** 3 + 1 }
    expect(status(at(large))).toBe('warning')
    expect(status(at(large, { slots: { limit: 1 } }))).toBe('failed')
    expect(status(at({ active: false, inactiveMs: 600_000 }))).toBe('ok')
    expect(status(at({ active: false, inactiveMs: 600_001 }))).toBe('warning')
    expect(status(at({ active: false }))).toBe('warning')
    expect(at({ lost: true })[0]?.message).toContain('has lost WAL')
  })
  test('wraparound is evaluated against the age of emergency measures', () => {
    const at = (age: number) =>
      status(evaluated(wraparound, { database: 'd', of: 'transaction', age, failsafe: 1.6e9 }))
    // A forced vacuum of a healthy server begins at 2e8.
    expect(at(2.1e8)).toBe('ok')
    expect(at(1.44e9)).toBe('ok')
    expect(at(1.45e9)).toBe('warning')
    expect(at(1.53e9)).toBe('failed')
  })
})
