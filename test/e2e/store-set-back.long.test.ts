import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn, startNode } from '../support/program/serve-node.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

/** Some pauses between two sweeps. */
const sweptMs = 60_000

suiteWith(postgresMissing, 'a database that was restored to an earlier moment', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres(['max_connections=60'])
  })
  afterAll(async () => await server?.remove())

  test('W10 a running server says which audit entries are gone', async () => {
    const store = await freshDatabase(server)
    const name = new URL(store).pathname.slice(1)
    await using node = await startNode({ store })
    const newestEntry = async (): Promise<number> =>
      Number((await server.query('SELECT max(id) AS id FROM audit', name))[0]?.['id'])
    /** Two sweeps: the second began after this was called. */
    const sweeps = async (): Promise<void> => {
      for (const key of ['first', 'second']) {
        await server.query(`INSERT INTO failures VALUES ('${key}', 1, 1)`, name)
        await until(
          async () => (await server.query(`SELECT 1 FROM failures WHERE key = '${key}'`, name)).length === 0,
          sweptMs,
        )
      }
    }
    const withoutSessions = async (work: () => Promise<unknown>): Promise<void> => {
      await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
      await until(async () => {
        await server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`)
        return (await server.query(`SELECT 1 FROM pg_stat_activity WHERE datname = '${name}'`)).length === 0
      })
      await work()
    }
    expect((await signIn(node)).status).toBe(200)
    const restoredEntry = await newestEntry()
    await withoutSessions(async () => await server.query(`CREATE DATABASE ${name}_then TEMPLATE ${name} OWNER svc`))
    await server.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
    await until(async () => (await signIn(node)).status === 200, sweptMs)
    const lost = await newestEntry()
    await sweeps()
    expect(node.log()).not.toContain('an earlier state of itself')
    await withoutSessions(async () => {
      await server.query(`ALTER DATABASE ${name} RENAME TO ${name}_now`)
      await server.query(`ALTER DATABASE ${name}_then RENAME TO ${name}`)
    })
    await until(() => node.log().includes('an earlier state of itself'), sweptMs)
    expect(node.log()).toContain(
      `audit entries ${restoredEntry + 1} to ${lost}, and the changes that they name, are gone`,
    )
  }, 240_000)
})
