import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { openCore } from '../../src/core/service/open.ts'
import { ask, figure, type ServeNode, signIn, startNode, statusAs, tokenOf } from '../support/program/serve-node.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { faultOf, freshDatabase, storePassword } from '../support/store/data-fixture.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const maxMs = 60_000
let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres(['max_connections=40'])
})
afterAll(async () => await server?.remove())
afterEach(async () => {
  if (isStopped) await startAgain()
})
let isStopped = false
const stop = async (): Promise<void> => {
  isStopped = true
  await server.stop('SIGQUIT')
}
const startAgain = async (): Promise<void> => {
  server = await server.restart()
  isStopped = false
}

const status = async (node: ServeNode, path: string): Promise<number> => (await ask(`${node.url}${path}`)).status
const health = '/healthcheck?ServerType=App&ExecutionMode=Basic'
const linesWith = (node: ServeNode, text: string): readonly string[] =>
  node
    .log()
    .split('\n')
    .filter((line) => line.includes(text))

const incidents = async (node: ServeNode): Promise<number> =>
  (await ask(`${node.url}/metrics`)).body.split('\n').filter((line) => line.startsWith('svc_incident_info{')).length

const yamlFor = (
  origin: string,
  serve = '',
): string => `serve: {confirm: 5s, every: {Standard: 10s, Advanced: off}${serve}}
types:
  App:
    host: false
    monitors:
      - {kind: http, name: shop, url: '${origin}/'}
      - {kind: http, name: office, url: '${origin}/'}
      - {kind: http, name: depot, url: '${origin}/'}
`

/** The status of each request that needs the store. */
async function needing(node: ServeNode): Promise<readonly number[]> {
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    authorization: `Bearer ${'a'.repeat(43)}`,
  }
  const body = JSON.stringify({ UserName: 'Ann', Roles: ['Ops'] })
  return [
    (await signIn(node)).status,
    (await ask(`${node.url}/assignroles`, { method: 'POST', headers, body })).status,
    (await ask(`${node.url}/auth`, { headers })).status,
    (await ask(`${node.url}/silences`, { headers })).status,
    (await ask(`${node.url}/history`, { headers })).status,
  ]
}

