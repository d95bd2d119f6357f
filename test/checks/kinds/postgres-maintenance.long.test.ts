import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { configured, deadRows } from '../../support/faults/postgres-faults.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const word = 'correct horse'
type Settings = Partial<Values<typeof postgres.settings>>

suiteWith(postgresMissing, 'PostgreSQL: maintenance', () => {
  let server: PostgresServer
  const run = (settings: Settings = {}): Promise<readonly Result[]> =>
    runKind(postgres, { url: server.url('monitor'), password: secret(word), restarted: {}, ...settings }, 'Advanced')
  const one = async (check: string, settings: Settings = {}): Promise<Result> => checked(await run(settings), check)
  const limited = (check: string): Promise<Result> => one(check, { url: server.url('limited') })
  beforeAll(async () => {
    server = await startPostgres(['autovacuum_naptime=1h', 'archive_mode=on', 'archive_command=false'])
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'; GRANT pg_monitor TO monitor;
      CREATE ROLE limited LOGIN PASSWORD '${word}'`)
  })
  afterAll(() => server.remove())

  test('PostgreSQL: a session that is idle in a transaction is found, with its process and account', async () => {
    expect(await one('idle in transaction')).toMatchObject({
      status: 'ok',
      message: 'no session is idle in a transaction',
    })
    const session = await server.client()
    await session.query('BEGIN; SELECT 1')
    try {
      expect(await one('idle in transaction')).toMatchObject({
        status: 'ok',
        measurement: { warn: 300_000, limit: 1_800_000 },
      })
      const result = await one('idle in transaction', { idleInTransaction: { limit: 0 } })
      expect(result).toMatchObject({ status: 'failed', fault: 'threshold' })
      expect(result.message).toMatch(/^1 session is idle in a transaction, the longest \(pid \d+, user postgres\) for /)
      expect(await limited('idle in transaction')).toMatchObject({
        notChecked: 'permission',
        details: ['GRANT pg_monitor TO "limited"'],
      })
    } finally {
      await session.end()
    }
  })

  test('PostgreSQL: WAL files that wait to be archived are counted', async () => {
    for (let n = 0; n < 3; n += 1) await server.query(`CREATE TABLE wal${n} (); SELECT pg_switch_wal()`)
    const result = await one('archive backlog', { archiveBacklog: { warn: 2, limit: 100 } })
    expect(result).toMatchObject({ status: 'warning', message: expect.stringMatching(/^WAL files that wait: [3-9] /) })
    expect(await one('archive backlog')).toMatchObject({ status: 'ok', measurement: { warn: 10, limit: 100 } })
    expect(await limited('archive backlog')).toMatchObject({
      notChecked: 'permission',
      details: ['GRANT pg_monitor TO "limited"', 'SQLSTATE 42501'],
    })
  })

  test('PostgreSQL: a large table of dead tuples fails, and a small one does not count', async () => {
    expect(await one('dead tuples')).toMatchObject({
      status: 'ok',
      message: 'no table of this database has more than 10000 rows',
    })
    const fault = await deadRows(server, 'orders', 20_000, 0.3)
    expect(await one('dead tuples')).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/^most dead tuples, in public\.orders: 30 % /),
      measurement: { unit: 'percent', warn: 20, limit: 40 },
    })
    expect((await one('dead tuples', { largeTables: 30_000 })).status).toBe('ok')
    expect(await limited('dead tuples')).toMatchObject({ status: 'warning', measurement: { unit: 'percent' } })
    await fault.end()
  })

  test('PostgreSQL: a table that is due for VACUUM and does not get it is found by the time since the last one', async () => {
    expect(await one('last vacuum')).toMatchObject({ status: 'ok' })
    const fault = await deadRows(server, 'visits', 30_000, 0.5)
    expect(await one('last vacuum')).toMatchObject({ status: 'ok', measurement: { warn: 7 * 86_400_000 } })
    expect(await one('last vacuum', { lastVacuum: { limit: 0 } })).toMatchObject({
      fault: 'threshold',
      message: expect.stringMatching(/^due and not vacuumed for longest, public\.visits: /),
    })
    await server.query('VACUUM visits')
    expect((await one('last vacuum', { lastVacuum: { limit: 0 } })).message).toBe('none of 1 large table is due')
    const off = await configured(server, { autovacuum: 'off' })
    expect(await one('last vacuum')).toMatchObject({
      status: 'warning',
      message: 'autovacuum is off; none of 1 large table is due',
    })
    await off.end()
    const uncounted = await configured(server, { track_counts: 'off' })
    for (const check of ['dead tuples', 'last vacuum']) {
      expect(await one(check)).toMatchObject({ notChecked: 'missing' })
    }
    await uncounted.end()
    await fault.end()
  })

  test('PostgreSQL: transaction IDs that autovacuum does not freeze are found long before they run out', async () => {
    expect(await one('freeze age')).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(/^oldest (transaction|multixact) ID, in \w+, is at 0/),
      measurement: { unit: 'percent', warn: 150, limit: 400 },
    })
    expect(await one('freeze age', { freezeAge: { limit: -1 } })).toMatchObject({ fault: 'threshold' })
  })

  test('PostgreSQL: a sequence that has nearly used up its values, or those of its column, fails', async () => {
    expect(await one('sequences')).toMatchObject({ status: 'ok', message: 'none' })
    await server.query('CREATE SEQUENCE unlimited; CREATE TABLE fresh (id serial)')
    expect(await one('sequences')).toMatchObject({ status: 'ok', message: 'none has been used' })
    await server.query('CREATE SEQUENCE unused AS int')
    const grant = checked(await run(), 'sequences')
    expect(grant).toMatchObject({
      notChecked: 'permission',
      message:
        'not checked: 1 sequence is hidden from this account, which needs GRANT SELECT ON ALL SEQUENCES IN SCHEMA "public" TO "monitor"',
      details: ['GRANT SELECT ON ALL SEQUENCES IN SCHEMA "public" TO "monitor"'],
    })
    const granted = (): Promise<unknown> => server.query(String(grant.details?.[0]))
    await granted()
    expect(await one('sequences')).toMatchObject({ status: 'ok', message: 'none has been used' })
    const sequence = async (make: string, name: string, value: string): Promise<Result> => {
      await server.query(make)
      await server.query(`SELECT setval('${name}', ${value})`)
      await granted()
      return await one('sequences')
    }
    expect(await sequence('CREATE SEQUENCE wide', 'wide', '3000000000')).toMatchObject({ status: 'ok' })
    expect(await sequence('CREATE SEQUENCE round AS smallint CYCLE', 'round', '32767')).toMatchObject({ status: 'ok' })
    expect(
      await sequence('CREATE TABLE orders (id int); CREATE SEQUENCE old OWNED BY orders.id', 'old', '1600000000'),
    ).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/^public\.old is at 1600000000: 74\.5 % /),
      measurement: { unit: 'percent', warn: 70, limit: 90 },
    })
    expect(await sequence('CREATE SEQUENCE down INCREMENT -1 MINVALUE -100 MAXVALUE -1', 'down', '-95')).toMatchObject({
      status: 'failed',
      fault: 'threshold',
      message: expect.stringMatching(/^public\.down is at -95: 95 % /),
    })
    expect(
      await sequence('CREATE SEQUENCE upper AS int MINVALUE 2000000000', 'upper', '2000000001'),
      'the first values of a high range',
    ).toMatchObject({ message: expect.stringMatching(/^public\.down is at -95/) })
    await server.query('DROP SEQUENCE down')
    expect(
      await sequence('CREATE SEQUENCE countdown INCREMENT -1 MINVALUE 1 MAXVALUE 100 START 100', 'countdown', '96'),
    ).toMatchObject({ message: expect.stringMatching(/^public\.old is at 1600000000/) })
    expect(await sequence('CREATE TABLE used (id serial)', 'used_id_seq', '1')).toMatchObject({ status: 'warning' })
    expect(await one('sequences', { url: server.url('limited') })).toMatchObject({ notChecked: 'permission' })
  })
})
