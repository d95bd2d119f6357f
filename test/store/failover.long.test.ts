import { loadavg } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type CutProxy, cutProxy } from '../support/faults/cut-proxy.ts'
import { peer, speaks } from '../support/faults/faults.ts'
import { type Answered, admin, ask, type ServeNode, signIn, startNode, tokenOf } from '../support/program/serve-node.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { freshDatabase, newUser, withData } from '../support/store/data-fixture.ts'
import { until } from '../support/suite/until.ts'

type Kind = 'sign-in' | 'role change' | 'health' | 'livez'
type Called = { readonly kind: Kind; readonly status: number; readonly at: number; readonly ms: number }

/** Two nodes whose store is on a primary and a streaming standby of it, in that order. */
type Cluster = AsyncDisposable & {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  /** Between the two. */
  readonly link: CutProxy
  readonly nodes: readonly [ServeNode, ServeNode]
  readonly database: string
}

async function cluster(): Promise<Cluster> {
  const first = await startPostgres(['hot_standby=on', 'max_connections=60', 'wal_sender_timeout=60s'])
  const own = new URL(await freshDatabase(first))
  const link = await cutProxy(first.port)
  const { primary, standby } = await first.standby(link.port)
  const store = own.href.replace(`:${primary.port}`, `:${primary.port},127.0.0.1:${standby.port}`)
  await until(async () => (await primary.query('SELECT 1 FROM pg_stat_replication')).length === 1, 30_000)
  const target = await peer(speaks('hello\n'))
  const yaml = `types:\n  App:\n    - {kind: tcp, name: greeting, host: 127.0.0.1, port: ${target.port}, expect: hello}\n`
  const nodes = [await startNode({ store, yaml }), await startNode({ store, yaml })] as const
  await withData(own.href, async (data) => {
    for (const name of ['kept', 'lost']) await data.users.add(newUser(name), by)
  })
  return {
    primary,
    standby,
    link,
    nodes,
    database: own.pathname.slice(1),
    [Symbol.asyncDispose]: async () => {
      for (const node of nodes) await node.stop()
      await standby.remove()
      await primary.remove()
      await link.close()
      await target.close()
    },
  }
}
const by = { who: 'local:test', correlationId: 'test' }

const assign = async ({ url }: ServeNode, token: string, UserName: string, ...Roles: readonly string[]) =>
  await ask(`${url}/assignroles`, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ UserName, Roles }),
  })
const rolesOf = async (node: ServeNode, token: string, name: string): Promise<readonly string[]> =>
  (JSON.parse((await assign(node, token, name)).body) as { AllRoles?: readonly string[] }).AllRoles ?? []

/** Callers at both nodes, who do not stop for anything. */
function callers({ nodes }: Cluster, token: string) {
  const calls: Called[] = []
  let goesOn = true
  const call = async (kind: Kind, work: () => Promise<Answered>): Promise<void> => {
    const began = performance.now()
    const status = await work().then(
      (answer) => answer.status,
      () => 0,
    )
    calls.push({ kind, status, at: performance.now(), ms: performance.now() - began })
  }
  let n = 0
  const loops = nodes.flatMap((node) =>
    (
      [
        ['sign-in', () => signIn(node, admin.password)],
        [
          'role change',
          () => {
            n += 1
            return assign(node, token, 'kept', `R${n % 50}`)
          },
        ],
        ['health', () => ask(`${node.url}/healthcheck?ServerType=App&ExecutionMode=Basic`)],
        ['livez', () => ask(`${node.url}/livez`)],
      ] as const
    ).map(async ([kind, work]) => {
      while (goesOn) {
        await call(kind, work)
        await pause(50)
      }
    }),
  )
  return {
    calls,
    stop: async () => {
      goesOn = false
      await Promise.all(loops)
    },
  }
}

const setBack = /the store is an earlier state of itself, as after a restore or a failover: (.*)/

describe('W5 failover of the store to a streaming standby', { timeout: 180_000 }, () => {
  test('W5 W10 the primary dies and a standby that lags is promoted: callers get 503 in time, sign-in works again, only what the standby lacked is lost, and both nodes say so', async () => {
    await using all = await cluster()
    const { primary, standby, nodes, link } = all
    const token = tokenOf(await signIn(nodes[0]))
    expect((await assign(nodes[0], token, 'lost', 'Kept')).status).toBe(200)
    const { calls, stop } = callers(all, token)
    await pause(2_000)
    await until(
      async () =>
        (await primary.query('SELECT 1 FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()')).length === 1,
      30_000,
    )
    link.stall()
    // Acknowledged by the primary alone.
    expect((await assign(nodes[0], token, 'lost', 'Gone')).status).toBe(200)
    expect((await assign(nodes[1], token, 'lost', 'GoneToo')).status).toBe(200)
    await pause(500)
    const died = performance.now()
    await primary.stop('SIGQUIT')
    await pause(2_000)
    const promoted = performance.now()
    await standby.query('SELECT pg_promote()')
    const readable = performance.now()
    const works = await Promise.all(
      nodes.map(async (node) => {
        await until(async () => (await signIn(node)).status === 200, 30_000, 20)
        return performance.now() - readable
      }),
    )
    await pause(1_000)
    for (const node of nodes) await until(() => setBack.test(node.log()), 40_000)
    await stop()

    const during = calls.filter(({ at }) => at > died && at < readable + Math.max(...works))
    const table = (['sign-in', 'role change', 'health', 'livez'] as const).map((kind) => {
      const own = during.filter((one) => one.kind === kind)
      const statuses = Object.groupBy(own, ({ status }) => status)
      const counts = Object.entries(statuses).map(([status, some]) => `${some?.length}× ${status}`)
      return `${kind}: ${counts.join(', ')}, longest ${Math.round(Math.max(...own.map(({ ms }) => ms)))} ms`
    })
    process.stdout.write(
      `${table.join('\n')}\npg_promote took ${Math.round(readable - promoted)} ms; sign-in works ${works.map(Math.round).join(' and ')} ms later (load ${loadavg()[0]?.toFixed(1)})\n`,
    )
    // No call is answered by anything else: nothing hangs, and nothing is wrongly refused.
    const odd = calls.filter(
      ({ kind, status }) => status !== 200 && (kind === 'livez' || kind === 'health' || status !== 503),
    )
    expect(odd).toEqual([])
    expect(await rolesOf(nodes[0], token, 'lost')).toEqual(['Kept'])
    expect((await rolesOf(nodes[1], token, 'kept')).length).toBeGreaterThan(0)
    for (const node of nodes) {
      const [, lost = ''] = setBack.exec(node.log()) ?? []
      expect(lost).toMatch(/^\d+ of the audit entries that this server has written \(\d+/)
    }
  })
  test('W5 W10 a standby that has everything takes over without a loss, and no node says that the store was set back', async () => {
    await using all = await cluster()
    const { primary, standby, nodes } = all
    const token = tokenOf(await signIn(nodes[0]))
    expect((await assign(nodes[0], token, 'kept', 'Kept')).status).toBe(200)
    expect((await assign(nodes[1], token, 'kept', 'KeptToo')).status).toBe(200)
    // As a planned switch: the primary ends once the standby has received everything.
    await primary.stop('SIGINT')
    await standby.query('SELECT pg_promote()')
    for (const node of nodes) await until(async () => (await signIn(node)).status === 200, 30_000)
    expect(await rolesOf(nodes[0], token, 'kept')).toEqual(['Kept', 'KeptToo'])
    // Longer than the time between two looks.
    await pause(12_000)
    for (const node of nodes) expect(node.log()).not.toMatch(setBack)
  })
})
