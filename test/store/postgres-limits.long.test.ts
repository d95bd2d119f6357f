import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { StoreOutage } from '../../src/core/base/errors.ts'
import { type Data, openData } from '../../src/core/store/index.ts'
import { distantProxy } from '../support/faults/distant-proxy.ts'
import { proxy as limited } from '../support/faults/proxy.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { freePort, remove, serverFolder } from '../support/servers/server.ts'
import { actor, faultOf, freshDatabase, newUser } from '../support/store/data-fixture.ts'
import { until } from '../support/suite/until.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres(['max_connections=40'])
})
afterAll(async () => await server.remove())
async function open(store: string): Promise<Data> {
  const data = await openData({ store, create: true, env: {} })
  onTestFinished(() => data.close())
  return data
}
const accountLimit = (most: number) => server.query(`ALTER ROLE svc CONNECTION LIMIT ${most}`)
const ownConnections = async (): Promise<number> =>
  (await server.query("SELECT 1 FROM pg_stat_activity WHERE usename = 'svc'")).length
/** Connections of svc to the database of a URL: those of an earlier test may still be ending. */
const connectionsTo = async (url: string): Promise<number> =>
  (
    await server.query(
      `SELECT 1 FROM pg_stat_activity WHERE usename = 'svc' AND datname = '${new URL(url).pathname.slice(1)}'`,
    )
  ).length
const roles = (...names: readonly string[]) => ({
  add: { roles: names, permissions: [] },
  remove: { roles: [], permissions: [] },
})

describe('W5 the database accepts no more connections', () => {
  afterEach(async () => await accountLimit(-1))
  test('W5 callers wait for the connections that the pool has, and none is refused', async () => {
    const url = await freshDatabase(server)
    await accountLimit(2)
    const data = await open(url)
    const { id } = await data.users.add(newUser('alice'), actor())
    const refused: string[] = []
    let answered = 0
    const calls = async (n: number): Promise<void> => {
      for (let round = 0; round < 20; round += 1) {
        const work = [data.ping(), data.users.find('alice'), data.users.changeGrants(id, roles(`R${n}`), actor())]
        for (const outcome of await Promise.allSettled(work)) {
          if (outcome.status === 'fulfilled') answered += 1
          else refused.push(String(outcome.reason))
        }
      }
    }
    await Promise.all([0, 1, 2, 3].map(calls))
    expect([answered, refused]).toEqual([240, []])
    expect(await ownConnections()).toBeLessThanOrEqual(2)
  })
  test('W5 a pool without a connection says that the database accepts no more, at the start and later', async () => {
    const url = await freshDatabase(server)
    const data = await open(url)
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'svc'")
    await accountLimit(0)
    await until(async () => (await ownConnections()) === 0)
    expect((await faultOf(data.ping())).message).toBe('The store accepts no more connections')
    expect((await faultOf(open(url))).message).toMatch(/^The store postgres:\/\/svc@.* accepts no more connections$/)
    await accountLimit(-1)
    await data.ping()
  })
})

describe('W5 parameters of the URL', () => {
  test('W5 connections is the largest number of connections', async () => {
    const url = await freshDatabase(server)
    const data = await open(`${url}?connections=3`)
    // The first connections may serve all of the pings before the third is open.
    await Promise.all(Array.from({ length: 30 }, () => data.ping()))
    await until(async () => (await connectionsTo(url)) >= 3)
    await Promise.all(Array.from({ length: 30 }, () => data.ping()))
    expect(await connectionsTo(url)).toBe(3)
    await data.close()
    const alone = await open(`${await freshDatabase(server)}?connections=1`)
    await Promise.all(Array.from({ length: 10 }, (_, n) => alone.users.add(newUser(`user-${n}`), actor())))
    expect(await alone.users.list()).toHaveLength(10)
  })
  test.each([
    ['connections=0', /unusable number of connections\n.*from 1 to 500/],
    ['connections=501', /unusable number of connections/],
    ['connections=ten', /unusable number of connections/],
    ['target_session_attrs=standby', /unsupported target_session_attrs\n.*read-write.*any/],
  ])('W5 %s is refused with the accepted values', async (parameter, text) => {
    const { message, details } = await faultOf(open(`postgres://svc@127.0.0.1/svc?${parameter}`))
    expect([message, ...(details.hints ?? [])].join('\n')).toMatch(text)
  })
})

describe('W5 a Unix socket', () => {
  test('W5 a server that listens on a socket alone is reached through its folder', async () => {
    const folder = serverFolder('socket')
    const local = await startPostgres([`unix_socket_directories=${folder}`], 'local all svc trust\n')
    try {
      const { pathname } = new URL(await freshDatabase(local))
      for (const url of [
        `postgres://svc@${pathname}?host=${folder}&port=${local.port}`,
        `postgres://svc@${encodeURIComponent(folder)}:${local.port}${pathname}`,
      ]) {
        const data = await open(url)
        await data.ping()
        await data.close()
      }
      const refusal = await faultOf(open(`postgres://svc:pa55@${pathname}?host=${folder}&port=1`))
      expect(refusal.message).toBe(
        `The store postgres://svc@${pathname}?host=${folder} cannot be reached: no PostgreSQL server responds at ${folder}/.s.PGSQL.1`,
      )
    } finally {
      await local.remove()
      remove(folder)
    }
  })
})

