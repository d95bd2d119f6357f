import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunDocument } from '../../src/core/protocol/index.ts'
import { refusedPort } from '../support/faults/faults.ts'
import { admin, startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { suiteWith } from '../support/suite/peer.ts'

const runType = 'application/vnd.svc.run+json;version=1'
/** An address of this machine that is not loopback: a request to it also comes from it. */
const address = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address
const missing = address === undefined ? 'this machine has no IPv4 address but loopback' : undefined

suiteWith(missing, 'the run document at an address that is not loopback', () => {
  const home: Home = temporaryHome()
  const open: Home = temporaryHome()
  let server: Serving
  let openServer: Serving
  let port: number
  const yaml = (more: string): string =>
    `types:\n  App:\n    monitors:\n      - {kind: tcp, name: orders-secret, host: 127.0.0.1, port: ${port}}\n${more}`
  beforeAll(async () => {
    port = await refusedPort()
    const listening = ['--host', address ?? '', '--insecure-listen']
    server = await startServe(home, yaml(''), listening)
    openServer = await startServe(open, yaml('serve: {details: anyone}\n'), listening)
  })
  afterAll(async () => {
    await server?.stop()
    await openServer?.stop()
  })

  async function ask(url: string, headers: Readonly<Record<string, string>> = {}) {
    const question = '/healthcheck?ExecutionMode=Basic&ServerType=App&IncludeServerStateInformation=true'
    const got = await fetch(url + question, { headers: { Accept: `${runType}, application/json`, ...headers } })
    const text = await got.text()
    expect([got.status, got.headers.get('content-type')]).toEqual([503, runType])
    return { text, run: JSON.parse(text) as RunDocument }
  }
  const expectFull = ({ run, text }: Awaited<ReturnType<typeof ask>>): void => {
    expect([run.view, run.status]).toEqual(['full', 'failed'])
    expect(run.monitors.map(({ name }) => name)).toContain('tcp orders-secret')
    expect(text).toContain(`127.0.0.1:${port}`)
    expect(run.monitors.flatMap(({ results }) => results.filter(({ measurement }) => measurement))).not.toEqual([])
    expect([typeof run.node, typeof run.serverState?.totalRamInMb]).toEqual(['string', 'number'])
  }

  test('S11 an anonymous caller reads kinds, checks, statuses and fault classes, and nothing else', async () => {
    const { run, text } = await ask(server.url)
    const { correlationId, startedAt, endedAt, durationMs, monitors, ...rest } = run
    expect(rest).toEqual({
      version: 1,
      type: 'App',
      mode: 'Basic',
      view: 'brief',
      status: 'failed',
      message: `App is unhealthy: 1 of ${monitors.length} monitors failed`,
    })
    expect([correlationId, startedAt, endedAt, durationMs].map((value) => typeof value)).toEqual([
      ...['string', 'string', 'string', 'number'],
    ])
    expect(monitors).toContainEqual({
      kind: 'tcp',
      scope: 'network',
      status: 'failed',
      results: [{ check: 'connect', slug: 'connect', status: 'failed', fault: 'refused' }],
    })
    const members = new Set(monitors.flatMap(({ results }) => results.flatMap((result) => Object.keys(result))))
    expect([...members].toSorted()).toEqual(['check', 'fault', 'slug', 'status'])
    for (const secret of ['orders-secret', '127.0.0.1', `:${port}`, 'measurement', 'milliseconds']) {
      expect(text).not.toContain(secret)
    }
  })

  test('S11 a credential that is invalid makes the caller anonymous', async () => {
    const { run } = await ask(server.url, { Authorization: 'Bearer no-good' })
    expect([run.view, run.node, run.serverState]).toEqual(['brief', undefined, undefined])
  })

  test('S11 a signed-in caller reads all of it', async () => {
    const signIn = await fetch(`${server.url}/auth/credentials`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
      body: JSON.stringify({ UserName: admin.userName, Password: admin.password }),
    })
    const { BearerToken } = (await signIn.json()) as { readonly BearerToken: string }
    expectFull(await ask(server.url, { Authorization: `Bearer ${BearerToken}` }))
  })

  test('S11 with serve.details: anyone an anonymous caller reads all of it', async () => {
    expectFull(await ask(openServer.url))
  })
})
