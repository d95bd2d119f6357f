import { serialize } from 'bson'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { Result } from '../../src/core/engine/index.ts'
import ldap from '../../src/core/kinds/ldap/index.ts'
import mongo from '../../src/core/kinds/mongo/index.ts'
import mysql from '../../src/core/kinds/mysql/index.ts'
import postgres from '../../src/core/kinds/postgres/index.ts'
import redis from '../../src/core/kinds/redis/index.ts'
import smtp from '../../src/core/kinds/smtp/index.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { measureBlocking } from '../support/event-loop.ts'
import { type Behaviour, peer } from '../support/faults.ts'
import { type HostileCase, type HostileTarget, hostileCases } from '../support/hostile-cases.ts'
import { type HostileRunner, startHostileRunner } from '../support/hostile-runner.ts'
import {
  element,
  ldapBind,
  ldapResult,
  ldapServer,
  mongoServer,
  mysqlError,
  mysqlServer,
  octets,
} from '../support/hostile-servers.ts'
import { checked, runKind, secret } from '../support/run-kind.ts'
import { postgresAnswering, postgresMessage } from '../support/simulated-postgres.ts'

// Every server here is simulated: no real one behaves so. The sockets are real.

/** Processor time without a pause: enough to read some megabytes, and too little for anything quadratic in them. */
const maxBlockingMs = 1_500
const timeoutMs = 5_000

const blanks = ' '.repeat(900_000)

/** Characters of the message and the details of one result. */
const maxLength = 6_000

/** Collections within collections, each of which claims as many parts as there could be, and has none of them. */
function nestedGeometry(): Buffer {
  const [depth, rest] = [5_000, 300_000]
  const bytes = Buffer.alloc(4 + 9 * depth + rest)
  for (let at = 4; at < 4 + 9 * depth; at += 9) {
    bytes.writeUInt8(1, at)
    bytes.writeUInt32LE(7, at + 1)
    bytes.writeUInt32LE(Math.floor((bytes.length - at - 9) / 9), at + 5)
  }
  return bytes
}

/** Runs one kind against a server, and expects that the process stays responsive and that the results are short. */
async function resultsFrom(behave: Behaviour, run: (port: number) => Promise<readonly Result[]>) {
  await using server = await peer(behave)
  const { value: results, longestMs } = await measureBlocking(() => run(server.port))
  await expect.poll(server.open).toBe(0)
  expect(longestMs).toBeLessThan(maxBlockingMs)
  for (const { message, details = [] } of results) {
    expect(message.length).toBeLessThan(1_000)
    expect(details.join('').length).toBeLessThan(5_000)
  }
  return results
}

const runPostgres = (mode: ExecutionMode) => (port: number) =>
  runKind(postgres, { url: `postgres://m@127.0.0.1:${port}/d`, password: secret('x') }, mode, { timeoutMs })
const runMysql = (mode: ExecutionMode) => (port: number) =>
  runKind(mysql, { url: `mysql://m@127.0.0.1:${port}/d`, password: secret('x') }, mode, { timeoutMs })

