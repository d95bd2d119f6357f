import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { type CutProxy, cutProxy } from '../../support/faults/cut-proxy.ts'
import { hangingCommits } from '../../support/faults/postgres-faults.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { freePort } from '../../support/servers/server.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const word = 'correct horse'
type Settings = Partial<Values<typeof postgres.settings>>
const ask = (server: PostgresServer, settings: Settings = {}, mode: 'Standard' | 'Advanced' = 'Standard') =>
  runKind(postgres, { url: server.url('monitor'), password: secret(word), restarted: {}, ...settings }, mode)

suiteWith(postgresMissing, 'PostgreSQL: replication', () => {
  let primary: PostgresServer
  let standby: PostgresServer
  let link: CutProxy
  beforeAll(async () => {
    // The primary sends a message at least every second.
    const fresh = await startPostgres(['wal_sender_timeout=2s', 'hot_standby=on'])
    await fresh.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor;
      CREATE ROLE limited LOGIN PASSWORD '${word}'`)
    link = await cutProxy(fresh.port)
    ;({ primary, standby } = await fresh.standby(link.port))
    await until(async () => (await primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")).length)
  })
  afterAll(async () => {
    await standby.remove()
    await link.close()
    await primary.remove()
  })

  test('PostgreSQL: all checks of a healthy standby are well', async () => {
    await until(async () => checked(await ask(standby, {}, 'Advanced'), 'replication lag').status === 'ok')
    const results = await ask(standby, { role: 'standby', allowWrites: true }, 'Advanced')
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    const reported = results.map(({ check }) => check)
    expect(reported).toEqual(expect.arrayContaining(['wal receiver', 'replication lag', 'replication backlog']))
    for (const onPrimary of ['synchronous standbys', 'commit wait', 'dead tuples', 'subscriptions', 'write'])
      expect(reported).not.toContain(onPrimary)
  })

  test('PostgreSQL: commits that hang for want of a synchronous standby fail at Standard, and are counted', async () => {
    const sound = await ask(primary)
    expect(checked(sound, 'synchronous standbys').status).toBe('ok')
    expect(checked(sound, 'commit wait')).toMatchObject({ status: 'ok' })
    const fault = await hangingCommits(primary)
    try {
      const results = await ask(primary, { commitWait: { limit: 10 } })
      expect(checked(results, 'synchronous standbys')).toMatchObject({
        status: 'failed',
        fault: 'threshold',
        message: expect.stringMatching(/^a commit waits for 1 standby; streaming standbys: 0 /),
        measurement: { value: 0, limit: 1, bound: 'atLeast' },
      })
      expect(checked(results, 'commit wait')).toMatchObject({
        status: 'failed',
        fault: 'threshold',
        message: expect.stringMatching(/^1 commit is waiting for a standby, its statement for \d/),
      })
      const limited = await ask(primary, { url: primary.url('limited') })
      for (const check of ['synchronous standbys', 'commit wait']) {
        expect(checked(limited, check).status).not.toBe('ok')
      }
      expect(checked(limited, 'commit wait')).toMatchObject({
        notChecked: 'permission',
        details: ['GRANT pg_monitor TO "limited"'],
      })
    } finally {
      await fault.end()
    }
    expect(checked(await ask(primary), 'commit wait').status).toBe('ok')
  })

  test('PostgreSQL: a standby whose link is dead is late by its silence, although it has replayed all it has', async () => {
    const limits: Settings = { walReceiver: { warn: 3_000, limit: 4_000 } }
    const sound = await ask(standby, limits, 'Advanced')
    expect(checked(sound, 'wal receiver')).toMatchObject({ status: 'ok', measurement: { limit: 4_000 } })
    expect(sound.map(({ check }) => check)).not.toContain('synchronous standbys')
    expect((await ask(primary)).map(({ check }) => check)).not.toContain('wal receiver')
    link.stall()
    try {
      await wait(4_500)
      const results = await ask(standby, limits, 'Advanced')
      expect(checked(results, 'wal receiver')).toMatchObject({ status: 'failed', fault: 'threshold' })
      expect(checked(results, 'replication lag').measurement?.value).toBeGreaterThan(4_000)
      expect(checked(results, 'replication lag').details).toEqual([
        expect.stringMatching(/^no message from its primary for /),
      ])
    } finally {
      link.heal('lost')
      await standby.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_wal_receiver`)
    }
    await until(async () => checked(await ask(standby, limits), 'wal receiver').status === 'ok', 15_000)
  })

  test('PostgreSQL: figures of the WAL receiver that are hidden from the account are not checked', async () => {
    const results = await ask(standby, { url: standby.url('limited') }, 'Advanced')
    for (const check of ['wal receiver', 'replication lag']) {
      expect(checked(results, check)).toMatchObject({
        notChecked: 'permission',
        details: ['GRANT pg_monitor TO "limited"'],
      })
    }
  })

  test('PostgreSQL: a standby without a WAL receiver fails at Standard', async () => {
    const nowhere = `host=127.0.0.1 port=${await freePort()} user=postgres`
    const [row] = await standby.query("SELECT current_setting('primary_conninfo') AS conninfo")
    await standby.query(`ALTER SYSTEM SET primary_conninfo = '${nowhere}'`)
    await standby.query('SELECT pg_reload_conf()')
    try {
      await until(async () => checked(await ask(standby), 'wal receiver').status === 'failed', 15_000)
      expect(checked(await ask(standby), 'wal receiver')).toMatchObject({
        fault: 'data',
        message: expect.stringMatching(/^not connected to its primary \(no WAL receiver\)/),
      })
      const limited = await ask(standby, { url: standby.url('limited') }, 'Advanced')
      for (const check of ['wal receiver', 'replication lag']) {
        expect(checked(limited, check)).toMatchObject({ notChecked: 'permission' })
      }
    } finally {
      await standby.query(`ALTER SYSTEM SET primary_conninfo = '${String(row?.['conninfo'])}'`)
      await standby.query('SELECT pg_reload_conf()')
    }
    await until(async () => checked(await ask(standby), 'wal receiver').status === 'ok', 15_000)
  })
})
