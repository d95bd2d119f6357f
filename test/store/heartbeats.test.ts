import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { rememberedMs } from '../../src/core/checks/kinds/heartbeat/schedule.ts'
import type { Heartbeat } from '../../src/core/protocol/index.ts'
import { type Data, openData } from '../../src/core/store/index.ts'
import { heartbeatsKeptMs } from '../../src/core/store/rows/heartbeats.ts'
import { actor, backendsOfTier, faultOf, newUser, twoNodes } from '../support/store/data-fixture.ts'

const beat = (name: string, at: number, more: Partial<Heartbeat> = {}) => ({
  name,
  at,
  who: 'local:test',
  status: 'Ok' as const,
  message: undefined,
  version: undefined,
  intervalMs: undefined,
  backlog: undefined,
  diskFreePercent: undefined,
  skewMs: undefined,
  ...more,
})
const day = 86_400_000
/** Repeats what the store did not answer in its 2 s: beside other work, 30 writers or 10,000 names take longer. */
async function served<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof Fault && error.fault === 'Unavailable') || attempt === 10) throw error
    }
  }
}
/** The objects that the steps from version 2 on made, to be removed again. */
const undone = [
  ['ALTER TABLE "apiKeys" DROP COLUMN "permissions"', 'DROP TABLE "heartbeats"'],
  ['DROP TABLE "readings"'],
  ['sessionsByIdle', 'refreshTokensByIdle', 'auditOfRefusals', 'apiKeysByEveryName'].map(
    (name) => `DROP INDEX "${name}"`,
  ),
  ['ALTER TABLE "heartbeats" DROP COLUMN "run"'],
  ['guesses', 'knownPrefixes', 'storeKeys'].map((name) => `DROP TABLE "${name}"`),
  [
    'ALTER TABLE "sessions" DROP COLUMN "provider"',
    'ALTER TABLE "refreshTokens" DROP COLUMN "provider"',
    'ALTER TABLE "refreshTokens" DROP COLUMN "createdAt"',
  ],
  ['digestSecrets', 'digestNonces'].map((name) => `DROP TABLE "${name}"`),
  ['identities', 'claimedRoles', 'usedStates'].map((name) => `DROP TABLE "${name}"`),
  ['DROP TABLE "quiets"'],
  // In reverse: the index first.
  [
    ...['endsAt', 'grantedAt', 'grantedBy', 'reason', 'noticedEnd'].map(
      (name) => `ALTER TABLE "grants" DROP COLUMN "${name}"`,
    ),
    'DROP INDEX "grantsByEnd"',
  ],
  ['ALTER TABLE "audit" DROP COLUMN "seal"', 'DROP TABLE "auditSeals"', 'DROP INDEX "auditUnsealed"'],
  // It changed rows only.
  [],
  ['DROP TABLE "leases"'],
  ['ALTER TABLE "users" DROP COLUMN "temporaryHash"'],
]

