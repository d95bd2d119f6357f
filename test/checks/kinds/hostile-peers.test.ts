import { describe, expect, test } from 'vitest'
import { readSettings, type SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind, Result } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import ldap from '../../../src/core/checks/kinds/ldap/index.ts'
import mysql from '../../../src/core/checks/kinds/mysql/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import { finds } from '../../support/engine/finds.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { type Peer, peer } from '../../support/faults/faults.ts'
import { hostileCases } from '../../support/hostile/cases.ts'
import { hostilePassword } from '../../support/hostile/password.ts'
import { ldapBind, ldapResult, ldapServer, mysqlServer } from '../../support/hostile/servers.ts'
import { postgresAnswering } from '../../support/simulated/simulated-postgres.ts'
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
async function resultsFrom<P extends Pick<Peer, 'port' | 'open' | typeof Symbol.asyncDispose>>(
  start: () => Promise<P>,
  run: (server: P) => Promise<readonly Result[]>,
) {
  await using server = await start()
  const { value: results, maxMs } = await measureBlocking(() => run(server))
  await expect.poll(server.open).toBe(0)
  expect(maxMs).toBeLessThan(maxBlockingMs)
  for (const { message, details = [] } of results) {
    expect(message.length).toBeLessThan(1_000)
    expect(details.join('').length).toBeLessThan(5_000)
  }
  return results
}

const runPostgres = ({ port }: { readonly port: number }) =>
  runKind(postgres, { url: `postgres://m@127.0.0.1:${port}/d`, password: secret('x') }, 'Standard', { timeoutMs })
const runMysql = ({ port }: { readonly port: number }) =>
  runKind(mysql, { url: `mysql://m@127.0.0.1:${port}/d`, password: secret('x') }, 'Standard', { timeoutMs })

/** Where a server of each kind that reads its own protocol can put a text. */
const placesOfBlanks: Partial<Record<string, readonly string[]>> = {
  ldap: [
    'in its refusal of a search',
    'in the notice before it closes the connection',
    'in its refusal of StartTLS',
    'in the attributes of the entry that it must have',
  ],
  mongo: ['in its refusal'],
  mysql: ['in its error'],
  postgres: ['in its error'],
  redis: ['in its refusal'],
  smtp: ['in its banner'],
}

describe('a server that sends 900,000 blanks does not block the process', () => {
  test.each(hostileCases.filter(({ kind, place }) => placesOfBlanks[kind]?.includes(place)))(
    '$kind, $place',
    async ({ kind: name, settings, mode, serve }) => {
      const { default: kind } = await monitors[name as KindName].load()
      const serveBlanks = async () => ({ open: () => 0, ...(await serve(blanks)) })
      const results = await resultsFrom(serveBlanks, (target) => {
        const context = { env: { HOSTILE_PASSWORD: hostilePassword }, folder: '/' }
        const { values } = readSettings(kind.settings, settings(target), context)
        return runKind(kind as AnyKind as Kind<SettingsSpec>, values as never, mode, { timeoutMs })
      })
      expect(results.some(({ status }) => status === 'failed')).toBe(true)
    },
  )

  test('LDAP, in its refusal of a bind, whose reason is read and whose text is cut', async () => {
    const text = `AcceptSecurityContext error, data 52e,${blanks}v4563`
    const server = ldapServer((operation) => (operation === ldapBind ? [ldapResult(0x61, 49, text)] : []))
    const settings = { username: 'cn=monitor', password: secret('correct horse') }
    const results = await resultsFrom(
      () => peer(server),
      ({ port }) => runKind(ldap, { url: `ldap://127.0.0.1:${port}`, ...settings }, 'Standard', { timeoutMs }),
    )
    await finds(results, 'bind failed (auth): …wrong password…')
    expect(checked(results, 'bind').details?.join(' ')).toContain(
      'the server sent "AcceptSecurityContext error, data 52e,"',
    )
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
    finds(
      resultsFrom(() => peer(postgresAnswering('one', oid, value)), runPostgres),
      'connect ok',
    ),
  )
  test.each([
    ['a geometry', 255, nestedGeometry()],
    ['a date with a time', 12, Buffer.from('0'.repeat(400_000))],
    ['JSON', 245, Buffer.from('['.repeat(400_000))],
    ['a number', 8, Buffer.from('9'.repeat(400_000))],
  ])('MySQL, %s', (_, type, value) =>
    finds(
      resultsFrom(() => peer(mysqlServer(type, value)), runMysql),
      'connect ok',
    ),
  )
})
