import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { databaseTarget, PeerSocket, type Query, type TlsSetting } from '../../../src/core/checks/database/index.ts'
import type { Kind, Result } from '../../../src/core/checks/engine/index.ts'
import { backups, checkdb } from '../../../src/core/checks/kinds/sqlserver/backups.ts'
import {
  availabilityGroups,
  blocked,
  databases,
  failedJobs,
  logReuse,
  sessions,
} from '../../../src/core/checks/kinds/sqlserver/checks.ts'
import { openSqlserver } from '../../../src/core/checks/kinds/sqlserver/driver.ts'
import sqlserver from '../../../src/core/checks/kinds/sqlserver/index.ts'
import { dataSpace, logSpace, spaces, tempdb } from '../../../src/core/checks/kinds/sqlserver/space.ts'
import { files } from '../../support/engine/files.ts'
import { finds } from '../../support/engine/finds.ts'
import {
  checked,
  evaluated,
  ofRunner,
  type RunKindOptions,
  rowsAsResult,
  runKind,
  secret,
  withDefaults,
} from '../../support/engine/run-kind.ts'
import { endless, escapeSequences, peer, replies, settled } from '../../support/faults/faults.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { answers, type healthy } from '../../support/simulated/sqlserver.ts'
import {
  done,
  packets,
  type TdsAnswer,
  type TdsError,
  type TdsOptions,
  type TdsPeer,
  tdsPeer,
} from '../../support/simulated/tds.ts'
import { peerSuite, suiteWith } from '../../support/suite/peer.ts'
import { hungUp } from '../../support/suite/until.ts'
import { sqlSuite, word } from './sql/suite.ts'

type Settings = Partial<Values<typeof sqlserver.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const refusing = (number: number, state = 1, message = "Login failed for user 'monitor'."): Partial<TdsOptions> => ({
  login: () => [{ number, state, message }],
})

const url = (port: number): string => `sqlserver://monitor@127.0.0.1:${port}/orders`
const run = (port: number, mode: Mode = 'Basic', settings: Settings = {}, options: RunKindOptions = {}) =>
  runKind(sqlserver, { url: url(port), password: secret(word), ...settings }, mode, options)
async function using<T>(options: Partial<TdsOptions>, use: (server: TdsPeer) => Promise<T>): Promise<T> {
  await using server = await tdsPeer({ answer: answers(), ...options })
  const result = await use(server)
  await hungUp(server)
  return result
}
const look = (options: Partial<TdsOptions>, mode: Mode = 'Basic', settings: Settings = {}) =>
  using(options, (server) => run(server.port, mode, settings))
const one = async (check: string, ...args: Parameters<typeof look>): Promise<Result> =>
  checked(await look(...args), check)

/** The answers to the queries of the suite, and to those below: a part of each query, and the first column. */
const values: Readonly<Record<string, readonly (string | number | null)[]>> = {
  "count(*) FROM jobs WHERE state = 'waiting'": [2],
  "count(*) FROM jobs WHERE state = 'failed'": [1],
  'min(created_at)': [new Date(Date.now() - 3_600_000).toISOString()],
  naive: [new Date(Date.now() - 7_200_000).toISOString().slice(0, 19).replace('T', ' '), null],
  "state = 'stuck'": [],
  'max(created_at)': [null],
  'SELECT 0.5': ['0.5'],
  'FROM failed': [1, 7],
  "'many'": ['many'],
  'FROM many': Array.from({ length: 5_000 }, (_, at) => at),
  'FROM echo': [`you sent ${word}`],
}
const denied229 = `The SELECT permission was denied on ${escapeSequences}'jobs' to ${word}.`
const errors: Readonly<Record<string, TdsError>> = {
  'FROM gone': { number: 208, message: "Invalid object name 'gone'." },
  'FROM closed': { number: 229, message: denied229 },
  'FROM locked': { number: 1_222, message: 'Lock request time out period exceeded.' },
}
const rowsOf = (cells: readonly (string | number | null)[]): TdsAnswer => ({ rows: cells.map((x) => ({ x, y: 'no' })) })
/** The server of the suite: it lets `monitor` in with the right password, answers queries, and can sleep. */
let server: TdsPeer
let refusal: TdsError | undefined
let sysadmin: TdsAnswer = { rows: [{ sysadmin: 0 }] }
const suiteAnswer = (sql: string): TdsAnswer => {
  if (sql.includes('WAITFOR')) return 'hang'
  if (sql.includes('IS_SRVROLEMEMBER')) return sysadmin
  if (sql.includes('APP_NAME()')) return { rows: [{ name: server.logins().at(-1)?.app ?? '' }] }
  for (const [part, cells] of Object.entries(values)) if (sql.includes(part)) return rowsOf(cells)
  for (const [part, error] of Object.entries(errors)) if (sql.includes(part)) return { error }
  if (/\nSELECT 1$/.test(sql)) return rowsOf([1])
  const [, count] = /FROM wide(\d+)$/.exec(sql) ?? []
  return count === undefined ? answers()(sql) : rowsOf(Array.from({ length: Number(count) }, () => 'x'.repeat(1_000)))
}
const suiteLogin: NonNullable<TdsOptions['login']> = ({ user, password }) => {
  if (refusal) return [refusal]
  return user === 'monitor' && password === word
    ? undefined
    : [{ number: 18_456, message: `Login failed for user '${user}'.` }]
}
const refuses = (number: number) => ({
  plant: async () => {
    refusal = { number, message: 'Login failed.' }
  },
  end: async () => {
    refusal = undefined
  },
})
const asServer = (of: TdsPeer) => ({
  port: of.port,
  address: `127.0.0.1:${of.port}`,
  url: (user: string, database = 'orders') => `sqlserver://${user}@127.0.0.1:${of.port}/${database}`,
})
/** The checks of a mode; the server is without TLS, and nothing of one's own is asked. */
const checksOf = (mode: Mode): readonly string[] =>
  sqlserver.checks
    .filter(({ name }) => !['certificate', 'queries', 'write', ...ofRunner].includes(name))
    .filter(({ depth }) => mode === 'Advanced' || depth === 'Basic' || depth === mode)
    .map(({ name }) => name)
