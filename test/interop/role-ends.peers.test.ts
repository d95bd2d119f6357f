import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { JsonServiceClient } from '@servicestack/client'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { aheadByFile, fakeTimeMissing } from '../support/faults/clock.ts'
import { admin, ask, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { svcHome } from '../support/program/svc.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'
import { AssignRoles, Authenticate, UnAssignRoles } from './dtos.ts'

const password = admin.password
const signInAs = (UserName: string): Authenticate =>
  new Authenticate({ provider: 'credentials', UserName, Password: password })

/** Ann, an unmodified client with her bearer token. */
async function annAt({ url }: ServeNode): Promise<JsonServiceClient> {
  const client = new JsonServiceClient(url)
  const { BearerToken = '' } = await client.post(signInAs('Ann'))
  client.bearerToken = BearerToken
  return client
}

/** The headers of a user who has signed in: with the token, and with the cookies of a browser. */
async function credentialsOf({ url }: ServeNode, UserName: string) {
  const response = await fetch(`${url}/auth/credentials`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ UserName, Password: password }),
  })
  const { BearerToken = '' } = (await response.json()) as { readonly BearerToken?: string }
  const cookie = response.headers
    .getSetCookie()
    .map((line) => line.replace(/;.*/s, ''))
    .join('; ')
  return { token: { authorization: `Bearer ${BearerToken}` }, session: { cookie } }
}

/** The status of a request that only an Admin may make, and changes nothing. */
const statusAs = async ({ url }: ServeNode, headers: Readonly<Record<string, string>>): Promise<number> =>
  (
    await ask(`${url}/assignroles`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', ...headers },
      body: '{"UserName":"Ann","Roles":[]}',
    })
  ).status

async function addUsers(store: string, ...names: readonly string[]): Promise<void> {
  const home = svcHome()
  for (const name of names) {
    const { code, stderr } = await home.svc(['users', 'add', name, '--password-stdin', '--store', store], {
      stdin: password,
    })
    if (code !== 0) throw new Error(stderr)
  }
  home.remove()
}

peerSuite(postgresMissing, 'O8 three nodes on one PostgreSQL', () => {
  let server: PostgresServer
  let store: string
  let nodes: readonly ServeNode[]
  beforeAll(async () => {
    server = await startPostgres(['max_connections=60'])
    store = await freshDatabase(server)
    nodes = [await startNode({ store })]
    await addUsers(store, 'Bob')
    nodes = [...nodes, await startNode({ store }), await startNode({ store })]
  }, 120_000)
  afterAll(async () => {
    for (const node of nodes ?? []) await node.stop()
    await server?.remove()
  })

  test('O8 a role for 3 s that an unmodified npm client grants is refused on every node, with the token and the session issued before', async () => {
    const [first, second] = nodes
    if (!first || !second) throw new Error('there are no nodes')
    const ann = await annAt(first)
    const expires = new Date(Date.now() + 3_000).toISOString()
    const answer = await ann.post(new AssignRoles({ UserName: 'Bob', Roles: ['Admin', 'Deploy'], Meta: { expires } }))
    expect(answer).toEqual({ AllRoles: ['Admin', 'Deploy'], AllPermissions: [], Meta: { expires } })
    const bob = await credentialsOf(second, 'Bob')
    const statuses = async () => {
      const all = nodes.flatMap((node) => [statusAs(node, bob.token), statusAs(node, bob.session)])
      return await Promise.all(all)
    }
    expect(await statuses()).toEqual([200, 200, 200, 200, 200, 200])
    expect(Date.now()).toBeLessThan(Date.parse(expires))
    // By the clock of the store, which is that of this machine.
    await until(() => Date.now() > Date.parse(expires) + 50, 10_000)
    expect(await statuses()).toEqual([403, 403, 403, 403, 403, 403])
    const roles = await ann.post(new AssignRoles({ UserName: 'Bob' }))
    expect(roles).toEqual({ AllRoles: [], AllPermissions: [] })
    const ended = await server.query(
      `SELECT "target", "after"::json->'ended'->>'name' AS "name" FROM "audit" WHERE "event" = 'roles.ended' ORDER BY 2`,
      new URL(store).pathname.slice(1),
    )
    expect(ended).toEqual([
      { target: 'Bob', name: 'Admin' },
      { target: 'Bob', name: 'Deploy' },
    ])
  }, 60_000)

  test('O8 an unmodified client gets a 400 that names the field, and a role without an end stays', async () => {
    const [first] = nodes
    if (!first) throw new Error('there are no nodes')
    const ann = await annAt(first)
    for (const expires of ['tomorrow', '2020-01-01T00:00:00Z']) {
      const request = new AssignRoles({ UserName: 'Bob', Roles: ['Deploy'], Meta: { expires } })
      const error = (await ann.post(request).catch((refusal: unknown) => refusal)) as {
        readonly responseStatus?: { readonly errors?: readonly { readonly fieldName?: string }[] }
      }
      expect(error.responseStatus?.errors?.map(({ fieldName }) => fieldName)).toEqual(['Meta.expires'])
    }
    const request = { UserName: 'Bob', Roles: ['Deploy'] }
    expect(await ann.post(new AssignRoles(request))).toEqual({ AllRoles: ['Deploy'], AllPermissions: [] })
    expect(await ann.post(new UnAssignRoles(request))).toEqual({ AllRoles: [], AllPermissions: [] })
  }, 60_000)
})

peerSuite(fakeTimeMissing, 'O8 a server whose clock is set', () => {
  test('O8 an end that was seen is final: the clock goes an hour forward and back, and the server restarts', async () => {
    const folder = temporaryFolder()
    const store = join(folder, 'store', 'svc.db')
    const offset = join(folder, 'offset')
    const setClock = (seconds: number): void => writeFileSync(offset, `+${seconds}`)
    setClock(0)
    const node = await startNode({ store, env: aheadByFile(offset) })
    onTestFinished(() => node[Symbol.asyncDispose]())
    await addUsers(store, 'Bob', 'Cat')
    const ann = await annAt(node)
    for (const [UserName, expires] of [
      ['Bob', 'PT30M'],
      ['Cat', 'PT3H'],
    ] as const) {
      await ann.post(new AssignRoles({ UserName, Roles: ['Admin'], Meta: { expires } }))
    }
    const [bob, cat] = [(await credentialsOf(node, 'Bob')).session, (await credentialsOf(node, 'Cat')).session]
    const statuses = (at: ServeNode) => Promise.all([statusAs(at, bob), statusAs(at, cat)])
    expect(await statuses(node)).toEqual([200, 200])
    setClock(3_600)
    await until(async () => (await statusAs(node, bob)) === 403, 10_000)
    expect(await statuses(node)).toEqual([403, 200])
    setClock(0)
    for (let look = 0; look < 20; look += 1) expect(await statuses(node)).toEqual([403, 200])
    await node.stop()
    await using again = await startNode({ store })
    expect(await statuses(again)).toEqual([403, 200])
  }, 90_000)
})
