import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'
import { word } from './sql/suite.ts'

type Settings = Partial<Values<typeof postgres.settings>>
const run = (settings: Settings, mode: ExecutionMode) =>
  runKind(postgres, { password: secret(word), ...settings }, mode)

suiteWith(postgresMissing, 'PostgreSQL: a primary and its standby', () => {
  let primary: PostgresServer
  let standby: PostgresServer
  beforeAll(async () => {
    const fresh = await startPostgres(['archive_mode=on', 'archive_command=false'])
    await fresh.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor;
      CREATE ROLE limited LOGIN PASSWORD '${word}'`)
    ;({ primary, standby } = await fresh.standby())
    await until(async () => (await primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")).length)
  })
  afterAll(async () => {
    await standby.remove()
    await primary.remove()
  })
  const at = async (which: PostgresServer, check: string, settings: Settings = {}): Promise<Result> =>
    checked(await run({ url: which.url('monitor'), ...settings }, 'Advanced'), check)

  test('PostgreSQL: a standby that has replayed everything is not behind, however long the primary is idle', async () => {
    await until(async () => (await at(standby, 'replication lag')).status === 'ok')
    expect(await at(standby, 'replication lag', { replicationLag: { limit: 0 } })).toMatchObject({
      status: 'ok',
      measurement: { value: 0 },
    })
    expect(await at(standby, 'role', { role: 'standby' })).toMatchObject({ status: 'ok' })
    expect(await at(standby, 'role', { role: 'primary' })).toMatchObject({ fault: 'data' })
  })
  test('PostgreSQL: all checks of a healthy standby are well', async () => {
    const results = await run({ url: standby.url('monitor'), restarted: {}, allowWrites: true }, 'Advanced')
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    const reported = results.map(({ check }) => check)
    expect(reported).toEqual(expect.arrayContaining(['wal receiver', 'replication lag', 'replication backlog']))
    for (const onPrimary of ['synchronous standbys', 'commit wait', 'dead tuples', 'subscriptions', 'write'])
      expect(reported).not.toContain(onPrimary)
  })
  test('PostgreSQL: figures of the WAL receiver that are hidden from the account are not checked', async () => {
    const hidden = { notChecked: 'permission', details: ['GRANT pg_monitor TO "limited"'] }
    await finds(run({ url: standby.url('limited') }, 'Advanced'), ['wal receiver', hidden], ['replication lag', hidden])
  })
  test('PostgreSQL: standbys that commits wait for are counted, and missing ones are reported before anybody notices', async () => {
    const check = 'synchronous standbys'
    const configure = async (settings: Readonly<Record<string, string>>, isIn: string): Promise<void> => {
      for (const [name, value] of Object.entries(settings)) await primary.query(`ALTER SYSTEM SET ${name} = '${value}'`)
      await primary.query('SELECT pg_reload_conf()')
      await until(async () => (await primary.query(`SELECT 1 WHERE ${isIn}`)).length)
    }
    const states = '(SELECT sync_state FROM pg_stat_replication)'
    const names = "current_setting('synchronous_standby_names')"
    expectResult(await at(primary, check), 'ok: no commit waits for a standby (synchronous_standby_names is empty)')
    onTestFinished(async () => {
      await primary.query('ALTER SYSTEM RESET ALL')
      await primary.query('SELECT pg_reload_conf()')
    })

    await configure({ synchronous_standby_names: '"reporting-1", other' }, `${states} = 'sync'`)
    expect(await at(primary, check)).toMatchObject({ status: 'ok', measurement: { value: 1, limit: 1 } })
    expect(await at(primary, check, { spareStandbys: { warn: 1, limit: 0 } })).toMatchObject({
      status: 'warning',
      message: 'a commit waits for 1 standby; streaming standbys: 1 (warn below 2, fail below 1)',
      measurement: { value: 1, warn: 2, limit: 1, bound: 'atLeast' },
    })
    await configure({ synchronous_standby_names: 'ANY 1 (*)' }, `${states} = 'quorum'`)
    expect(await at(primary, check)).toMatchObject({ status: 'ok', measurement: { value: 1, limit: 1 } })

    // Each process of the server reads its settings in its own time. A sender that still has the ones before confirms the
    // commit, and the new priority shows that it has read these.
    const priority = '(SELECT sync_priority FROM pg_stat_replication)'
    await configure({ synchronous_standby_names: 'FIRST 2 (other, "reporting-1")' }, `${priority} = 2`)
    const commit = primary.query('CREATE TABLE waits_for_a_standby ()')
    await until(async () => (await primary.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).length)
    expect(await at(primary, check, { spareStandbys: { warn: 0 } })).toMatchObject({ status: 'warning' })
    expectResult(
      await at(primary, check),
      'failed (threshold)',
      /^a commit waits for 2 standbys; streaming standbys: 1 /,
      {
        measurement: { value: 1, unit: 'count', limit: 2, bound: 'atLeast' },
        details: ['1 commit is waiting for a standby now', expect.stringContaining('inspect: SELECT')],
      },
    )
    const results = await run({ url: primary.url('limited'), replicas: 1 }, 'Advanced')
    expect(checked(results, 'replicas')).toMatchObject({ status: 'failed', notChecked: 'permission' })
    expect(checked(results, check)).toMatchObject({
      status: 'warning',
      notChecked: 'permission',
      message: 'not checked: 1 replica is hidden from this account, which needs GRANT pg_monitor TO "limited"',
      details: ['GRANT pg_monitor TO "limited"'],
    })
    await configure({ synchronous_commit: 'local' }, "current_setting('synchronous_commit') = 'local'")
    expectResult(await at(primary, check), 'warning', /streaming standbys: 1 .*; synchronous_commit is local, so only/)
    await configure({ synchronous_standby_names: '' }, `${names} = ''`)
    await commit
    const onStandby = await run({ url: standby.url('monitor') }, 'Advanced')
    expect(onStandby.map((result) => result.check)).not.toContain(check)
  })
})