describe('a server that sends 900,000 blanks does not block the process', () => {
  const account = { user: 'cn=monitor', password: secret('correct horse') }
  const runLdap =
    (settings: object, mode: ExecutionMode = 'Standard') =>
    (port: number) =>
      runKind(ldap, { url: `ldap://127.0.0.1:${port}`, ...settings }, mode, { timeoutMs })

  test('LDAP, in its refusal of a bind', async () => {
    const text = `AcceptSecurityContext error, data 52e,${blanks}v4563`
    const server = ldapServer((operation) => (operation === ldapBind ? [ldapResult(0x61, 49, text)] : []))
    const result = checked(await resultsFrom(server, runLdap(account)), 'bind')
    expect(result).toMatchObject({
      status: 'failed',
      fault: 'auth',
      message: expect.stringContaining('wrong password'),
    })
    expect(result.details?.join(' ')).toContain('the server sent "AcceptSecurityContext error, data 52e,"')
  })
  test('LDAP, in its refusal of a search', async () => {
    const server = ldapServer((operation) => [
      operation === ldapBind ? ldapResult(0x61, 0, '') : ldapResult(0x65, 53, `busy${blanks}`),
    ])
    const result = checked(await resultsFrom(server, runLdap(account)), 'rootDSE')
    expect(result).toMatchObject({ status: 'failed', message: expect.stringContaining('unwilling') })
  })
  test('LDAP, as it hangs up', async () => {
    const server = ldapServer(() => [ldapResult(0x78, 52, `down${blanks}`)], 0)
    const [result] = (await resultsFrom(server, runLdap(account))).filter(({ status }) => status === 'failed')
    expect(result).toMatchObject({ fault: 'refused', message: expect.stringContaining('ended the connection') })
  })
  test('LDAP, in its refusal of StartTLS', async () => {
    const server = ldapServer(() => [ldapResult(0x78, 2, blanks)])
    const [result] = await resultsFrom(server, runLdap({ startTls: true }, 'Basic'))
    expect(result).toMatchObject({ status: 'failed' })
  })
  test('LDAP, in an entry', async () => {
    const attribute = element(0x30, octets('vendorName'), element(0x31, octets(blanks)))
    const entry = element(0x64, octets(''), element(0x30, attribute))
    const server = ldapServer((operation) => (operation === ldapBind ? [] : [entry, ldapResult(0x65, 0, '')]))
    expect(checked(await resultsFrom(server, runLdap({}, 'Basic')), 'rootDSE').status).toBe('ok')
  })
  test('MySQL, before the sign-in', async () => {
    const server: Behaviour = (socket) => void socket.write(mysqlError(`Too many connections${blanks}`))
    expect(checked(await resultsFrom(server, runMysql('Basic')), 'connect')).toMatchObject({ status: 'failed' })
  })
  test('PostgreSQL, in its error', async () => {
    const error = postgresMessage('E', 'SFATAL\0C28P01\0M', blanks, '\0\0')
    const server: Behaviour = (socket) => void socket.once('data', () => socket.write(error))
    const result = checked(await resultsFrom(server, runPostgres('Basic')), 'connect')
    expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
  })
  test('MongoDB, in its error', async () => {
    const results = await resultsFrom(
      mongoServer(Buffer.from(serialize({ ok: 0, code: 13, errmsg: blanks }))),
      (port) => runKind(mongo, { url: `mongodb://127.0.0.1:${port}/` }, 'Basic', { timeoutMs }),
    )
    expect(results.some(({ status }) => status === 'failed')).toBe(true)
  })
  test('Redis, in its error', async () => {
    const results = await resultsFrom(
      (socket) => void socket.once('data', () => socket.write(`-ERR${blanks}\r\n`)),
      (port) => runKind(redis, { url: `redis://127.0.0.1:${port}` }, 'Basic', { timeoutMs }),
    )
    expect(results.some(({ status }) => status === 'failed')).toBe(true)
  })
  test('SMTP, in its banner', async () => {
    const results = await resultsFrom(
      (socket) => void socket.write(`220 ${blanks}\r\n`),
      (port) => runKind(smtp, { host: '127.0.0.1', port }, 'Basic', { timeoutMs }),
    )
    expect(results.some(({ status }) => status === 'failed')).toBe(true)
  })
})

describe('a database cannot block the process by the type that it declares for a value', () => {
  test.each([
    ['a date with a time', 1184, '0'.repeat(400_000)],
    ['a date', 1082, '0'.repeat(400_000)],
    ['an interval', 1186, '0 '.repeat(200_000)],
    ['a list of dates', 1185, `{${'0'.repeat(400_000)}}`],
    ['a point', 600, `(${'0'.repeat(400_000)}`],
    ['bytes', 17, '\\'.repeat(400_000)],
    ['JSON', 114, '['.repeat(400_000)],
    ['a number', 701, '9'.repeat(400_000)],
  ])('PostgreSQL, %s', async (_, oid, value) => {
    const results = await resultsFrom(postgresAnswering('one', oid, value), runPostgres('Standard'))
    expect(checked(results, 'connect').status).toBe('ok')
  })
  test.each([
    ['a geometry', 255, nestedGeometry()],
    ['a date with a time', 12, Buffer.from('0'.repeat(400_000))],
    ['JSON', 245, Buffer.from('['.repeat(400_000))],
    ['a number', 8, Buffer.from('9'.repeat(400_000))],
  ])('MySQL, %s', async (_, type, value) => {
    const results = await resultsFrom(mysqlServer(type, value), runMysql('Standard'))
    expect(checked(results, 'connect').status).toBe('ok')
  })
})

/** Processor time may grow by this when the text grows tenfold: linear is 10, quadratic 100. */
const maxGrowth = 15
/** Milliseconds of processor time and copied bytes that are not compared: a run costs a few in any case. */
const floors = { ms: 3, copied: 300_000 }
/** Runs with each size before a growth that stays too large counts: others use the machine too. */
const rounds = 10
const sizes = [1_000, 10_000, 100_000] as const
/** Milliseconds after which the process that runs a kind counts as blocked. */
const patienceMs = 120_000

type Way = 'at once' | 'byte by byte'

