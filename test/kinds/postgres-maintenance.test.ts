import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Result } from '../../src/core/engine/index.ts'
import postgres from '../../src/core/kinds/postgres/index.ts'
import type { Values } from '../../src/core/settings/index.ts'
import { suiteWith } from '../support/peer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/postgres.ts'
import { checked, runKind, secret } from '../support/run-kind.ts'

const word = 'correct horse'
type Given = Partial<Values<typeof postgres.settings>>

suiteWith(postgresMissing, 'PostgreSQL: maintenance', () => {
  let server: PostgresServer
  const run = (given: Given = {}): Promise<readonly Result[]> =>
    runKind(postgres, { url: server.url('monitor'), password: secret(word), restarted: {}, ...given }, 'Advanced')
  const one = async (check: string, given: Given = {}): Promise<Result> => checked(await run(given), check)
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
      const found = await one('idle in transaction', { idleInTransaction: { limit: 0 } })
      expect(found).toMatchObject({ status: 'failed', fault: 'threshold' })
      expect(found.message).toMatch(/^1 session is idle in a transaction, the longest \(pid \d+, user postgres\) for /)
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
    const found = await one('archive backlog', { archiveBacklog: { warn: 2, limit: 100 } })
    expect(found).toMatchObject({ status: 'warning', message: expect.stringMatching(/^WAL files that wait: [3-9] /) })
    expect(await one('archive backlog')).toMatchObject({ status: 'ok', measurement: { warn: 10, limit: 100 } })
    expect(await limited('archive backlog')).toMatchObject({
      notChecked: 'permission',
      details: ['GRANT pg_monitor TO "limited"', 'SQLSTATE 42501'],
    })
  })
})