const runSuite = (settings: Settings = {}, mode: Mode = 'Basic', options: RunKindOptions = {}) =>
  run(server.port, mode, settings, options)

sqlSuite(
  {
    name: 'SQL Server (simulated)',
    start: async () => {
      server = await tdsPeer({ login: suiteLogin, answer: suiteAnswer })
    },
    stop: () => server.close(),
    run: runSuite,
    runWell: runSuite,
    checks: { Basic: ['connect', 'query'], Standard: checksOf('Standard'), Advanced: checksOf('Advanced') },
    messages: {
      mode: 'Advanced',
      of: {
        connect: /^signed in to 127\.0\.0\.1:\d+ as monitor in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
        databases: '2 databases ONLINE',
        'log reuse': 'log of orders waits for LOG_BACKUP; fill level 12 % (warn 50 %)',
        sessions: '41 of 32767 sessions: 0.1 % (warn 80 %, fail 95 %)',
        'data space': 'orders: 3 GiB of 10 GiB used, free 70 % (warn below 10 %, fail below 5 %)',
        'log space': 'log of orders: 1 GiB of 4 GiB used, free 75 % (warn below 10 %, fail below 5 %)',
        'full backup': 'orders: last full backup: age 20 h (warn 48 h, fail 3 d)',
        'log backup': 'orders: last log backup: age 15 min (warn 30 min, fail 1 h)',
        'availability group': 'ag1 is HEALTHY and this is its primary',
        'failed jobs': 'no failure in the last runs of 1 enabled Agent job',
      },
    },
    open: () => Array.from({ length: server.open() }),
    log: () => '',
    network: {
      scheme: 'sqlserver',
      database: 'orders',
      server: () => asServer(server),
      open: openSqlserver,
      resources: 'TCPServerWrap 1',
      refusals: () => server.logins().filter(({ password }) => password !== word).length,
      passwordRefusal:
        /^127\.0\.0\.1:\d+ refused the sign-in of "monitor": probably a wrong name or password; the exact reason is in the error log of the server$/,
      conditions: {
        noPassword: { run: () => runKind(sqlserver, { url: url(server.port) }) },
        noAccount: { settings: () => ({ url: asServer(server).url('nobody') }) },
        locked: { ...refuses(18_486), message: /the login is locked/ },
        missingDatabase: { absent: 'The server names neither it nor a closed database: it says the same of both' },
        closedDatabase: { ...refuses(4_060), message: /denies "monitor" access to the database/ },
        full: { ...refuses(17_809), message: /has no free connection/ },
      },
      hostile: [
        ['an HTTP server that waits', replies('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')],
        ['a packet that is cut', replies(Buffer.from([4, 1, 0, 40, 0, 0, 1, 0, 0, 0, 11]))],
        ['a prelogin of nonsense', replies(packets(4, Buffer.alloc(30, 7)))],
        ['a prelogin without an end', replies(packets(4, Buffer.alloc(30, 1)))],
        ['one packet that never ends', endless('\x04\x00\x7f\xff\x00\x00\x01\x00', '\x00'.repeat(4_096))],
        ['packets of one byte without an end', endless('', '\x04\x00\x00\x09\x00\x00\x01\x00\x07'.repeat(400))],
        ['empty packets without an end', endless('', '\x04\x00\x00\x08\x00\x00\x01\x00'.repeat(400))],
      ],
      hostileFaults: ['tls'],
      randomAnswer: { absent: 'Random bytes take the place of an answer to the query, below' },
      frozen: { absent: 'The simulated server is in the process of the test' },
      sleep: "WITH one AS (SELECT 1 AS x) SELECT x, 'WAITFOR' AS y FROM one",
      sleeping: async () => Array.from({ length: server.running() }, () => 'svc-health'),
      sleeper: 'svc-health',
      stops: () => server.attentions(),
      ownLimit: { absent: 'The simulated server ends no statement by itself' },
      identity: { sql: 'SELECT APP_NAME() AS name', shows: '[{"name":"svc-health"}]' },
      privileges: { absent: 'The simulated server has no accounts; what one may not see is planted below' },
      restarted: { absent: 'The kind has no such check' },
      tls: {
        start: async (certificates) => {
          const secured = await tdsPeer({ login: suiteLogin, answer: suiteAnswer, tls: certificates.good })
          return { ...asServer(secured), remove: secured.close }
        },
        version: 'TLSv1.2',
        verifiesAddress: true,
      },
      large: { absent: 'Rows without an end are those of the hostile answers below' },
    },
    queries: {
      judged: [
        [{ name: 'several', sql: 'SELECT n FROM failed', atMost: { limit: 6 } }, 'failed', 'several: 7 (fail 6)'],
      ],
      fails: [
        {
          query: { name: 'a', sql: 'SELECT x FROM gone', atMost: { limit: 1 } },
          message: "a: the query failed: Invalid object name 'gone'.",
          fault: 'data',
        },
        {
          query: { name: 'b', sql: 'SELECT x FROM closed', atMost: { limit: 1 } },
          message:
            /^b: "monitor" has no permission to read this: The SELECT permission was denied on .*'jobs' to \[secret\]\.$/,
          fault: 'data',
          details: [expect.stringContaining('error 229'), 'next: grant SELECT on it', 'query: SELECT x FROM closed'],
        },
        {
          query: { name: 'c', sql: 'SELECT x FROM locked', atMost: { limit: 1 } },
          message: 'c: timed out waiting for a lock',
          fault: 'timeout',
        },
      ],
      writes: { absent: 'svc itself refuses them: nothing is sent' },
      slow: {
        sql: "SELECT 'WAITFOR'",
        message: 'slow: the query was cancelled because it took too long',
        next: /^next: (1 \(fail 1\)|not run: )/,
        timeoutMs: 1_500,
      },
      wide: (rows) => `SELECT x FROM wide${rows}`,
      powers: [
        {
          name: 'a sysadmin',
          plant: async () => {
            sysadmin = { rows: [{ sysadmin: 1 }] }
          },
          end: async () => {
            sysadmin = { rows: [{ sysadmin: 0 }] }
          },
          as: 'as a sysadmin',
        },
      ],
    },
  },
  ({ ask }) => {
    const messages = (results: readonly Result[]): readonly string[] => results.map(({ message }) => message)

    test('SQL Server (simulated): each query is asked in a transaction that is taken back, also after an error', async () => {
      await ask([
        { sql: 'SELECT 0.5 -- so far', rows: { limit: 1 } },
        { sql: 'SELECT x FROM gone', rows: { limit: 1 } },
      ])
      const batch = (sql: string): string =>
        `SET NOCOUNT ON; SET LOCK_TIMEOUT 500; SET ROWCOUNT 1001; BEGIN TRANSACTION;\n${sql}`
      const end = 'SET ROWCOUNT 0; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION'
      const four = [batch('SELECT 0.5 -- so far'), end, batch('SELECT x FROM gone'), end]
      expect(server.batches().slice(-4)).toEqual(four)
    })
    test('SQL Server (simulated): what could write is never sent', async () => {
      const before = server.batches().length
      const commit: Query = {
        name: 'x',
        depth: 'Standard',
        sql: 'SELECT 1 COMMIT DELETE FROM jobs',
        rows: { limit: 1 },
      }
      expect(messages(await runSuite({ queries: [commit] }, 'Standard'))).toEqual([
        'query "x": sql contains COMMIT: only one read-only statement is allowed (if it is a name, write [COMMIT])',
      ])
      expect(server.batches()).toHaveLength(before)
    })
    test('SQL Server (simulated): of many rows a thousand are read, and no value of them holds the password', async () => {
      const result = await ask([
        { sql: 'SELECT x FROM many', atMost: { limit: 5_000 } },
        { sql: 'SELECT x FROM many', rows: { limit: 1_000 } },
        { sql: 'SELECT x FROM echo', expect: 'a' },
      ])
      expect(messages(result)).toEqual([
        'jobs: 999 (fail 5000)',
        'jobs: only the first 1000 rows were evaluated; there are more',
        'jobs: rows, at least 1001 (fail 1000)',
        'jobs: is "you sent [secret]", expected "a"',
      ])
    })
    test('SQL Server (simulated): a sysadmin without queries is not warned, and neither is who cannot be told from one', async () => {
      sysadmin = { rows: [{ sysadmin: 1 }] }
      expect(await ask([])).toEqual([])
      sysadmin = { error: { number: 195, message: 'no such function' } }
      expect(messages(await ask([{ sql: 'SELECT 0.5', rows: { limit: 1 } }]))).toEqual(['jobs: rows 1 (fail 1)'])
      sysadmin = { rows: [{ sysadmin: 0 }] }
    })
  },
)

