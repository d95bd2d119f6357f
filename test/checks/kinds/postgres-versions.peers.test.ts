import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { type PlantedFault, subscribed } from '../../support/faults/postgres-faults.ts'
import { npmPostgres, type OldPostgres, type PostgresServer, startPostgres } from '../../support/servers/postgres.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const word = 'correct horse'
const modes: readonly ExecutionMode[] = ['Basic', 'Standard', 'Advanced']
type Settings = Partial<Values<typeof postgres.settings>>

/** The least privileges, as the reference has them: of each check, in the order of the checks. */
const grants = [
  ...new Set(
    postgres.checks.flatMap(({ privilege = '' }) => [...privilege.matchAll(/GRANT [^;]+/g)].map(([one]) => one)),
  ),
]

for (const version of [13, 14, 15, 16, 17] as const satisfies readonly OldPostgres[]) {
  const { from, missing } = npmPostgres(version)
  peerSuite(missing, `PostgreSQL ${version} (npm)`, () => {
    let primary: PostgresServer
    let standby: PostgresServer
    let subscriber: PostgresServer
    let subscription: PlantedFault
    const run = (server: PostgresServer, mode: ExecutionMode, settings: Settings = {}): Promise<readonly Result[]> =>
      runKind(
        postgres,
        { url: server.url('monitor'), password: secret(word), restarted: {}, latency: {}, clock: {}, ...settings },
        mode,
      )
    const one = async (server: PostgresServer, check: string, settings: Settings = {}): Promise<Result> =>
      checked(await run(server, 'Advanced', settings), check)

    beforeAll(async () => {
      const settings = ['wal_level=logical', 'max_slot_wal_keep_size=32MB']
      const fresh = await startPostgres(settings, '', from)
      await fresh.query(`CREATE TABLE jobs (id serial); CREATE ROLE monitor LOGIN PASSWORD '${word}'`)
      for (const grant of grants) await fresh.query(grant.replace('<account>', 'monitor'))
      ;({ primary, standby } = await fresh.standby())
      await until(
        async () => (await primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")).length,
        60_000,
      )
      subscriber = await startPostgres([], '', from)
      await subscriber.query(
        `CREATE ROLE monitor LOGIN PASSWORD '${word}'; CREATE ROLE limited LOGIN PASSWORD '${word}'`,
      )
      subscription = await subscribed(primary, subscriber)
    }, 180_000)
    afterAll(async () => {
      await subscription.end()
      await subscriber.remove()
      await standby.remove()
      await primary.remove()
    })

    test(`PostgreSQL ${version}: a subscription is hidden from an account until it has the privilege of the reference`, async () => {
      const subscriptions = async (): Promise<Result> => await one(subscriber, 'subscriptions')
      if (version === 13) {
        const grant = 'GRANT SELECT (oid) ON pg_subscription TO "monitor"'
        expect(await subscriptions()).toMatchObject({
          notChecked: 'permission',
          message: `not checked: 1 subscription is hidden from this account, which needs ${grant}`,
          details: [grant],
        })
        await subscriber.query(grant)
      }
      await until(async () => (await subscriptions()).status === 'ok', 60_000)
      await expect(subscriber.query('SET ROLE monitor; SELECT subconninfo FROM pg_subscription')).rejects.toThrow(
        /permission denied/,
      )
      for (const grant of grants) await subscriber.query(grant.replace('<account>', 'monitor'))
    })

    test(`PostgreSQL ${version}: a primary, its standby and its subscriber are well in each mode with the least privileges`, async () => {
      await until(async () => (await one(standby, 'replication lag')).status === 'ok', 60_000)
      for (const mode of modes) {
        for (const [server, settings] of [
          [primary, { role: 'primary', replicas: 1 }],
          [standby, { role: 'standby' }],
          [subscriber, {}],
        ] as const) {
          const results = await run(server, mode, settings)
          expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
        }
      }
      expect((await one(primary, 'role')).message).toContain(`primary, PostgreSQL ${version}.`)
      expect(await one(primary, 'checkpoint age')).toMatchObject({ measurement: { unit: 'percent' } })
      expect((await one(primary, 'connection limits')).message).toBe('no role and no database has a limit')
    })

    test(`PostgreSQL ${version}: a forgotten exclusive backup is a warning before version 15`, async () => {
      const names = (await run(primary, 'Advanced')).map(({ check }) => check)
      if (version >= 15) return expect(names).not.toContain('exclusive backup')
      expect(await one(primary, 'exclusive backup')).toMatchObject({ status: 'ok', message: 'none' })
      await primary.query("SELECT pg_start_backup('nightly', true)")
      onTestFinished(async () => void (await primary.query('SELECT pg_stop_backup()')))

      expectResult(await one(primary, 'exclusive backup'), 'ok', { measurement: { warn: 86_400_000 } })
      expect(await one(primary, 'exclusive backup', { exclusiveBackup: { limit: 0 } })).toMatchObject({
        fault: 'threshold',
        message: expect.stringMatching(/^an exclusive backup has been running for [\d.]+ m?s \(fail 0 ms\)$/),
        details: ['next: SELECT pg_stop_backup(), if no backup is running'],
      })
    })

    test(`PostgreSQL ${version}: a standby without a source of WAL fails at Standard, and not one with restore_command`, async () => {
      const receiver = async (): Promise<Result> => checked(await run(standby, 'Standard'), 'wal receiver')
      const [row] = await standby.query("SELECT current_setting('primary_conninfo') AS conninfo")
      const set = async (name: string, value: string): Promise<void> => {
        await standby.query(`ALTER SYSTEM SET ${name} = '${value}'`)
        await standby.query('SELECT pg_reload_conf()')
      }
      await set('primary_conninfo', '')
      try {
        await until(async () => (await receiver()).status === 'failed', 60_000)
        expect(await receiver()).toMatchObject({
          fault: 'data',
          message: 'neither primary_conninfo nor restore_command is set: no WAL reaches this standby',
        })
        if (version >= 14) {
          await set('restore_command', 'false')
          await until(async () => (await receiver()).status === 'ok', 60_000)
          await until(async () => (await one(standby, 'replication lag')).status === 'ok', 60_000)
          expect((await one(standby, 'replication lag')).message).toMatch(/^has replayed all that its archive contains/)
        }
      } finally {
        if (version >= 14) await set('restore_command', '')
        await set('primary_conninfo', String(row?.['conninfo']))
      }
      await until(async () => (await receiver()).status === 'ok', 60_000)
    })

    test(`PostgreSQL ${version}: a slot that has lost WAL fails`, async () => {
      await primary.query("SELECT pg_create_physical_replication_slot('lost', true)")
      onTestFinished(async () => void (await primary.query("SELECT pg_drop_replication_slot('lost')")))

      const isLost = "SELECT 1 FROM pg_replication_slots WHERE slot_name = 'lost' AND wal_status = 'lost'"
      await until(async () => {
        await primary.query("COMMENT ON TABLE jobs IS 'changed'; SELECT pg_switch_wal()")
        await primary.query('CHECKPOINT')
        return (await primary.query(isLost)).length
      }, 60_000)
      expectResult(await one(primary, 'slots'), '(data)', /^lost has lost WAL that its consumer needs$/)
    })
  })
}
