import { serialize } from 'bson'
import { describe, expect, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import ldap from '../../../src/core/checks/kinds/ldap/index.ts'
import mongo from '../../../src/core/checks/kinds/mongo/index.ts'
import mysql from '../../../src/core/checks/kinds/mysql/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import smtp from '../../../src/core/checks/kinds/smtp/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { finds } from '../../support/engine/finds.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { type Behaviour, peer } from '../../support/faults/faults.ts'
import {
  element,
  ldapBind,
  ldapResult,
  ldapServer,
  mongoServer,
  mysqlError,
  mysqlServer,
  octets,
} from '../../support/hostile/servers.ts'
import { postgresAnswering, postgresMessage } from '../../support/simulated/simulated-postgres.ts'
import { measureBlocking } from '../../support/suite/event-loop.ts'

// Every server here is simulated: no real one behaves so. The sockets are real.

/** Processor time without a pause: enough to read some megabytes, and too little for anything quadratic in them. */
const maxBlockingMs = 1_500
const timeoutMs = 5_000

const blanks = ' '.repeat(900_000)

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
  const { value: results, maxMs } = await measureBlocking(() => run(server.port))
  await expect.poll(server.open).toBe(0)
  expect(maxMs).toBeLessThan(maxBlockingMs)
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
  const account = { username: 'cn=monitor', password: secret('correct horse') }
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
    await finds(resultsFrom(server, runLdap(account)), 'rootDSE failed: …unwilling…')
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
    await finds(resultsFrom(server, runLdap({}, 'Basic')), 'rootDSE ok')
  })
  test('MySQL, before the sign-in', async () => {
    const server: Behaviour = (socket) => void socket.write(mysqlError(`Too many connections${blanks}`))
    await finds(resultsFrom(server, runMysql('Basic')), 'connect failed')
  })
  test('PostgreSQL, in its error', async () => {
    const error = postgresMessage('E', 'SFATAL\0C28P01\0M', blanks, '\0\0')
    const server: Behaviour = (socket) => void socket.once('data', () => socket.write(error))
    await finds(resultsFrom(server, runPostgres('Basic')), 'connect failed (auth)')
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
  ])('PostgreSQL, %s', (_, oid, value) =>
    finds(resultsFrom(postgresAnswering('one', oid, value), runPostgres('Standard')), 'connect ok'),
  )
  test.each([
    ['a geometry', 255, nestedGeometry()],
    ['a date with a time', 12, Buffer.from('0'.repeat(400_000))],
    ['JSON', 245, Buffer.from('['.repeat(400_000))],
    ['a number', 8, Buffer.from('9'.repeat(400_000))],
  ])('MySQL, %s', (_, type, value) => finds(resultsFrom(mysqlServer(type, value), runMysql('Standard')), 'connect ok'))
})