describe('SQL Server (simulated): what it is asked', () => {
  test('SQL Server (simulated): the sign-in carries the name of svc, once', async () => {
    await using({}, async (server) => {
      await run(server.port, 'Advanced')
      expect(server.logins()).toEqual([{ user: 'monitor', password: word, database: 'orders', app: 'svc-health' }])
    })
  })

  test('SQL Server (simulated): the time is asked for in UTC, in milliseconds since 1970', async () => {
    await using({}, async (server) => {
      await run(server.port, 'Advanced')
      const statement = server.batches().find((sql) => sql.includes('SYSUTCDATETIME()')) ?? ''
      expect(statement).toContain("DATEDIFF(SECOND, '20200101', t)")
      const [seconds = ''] = /\d{10}/.exec(statement) ?? []
      expect(Number(seconds) * 1_000).toBe(Date.UTC(2020, 0, 1))
    })
  })

  test('SQL Server (simulated): it reads past locks, waits for none, and writes nothing', async () => {
    await using({}, async (server) => {
      await run(server.port, 'Advanced')
      const [setUp, ...statements] = server.batches()
      expect(setUp).toContain('read uncommitted')
      expect(statements.every((sql) => sql.startsWith('SET NOCOUNT ON; SET LOCK_TIMEOUT 500; SELECT '))).toBe(true)
      expect(statements.join('\n')).not.toMatch(/\b(INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|EXEC|INTO|DBCC)\b/)
    })
  })

  test('SQL Server (simulated): the kind names host and port, for its slot and for the secret bound to them', () => {
    const target = (address: string) => sqlserver.target?.(withDefaults(sqlserver.settings, { url: address }))
    expect(target('sqlserver://m@db1/orders')).toEqual({ host: 'db1', port: 1_433, database: 'db1:1433' })
    expect(target('mssql://m@db1:14330')).toMatchObject({ host: 'db1', port: 14_330 })
    expect(target('nonsense')).toEqual({})
  })
  test('SQL Server (simulated): a server that gives no time is a failure', () =>
    finds(
      look({ answer: answers({ 'SYSUTCDATETIME()': { rows: [] } }) }, 'Advanced'),
      'clock failed: the server returned no time',
    ))
})

