import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
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

  test('PostgreSQL: a large table of dead tuples fails, and a small one does not count', async () => {
    await finds(run(), 'dead tuples ok: no table of this database has more than 10000 rows')
    const fault = await deadRows(server, 'orders', 20_000, 0.3)
    await finds(run(), [
      'dead tuples warning',
      /^most dead tuples, in public\.orders: 30 % /,
      { measurement: { unit: 'percent', warn: 20, limit: 40 } },
    ])
    await finds(run({ largeTables: 30_000 }), 'dead tuples ok')
    expect(await limited('dead tuples')).toMatchObject({ status: 'warning', measurement: { unit: 'percent' } })
    await fault.end()
  })

  test('PostgreSQL: figures that the server does not count are not checked, and a table after VACUUM is not due', async () => {
    const fault = await deadRows(server, 'visits', 30_000, 0.5)
    await finds(run(), ['last vacuum ok', { measurement: { warn: 7 * 86_400_000 } }])
    await server.query('VACUUM visits')
    await finds(run({ lastVacuum: { limit: 0 } }), 'last vacuum: none of 1 large table is due')
    const uncounted = await configured(server, { track_counts: 'off' })
    await finds(run(), 'dead tuples not checked (missing)', 'last vacuum not checked (missing)')
    await uncounted.end()
    await fault.end()
  })

  test('PostgreSQL: a sequence that has nearly used up its values, or those of its column, fails', async () => {
    await finds(run(), 'sequences ok: none')
    await server.query('CREATE SEQUENCE unlimited; CREATE TABLE fresh (id serial)')
    await finds(run(), 'sequences ok: none has been used')
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
    await finds(run(), 'sequences ok: none has been used')
    const sequence = async (make: string, name: string, value: string): Promise<Result> => {
      await server.query(make)
      await server.query(`SELECT setval('${name}', ${value})`)
      await granted()
      return await one('sequences')
    }
    expect(await sequence('CREATE SEQUENCE wide', 'wide', '3000000000')).toMatchObject({ status: 'ok' })
    expect(await sequence('CREATE SEQUENCE round AS smallint CYCLE', 'round', '32767')).toMatchObject({ status: 'ok' })
    expectResult(
      await sequence('CREATE TABLE orders (id int); CREATE SEQUENCE old OWNED BY orders.id', 'old', '1600000000'),
      'warning',
      /^public\.old is at 1600000000: 74\.5 % /,
      { measurement: { unit: 'percent', warn: 70, limit: 90 } },
    )
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
    await finds(run({ url: server.url('limited') }), ['sequences', { notChecked: 'permission' }])
  })
})
