import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Data, openData } from '../../src/core/store/index.ts'
import type { StoreLink } from '../../src/core/store/link.ts'
import { linkPostgres } from '../../src/core/store/postgres/link.ts'
import { cert, key } from '../server/certificate.ts'
import { type CutProxy, cutProxy } from '../support/faults/cut-proxy.ts'
import { peer, replies, speaks } from '../support/faults/faults.ts'
import { proxy as delayed } from '../support/faults/proxy.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { asServer, remove, serverFolder } from '../support/servers/server.ts'
import { postgresAnswering } from '../support/simulated/simulated-postgres.ts'
import { actor, faultOf, freshDatabase, newUser, signInOf } from '../support/store/data-fixture.ts'
import { measureBlocking } from '../support/suite/event-loop.ts'
import { until } from '../support/suite/until.ts'

let server: PostgresServer
let proxy: CutProxy
/** The database by itself, and through the proxy. */
let direct = ''
let url = ''
const uncaught: unknown[] = []
const catching = (error: unknown): void => void uncaught.push(error)
let certificates = ''
beforeAll(async () => {
  certificates = serverFolder('certificates')
  for (const [name, text] of Object.entries({ cert, key })) {
    writeFileSync(join(certificates, name), text, { mode: 0o600 })
    if (asServer.uid !== undefined) chownSync(join(certificates, name), asServer.uid, asServer.gid)
  }
  const files = [`ssl_cert_file=${join(certificates, 'cert')}`, `ssl_key_file=${join(certificates, 'key')}`]
  server = await startPostgres(['max_connections=80', 'ssl=on', ...files])
})
afterAll(async () => {
  await server.remove()
  remove(certificates)
})
const ends: (() => Promise<void>)[] = []
beforeEach(async () => {
  proxy = await cutProxy(server.port)
  direct = await freshDatabase(server)
  url = direct.replace(`:${server.port}/`, `:${proxy.port}/`)
  uncaught.length = 0
  process.on('uncaughtException', catching)
})
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
  await proxy.close()
  process.off('uncaughtException', catching)
})
async function openLink(tls = false): Promise<StoreLink> {
  const parameters = tls ? `?sslmode=verify-full&sslrootcert=${join(certificates, 'cert')}` : ''
  const link = await linkPostgres({ url: url + parameters, create: true, env: {} })
  ends.push(link.close)
  return link
}
async function open(store = url): Promise<Data> {
  const data = await openData({ store, create: true, env: {} })
  ends.push(data.close)
  return data
}
const query = (text: string) => server.query(text, new URL(direct).pathname.slice(1))
const backends = `pid <> pg_backend_pid() AND application_name = 'svc'`

