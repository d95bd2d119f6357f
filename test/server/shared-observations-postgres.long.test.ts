import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { remove, serverFolder } from '../support/servers/server.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'
import { serveTypes } from './serve-types.ts'

suiteWith(postgresMissing, 'PostgreSQL that two types monitor', () => {
  let server: PostgresServer
  const folder = serverFolder('shared-observations')
  const secret = join(folder, 'password')
  beforeAll(async () => {
    writeFileSync(secret, 'correct horse', { mode: 0o600 })
    server = await startPostgres()
    await server.query('CREATE DATABASE orders')
    await server.query("CREATE ROLE monitor LOGIN PASSWORD 'correct horse'")
  })
  afterAll(async () => {
    await server.remove()
    remove(folder)
  })

  /** The number of connections to the database so far. The server counts a connection when it ends. */
  const connections = async (): Promise<number> => {
    await until(
      async () => (await server.query("SELECT 1 FROM pg_stat_activity WHERE datname = 'orders'")).length === 0,
    )
    const rows = await server.query("SELECT sessions::int AS count FROM pg_stat_database WHERE datname = 'orders'")
    return (rows[0] as { readonly count: number }).count
  }

  test('H8 PostgreSQL that two types monitor gets as many connections as of one type', async () => {
    const monitor = (type: string): string =>
      `  ${type}:\n    - {kind: postgres, name: orders, url: '${server.url('monitor', 'orders')}', password: {file: ${secret}}, depth: Basic}\n`
    await using site = await serveTypes(monitor('App') + monitor('Sql'))
    const before = await connections()
    const answers = await Promise.all([site.health('App'), site.health('Sql')])
    for (const { body } of answers) expect(body).toMatchObject({ Status: 'Success' })
    await until(async () => (await connections()) > before)
    const forBoth = (await connections()) - before
    await site.health('App', { 'Cache-Control': 'no-cache' })
    await until(async () => (await connections()) > before + forBoth)
    expect((await connections()) - before).toBe(2 * forBoth)
  })
})
