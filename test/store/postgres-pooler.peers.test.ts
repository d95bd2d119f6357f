import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import { linkPostgres } from '../../src/core/store/postgres/link.ts'
import { type Pgbouncer, pgbouncerMissing, startPgbouncer } from '../support/servers/pgbouncer.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { actor, faultOf, freshDatabase, newUser, storePassword } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

peerSuite(pgbouncerMissing ?? postgresMissing, 'a store behind PgBouncer', () => {
  let server: PostgresServer
  let direct = ''
  beforeAll(async () => {
    server = await startPostgres(['max_connections=40'])
    direct = await freshDatabase(server)
  })
  afterAll(async () => await server.remove())
  const database = (): string => new URL(direct).pathname.slice(1)
  async function behind(settings: Readonly<Record<string, string | number>>, use: (url: string) => Promise<void>) {
    const name = database()
    const bouncer: Pgbouncer = await startPgbouncer({
      users: { svc: storePassword },
      databases: { [name]: `host=127.0.0.1 port=${server.port} dbname=${name} user=svc password='${storePassword}'` },
      settings,
    })
    try {
      await use(direct.replace(`:${server.port}/`, `:${bouncer.port}/`))
    } finally {
      await bouncer.remove()
    }
  }

  describe.each([
    ['refuses settings of a connection', {}],
    [
      'ignores settings of a connection',
      { ignore_startup_parameters: 'statement_timeout,idle_in_transaction_session_timeout' },
    ],
  ])('W5 in transaction mode, when it %s', (_, settings) => {
    test('W5 twenty callers share two connections of the database, and every change is made once', async () => {
      await behind({ ...settings, default_pool_size: 2 }, async (url) => {
        const data = await openData({ store: url, create: true, env: {} })
        try {
          const before = (await data.users.list()).length
          const names = Array.from({ length: 20 }, (__, n) => `${Object.keys(settings).length}-${n}`)
          await Promise.all(names.map((name) => data.users.add(newUser(name), actor())))
          const own = data.forRequest()
          const all = await Promise.all(names.map((name) => own.users.find(name)))
          expect(all.map((user) => user?.userName)).toEqual(names)
          expect(await data.users.list()).toHaveLength(before + 20)
        } finally {
          await data.close()
        }
      })
    })
    test('W5 a statement of a transaction has the same time limit as without PgBouncer', async () => {
      await behind(settings, async (url) => {
        const link = await linkPostgres({ url, create: true, env: {} })
        try {
          const limits = await link.write(async (tx) => {
            const { rows } = await sql<{
              one: string
              other: string
            }>`SELECT current_setting('statement_timeout') AS one,
              current_setting('idle_in_transaction_session_timeout') AS other`.execute(tx)
            return rows[0]
          })
          expect(limits).toEqual({ one: '1500ms', other: '900ms' })
        } finally {
          await link.close()
        }
      })
    })
  })
  test('W5 when it accepts no more clients, the refusal says so', async () => {
    await behind({ max_client_conn: 1 }, async (url) => {
      // PgBouncer may count a connection for a moment after it has refused its settings.
      const open = () => openData({ store: url, create: true, env: {} })
      let first = await open().catch(() => undefined)
      await until(async () => {
        first ??= await open().catch(() => undefined)
        return first !== undefined
      })
      try {
        const { message } = await faultOf(open())
        expect(message).toMatch(/accepts no more connections$/)
        // Whoever has a connection goes on with it.
        await Promise.all(Array.from({ length: 10 }, () => first?.ping()))
      } finally {
        await first?.close()
      }
    })
  })
})