describe.each(backendsOfTier())('heartbeats on $name', ({ name, start, fresh, raw, stop }) => {
  let store = ''
  let data: Data
  /** A second node of the same store. */
  let other: Data
  beforeAll(start)
  afterAll(stop)
  beforeEach(async () => {
    ;({ store, data, other } = await twoNodes(fresh, store, () => 5_000))
  })
  afterEach(() => Promise.all([data.close(), other.close()]))

  test('B1 the last one of a name is stored whole, and each node reads it by name', async () => {
    await data.heartbeats.report(beat('b', 1_000))
    const full = beat('a.example.com', 2_000, {
      status: 'Warn',
      message: 'slow',
      version: '2.4.1',
      intervalMs: 60_000,
      backlog: 7,
      diskFreePercent: 12.5,
      skewMs: -1_500,
    })
    await data.heartbeats.report(full)
    await other.heartbeats.report(beat('b', 3_000, { status: 'Fail' }))
    expect(await other.heartbeats.list()).toEqual([
      { ...full, history: [{ at: 2_000, status: 'Warn' }] },
      {
        ...beat('b', 3_000, { status: 'Fail' }),
        history: [
          { at: 1_000, status: 'Ok' },
          { at: 3_000, status: 'Fail' },
        ],
      },
    ])
  })

  test('B1 its time never goes back, though the clocks of two nodes differ', async () => {
    await data.heartbeats.report(beat('a', 9_000))
    await other.heartbeats.report(beat('a', 4_000))
    expect((await data.heartbeats.list()).map(({ at }) => at)).toEqual([9_000])
  })

  test('B5 a run keeps the result of the run before it until it ends, and both nodes read it', async () => {
    const run = { startedAt: 3_000, maxMs: 60_000 }
    await data.heartbeats.report(beat('job', 1_000, { status: 'Fail', message: 'exit code 1', backlog: 4 }))
    await data.heartbeats.report({ ...beat('job', 3_000), run: { id: 70, maxMs: 60_000 } })
    const [running] = await other.heartbeats.list()
    expect(running).toMatchObject({ at: 3_000, status: 'Fail', message: 'exit code 1', backlog: 4 })
    expect(running?.run).toEqual({ id: 70, ...run })
    expect(running?.history).toEqual([{ at: 1_000, status: 'Fail' }])
    const end = { id: 70, durationMs: 900, exitCode: 0, maxMs: 60_000, output: 'done' }
    await other.heartbeats.report({ ...beat('job', 4_000), run: end })
    const [ended] = await data.heartbeats.list()
    expect(ended).toMatchObject({ at: 4_000, status: 'Ok', message: undefined })
    expect(ended?.run).toEqual({ ...end, startedAt: 3_000, endedAt: 4_000 })
    expect(ended?.history).toHaveLength(2)
    await data.heartbeats.report(beat('job', 5_000))
    expect((await data.heartbeats.list())[0]?.run).toEqual(ended?.run)
  })

  test('B5 the end of a run without its start is a run, and the end of an older one does not end the newest', async () => {
    await data.heartbeats.report({ ...beat('job', 5_000), run: { id: 70, durationMs: 900, exitCode: 3 } })
    expect((await data.heartbeats.list())[0]?.run).toMatchObject({ startedAt: 4_100, endedAt: 5_000, exitCode: 3 })
    await data.heartbeats.report({ ...beat('job', 6_000), run: { id: 80 } })
    await data.heartbeats.report({
      ...beat('job', 7_000, { status: 'Fail' }),
      run: { id: 75, durationMs: 1, exitCode: 1 },
    })
    expect((await data.heartbeats.list())[0]).toMatchObject({ status: 'Fail', run: { id: 80, startedAt: 6_000 } })
    expect((await data.heartbeats.list())[0]?.run).not.toHaveProperty('endedAt')
  })

  test('B3 20 are stored for each name, also of those that arrive concurrently over two connections', async () => {
    const nodes = Array.from({ length: 30 }, (_, n) => (n % 2 ? data : other))
    await Promise.all(nodes.map((node, n) => served(() => node.heartbeats.report(beat('a', 1_000 + n)))))
    const [record] = await data.heartbeats.list()
    expect(record?.history).toHaveLength(20)
    expect(record?.at).toBe(1_029)
    const times = record?.history.map(({ at }) => at) ?? []
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  test('B3 a name beyond the 10,000th is refused; existing names continue', async () => {
    const rows = Array.from({ length: 100 }, (_, n) => n)
    for (const hundred of rows) {
      const values = rows.map((n) => `('n${hundred * 100 + n}', 1, 'x', 'Ok', '[]')`).join(', ')
      await raw(store, `INSERT INTO "heartbeats" ("name", "at", "who", "status", "history") VALUES ${values}`)
    }
    const fault = await faultOf(served(() => data.heartbeats.report(beat('one more', 1_000))))
    expect([fault.fault, fault.message]).toEqual(['Conflict', 'The limit of 10000 heartbeats is reached'])
    await served(() => data.heartbeats.report(beat('n5', 2_000)))
    expect(await served(() => data.heartbeats.list())).toHaveLength(10_000)
    await data.heartbeats.remove('n7', actor())
    await served(() => data.heartbeats.report(beat('one more', 1_000)))
  })

  test('B3 an agent that is silent for 100 days is deleted; a removal is audited, a heartbeat is not', async () => {
    await data.heartbeats.report(beat('old', 1_000))
    await data.heartbeats.report(beat('young', 2_000))
    await data.sweep(1_500 + 100 * day)
    expect((await other.heartbeats.list()).map(({ name }) => name)).toEqual(['young'])
    expect(await data.audit.list({ limit: 9 })).toEqual([])
    await data.heartbeats.remove('young', actor())
    expect(await data.heartbeats.list()).toEqual([])
    expect(await data.audit.list({ limit: 9 })).toMatchObject([{ event: 'heartbeat.removed', target: 'young' }])
    expect((await faultOf(data.heartbeats.remove('young', actor()))).fault).toBe('NotFound')
  })

  test('B3 a schedule may be as long as the store keeps a heartbeat', () => {
    expect(rememberedMs).toBe(heartbeatsKeptMs)
  })

  test('B2 a key keeps its effective permissions', async () => {
    const { id: userId } = await data.users.add(newUser('agents', { permissions: ['heartbeat'] }), actor())
    const key = { userId, expiresAt: undefined }
    await data.keys.add({ ...key, name: 'some', hash: 'h1', roles: [], permissions: ['heartbeat'] }, actor())
    await data.keys.add({ ...key, name: 'all', hash: 'h2', roles: undefined, permissions: undefined }, actor())
    expect(await other.keys.find('h1')).toMatchObject({ roles: [], permissions: ['heartbeat'] })
    expect(await other.keys.find('h2')).toMatchObject({ roles: undefined, permissions: undefined })
  })

  // The oldest goes through each step.
  test.each(name === 'SQLite' ? [10, 9, 8, 7, 6, 5, 4, 3, 2] : [10, 2])(
    'D2 a store of version %i is migrated, and its content remains',
    async (version) => {
      await data.users.add(newUser('alice', { roles: ['Admin'] }), actor())
      await data.close()
      await other.close()
      for (const sql of undone
        .slice(version - 2)
        .flat()
        .toReversed())
        await raw(store, sql)
      await raw(store, `UPDATE "meta" SET "version" = ${version}`)
      if (!store.startsWith('postgres')) await raw(store, `PRAGMA user_version = ${version}`)
      data = await openData({ store, create: false })
      other = await openData({ store, create: false })
      await data.heartbeats.report(beat('a', 1_000))
      expect(await other.heartbeats.list()).toHaveLength(1)
      expect(await other.readings.keep({ series: 's', at: 1, value: 1, everyMs: 1 })).toHaveLength(1)
      expect((await data.users.find('alice'))?.roles).toEqual(['Admin'])
      expect((await data.users.find('alice'))?.grants[0]).toMatchObject({ endsAt: undefined, grantedBy: undefined })
    },
  )
})
