import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { isStoreFailure } from '../../src/core/base/errors.ts'
import { readList } from '../../src/core/store/audit/chain.ts'
import { verifyStore } from '../../src/core/store/audit/index.ts'
import { refusalsKeptMs } from '../../src/core/store/audit-events.ts'
import { type Data, openData } from '../../src/core/store/index.ts'
import { migratePostgres, postgresMigrations } from '../../src/core/store/postgres/migrate.ts'
import { applicationId, migrate, migrations } from '../../src/core/store/schema.ts'
import { type ServeNode, startNode } from '../support/program/serve-node.ts'
import { type PostgresServer, startPostgres } from '../support/servers/postgres.ts'
import { actor, freshDatabase, newUser, program, withData } from '../support/store/data-fixture.ts'
import { until } from '../support/suite/until.ts'

let server: PostgresServer
const clients: pg.Client[] = []
beforeAll(async () => {
  server = await startPostgres(['max_connections=120'])
})
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end()
})
afterAll(async () => await server.remove())

const nameOf = (store: string): string => new URL(store).pathname.slice(1)
const rawClient = async (store: string): Promise<pg.Client> => {
  const client = await server.client(nameOf(store))
  clients.push(client)
  return client
}
const verdict = (data: Data) => verifyStore(data.audit, { now: Date.now(), refusalsKeptMs })
/** The ids that the seals list, in the order of the seals. */
async function sealedIds(data: Data): Promise<readonly number[]> {
  const ids: number[] = []
  for (let last = 0; ; ) {
    const page = await data.audit.seals(last)
    if (page.length === 0) return ids
    for (const { changes, refusals = '' } of page) {
      ids.push(...[...(readList(changes) ?? []), ...(readList(refusals) ?? [])].map(({ id }) => id))
    }
    last = page.at(-1)?.number ?? last
  }
}

describe('sealing beside load on PostgreSQL', { timeout: 180_000 }, () => {
  test('S13 three servers and three processes that change roles make one chain: nothing is unsealed or sealed twice', async () => {
    const store = await freshDatabase(server)
    await withData(store, async (data) => {
      for (const name of ['ann', 'ben', 'cem']) await data.users.add(newUser(name), actor())
    })
    const nodes: ServeNode[] = []
    try {
      nodes.push(await startNode({ store }))
      nodes.push(...(await Promise.all([startNode({ store }), startNode({ store })])))
      const changing = await Promise.all(['ann', 'ben', 'cem'].map((name) => program([store, name, '400', name])))
      for (const { go } of changing) go()
      await Promise.all(changing.map(({ ended }) => ended()))
      const changes = changing.flatMap(({ lines }) => lines.filter((line) => line.startsWith('done'))).length
      expect(changes).toBe(1_200)
      await withData(store, async (data) => {
        await until(async () => (await verdict(data)).unsealed === 0)
        const { problems, seals, entries } = await verdict(data)
        expect(problems).toEqual([])
        // Each change has one entry; three users were added, and Ann by each server's bootstrap at most once.
        expect(entries).toBeGreaterThanOrEqual(changes)
        expect(seals).toBeGreaterThan(1)
        const ids = await sealedIds(data)
        expect(new Set(ids).size).toBe(ids.length)
        const [row] = await server.query(
          'SELECT count(*)::int AS n, count("seal")::int AS s FROM "audit"',
          nameOf(store),
        )
        expect(row).toEqual({ n: ids.length, s: ids.length })
      })
      for (const { log } of nodes) expect(log()).not.toContain('cannot be sealed')
    } finally {
      for (const node of nodes) await node.stop()
    }
  })

  test('S13 an entry whose transaction commits after higher numbers were sealed is in a later seal', async () => {
    const store = await freshDatabase(server)
    await withData(store, async (data) => {
      await data.users.add(newUser('ann'), actor())
      const slow = await rawClient(store)
      await slow.query('BEGIN')
      await slow.query(
        `INSERT INTO "audit" ("at", "event", "who", "correlationId", "seal") VALUES (${Date.now()}, 'signin.ok', 'slow', 'c', 0)`,
      )
      await data.users.add(newUser('ben'), actor())
      const first = await data.audit.seal()
      expect(first).toMatchObject({ entries: 2, isAll: true })
      expect(await data.audit.seal()).toMatchObject({ entries: 0, isAll: true })
      await slow.query('COMMIT')
      expect(await data.audit.seal()).toMatchObject({ entries: 1, head: { number: 2 } })
      expect(await sealedIds(data)).toEqual([1, 3, 2])
      expect(await verdict(data)).toMatchObject({ problems: [], entries: 3, unsealed: 0 })
    })
  })

  test('S13 no change of an entry waits for a seal, and no seal for a change', async () => {
    const store = await freshDatabase(server)
    await withData(store, async (data) => {
      const { id } = await data.users.add(newUser('ann'), actor())
      await data.audit.seal()
      // A node that hangs while it seals.
      const sealing = await rawClient(store)
      await sealing.query('BEGIN')
      await sealing.query(`UPDATE "audit" SET "seal" = "seal"`)
      await sealing.query('INSERT INTO "auditSeals" SELECT 99, 1, $1, $1, $1, 1, $1', [''])
      for (const role of ['a', 'b', 'c']) {
        await data.users.changeGrants(
          id,
          { add: { roles: [role], permissions: [] }, remove: { roles: [], permissions: [] } },
          actor(),
        )
      }
      await sealing.query('ROLLBACK')
      // A change that hangs.
      const slow = await rawClient(store)
      await slow.query('BEGIN')
      await slow.query(
        `INSERT INTO "audit" ("at", "event", "who", "correlationId", "seal") VALUES (1, 'signin.ok', 'slow', 'c', 0)`,
      )
      expect(await data.audit.seal()).toMatchObject({ entries: 3, isAll: true })
      await slow.query('ROLLBACK')
      expect(await verdict(data)).toMatchObject({ problems: [], entries: 4, unsealed: 0 })
    })
  })
})

