import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import pgbouncer from '../../../src/core/checks/kinds/pgbouncer/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { type Pgbouncer, pgbouncerMissing, startPgbouncer } from '../../support/servers/pgbouncer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const word = 'correct horse'

peerSuite(pgbouncerMissing ?? postgresMissing, 'PgBouncer', () => {
  let server: PostgresServer
  let pooler: Pgbouncer
  const ask = (
    options: Partial<Values<typeof pgbouncer.settings>> = {},
    mode: ExecutionMode = 'Standard',
  ): Promise<readonly Result[]> =>
    runKind(pgbouncer, { url: pooler.url('stats', 'pgbouncer'), password: secret(word), ...options }, mode)
  beforeAll(async () => {
    server = await startPostgres()
    await server.query(`CREATE ROLE monitor LOGIN PASSWORD '${word}'`)
    const databases = { postgres: `host=127.0.0.1 port=${server.port}` }
    pooler = await startPgbouncer({ users: { stats: word }, databases, settings: { default_pool_size: 1 } })
  })
  afterAll(async () => {
    await pooler.remove()
    await server.remove()
  })
  test('PgBouncer: the console of a healthy one is well, with an account of stats_users only', async () => {
    const results = await ask({}, 'Advanced')
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    const names = ['connect', 'console', 'wait time', 'waiting clients', 'databases', 'clients']
    expect(results.map(({ check }) => check)).toEqual(names)
    expect(checked(results, 'console')).toMatchObject({ message: expect.stringMatching(/^PgBouncer \d/) })
  })

  test('PgBouncer: the kind postgres says that it is at the console, and which kind reads it', async () => {
    const results = await runKind(
      postgres,
      { url: pooler.url('stats', 'pgbouncer'), password: secret(word) },
      'Standard',
    )
    expect(results).toMatchObject([
      {
        check: 'connect',
        fault: 'data',
        message: `${pooler.address} is the console of PgBouncer`,
        details: [expect.stringContaining('use the kind pgbouncer')],
      },
    ])
    const [other] = await runKind(pgbouncer, { url: server.url('monitor'), password: secret(word) })
    expect(other).toMatchObject({ fault: 'data', message: `${server.address} is not the console of PgBouncer` })
  })
})
