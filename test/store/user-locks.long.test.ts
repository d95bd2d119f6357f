import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Data, openData, type User } from '../../src/core/store/index.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { actor, faultOf, freshDatabase, newUser, signInOf } from '../support/store/data-fixture.ts'
import { until } from '../support/suite/until.ts'

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres(['max_connections=40'])
})
afterAll(async () => await server.remove())

/** Every change that is about this user hangs at its audit entry, in its transaction, while the test has this lock. */
const hangingUser = 'Harry'
const gate = 42
const hanging = `CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN IF NEW."target" = '${hangingUser}' THEN PERFORM pg_advisory_xact_lock_shared(${gate}); END IF; RETURN NEW; END $$;
  CREATE TRIGGER hang BEFORE INSERT ON "audit" FOR EACH ROW EXECUTE FUNCTION hang()`

let url = ''
let nodes: readonly [Data, Data]
let user: User
let other: User
beforeEach(async () => {
  url = await freshDatabase(server)
  nodes = [await openData({ store: url, create: true, env: {} }), await openData({ store: url, create: true, env: {} })]
  await nodes[0].users.add(newUser('root', { roles: ['Admin'] }), actor())
  await nodes[0].users.add(newUser('second', { roles: ['Admin'] }), actor())
  user = await nodes[0].users.add(newUser(hangingUser, { passwordHash: 'old', roles: ['Old'] }), actor())
  other = await nodes[1].users.add(newUser('other', { passwordHash: 'old' }), actor())
  await nodes[0].sessions.begin({ ...signInOf(user), settles: undefined }, actor())
  await server.query(hanging, database())
})
afterEach(async () => {
  for (const node of nodes) await node.close()
})
const database = (): string => new URL(url).pathname.slice(1)