describe('D3 a connection of the store breaks', () => {
  test.each([
    ['is reset', false, () => proxy.cutNow({ client: 'reset', server: 'reset' })],
    ['is reset, over TLS,', true, () => proxy.cutNow({ client: 'reset', server: 'reset' })],
    ['is ended', false, () => proxy.cutNow({ client: 'end', server: 'end' })],
    ['is ended, over TLS,', true, () => proxy.cutNow({ client: 'end', server: 'end' })],
    [
      'is ended by the server',
      false,
      () => query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${backends}`),
    ],
    ['is left alone for too long', false, () => pause(1_900)],
  ] as const)(
    'between two statements of a transaction: one that %s is unavailable and affects nothing else',
    async (_, tls, cut) => {
      const link = await openLink(tls)
      expect(
        await query(`SELECT bool_and(ssl) AS tls FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ${backends}`),
      ).toEqual([{ tls }])
      const work = link.write(async (tx) => {
        await sql`INSERT INTO failures VALUES ('cut', 1, 1)`.execute(tx)
        await cut()
        // Whatever the break has to say is heard before the next statement.
        await pause(100)
        await sql`SELECT 1`.execute(tx)
      })
      expect((await faultOf(work)).fault).toBe('Unavailable')
      expect(uncaught).toEqual([])
      expect(await query('SELECT * FROM failures')).toEqual([])
      await link.write(async (tx) => {
        await sql`INSERT INTO failures VALUES ('after', 1, 1)`.execute(tx)
      })
      expect(await query('SELECT key FROM failures')).toEqual([{ key: 'after' }])
    },
  )
  test('while idle: the next query and the next change succeed', { timeout: 120_000 }, async () => {
    // A new store each time: the cut also meets a connection that is just being made, which no test can time.
    for (let round = 0; round < 30; round += 1) {
      const data = await open()
      for (const breaks of ['reset', 'end'] as const) {
        await Promise.all(Array.from({ length: 5 }, () => data.ping()))
        proxy.cutNow({ client: breaks, server: breaks })
        await data.users.add(newUser(`${breaks}${round}`), actor())
        proxy.cutNow({ client: breaks, server: breaks })
        await data.ping()
      }
      expect(await data.users.list()).toHaveLength(2 * (round + 1))
      await data.close()
    }
    expect(uncaught).toEqual([])
  })
  test('before COMMIT is answered: the change is unavailable, although it may have happened', async () => {
    const link = await openLink()
    const work = link.write(async (tx) => {
      await sql`INSERT INTO failures VALUES ('unknown', 1, 1)`.execute(tx)
      // The next that the server says is the answer to COMMIT.
      void proxy.cut({ pieces: 1, from: 'server', all: false, client: 'reset', server: 'end' })
    })
    expect((await faultOf(work)).fault).toBe('Unavailable')
    expect(await query('SELECT key FROM failures')).toEqual([{ key: 'unknown' }])
    expect(uncaught).toEqual([])
  })
  const bucket = { capacity: 5, everyMs: 1_000 }
  const failure = [{ key: 'lost', windowMs: 60_000, window: 'sliding' }] as const
  const settlement = {
    clears: undefined,
    givesBack: { name: 'lost', bucket },
    remembers: { prefix: '192.0.2.0', at: 2 },
  }
  test.each<[string, (data: Data) => Promise<() => Promise<unknown>>, string, readonly unknown[]]>([
    [
      'a sign-in',
      async (data) => {
        const user = await data.users.add(newUser('alice'), actor())
        return () => data.sessions.begin({ ...signInOf(user), settles: { ...settlement, user } }, actor())
      },
      `SELECT (SELECT count(*) FROM sessions)::int AS n, (SELECT count(*) FROM "accessTokens")::int AS access,
        (SELECT count(*) FROM "refreshTokens")::int AS refresh, "fullAt"::int FROM guesses`,
      [{ n: 1, access: 1, refresh: 1, fullAt: 1_001 }],
    ],
    [
      'a failed sign-in',
      async (data) => () => data.failures.add(2, failure),
      'SELECT count::int AS n FROM failures',
      [{ n: 2 }],
    ],
    [
      'a guess',
      async (data) => () => data.guesses.take('lost', 1, bucket),
      'SELECT "fullAt"::int FROM guesses',
      [{ fullAt: 3_001 }],
    ],
    [
      'a guess that is given back',
      async (data) => () => data.guesses.giveBack('lost', bucket),
      'SELECT "fullAt"::int FROM guesses',
      [{ fullAt: 1_001 }],
    ],
    [
      'an entry of the audit',
      async (data) => () => data.audit.write('signin.failed', 'alice', actor()),
      `SELECT count(*)::int AS n FROM audit WHERE event = 'signin.failed'`,
      [{ n: 1 }],
    ],
  ])(
    'before any statement of its committed transaction is answered: %s is made once, and unavailable',
    async (_, prepare, rows, once) => {
      const data = await open()
      await data.failures.add(1, failure)
      await data.guesses.take('lost', 1, bucket)
      await data.guesses.take('lost', 1, bucket)
      const somebody = await data.users.add(newUser('somebody'), actor())
      await data.settle(somebody, { ...settlement, givesBack: undefined })
      const change = await prepare(data)
      const lost = proxy.loseCommit()
      const fault = await faultOf(change())
      await lost
      expect([fault.fault, await query(rows)]).toEqual(['Unavailable', once])
      expect(uncaught).toEqual([])
    },
  )
  test('a transaction in which a statement has failed is never acknowledged', async () => {
    const link = await openLink()
    const work = link.write(async (tx) => {
      await sql`INSERT INTO failures VALUES ('half', 1, 1)`.execute(tx)
      await sql`SELECT 1/0`.execute(tx).catch(() => {})
    })
    await expect(work).rejects.toThrow(/ended with ROLLBACK/)
    expect(await query('SELECT key FROM failures')).toEqual([])
  })
})

describe('D3 a network that fails silently', () => {
  test('when it is back, a new query is answered before the lost one is abandoned', async () => {
    const data = await open()
    await Promise.all(Array.from({ length: 5 }, () => data.ping()))
    const order: string[] = []
    proxy.stall()
    const taken = data.ping().then(
      () => order.push('taken'),
      () => order.push('taken'),
    )
    await pause(700)
    proxy.heal('lost')
    await data.ping()
    order.push('new')
    await taken
    expect(order).toEqual(['new', 'taken'])
  })
  test('the queries of one request together wait no longer than one', async () => {
    const data = await open()
    await Promise.all([data.ping(), data.ping()])
    const own = data.forRequest()
    proxy.stall()
    setTimeout(() => proxy.heal('flows'), 1_000)
    await own.ping()
    proxy.stall()
    const order: string[] = []
    // Both begin now, and the second query of the request has less time left than one that is alone, which began first.
    await Promise.all([
      faultOf(data.ping()).then(() => order.push('alone')),
      faultOf(own.ping()).then(() => order.push('second')),
    ])
    proxy.heal('flows')
    expect(order).toEqual(['second', 'alone'])
    // Nothing is left: it is not even tried.
    const sent = proxy.open()
    expect((await faultOf(own.ping())).fault).toBe('Unavailable')
    expect(proxy.open()).toBeLessThanOrEqual(sent)
  })
  test('a server that connects slowly serves more callers than there are connections', async () => {
    await (await open()).ping()
    await using slow = await delayed(server.port, 100)
    const data = await open(direct.replace(`:${server.port}/`, `:${slow.port}/`))
    await Promise.all(Array.from({ length: 20 }, () => data.ping()))
  })
  test('a store that is closed leaves no connection behind', async () => {
    const sockets = (): number => process.getActiveResourcesInfo().filter((name) => /TCP/.test(name)).length
    await until(() => proxy.open() === 0)
    const before = sockets()
    const frozen = await openData({ store: direct, create: true, env: {} })
    await Promise.all(Array.from({ length: 5 }, () => frozen.ping()))
    server.freeze()
    try {
      const stuck = faultOf(frozen.ping())
      await frozen.close()
      expect((await stuck).fault).toBe('Unavailable')
      expect(await until(() => sockets() <= before)).toBe(true)
    } finally {
      server.thaw()
    }
  })
})

describe('D3 another service answers in the place of PostgreSQL', () => {
  test.each([
    ['HTTP', replies('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')],
    ['HTTP that stays', speaks('HTTP/1.1 408 Request Timeout\r\n\r\n')],
    ['noise', replies(Buffer.from([0, 255, 17, 0, 0, 0, 1, 82, 90, 69]))],
    ['an answer of an impossible length', replies(Buffer.from([82, 255, 255, 255, 255, 0, 0, 0, 0]))],
    ['nothing, and hangs up', replies('')],
  ] as const)('%s: the store is unavailable', async (_, behave) => {
    await using other = await peer(behave)
    const fault = await faultOf(open(`postgres://svc:pa55@127.0.0.1:${other.port}/svc`))
    expect([fault.fault, fault.message]).toEqual(['Unavailable', expect.stringMatching(/cannot be reached/)])
    expect(uncaught).toEqual([])
  })
  test.each([
    ['a date with a time', 1184, '0'],
    ['a list of dates', 1185, '{0'],
  ])('%s, by its own account: it neither blocks the process nor is repeated at length', async (_, oid, start) => {
    await using other = await peer(postgresAnswering('encoding', oid, start + '0'.repeat(400_000)))
    const store = `postgres://svc:pa55@127.0.0.1:${other.port}/svc`
    const { value: fault, maxMs } = await measureBlocking(() => faultOf(open(store)))
    expect([fault.fault, fault.message]).toEqual(['Local', expect.stringMatching(/stores text as .*, not as UTF8$/)])
    expect(fault.message.length).toBeLessThan(300)
    expect(maxMs).toBeLessThan(1_500)
  })
})
