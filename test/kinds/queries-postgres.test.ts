import { chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseTarget, PeerSocket, type Query } from '../../src/core/database/index.ts'
import type { Result } from '../../src/core/engine/index.ts'
import { openPostgres } from '../../src/core/kinds/postgres/driver.ts'
import postgres from '../../src/core/kinds/postgres/index.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../support/certs.ts'
import { endsByDeadline } from '../support/deadline.ts'
import { suiteWith } from '../support/peer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/postgres.ts'
import { type RunKindOptions, runKind, secret } from '../support/run-kind.ts'
import { asServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const word = 'correct horse'
type PartialQuery = Partial<Query> & { readonly sql: string }

suiteWith(postgresMissing, 'queries of postgres', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor;
      CREATE TABLE jobs (id int, state text, created_at timestamptz, naive timestamp, ended date);
      CREATE SEQUENCE ids; GRANT USAGE ON SEQUENCE ids TO monitor; GRANT SELECT, INSERT ON jobs TO monitor;
      CREATE TABLE secrets (id int);
      CREATE FUNCTION add_job() RETURNS int LANGUAGE sql AS 'INSERT INTO jobs (id) VALUES (99) RETURNING id';
      INSERT INTO jobs VALUES (1, 'waiting', now() - interval '1 hour', now() AT TIME ZONE 'UTC' - interval '2 hours', NULL),
        (2, 'waiting', now(), now() AT TIME ZONE 'UTC', NULL), (3, 'failed', now(), NULL, '2020-02-02')`)
  })
  afterAll(() => server.remove())

  const ask = async (
    queries: readonly PartialQuery[],
    mode: 'Basic' | 'Standard' | 'Advanced' = 'Standard',
    options: RunKindOptions = {},
  ): Promise<readonly Result[]> => {
    const namedQueries = queries.map((query) => ({ name: 'jobs', depth: 'Standard' as const, ...query }))
    const results = await runKind(
      postgres,
      { url: server.url('monitor', 'postgres'), password: secret(word), restarted: {}, queries: namedQueries },
      mode,
      options,
    )
    const other = results.filter(({ check, status }) => check !== 'queries' && status !== 'ok')
    expect(other).toEqual([])
    return results.filter(({ check }) => check === 'queries')
  }
  const one = async (query: PartialQuery, options: RunKindOptions = {}): Promise<Result> => {
    const [result, ...others] = await ask([query], 'Standard', options)
    if (!result || others.length > 0) throw new Error(`${others.length} others`)
    return result
  }
  /** Nothing of ours is open on the server, once it has had a moment to end. */
  const ended = (): Promise<unknown> =>
    until(
      async () =>
        (await server.query("SELECT query FROM pg_stat_activity WHERE application_name = 'svc-health'")).length === 0,
    )

  test('the numbers, dates and texts of a job table are evaluated', async () => {
    const results = await ask([
      { name: 'queue', sql: "SELECT count(*) FROM jobs WHERE state = 'waiting'", atMost: { limit: 2 } },
      { name: 'failed', sql: "SELECT count(*) FROM jobs WHERE state = 'failed'", atMost: { warn: 0 } },
      { name: 'oldest', sql: "SELECT min(created_at) FROM jobs WHERE state = 'waiting'", age: { limit: 60_000 } },
      { name: 'naive', sql: 'SELECT naive FROM jobs', age: { warn: 60_000 } },
      { name: 'day', sql: 'SELECT ended FROM jobs;', age: { limit: 1 } },
      { name: 'stuck', sql: "SELECT id FROM jobs WHERE state = 'stuck'", rows: { limit: 0 } },
      { name: 'dead', sql: "SELECT max(id) FROM jobs WHERE state = 'dead'", age: { limit: 1 } },
      { name: 'flag', sql: 'SELECT true, 17', expect: 'true' },
      { name: 'share', sql: 'SELECT 0.5::numeric', atLeast: { limit: 0.5 } },
    ])
    expect(results.map(({ status }) => status)).toEqual([
      'ok',
      'warning',
      'failed',
      'warning',
      'failed',
      'ok',
      'ok',
      'ok',
      'ok',
    ])
    expect(results.map(({ message }) => message)).toEqual([
      'queue: 2 (limit 2)',
      'failed: 1 (warns above 0)',
      'oldest: oldest 1 h (limit 1 min)',
      'naive: oldest 2 h (warns above 1 min)',
      expect.stringMatching(/^day: oldest \d{4}[\d.]* d \(limit 1 ms\)$/),
      'stuck: rows 0 (limit 0)',
      'dead: none (NULL)',
      'flag: is "true"',
      'share: 0.5 (at least 0.5)',
    ])
    expect(results.every(({ address }) => address === server.address)).toBe(true)
    await ended()
  })
  test('dates are read in whatever format the session uses', async () => {
    await server.query(
      "ALTER ROLE monitor SET DateStyle = 'German'; ALTER ROLE monitor SET TimeZone = 'Asia/Kathmandu'",
    )
    const results = await ask([
      { sql: 'SELECT max(created_at) FROM jobs', age: { limit: 3_600_000 } },
      { sql: 'SELECT naive FROM jobs WHERE id = 2', age: { limit: 3_600_000 } },
    ])
    await server.query('ALTER ROLE monitor RESET DateStyle; ALTER ROLE monitor RESET TimeZone')
    expect(results.map(({ status }) => status)).toEqual(['ok', 'ok'])
  })
  test('a query of Advanced does not run in Standard, and none in Basic', async () => {
    const both: readonly PartialQuery[] = [
      { name: 'a', sql: 'SELECT 1', atMost: { limit: 1 } },
      { name: 'b', sql: 'SELECT 1', atMost: { limit: 1 }, depth: 'Advanced' },
    ]
    const names = async (mode: 'Basic' | 'Standard' | 'Advanced') =>
      (await ask(both, mode)).map(({ message }) => message)
    expect(await names('Basic')).toEqual([])
    expect(await names('Standard')).toEqual(['a: 1 (limit 1)'])
    expect(await names('Advanced')).toEqual(['a: 1 (limit 1)', 'b: 1 (limit 1)'])
  })
  test.each([
    ['a sequence', "SELECT nextval('ids')"],
    ['a function that inserts', 'SELECT add_job()'],
    ['a WITH that deletes', 'WITH gone AS (DELETE FROM jobs RETURNING id) SELECT id FROM gone'],
    ['a lock on rows', 'SELECT id FROM jobs FOR UPDATE'],
    ['a table made of rows', 'SELECT id INTO copy FROM jobs'],
    ['the end of read only', "SELECT set_config('transaction_read_only', 'off', false), nextval('ids')"],
    ['two statements', 'SELECT 1; DELETE FROM jobs'],
    ['two statements that end the transaction', 'SELECT 1; COMMIT; DELETE FROM jobs'],
  ])('the server refuses a write: %s', async (_, sql) => {
    const state = () =>
      server.query('SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT is_called FROM ids) AS called')
    const result = await one({ sql, leastRows: { limit: 0 } })
    expect(result).toMatchObject({ status: 'failed', fault: 'data' })
    expect(result.message).toMatch(/^jobs: (the query failed|the query was rejected because it writes): ./)
    expect(await state()).toEqual([{ jobs: '3', called: false }])
    expect(await server.query("SELECT 1 FROM pg_class WHERE relname = 'copy'")).toEqual([])
  })
  test('INSERT is refused before anything is sent', async () => {
    const [result] = await runKind(
      postgres,
      {
        url: server.url('monitor'),
        password: secret(word),
        queries: [{ name: 'x', depth: 'Standard', sql: 'INSERT INTO jobs VALUES (1)', rows: { limit: 1 } }],
      },
      'Standard',
    )
    expect(result?.message).toBe('query "x": sql begins with "INSERT": only SELECT (or WITH … SELECT) is allowed')
  })
  test('a query that fails is one result with the message of the server, and does not hide others', async () => {
    const results = await ask([
      { name: 'gone', sql: 'SELECT 1 FROM gone', atMost: { limit: 1 } },
      { name: 'closed', sql: 'SELECT id FROM secrets', atMost: { limit: 1 } },
      { name: 'text', sql: "SELECT 'many'", atMost: { limit: 1 } },
      { name: 'zero', sql: 'SELECT 1 / 0', atMost: { limit: 1 } },
      { name: 'well', sql: 'SELECT 1', atMost: { limit: 1 } },
    ])
    expect(results.map(({ message }) => message)).toEqual([
      'gone: the query failed: relation "gone" does not exist',
      'closed: "monitor" has no permission to read this: permission denied for table secrets',
      'text: "many" is not a number',
      'zero: the query failed: division by zero',
      'well: 1 (limit 1)',
    ])
    expect(results[0]?.details).toEqual(['SQLSTATE 42P01', 'query: SELECT 1 FROM gone'])
    expect(JSON.stringify(results)).not.toContain(word)
  })
  test('a query that sleeps is ended on the server before the deadline, and named', async () => {
    const slow = { name: 'slow', sql: 'SELECT 1 FROM pg_sleep(60)', atMost: { limit: 1 } }
    const next = { name: 'next', sql: 'SELECT 1', atMost: { limit: 1 } }
    const results = await endsByDeadline(1_500, ask([slow, next], 'Standard', { timeoutMs: 1_500 }))
    expect(results.map(({ message }) => message)).toEqual([
      'slow: canceling statement due to statement timeout',
      expect.stringMatching(/^next: (1 \(limit 1\)|not run: )/),
    ])
    expect(results[0]?.fault).toBe('timeout')
    await ended()
  })
  /** A session of the kind; the server's own limit is far off. */
  const opened = async (signal: AbortSignal) => {
    const socket = await PeerSocket.reach('127.0.0.1', server.port, signal)
    const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => 60_000 }
    const url = server.url('monitor', 'postgres')
    return { socket, session: await openPostgres(databaseTarget({ url, password: secret(word) }, server.port), way) }
  }
  test('a query that runs at the deadline is cancelled on the server', async () => {
    const control = new AbortController()
    const { session } = await opened(control.signal)
    const reading = session.read('SELECT 1 FROM pg_sleep(60)', false).catch((error: unknown) => error)
    const active = () =>
      server.query(
        "SELECT query FROM pg_stat_activity WHERE application_name = 'svc-health' AND wait_event = 'PgSleep'",
      )
    await until(async () => (await active()).length === 1)
    control.abort()
    await session.close()
    expect(await reading).toBeInstanceOf(Error)
    await ended()
  })
  test('of a million rows a thousand are read, and the session continues', async () => {
    const control = new AbortController()
    const { session, socket } = await opened(control.signal)
    const column = await session.read('SELECT n, repeat(md5(n::text), 20) FROM generate_series(1, 1000000) AS n', false)
    expect(column).toMatchObject({ rows: 1_000, more: true })
    expect(column.cells.slice(0, 2)).toEqual(['1', '2'])
    expect(socket.bytesRead).toBeLessThan(1024 ** 2)
    expect((await session.read("SELECT repeat('x', 3000000)", false)).cells).toEqual(['x'.repeat(1_024)])
    // Three of these are more than one session may be sent, were they not counted by themselves.
    for (let time = 0; time < 3; time += 1) await session.read("SELECT repeat('x', 3000000)", false)
    expect(await session.ask('SELECT 1 AS one')).toEqual([{ one: 1 }])
    await session.close()
  })
  test('an endless answer closes the connection, and later queries are reported as not sent', async () => {
    const results = await ask([
      { name: 'wide', sql: "SELECT repeat('x', 9000000)", expect: 'x' },
      { name: 'next', sql: 'SELECT 1', atMost: { limit: 1 } },
    ])
    expect(results.map(({ message }) => message)).toEqual([
      'wide: the peer sent more than 8 MiB',
      'next: not run: the connection had already ended',
    ])
  })
  test('rows are counted beyond the text that is stored', async () => {
    const wide = (n: number) => `SELECT repeat(n::text || 'x', 600) FROM generate_series(1, ${n}) n`
    const results = await ask([
      { sql: wide(1_000), rows: { limit: 600 } },
      { sql: wide(1_000), leastRows: { limit: 900 } },
      { sql: wide(600), rows: { limit: 600 } },
      { sql: wide(1_001), rows: { limit: 1_000 } },
    ])
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['failed', 'jobs: rows 1000 (limit 600)'],
      ['ok', 'jobs: rows 1000 (at least 900)'],
      ['ok', 'jobs: rows 600 (limit 600)'],
      ['failed', 'jobs: rows, at least 1001 (limit 1000)'],
    ])
  })
  test.each([49, 50, 51, 100])('rows that come in portions are read to the last: %i', async (n) => {
    const { session } = await opened(new AbortController().signal)
    const { rows, more, cells } = await session.read(`SELECT n FROM generate_series(1, ${n}) n`, false)
    expect([rows, more, cells.at(-1)]).toEqual([n, false, String(n)])
    await session.close()
  })
  test('a query that is slow for each row ends in the time of one query, not of each portion', async () => {
    const results = await ask(
      [{ name: 'slow', sql: 'SELECT n FROM generate_series(1, 1000) n, pg_sleep(0.005 + 0 * n)', atMost: {} }],
      'Standard',
      { timeoutMs: 1_500 },
    )
    expect(results.map(({ fault, message }) => [fault, message])).toEqual([
      [
        'timeout',
        expect.stringMatching(/^slow: (canceling statement due to statement timeout|the query was called off)/),
      ],
    ])
    await ended()
  })
  test.each([
    ['SUPERUSER', 'a superuser'],
    ['REPLICATION', 'an account with REPLICATION'],
    ['SUPERUSER REPLICATION', 'a superuser'],
  ])('queries with %s cause one warning', async (attribute, as) => {
    await server.query(`ALTER ROLE monitor ${attribute}`)
    const query = { sql: 'SELECT 1', atMost: { limit: 1 } }
    const results = await ask([query, query])
    const basic = await ask([query], 'Basic')
    await server.query('ALTER ROLE monitor NOSUPERUSER NOREPLICATION')
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['warning', `queries run as ${as}: use a read-only account for svc`],
      ['ok', 'jobs: 1 (limit 1)'],
      ['ok', 'jobs: 1 (limit 1)'],
    ])
    expect(basic).toEqual([])
  })
})

suiteWith(postgresMissing ?? opensslMissing(), 'queries of postgres over TLS', () => {
  let server: PostgresServer
  let certificates: Certificates
  beforeAll(async () => {
    certificates = makeCertificates()
    const plain = await startPostgres()
    const folder = join(plain.folder, 'tls')
    mkdirSync(folder)
    for (const name of ['key', 'cert'] as const) {
      writeFileSync(join(folder, name), certificates.good[name], { mode: 0o600 })
      if (asServer.uid !== undefined) chownSync(join(folder, name), asServer.uid, asServer.gid)
    }
    const files = [`ssl_cert_file=${join(folder, 'cert')}`, `ssl_key_file=${join(folder, 'key')}`]
    server = await plain.restart(['ssl=on', ...files])
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'`)
  })
  afterAll(async () => {
    await server.remove()
    certificates.remove()
  })
  test('an endless answer closes the connection', async () => {
    const { signal } = new AbortController()
    const socket = await PeerSocket.reach('127.0.0.1', server.port, signal)
    const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => 60_000 }
    const settings = {
      url: server.url('monitor', 'postgres'),
      password: secret(word),
      tls: { mode: 'verify' as const, caFile: certificates.caFile, servername: 'svc.test' },
    }
    const session = await openPostgres(databaseTarget(settings, server.port), way)
    expect(session.encryption).toMatch(/^TLS/)
    expect((await session.read("SELECT repeat('x', 3000000)", false)).rows).toBe(1)
    await expect(session.read("SELECT 1, repeat('x', 1000000) FROM generate_series(1, 400)", false)).rejects.toThrow(
      'the peer sent more than 8 MiB',
    )
    await expect(session.read('SELECT 1', false)).rejects.toThrow('not run: the connection had already ended')
    // A record of TLS is 16 KiB at most, and a few of them may be on their way.
    expect(socket.bytesRead).toBeLessThan(16 * 1024 ** 2)
    await session.close()
  })
})