describe('W5 several hosts', () => {
  test('W5 a host that refuses, and one that does not answer, are passed over', async () => {
    const url = new URL(await freshDatabase(server))
    await using silent = await limited(server.port, 0, 0)
    const hosts = `127.0.0.1:${await freePort()},127.0.0.1:${silent.port},127.0.0.1:${server.port}`
    const data = await open(url.href.replace(url.host, hosts))
    await Promise.all(Array.from({ length: 20 }, () => data.ping()))
  })
  test('W5 a server that has become a standby is left for the one that accepts writes', async () => {
    const own = await startPostgres(['max_connections=40'])
    const url = new URL(await freshDatabase(own))
    const { primary, standby } = await own.standby()
    try {
      // The standby comes first.
      const both = url.href.replace(url.host, `127.0.0.1:${standby.port},127.0.0.1:${primary.port}`)
      // A server that is busy with its first standby may not answer in time.
      const data = await until(() => open(both).catch(() => false as const), 30_000)
      await data.users.add(newUser('alice'), actor())
      const replayed = async (): Promise<number> => {
        const rows = await standby.query('SELECT 1 FROM users', url.pathname.slice(1)).catch(() => [])
        return rows.length
      }
      await until(async () => (await replayed()) === 1, 30_000)
      await primary.stop('SIGQUIT')
      expect((await faultOf(data.users.add(newUser('bob'), actor()))).fault).toBe('Unavailable')
      expect((await faultOf(open(both))).message).toMatch(/is on no server that accepts writes|cannot be reached/)
      await standby.query('SELECT pg_promote()')
      await until(
        async () =>
          data.users.add(newUser('bob'), actor()).then(
            () => true,
            () => false,
          ),
        30_000,
      )
      expect((await data.users.list()).map(({ userName }) => userName)).toEqual(['alice', 'bob'])
      await data.close()
    } finally {
      await standby.remove()
      await primary.remove()
    }
  })
  test('W16 an unknown name is the reason only if every host has one', async () => {
    const refused = `127.0.0.1:${await freePort()}`
    for (const hosts of [`db..example,${refused}`, `${refused},db..example`]) {
      expect(await faultOf(open(`postgres://svc:pa55@${hosts}/svc`))).toBeInstanceOf(StoreOutage)
    }
    const unknown = await faultOf(open('postgres://svc:pa55@db..example,db2..example/svc'))
    expect([unknown.fault, unknown.message]).toEqual([
      'Unavailable',
      'The store postgres://svc@db..example,db2..example/svc cannot be reached: there is no host db..example or db2..example',
    ])
    expect(unknown).not.toBeInstanceOf(StoreOutage)
  })
  test('W5 without any that answers, the refusal names them all', async () => {
    const [one, other] = [await freePort(), await freePort()]
    const { message } = await faultOf(open(`postgres://svc:pa55@127.0.0.1:${one},127.0.0.1:${other}/svc`))
    expect(message).toBe(
      `The store postgres://svc@127.0.0.1:${one},127.0.0.1:${other}/svc cannot be reached: no PostgreSQL server responds at 127.0.0.1:${one} or 127.0.0.1:${other}`,
    )
  })
})

describe('W5 a distant database, simulated', () => {
  test('W5 reads and changes succeed, and the check of an idle connection costs no round trip', async () => {
    const url = new URL(await freshDatabase(server))
    await open(url.href)
    await using far = await distantProxy(server.port, 150)
    const data = await open(url.href.replace(`:${server.port}`, `:${far.port}`))
    const { id } = await data.users.add(newUser('alice'), actor())
    // A busy machine may take so long that a connection is replaced.
    await until(async () => {
      await pause(400)
      far.trips()
      const user = await data.users.byId(id).catch(() => undefined)
      return user?.userName === 'alice' && far.trips() === 1
    }, 30_000)
    await until(async () => {
      await pause(400)
      const { after } = await data.users.changeGrants(id, roles('Ops'), actor())
      return after.roles.includes('Ops')
    }, 30_000)
  })
  test('W5 a database that moves away from 0 to 300 ms is still used, by the connections that there are', async () => {
    const url = new URL(await freshDatabase(server))
    await using far = await distantProxy(server.port, 0)
    const data = await open(url.href.replace(`:${server.port}`, `:${far.port}`))
    await Promise.all([data.ping(), data.ping()])
    far.move(300)
    await until(
      async () =>
        await data.ping().then(
          () => true,
          () => false,
        ),
    )
    // Its connections remain: making one takes longer than a request may take with what it still has to ask.
    await pause(1_000)
    await data.ping()
    far.trips()
    for (let n = 0; n < 3; n += 1) {
      await pause(500)
      await data.ping()
    }
    expect(far.trips()).toBeLessThanOrEqual(6)
  })
  test('W5 a distant database that no longer answers is unavailable as soon as a near one', async () => {
    const url = new URL(await freshDatabase(server))
    await using far = await distantProxy(server.port, 300)
    const data = await open(url.href.replace(`:${server.port}`, `:${far.port}`))
    await data.ping()
    far.stall()
    const start = performance.now()
    expect((await faultOf(data.forRequest().users.find('alice'))).fault).toBe('Unavailable')
    expect(performance.now() - start).toBeLessThan(10_000)
  })
})
