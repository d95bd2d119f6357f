import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, figure, type ServeNode, signIn, startNode, tokenOf } from '../support/program/serve-node.ts'
import { svcHome } from '../support/program/svc.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { type Backend, backends, freshDatabase } from '../support/store/data-fixture.ts'
import { until } from '../support/suite/until.ts'

const maxMs = 60_000
const schema = 99
const newer = `was written by a newer svc (schema ${schema}; this svc supports schema `

const status = async (node: ServeNode, path: string): Promise<number> => (await ask(`${node.url}${path}`)).status
const health = '/healthcheck?ServerType=App&ExecutionMode=Basic'

/** The status and message of each request that needs the store. */
async function needing(node: ServeNode, token: string) {
  const headers = { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const post = (path: string, body: object) =>
    ask(`${node.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const get = (path: string) => ask(`${node.url}${path}`, { headers })
  const answers = {
    'sign-in': await signIn(node),
    'who is signed in': await get('/auth'),
    roles: await post('/assignroles', { UserName: 'Ann', Roles: ['Ops'] }),
    'list of silences': await get('/silences'),
    'silence by hand': await post('/silences/monitors', { Monitors: ['App/*'], Reason: 'test', For: 'PT1H' }),
    history: await get('/history'),
  }
  return Object.entries(answers)
}

// Nearly all of it waits.
describe.concurrent.each(backends)('W6 svc serve on a store in $name that is too new', (backend: Backend) => {
  beforeAll(async () => await backend.start())
  afterAll(async () => await backend.stop())

  const setAhead = async (store: string): Promise<void> => {
    if (backend.name === 'SQLite') await backend.raw(store, `PRAGMA user_version = ${schema}`)
    await backend.raw(store, `UPDATE "meta" SET "version" = ${schema}`)
  }
  /** Everything that the store contains. */
  const contents = async (store: string): Promise<unknown> => {
    if (backend.name === 'SQLite') {
      const folder = dirname(store)
      // SQLite makes the file -shm to read.
      const files = readdirSync(folder).filter((file) => !file.endsWith('-shm'))
      return files.map((file) => [file, readFileSync(join(folder, file)).toString('base64')])
    }
    const tables = await backend.raw(
      store,
      `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1`,
    )
    const texts: unknown[] = []
    for (const { name } of tables as readonly { name: string }[])
      texts.push([name, await backend.raw(store, `SELECT t::text FROM "${name}" t ORDER BY 1`)])
    return texts
  }

  test('W6 it says so and serves health: checks, schedule, states, /metrics and the status page; what needs the store is 503 with the reason, and nothing is written', {
    timeout: 4 * maxMs,
  }, async () => {
    let answer = 200
    await using shop = await httpPeer((_, response) => void response.writeHead(answer).end('page'))
    const yaml = `serve: {confirm: 5s, every: {Standard: 10s, Advanced: off}}
types:
  App:
    host: false
    monitors:
      - {kind: http, name: shop, url: '${shop.origin}/'}
`
    const store = await backend.fresh()
    let token = ''
    {
      await using before = await startNode({ store, yaml })
      token = tokenOf(await signIn(before))
    }
    await setAhead(store)
    const stored = await contents(store)

    await using node = await startNode({ store, yaml })
    expect(node.log()).toContain(newer)
    expect(node.log()).toContain(
      'this server runs its monitors without it, and has no sign-in, roles, silences or history',
    )
    expect(node.log()).toContain('Update svc, or set SVC_STORE to another')
    expect([await status(node, '/livez'), await status(node, health)]).toEqual([200, 200])
    const ready = await ask(`${node.url}/readyz`)
    expect([ready.status, ready.body]).toEqual([503, expect.stringContaining(newer)])
    for (const [what, answered] of await needing(node, token)) {
      expect([what, answered.status]).toEqual([what, 503])
      expect(answered.body, what).toContain(newer)
    }
    await until(async () => (await figure(node, 'svc_check_confirmed')) === 1, maxMs, 250)
    answer = 500
    await until(async () => (await figure(node, 'svc_incident_info')) === 1, maxMs, 250)
    expect(await status(node, health)).toBe(503)
    const page = await ask(`${node.url}/`, { headers: { accept: 'text/html' } })
    expect([page.status, page.body]).toEqual([200, expect.stringContaining('shop')])
    expect(page.body).toContain(newer)
    expect(await figure(node, 'svc_node_coordinated')).toBe(backend.name === 'SQLite' ? undefined : 0)
    answer = 200
    await until(async () => (await figure(node, 'svc_incident_info')) === undefined, maxMs, 250)
    expect(await node.stop()).toBe(0)
    expect(await contents(store)).toEqual(stored)
  })

  test('W6 commands refuse it, with the versions and the way out', { timeout: maxMs }, async () => {
    const store = await backend.fresh()
    {
      await using _ = await startNode({ store })
    }
    await setAhead(store)
    const home = svcHome()
    try {
      const { code, stderr } = await home.svc(['roles', 'assign', 'Ann', '--role', 'Ops'], {
        env: { SVC_STORE: store },
      })
      expect([code, stderr]).toEqual([12, expect.stringContaining(newer)])
      expect(stderr).toContain('Update svc')
    } finally {
      home.remove()
    }
  })
})

type Alert = { readonly status: 'firing' | 'resolved'; readonly annotations: Readonly<Record<string, string>> }

describe.concurrent('W6 a node that is too old, beside nodes of the new version', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres(['max_connections=60'])
  })
  afterAll(async () => await server?.remove())

  test.each([
    ['the store', `UPDATE "meta" SET "version" = ${schema}`],
    ['the history in the store', `UPDATE "historyMeta" SET "version" = ${schema}`],
  ])(
    'W6 a running node continues when %s is upgraded; one that starts afterwards is not a member, and sends only after the other has been gone for a minute',
    { timeout: 6 * maxMs },
    async (what, upgrade) => {
      const alerts: Alert[] = []
      await using hook = await httpPeer((request, response) => {
        void textOf(request).then((body) => {
          alerts.push(...(JSON.parse(body) as { alerts: readonly Alert[] }).alerts)
          response.writeHead(204).end()
        })
      })
      let answer = 200
      await using shop = await httpPeer((_, response) => void response.writeHead(answer).end('page'))
      const yamlOf = (
        name: string,
      ): string => `serve: {node: ${name}, confirm: 5s, every: {Standard: 10s, Advanced: off}}
notify:
  - {name: chat, webhook: {url: "${hook.origin}/hook"}}
types:
  App:
    host: false
    monitors:
      - {kind: http, name: shop, url: '${shop.origin}/'}
`
      const store = await freshDatabase(server)
      const query = async (sql: string) => await server.query(sql, new URL(store).pathname.slice(1))
      await using running = await startNode({ store, yaml: yamlOf('running') })
      await until(async () => (await figure(running, 'svc_node_coordinated')) === 1, maxMs)
      await query(upgrade)
      await using old = await startNode({ store, yaml: yamlOf('old') })
      await until(() => old.log().includes('node old sends no messages: that is up to running (svc '), maxMs)
      const hasAccounts = what !== 'the store'
      expect([await status(old, '/readyz'), (await signIn(old)).status]).toEqual(hasAccounts ? [200, 200] : [503, 503])
      expect((await signIn(running)).status).toBe(200)

      answer = 500
      await until(() => alerts.length > 0, maxMs)
      await until(async () => (await figure(old, 'svc_incident_info')) === 1, maxMs)
      // Longer than a node that does not reach the store waits before it sends.
      await pause(75_000)
      expect(alerts.map((one) => one.status)).toEqual(['firing'])
      expect(await figure(running, 'svc_node_coordinated')).toBe(1)
      expect(await figure(old, 'svc_node_coordinated')).toBe(0)
      const nodes = await query('SELECT DISTINCT "node" FROM "nodes"')
      expect(nodes).toEqual([{ node: 'running' }])

      running.signal('SIGKILL')
      await running.ended
      await until(() => alerts.length > 1, 2 * maxMs)
      expect(alerts[1]).toMatchObject({ status: 'firing' })
      expect(JSON.stringify(alerts[1])).toContain('(uncoordinated)')
      expect(old.log()).toContain('node old sends messages by itself from now on: no other node is live')
      answer = 200
      await until(() => alerts.some((one) => one.status === 'resolved'), 2 * maxMs)
    },
  )
})
