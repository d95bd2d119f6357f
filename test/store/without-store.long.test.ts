import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, type ServeNode, signIn, startNode, tokenOf } from '../support/program/serve-node.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { until } from '../support/suite/until.ts'

const maxMs = 60_000
let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(async () => await server?.remove())

const status = async (node: ServeNode, path: string): Promise<number> => (await ask(`${node.url}${path}`)).status
const health = '/healthcheck?ServerType=App&ExecutionMode=Basic'
/** Open incidents, and checks whose confirmed state is bad. */
async function figures(node: ServeNode): Promise<{ readonly incidents: number; readonly failed: number }> {
  const lines = (await ask(`${node.url}/metrics`)).body.split('\n')
  return {
    incidents: lines.filter((line) => line.startsWith('svc_incident_info{')).length,
    failed: lines.filter((line) => line.startsWith('svc_check_confirmed{') && line.endsWith(' 0')).length,
  }
}

describe('W16 the store of svc serve is gone', () => {
  test('W16 while PostgreSQL is stopped, health is checked, states change in memory, /livez is 200 and /readyz 503; sign-in, roles, silences and history are 503, and work again afterwards', {
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
    await using node = await startNode({ store: await freshDatabase(server), yaml })
    const token = tokenOf(await signIn(node))
    const as = { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const post = async (path: string, body: object): Promise<number> =>
      (await ask(`${node.url}${path}`, { method: 'POST', headers: as, body: JSON.stringify(body) })).status
    const get = async (path: string): Promise<number> => (await ask(`${node.url}${path}`, { headers: as })).status
    /** The status of each request that needs the store, by name. */
    const needing = async (): Promise<Readonly<Record<string, number>>> => ({
      'sign-in': (await signIn(node)).status,
      'who is signed in': await get('/auth'),
      roles: await post('/assignroles', { UserName: 'Ann', Roles: ['Ops'] }),
      'list of silences': await get('/silences'),
      history: await get('/history'),
    })
    const all = (code: number) => ({
      'sign-in': code,
      'who is signed in': code,
      roles: code,
      'list of silences': code,
      history: code,
    })
    expect(await needing()).toEqual(all(200))
    await until(async () => (await figures(node)).failed === 0 && (await status(node, health)) === 200, maxMs)

    await server.stop('SIGQUIT')
    await until(async () => (await status(node, '/readyz')) === 503, maxMs)
    expect([await status(node, '/livez'), await status(node, health)]).toEqual([200, 200])
    expect(await needing()).toEqual(all(503))
    answer = 500
    await until(async () => (await figures(node)).incidents === 1, maxMs, 250)
    expect(await figures(node)).toMatchObject({ incidents: 1, failed: 1 })
    expect(await status(node, health)).toBe(503)
    const refreshed = await ask(`${node.url}${health}`, { headers: { 'cache-control': 'no-cache' } })
    expect(refreshed.status).toBe(503)
    expect([await status(node, '/livez'), await status(node, '/readyz')]).toEqual([200, 503])
    answer = 200
    await until(async () => (await figures(node)).incidents === 0, maxMs, 250)
    expect(await status(node, health)).toBe(200)

    server = await server.restart()
    await until(async () => (await status(node, '/readyz')) === 200, maxMs)
    await until(async () => JSON.stringify(await needing()) === JSON.stringify(all(200)), maxMs)
  })
  test('W16 with --only health there is nothing to wait for: /readyz is 200, although SVC_STORE names a database that is gone', {
    timeout: maxMs,
  }, async () => {
    await using shop = await httpPeer((_, response) => void response.writeHead(200).end('page'))
    const yaml = `types:\n  App:\n    host: false\n    monitors:\n      - {kind: http, name: shop, url: '${shop.origin}/'}\n`
    await using node = await startNode({
      store: `postgres://svc@127.0.0.1:${await freePort()}/svc`,
      yaml,
      only: 'health',
    })
    expect([await status(node, '/livez'), await status(node, '/readyz'), await status(node, health)]).toEqual([
      200, 200, 200,
    ])
  })
})