const roles = (...names: readonly string[]) => ({
  add: { roles: names, permissions: [] },
  remove: { roles: [], permissions: [] },
})
/** How many transactions hang at the gate, and how many wait for a lock of svc. */
const waiting = async (): Promise<{ readonly atGate: number; readonly behind: number }> => {
  const [row] = await server.query(
    `SELECT count(*) FILTER (WHERE classid = 0 AND objid = ${gate})::int AS "atGate",
        count(*) FILTER (WHERE NOT (classid = 0 AND objid = ${gate}))::int AS "behind"
      FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    database(),
  )
  return row as { atGate: number; behind: number }
}

/**
 * Runs `work` while the change hangs in its transaction, and says how `work` ended. Throws if the change did not hang until
 * then: what waits for its locks ends only after it. PostgreSQL cancels the change after 1.5 s, and a busy machine may need
 * longer for the rest, so that the whole is repeated; work that always waits never succeeds.
 */
async function beside<T>(change: () => Promise<unknown>, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const holder = await server.client(database())
    await holder.query(`SELECT pg_advisory_lock(${gate})`)
    const changed = change().then(
      () => undefined,
      (error: unknown) => error,
    )
    try {
      await until(async () => (await waiting()).atGate > 0)
      const result = await work()
      if ((await waiting()).atGate > 0) return result
      if (attempt === 5) throw new Error('the change no longer hung when the work ended')
    } catch (error) {
      if (attempt === 5) throw error
    } finally {
      await holder.end()
      await changed
    }
  }
}

const none = { roles: [], permissions: [] }
const admin = { roles: ['Admin'], permissions: [] }
/** Changes of the user, none of which touches Admin but for those that say so. */
const changes: Readonly<Record<string, () => Promise<unknown>>> = {
  'a role change': () => nodes[0].users.changeGrants(user.id, roles(`R${Math.random()}`), actor()),
  'a role change with an end': () =>
    nodes[0].users.changeGrants(user.id, { ...roles(`R${Math.random()}`), endsAt: Date.now() + 3_600_000 }, actor()),
  'a role that ends': async () => {
    const name = `R${Math.random()}`
    await nodes[0].users.changeGrants(other.id, roles('Warm'), actor())
    await server.query(
      `INSERT INTO "grants" ("userId", "kind", "name", "endsAt") VALUES ('${user.id}', 'role', '${name}', 1)`,
      database(),
    )
    return await nodes[0].users.find(hangingUser)
  },
  'a new password': () => nodes[0].users.setPassword(user.id, 'new', actor()),
  'the end of all sessions': async () => {
    await nodes[0].sessions
      .begin({ ...signInOf((await nodes[0].users.byId(user.id)) ?? user) }, actor())
      .catch(() => {})
    return await nodes[0].users.endSessions(user.id, undefined, actor())
  },
  'an identity': () => nodes[0].identities.link(user.id, { issuer: 'https://i', subject: `${Math.random()}` }, actor()),
  'the role Admin': async () => {
    const isAdmin = (await nodes[0].users.byId(user.id))?.roles.includes('Admin')
    return await nodes[0].users.changeGrants(
      user.id,
      isAdmin ? { add: none, remove: admin } : { add: admin, remove: none },
      actor(),
    )
  },
  'a user who is disabled': () => nodes[0].users.setDisabled(user.id, true, actor()),
  'a user who is removed': () => nodes[0].users.remove(user.id, actor()),
}
const touchAdmin = ['the role Admin', 'a user who is disabled', 'a user who is removed']

describe('W6 locks of users in PostgreSQL', { timeout: 60_000 }, () => {
  test.each(Object.keys(changes))(
    'W6 while %s of one user hangs at one node, role changes, passwords and sign-ins of others go on at another',
    async (name) => {
      const done = await beside(changes[name] as () => Promise<unknown>, async () => {
        const { after } = await nodes[1].users.changeGrants(other.id, roles(`R${Math.random()}`), actor())
        await nodes[1].users.setPassword(other.id, 'new', actor())
        const { epoch } = (await nodes[1].users.byId(other.id)) ?? other
        await nodes[1].sessions.begin({ ...signInOf({ id: other.id, epoch }) }, actor())
        await nodes[1].users.add(newUser(`new-${Math.random()}`), actor())
        return after.roles.length
      })
      expect(done).toBeGreaterThan(0)
    },
  )
  test.each(Object.keys(changes).filter((name) => !touchAdmin.includes(name)))(
    'W6 while %s of one user hangs, others get and lose Admin',
    async (name) => {
      await beside(changes[name] as () => Promise<unknown>, async () => {
        await nodes[1].users.changeGrants(other.id, roles('Admin'), actor())
        await nodes[1].users.changeGrants(other.id, { add: none, remove: admin }, actor())
        await nodes[1].users.setDisabled(other.id, true, actor())
        await nodes[1].users.setDisabled(other.id, false, actor())
      })
    },
  )
  test.each(touchAdmin)('W6 O6 while %s hangs, another change of who is Admin waits for it', async (name) => {
    // Of another kind: a second change of the same user would wait for the lock of that user.
    const others = [
      () => nodes[1].users.changeGrants(other.id, roles('Admin'), actor()),
      () => nodes[1].users.setDisabled(other.id, true, actor()),
      () => nodes[1].users.remove(other.id, actor()),
    ]
    for (const change of others) {
      let pending: Promise<unknown> = Promise.resolve()
      await beside(changes[name] as () => Promise<unknown>, async () => {
        await pending
        pending = change().catch(() => {})
        await until(async () => (await waiting()).behind > 0, 5_000)
      })
      await pending
      await nodes[0].users.setDisabled(user.id, false, actor()).catch(() => {})
      const [there] = await server.query(`SELECT 1 FROM "users" WHERE "id" = '${user.id}'`, database())
      if (!there) user = await nodes[0].users.add(newUser(hangingUser), actor())
      const still = await nodes[1].users.byId(other.id)
      if (!still) other = await nodes[1].users.add(newUser('other'), actor())
      else await nodes[1].users.setDisabled(other.id, false, actor())
    }
  })
  test('W6 two changes of one user run one after the other, and the second one knows the first', async () => {
    let second: Promise<readonly string[]> | undefined
    await beside(
      () => nodes[0].users.changeGrants(user.id, roles('First'), actor()),
      async () => {
        await second?.catch(() => {})
        second = nodes[1].users
          .changeGrants(user.id, roles(`Second-${Math.random()}`), actor())
          .then(({ before }) => before.roles)
        second.catch(() => {})
        await until(async () => (await waiting()).behind > 0, 5_000)
      },
    )
    expect(await second).toEqual(expect.arrayContaining(['Old', 'First']))
  })
  test('W6 S13 while a seal hangs, role changes and sign-ins go on', async () => {
    await server.query(
      `CREATE FUNCTION hang_seals() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock_shared(${gate}); RETURN NEW; END $$;
        CREATE TRIGGER hang BEFORE INSERT ON "auditSeals" FOR EACH ROW EXECUTE FUNCTION hang_seals()`,
      database(),
    )
    const { after } = await beside(
      () => nodes[0].audit.seal(),
      async () => {
        await nodes[1].sessions.begin({ ...signInOf(other) }, actor())
        return await nodes[1].users.changeGrants(other.id, roles(`R${Math.random()}`), actor())
      },
    )
    expect(after.roles).not.toEqual([])
  })
  test('W6 users whose names are given twice at once: one gets it, and the other learns which name is taken', async () => {
    const adds = Array.from({ length: 6 }, (_, n) => nodes[n % 2 === 0 ? 0 : 1].users.add(newUser('twin'), actor()))
    const outcomes = await Promise.allSettled(adds)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const faults = await Promise.all(adds.map((add) => faultOf(add).catch(() => undefined)))
    expect(new Set(faults.flatMap((fault) => fault?.message ?? []))).toEqual(
      new Set(['The user name is already in use']),
    )
  })
  test('W6 a node that pauses in a transaction loses its locks, and makes the change again', async () => {
    let calls = 0
    const refuse = (): void => {
      calls += 1
      // Nothing else in this process runs meanwhile: the connection is idle in its transaction for longer than it may be.
      if (calls === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_100)
    }
    const { after } = await nodes[0].users.changeGrants(other.id, { ...roles('Ops'), refuse }, actor())
    expect([calls, after.roles]).toEqual([2, ['Ops']])
    const entries = (await nodes[0].audit.list({ limit: 50 })).filter(({ event }) => event === 'roles.changed')
    expect(entries).toHaveLength(1)
  })
})