describe('W16 svc serve is started while its PostgreSQL does not answer', () => {
  test('W16 it warns once and monitors; sign-in, roles, silences and history are 503. When PostgreSQL answers, nodes use the store without a restart: the Admin is there, the nodes share the monitors, and states and the audit are stored', {
    timeout: 5 * maxMs,
  }, async () => {
    const folder = temporaryFolder()
    try {
      await using shop = await httpPeer((_, response) => void response.writeHead(500).end('page'))
      const store = await freshDatabase(server)
      const database = new URL(store).pathname.slice(1)
      await stop()
      const stream = join(folder, 'audit.jsonl')
      await using one = await startNode({ store, yaml: yamlFor(shop.origin, `, audit: {stream: ${stream}}`) })
      await using other = await startNode({ store, yaml: yamlFor(shop.origin) })

      const label = store.replace(`:${encodeURIComponent(storePassword)}`, '')
      for (const node of [one, other]) {
        const [line, ...more] = linesWith(node, `The store ${label} `)
        expect(more).toEqual([])
        expect(line).toContain(
          `cannot be reached: no PostgreSQL server responds at 127.0.0.1:${server.port}: this server runs its monitors without it`,
        )
        expect(line).toContain('"warn"')
        await until(async () => (await incidents(node)) === 3, maxMs, 250)
        expect([await status(node, health), await status(node, '/livez'), await status(node, '/readyz')]).toEqual([
          503, 200, 503,
        ])
        const answer = await ask(`${node.url}${health}`, { headers: { accept: 'application/json' } })
        expect(answer.body).toContain('shop')
        expect((await ask(`${node.url}/`, { headers: { accept: 'text/html' } })).body).toContain('shop')
        expect(await needing(node)).toEqual([503, 503, 503, 503, 503])
        expect(await figure(node, 'svc_store_up')).toBe(0)
        const { body } = await signIn(node)
        expect(body).toContain('The store cannot be reached')
        expect(body).not.toContain(database)
      }

      await startAgain()
      for (const node of [one, other]) {
        await until(async () => (await status(node, '/readyz')) === 200, maxMs, 250)
        const token = await until(async () => tokenOf(await signIn(node)), maxMs, 250)
        expect(await statusAs(node, token)).toBe(200)
        expect(linesWith(node, `The store ${label} answers`)).toHaveLength(1)
        await until(async () => (await figure(node, 'svc_node_coordinated')) === 1, maxMs, 250)
        expect(await figure(node, 'svc_store_up')).toBe(1)
      }
      await until(async () => {
        const holders = await Promise.all([one, other].map(async (node) => await figure(node, 'svc_node_holds_lease')))
        return holders.filter((each) => each === 1).length === 1
      }, maxMs)
      // The incidents of both nodes are stored once for each monitor.
      await until(async () => {
        const rows = await server.query('SELECT * FROM "historyStates"', database)
        return rows.length >= 3
      }, maxMs)
      const added = await server.query(`SELECT * FROM "audit" WHERE "event" = 'user.added'`, database)
      expect(added).toHaveLength(1)
      await until(() => readFileSync(stream, 'utf8').includes('user.added'), maxMs)
      await until(async () => (await figure(one, 'svc_audit_seals_total')) !== undefined, maxMs)
    } finally {
    }
  })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'W16 %s ends it with exit code 0',
    { timeout: 2 * maxMs },
    async (signal) => {
      await using node = await startNode({ store: `postgres://svc@127.0.0.1:${await freePort()}/svc` })
      node.signal(signal)
      expect(await node.ended).toBe(0)
      expect(node.log()).toContain('stopped')
    },
  )

  test('W16 requests do not connect to a simulated PostgreSQL that never answers: attempts in the background do, and SIGTERM ends them', {
    timeout: 2 * maxMs,
  }, async () => {
    let connections = 0
    const open = new Set<Socket>()
    const silent = createServer((socket) => {
      connections += 1
      open.add(socket.on('error', () => {}))
    })
    await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening))
    const { port } = silent.address() as { readonly port: number }
    try {
      await using node = await startNode({ store: `postgres://svc@127.0.0.1:${port}/svc` })
      const before = connections
      const statuses = await Promise.all(Array.from({ length: 100 }, async () => (await signIn(node)).status))
      for (let turn = 0; turn < 50; turn++) statuses.push((await signIn(node)).status)
      expect([...new Set(statuses)]).toEqual([503])
      expect(connections - before).toBeLessThan(30)
      await until(() => connections > before, maxMs)
      expect(await node.stop()).toBe(0)
    } finally {
      for (const socket of open) socket.destroy()
      silent.close()
    }
  })

  test('W16 a mistake that only PostgreSQL can find is logged with its remedy when it answers, and no restart is needed once it is corrected', {
    timeout: 3 * maxMs,
  }, async () => {
    const folder = temporaryFolder()
    try {
      const file = join(folder, 'password')
      writeFileSync(file, 'wrong\n', { mode: 0o600 })
      const url = new URL(await freshDatabase(server))
      url.password = ''
      await stop()
      await using node = await startNode({ store: url.href, env: { SVC_STORE_PASSWORD_FILE: file } })
      await startAgain()
      await until(() => linesWith(node, 'rejects the password of svc').length > 0, maxMs)
      expect(linesWith(node, 'rejects the password of svc')[0]).toContain('SVC_STORE_PASSWORD_FILE')
      const refused = await signIn(node)
      expect([refused.status, refused.body]).toEqual([
        503,
        expect.stringContaining('The store is not used: the log of svc serve has the reason'),
      ])
      writeFileSync(file, `${storePassword}\n`)
      await until(async () => (await signIn(node)).status === 200, maxMs, 250)
      expect(linesWith(node, 'rejects the password of svc')).toHaveLength(1)
    } finally {
    }
  })

  test('W16 W6 a schema that turns out to be too new is logged and left alone, and health goes on', {
    timeout: 3 * maxMs,
  }, async () => {
    const store = await freshDatabase(server)
    {
      await using _ = await startNode({ store })
    }
    const newer = 'was written by a newer svc (schema 99'
    await server.query('UPDATE "meta" SET "version" = 99', new URL(store).pathname.slice(1))
    await stop()
    await using shop = await httpPeer((_, response) => void response.writeHead(200).end('page'))
    await using node = await startNode({ store, yaml: yamlFor(shop.origin) })
    await startAgain()
    await until(() => linesWith(node, newer).length > 0, maxMs)
    expect(linesWith(node, newer)[0]).toContain('this server runs its monitors without it')
    const ready = await ask(`${node.url}/readyz`)
    expect([ready.status, ready.body]).toEqual([503, expect.stringContaining(newer)])
    expect([(await signIn(node)).status, await status(node, health)]).toEqual([503, 200])
  })

  test('W16 nobody can use the store before it has been prepared, as with the first Admin', {
    timeout: 2 * maxMs,
  }, async () => {
    const store = await freshDatabase(server)
    await stop()
    const folder = temporaryFolder()
    const log: string[] = []
    let isPrepared = false
    let attempts = 0
    const core = await openCore({
      version: '1',
      config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
      store,
      shared: true,
      node: 'late',
      details: 'anyone',
      log: ({ msg }) => void log.push(msg),
      firstUse: async ({ any, anyAdmin }) => {
        attempts += 1
        expect([await any(), await anyAdmin()]).toEqual([false, false])
        if (!isPrepared) throw new Fault('Local', 'There is no Admin yet', { hints: ['Add one'] })
      },
    })
    try {
      const { runtime } = core
      const anybody = () => Promise.resolve().then(async () => await runtime.anyAdmin())
      expect((await faultOf(anybody())).message).toBe('The store cannot be reached')
      await startAgain()
      await until(() => attempts >= 2, maxMs)
      const { fault, message } = await faultOf(anybody())
      expect([fault, message]).toEqual(['Unavailable', 'The store is not used: the log of svc serve has the reason'])
      expect(log.filter((line) => line === 'The store is still not used: There is no Admin yet. Add one')).toHaveLength(
        1,
      )
      isPrepared = true
      await until(
        () =>
          anybody().then(
            (any) => !any,
            () => false,
          ),
        maxMs,
      )
    } finally {
      await core.runtime.close()
    }
  })
})

