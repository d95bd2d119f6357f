import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serveDefaults } from '../../src/core/protocol/service/service.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { adminOver } from '../support/store/admin.ts'
import { backends } from '../support/store/data-fixture.ts'
import { by, password } from './accounts.ts'
import { ask, type Got } from './site.ts'

type Node = {
  readonly ask: (path: string, from: string, over: { body?: unknown; headers?: Record<string, string> }) => Promise<Got>
  readonly close: () => Promise<void>
}

/** A node of `svc serve` behind a trusted proxy, which reports the addresses of its clients. */
async function startNode(store: string): Promise<Node> {
  const { service, runtime } = await testCore({ store })
  if (
    (
      await adminOver(service)
        .users.list()
        .catch(() => [])
    ).length === 0
  ) {
    await adminOver(service).users.add({ userName: 'Ann', email: 'ann@example.com', password, roles: ['Admin'] }, by)
  }
  const { port, stop } = await testServer({
    service,
    runtime,
    options: { ...serveDefaults, basic: true, trustProxy: ['127.0.0.1'] },
    limits: { lingerMs: 200, drainDelayMs: 0 },
  })
  return {
    ask: (path, from, { body, headers = {} }) =>
      ask(port, path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': from, ...headers },
        body: JSON.stringify(body ?? {}),
      }),
    close: async () => {
      await stop()
      await runtime.close()
    },
  }
}

describe.each(backends)('two nodes that share a store on $name', (backend) => {
  let store = ''
  let nodes: readonly Node[] = []
  beforeAll(async () => {
    await backend.start()
    store = await backend.fresh()
    nodes = [await startNode(store), await startNode(store)]
  }, 120_000)
  afterAll(async () => {
    for (const node of nodes) await node.close()
    await backend.stop()
  })
  const node = (n: number): Node => nodes[n % nodes.length] as Node

  const signIn = (n: number, from: string, Password = password, UserName = 'Ann') =>
    node(n).ask('/auth/credentials', from, { body: { UserName, Password } })
  const basic = (n: number, from: string, Password: string) =>
    node(n).ask('/assignroles', from, {
      body: { UserName: 'Ann', Roles: ['Ops'] },
      headers: { authorization: `Basic ${Buffer.from(`Ann:${Password}`).toString('base64')}` },
    })
  /** Each guess from an address of its own, over and over while the queue of the hashes is full. */
  async function guess(n: number, UserName: string): Promise<number> {
    for (;;) {
      const from = `198.51.${n >> 8}.${n & 255}`
      const { status } =
        n % 3 === 2 && UserName === 'Ann' ? await basic(n, from, 'wrong') : await signIn(n, from, 'wrong', UserName)
      if (status !== 503) return status
    }
  }
  /** Guesses until the limit is reached, and returns how many guesses were evaluated. All others are 429. */
  async function guesses(UserName: string): Promise<number> {
    const statuses: Record<string, number> = {}
    let next = 0
    const guesser = async (times: number): Promise<void> => {
      for (let n = 0; n < times; n += 1) {
        next += 1
        const status = await guess(next, UserName)
        statuses[status] = (statuses[status] ?? 0) + 1
      }
    }
    await Promise.all(Array.from({ length: 20 }, () => guesser(10)))
    await guesser(20)
    const { 401: evaluated = 0, ...others } = statuses
    expect(others).toEqual({ 429: 220 - evaluated })
    return evaluated
  }
  /** As if this time had passed since the guesses. */
  const pass = (ms: number) => backend.raw(store, `UPDATE "guesses" SET "fullAt" = "fullAt" - ${ms}`)

  test('P5 of 220 addresses that guess together at most 20 get an answer; the user signs in from a known address throughout', async () => {
    for (const n of [0, 1]) expect((await signIn(n, '192.0.2.1')).status).toBe(200)
    let attacking = true
    const ofUser: number[] = []
    const user = async (): Promise<void> => {
      for (let n = 0; attacking || n < 3; n += 1) {
        ofUser.push((await signIn(n, '192.0.2.1')).status)
      }
    }
    const signingIn = user()
    const evaluated = await guesses('Ann').finally(() => {
      attacking = false
    })
    await signingIn
    expect(evaluated).toBeLessThanOrEqual(20)
    // Fewer when the store was too busy to count some that had been evaluated: they are answered 503.
    expect(evaluated).toBeGreaterThan(0)
    // A busy store may refuse one.
    const others = ofUser.filter((status) => status !== 200)
    expect([...new Set(others)].filter((status) => status !== 503)).toEqual([])
    expect(others.length).toBeLessThanOrEqual(ofUser.length / 20)
  }, 60_000)

  test('P5 P2 then a new address gets the same 429 with the right password, a wrong one and an unknown name', async () => {
    expect(await guesses('Nobody')).toBeLessThanOrEqual(20)
    const answers = [
      await signIn(0, '203.0.113.1'),
      await signIn(1, '203.0.113.1', 'wrong'),
      await signIn(0, '203.0.113.1', 'wrong', 'Nobody'),
      await basic(1, '203.0.113.1', password),
    ]
    for (const got of answers) {
      expect(got.status).toBe(429)
      expect(Number(got.headers['retry-after'])).toBeGreaterThan(900)
      expect(got.json.ResponseStatus).toMatchObject({
        ErrorCode: 'TooManyRequests',
        Message: 'Too many failed sign-ins with this name',
      })
    }
  }, 60_000)

  test('P5 when the limit has filled again, a new address of the user signs in (simulated passing of time)', async () => {
    await pass(18 * 60_000)
    expect((await signIn(0, '203.0.113.1')).status).toBe(200)
    expect((await signIn(1, '203.0.113.2', 'wrong')).status).toBe(401)
    expect((await signIn(1, '203.0.113.2')).status).toBe(429)
    expect((await signIn(1, '203.0.113.1')).status).toBe(200)
  }, 60_000)
})
