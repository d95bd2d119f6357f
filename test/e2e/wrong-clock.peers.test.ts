import { execFile } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aheadBy, fakeTimeMissing } from '../support/faults/clock.ts'
import {
  admin,
  ask,
  envOf,
  figure,
  type ServeNode,
  signIn,
  startNode,
  statusAs,
  tokenOf,
} from '../support/program/serve-node.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../support/servers/postgres.ts'
import { freshDatabase } from '../support/store/data-fixture.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

/** Longer than the pause between two sweeps. */
const sweptMs = 13_000
const day = 86_400

peerSuite(postgresMissing ?? fakeTimeMissing, 'W12 nodes whose clocks differ on one store', () => {
  let server: PostgresServer
  let store: string
  let right: ServeNode
  let invalid: ServeNode
  let late: ServeNode
  beforeAll(async () => {
    server = await startPostgres(['max_connections=60'])
    store = await freshDatabase(server)
    // Failures lock a name only for addresses beyond this machine.
    const yaml = 'serve: {trustProxy: [127.0.0.1], trustLocal: true}\n'
    right = await startNode({ store, yaml })
    invalid = await startNode({ store, yaml, env: aheadBy('40d') })
    late = await startNode({ store, yaml, env: aheadBy('2m') })
  }, 120_000)
  afterAll(async () => {
    for (const node of [right, invalid, late]) await node?.stop()
    await server?.remove()
  })

  test('W12 a node whose clock is 40 days ahead signs nobody out on another node, and sweeps nothing before its time', async () => {
    const signedIn = await signIn(right)
    expect(signedIn.status).toBe(200)
    const token = tokenOf(signedIn)
    expect(await Promise.all([right, invalid, late].map((node) => statusAs(node, token)))).toEqual([200, 200, 200])
    const before = await server.query('SELECT count(*)::int AS n FROM "accessTokens"', new URL(store).pathname.slice(1))
    await pause(sweptMs)
    expect(await Promise.all([right, invalid, late].map((node) => statusAs(node, token)))).toEqual([200, 200, 200])
    const after = await server.query('SELECT count(*)::int AS n FROM "accessTokens"', new URL(store).pathname.slice(1))
    expect(after).toEqual(before)
  }, 60_000)

  test('W12 a sign-in at the node ahead is worth as much as one at another node', async () => {
    const rows = async (sql: string) => await server.query(sql, new URL(store).pathname.slice(1))
    const token = tokenOf(await signIn(invalid))
    expect(await statusAs(right, token)).toBe(200)
    const [{ ahead: newest } = {}] = await rows(
      'SELECT max("expiresAt") / 1000.0 - extract(epoch FROM clock_timestamp()) AS ahead FROM "accessTokens"',
    )
    expect(Number(newest)).toBeLessThanOrEqual(15 * 60 + 1)
    const [{ ahead: audited } = {}] = await rows(
      'SELECT max("at") / 1000.0 - extract(epoch FROM clock_timestamp()) AS ahead FROM "audit"',
    )
    expect(Math.abs(Number(audited))).toBeLessThan(30)
  })

  test('W12 failures at the node ahead lock the name no longer than failures at another node', async () => {
    const elsewhere = { 'x-forwarded-for': '192.0.2.9' }
    for (let attempt = 0; attempt < 10; attempt += 1) await signIn(invalid, 'wrong', 'nobody', elsewhere)
    const database = new URL(store).pathname.slice(1)
    const [failures = {}] = await server.query(
      `SELECT count(*)::int AS n, max("lastAt") / 1000.0 - extract(epoch FROM clock_timestamp()) AS ahead FROM "failures"`,
      database,
    )
    expect(failures['n']).toBeGreaterThan(0)
    expect(Number(failures['ahead'])).toBeLessThan(1)
    const [guesses = {}] = await server.query(
      `SELECT count(*)::int AS n, max("fullAt") / 1000.0 - extract(epoch FROM clock_timestamp()) AS ahead FROM "guesses"`,
      database,
    )
    expect(guesses['n']).toBe(1)
    expect(Number(guesses['ahead'])).toBeLessThan(day)
  }, 60_000)

  test('W12 /metrics has the difference, a warning names it above 30 s, and above 15 minutes the node is not ready', async () => {
    expect(Math.abs((await figure(right, 'svc_store_clock_skew_seconds')) ?? 99)).toBeLessThan(5)
    expect(Math.abs(((await figure(invalid, 'svc_store_clock_skew_seconds')) ?? 0) - 40 * day)).toBeLessThan(5)
    expect(Math.abs(((await figure(late, 'svc_store_clock_skew_seconds')) ?? 0) - 120)).toBeLessThan(5)
    expect((await ask(`${right.url}/readyz`)).status).toBe(200)
    expect((await ask(`${late.url}/readyz`)).status).toBe(200)
    const unready = await ask(`${invalid.url}/readyz`)
    expect(unready.status).toBe(503)
    expect(unready.body).toContain('Not ready: sign-in does not work at the moment')
    expect(invalid.log()).toMatch(
      /"level":"warn"[^\n]*40 days ahead of the clock of the store; this server is not ready/,
    )
    expect((await ask(`${invalid.url}/livez`)).status).toBe(200)
    await until(() => /"level":"warn"[^\n]*ahead of the clock of the store/.test(late.log()))
    expect(right.log()).not.toContain('the clock of the store')
  })

  test('W12 a command on a machine whose clock is ahead creates a key that lives as long as it says', async () => {
    const folder = temporaryFolder()
    const program = new URL('../../bin/run.js', import.meta.url).pathname
    try {
      await promisify(execFile)(
        process.execPath,
        [program, 'keys', 'create', 'night', '--user', admin.userName, '--expires', '1h'],
        { env: { ...envOf(folder), SVC_STORE: store, ...aheadBy('40d') } },
      )
    } finally {
    }
    const [{ ahead: until } = {}] = await server.query(
      'SELECT max("expiresAt") / 1000.0 - extract(epoch FROM clock_timestamp()) AS ahead FROM "apiKeys"',
      new URL(store).pathname.slice(1),
    )
    expect(Math.round(Number(until) / 60)).toBe(60)
  })
})