test('S13 a database that is too slow for a seal of 1,000 entries gets smaller ones until all are sealed', {
  timeout: 120_000,
}, async () => {
  const store = await freshDatabase(server)
  await withData(store, async (data) => {
    const admin = await rawClient(store)
    await admin.query(`INSERT INTO "audit" ${columns} ${rows('n')} FROM generate_series(1, 1500) n`)
    // No statement may take longer than 1.5 s.
    await admin.query(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(0.003); RETURN NEW; END $$;
      CREATE TRIGGER slow BEFORE UPDATE ON "audit" FOR EACH ROW EXECUTE FUNCTION slow()`)
    let refusals = 0
    for (let isAll = false; !isAll; ) {
      const sealed = await data.audit.seal().catch((error: unknown) => {
        expect(error).toMatchObject({ fault: 'Unavailable' })
        return undefined
      })
      if (sealed) isAll = sealed.isAll
      else refusals += 1
    }
    expect(refusals).toBeGreaterThan(0)
    expect(await verdict(data)).toMatchObject({ problems: [], entries: 1_500, unsealed: 0 })
  })
})

/** Figures for the decision; nothing asserts the time of a shared machine. */
const report = (line: string): void => void process.stdout.write(`${line}\n`)

const entries = 500_000
const before = 10
const rows = (n: string) =>
  `SELECT 1000000 + ${n}, CASE ${n} % 10 WHEN 0 THEN 'roles.changed' WHEN 1 THEN 'signin.failed' ELSE 'signin.ok' END,
    'user' || (${n} % 1000), '192.0.2.1', 'user' || (${n} % 1000), 'c' || ${n}, '{"roles":[],"permissions":[]}', '{"roles":["Ops"],"permissions":[]}'`
const columns = '("at", "event", "who", "address", "target", "correlationId", "before", "after")'

describe(`an upgrade of a store with ${entries} entries in its audit`, { timeout: 300_000 }, () => {
  /**
   * Seals everything as `svc serve` does, which tries again if the store does not answer in time. Returns how long the longest
   * seal took, in milliseconds.
   */
  async function sealAll(data: Data): Promise<number> {
    let maxWaitMs = 0
    for (let isAll = false; !isAll; ) {
      const began = performance.now()
      isAll = await data.audit.seal({ maxSeals: 1 }).then(
        (sealed) => sealed.isAll,
        (error: unknown) => {
          if (isStoreFailure(error)) return false
          throw error
        },
      )
      maxWaitMs = Math.max(maxWaitMs, performance.now() - began)
    }
    return maxWaitMs
  }

  test('S13 on SQLite, it opens within seconds, and the entries from before are sealed beside other writes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-upgrade-'))
    try {
      const path = join(folder, 'svc.db')
      const old = new DatabaseSync(path)
      old.exec(`PRAGMA application_id = ${applicationId}; PRAGMA journal_mode = WAL`)
      migrate(old, migrations.slice(0, before))
      old.exec(`WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${entries})
        INSERT INTO "audit" ${columns} ${rows('n')} FROM c`)
      old.close()
      chmodSync(path, 0o600)
      const began = performance.now()
      const data = await openData({ store: path, create: false })
      const openMs = performance.now() - began
      const maxWaitMs = await sealAll(data)
      report(`SQLite: opened in ${Math.round(openMs)} ms, longest seal ${Math.round(maxWaitMs)} ms`)
      const { problems, entries: sealed, entriesBefore, unsealed } = await verdict(data)
      expect({ problems, sealed, entriesBefore, unsealed }).toEqual({
        problems: [],
        sealed: entries,
        entriesBefore: entries,
        unsealed: 0,
      })
      await data.close()
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('S13 on PostgreSQL, nodes of the version before write while it is upgraded, and nothing is left out', async () => {
    const store = await freshDatabase(server)
    const client = await rawClient(store)
    await client.query('SET ROLE svc')
    await migratePostgres(client, { label: 'it', create: true }, postgresMigrations.slice(0, before))
    await client.query(`INSERT INTO "audit" ${columns} ${rows('n')} FROM generate_series(1, ${entries}) n`)
    let maxWaitMs = 0
    let written = 0
    let stopped = false
    /** Writes as a node of the version before does. */
    const writing = (async () => {
      const old = await rawClient(store)
      while (!stopped) {
        const began = performance.now()
        await old.query(`INSERT INTO "audit" ${columns} ${rows('7')}`)
        maxWaitMs = Math.max(maxWaitMs, performance.now() - began)
        written += 1
      }
    })()
    const began = performance.now()
    const data = await openData({ store, create: true, env: {} })
    const openMs = performance.now() - began
    const sealing = sealAll(data).finally(() => {
      stopped = true
    })
    const [sealMs] = await Promise.all([sealing, writing])
    await sealAll(data)
    report(
      `PostgreSQL: opened in ${Math.round(openMs)} ms, longest seal ${Math.round(sealMs)} ms, longest wait of ${written} writes beside it ${Math.round(maxWaitMs)} ms`,
    )
    const { problems, entries: sealed, unsealed } = await verdict(data)
    expect({ problems, sealed, unsealed }).toEqual({ problems: [], sealed: entries + written, unsealed: 0 })
    await data.close()
  })
})