/** Runs one kind against servers that send the text in each of the sizes. Returns its problems. */
async function problemsOf(
  runner: HostileRunner,
  { kind, place, settings, mode, serve, sound = [] }: HostileCase,
  [shape, textOf]: readonly [shape: string, textOf: (size: number) => string],
  way: Way,
): Promise<readonly string[]> {
  const least = { ms: sizes.map(() => Number.POSITIVE_INFINITY), copied: sizes.map(() => Number.POSITIVE_INFINITY) }
  const problems = new Set<string>()
  const name = `${kind}, ${shape} ${place}, ${way}`
  const byteByByte = way === 'byte by byte'
  // Single bytes take seconds on a busy machine.
  const timeoutMs = byteByByte ? 60_000 : 10_000
  const run = async (at: number, target: HostileTarget): Promise<void> => {
    const { folder } = target
    const { ms, copied, results } = await runner.run(
      {
        ...{ kind, settings: settings(target), mode, timeoutMs, byteByByte },
        ...(folder === undefined ? {} : { allow: [folder] }),
      },
      patienceMs,
    )
    least.ms[at] = Math.min(least.ms[at] ?? 0, ms)
    least.copied[at] = Math.min(least.copied[at] ?? 0, copied)
    const isHealthy = results.every(({ status }) => status === 'ok')
    if (isHealthy && !sound.includes(shape)) problems.add(`${name}: counts as healthy`)
    for (const { check, fault, message, length } of results) {
      if (fault === 'internal') problems.add(`${name}: ${check} reports a fault of svc: ${message}`)
      if (fault === 'timeout') problems.add(`${name}: ${check} waits for a server that has answered: ${message}`)
      if (length > maxLength) problems.add(`${name}: ${check} reports ${length} characters`)
    }
  }
  const growth = (what: 'ms' | 'copied'): number => {
    const [small = 0, middle = 0, large = 0] = least[what]
    return (large - small) / Math.max(middle - small, floors[what])
  }
  const isTooMuch = (): boolean => growth('ms') > maxGrowth || growth('copied') > maxGrowth
  await using servers = new AsyncDisposableStack()
  const targets: HostileTarget[] = []
  for (const size of sizes) targets.push(servers.use(await serve(textOf(size))))
  for (let round = 0; round === 0 || (round < rounds && isTooMuch()); round += 1) {
    for (const [at, target] of targets.entries()) await run(at, target)
  }
  const figures = (what: 'ms' | 'copied'): string => least[what].map((figure) => figure.toFixed(0)).join(', ')
  if (growth('ms') > maxGrowth) {
    problems.add(`${name}: 100 KB take ${growth('ms').toFixed(0)} times the milliseconds of 10 KB: ${figures('ms')}`)
  }
  if (growth('copied') > maxGrowth) {
    const times = growth('copied').toFixed(0)
    problems.add(`${name}: 100 KB make svc copy ${times} times the bytes of 10 KB: ${figures('copied')}`)
  }
  return [...problems]
}

const kinds = [...new Set(hostileCases.map(({ kind }) => kind))]
const kindsByByte = [...new Set(hostileCases.flatMap(({ kind, whole }) => (whole === undefined ? [kind] : [])))]

describe('H15 the CPU time of a run grows in proportion to what a hostile server sends, and none counts as healthy', {
  tags: ['long'],
}, () => {
  const runner = startHostileRunner()
  afterAll(() => runner.close())
  // A driver that prints what a server sends would put its text into the terminal and the log.
  afterEach(() => expect(runner.output()).toBe(''))
  test('finds a planted reader that copies and searches everything again with each piece', async () => {
    const planted: HostileCase = {
      kind: 'planted',
      place: 'in its answer',
      settings: ({ port }) => ({ port }),
      mode: 'Basic',
      serve: (text) => peer((socket) => void socket.end(text)),
      texts: {},
    }
    const problems = await problemsOf(runner, planted, ['blanks', (size) => ' '.repeat(size)], 'byte by byte')
    expect(problems).toEqual([
      'planted, blanks in its answer, byte by byte: counts as healthy',
      expect.stringMatching(/: 100 KB take \d+ times the milliseconds of 10 KB/),
      expect.stringMatching(/: 100 KB make svc copy \d+ times the bytes of 10 KB/),
    ])
  }, 600_000)
  test.each(kinds)(
    '%s',
    async (kind) => {
      const problems: string[] = []
      for (const one of hostileCases.filter((some) => some.kind === kind)) {
        for (const text of Object.entries(one.texts)) problems.push(...(await problemsOf(runner, one, text, 'at once')))
      }
      expect(problems).toEqual([])
    },
    600_000,
  )
  test.each(kindsByByte)(
    '%s, byte by byte (simulated: each byte that arrives is passed on alone)',
    async (kind) => {
      const problems: string[] = []
      for (const one of hostileCases.filter((some) => some.kind === kind && some.whole === undefined)) {
        const [first] = Object.entries(one.texts)
        if (first) problems.push(...(await problemsOf(runner, one, first, 'byte by byte')))
      }
      expect(problems).toEqual([])
    },
    600_000,
  )
})
