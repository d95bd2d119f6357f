import { loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type Peer, peer, speaks } from '../support/faults/faults.ts'
import { type Answered, admin, ask, type ServeNode, signIn, startNode, tokenOf } from '../support/program/serve-node.ts'
import { buildVersion, isHere, version01, version01Missing } from '../support/program/version-0.1.ts'
import { balancedNodes } from '../support/servers/balanced-nodes.ts'
import { postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { haproxyMissing, startHaproxy } from '../support/servers/reverse-proxy.ts'
import { lastingPort } from '../support/servers/server.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

/** The last commit in which every change of a user takes one lock, with the schema of this version. */
const commonLock = '6deaf11d05fb4158c7f68bab2f14cfcfc2230210'
const versions = [
  ['0.1, the last release', version01],
  ['the version before, which locks all users for each change', commonLock],
] as const
const missing =
  version01Missing ??
  (isHere(commonLock) ? undefined : 'the version before is not in the history that is here') ??
  postgresMissing ??
  haproxyMissing

/** Calls of each kind in a second, by so many callers. */
const perSecond = 20
const callerCount = 10
const users = Array.from({ length: callerCount }, (_, n) => `user-${n}`)

type Called = { readonly ok: boolean; readonly repeats: number; readonly ms: number; readonly why: string }
type Load = {
  readonly roleCalls: Called[]
  readonly health: Called[]
  /** The roles of each user that were acknowledged last. */
  readonly acknowledged: Map<string, readonly string[]>
  readonly stop: () => Promise<void>
}

const json = { accept: 'application/json', 'content-type': 'application/json' }
const post = async (url: string, token: string, path: string, body: object): Promise<Answered> =>
  await ask(`${url}${path}`, {
    method: 'POST',
    headers: { ...json, authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  })

/** Makes a call, and once more a second later if it fails: a balancer without a server that is ready answers at once. */
async function called(work: () => Promise<Answered>, right: (answer: Answered) => boolean): Promise<Called> {
  const began = performance.now()
  let why = ''
  for (let repeats = 0; repeats < 2; repeats += 1) {
    if (repeats > 0) await pause(1_000)
    const answer = await work().catch((error: unknown) => ({ status: 0, body: String(error) }))
    if (right(answer)) return { ok: true, repeats, ms: performance.now() - began, why }
    why = `${answer.status}: ${answer.body.slice(0, 200)}`
  }
  return { ok: false, repeats: 1, ms: performance.now() - began, why }
}

/** Role calls and questions for health through a balancer, at a fixed rate, whatever becomes of them. */
function startLoad(url: string, token: string): Load {
  const [roleCalls, health]: [Called[], Called[]] = [[], []]
  const acknowledged = new Map<string, readonly string[]>()
  let goesOn = true
  const everyMs = (1_000 * callerCount) / perSecond
  const loop = async (n: number, work: () => Promise<void>): Promise<void> => {
    let due = performance.now() + (n * everyMs) / callerCount
    while (goesOn) {
      await pause(Math.max(0, due - performance.now()))
      due += everyMs
      await work()
    }
  }
  const changes = users.map((UserName, n) => {
    let round = 0
    return loop(n, async () => {
      round += 1
      const [role, before] = [`R${round % 5}`, acknowledged.get(UserName) ?? []]
      const removes = before.includes(role)
      const after = removes ? before.filter((one) => one !== role) : [...before, role]
      const path = removes ? '/unassignroles' : '/assignroles'
      const one = await called(
        () => post(url, token, path, { UserName, Roles: [role] }),
        ({ status, body }) => status === 200 && JSON.stringify(rolesIn(body)) === JSON.stringify(after),
      )
      roleCalls.push(one)
      if (one.ok) acknowledged.set(UserName, after)
    })
  })
  const questions = users.map((_, n) =>
    loop(n, async () => {
      const path = '/healthcheck?ServerType=App&ExecutionMode=Basic'
      health.push(
        await called(
          () => ask(`${url}${path}`),
          ({ status }) => status === 200,
        ),
      )
    }),
  )
  return {
    roleCalls,
    health,
    acknowledged,
    stop: async () => {
      goesOn = false
      await Promise.all([...changes, ...questions])
    },
  }
}

const rolesIn = (body: string): readonly string[] =>
  (JSON.parse(body) as { AllRoles?: readonly string[] }).AllRoles ?? []

const figures = (calls: readonly Called[]): string => {
  const times = calls.map(({ ms }) => ms).toSorted((a, b) => a - b)
  const at = (share: number): number => Math.round(times[Math.floor((times.length - 1) * share)] ?? Number.NaN)
  const repeated = calls.filter(({ repeats }) => repeats > 0).length
  const reasons = [...new Set(calls.flatMap(({ why }) => (why === '' ? [] : [`\n    ${why.replaceAll(/\s+/g, ' ')}`])))]
  return `${calls.length} calls, ${calls.filter(({ ok }) => !ok).length} failed, ${repeated} repeated; ms: median ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)}${reasons.join('')}`
}

peerSuite(missing, 'three nodes on PostgreSQL behind HAProxy', () => {
  test.each(versions)(
    'W6 nodes of %s are replaced one by one under load: no role call fails that is made once more, and health is answered all the time',
    async (name, commit) => {
      const server = await startPostgres(['max_connections=80'])
      const earlier = buildVersion(commit)
      const target: Peer = await peer(speaks('hello\n'))
      const store = await freshDatabase(server)
      // The words of the next line keep the file as it is for 0.1, which knows no schedule.
      const yaml = `# every: not known to 0.1\ntypes:\n  App:\n    - {kind: tcp, name: greeting, host: 127.0.0.1, port: ${target.port}, expect: hello}\n`
      const nodes: ServeNode[] = []
      onTestFinished(async () => {
        for (const node of nodes) await node[Symbol.asyncDispose]()
        await target.close()
        earlier.remove()
        await server.remove()
      })

      for (let n = 0; n < 3; n += 1)
        nodes.push(await startNode({ store, yaml, program: earlier.program, port: await lastingPort() }))
      const ports = nodes.map(({ port }) => port)
      const version = async (): Promise<unknown> =>
        (await server.query('SELECT "version" FROM "meta"', new URL(store).pathname.slice(1)))[0]?.version
      const before = await version()
      const direct = nodes[0] as ServeNode
      const token = tokenOf(await signIn(direct))
      for (const userName of users) await addUser(server, store, userName)
      await using balancer = await startHaproxy(balancedNodes(ports))
      const url = `http://127.0.0.1:${balancer.port}`
      await until(async () => (await post(url, token, '/assignroles', { UserName: users[0] })).status === 200)
      const load = startLoad(url, token)
      await pause(3_000)
      for (const [n, node] of nodes.entries()) {
        expect(await node.stop()).toBe(0)
        nodes[n] = await startNode({ store, yaml, port: ports[n] ?? 0 })
        await pause(3_000)
      }
      await load.stop()
      process.stdout.write(
        `${name}: schema ${before} to ${await version()}, load ${loadavg()[0]?.toFixed(1)}\n  role calls: ${figures(load.roleCalls)}\n  health: ${figures(load.health)}\n`,
      )
      expect(load.roleCalls.length).toBeGreaterThan(100)
      const failed = [...load.roleCalls, ...load.health].filter(({ ok }) => !ok)
      expect([failed.length, failed.slice(0, 3)]).toEqual([0, []])
      // Whatever was acknowledged, by a node of either version, is there.
      for (const UserName of users) {
        const { body } = await post(url, token, '/assignroles', { UserName })
        expect([UserName, rolesIn(body)]).toEqual([UserName, load.acknowledged.get(UserName)])
      }
      expect((await signIn({ url }, admin.password)).status).toBe(200)
    },
    300_000,
  )
})

/** Adds a user in a schema of any version. */
async function addUser(server: Awaited<ReturnType<typeof startPostgres>>, store: string, name: string): Promise<void> {
  const database = new URL(store).pathname.slice(1)
  await server.query(
    `INSERT INTO "users" ("id", "userName", "nameKey", "disabled", "createdAt", "epoch") VALUES ('${name}', '${name}', '${name}', 0, 1, 0);
      INSERT INTO "names" ("key", "userId") VALUES ('${name}', '${name}')`,
    database,
  )
}
