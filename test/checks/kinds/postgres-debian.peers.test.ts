import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { configured, walConsumer } from '../../support/faults/postgres-faults.ts'
import { pgbackrestMissing, startPgbackrest } from '../../support/servers/pgbackrest.ts'
import {
  debianPostgres,
  debianPostgresMissing,
  type PostgresServer,
  startPostgres,
} from '../../support/servers/postgres.ts'
import { memory } from '../../support/store/readings.ts'
import { peerSuite, suiteWith } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const word = 'correct horse'

peerSuite(debianPostgresMissing, 'PostgreSQL 15 of Debian', () => {
  let server: PostgresServer
  const run = (mode: ExecutionMode, options: RunKindOptions = {}): Promise<readonly Result[]> =>
    runKind(postgres, { url: server.url('monitor'), password: secret(word), restarted: {} }, mode, options)
  beforeAll(async () => {
    server = await startPostgres([], '', debianPostgres)
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
  })
  afterAll(() => server.remove())

  test('PostgreSQL 15: how long a slot is idle is known from earlier runs, and otherwise no time is made up', async () => {
    await server.query("SELECT pg_create_physical_replication_slot('forgotten', true)")
    onTestFinished(async () => void (await server.query("SELECT pg_drop_replication_slot('forgotten')")))

    const unknown = checked(await run('Advanced'), 'slots')
    expect(unknown).toMatchObject({ status: 'warning', measurement: { unit: 'bytes' } })
    expect(unknown.message).toMatch(
      /^forgotten has no consumer and retains .* \(PostgreSQL before 17 does not report since when\)$/,
    )
    let at = Date.now()
    const options = memory(() => at)
    const later = async (ms: number): Promise<Result> => {
      at += ms
      return checked(await run('Advanced', options), 'slots')
    }
    expect(await later(0)).toMatchObject({ status: 'warning', measurement: { unit: 'bytes' } })
    const long = await later(1_200_000)
    expect(long).toMatchObject({ status: 'warning', measurement: { value: 1_200_000, warn: 600_000 } })
    expect(long.message).toMatch(/^forgotten has had no consumer for at least 20 min and retains /)
    const consumer = await walConsumer(server, 'forgotten')
    expect(await later(60_000)).toMatchObject({ status: 'ok', message: '1 slot, all in use' })
    await consumer.end()
    expectResult(await later(120_000), 'ok: 1 slot, 1 without a consumer for a short time')
    expect(await later(600_000)).toMatchObject({ status: 'warning', measurement: { unit: 'bytes' } })
    expect(await later(600_000)).toMatchObject({ status: 'warning', measurement: { value: 1_200_000 } })
  })

  test('PostgreSQL 15: a synchronous standby is known to its primary, and is well itself', async () => {
    const both = await server.standby()
    server = both.primary
    const { standby } = both
    const names = await configured(server, { synchronous_standby_names: '*' })
    onTestFinished(async () => {
      await names.end()
      await standby.remove()
    })

    await until(async () => checked(await run('Standard'), 'synchronous standbys').status === 'ok')
    expect(checked(await run('Standard'), 'synchronous standbys').measurement).toMatchObject({ value: 1, limit: 1 })
    const settings = { url: standby.url('monitor'), password: secret(word), restarted: {} }
    await until(async () => checked(await runKind(postgres, settings, 'Standard'), 'wal receiver').status === 'ok')
    const results = await runKind(postgres, { ...settings, role: 'standby' }, 'Advanced')
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    await standby.stop()
    await until(async () => checked(await run('Standard'), 'synchronous standbys').status === 'failed')
  })

  suiteWith(pgbackrestMissing, 'pgBackRest', () => {
    test('PostgreSQL 15: a stanza or a file that has no backup of pgBackRest is reported as such', async () => {
      await using repository = await startPgbackrest()
      await repository.server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor`)
      repository.backUp()
      const settings = { url: repository.server.url('monitor'), password: secret(word), pgbackrest: repository.info() }
      for (const [more, finding] of [
        [{}, ['backup age ok', /^newest backup of stanza main ended .* ago/, { address: undefined }]],
        [{ stanza: 'other' }, ['backup age (data)', /contains no stanza other$/]],
        [{ pgbackrest: '/nowhere/info.json' }, 'backup age (data): /nowhere/info.json does not exist'],
        [{ pgbackrest: '/etc/passwd' }, 'backup age: /etc/passwd is not the output of pgbackrest info --output=json'],
      ] as const)
        await finds(runKind(postgres, { ...settings, ...more }, 'Advanced'), finding)
    })
  })
})