describe('W16 a mistake in SVC_STORE ends svc serve at once, with its remedy', () => {
  const refusal = async (store: string): Promise<string> =>
    await startNode({ store }).then(
      async (node) => {
        await node.stop()
        return 'it started'
      },
      (error: Error) => error.message.replaceAll('\n', ' '),
    )
  const sql = {
    'a wrong password': {
      store: (url: URL) => {
        url.password = 'wrong'
        return url.href
      },
      text: /ended with 12: .*rejects the password of svc.*SVC_STORE_PASSWORD_FILE/,
    },
    'a database that does not exist': {
      store: (url: URL) => url.href.replace(url.pathname, '/missing'),
      text: /ended with 12: .*there is no database missing.*createdb missing/,
    },
    'TLS that PostgreSQL does not offer': {
      store: (url: URL) => `${url.href}?sslmode=verify-full`,
      text: /ended with 12: .*does not offer a trusted connection/,
    },
    // A name that no resolver asks anybody for.
    'a host that does not exist': {
      store: (url: URL) => url.href.replace(url.host, 'db..example'),
      text: /ended with 8: .*there is no host db\.\.example.*Correct the host in SVC_STORE/,
    },
    'a URL that is none': {
      store: () => 'postgres://svc@db/svc?unknown=1',
      text: /ended with 12: .*has an unsupported parameter/,
    },
  }
  test.each(Object.entries(sql))('W16 %s', { timeout: maxMs }, async (_, { store, text }) => {
    const url = new URL(await freshDatabase(server))
    expect(await refusal(store(url))).toMatch(text)
  })
})
