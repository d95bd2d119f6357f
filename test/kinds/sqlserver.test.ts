import { spawn, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
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
import { backups, checkdb } from '../../src/core/kinds/sqlserver/backups.ts'
import {
  availabilityGroups,
  blocked,
  databases,
  failedJobs,
  logReuse,
  sessions,
} from '../../src/core/kinds/sqlserver/checks.ts'
import { openSqlserver } from '../../src/core/kinds/sqlserver/driver.ts'
import sqlserver from '../../src/core/kinds/sqlserver/index.ts'
import { dataSpace, logSpace, spaces, tempdb } from '../../src/core/kinds/sqlserver/space.ts'
import type { Values } from '../../src/core/settings/index.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../support/certs.ts'
import { endsByDeadline } from '../support/deadline.ts'
import { blackHole, endless, escapeSequences, peer, refusedPort, replies, settled, speaks } from '../support/faults.ts'
import { peerSuite, suiteWith } from '../support/peer.ts'
import {
  checked,
  evaluated,
  type RunKindOptions,
  rowsAsResult,
  runKind,
  secret,
  withDefaults,
} from '../support/run-kind.ts'
import { done, packets, type TdsAnswer, type TdsOptions, type TdsPeer, tdsPeer } from '../support/tds.ts'
import { hungUp, until } from '../support/until.ts'

type Overrides = Partial<Values<typeof sqlserver.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const word = 'correct horse'
const GiB = 1024 ** 3 / 8_192

/** What a server whose clock is off by so many milliseconds would answer. */
const clockAt = (ms: number) => [{ at: Date.now() + ms }]
/** What a healthy server would answer: a part of each statement, and its rows. */
const healthy: Readonly<Record<string, readonly Readonly<Record<string, string | number | null>>[]>> = {
  'SELECT 1 AS one': [{ one: 1 }],
  'state_desc AS state FROM sys.databases': [
    { may: 1, name: 'master', state: 'ONLINE' },
    { may: 1, name: 'orders', state: 'ONLINE' },
  ],
  'Percent Log Used': [
    { name: 'master', waits: 'NOTHING', used: 60 },
    { name: 'orders', waits: 'LOG_BACKUP', used: 12 },
  ],
  'sys.dm_exec_sessions': [{ may: 1, used: 41, configured: 0, most: 32_767 }],
  'sys.dm_exec_requests': [{ may: 1, session: null, holder: null, waited: null, wait: null }],
  SpaceUsed: [
    { name: 'orders', used: 3 * GiB, size: 4 * GiB, most: -1, growth: 8_192, volume: 'D:\\', free: 6 * 1024 ** 3 },
  ],
  'Log File(s) Used Size': [{ name: 'orders', used: 1_048_576 }],
  'sys.master_files': [{ name: 'orders', size: 4 * GiB, most: 0, growth: 0, volume: 'L:\\', free: 0 }],
  'msdb.dbo.backupset': [
    { name: 'master', recovery: 'SIMPLE', id: 1, made: 9_000_000, fullAge: 600, logAge: null },
    { name: 'orders', recovery: 'FULL', id: 7, made: 900_000, fullAge: 1_200, logAge: 15 },
  ],
  IsHadrEnabled: [{ hadr: 1, may: 1 }],
  'r.role_desc AS role': [{ name: 'ag1', holder: 'DB01', role: 'PRIMARY', health: 'HEALTHY' }],
  is_suspended: [],
  'tempdb.sys.database_files': [
    { name: 'tempdb', size: GiB, most: 8 * GiB, growth: 8_192, volume: 'T:\\', free: 10 * 1024 ** 3 },
  ],
  'tempdb.sys.dm_db_file_space_usage': [{ used: GiB / 2 }],
  'msdb.dbo.sysjobs': [{ name: 'nightly', enabled: 1, failed: 0 }],
  LastGoodCheckDbTime: [{ name: 'orders', made: 900_000, age: 4_320, existing: 1 }],
}
/** Answers by what a statement contains; `over` comes first. */
const answers =
  (over: Readonly<Record<string, TdsAnswer>> = {}) =>
  (sql: string): TdsAnswer => {
    for (const [part, answer] of Object.entries(over)) if (sql.includes(part)) return answer
    if (sql.includes('SYSUTCDATETIME()')) return { rows: clockAt(0) }
    for (const [part, rows] of Object.entries(healthy)) if (sql.includes(part)) return { rows }
    return { error: { number: 208, message: `Invalid object name '${sql.slice(0, 40)}'.` } }
  }
const refusing = (number: number, state = 1, message = "Login failed for user 'monitor'."): Partial<TdsOptions> => ({
  login: () => [{ number, state, message }],
})

const url = (port: number): string => `sqlserver://monitor@127.0.0.1:${port}/orders`
const run = (port: number, mode: Mode = 'Basic', overrides: Overrides = {}, options: RunKindOptions = {}) =>
  runKind(sqlserver, { url: url(port), password: secret(word), ...overrides }, mode, options)
async function using<T>(options: Partial<TdsOptions>, use: (server: TdsPeer) => Promise<T>): Promise<T> {
  await using server = await tdsPeer({ answer: answers(), ...options })
  const result = await use(server)
  await hungUp(server)
  return result
}
const one = (
  check: string,
  options: Partial<TdsOptions>,
  mode: Mode = 'Basic',
  overrides: Overrides = {},
): Promise<Result> => using(options, async (server) => checked(await run(server.port, mode, overrides), check))

describe('a healthy simulated server', () => {
  test('each mode runs its checks and those of the shallower ones, and all are ok', async () => {
    await using({}, async (server) => {
      const names = async (mode: Mode): Promise<readonly string[]> => {
        const results = await run(server.port, mode)
        expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
        expect(results.every(({ address }) => address === `127.0.0.1:${server.port}`)).toBe(true)
        return results.map(({ check }) => check)
      }
      const all = (mode: Mode): readonly string[] =>
        sqlserver.checks
          .filter(({ name }) => !['certificate', 'queries'].includes(name))
          .filter(({ depth }) => mode === 'Advanced' || depth === 'Basic' || depth === mode)
          .map(({ name }) => name)
      expect(await names('Basic')).toEqual(['connect', 'query'])
      expect(await names('Standard')).toEqual(all('Standard'))
      expect(await names('Advanced')).toEqual(all('Advanced'))
    })
  })
  test("a simulated server receives the client's name, and its observations are reported", async () => {
    await using({}, async (server) => {
      const results = await run(server.port, 'Advanced')
      expect(server.logins()).toEqual([{ user: 'monitor', password: word, database: 'orders', app: 'svc-health' }])
      const textOf = (check: string): string => checked(results, check).message
      expect(textOf('connect')).toMatch(/^signed in to 127\.0\.0\.1:\d+ as monitor in [\d.]+ m?s \(limit 3 s\)$/)
      expect(textOf('databases')).toBe('2 databases ONLINE')
      expect(textOf('log reuse')).toBe('log of orders waits for LOG_BACKUP; fill level 12 % (warns above 50 %)')
      expect(textOf('sessions')).toBe('41 of 32767 sessions: 0.1 % (limit 95 %)')
      expect(textOf('data space')).toBe('orders: 3 GiB of 10 GiB used, free 70 % (at least 5 %)')
      expect(textOf('log space')).toBe('log of orders: 1 GiB of 4 GiB used, free 75 % (at least 5 %)')
      expect(textOf('full backup')).toBe('orders: last full backup: age 20 h (limit 3 d)')
      expect(textOf('log backup')).toBe('orders: last log backup: age 15 min (limit 1 h)')
      expect(textOf('availability group')).toBe('ag1 is HEALTHY and this is its primary')
      expect(textOf('failed jobs')).toBe('no failure in the last runs of 1 enabled Agent job')
    })
  })
  test('the clock of a simulated server is compared with the local one, as far as a difference is certain', async () => {
    const off = (ms: number): Promise<Result> =>
      one('clock', { answer: (sql) => answers({ 'SYSUTCDATETIME()': { rows: clockAt(ms) } })(sql) }, 'Advanced')
    expect(await off(0)).toMatchObject({ status: 'ok', measurement: { value: 0, limit: 30_000 } })
    const behind = await off(-600_000)
    expect(behind).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(behind.message).toBe("the server's clock is behind ours by 10 min (limit 30 s)")
    const ahead = await off(12_000)
    expect(ahead.status).toBe('warning')
    expect(ahead.message).toMatch(/^the server's clock is ahead of ours by 1[\d.]+ s \(warns above 2 s\)$/)
    const mute = await one('clock', { answer: answers({ 'SYSUTCDATETIME()': { rows: [] } }) }, 'Advanced')
    expect(mute).toMatchObject({ status: 'failed', message: 'the server returned no time' })
  })
  test('the time is read in UTC, in milliseconds since 1970, from a simulated server', async () => {
    await using({}, async (server) => {
      await run(server.port, 'Advanced')
      const request = server.batches().find((sql) => sql.includes('SYSUTCDATETIME()')) ?? ''
      expect(request).toContain("DATEDIFF(SECOND, '20200101', t)")
      const [seconds = ''] = /\d{10}/.exec(request) ?? []
      expect(Number(seconds) * 1_000).toBe(Date.UTC(2020, 0, 1))
    })
  })
  test('it reads past locks, waits for none, and writes nothing to a simulated server', async () => {
    await using({}, async (server) => {
      await run(server.port, 'Advanced')
      const [setUp, ...requests] = server.batches()
      expect(setUp).toContain('read uncommitted')
      expect(requests.every((sql) => sql.startsWith('SET NOCOUNT ON; SET LOCK_TIMEOUT 500; SELECT '))).toBe(true)
      expect(requests.join('\n')).not.toMatch(/\b(INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|EXEC|INTO|DBCC)\b/)
    })
  })
  test('the kind reports host and port, for its slot and for the secret that is bound to them', () => {
    const target = (overrides: string) => sqlserver.target?.(withDefaults(sqlserver.settings, { url: overrides }))
    expect(target('sqlserver://m@db1/orders')).toEqual({ host: 'db1', port: 1_433, database: 'db1:1433' })
    expect(target('mssql://m@db1:14330')).toMatchObject({ host: 'db1', port: 14_330 })
    expect(target('nonsense')).toEqual({})
  })
})

describe('a simulated server that cannot be reached or refuses the sign-in', () => {
  test('refused: nothing listens', async () => {
    const result = checked(await run(await refusedPort()), 'connect')
    expect(result).toMatchObject({ status: 'failed', fault: 'refused' })
  })
  test('black hole: accepted and never answered ends at the deadline, and leaves no socket', async () => {
    await using hole = await peer(blackHole)
    const results = await endsByDeadline(600, run(hole.port, 'Basic', {}, { timeoutMs: 600 }))
    const result = checked(results, 'connect')
    expect(result).toMatchObject({ fault: 'timeout', message: `127.0.0.1:${hole.port} did not answer within 0.6 s` })
    await hungUp(hole)
    await hole.close()
    expect(await settled('')).toBe('')
  })
  test('slow: a simulated server late by 80 ms at each step exceeds the threshold, with the value', async () => {
    const result = await one('query', { delayMs: 80 }, 'Basic', { latency: { warn: 20, limit: 60 } })
    expect(result).toMatchObject({ status: 'failed', fault: 'threshold', measurement: { limit: 60 } })
    expect(result.measurement?.value).toBeGreaterThan(70)
  })
  test('a wrong password is auth at a simulated server, is never shown, and is not tried again soon', async () => {
    await using(refusing(18_456), async (server) => {
      const shared = limits()
      const options = { limits: shared, retries: 3 }
      const result = checked(await run(server.port, 'Basic', { password: secret('hunter2-wrong') }, options), 'connect')
      expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(result.message).toBe(
        `127.0.0.1:${server.port} refused the sign-in of "monitor": probably a wrong name or password; the exact reason is in the error log of the server`,
      )
      expect(JSON.stringify(result)).not.toContain('hunter2')
      expect(checked(await run(server.port, 'Basic', {}, options), 'sign-in').message).toContain('not signed in')
      expect(server.logins()).toHaveLength(1)
    })
  })
  test.each([
    [18_456, 5, 'auth', 'the login does not exist'],
    [18_456, 7, 'auth', 'the login is disabled'],
    [18_456, 8, 'auth', 'the password is wrong'],
    [18_456, 58, 'auth', 'only Windows accounts'],
    [18_456, 200, 'auth', 'wrong name or password'],
    [18_452, 1, 'auth', 'Windows accounts cannot sign in this way'],
    [18_470, 1, 'auth', 'the login is disabled'],
    [18_486, 1, 'auth', 'the login is locked'],
    [18_487, 1, 'auth', 'the password has expired'],
    [18_488, 1, 'auth', 'the password must be changed first'],
    [4_060, 1, 'data', 'denies "monitor" access to the database'],
    [18_461, 1, 'refused', 'single-user mode'],
    [6_005, 1, 'refused', 'is shutting down'],
    [17_809, 1, 'refused', 'has no free connection'],
    [40_613, 1, 'refused', 'currently unavailable'],
    [50_000, 1, 'protocol', 'refused the connection: Login failed'],
  ] as const)('a simulated refusal with error %i, state %i is %s in words', async (number, state, fault, words) => {
    const result = await one('connect', refusing(number, state))
    expect(result).toMatchObject({ status: 'failed', fault })
    expect(result.message).toContain(words)
    expect(result.details?.join()).toContain(`error ${number}, state ${state}`)
  })
  test('a closed database is reported, and not the refusal of the sign-in that a simulated server adds to it', async () => {
    const result = await one('connect', {
      login: () => [
        { number: 4_060, message: 'Cannot open database "orders" requested by the login.' },
        { number: 18_456, message: "Login failed for user 'monitor'." },
      ],
    })
    expect(result).toMatchObject({ fault: 'data' })
    expect(result.details).toEqual(['error 4060, state 1: Cannot open database "orders" requested by the login.'])
  })
  test('a transient error is not retried implicitly, at a simulated server', async () => {
    await using(refusing(40_613), async (server) => {
      await run(server.port)
      expect(server.logins()).toHaveLength(1)
    })
  })
  test('a simulated server that redirects its clients does not get the password sent elsewhere', async () => {
    await using other = await tdsPeer({ answer: answers() })
    const result = await one('connect', { route: { host: '127.0.0.1', port: other.port } })
    expect(result).toMatchObject({ status: 'failed', fault: 'data' })
    expect(result.message).toContain(`redirects its clients to "127.0.0.1:${other.port}"`)
    expect(other.connections()).toBe(0)
  })
  test('input before the sign-in is bounded: a simulated flood ends at 128 KiB, not at the deadline', async () => {
    await using flood = await peer(endless('', '\x04\x00\x00\x09\x00\x00\x01\x00\x07'.repeat(400)))
    const result = checked(await run(flood.port), 'connect')
    expect(result).toMatchObject({ fault: 'protocol' })
    expect(result.message).toBe('the peer sent more than 128 KiB before the sign-in completed')
  })
  test.each([
    ['an SSH server', speaks('SSH-2.0-OpenSSH_9.2\r\n')],
    ['an HTTP server', replies('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')],
    ['zeroes', speaks(Buffer.alloc(4_096))],
    ['a packet that is cut', replies(Buffer.from([4, 1, 0, 40, 0, 0, 1, 0, 0, 0, 11]))],
    ['a prelogin of nonsense', replies(packets(4, Buffer.alloc(30, 7)))],
    ['a prelogin without an end', replies(packets(4, Buffer.alloc(30, 1)))],
    ['one packet that never ends', endless('\x04\x00\x7f\xff\x00\x00\x01\x00', '\x00'.repeat(4_096))],
    ['packets of one byte without an end', endless('', '\x04\x00\x00\x09\x00\x00\x01\x00\x07'.repeat(400))],
    ['empty packets without an end', endless('', '\x04\x00\x00\x08\x00\x00\x01\x00'.repeat(400))],
    ['a connection that is closed at once', (socket) => void socket.end()],
    ['a connection that is reset', (socket) => void socket.resetAndDestroy()],
  ] satisfies [string, Parameters<typeof peer>[0]][])('%s is a failure, and nothing breaks', async (_, behave) => {
    await using other = await peer(behave)
    const result = checked(await run(other.port, 'Basic', {}, { timeoutMs: 900 }), 'connect')
    expect(result.status).toBe('failed')
    expect(['protocol', 'timeout', 'tls']).toContain(result.fault)
    expect(result.message).not.toContain('internal')
    await hungUp(other)
  })
})

describe('a simulated server that answers badly', () => {
  const column = (kind: number, ...more: readonly number[]): Buffer =>
    Buffer.from([0x81, 1, 0, 0, 0, 0, 0, 9, 0, kind, ...more, 3, 0x6f, 0, 0x6e, 0, 0x65, 0])
  const reply = (...tokens: readonly Buffer[]): Buffer => packets(4, Buffer.concat(tokens))
  test.each([
    ['a token that does not exist', reply(Buffer.from([0x01, 0x02, 0x03]))],
    ['a row without columns', reply(Buffer.from([0xd1, 1, 2, 3]))],
    [
      'a text of 4 GiB',
      reply(
        column(0xe7, 0xff, 0xff, 9, 4, 0xd0, 0, 0x34),
        Buffer.from([0xd1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f]),
      ),
    ],
    ['65,535 columns', reply(Buffer.from([0x81, 0xfe, 0xff, 0, 0, 0, 0]))],
    ['a type that does not exist', reply(column(0x99, 0xff))],
    ['a number of 200 bytes', reply(column(0x26, 200), Buffer.from([0xd1, 200, 1]))],
    ['an answer that is cut within a token', reply(done().subarray(0, 5))],
    ['nothing but the end', reply(done())],
    ['another number', reply(column(0x26, 4), Buffer.from([0xd1, 4, 2, 0, 0, 0]), done(0x10, 1))],
    ['an error that never was', reply(done(2))],
  ])('%s fails the query of a simulated server, and nothing breaks', async (_, answer) => {
    await using server = await tdsPeer({ answer: answers({ 'SELECT 1': answer }) })
    const result = checked(await run(server.port, 'Basic', {}, { timeoutMs: 1_500 }), 'query')
    expect(result.status).toBe('failed')
    expect(['protocol', 'timeout']).toContain(result.fault)
    await hungUp(server)
  })
  test('100 answers of random bytes from a simulated server are 100 failures, and nothing breaks', async () => {
    for (let round = 0; round < 100; round += 1) {
      const bytes = Buffer.from(Array.from({ length: 60 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
      // A token that is right takes the rest to its own parser.
      const kinds = [0x81, 0xaa, 0xd1, 0xd2, 0xe3, 0xad, 0xac, 0xa9, 0xa5, 0x79, 0xfd]
      bytes[0] = kinds[round % kinds.length] ?? 0
      await using server = await tdsPeer({ answer: answers({ 'SELECT 1': packets(4, bytes) }) })
      const result = checked(await run(server.port, 'Basic', {}, { timeoutMs: 400 }), 'query')
      expect(result.status).toBe('failed')
    }
  }, 60_000)
  test('text of a simulated server is shown without escapes, truncated, and never contains the password', async () => {
    const message = `${escapeSequences} you sent ${word} ${'x'.repeat(3_000)}`
    const refused = await one('connect', { login: () => [{ number: 50_001, message }] })
    const failed = await one('query', { answer: answers({ 'SELECT 1': { error: { number: 50_001, message } } }) })
    const rows = [{ may: 1, name: `${escapeSequences}${word}`, state: `${word}!` }]
    const output = await one('databases', { answer: answers({ 'sys.databases ORDER': { rows } }) }, 'Standard')
    for (const result of [refused, failed, output]) {
      const text = JSON.stringify(result)
      expect(result.status).toBe('failed')
      expect(text).not.toContain(word)
      expect(text).not.toMatch(/\\u001b|\\u0007|\\u009b|\\u202e/)
      expect(text.length).toBeLessThan(2_000)
      expect(text).toContain('[secret]')
    }
  })
  test('endless rows from a simulated server end soon', async () => {
    const head = Buffer.concat([column(0x26, 4), Buffer.from([0xd1, 4, 1, 0, 0, 0])])
    const first = packets(4, head)
    first[1] = 0
    const more = packets(4, Buffer.concat(Array.from({ length: 600 }, () => Buffer.from([0xd1, 4, 1, 0, 0, 0]))))
    more[1] = 0
    const flood = Buffer.concat([first, ...Array.from({ length: 3_000 }, () => more)])
    await using server = await tdsPeer({ answer: answers({ 'SELECT 1': flood }) })
    const result = checked(await run(server.port, 'Basic', {}, { timeoutMs: 4_000 }), 'query')
    expect(result).toMatchObject({ status: 'failed', message: expect.stringMatching(/more than 8 MiB|did not answer/) })
    await hungUp(server)
  })
  test('one query that fails does not hide the others, at a simulated server', async () => {
    const broken = { error: { number: 8_134, message: 'Divide by zero error encountered.' } }
    await using({ answer: answers({ 'sys.dm_exec_sessions': broken }) }, async (server) => {
      const results = await run(server.port, 'Standard')
      expect(results.filter(({ status }) => status !== 'ok').map(({ check }) => check)).toEqual(['sessions'])
      expect(checked(results, 'sessions')).toMatchObject({
        fault: 'protocol',
        message: 'the query failed: Divide by zero error encountered.',
      })
      expect(results).toHaveLength(8)
    })
  })
  test('a lock timeout is reported, at a simulated server', async () => {
    const locked = { error: { number: 1_222, message: 'Lock request time out period exceeded.' } }
    const result = await one('failed jobs', { answer: answers({ sysjobs: locked }) }, 'Advanced')
    expect(result).toMatchObject({ fault: 'timeout', message: 'timed out waiting for a lock' })
  })
})

describe('missing permissions', () => {
  const denied = (number: number, message: string): TdsAnswer => ({ error: { number, message } })
  test.each([
    [
      'sessions',
      'sys.dm_exec_sessions',
      { rows: [{ may: 0, used: 1, configured: 0, most: 32_767 }] },
      'GRANT VIEW SERVER STATE TO [monitor]',
    ],
    ['blocked', 'sys.dm_exec_requests', { rows: [{ may: 0, session: null }] }, 'GRANT VIEW SERVER STATE TO [monitor]'],
    [
      'log reuse',
      'Percent Log Used',
      denied(300, 'VIEW SERVER STATE permission was denied on object server'),
      'GRANT VIEW SERVER STATE TO [monitor]',
    ],
    ['log space', 'sys.master_files', { rows: [] }, 'GRANT VIEW ANY DEFINITION TO [monitor]'],
    [
      'full backup',
      'backupset',
      denied(229, "The SELECT permission was denied on the object 'backupset'"),
      'GRANT SELECT ON dbo.backupset TO [monitor]',
    ],
    [
      'failed jobs',
      'sysjobs',
      denied(916, 'The server principal is not able to access the database "msdb"'),
      'CREATE USER [monitor] FOR LOGIN [monitor]',
    ],
    ['availability group', 'IsHadrEnabled', { rows: [{ hadr: 1, may: 0 }] }, 'GRANT VIEW ANY DEFINITION TO [monitor]'],
  ] as const)(
    '%s is not checked in a simulated server, and the GRANT is reported',
    async (check, part, answer, grant) => {
      const result = await one(check, { answer: answers({ [part]: answer as TdsAnswer }) }, 'Advanced')
      expect(result.status).toBe('warning')
      expect(result.message).toMatch(/^not checked: /)
      expect(result.details?.join()).toContain(grant)
    },
  )
  test('a feature that an edition lacks is reported without a GRANT, at a simulated server', async () => {
    const absent = denied(208, "Invalid object name 'msdb.dbo.sysjobs'.")
    const result = await one('failed jobs', { answer: answers({ sysjobs: absent }) }, 'Advanced')
    expect(result).toMatchObject({ status: 'warning' })
    expect(result.details).toBeUndefined()
    expect(result.message).toContain('this edition or version does not provide this data')
  })
  test.each([
    ['log reuse', 'Percent Log Used'],
    ['log space', 'Log File(s) Used Size'],
  ])('%s is not ok where the counters of a simulated server are empty', async (check, part) => {
    const result = await one(check, { answer: answers({ [part]: { rows: [] } }) }, 'Standard')
    expect(result).toMatchObject({ status: 'warning', message: expect.stringContaining('performance counters') })
  })
  test('the name of the login cannot end the GRANT in the message', async () => {
    const hidden = { rows: [{ may: 0, used: 1, configured: 0, most: 32_767 }] }
    await using({ answer: answers({ 'sys.dm_exec_sessions': hidden }) }, async (server) => {
      const results = await run(server.port, 'Standard', { url: `sqlserver://a%5D;drop@127.0.0.1:${server.port}/` })
      expect(checked(results, 'sessions').details).toEqual(['GRANT VIEW SERVER STATE TO [a]];drop]'])
    })
  })
})

describe('a run ends what it started on the simulated server', () => {
  const hang = { answer: answers({ 'sys.dm_exec_requests': 'hang' }) }
  test('a query that hangs is cancelled by an attention at the deadline', async () => {
    await using server = await tdsPeer(hang)
    const results = await endsByDeadline(1_200, run(server.port, 'Standard', {}, { timeoutMs: 1_200 }))
    expect(checked(results, 'blocked')).toMatchObject({
      fault: 'timeout',
      message: `127.0.0.1:${server.port} did not answer within 1.2 s`,
    })
    expect(checked(results, 'sessions').status).toBe('ok')
    expect(server.attentions()).toBe(1)
    expect(server.running()).toBe(0)
    await hungUp(server)
    await server.close()
    expect(await settled('')).toBe('')
  })
  test('a run that is cancelled cancels its query by an attention', async () => {
    await using server = await tdsPeer(hang)
    const control = new AbortController()
    const running = run(server.port, 'Standard', {}, { signal: control.signal })
    await until(() => server.running() > 0)
    control.abort()
    await expect(running).rejects.toThrow('aborted')
    await until(() => server.running() === 0)
    expect(server.attentions()).toBe(1)
  })
  test('a run that is cancelled at any moment leaves nothing running and no connection', async () => {
    await using server = await tdsPeer(hang)
    for (let ms = 0; ms < 60; ms += 4) {
      const control = new AbortController()
      const result = run(server.port, 'Standard', {}, { signal: control.signal }).catch(() => [])
      await wait(ms)
      control.abort()
      await result
    }
    await until(() => server.running() === 0)
    await hungUp(server)
  })
  test('one statement does not use all the time: it is cancelled, and the session continues', async () => {
    await using server = await tdsPeer(hang)
    const asking: Kind = {
      name: 'asking',
      title: '',
      settings: {},
      runsOn: 'network',
      checks: [{ name: 'ask', depth: 'Basic', doc: '' }],
      async *run(_, { signal }) {
        const socket = await PeerSocket.reach('127.0.0.1', server.port, signal)
        // What a statement may take is read off the time that is left.
        const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => 200 }
        try {
          const session = await openSqlserver(databaseTarget({ url: url(server.port) }, 0), way)
          yield rowsAsResult(
            await session.ask('SELECT * FROM sys.dm_exec_requests').catch((error: unknown) => String(error)),
          )
          yield rowsAsResult(await session.ask('SELECT 1 AS one'))
          await session.close()
        } finally {
          socket.destroy()
        }
      },
    }
    const results = await runKind(asking, {})
    expect(results.map(({ message }) => message)).toEqual([
      '"ProbeError: the query was cancelled because it took too long"',
      '[{"one":"1"}]',
    ])
    expect(server.attentions()).toBe(1)
  })
  test('a cancellation while the driver loads takes effect', async () => {
    await using server = await tdsPeer({ answer: answers() })
    const control = new AbortController()
    const socket = await PeerSocket.reach('127.0.0.1', server.port, control.signal)
    const way = { socket, ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000 }
    const opening = openSqlserver(databaseTarget({ url: url(server.port) }, 0), way)
    control.abort(new Error('too late'))
    await expect(opening).rejects.toThrow('too late')
    socket.destroy()
  })
})

suiteWith(opensslMissing(), 'TLS with a simulated server', () => {
  let certificates: Certificates
  beforeAll(() => {
    certificates = makeCertificates()
  })
  afterAll(() => certificates.remove())
  const with_ = (
    output: Partial<TdsOptions>,
    tls: TlsSetting,
    host = 'svc.test',
  ): Promise<readonly [found: Result, server: TdsPeer]> =>
    using(output, async (server) => {
      const overrides = { url: `sqlserver://monitor@${host}:${server.port}/`, password: secret(word), tls }
      const result = await runKind(sqlserver, overrides, 'Basic', { resolve: async () => ['127.0.0.1'] })
      return [checked(result, 'connect'), server] as const
    })
  const verify = (): TlsSetting => ({ mode: 'verify', caFile: certificates.caFile })

  test('a trusted certificate is accepted, for a name and for an address', async () => {
    expect((await with_({ tls: certificates.good }, verify()))[0].message).toContain('as monitor over TLSv1.2 in')
    expect((await with_({ tls: certificates.good }, verify(), '127.0.0.1'))[0].status).toBe('ok')
    const withServername = { ...verify(), servername: 'svc.test' }
    expect((await with_({ tls: certificates.good }, withServername, 'db1.internal'))[0].status).toBe('ok')
  })
  test('from Standard on the end of its certificate is a value', async () => {
    const results = await using({ tls: certificates.good }, async (server) => {
      const overrides = { url: `sqlserver://monitor@svc.test:${server.port}/`, password: secret(word), tls: verify() }
      return await runKind(sqlserver, overrides, 'Standard', { resolve: async () => ['127.0.0.1'] })
    })
    expect(checked(results, 'certificate')).toMatchObject({
      status: 'ok',
      measurement: { unit: 'days', at: new X509Certificate(certificates.good.cert).validToDate },
    })
  })
  test('a certificate that is not trusted is tls, and no password is sent', async () => {
    for (const [output, tls, words] of [
      [certificates.good, { mode: 'verify' }, /unable to get|self.signed/i],
      [certificates.selfSigned, verify(), /self.signed/i],
      [certificates.expired, verify(), /expired/],
      [certificates.wrongHost, verify(), /elsewhere\.test/],
    ] as const) {
      const [result, server] = await with_({ tls: output }, tls)
      expect(result).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(result.message).toMatch(words)
      expect(server.logins()).toEqual([])
    }
  })
  test('a query that hangs is cancelled by an attention over TLS as well', async () => {
    const answer = answers({ 'sys.dm_exec_requests': 'hang' })
    await using server = await tdsPeer({ answer, tls: certificates.good })
    const results = await run(server.port, 'Standard', { tls: verify() }, { timeoutMs: 1_200 })
    expect(checked(results, 'blocked')).toMatchObject({ fault: 'timeout' })
    expect([server.attentions(), server.running()]).toEqual([1, 0])
    await hungUp(server)
  })
  test('a server without TLS, or with nothing else, is reported with a remedy', async () => {
    const [without, server] = await with_({}, verify())
    expect(without).toMatchObject({ fault: 'tls', message: expect.stringContaining('does not offer TLS') })
    expect(without.details?.join()).toContain('tls: {mode: off}')
    expect(server.logins()).toEqual([])
    const [only, other] = await with_({ tls: certificates.good, tlsRequired: true }, { mode: 'off' })
    expect(only).toMatchObject({ fault: 'tls', message: expect.stringContaining('requires an encrypted connection') })
    expect(other.logins()).toEqual([])
  })
})

const freetds = 'tsql'
const tsqlMissing =
  spawnSync(freetds, ['-C']).status === 0 ? undefined : 'the program tsql (Debian: freetds-bin) is not installed'

peerSuite(tsqlMissing, 'the simulated server speaks to another client: tsql of FreeTDS', () => {
  async function tsql(port: number, request: string): Promise<string> {
    const child = spawn(freetds, ['-H', '127.0.0.1', '-p', String(port), '-U', 'monitor', '-P', word, '-o', 'q'], {
      env: { ...process.env, TDSVER: '7.4', FREETDSCONF: '/dev/null' },
      timeout: 10_000,
    })
    let rows = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        rows += chunk.toString()
      })
    }
    child.stdin.end(`${request}\ngo\nexit\n`)
    await once(child, 'close')
    return rows
  }
  test('it signs in with the same name and password, and reads the same rows', async () => {
    await using server = await tdsPeer({ answer: answers() })
    const rows = await tsql(server.port, 'SELECT name, state_desc AS state FROM sys.databases')
    expect(server.logins()).toMatchObject([{ user: 'monitor', password: word }])
    expect(rows).toMatch(/1\tmaster\tONLINE/)
    expect(rows).toMatch(/1\torders\tONLINE/)
  })
  test('it is refused with the same error, and receives the errors of a batch', async () => {
    await using server = await tdsPeer({ answer: answers() })
    expect(await tsql(server.port, 'SELECT nothing')).toContain('Msg 208')
    await using closed = await tdsPeer({ answer: answers(), ...refusing(18_456, 1) })
    expect(await tsql(closed.port, 'SELECT 1')).toMatch(/Login failed for user 'monitor'/)
  })
})

describe('evaluation', () => {
  const status = (results: readonly Result[]): string | undefined => results[0]?.status
  const message = (results: readonly Result[]): string | undefined => results[0]?.message
  const minute = 60_000
  const hour = 60 * minute

  test('databases: ONLINE is ok, in transition a warning, anything else a failure', () => {
    const at = (...states: readonly string[]) => states.map((state, at) => ({ name: `d${at}`, state }))
    const judged = (...states: readonly string[]) => evaluated(databases, at(...states))
    expect(status(judged('ONLINE', 'ONLINE'))).toBe('ok')
    expect(status(judged('ONLINE', 'RESTORING', 'RECOVERING'))).toBe('warning')
    for (const state of ['SUSPECT', 'RECOVERY_PENDING', 'EMERGENCY', 'OFFLINE'])
      expect(status(judged(state))).toBe('failed')
    expect(message(judged('RESTORING', 'SUSPECT', 'ONLINE'))).toBe(
      '2 of 3 databases not ONLINE: d1 is SUSPECT, d0 is RESTORING',
    )
    expect(status(evaluated(databases, at('SUSPECT', 'ONLINE'), { ignore: ['D0'] }))).toBe('ok')
  })
  test('log reuse: only a log that fills up while it waits fails', () => {
    const judged = (waits: string, used: number) => evaluated(logReuse, [{ name: 'orders', waits, used }])
    expect(status(judged('LOG_BACKUP', 50))).toBe('ok')
    expect(status(judged('LOG_BACKUP', 51))).toBe('warning')
    expect(status(judged('NOTHING', 99))).toBe('ok')
    expect(judged('AVAILABILITY_REPLICA', 80)[0]?.details).toEqual([
      'AVAILABILITY_REPLICA: a secondary replica does not keep up',
    ])
  })
  test('sessions: 80 % and 95 % are ok at the boundary', () => {
    const judged = (used: number, max = 100) => status(evaluated(sessions, { used, max }))
    expect([80, 81, 95, 96].map((used) => judged(used))).toEqual(['ok', 'warning', 'warning', 'failed'])
    expect(judged(1, 0)).toBe('failed')
  })
  test('blocked: a minute is ok', () => {
    const judged = (longestMs: number) =>
      evaluated(blocked, { requests: 2, longestMs, session: 71, blocker: 66, wait: 'LCK_M_S' })
    expect(status(judged(minute))).toBe('ok')
    expect(status(judged(minute + 1))).toBe('warning')
    expect(message(judged(5 * minute))).toBe(
      '2 blocked requests; session 71 is blocked by session 66 for 5 min (warns above 1 min)',
    )
  })
  test('space: 10 % and 5 % are ok at the boundary, and the tightest is reported', () => {
    const volumes = (...used: readonly number[]) => used.map((one, at) => ({ name: `d${at}`, used: one, room: 100 }))
    for (const check of [
      (used: number) => evaluated(dataSpace, volumes(used)),
      (used: number) => evaluated(logSpace, volumes(used)),
    ]) {
      expect([90, 91, 95, 96].map((used) => status(check(used)))).toEqual(['ok', 'warning', 'warning', 'failed'])
    }
    expect([90, 91, 99].map((used) => status(evaluated(tempdb, volumes(used))))).toEqual(['ok', 'warning', 'warning'])
    expect(message(evaluated(logSpace, volumes(10, 97, 50)))).toMatch(/^log of d1: 97 B of 100 B used, free 3 %/)
  })
  test('space: growth counts up to the limit of a file and to the free space of its volume, once', () => {
    const file = { name: 'o', size: 100, growth: 10, most: -1, volume: 'D:', free: 50 * 8_192 }
    const room = (...files: readonly object[]) => spaces(files as never, () => 0)[0]?.room
    expect(room(file)).toBe(150 * 8_192)
    expect(room(file, { ...file, size: 10 })).toBe(160 * 8_192)
    expect(room({ ...file, most: 120 })).toBe(120 * 8_192)
    expect(room({ ...file, growth: 0 })).toBe(100 * 8_192)
    expect(room({ ...file, most: 268_435_456 })).toBe(150 * 8_192)
    expect(room(file, { ...file, volume: 'E:' })).toBe(300 * 8_192)
  })
  test('backups: 48 h and 72 h, 30 min and 60 min; a missing one counts from the creation of the database', () => {
    const at = (ageMs: number, never = false) => [{ name: 'orders', ageMs, at: new Date(0), never }]
    const full = (ms: number) => status(evaluated(backups, { full: at(ms), log: [] }))
    const log = (ms: number) => status(evaluated(backups, { full: [], log: at(ms) }))
    expect([48 * hour, 49 * hour, 72 * hour, 73 * hour].map(full)).toEqual(['ok', 'warning', 'warning', 'failed'])
    expect([30, 31, 60, 61].map((n) => log(n * minute))).toEqual(['ok', 'warning', 'warning', 'failed'])
    const never = { full: at(90 * hour, true), log: [] }
    expect(message(evaluated(backups, never))).toBe('orders: no full backup since it was created: 3.8 d (limit 3 d)')
    expect(evaluated(backups, never, { fullBackup: {} })).toEqual([])
    const two = { full: [...at(90 * hour), { name: 'old', ageMs: 99 * hour, at: new Date(0), never: false }], log: [] }
    expect(evaluated(backups, two)[0]).toMatchObject({ details: ['also too old: orders'] })
  })
  test('availability groups are evaluated on the primary only', () => {
    const healthy = { name: 'ag1', primary: 'DB01', role: 'PRIMARY', health: 'HEALTHY', unhealthy: [] as string[] }
    const group = (more: Partial<typeof healthy>) => evaluated(availabilityGroups, [{ ...healthy, ...more }])
    expect(status(group({}))).toBe('ok')
    const unhealthy = ['orders on DB02: NOT SYNCHRONIZING']
    expect(status(group({ health: 'PARTIALLY_HEALTHY', unhealthy }))).toBe('warning')
    expect(status(group({ health: 'NOT_HEALTHY' }))).toBe('failed')
    expect(message(group({ role: 'SECONDARY', health: 'NOT_HEALTHY' }))).toBe(
      'ag1: this is SECONDARY; its health is checked at the primary DB01',
    )
    expect(status(group({ primary: '' }))).toBe('failed')
    expect(evaluated(availabilityGroups, [])).toEqual([])
  })
  test('clock: 2 s and 30 s are ok at the boundary, in both directions', () => {
    const off = (aheadMs: number) => evaluateClock({ aheadMs, tripMs: 4 }, clockSetting.default).status
    expect([0, 2_000, -2_000, 2_001, -2_001, 30_000, 30_001, -30_001].map(off)).toEqual([
      'ok',
      'ok',
      'ok',
      'warning',
      'warning',
      'warning',
      'failed',
      'failed',
    ])
  })
  test('failed jobs and the age of CHECKDB are warnings', () => {
    expect(status(evaluated(failedJobs, { enabled: 3, failed: [] }))).toBe('ok')
    expect(message(evaluated(failedJobs, { enabled: 3, failed: ['nightly', 'index'] }))).toBe(
      'last run failed: nightly, index; of 3 enabled Agent jobs 2 (warns above 0)',
    )
    const age = (days: number) =>
      status(evaluated(checkdb, [{ name: 'o', ageMs: days * 24 * hour, at: new Date(0), never: false }]))
    expect([14, 15].map(age)).toEqual(['ok', 'warning'])
  })
})
