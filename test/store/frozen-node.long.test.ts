import { loadavg } from 'node:os'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { lockKey } from '../../src/core/store/postgres/link.ts'
import { type DistantProxy, distantProxy } from '../support/faults/distant-proxy.ts'
import { type Answered, admin, ask, type ServeNode, signIn, startNode, tokenOf } from '../support/program/serve-node.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { freshDatabase, newUser, withData } from '../support/store/data-fixture.ts'
import { endsByDeadline } from '../support/suite/deadline.ts'
import { until } from '../support/suite/until.ts'

const users = ['ben', 'cleo', 'dora'] as const
/** How late the answers of the database reach the node, so that it can be stopped in the middle of a transaction. */
const distanceMs = 300

let server: PostgresServer
let far: DistantProxy
let frozen: ServeNode
let other: ServeNode
let token = ''
let store = ''
beforeAll(async () => {
  server = await startPostgres(['max_connections=60'])
  store = await freshDatabase(server)
  other = await startNode({ store })
  await withData(store, async (data) => {
    for (const name of users) await data.users.add(newUser(name), { who: 'local:test', correlationId: 'test' })
  })
  far = await distantProxy(server.port, 0)
  frozen = await startNode({ store: store.replace(`:${server.port}`, `:${far.port}`) })
  token = tokenOf(await signIn(other))
}, 120_000)
afterAll(async () => {
  await frozen?.stop()
  await other?.stop()
  await far?.[Symbol.asyncDispose]()
  await server?.remove()
})

const change = async ({ url }: ServeNode, UserName: string, ...Roles: readonly string[]): Promise<Answered> =>
  await ask(`${url}/assignroles`, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ UserName, Roles }),
  })

/** The lock of a user. */
const ofUser = async (name: string): Promise<string> =>
  await withData(store, async (data) => `user ${(await data.users.find(name))?.id}`)
/** The lock that all users have in common. */
const common = 'users'

/** How many sessions hold this lock and wait for their next statement, and how many wait for the lock. */
async function sessionsAt(lock: string): Promise<{ readonly idle: number; readonly waiting: number }> {
  const [row] =
    await server.query(`SELECT count(*) FILTER (WHERE granted AND state = 'idle in transaction')::int AS idle,
      count(*) FILTER (WHERE NOT granted)::int AS waiting FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND (classid::bigint << 32) + objid::bigint = ${lockKey(lock)}`)
  return row as { idle: number; waiting: number }
}

/** Stops the node while its calls hold this lock in the database, runs `work`, and lets it go on. */
async function whileFrozen(
  lock: string,
  calls: () => readonly Promise<unknown>[],
  work: () => Promise<void>,
): Promise<void> {
  let pending: readonly Promise<unknown>[] = []
  try {
    for (let attempt = 1; ; attempt += 1) {
      await until(async () => (await ask(`${frozen.url}/readyz`)).status === 200, 30_000)
      far.move(distanceMs)
      pending = calls()
      for (const call of pending) call.catch(() => {})
      // Their transactions begin after their callers are known.
      await until(async () => (await sessionsAt(lock)).idle > 0, 5_000, 5).catch(() => {})
      frozen.signal('SIGSTOP')
      const { idle, waiting } = await sessionsAt(lock)
      if (idle === 1 && waiting >= Math.min(1, pending.length - 1)) break
      frozen.signal('SIGCONT')
      await Promise.allSettled(pending)
      if (attempt === 20) throw new Error('the node was never stopped in a transaction')
    }
    await work()
  } finally {
    far.move(0)
    frozen.signal('SIGCONT')
    await Promise.allSettled(pending)
  }
}

/** Repeats what is refused for the time being. */
async function acknowledged(call: () => Promise<Answered>): Promise<number> {
  const began = performance.now()
  await until(
    async () => {
      const { status, body } = await call()
      if (![200, 503].includes(status)) throw new Error(`${status}: ${body}`)
      return status === 200
    },
    30_000,
    10,
  )
  return performance.now() - began
}

const report = (name: string, times: Readonly<Record<string, number>>): void => {
  const parts = Object.entries(times).map(([what, ms]) => `${what} ${Math.round(ms)} ms`)
  process.stdout.write(`${name}: ${parts.join(', ')} (load ${loadavg()[0]?.toFixed(1)})\n`)
}

let round = 0
const role = (): string => {
  round += 1
  return `R${round}`
}

describe('W6 a node that is frozen in the middle of a transaction', { timeout: 180_000 }, () => {
  test('W6 role changes of other users and sign-ins at another node do not wait for it', async () => {
    await whileFrozen(
      await ofUser('ben'),
      () => [change(frozen, 'ben', role())],
      async () => {
        const times = {
          'role change of another user': await acknowledged(() => change(other, 'cleo', role())),
          'sign-in': await acknowledged(() => signIn(other)),
          Admin: await acknowledged(() => change(other, 'dora', 'Admin')),
        }
        report('frozen in a role change', times)
      },
    )
  })
  test('W6 a role change of the same user at another node is made within two seconds, while the node stays frozen', async () => {
    await whileFrozen(
      await ofUser('ben'),
      () => [change(frozen, 'ben', role())],
      async () => {
        const ms = await endsByDeadline(
          2_000,
          acknowledged(() => change(other, 'ben', role())),
          2,
        )
        report('frozen in a role change', { 'role change of the same user': ms })
      },
    )
  })
  test('W6 with several role changes of one user at the frozen node, the next one at another node is made within two seconds', async () => {
    await whileFrozen(
      await ofUser('ben'),
      () => [0, 1, 2, 3].map(async () => await change(frozen, 'ben', role())),
      async () => {
        const ms = await endsByDeadline(
          2_000,
          acknowledged(() => change(other, 'ben', role())),
          2,
        )
        report('frozen in four role changes of one user', { 'role change of the same user': ms })
      },
    )
  })
  test('W6 frozen in a change of who is Admin, it holds up another one for less than two seconds, and no other change', async () => {
    await whileFrozen(
      common,
      () => [change(frozen, 'ben', 'Admin')],
      async () => {
        const another = acknowledged(() => change(other, 'dora', `Admin`))
        const times = {
          'role change of another user': await acknowledged(() => change(other, 'cleo', role())),
          'sign-in': await acknowledged(() => signIn(other, admin.password)),
          Admin: await endsByDeadline(2_000, another, 2),
        }
        report('frozen in a change of Admin', times)
      },
    )
  })
})
