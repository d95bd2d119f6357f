import { X509Certificate } from 'node:crypto'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Connection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clockSetting, databaseTarget, evaluateClock, PeerSocket } from '../../src/core/database/index.ts'
import { type Kind, limits, type Result } from '../../src/core/engine/index.ts'
import { galera, replication, replicationStatement, threads, transactions } from '../../src/core/kinds/mysql/checks.ts'
import { openMysql } from '../../src/core/kinds/mysql/driver.ts'
import mysql from '../../src/core/kinds/mysql/index.ts'
import type { Values } from '../../src/core/settings/index.ts'
import { type Certificates, makeCertificates } from '../support/certs.ts'
import { endsByDeadline } from '../support/deadline.ts'
import { blackHole, endless, peer, refusedPort, settled, speaks } from '../support/faults.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../support/mariadb.ts'
import { peerSuite } from '../support/peer.ts'
import { proxy } from '../support/proxy.ts'
import { checked, evaluated, type RunKindOptions, rowsAsResult, runKind, secret } from '../support/run-kind.ts'
import { asServer, remove, serverFolder } from '../support/server.ts'
import { until } from '../support/until.ts'

const word = 'correct horse'
type MysqlSettings = Values<typeof mysql.settings>
type Overrides = Partial<MysqlSettings>

