import { chownSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createConnection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databaseTarget, PeerSocket, type Query } from '../../src/core/database/index.ts'
import type { Result } from '../../src/core/engine/index.ts'
import { openMysql } from '../../src/core/kinds/mysql/driver.ts'
import mysql from '../../src/core/kinds/mysql/index.ts'
import { type Certificates, makeCertificates } from '../support/certs.ts'
import { endsByDeadline } from '../support/deadline.ts'
import { type Peer, peer } from '../support/faults.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../support/mariadb.ts'
import { peerSuite } from '../support/peer.ts'
import { type RunKindOptions, runKind, secret } from '../support/run-kind.ts'
import { asServer, remove, serverFolder } from '../support/server.ts'
import { until } from '../support/until.ts'

const word = 'correct horse'
type PartialQuery = Partial<Query> & { readonly sql: string }

peerSuite(mariadbMissing, 'queries of mysql', () => {
  let server: MariadbServer
  let certificates: Certificates
  let folder = ''
  beforeAll(async () => {
    certificates = makeCertificates()
    folder = serverFolder('mariadb-tls')
    const files = (['key', 'cert'] as const).map((name) => {
      writeFileSync(join(folder, name), certificates.good[name], { mode: 0o600 })
      if (asServer.uid !== undefined) chownSync(join(folder, name), asServer.uid, asServer.gid)
      return `--ssl-${name}=${join(folder, name)}`
    })
    server = await startMariadb(files)
    const here = "'127.0.0.1'"
    await server.query(`CREATE USER monitor@${here} IDENTIFIED BY '${word}'; GRANT PROCESS ON *.* TO monitor@${here};
      CREATE DATABASE orders; USE orders; CREATE DATABASE closed; CREATE TABLE closed.jobs (id int);
      CREATE TABLE jobs (id int, state varchar(20), created_at timestamp(3) NULL, naive datetime);
      CREATE TABLE old (id int) ENGINE = MyISAM; CREATE SEQUENCE ids;
      CREATE FUNCTION add_job() RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO jobs (id) VALUES (99); RETURN 1; END;
      CREATE FUNCTION add_old() RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO old VALUES (9); RETURN 1; END;
      INSERT INTO jobs VALUES (1, 'waiting', NOW() - INTERVAL 1 HOUR, UTC_TIMESTAMP() - INTERVAL 2 HOUR),
        (2, 'waiting', NOW(), UTC_TIMESTAMP()), (3, 'failed', NULL, NULL);
      GRANT SELECT, INSERT, DELETE, EXECUTE ON orders.* TO monitor@${here}`)
  })
  afterAll(async () => {
    await server.remove()
    certificates.remove()
    remove(folder)
  })

  const ask = async (
    queries: readonly PartialQuery[],
    mode: 'Basic' | 'Standard' | 'Advanced' = 'Standard',
    options: RunKindOptions = {},
  ): Promise<readonly Result[]> => {
    const namedQueries = queries.map((query) => ({ name: 'jobs', depth: 'Standard' as const, ...query }))
    const settings = {
      url: server.url('monitor', 'orders'),
      password: secret(word),
      restarted: {},
      queries: namedQueries,
    }
    const results = await runKind(mysql, settings, mode, options)
    expect(results.filter(({ check, status }) => check !== 'queries' && status !== 'ok')).toEqual([])
    return results.filter(({ check }) => check === 'queries')
  }
  /** Nothing of ours is open on the server, once it has had a moment to end. */
  const ended = (): Promise<unknown> =>
    until(
      async () =>
        (await server.query("SELECT info FROM information_schema.processlist WHERE user = 'monitor'")).length === 0,
    )

  test('the numbers, dates and texts of a job table are evaluated', async () => {
    const results = await ask([
      { name: 'queue', sql: "SELECT count(*) FROM jobs WHERE state = 'waiting'", atMost: { limit: 2 } },
      { name: 'failed', sql: "select count(*) FROM jobs WHERE state = 'failed'", atMost: { warn: 0 } },
      { name: 'oldest', sql: "SELECT min(created_at) FROM jobs WHERE state = 'waiting'", age: { limit: 60_000 } },
      { name: 'naive', sql: 'SELECT naive FROM jobs', age: { warn: 60_000 } },
      { name: 'stuck', sql: "SELECT id FROM jobs WHERE state = 'stuck'", rows: { limit: 0 } },
      { name: 'dead', sql: "SELECT max(created_at) FROM jobs WHERE state = 'dead'", age: { limit: 1 } },
      { name: 'with', sql: 'WITH one AS (SELECT 0.5 AS share) SELECT share FROM one', atLeast: { limit: 0.5 } },
      { name: 'text', sql: 'SELECT state FROM jobs', expect: '/^(waiting|failed)$/' },
      { name: 'json', sql: "SELECT JSON_OBJECT('a', 1), 5", expect: '{"a": 1}' },
      { name: 'binary', sql: "SELECT CAST('ab' AS BINARY)", expect: 'ab' },
    ])
    expect(results.map(({ message }) => message)).toEqual([
      'queue: 2 (limit 2)',
      'failed: 1 (warns above 0)',
      'oldest: oldest 1 h (limit 1 min)',
      'naive: oldest 2 h (warns above 1 min)',
      'stuck: rows 0 (limit 0)',
      'dead: none (NULL)',
      'with: 0.5 (at least 0.5)',
      'text: is as expected',
      'json: is "{"a": 1}"',
      'binary: is "ab"',
    ])
    expect(results.every(({ address }) => address === server.address)).toBe(true)
    await ended()
  })
  test('a TIMESTAMP has the zone of the session, and a DATETIME counts as UTC', async () => {
    await server.query("SET GLOBAL time_zone = '-05:00'")
    const results = await ask([
      { name: 'zoned', sql: 'SELECT created_at FROM jobs', age: { limit: 1 } },
      { name: 'naive', sql: 'SELECT min(naive) FROM jobs', age: { limit: 1 } },
      // What compares with NOW() works as it does for any client.
      { name: 'late', sql: 'SELECT count(*) FROM jobs WHERE created_at < NOW() - INTERVAL 30 MINUTE', expect: '1' },
    ])
    await server.query("SET GLOBAL time_zone = 'SYSTEM'")
    expect(results.map(({ message }) => message)).toEqual([
      'zoned: oldest 1 h (limit 1 ms)',
      'naive: oldest 2 h (limit 1 ms)',
      'late: is "1"',
    ])
  })
  test.each([
    ['a sequence', 'SELECT NEXTVAL(ids)'],
    ['a function that inserts', 'SELECT add_job()'],
    ['two statements', 'SELECT 1; DELETE FROM jobs'],
    ['two statements that end the transaction', 'SELECT 1; COMMIT; DELETE FROM jobs'],
    ['a function that inserts where nothing is taken back', 'SELECT add_old()'],
    ['a WITH that deletes', 'WITH one AS (SELECT 1 AS id) DELETE FROM jobs'],
  ])('the server refuses a write: %s', async (_, sql) => {
    const state = () =>
      server.query(
        'SELECT (SELECT count(*) FROM orders.jobs) AS jobs, (SELECT count(*) FROM orders.old) AS old, next_not_cached_value AS ids FROM orders.ids',
      )
    const before = await state()
    const [result] = await ask([{ sql, leastRows: { limit: 0 } }])
    expect(result).toMatchObject({ status: 'failed', fault: 'data' })
    expect(result?.message).toMatch(/^jobs: (the query failed|it would write, and was refused): ./)
    expect(await state()).toEqual(before)
  })
  /** A session of the kind; the server's own limit is far off. */
  const opened = async (signal: AbortSignal, msLeft = 60_000) => {
    const socket = await PeerSocket.reach('127.0.0.1', server.port, signal)
    const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => msLeft }
    const url = server.url('monitor', 'orders')
    return { socket, session: await openMysql(databaseTarget({ url, password: secret(word) }, server.port), way) }
  }
  test.each([
    'INSERT INTO orders.old VALUES (7)',
    'CREATE TABLE orders.made (id int)',
    '/*! CREATE TABLE orders.made AS */ SELECT 1 AS id',
    "SELECT 1 INTO OUTFILE '/tmp/svc-made'",
  ])('a statement that the server would not refuse is not sent: %s', async (sql) => {
    const { session } = await opened(new AbortController().signal)
    await expect(session.read(sql, false)).rejects.toMatchObject({ message: expect.stringMatching(/^sql /) })
    await session.close()
  })
  test('a query that fails is one result with the message of the server, and does not hide others', async () => {
    const results = await ask([
      { name: 'gone', sql: 'SELECT 1 FROM gone', atMost: { limit: 1 } },
      { name: 'closed', sql: 'SELECT id FROM closed.jobs', atMost: { limit: 1 } },
      { name: 'text', sql: "SELECT 'many'", atMost: { limit: 1 } },
      { name: 'well', sql: 'SELECT 1', atMost: { limit: 1 } },
    ])
    expect(results.map(({ message }) => message)).toEqual([
      "gone: the query failed: Table 'orders.gone' doesn't exist",
      expect.stringMatching(/^closed: "monitor" may not read that: SELECT command denied to user .*jobs/),
      'text: "many" is not a number',
      'well: 1 (limit 1)',
    ])
    expect(results[0]?.details).toEqual(['error 1146', 'query: SELECT 1 FROM gone'])
    expect(JSON.stringify(results)).not.toContain(word)
  })
  test('a query that sleeps is ended on the server before the deadline, and named', async () => {
    const slow = { name: 'slow', sql: 'SELECT SLEEP(60)', atMost: { limit: 1 } }
    const result = await endsByDeadline(1_500, ask([slow], 'Standard', { timeoutMs: 1_500 }))
    expect(result).toMatchObject([{ fault: 'timeout', message: expect.stringMatching(/^slow: ./) }])
    await ended()
  })
  const active = () =>
    server.query("SELECT id FROM information_schema.processlist WHERE info LIKE '%SLEEP(60)%' AND user = 'monitor'")
  test('a query that takes too long is ended, and the session continues', async () => {
    const { session } = await opened(new AbortController().signal, 700)
    const reading = session.read('WITH far AS (SELECT 1 AS one) SELECT 1 FROM (SELECT SLEEP(60)) AS slow', false)
    await expect(reading).rejects.toMatchObject({ fault: 'timeout' })
    expect(await session.ask('SELECT 1 AS one')).toEqual([{ one: 1 }])
    await session.close()
    await ended()
  })
  test('where the server does not end it in time, svc cancels it', async () => {
    const { session } = await opened(new AbortController().signal, 700)
    const reading = session.read('SELECT SLEEP(60)', false).catch((error: unknown) => error)
    await until(async () => (await active()).length === 1, 15_000, 5)
    server.freeze()
    await wait(900)
    server.thaw()
    expect(await reading).toMatchObject({ message: 'the query was cancelled because it took too long' })
    expect(await session.ask('SELECT 1 AS one')).toEqual([{ one: 1 }])
    await session.close()
    await ended()
  })
  test('a query that runs at the deadline is killed on the server', async () => {
    const control = new AbortController()
    const { session } = await opened(control.signal)
    const reading = session.read('SELECT SLEEP(60)', false).catch((error: unknown) => error)
    await until(async () => (await active()).length === 1)
    control.abort()
    await session.close()
    expect(await reading).toBeInstanceOf(Error)
    // On its own the server would notice only after 5 s that the client is gone.
    await until(async () => (await active()).length === 0, 3_000)
    await ended()
  })
  test.each([
    ['that the server keeps back', 'SELECT seq, REPEAT(MD5(seq), 20) FROM orders_seq'],
    ['that a LIMIT of its own lets through', 'SELECT seq, REPEAT(MD5(seq), 20) FROM orders_seq LIMIT 1000000'],
  ])('of a million rows a thousand are read, and the session continues: rows %s', async (_, sql) => {
    const { session, socket } = await opened(new AbortController().signal)
    const column = await session.read(sql.replace('orders_seq', 'seq_1_to_1000000'), false)
    expect(column).toMatchObject({ rows: 1_000, more: true })
    expect(column.cells.slice(0, 2)).toEqual(['1', '2'])
    expect(socket.bytesRead).toBeLessThan(8 * 1024 ** 2)
    expect((await session.read("SELECT REPEAT('x', 3000000)", false)).cells).toEqual(['x'.repeat(1_024)])
    expect(await session.ask('SELECT 1 AS one')).toEqual([{ one: 1 }])
    await session.close()
    await ended()
  })
  test('an endless answer closes the connection, and later queries are reported as not sent', async () => {
    const results = await ask([
      { name: 'wide', sql: "SELECT REPEAT('x', 9000000)", expect: 'x' },
      { name: 'next', sql: 'SELECT 1', atMost: { limit: 1 } },
    ])
    expect(results.map(({ message }) => message)).toEqual([
      'wide: the peer sent more than 8 MiB',
      'next: not run: the connection had already ended',
    ])
  })
  test('an endless answer closes the connection over TLS too', async () => {
    const { signal } = new AbortController()
    const socket = await PeerSocket.reach('127.0.0.1', server.port, signal)
    const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => 60_000 }
    const settings = {
      url: server.url('monitor', 'orders'),
      password: secret(word),
      tls: { mode: 'verify' as const, caFile: certificates.caFile, servername: 'svc.test' },
    }
    const session = await openMysql(databaseTarget(settings, server.port), way)
    expect(session.encryption).toBe('TLS')
    expect((await session.read("SELECT REPEAT('x', 3000000)", false)).rows).toBe(1)
    const wide = "SELECT 1, REPEAT('x', 1000000) FROM seq_1_to_400"
    await expect(session.read(wide, false)).rejects.toThrow('the peer sent more than 8 MiB')
    await expect(session.read('SELECT 1', false)).rejects.toThrow('not run: the connection had already ended')
    expect(socket.bytesRead).toBeLessThan(16 * 1024 ** 2)
    await session.close()
    await ended()
  })
  test('rows are counted beyond the text that is stored', async () => {
    const wide = (n: number) => `SELECT REPEAT(CONCAT(seq, 'x'), 600) FROM seq_1_to_${n}`
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
  test.each(['SUPER', 'FILE'])('queries without %s cause one warning', async (privilege) => {
    await server.query(`GRANT ${privilege} ON *.* TO monitor@'127.0.0.1'`)
    const query = { sql: 'SELECT 1', atMost: { limit: 1 } }
    const results = await ask([query, query])
    const basic = await ask([query], 'Basic')
    await server.query(`REVOKE ${privilege} ON *.* FROM monitor@'127.0.0.1'`)
    expect(results.map(({ status, message }) => [status, message])).toEqual([
      ['warning', `queries run with the privilege ${privilege}: use a read-only account for svc`],
      ['ok', 'jobs: 1 (limit 1)'],
      ['ok', 'jobs: 1 (limit 1)'],
    ])
    expect(basic).toEqual([])
  })
  const kills = async () => Number((await server.query("SHOW GLOBAL STATUS LIKE 'Com_kill'"))[0]?.Value)
  test('rows that the server withholds end without a kill', async () => {
    const before = await kills()
    const { session } = await opened(new AbortController().signal)
    const column = await session.read('SELECT seq FROM seq_1_to_1000000', false)
    expect(column).toMatchObject({ rows: 1_000, more: true })
    expect(await kills()).toBe(before)
    const limited = await session.read('SELECT seq FROM seq_1_to_1000000 LIMIT 1000000', false)
    expect(limited).toMatchObject({ rows: 1_000, more: true })
    expect(await kills()).toBe(before + 1)
    await session.close()
    await ended()
  })

  describe('behind a load balancer', () => {
    let other: MariadbServer
    let balancer: Peer
    let next: 'server' | 'other' = 'server'
    beforeAll(async () => {
      other = await startMariadb()
      await other.query(`CREATE USER monitor@'127.0.0.1' IDENTIFIED BY '${word}'; CREATE DATABASE orders;
        GRANT SELECT ON orders.* TO monitor@'127.0.0.1'`)
      // The first of each session is led to the one, all that follow to the other.
      balancer = await peer((socket) => {
        const far = connect((next === 'server' ? server : other).port, '127.0.0.1')
        next = 'other'
        far.on('error', () => socket.destroy())
        socket.on('close', () => far.destroy())
        far.on('close', () => socket.destroy())
        socket.pipe(far).pipe(socket)
      })
    })
    afterAll(async () => {
      await balancer.close()
      await other.remove()
    })
    const idNow = async (of: MariadbServer) => Number((await of.query('SELECT CONNECTION_ID() AS id'))[0]?.id)
    const through = async (signal: AbortSignal, msLeft = 60_000) => {
      // Ahead of the other, where an id can be waited for.
      const ahead = (await idNow(other)) + 20
      while ((await idNow(server)) < ahead);
      next = 'server'
      const socket = await PeerSocket.reach('127.0.0.1', balancer.port, signal)
      const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => msLeft }
      const url = `mysql://monitor@127.0.0.1:${balancer.port}/orders`
      return { socket, session: await openMysql(databaseTarget({ url, password: secret(word) }, balancer.port), way) }
    }
    const idHere = async (of: MariadbServer) =>
      Number((await of.query("SELECT MAX(id) AS id FROM information_schema.processlist WHERE user = 'monitor'"))[0]?.id)
    /** Somebody of the same account and the same id on the other server, who sleeps. */
    const stranger = async (id: number) => {
      for (;;) {
        const one = await createConnection({ host: '127.0.0.1', port: other.port, user: 'monitor', password: word })
        const at = one.threadId ?? 0
        if (at > id) throw new Error(`the other server is at ${at} already, and ${id} was wanted`)
        if (at < id) {
          await one.end()
          continue
        }
        one.query('SELECT SLEEP(50)').catch(() => {})
        await until(async () => (await sleeps()) === 1)
        return { end: () => one.destroy() }
      }
    }
    const sleeps = async () =>
      (
        await other.query(
          "SELECT id FROM information_schema.processlist WHERE info LIKE '%SLEEP(50)%' AND user = 'monitor'",
        )
      ).length
    test.each(['at the deadline', 'for taking too long'])(
      'another session with the same id is not killed: %s',
      async (when) => {
        const control = new AbortController()
        const { session, socket } = await through(control.signal, when === 'at the deadline' ? 60_000 : 700)
        const one = await stranger(await idHere(server))
        const killed = async () => Number((await other.query("SHOW GLOBAL STATUS LIKE 'Com_kill'"))[0]?.Value)
        const before = await killed()
        const reading = session.read('SELECT SLEEP(60)', false).catch((error: unknown) => error)
        await until(async () => (await active()).length === 1, 15_000, 5)
        if (when === 'at the deadline') control.abort()
        else {
          // The server does not end it in time, so svc cancels it.
          server.freeze()
          await wait(1_500)
          server.thaw()
        }
        expect(await reading).toBeInstanceOf(Error)
        // Frozen, it could not end anything itself.
        if (when !== 'at the deadline') expect(socket.destroyed).toBe(true)
        await session.close()
        expect(socket.destroyed).toBe(true)
        expect([await sleeps(), await killed()]).toEqual([1, before])
        one.end()
        for (const { id } of await server.query("SELECT id FROM information_schema.processlist WHERE user = 'monitor'"))
          await server.query(`KILL ${Number(id)}`).catch(() => {})
        await ended()
      },
    )
    test('rows beyond a LIMIT of the query close the connection instead, and the rows so far count', async () => {
      const { session, socket } = await through(new AbortController().signal)
      const column = await session.read('SELECT seq FROM seq_1_to_100000000 LIMIT 100000000', false)
      expect(column).toMatchObject({ rows: 1_000, more: true })
      expect(socket.destroyed).toBe(true)
      await expect(session.read('SELECT 1', false)).rejects.toThrow('not run')
      await session.close()
      await ended()
    })
  })
})