describe('SQL Server (simulated): the sign-in', () => {
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
  ] as const)(
    'SQL Server (simulated): a refusal with error %i, state %i is %s in words',
    async (number, state, fault, words) => {
      const result = await one('connect', refusing(number, state))
      expect(result).toMatchObject({ status: 'failed', fault })
      expect(result.message).toContain(words)
      expect(result.details?.join()).toContain(`error ${number}, state ${state}`)
    },
  )

  test('SQL Server (simulated): a closed database is reported, and not the refused sign-in that the server adds', async () => {
    const result = await one('connect', {
      login: () => [
        { number: 4_060, message: 'Cannot open database "orders" requested by the login.' },
        { number: 18_456, message: "Login failed for user 'monitor'." },
      ],
    })
    expect(result).toMatchObject({ fault: 'data' })
    expect(result.details).toEqual(['error 4060, state 1: Cannot open database "orders" requested by the login.'])
  })

  test('SQL Server (simulated): a transient error is not tried again behind our back', async () => {
    await using(refusing(40_613), async (server) => {
      await run(server.port)
      expect(server.logins()).toHaveLength(1)
    })
  })

  test('SQL Server (simulated): a server that sends its clients on gets the password carried nowhere else', async () => {
    await using other = await tdsPeer({ answer: answers() })
    await finds(
      look({ route: { host: '127.0.0.1', port: other.port } }),
      `connect failed (data): …redirects its clients to "127.0.0.1:${other.port}"…`,
    )
    expect(other.connections()).toBe(0)
  })

  test('SQL Server (simulated): what comes before the sign-in is bounded: a flood ends at 128 KiB, not at the deadline', async () => {
    await using flood = await peer(endless('', '\x04\x00\x00\x09\x00\x00\x01\x00\x07'.repeat(400)))
    await finds(run(flood.port), 'connect (protocol): the peer sent more than 128 KiB before the sign-in completed')
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
  ])('SQL Server (simulated): %s fails the query, and nothing breaks', async (_, answer) => {
    await using server = await tdsPeer({ answer: answers({ 'SELECT 1': answer }) })
    const result = checked(await run(server.port, 'Basic', {}, { timeoutMs: 1_500 }), 'query')
    expect(result.status).toBe('failed')
    expect(['protocol', 'timeout']).toContain(result.fault)
    await hungUp(server)
  })
  test('SQL Server (simulated): 100 answers of random bytes are 100 failures, and nothing breaks', async () => {
    for (let round = 0; round < 100; round += 1) {
      const bytes = Buffer.from(Array.from({ length: 60 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
      // A token that is right takes the rest to its own parser.
      const kinds = [0x81, 0xaa, 0xd1, 0xd2, 0xe3, 0xad, 0xac, 0xa9, 0xa5, 0x79, 0xfd]
      bytes[0] = kinds[round % kinds.length] ?? 0
      await using server = await tdsPeer({ answer: answers({ 'SELECT 1': packets(4, bytes) }) })
      await finds(run(server.port, 'Basic', {}, { timeoutMs: 400 }), 'query failed')
    }
  }, 60_000)
  test('SQL Server (simulated): what the server says is shown without escapes, is cut, and never holds the password', async () => {
    const message = `${escapeSequences} you sent ${word} ${'x'.repeat(3_000)}`
    const refused = await one('connect', { login: () => [{ number: 50_001, message }] })
    const failed = await one('query', { answer: answers({ 'SELECT 1': { error: { number: 50_001, message } } }) })
    const rows = [{ may: 1, name: `${escapeSequences}${word}`, state: `${word}!` }]
    const hostile = await one('databases', { answer: answers({ 'sys.databases ORDER': { rows } }) }, 'Standard')
    for (const result of [refused, failed, hostile]) {
      const text = JSON.stringify(result)
      expect(result.status).toBe('failed')
      expect(text).not.toContain(word)
      expect(text).not.toMatch(/\\u001b|\\u0007|\\u009b|\\u202e/)
      expect(text.length).toBeLessThan(2_000)
      expect(text).toContain('[secret]')
    }
  })
  test('SQL Server (simulated): rows without an end end, and soon', async () => {
    const head = Buffer.concat([column(0x26, 4), Buffer.from([0xd1, 4, 1, 0, 0, 0])])
    const first = packets(4, head)
    first[1] = 0
    const more = packets(4, Buffer.concat(Array.from({ length: 600 }, () => Buffer.from([0xd1, 4, 1, 0, 0, 0]))))
    more[1] = 0
    const flood = Buffer.concat([first, ...Array.from({ length: 3_000 }, () => more)])
    await using server = await tdsPeer({ answer: answers({ 'SELECT 1': flood }) })
    await finds(run(server.port, 'Basic', {}, { timeoutMs: 4_000 }), ['query failed', /more than 8 MiB|did not answer/])
    await hungUp(server)
  })
  test('SQL Server (simulated): one question that fails hides none of the others', async () => {
    const broken = { error: { number: 8_134, message: 'Divide by zero error encountered.' } }
    await using({ answer: answers({ 'sys.dm_exec_sessions': broken }) }, async (server) => {
      const results = await run(server.port, 'Standard')
      expect(results.filter(({ status }) => status !== 'ok').map(({ check }) => check)).toEqual(['sessions'])
      await finds(results, 'sessions (protocol): the query failed: Divide by zero error encountered.')
      expect(results).toHaveLength(8)
    })
  })
  test('SQL Server (simulated): a lock that is not released in time is reported', async () => {
    const locked = { error: { number: 1_222, message: 'Lock request time out period exceeded.' } }
    await finds(
      look({ answer: answers({ sysjobs: locked }) }, 'Advanced'),
      'failed jobs (timeout): timed out waiting for a lock',
    )
  })
})

const denied = (number: number, message: string): TdsAnswer => ({ error: { number, message } })

describe('the round trip of allowWrites with a simulated server', () => {
  const writable = { rows: [{ writable: 1 }] }
  const done = { rows: [] }
  const over: Readonly<Record<string, TdsAnswer>> = {
    Updateability: writable,
    'CREATE TABLE': done,
    'sys.key_constraints': { rows: [{ own: 1 }] },
    'INSERT INTO': done,
    DATALENGTH: { rows: [{ bytes: 262_144 }] },
    'DELETE FROM': done,
  }
  const trip = (more: Readonly<Record<string, TdsAnswer>> = {}): Promise<Result> =>
    one('write', { answer: answers({ ...over, ...more }) }, 'Advanced', { allowWrites: true })
  test('SQL Server (simulated): a row is written, committed, read and deleted, and only with allowWrites', async () => {
    await using({ answer: answers(over) }, async (server) => {
      expect((await run(server.port, 'Advanced')).map(({ check }) => check)).not.toContain('write')
      const writes = (): readonly string[] => server.batches().filter((sql) => /INSERT|CREATE|DELETE/.test(sql))
      expect(writes()).toEqual([])
      await finds(run(server.port, 'Advanced', { allowWrites: true }), [
        'write ok',
        { measurement: { warn: 1_000, limit: 5_000 } },
      ])
      expect(writes().map((sql) => /CREATE|INSERT|DELETE/.exec(sql)?.[0])).toEqual(['CREATE', 'INSERT', 'DELETE'])
    })
  })
  test('SQL Server (simulated): nothing is written to a table that svc has not created', async () => {
    await using({ answer: answers({ ...over, 'sys.key_constraints': { rows: [{ own: 0 }] } }) }, async (server) => {
      const settings = { allowWrites: true, probeTable: 'orders' }
      await finds(
        run(server.port, 'Advanced', settings),
        'write failed (data): svc has not created the table orders, and does not write to it',
      )
      expect(server.batches().filter((sql) => /INSERT|DELETE/.test(sql))).toEqual([])
    })
  })
  test('SQL Server (simulated): it is left out in a read-only database', async () => {
    const results = await using(
      { answer: answers({ ...over, Updateability: { rows: [{ writable: 0 }] } }) },
      (server) => run(server.port, 'Advanced', { allowWrites: true }),
    )
    expect(results.map(({ check }) => check)).not.toContain('write')
  })
  test.each([
    [1_105, 'PRIMARY filegroup is full', 'has no space left for the data of this database'],
    [9_002, 'The transaction log is full', 'has no space left in the log of this database'],
  ])('SQL Server (simulated): error %i of a write is a full disk', async (number, message, words) => {
    const result = await trip({ 'INSERT INTO': denied(number, message) })
    expect(result).toMatchObject({ status: 'failed', fault: 'data', message: expect.stringContaining(words) })
  })
  test('SQL Server (simulated): a row that is not there after the commit fails', async () => {
    expect(await trip({ DATALENGTH: { rows: [] } })).toMatchObject({ status: 'failed', fault: 'data' })
  })
  test('H10 SQL Server (simulated): a login that may not write is not checked with allowWrites, and the GRANT is reported', async () => {
    const result = await trip({ 'CREATE TABLE': denied(262, 'CREATE TABLE permission denied in database') })
    expect(result).toMatchObject({ status: 'failed', notChecked: 'permission' })
    expect(result.details?.join()).toContain('GRANT CREATE TABLE TO [monitor]')
  })
})

describe('figures that are hidden from the account', () => {
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
    'SQL Server (simulated): %s is not looked at, and the GRANT is said',
    async (check, part, answer, grant) => {
      const result = await one(check, { answer: answers({ [part]: answer as TdsAnswer }) }, 'Advanced')
      expect(result).toMatchObject({ status: 'warning', notChecked: 'permission' })
      expect(result.message).toMatch(/^not checked: /)
      expect(result.details?.join()).toContain(grant)
    },
  )
  test('H10 SQL Server (simulated): a hidden figure that svc.yaml limits is a failure, and the others are warnings', async () => {
    const hidden = {
      'sys.dm_exec_sessions': { rows: [{ may: 0, used: 1, configured: 0, most: 32_767 }] },
      'sys.dm_exec_requests': { rows: [{ may: 0, session: null }] },
    }
    await using({ answer: answers(hidden) }, async (server) => {
      const results = await run(server.port, 'Standard', { sessions: { limit: 90 }, ignore: ['old'] })
      expect(checked(results, 'sessions')).toMatchObject({ status: 'failed', notChecked: 'permission' })
      expect(checked(results, 'blocked')).toMatchObject({ status: 'warning', notChecked: 'permission' })
    })
  })
  test('SQL Server (simulated): data that an edition does not provide is reported without a GRANT', async () => {
    const absent = denied(208, "Invalid object name 'msdb.dbo.sysjobs'.")
    const result = await one('failed jobs', { answer: answers({ sysjobs: absent }) }, 'Advanced')
    expect(result).toMatchObject({ status: 'warning' })
    expect(result.details).toBeUndefined()
    expect(result.message).toContain('this edition or version does not provide this data')
  })
  test.each([
    ['log reuse', 'Percent Log Used'],
    ['log space', 'Log File(s) Used Size'],
  ])('SQL Server (simulated): %s never turns green in silence where the counters are empty', async (check, part) => {
    const result = await one(check, { answer: answers({ [part]: { rows: [] } }) }, 'Standard')
    expect(result).toMatchObject({ status: 'warning', message: expect.stringContaining('performance counters') })
  })
  test('SQL Server (simulated): the name of the login cannot end the GRANT in the message', async () => {
    const hidden = { rows: [{ may: 0, used: 1, configured: 0, most: 32_767 }] }
    await using({ answer: answers({ 'sys.dm_exec_sessions': hidden }) }, async (server) => {
      const results = await run(server.port, 'Standard', { url: `sqlserver://a%5D;drop@127.0.0.1:${server.port}/` })
      expect(checked(results, 'sessions').details).toEqual(['GRANT VIEW SERVER STATE TO [a]];drop]'])
    })
  })
})