peerSuite(mariadbMissing, 'mysql', () => {
  let server: MariadbServer
  let certificates: Certificates
  let folder: string
  const here = "'127.0.0.1'"
  beforeAll(async () => {
    certificates = makeCertificates()
    folder = serverFolder('mariadb-tls')
    const files = (['key', 'cert'] as const).map((name) => {
      writeFileSync(join(folder, name), certificates.good[name], { mode: 0o600 })
      if (asServer.uid !== undefined) chownSync(join(folder, name), asServer.uid, asServer.gid)
      return `--ssl-${name}=${join(folder, name)}`
    })
    server = await startMariadb([...files, '--log-bin=binlog', '--server-id=1', '--max-connect-errors=100000'])
    await server.query(`CREATE USER monitor@${here} IDENTIFIED BY '${word}';
      GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@${here};
      CREATE USER stranger@${here} IDENTIFIED BY '${word}'; CREATE DATABASE orders`)
  })
  afterAll(async () => {
    await server.remove()
    certificates.remove()
    remove(folder)
  })

  const run = (
    overrides: Overrides = {},
    mode: 'Basic' | 'Standard' | 'Advanced' = 'Basic',
    options: RunKindOptions = {},
  ) => runKind(mysql, { url: server.url('monitor'), password: secret(word), ...overrides }, mode, options)
  const one = async (check: string, ...args: Parameters<typeof run>): Promise<Result> =>
    checked(await run(...args), check)
  /** What svc has open on the server, once it has had a moment to end. */
  async function left(): Promise<unknown[]> {
    let rows: unknown[] = []
    for (let tries = 0; tries < 200; tries += 1) {
      rows = await server.query(
        "SELECT id, user, command, info FROM information_schema.processlist WHERE user IN ('monitor', 'stranger', 'unauthenticated user')",
      )
      if (rows.length === 0) return rows
      await wait(50)
    }
    return rows
  }

  describe('a healthy server', () => {
    test('each mode runs its checks and those of the shallower ones, and all are ok', async () => {
      const names = async (mode: 'Basic' | 'Standard' | 'Advanced'): Promise<string[]> => {
        const results = await run({ restarted: {} }, mode)
        expect(results.filter((result) => result.status !== 'ok')).toEqual([])
        expect(results.every((result) => result.address === server.address)).toBe(true)
        return results.map((result) => result.check)
      }
      expect(await names('Basic')).toEqual(['connect', 'query'])
      expect(await names('Standard')).toEqual(['connect', 'query', 'connections', 'running', 'restarted'])
      // It is without TLS, neither a replica nor a Galera node, and has no custom queries.
      const all = mysql.checks.map((check) => check.name)
      expect(await names('Advanced')).toEqual(
        all.filter((name) => !['certificate', 'replication lag', 'galera', 'queries'].includes(name)),
      )
      expect(await left()).toEqual([])
    })
    test('the clock is compared with the local one, as far as a difference is certain', async () => {
      const off = (ms: number) => one('clock', {}, 'Advanced', { date: () => new Date(Date.now() + ms) })
      // In another time zone than ours, as servers may be.
      await server.query("SET GLOBAL time_zone = '+05:00'")
      const agrees = await off(0)
      expect(agrees).toMatchObject({ status: 'ok', measurement: { value: 0, limit: 30_000 } })
      expect(agrees.message).toMatch(/^server clock in sync, ±[\d.]+ m?s \(/)
      await server.query("SET GLOBAL time_zone = 'SYSTEM'")
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
      expect(textOf('connections')).toMatch(/^\d of 20 connections: \d+ % \(warns above 80 %\)$/)
      expect(textOf('running')).toMatch(/^\d running threads? of 20: \d+ % \(warns above 60 %\)$/)
    })
    test('with a database, and with the scheme mariadb', async () => {
      await server.query(`GRANT SELECT ON orders.* TO monitor@${here}`)
      const url = server.url('monitor', 'orders').replace('mysql:', 'mariadb:')
      expect(await one('query', { url })).toMatchObject({ status: 'ok' })
    })
  })

  describe('a server that cannot be reached or refuses the sign-in', () => {
    test('refused: nothing listens', async () => {
      const url = `mysql://monitor@127.0.0.1:${await refusedPort()}/`
      expect(await one('connect', { url })).toMatchObject({ status: 'failed', fault: 'refused' })
    })
    test('black hole: accepted and never answered ends at the deadline, and leaves no socket', async () => {
      await using hole = await peer(blackHole)
      const url = `mysql://monitor@127.0.0.1:${hole.port}/`
      const result = await endsByDeadline(400, one('connect', { url }, 'Basic', { timeoutMs: 400 }))
      expect(result).toMatchObject({ fault: 'timeout', message: `127.0.0.1:${hole.port} did not answer within 0.4 s` })
      await hole.close()
      expect(await settled('')).toBe('')
    })
    test('slow: each answer late by 150 ms is a threshold, with the figure', async () => {
      await using slow = await proxy(server.port, 150)
      const url = `mysql://monitor@127.0.0.1:${slow.port}/`
      const results = await run({ url, latency: { warn: 50, limit: 120 } })
      for (const check of ['connect', 'query']) {
        expect(checked(results, check)).toMatchObject({
          status: 'failed',
          fault: 'threshold',
          measurement: { limit: 120 },
        })
        expect(checked(results, check).measurement?.value).toBeGreaterThan(145)
      }
    })
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      const shared = limits()
      const wrong = { password: secret('hunter2-wrong') }
      const result = await one('connect', wrong, 'Basic', { limits: shared, retries: 3 })
      expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(result.message).toContain('refused the sign-in of "monitor"')
      expect(JSON.stringify(result)).not.toContain('hunter2')
      const denied = async (): Promise<unknown> =>
        (await server.query("SHOW GLOBAL STATUS LIKE 'Access_denied_errors'"))[0]?.Value
      const before = await denied()
      expect((await one('sign-in', wrong, 'Basic', { limits: shared })).message).toContain('not signed in')
      expect(await denied()).toBe(before)
    })
    test('a missing password, and an unknown account, are auth', async () => {
      expect(checked(await runKind(mysql, { url: server.url('monitor') }), 'connect')).toMatchObject({ fault: 'auth' })
      expect(await one('connect', { url: server.url('nobody') })).toMatchObject({ fault: 'auth' })
    })
    test('a locked account is auth', async () => {
      await server.query(`ALTER USER stranger@${here} ACCOUNT LOCK`)
      expect(await one('connect', { url: server.url('stranger') })).toMatchObject({ fault: 'auth' })
      await server.query(`ALTER USER stranger@${here} ACCOUNT UNLOCK`)
    })
    test('a missing or forbidden database is data: the password was correct', async () => {
      await server.query(`GRANT SELECT ON \`gone\`.* TO monitor@${here}`)
      const result = await one('connect', { url: server.url('monitor', 'gone') })
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toContain("Unknown database 'gone'")
      expect(await one('connect', { url: server.url('stranger', 'orders') })).toMatchObject({
        fault: 'data',
        message: expect.stringContaining('denies "stranger" access to the database'),
      })
    })
    test('too many connections are reported as such, and are not a refused sign-in', async () => {
      await server.query(`GRANT USAGE ON *.* TO stranger@${here} WITH MAX_CONNECTIONS_PER_HOUR 1`)
      await run({ url: server.url('stranger') })
      const result = await one('connect', { url: server.url('stranger') })
      await server.query(`GRANT USAGE ON *.* TO stranger@${here} WITH MAX_CONNECTIONS_PER_HOUR 0`)
      expect(result).toMatchObject({
        fault: 'refused',
        message: expect.stringContaining('accepts no more connections'),
      })
    })
    test.each([
      ['an SSH server', speaks('SSH-2.0-OpenSSH_9.2\r\n')],
      ['an HTTP server', speaks('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')],
      ['zeroes', speaks(Buffer.alloc(4_096))],
      ['a handshake that is cut', speaks(Buffer.from('\x05\0\0\0\x0a8.0.', 'latin1'))],
      ['a result before any question', speaks(Buffer.from('\x01\0\0\0\x05\x01\0\0\x01\x01', 'latin1'))],
      ['an endless answer', endless('\x05\0\0\0\x0a8.0.')],
      ['a connection that is closed at once', (socket) => void socket.end()],
      ['a connection that is reset', (socket) => void socket.resetAndDestroy()],
    ] satisfies [string, Parameters<typeof peer>[0]][])('%s is a failure, and nothing breaks', async (_, behave) => {
      await using other = await peer(behave)
      const url = `mysql://monitor@127.0.0.1:${other.port}/`
      const result = await one('connect', { url }, 'Basic', { timeoutMs: 700 })
      expect(result.status).toBe('failed')
      expect(['protocol', 'timeout']).toContain(result.fault)
    })
    test('200 answers of random bytes are 200 failures, and nothing breaks', async () => {
      for (let round = 0; round < 200; round += 1) {
        const bytes = Buffer.from(Array.from({ length: 90 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
        // A header that is right takes the rest to the parser of the handshake.
        const framed = round % 2 ? Buffer.concat([Buffer.from([bytes.length, 0, 0, 0, 10]), bytes.subarray(1)]) : bytes
        await using other = await peer((socket) => void socket.end(framed))
        const result = await one('connect', { url: `mysql://m@127.0.0.1:${other.port}/` }, 'Basic', { timeoutMs: 300 })
        expect(result.status).toBe('failed')
      }
    })
    test('a server that requests a file of this machine gets none', async () => {
      await using thief = await peer((socket) => {
        const packet = (sequence: number, body: Buffer): void =>
          void socket.write(Buffer.concat([Buffer.from([body.length, 0, 0, sequence]), body]))
        const flags = Buffer.from([0xff, 0xf7, 0x2d, 0x02, 0x00, 0xff, 0x81, 0x15])
        const hello = Buffer.concat([
          Buffer.from('\x0a8.0.36\0\x01\0\0\0abcdefgh\0', 'latin1'),
          flags,
          Buffer.alloc(10),
        ])
        packet(0, Buffer.concat([hello, Buffer.from('abcdefghijkl\0mysql_native_password\0', 'latin1')]))
        let input = 0
        socket.on('data', () => {
          input += 1
          // First the sign-in is accepted, then the query is answered with LOCAL INFILE.
          if (input === 1) packet(2, Buffer.from([0, 0, 0, 2, 0, 0, 0]))
          else if (input === 2) packet(1, Buffer.from('\xfb/etc/hostname', 'latin1'))
        })
      })
      const results = await run({ url: `mysql://monitor@127.0.0.1:${thief.port}/` }, 'Basic', { timeoutMs: 1_000 })
      expect(checked(results, 'connect').status).toBe('ok')
      expect(checked(results, 'query').status).toBe('failed')
      const { readFileSync } = await import('node:fs')
      expect(thief.input()).not.toContain(readFileSync('/etc/hostname', 'utf8').trim())
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
  })

  describe('a run ends what it started on the server', () => {
    const asking = (sql: string, msLeft: (left: number) => number, port = server.port): Kind => ({
      name: 'asking',
      title: '',
      settings: {},
      runsOn: 'network',
      checks: [{ name: 'ask', depth: 'Basic', doc: '' }],
      async *run(_, context) {
        const { signal } = context
        const socket = await PeerSocket.reach('127.0.0.1', port, signal)
        const way = { socket, ip: '127.0.0.1', address: '', signal, msLeft: () => msLeft(context.msLeft()) }
        try {
          const target = databaseTarget({ url: server.url('monitor'), password: secret(word) }, 0)
          const session = await openMysql({ ...target, port }, way)
          try {
            yield rowsAsResult(await session.ask(sql))
          } finally {
            await session.close()
          }
        } finally {
          socket.destroy()
        }
      },
    })
    const sleep = 'SELECT SLEEP(60)'

    test('a query that hangs is killed at the deadline', async () => {
      const kind = asking(sleep, () => 60_000)
      const result = endsByDeadline(2_000, runKind(kind, {}, 'Basic', { timeoutMs: 2_000 }))
      const running = (): Promise<unknown[]> =>
        server.query("SELECT user FROM information_schema.processlist WHERE info LIKE '%SLEEP(60)%' AND user <> 'root'")
      await until(async () => (await running()).length > 0)
      expect(await running()).toEqual([{ user: 'monitor' }])
      expect((await result)[0]).toMatchObject({ fault: 'timeout' })
      expect(await left()).toEqual([])
      expect(await settled('')).toBe('')
    })
    test('where no second connection gets through, the server itself ends it at the deadline', async () => {
      await using once = await proxy(server.port, 0, 1)
      const kind = asking(sleep, (msLeft) => msLeft, once.port)
      const results = await runKind(kind, {}, 'Basic', { timeoutMs: 1_000 })
      expect(results[0]).toMatchObject({ fault: 'timeout' })
      const running = (): Promise<unknown[]> =>
        server.query("SELECT id FROM information_schema.processlist WHERE user = 'monitor' AND command <> 'Sleep'")
      await until(async () => (await running()).length === 0)
    })
    test('a run that is cancelled at any moment leaves no query, no session and no socket', async () => {
      for (let ms = 0; ms < 60; ms += 3) {
        const control = new AbortController()
        const result = run({}, 'Advanced', { signal: control.signal }).catch(() => [])
        const query = runKind(
          asking(sleep, () => 60_000),
          {},
          'Basic',
          { signal: control.signal },
        )
        await Promise.all([wait(ms).then(() => control.abort()), result, query.catch(() => [])])
      }
      expect(await left()).toEqual([])
      expect(await settled('')).toBe('')
    })
    test('a cancellation while the driver loads takes effect', async () => {
      const control = new AbortController()
      const socket = await PeerSocket.reach('127.0.0.1', server.port, control.signal)
      const way = { socket, ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000 }
      const opening = openMysql(databaseTarget({ url: server.url('monitor'), password: secret(word) }, 0), way)
      control.abort(new Error('too late'))
      await expect(opening).rejects.toThrow('too late')
      socket.destroy()
    })
    test('the session identifies itself', async () => {
      const sql = 'SELECT @@max_statement_time > 0 AS limited, CURRENT_USER() AS me'
      expect(
        (
          await runKind(
            asking(sql, (ms) => ms),
            {},
          )
        )[0]?.message,
      ).toBe('[{"limited":1,"me":"monitor@127.0.0.1"}]')
    })
  })

  describe('checks of a real server', () => {
    test('an account with only the privileges that the checks declare is denied nothing', async () => {
      await server.query(`CREATE USER limited@${here} IDENTIFIED BY '${word}'`)
      const unwell = async (): Promise<string[]> => {
        const results = await run({ url: server.url('limited'), restarted: {} }, 'Advanced')
        return results.filter(({ status }) => status !== 'ok').map(({ check }) => check)
      }
      try {
        expect(await unwell()).toEqual(['replication', 'longest transaction'])
        for (const { privilege = '' } of mysql.checks) {
          for (const [grant] of privilege.matchAll(/GRANT [^;]+/g)) {
            await server.query(grant.replace('<account>', `limited@${here}`))
          }
        }
        expect(await unwell()).toEqual([])
      } finally {
        await server.query(`DROP USER limited@${here}`)
      }
    })
    test('a denied view fails that check only, and is not a refused sign-in', async () => {
      const results = await run({ url: server.url('stranger'), restarted: {} }, 'Advanced')
      const bad = results.filter((result) => result.status !== 'ok')
      expect(bad.map(({ check, fault }) => [check, fault])).toEqual([
        ['replication', 'data'],
        ['longest transaction', 'data'],
      ])
      expect(bad[0]?.message).toMatch(
        /^"stranger" lacks a privilege: Access denied; you need .* SLAVE MONITOR privilege/,
      )
    })
    test('a transaction that is open for too long', async () => {
      const other: Connection = await server.client()
      await other.query(
        'CREATE TABLE orders.t (x INT) ENGINE=InnoDB; START TRANSACTION; INSERT INTO orders.t VALUES (1)',
      )
      await wait(1_100)
      const result = await one('longest transaction', { longestTransaction: { limit: 500 } }, 'Advanced')
      // Its age is the same whatever time zone the server has set for its sessions.
      await server.query("SET GLOBAL time_zone = '+09:00'")
      const elsewhere = await one('longest transaction', {}, 'Advanced')
      await server.query("SET GLOBAL time_zone = 'SYSTEM'")
      await other.end()
      expect(result).toMatchObject({ status: 'failed', fault: 'threshold' })
      expect(result.message).toMatch(
        /^1 transaction is open, the longest \(thread \d+\) for \d+(\.\d+)? s \(limit 500 ms\)$/,
      )
      expect(elsewhere).toMatchObject({ status: 'ok' })
      expect(elsewhere.measurement?.value).toBeGreaterThan(500)
    })
    test('a server that was restarted is a warning', async () => {
      expect(await one('restarted', {}, 'Standard')).toMatchObject({ status: 'warning' })
    })
    test('an expected replica that is missing is reported', async () => {
      expect(await one('replication', { replica: true }, 'Advanced')).toMatchObject({ fault: 'data' })
    })
    test('a real replica: running, stopped, behind, and without its source', async () => {
      const replica = await startMariadb(['--server-id=2'])
      try {
        await server.query(`CREATE USER repl@${here} IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO repl@${here}`)
        const [log] = await server.query('SHOW MASTER STATUS')
        await replica.query(`CREATE USER monitor@${here} IDENTIFIED BY '${word}';
          GRANT PROCESS, SLAVE MONITOR ON *.* TO monitor@${here}; CREATE DATABASE orders;
          CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=${server.port}, MASTER_USER='repl',
            MASTER_PASSWORD='r', MASTER_LOG_FILE='${String(log?.File)}', MASTER_LOG_POS=${Number(log?.Position)},
            MASTER_CONNECT_RETRY=1; START SLAVE`)
        const at = async (check: string, overrides: Overrides = {}): Promise<Result> =>
          one(check, { url: replica.url('monitor'), replica: true, ...overrides }, 'Advanced')
        await until(async () => (await at('replication')).status === 'ok')
        await until(async () => (await at('replication lag')).measurement?.value === 0)
        expect((await at('replication')).message).toBe('replicates from 1 source: both threads are running')

        await replica.query('STOP SLAVE SQL_THREAD')
        expect(await at('replication')).toMatchObject({
          fault: 'data',
          message: 'does not apply (SQL thread: No)',
        })
        await server.query('CREATE TABLE orders.later (x INT)')
        await replica.query('START SLAVE')
        await until(async () => (await at('replication')).status === 'ok')

        // A statement that fails there stops it, and its error is reported.
        await until(async () => (await replica.query("SHOW TABLES FROM orders LIKE 'later'")).length > 0)
        await replica.query('DROP TABLE orders.later')
        await server.query('INSERT INTO orders.later VALUES (1)')
        await until(async () => (await at('replication')).status === 'failed')
        expect((await at('replication')).details?.join()).toContain("Table 'orders.later' doesn't exist")
        await replica.query('STOP SLAVE; SET GLOBAL SQL_SLAVE_SKIP_COUNTER = 1; START SLAVE')
        await until(async () => (await at('replication')).status === 'ok')

        await server.query(`DROP USER repl@${here}`)
        await replica.query('STOP SLAVE; START SLAVE')
        await until(async () => (await at('replication')).message.includes('does not receive'))
        expect(JSON.stringify(await at('replication'))).not.toContain(word)
      } finally {
        await replica.remove()
      }
    })
  })

  describe('TLS', () => {
    const tls = async (host: string, more: NonNullable<MysqlSettings['tls']>): Promise<Result> => {
      const url = `mysql://monitor@${host}:${server.port}/`
      return one('connect', { url, tls: more }, 'Basic', { resolve: async () => ['127.0.0.1'] })
    }
    test('a trusted certificate for the right name lets the sign-in go on', async () => {
      const { caFile } = certificates
      expect(await tls('svc.test', { mode: 'verify', caFile })).toMatchObject({
        status: 'ok',
        message: expect.stringContaining('as monitor over TLS in'),
      })
      expect(await tls('127.0.0.1', { mode: 'verify', caFile, servername: 'svc.test' })).toMatchObject({ status: 'ok' })
    })
    test('from Standard on the end of its certificate is a value, at each connection', async () => {
      const url = `mysql://monitor@svc.test:${server.port}/`
      const overrides = { url, tls: { mode: 'verify', caFile: certificates.caFile } } as const
      for (let connection = 0; connection < 2; connection += 1) {
        const result = await one('certificate', overrides, 'Standard', { resolve: async () => ['127.0.0.1'] })
        expect(result).toMatchObject({
          status: 'ok',
          measurement: { unit: 'days', at: new X509Certificate(certificates.good.cert).validToDate },
        })
      }
    })
    test('an unknown issuer or another name is tls, before any password is sent', async () => {
      expect(await tls('svc.test', { mode: 'verify' })).toMatchObject({ status: 'failed', fault: 'tls' })
      const other = await tls('other.test', { mode: 'verify', caFile: certificates.caFile })
      expect(other).toMatchObject({ fault: 'tls', message: expect.stringMatching(/altnames|does not match/i) })
      expect(await tls('127.0.0.1', { mode: 'verify' })).toMatchObject({
        fault: 'tls',
        message: expect.stringContaining('tls: {servername: …}'),
      })
    })
    test('a missing caFile is reported', async () => {
      expect(await tls('svc.test', { mode: 'verify', caFile: join(folder, 'none.pem') })).toMatchObject({
        fault: 'data',
        message: expect.stringContaining('none.pem cannot be read'),
      })
    })
  })

  test('the whole test run leaves nothing on the server', async () => {
    expect(await left()).toEqual([])
    expect(server.log()).not.toContain('hunter2')
  })
})

describe('mysql: values against limits', () => {
  const levels = (results: readonly Result[]): string => results.map((result) => result.status).join(' ')
  const healthy = { connected: 1, running: 1, max: 100, upMs: 60_000 }
  const channel = { name: '', receives: 'Yes', applies: 'Yes', lagMs: 0, errors: [] as string[] }
  const channels = (...some: Partial<Omit<typeof channel, 'lagMs'> & { lagMs: number | undefined }>[]) => ({
    channels: some.map((one) => ({ ...channel, ...one })),
  })
  const synced = { on: true, ready: true, cluster: 'Primary', state: 'Synced', size: 3 }

  test('the clock is ok at its boundaries, in both directions', () => {
    const clock = (aheadMs: number) => evaluateClock({ aheadMs, tripMs: 1 }, clockSetting.default).status
    expect([2_000, -2_000, 2_001, -30_000, -30_001].map(clock)).toEqual(['ok', 'ok', 'warning', 'warning', 'failed'])
  })

  test('values are ok at their boundaries, and one value may only warn', () => {
    expect(levels(evaluated(threads, { ...healthy, connected: 80, running: 60 }))).toBe('ok ok ok')
    expect(levels(evaluated(threads, { ...healthy, connected: 81, running: 61 }))).toBe('warning warning ok')
    expect(levels(evaluated(threads, { ...healthy, connected: 100, running: 100 }))).toBe('warning warning ok')
    expect(levels(evaluated(threads, { ...healthy, connected: 96 }, { connections: { warn: 80, limit: 95 } }))).toBe(
      'failed ok ok',
    )
    expect(levels(evaluated(threads, { ...healthy, upMs: 59_000 }))).toBe('ok ok warning')
    expect(levels(evaluated(replication, channels({ lagMs: 30_000 })))).toBe('ok ok')
    expect(levels(evaluated(replication, channels({ lagMs: 31_000 })))).toBe('ok warning')
    expect(levels(evaluated(replication, channels({ lagMs: 31_000 }), { replicationLag: { limit: 30_000 } }))).toBe(
      'ok failed',
    )
    const transaction = (longestMs: number) => levels(evaluated(transactions, { open: 1, thread: 5, longestMs }))
    expect(transaction(120_000)).toBe('ok')
    expect(transaction(121_000)).toBe('warning')
    expect(transaction(301_000)).toBe('failed')
  })
  test('a stopped thread fails, and its channel is named; an unknown lag is never ok', () => {
    expect(evaluated(replication, channels({}, { name: 'eu', receives: 'Connecting', errors: ['no route'] }))).toEqual([
      expect.objectContaining({
        status: 'failed',
        message: 'eu: does not receive (IO thread: Connecting)',
        details: ['no route'],
      }),
    ])
    expect(levels(evaluated(replication, channels({}, { lagMs: undefined })))).toBe('ok warning')
    expect(levels(evaluated(replication, channels()))).toBe('ok')
    expect(levels(evaluated(replication, channels(), { replica: true }))).toBe('failed')
  })
  test('Galera: ready, in the primary component, synced', () => {
    expect(evaluated(galera, { ...synced, on: false })).toEqual([])
    expect(evaluated(galera, synced)[0]).toMatchObject({
      status: 'ok',
      message: 'Synced, Primary component of 3 nodes',
    })
    expect(levels(evaluated(galera, { ...synced, ready: false }))).toBe('failed')
    expect(levels(evaluated(galera, { ...synced, cluster: 'non-Primary' }))).toBe('failed')
    expect(levels(evaluated(galera, { ...synced, state: 'Donor/Desynced' }))).toBe('warning')
  })
  test('each server gets the statements of its own dialect', () => {
    expect(replicationStatement('10.11.19-MariaDB-0+deb12u1')).toBe('SHOW ALL SLAVES STATUS')
    expect(replicationStatement('8.0.21')).toBe('SHOW SLAVE STATUS')
    expect(replicationStatement('8.0.22')).toBe('SHOW REPLICA STATUS')
    expect(replicationStatement('8.4.0-commercial')).toBe('SHOW REPLICA STATUS')
    expect(replicationStatement('5.7.44-log')).toBe('SHOW SLAVE STATUS')
  })
})
