import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { fullTablespace, hangingCommits, tablespaceMissing } from '../../support/faults/postgres-faults.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const word = 'correct horse'
type Settings = Partial<Values<typeof postgres.settings>>

suiteWith(postgresMissing, 'PostgreSQL: writes', () => {
  let server: PostgresServer
  const run = (settings: Settings = {}, options: RunKindOptions = {}): Promise<readonly Result[]> =>
    runKind(
      postgres,
      { url: server.url('monitor'), password: secret(word), restarted: {}, allowWrites: true, ...settings },
      'Advanced',
      options,
    )
  const write = async (settings: Settings = {}, options: RunKindOptions = {}): Promise<Result> =>
    checked(await run(settings, options), 'write')
  const rows = async (): Promise<unknown> => (await server.query('SELECT * FROM svc_probe.round_trip')).length
  beforeAll(async () => {
    server = await startPostgres(['wal_level=logical'])
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor;
      CREATE ROLE other LOGIN PASSWORD '${word}'; CREATE PUBLICATION everything FOR ALL TABLES`)
  })
  afterAll(() => server.remove())

  test('PostgreSQL: without allowWrites nothing is written', async () => {
    expect((await run({ allowWrites: false })).map(({ check }) => check)).not.toContain('write')
  })
  test('H10 PostgreSQL: with allowWrites, an account without its schema fails as not checked, with the statement that makes it, and that suffices', async () => {
    const result = await write()
    expectResult(result, 'not checked (permission): not checked: the schema svc_probe does not exist', {
      details: ['CREATE SCHEMA svc_probe AUTHORIZATION "monitor"'],
    })
    await server.query(String(result.details?.[0]))
    for (let round = 0; round < 2; round += 1) {
      expect(await write()).toMatchObject({ status: 'ok', measurement: { warn: 1_000, limit: 5_000 } })
      expect(await rows()).toBe(0)
    }
    // A row that reached a subscriber without that table would end its subscription.
    expect(await server.query('SELECT tablename FROM pg_publication_tables')).toEqual([])
  })
  test('PostgreSQL: a schema that belongs to somebody else is not written to', async () => {
    await server.query('ALTER SCHEMA svc_probe OWNER TO other')
    expect(await write()).toMatchObject({
      notChecked: 'permission',
      message: 'not checked: the schema svc_probe belongs to "other"',
    })
    await server.query('ALTER SCHEMA svc_probe OWNER TO monitor')
    await server.query('ALTER TABLE svc_probe.round_trip OWNER TO other')
    expect(await write()).toMatchObject({ fault: 'data', details: ['next: DROP TABLE svc_probe.round_trip'] })
    await server.query('ALTER TABLE svc_probe.round_trip OWNER TO monitor')
    expect((await write()).status).toBe('ok')
  })
  test('PostgreSQL: a COMMIT that hangs fails in time, and nothing of it stays', async () => {
    const fault = await hangingCommits(server)
    try {
      expectResult(await write({ write: { limit: 500 } }), 'failed (timeout): COMMIT did not return within 500 ms')
      // The commit that the fault began with is the only one that hangs.
      const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
      await until(async () => (await server.query(waiting)).length === 1)
      expect(await rows()).toBe(0)
    } finally {
      await fault.end()
    }
    expect((await write()).status).toBe('ok')
  })
  test('PostgreSQL: a COMMIT that hangs longer than the run is cancelled on the server', async () => {
    const fault = await hangingCommits(server)
    onTestFinished(() => fault.end())

    await run({ write: { limit: 60_000 } }, { timeoutMs: 1_500 })
    const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    await until(async () => (await server.query(waiting)).length === 1)
  })
  suiteWith(tablespaceMissing, 'PostgreSQL: a full tablespace', () => {
    test('PostgreSQL: a full tablespace fails, also where the table of svc is there already', async () => {
      await server.query('DROP TABLE svc_probe.round_trip')
      const fault = await fullTablespace(server, 'monitor')
      try {
        for (const statement of [undefined, 'CREATE UNLOGGED TABLE svc_probe.round_trip (id uuid, at timestamptz)']) {
          if (statement !== undefined) {
            await server.query(`${statement} TABLESPACE small; ALTER TABLE svc_probe.round_trip OWNER TO monitor`)
          }
          expectResult(
            await write(),
            'failed (data)',
            / has no space left: could not (extend|create|write) .*No space left on device/,
          )
        }
      } finally {
        await fault.end()
      }
      expect((await write()).status).toBe('ok')
    })
  })
})
