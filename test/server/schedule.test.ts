import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'
import { early, countingPeer as peer } from './scheduled-web.ts'

async function serving(yaml: string | undefined) {
  const folder = temporaryFolder()
  if (yaml !== undefined) writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const { service, runtime } = await testCore({
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    details: 'anyone',
  })
  const server = await testServer({ service, runtime })
  onTestFinished(async () => {
    await server.stop()
    await runtime.close()
  })
  const metrics = async (): Promise<string> => await (await fetch(`${server.url}/metrics`)).text()
  return { server, runtime, begin: () => runtime.answersAt?.(server.url), metrics }
}

test('W1 a server runs its monitors by itself, once it answers and without a caller', async () => {
  const { port, count } = await peer()
  const name = early('App', 'tcp', 5_000)
  const { begin, metrics } = await serving(
    `types: {App: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, timeout: 5s, every: 5s}]}\n`,
  )
  expect(count()).toBe(0)
  expect(await metrics()).not.toContain('svc_schedule_up')
  begin()
  await until(() => count() > 0)
  await until(async () =>
    (await metrics()).includes('svc_runs_total{type="App",depth="Advanced",trigger="schedule"} 1'),
  )
  const text = await metrics()
  expect(text).toContain('svc_schedule_up 1')
  expect(text).toMatch(/svc_schedule_lateness_seconds\{depth="Standard"\} \d/)
})

test('W1 `every: off` runs nothing', async () => {
  const { port, count } = await peer()
  const name = early('App', 'tcp')
  const { begin, metrics } = await serving(
    `serve: {every: off}\ntypes: {App: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}}]}\n`,
  )
  begin()
  expect(await metrics()).not.toContain('svc_schedule')
  expect(count()).toBe(0)
})

test('W1 a server without a svc.yaml runs nothing by itself', async () => {
  const { begin, metrics, runtime } = await serving(undefined)
  begin()
  expect(runtime.facts.schedule).toBeUndefined()
  expect(await metrics()).not.toMatch(/svc_schedule|trigger="schedule"/)
})

test('W1 a server that stops ends the runs of the schedule at their peers, and shows none of them as failed', async () => {
  const sockets = new Set<Socket>()
  let ended = 0
  const silent = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => (ended += 1))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void silent.close())
  await once(silent, 'listening')
  const { port } = silent.address() as { port: number }
  const name = early('App', 'tcp')
  const { begin, metrics, runtime } = await serving(
    `types: {App: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, expect: hello, timeout: 10m, every: 10m}]}\n`,
  )
  begin()
  await until(() => sockets.size > 0)
  expect(ended).toBe(0)
  runtime.cancelRuns?.()
  await until(() => ended === sockets.size)
  const text = await metrics()
  expect(text).toContain('svc_runs_total{type="App",depth="Advanced",trigger="schedule"} 1')
  expect(text).not.toMatch(/^svc_check_\w+\{.*monitor="tcp/m)
})

test('W1 a monitor runs by itself although the monitor on which it depends fails', async () => {
  const { port, count } = await peer()
  const name = early('App', 'tcp', 5_000)
  const { begin } = await serving(`types:
  App:
    - {kind: tcp, name: cause, host: 127.0.0.1, port: 1, every: off}
    - {kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, timeout: 5s, every: 5s, dependsOn: cause}
`)
  begin()
  await until(() => count() > 0)
})

test('W1 the start says what the schedule costs the watched servers, and how to stop it', async () => {
  const tcp = 'kind: tcp, host: 127.0.0.1, port: 1'
  const load = async (monitors: string, serve = '') =>
    (await serving(`${serve}types: {App: [${monitors}]}\n`)).runtime.facts.schedule
  expect(await load(`{${tcp}, name: a}, {${tcp}, name: b, every: 30s}`)).toBe(
    '3 monitors, 3 probes a minute, Advanced 2 probes an hour; every: off stops it',
  )
  expect(await load(`{${tcp}}, {kind: smtp, host: 127.0.0.1}`)).toBe(
    '3 monitors, 2 probes a minute, Advanced 2 probes an hour; every: off stops it',
  )
  expect(await load(`{${tcp}}`, 'serve: {every: {Standard: 10m, Advanced: off}}\n')).toBe(
    '2 monitors, 0.1 probes a minute; every: off stops it',
  )
  expect(await load(`{${tcp}}`, 'serve: {every: off}\n')).toBeUndefined()
  const clock = 'types: {App: {host: {clock: {reference: 127.0.0.1:1}}, monitors: []}}\n'
  expect((await serving(clock)).runtime.facts.schedule).toMatch(/^1 monitor, 1 probe a minute/)
})

test('W2 a caller gets what the schedule has found, without a run; with no-cache it gets a run', async () => {
  const { port, count } = await peer()
  const name = early('App', 'tcp', 5_000)
  const { begin, metrics, server } = await serving(
    `types: {App: {host: false, monitors: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, timeout: 5s, every: {Standard: 5s, Advanced: off}}]}}\n`,
  )
  const ask = async (headers = {}) => {
    const answer = await fetch(`${server.url}/healthcheck?ServerType=App&ExecutionMode=Standard`, { headers })
    return { age: Number(answer.headers.get('age')), body: (await answer.json()) as Record<string, unknown> }
  }
  begin()
  await until(async () => (await metrics()).includes('svc_type_success{type="App",depth="Standard"} 1'))
  const { age, body } = await ask()
  expect(age).toBeLessThanOrEqual(10)
  expect(body).toMatchObject({ Status: 'Success', MonitorSummaries: [{ Status: 'Success' }] })
  expect(await metrics()).not.toContain('trigger="caller"')
  const before = count()
  await ask({ 'Cache-Control': 'no-cache' })
  expect(count()).toBeGreaterThan(before)
  expect(await metrics()).toContain('svc_runs_total{type="App",depth="Standard",trigger="caller"} 1')
})