describe('what runs on the simulated server ends with the run', () => {
  const hang = { answer: answers({ 'sys.dm_exec_requests': 'hang' }) }
  test('SQL Server (simulated): a query that hangs is called off by an attention at the deadline', async () => {
    await using server = await tdsPeer(hang)
    const started = performance.now()
    const results = await run(server.port, 'Standard', {}, { timeoutMs: 1_200 })
    expect(performance.now() - started).toBeLessThan(9_000)
    await finds(results, `blocked (timeout): 127.0.0.1:${server.port} did not answer within 1.2 s`, 'sessions ok')
    expect(server.attentions()).toBe(1)
    expect(server.running()).toBe(0)
    await hungUp(server)
    await server.close()
    expect(await settled('')).toBe('')
  })

  test('SQL Server (simulated): one statement does not take all the time: it is called off, and the session goes on', async () => {
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
        const way = { socket, ip: '127.0.0.1', address: 'here', signal, msLeft: () => 200, files }
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
    const result = await runKind(asking, {})
    expect(result.map(({ message }) => message)).toEqual([
      '"ProbeError: the query was cancelled because it took too long"',
      '[{"one":"1"}]',
    ])
    expect(server.attentions()).toBe(1)
  })
})

suiteWith(opensslMissing(), 'TLS with a simulated server', () => {
  let certificates: Certificates
  beforeAll(() => {
    certificates = makeCertificates()
  })
  afterAll(() => certificates.remove())
  const with_ = (
    options: Partial<TdsOptions>,
    tls: TlsSetting,
    host = 'svc.test',
  ): Promise<readonly [found: Result, server: TdsPeer]> =>
    using(options, async (server) => {
      const settings = { url: `sqlserver://monitor@${host}:${server.port}/`, password: secret(word), tls }
      const result = await runKind(sqlserver, settings, 'Basic', { resolve: async () => ['127.0.0.1'] })
      return [checked(result, 'connect'), server] as const
    })
  const verify = (): TlsSetting => ({ mode: 'verify', caFile: certificates.caFile })

  test('SQL Server (simulated): a certificate that is not trusted is tls, and no password is sent', async () => {
    for (const [options, tls, words] of [
      [certificates.good, { mode: 'verify' }, /unable to get|self.signed/i],
      [certificates.selfSigned, verify(), /self.signed/i],
      [certificates.expired, verify(), /expired/],
      [certificates.otherHost, verify(), /elsewhere\.test/],
    ] as const) {
      const [result, server] = await with_({ tls: options }, tls)
      expect(result).toMatchObject({ status: 'failed', fault: 'tls' })
      expect(result.message).toMatch(words)
      expect(server.logins()).toEqual([])
    }
  })
  test('SQL Server (simulated): a query that hangs is called off by an attention over TLS as well', async () => {
    const answer = answers({ 'sys.dm_exec_requests': 'hang' })
    await using server = await tdsPeer({ answer, tls: certificates.good })
    await finds(run(server.port, 'Standard', { tls: verify() }, { timeoutMs: 1_200 }), 'blocked (timeout)')
    expect([server.attentions(), server.running()]).toEqual([1, 0])
    await hungUp(server)
  })
  test('SQL Server (simulated): a server that offers no TLS, or accepts nothing else, is reported with the setting to change', async () => {
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
  async function tsql(port: number, requests: string): Promise<string> {
    const child = spawn(freetds, ['-H', '127.0.0.1', '-p', String(port), '-U', 'monitor', '-P', word, '-o', 'q'], {
      env: { ...process.env, TDSVER: '7.4', FREETDSCONF: '/dev/null' },
      timeout: 10_000,
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
      })
    }
    child.stdin.end(`${requests}\ngo\nexit\n`)
    await once(child, 'close')
    return output
  }
  test('SQL Server (simulated): it signs in with the same name and password, and reads the same rows', async () => {
    await using server = await tdsPeer({ answer: answers() })
    const output = await tsql(server.port, 'SELECT name, state_desc AS state FROM sys.databases')
    expect(server.logins()).toMatchObject([{ user: 'monitor', password: word }])
    expect(output).toMatch(/1\tmaster\tONLINE/)
    expect(output).toMatch(/1\torders\tONLINE/)
  })
  test('SQL Server (simulated): it is refused with the same error, and shown the errors of a batch', async () => {
    await using server = await tdsPeer({ answer: answers() })
    expect(await tsql(server.port, 'SELECT nothing')).toContain('Msg 208')
    await using closed = await tdsPeer({ answer: answers(), ...refusing(18_456, 1) })
    expect(await tsql(closed.port, 'SELECT 1')).toMatch(/Login failed for user 'monitor'/)
  })
})

describe('what is judged', () => {
  const status = (results: readonly Result[]): string | undefined => results[0]?.status
  const message = (results: readonly Result[]): string | undefined => results[0]?.message
  const minute = 60_000
  const hour = 60 * minute

  test('SQL Server (simulated): databases: ONLINE is ok, on the way there a warning, anything else a failure', () => {
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
  test('SQL Server (simulated): log reuse: only a log that fills up while it waits', () => {
    const judged = (waits: string, used: number) => evaluated(logReuse, [{ name: 'orders', waits, used }])
    expect(status(judged('LOG_BACKUP', 50))).toBe('ok')
    expect(status(judged('LOG_BACKUP', 51))).toBe('warning')
    expect(status(judged('NOTHING', 99))).toBe('ok')
    expect(judged('AVAILABILITY_REPLICA', 80)[0]?.details).toEqual([
      'AVAILABILITY_REPLICA: a secondary replica does not keep up',
    ])
  })
  test('SQL Server (simulated): sessions: 80 % and 95 % are ok to the boundary', () => {
    const judged = (used: number, max = 100) => status(evaluated(sessions, { used, max }))
    expect([80, 81, 95, 96].map((used) => judged(used))).toEqual(['ok', 'warning', 'warning', 'failed'])
  })
  test('SQL Server (simulated): blocked: a minute is ok', () => {
    const judged = (maxMs: number) =>
      evaluated(blocked, { requests: 2, maxMs, session: 71, blocker: 66, wait: 'LCK_M_S' })
    expect(status(judged(minute))).toBe('ok')
    expect(status(judged(minute + 1))).toBe('warning')
    expect(message(judged(5 * minute))).toBe(
      '2 blocked requests; session 71 is blocked by session 66 for 5 min (warn 1 min)',
    )
  })
  test('SQL Server (simulated): space: 10 % and 5 % are ok to the boundary, and the result is that of the fullest database', () => {
    const files = (...used: readonly number[]) => used.map((one, at) => ({ name: `d${at}`, used: one, capacity: 100 }))
    for (const check of [
      (used: number) => evaluated(dataSpace, files(used)),
      (used: number) => evaluated(logSpace, files(used)),
    ]) {
      expect([90, 91, 95, 96].map((used) => status(check(used)))).toEqual(['ok', 'warning', 'warning', 'failed'])
    }
    expect([90, 91, 99].map((used) => status(evaluated(tempdb, files(used))))).toEqual(['ok', 'warning', 'warning'])
    expect(message(evaluated(logSpace, files(10, 97, 50)))).toMatch(/^log of d1: 97 B of 100 B used, free 3 %/)
  })
  test('SQL Server (simulated): space: growth counts up to the limit of a file and to what its volume has left, once', () => {
    const file = { name: 'o', size: 100, growth: 10, most: -1, volume: 'D:', free: 50 * 8_192 }
    const capacity = (...files: readonly object[]) => spaces(files as never, () => 0)[0]?.capacity
    expect(capacity(file)).toBe(150 * 8_192)
    expect(capacity(file, { ...file, size: 10 })).toBe(160 * 8_192)
    expect(capacity({ ...file, most: 120 })).toBe(120 * 8_192)
    expect(capacity({ ...file, growth: 0 })).toBe(100 * 8_192)
    expect(capacity({ ...file, most: 268_435_456 })).toBe(150 * 8_192)
    expect(capacity(file, { ...file, volume: 'E:' })).toBe(300 * 8_192)
  })
  test('SQL Server (simulated): backups: 48 h and 72 h, 30 min and 60 min; one that never was counts from the making', () => {
    const at = (ageMs: number, never = false) => [{ name: 'orders', ageMs, at: new Date(0), never }]
    const full = (ms: number) => status(evaluated(backups, { full: at(ms), log: [] }))
    const log = (ms: number) => checked(evaluated(backups, { full: at(hour), log: at(ms) }), 'log backup').status
    expect([48 * hour, 49 * hour, 72 * hour, 73 * hour].map(full)).toEqual(['ok', 'warning', 'warning', 'failed'])
    expect([30, 31, 60, 61].map((n) => log(n * minute))).toEqual(['ok', 'warning', 'warning', 'failed'])
    const never = { full: at(90 * hour, true), log: [] }
    expect(message(evaluated(backups, never))).toBe(
      'orders: no full backup since it was created: 3.8 d (warn 48 h, fail 3 d)',
    )
    expect(evaluated(backups, never, { fullBackup: {} })).toEqual([])
    const none = { notChecked: 'missing', message: 'not checked: the server lists no database' }
    expect(evaluated(backups, { full: [], log: [] })).toMatchObject([{ check: 'full backup', ...none }])
    expect(evaluated(checkdb, [])).toMatchObject([{ check: 'checkdb', ...none }])
    const two = { full: [...at(90 * hour), { name: 'old', ageMs: 99 * hour, at: new Date(0), never: false }], log: [] }
    expect(evaluated(backups, two)[0]).toMatchObject({ details: ['also too old: orders'] })
  })
  test('SQL Server (simulated): availability groups are judged on the primary only', () => {
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
  test('SQL Server (simulated): what the server does not report is not checked', () => {
    const missing = { status: 'failed', notChecked: 'missing' }
    const log = { name: 'orders', waits: 'LOG_BACKUP', used: 99 }
    expect(evaluated(logReuse, [log, { ...log, used: undefined }])[0]).toMatchObject(missing)
    expect(evaluated(logReuse, [{ ...log, waits: '' }])[0]).toMatchObject(missing)
    expect(evaluated(sessions, { used: undefined, max: 100 })[0]).toMatchObject(missing)
    expect(evaluated(sessions, { used: 1, max: undefined })[0]).toMatchObject(missing)
    const one = { requests: 1, maxMs: undefined, session: 71, blocker: 66, wait: '' }
    expect(evaluated(blocked, one)[0]).toMatchObject(missing)
    const space = { name: 'd', used: 1, capacity: 100 }
    expect(evaluated(dataSpace, [space, { ...space, used: undefined }])[0]).toMatchObject(missing)
    expect(evaluated(dataSpace, [space, { ...space, capacity: undefined }])[0]).toMatchObject(missing)
    const unknown = [
      { name: 'orders', ageMs: 1, at: new Date(0), never: false },
      { name: 'old', ageMs: undefined, at: undefined, never: true },
    ]
    expect(evaluated(backups, { full: unknown, log: unknown })).toMatchObject([missing, missing])
    expect(evaluated(checkdb, unknown)[0]).toMatchObject(missing)
    expect(evaluated(failedJobs, { enabled: undefined, failed: [] })[0]).toMatchObject(missing)
    expect(evaluated(failedJobs, { enabled: 0, failed: [] })).toEqual([])
  })
  test.each(['size', 'used', 'free', 'most'])(
    'SQL Server (simulated): the space of a database is unknown where one of its files has no %s',
    (name) => {
      const file = { name: 'o', size: 100, growth: 10, most: -1, volume: 'D:', free: 50, used: 5 }
      const [space] = spaces(
        [file, { ...file, volume: 'E:', [name]: null }] as never,
        (row) => (row['used'] ?? undefined) as number | undefined,
      )
      expect(evaluated(dataSpace, [space as never])[0]).toMatchObject({ status: 'failed', notChecked: 'missing' })
    },
  )
  test('SQL Server (simulated): failed jobs and the age of CHECKDB are warnings', () => {
    expect(status(evaluated(failedJobs, { enabled: 3, failed: [] }))).toBe('ok')
    expect(message(evaluated(failedJobs, { enabled: 3, failed: ['nightly', 'index'] }))).toBe(
      'last run failed: nightly, index; of 3 enabled Agent jobs 2 (warn 0)',
    )
    const age = (days: number) =>
      status(evaluated(checkdb, [{ name: 'o', ageMs: days * 24 * hour, at: new Date(0), never: false }]))
    expect([14, 15].map(age)).toEqual(['ok', 'warning'])
  })
})
