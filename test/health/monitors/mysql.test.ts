import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Connection } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openMysql } from '../../../src/core/health/db/mysql.ts'
import type { MysqlLook } from '../../../src/core/health/db/mysql-judge.ts'
import { statement } from '../../../src/core/health/db/mysql-look.ts'
import type { MysqlSettings } from '../../../src/core/health/db/mysql-settings.ts'
import { PeerSocket } from '../../../src/core/health/db/peer-socket.ts'
import { databaseTarget } from '../../../src/core/health/db/target.ts'
import { type Finding, limits, monitorKind } from '../../../src/core/health/index.ts'
import mysql from '../../../src/core/health/monitors/mysql.ts'
import { type Certificates, makeCertificates } from '../../support/certs.ts'
import { blackHole, endless, peer, refusedPort, settled, speaks } from '../../support/faults.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from '../../support/mariadb.ts'
import { suiteWith } from '../../support/peer.ts'
import { proxy } from '../../support/proxy.ts'
import { checked, type RunKindOptions, runKind, secret, withDefaults } from '../../support/run-kind.ts'
import { asServer, remove, serverFolder } from '../../support/server.ts'
import { until } from '../../support/until.ts'

const word = 'correct horse'
type Given = Partial<MysqlSettings>

suiteWith(mariadbMissing, 'mysql', () => {
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

  const run = (given: Given = {}, mode: 'Basic' | 'Standard' | 'Advanced' = 'Basic', options: RunKindOptions = {}) =>
    runKind(mysql, { url: server.url('monitor'), password: secret(word), ...given }, mode, options)
  const one = async (check: string, ...args: Parameters<typeof run>): Promise<Finding> =>
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
    test('each mode runs its checks and those of the shallower ones, and all are well', async () => {
      const names = async (mode: 'Basic' | 'Standard' | 'Advanced'): Promise<string[]> => {
        const findings = await run({ restarted: {} }, mode)
        expect(findings.filter((finding) => finding.level !== 'ok')).toEqual([])
        expect(findings.every((finding) => finding.address === server.address)).toBe(true)
        return findings.map((finding) => finding.check)
      }
      expect(await names('Basic')).toEqual(['connect', 'query'])
      expect(await names('Standard')).toEqual(['connect', 'query', 'connections', 'running', 'restarted'])
      // It is neither a replica nor a Galera node, and nothing of one's own is asked.
      const all = mysql.checks.map((check) => check.name)
      expect(await names('Advanced')).toEqual(
        all.filter((name) => !['replication lag', 'galera', 'queries'].includes(name)),
      )
      expect(await left()).toEqual([])
    })
    test('the clock is judged against ours, as far as a difference is proved', async () => {
      const off = (ms: number) => one('clock', {}, 'Advanced', { date: () => new Date(Date.now() + ms) })
      // In another time zone than ours, as servers may be.
      await server.query("SET GLOBAL time_zone = '+05:00'")
      const agrees = await off(0)
      expect(agrees).toMatchObject({ level: 'ok', observed: 0, limit: 30_000 })
      expect(agrees.message).toMatch(
        /^the server's clock agrees with ours, as far as a round trip of [\d.]+ m?s shows \(/,
      )
      await server.query("SET GLOBAL time_zone = 'SYSTEM'")
      const behind = await off(600_000)
      expect(behind).toMatchObject({ level: 'fail', fault: 'threshold' })
      expect(behind.message).toBe("the server's clock is behind ours by 10 min (limit 30 s)")
      const ahead = await off(-12_000)
      expect(ahead.level).toBe('warn')
      expect(ahead.message).toMatch(/^the server's clock is ahead of ours by 1[\d.]+ s \(warns above 2 s\)$/)
    })
    test('it says what it saw', async () => {
      const findings = await run({}, 'Standard')
      const said = (check: string): string => checked(findings, check).message
      expect(said('connect')).toMatch(/^signed in at 127\.0\.0\.1:\d+ as monitor in [\d.]+ m?s \(limit 3 s\)$/)
      expect(said('connections')).toMatch(/^\d of 20 connections: \d+ % \(warns above 80 %\)$/)
      expect(said('running')).toMatch(/^\d threads? runs?, of 20: \d+ % \(warns above 60 %\)$/)
    })
    test('with a database, and with the scheme mariadb', async () => {
      await server.query(`GRANT SELECT ON orders.* TO monitor@${here}`)
      const url = server.url('monitor', 'orders').replace('mysql:', 'mariadb:')
      expect(await one('query', { url })).toMatchObject({ level: 'ok' })
    })
  })

  describe('a server that cannot be reached or does not let in', () => {
    test('refused: nothing listens', async () => {
      const url = `mysql://monitor@127.0.0.1:${await refusedPort()}/`
      expect(await one('connect', { url })).toMatchObject({ level: 'fail', fault: 'refused' })
    })
    test('black hole: accepted and never answered ends at the deadline, and leaves no socket', async () => {
      await using hole = await peer(blackHole)
      const started = performance.now()
      const url = `mysql://monitor@127.0.0.1:${hole.port}/`
      const found = await one('connect', { url }, 'Basic', { timeoutMs: 400 })
      expect(performance.now() - started).toBeLessThan(4_500)
      expect(found).toMatchObject({ fault: 'timeout', message: `127.0.0.1:${hole.port} gave no answer within 0.4 s` })
      await hole.close()
      expect(await settled('')).toBe('')
    })
    test('slow: each answer late by 150 ms is a threshold, with the figure', async () => {
      await using slow = await proxy(server.port, 150)
      const url = `mysql://monitor@127.0.0.1:${slow.port}/`
      const findings = await run({ url, latency: { warn: 50, limit: 120 } })
      for (const check of ['connect', 'query']) {
        expect(checked(findings, check)).toMatchObject({ level: 'fail', fault: 'threshold', limit: 120 })
        expect(checked(findings, check).observed).toBeGreaterThan(145)
      }
    })
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      const shared = limits()
      const wrong = { password: secret('hunter2-wrong') }
      const found = await one('connect', wrong, 'Basic', { limits: shared, retries: 3 })
      expect(found).toMatchObject({ level: 'fail', fault: 'auth' })
      expect(found.message).toContain('refused the sign-in of "monitor"')
      expect(JSON.stringify(found)).not.toContain('hunter2')
      const denied = async (): Promise<unknown> =>
        (await server.query("SHOW GLOBAL STATUS LIKE 'Access_denied_errors'"))[0]?.Value
      const before = await denied()
      expect((await one('sign-in', wrong, 'Basic', { limits: shared })).message).toContain('not signed in')
      expect(await denied()).toBe(before)
    })
    test('no password where one is wanted, and an account that does not exist, are auth', async () => {
      expect(checked(await runKind(mysql, { url: server.url('monitor') }), 'connect')).toMatchObject({ fault: 'auth' })
      expect(await one('connect', { url: server.url('nobody') })).toMatchObject({ fault: 'auth' })
    })
    test('a locked account is auth', async () => {
      await server.query(`ALTER USER stranger@${here} ACCOUNT LOCK`)
      expect(await one('connect', { url: server.url('stranger') })).toMatchObject({ fault: 'auth' })
      await server.query(`ALTER USER stranger@${here} ACCOUNT UNLOCK`)
    })
    test('a missing or closed database is data: the password was right', async () => {
      await server.query(`GRANT SELECT ON \`gone\`.* TO monitor@${here}`)
      const found = await one('connect', { url: server.url('monitor', 'gone') })
      expect(found).toMatchObject({ level: 'fail', fault: 'data' })
      expect(found.message).toContain("Unknown database 'gone'")
      expect(await one('connect', { url: server.url('stranger', 'orders') })).toMatchObject({
        fault: 'data',
        message: expect.stringContaining('does not let "stranger" into the database'),
      })
    })
    test('too many connections is said as such, and is not a refused sign-in', async () => {
      await server.query(`GRANT USAGE ON *.* TO stranger@${here} WITH MAX_CONNECTIONS_PER_HOUR 1`)
      await run({ url: server.url('stranger') })
      const found = await one('connect', { url: server.url('stranger') })
      await server.query(`GRANT USAGE ON *.* TO stranger@${here} WITH MAX_CONNECTIONS_PER_HOUR 0`)
      expect(found).toMatchObject({ fault: 'refused', message: expect.stringContaining('is full') })
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
      const found = await one('connect', { url }, 'Basic', { timeoutMs: 700 })
      expect(found.level).toBe('fail')
      expect(['protocol', 'timeout']).toContain(found.fault)
    })
    test('200 answers of random bytes are 200 failures, and nothing breaks', async () => {
      for (let round = 0; round < 200; round += 1) {
        const bytes = Buffer.from(Array.from({ length: 90 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
        // A header that is right takes the rest to the parser of the handshake.
        const framed = round % 2 ? Buffer.concat([Buffer.from([bytes.length, 0, 0, 0, 10]), bytes.subarray(1)]) : bytes
        await using other = await peer((socket) => void socket.end(framed))
        const found = await one('connect', { url: `mysql://m@127.0.0.1:${other.port}/` }, 'Basic', { timeoutMs: 300 })
        expect(found.level).toBe('fail')
      }
    })
    test('a server that asks for a file of this machine gets none', async () => {
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
        let heard = 0
        socket.on('data', () => {
          heard += 1
          // First the sign-in is accepted, then the query is answered with LOCAL INFILE.
          if (heard === 1) packet(2, Buffer.from([0, 0, 0, 2, 0, 0, 0]))
          else if (heard === 2) packet(1, Buffer.from('\xfb/etc/hostname', 'latin1'))
        })
      })
      const findings = await run({ url: `mysql://monitor@127.0.0.1:${thief.port}/` }, 'Basic', { timeoutMs: 1_000 })
      expect(checked(findings, 'connect').level).toBe('ok')
      expect(checked(findings, 'query').level).toBe('fail')
      const { readFileSync } = await import('node:fs')
      expect(thief.heard()).not.toContain(readFileSync('/etc/hostname', 'utf8').trim())
    })
    test('a frozen server ends at the deadline, and nothing of ours is there when it goes on', async () => {
      server.freeze()
      let found: Finding
      const started = performance.now()
      try {
        found = await one('connect', {}, 'Basic', { timeoutMs: 500 })
      } finally {
        server.thaw()
      }
      expect(performance.now() - started).toBeLessThan(4_500)
      expect(found).toMatchObject({ fault: 'timeout', message: `${server.address} gave no answer within 0.5 s` })
      expect(await left()).toEqual([])
    })
  })

  describe('what runs on the server ends with the run', () => {
    const asking = (sql: string, msLeft: (left: number) => number, port = server.port) =>
      monitorKind({
        kind: 'asking',
        title: '',
        settings: {},
        checks: [{ name: 'ask', depth: 'Basic', doc: '' }],
        async *observe(_, world) {
          const { signal } = world
          const socket = await PeerSocket.reach('127.0.0.1', port, signal)
          const way = { socket, ip: '127.0.0.1', address: '', signal, msLeft: () => msLeft(world.msLeft()) }
          try {
            const target = databaseTarget({ url: server.url('monitor'), password: secret(word) }, 0)
            const session = await openMysql({ ...target, port }, way)
            try {
              yield await session.ask(sql)
            } finally {
              await session.close()
            }
          } finally {
            socket.destroy()
          }
        },
        judge: (rows) => ({ check: 'ask', level: 'ok', message: JSON.stringify(rows) }),
      })
    const sleep = 'SELECT SLEEP(60)'

    test('a query that hangs is killed at the deadline', async () => {
      const started = performance.now()
      const found = runKind(
        asking(sleep, () => 60_000),
        {},
        'Basic',
        { timeoutMs: 2_000 },
      )
      const running = (): Promise<unknown[]> =>
        server.query("SELECT user FROM information_schema.processlist WHERE info LIKE '%SLEEP(60)%' AND user <> 'root'")
      await until(async () => (await running()).length > 0)
      expect(await running()).toEqual([{ user: 'monitor' }])
      expect((await found)[0]).toMatchObject({ fault: 'timeout' })
      expect(performance.now() - started).toBeLessThan(4_500)
      expect(await left()).toEqual([])
      expect(await settled('')).toBe('')
    })
    test('where no second connection gets through, the server itself ends it at the deadline', async () => {
      await using once = await proxy(server.port, 0, 1)
      const kind = asking(sleep, (msLeft) => msLeft, once.port)
      const found = await runKind(kind, {}, 'Basic', { timeoutMs: 1_000 })
      expect(found[0]).toMatchObject({ fault: 'timeout' })
      const running = (): Promise<unknown[]> =>
        server.query("SELECT id FROM information_schema.processlist WHERE user = 'monitor' AND command <> 'Sleep'")
      await until(async () => (await running()).length === 0)
    })
    test('called off at any moment, a run leaves no query, no session and no socket', async () => {
      for (let ms = 0; ms < 60; ms += 3) {
        const control = new AbortController()
        const found = run({}, 'Advanced', { signal: control.signal }).catch(() => [])
        const query = runKind(
          asking(sleep, () => 60_000),
          {},
          'Basic',
          { signal: control.signal },
        )
        await Promise.all([wait(ms).then(() => control.abort()), found, query.catch(() => [])])
      }
      expect(await left()).toEqual([])
      expect(await settled('')).toBe('')
    })
    test('an end that comes while the driver is loaded is not missed', async () => {
      const control = new AbortController()
      const socket = await PeerSocket.reach('127.0.0.1', server.port, control.signal)
      const way = { socket, ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000 }
      const opening = openMysql(databaseTarget({ url: server.url('monitor'), password: secret(word) }, 0), way)
      control.abort(new Error('too late'))
      await expect(opening).rejects.toThrow('too late')
      socket.destroy()
    })
    test('it says who it is', async () => {
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

  describe('what it finds on a real server', () => {
    test('what is not for this account is that check only, and no refused sign-in', async () => {
      const findings = await run({ url: server.url('stranger'), restarted: {} }, 'Advanced')
      const bad = findings.filter((finding) => finding.level !== 'ok')
      expect(bad.map(({ check, fault }) => [check, fault])).toEqual([
        ['replication', 'data'],
        ['longest transaction', 'data'],
      ])
      expect(bad[0]?.message).toMatch(/^"stranger" may not look: Access denied; you need .* SLAVE MONITOR privilege/)
    })
    test('a transaction that is open for too long', async () => {
      const other: Connection = await server.client()
      await other.query(
        'CREATE TABLE orders.t (x INT) ENGINE=InnoDB; START TRANSACTION; INSERT INTO orders.t VALUES (1)',
      )
      await wait(1_100)
      const found = await one('longest transaction', { longestTransaction: { limit: 500 } }, 'Advanced')
      // Its age is the same whatever time zone the server has set for its sessions.
      await server.query("SET GLOBAL time_zone = '+09:00'")
      const elsewhere = await one('longest transaction', {}, 'Advanced')
      await server.query("SET GLOBAL time_zone = 'SYSTEM'")
      await other.end()
      expect(found).toMatchObject({ level: 'fail', fault: 'threshold' })
      expect(found.message).toMatch(
        /^1 transaction is open, the longest \(thread \d+\) for \d+(\.\d+)? s \(limit 500 ms\)$/,
      )
      expect(elsewhere).toMatchObject({ level: 'ok' })
      expect(elsewhere.observed).toBeGreaterThan(500)
    })
    test('a server that was restarted is a warning', async () => {
      expect(await one('restarted', {}, 'Standard')).toMatchObject({ level: 'warn' })
    })
    test('a replica is expected, and there is none', async () => {
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
        const at = async (check: string, given: Given = {}): Promise<Finding> =>
          one(check, { url: replica.url('monitor'), replica: true, ...given }, 'Advanced')
        await until(async () => (await at('replication')).level === 'ok')
        await until(async () => (await at('replication lag')).observed === 0)
        expect((await at('replication')).message).toBe('follows 1 source: both threads run')

        await replica.query('STOP SLAVE SQL_THREAD')
        expect(await at('replication')).toMatchObject({
          fault: 'data',
          message: 'does not apply (SQL thread: No)',
        })
        await server.query('CREATE TABLE orders.later (x INT)')
        await replica.query('START SLAVE')
        await until(async () => (await at('replication')).level === 'ok')

        // A statement that fails there stops it, and its error is told.
        await until(async () => (await replica.query("SHOW TABLES FROM orders LIKE 'later'")).length > 0)
        await replica.query('DROP TABLE orders.later')
        await server.query('INSERT INTO orders.later VALUES (1)')
        await until(async () => (await at('replication')).level === 'fail')
        expect((await at('replication')).details?.join()).toContain("Table 'orders.later' doesn't exist")
        await replica.query('STOP SLAVE; SET GLOBAL SQL_SLAVE_SKIP_COUNTER = 1; START SLAVE')
        await until(async () => (await at('replication')).level === 'ok')

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
    const tls = async (host: string, more: NonNullable<MysqlSettings['tls']>): Promise<Finding> => {
      const url = `mysql://monitor@${host}:${server.port}/`
      return one('connect', { url, tls: more }, 'Basic', { resolve: async () => ['127.0.0.1'] })
    }
    test('a trusted certificate for the right name lets the sign-in go on', async () => {
      const { caFile } = certificates
      expect(await tls('svc.test', { mode: 'verify', caFile })).toMatchObject({
        level: 'ok',
        message: expect.stringContaining('as monitor over TLS in'),
      })
      expect(await tls('127.0.0.1', { mode: 'verify', caFile, servername: 'svc.test' })).toMatchObject({ level: 'ok' })
    })
    test('an unknown issuer or another name is tls, before any password is sent', async () => {
      expect(await tls('svc.test', { mode: 'verify' })).toMatchObject({ level: 'fail', fault: 'tls' })
      const other = await tls('other.test', { mode: 'verify', caFile: certificates.caFile })
      expect(other).toMatchObject({ fault: 'tls', message: expect.stringMatching(/altnames|does not match/i) })
      expect(await tls('127.0.0.1', { mode: 'verify' })).toMatchObject({
        fault: 'tls',
        message: expect.stringContaining('tls: {servername: …}'),
      })
    })
    test('a caFile that is not there is said', async () => {
      expect(await tls('svc.test', { mode: 'verify', caFile: join(folder, 'none.pem') })).toMatchObject({
        fault: 'data',
        message: expect.stringContaining('none.pem cannot be read'),
      })
    })
  })

  test('nothing of the whole test run is left on the server', async () => {
    expect(await left()).toEqual([])
    expect(server.log()).not.toContain('hunter2')
  })
})

describe('mysql: figures against limits', () => {
  const settings = (given: Given = {}): MysqlSettings =>
    withDefaults(mysql.settings, { url: 'mysql://monitor@db/', ...given })
  const judge = (look: MysqlLook, given: Given = {}): readonly Finding[] =>
    [mysql.judge({ see: 'look', address: 'db:3306', look }, settings(given))].flat()
  const levels = (look: MysqlLook, given: Given = {}): string =>
    judge(look, given)
      .map((finding) => finding.level)
      .join(' ')
  const threads = { see: 'threads', connected: 1, running: 1, most: 100, upMs: 60_000 } as const
  const channel = { name: '', receives: 'Yes', applies: 'Yes', lagMs: 0, errors: [] as string[] }
  const replication = (
    ...channels: Partial<Omit<typeof channel, 'lagMs'> & { lagMs: number | undefined }>[]
  ): MysqlLook => ({
    see: 'replication',
    channels: channels.map((one) => ({ ...channel, ...one })),
  })
  const galera = { see: 'galera', on: true, ready: true, cluster: 'Primary', state: 'Synced', size: 3 } as const

  test('the boundaries of the clock belong to what is well, in both directions', () => {
    const clock = (aheadMs: number) => levels({ see: 'clock', aheadMs, tripMs: 1 })
    expect([2_000, -2_000, 2_001, -30_000, -30_001].map(clock)).toEqual(['ok', 'ok', 'warn', 'warn', 'fail'])
  })

  test('boundaries belong to what is well; one figure is a warning', () => {
    expect(levels({ ...threads, connected: 80, running: 60 })).toBe('ok ok ok')
    expect(levels({ ...threads, connected: 81, running: 61 })).toBe('warn warn ok')
    expect(levels({ ...threads, connected: 100, running: 100 })).toBe('warn warn ok')
    expect(levels({ ...threads, connected: 96 }, { connections: { warn: 80, limit: 95 } })).toBe('fail ok ok')
    expect(levels({ ...threads, upMs: 59_000 })).toBe('ok ok warn')
    expect(levels(replication({ lagMs: 30_000 }))).toBe('ok ok')
    expect(levels(replication({ lagMs: 31_000 }))).toBe('ok warn')
    expect(levels(replication({ lagMs: 31_000 }), { replicationLag: { limit: 30_000 } })).toBe('ok fail')
    const transaction = { see: 'transactions', open: 1, thread: 5 } as const
    expect(levels({ ...transaction, longestMs: 120_000 })).toBe('ok')
    expect(levels({ ...transaction, longestMs: 121_000 })).toBe('warn')
    expect(levels({ ...transaction, longestMs: 301_000 })).toBe('fail')
  })
  test('a thread that does not run fails, and the channel is named; an unknown lag is never well', () => {
    expect(judge(replication({}, { name: 'eu', receives: 'Connecting', errors: ['no route'] }))).toEqual([
      expect.objectContaining({
        level: 'fail',
        message: 'eu: does not receive (IO thread: Connecting)',
        details: ['no route'],
      }),
    ])
    expect(levels(replication({}, { lagMs: undefined }))).toBe('ok warn')
    expect(levels(replication())).toBe('ok')
    expect(levels(replication(), { replica: true })).toBe('fail')
  })
  test('Galera: ready, in the primary component, synced', () => {
    expect(judge({ ...galera, on: false })).toEqual([])
    expect(judge(galera)[0]).toMatchObject({ level: 'ok', message: 'Synced, Primary component of 3 nodes' })
    expect(levels({ ...galera, ready: false })).toBe('fail')
    expect(levels({ ...galera, cluster: 'non-Primary' })).toBe('fail')
    expect(levels({ ...galera, state: 'Donor/Desynced' })).toBe('warn')
  })
  test('each server is asked in its own words', () => {
    expect(statement('10.11.19-MariaDB-0+deb12u1')).toBe('SHOW ALL SLAVES STATUS')
    expect(statement('8.0.21')).toBe('SHOW SLAVE STATUS')
    expect(statement('8.0.22')).toBe('SHOW REPLICA STATUS')
    expect(statement('8.4.0-commercial')).toBe('SHOW REPLICA STATUS')
    expect(statement('5.7.44-log')).toBe('SHOW SLAVE STATUS')
  })
})
