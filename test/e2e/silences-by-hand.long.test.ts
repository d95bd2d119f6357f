import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, type TestContext, test } from 'vitest'
import { ask, type ServeNode, signIn, startNode, tokenOf } from '../support/program/serve-node.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { until } from '../support/suite/until.ts'

const waitMs = 180_000
// The tests of this file run at the same time: nearly all of what they take is waiting.

type Alert = {
  readonly status: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

/** A server with a receiver of webhooks, and what it was sent: `firing tcp shop critical refused`. */
async function watched(monitors: string, { onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const sent: string[] = []
  const hook = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      for (const { status, labels, annotations } of (JSON.parse(body) as { alerts: readonly Alert[] }).alerts)
        sent.push(`${status} ${labels['monitor']} ${annotations['state']} ${annotations['fault'] ?? '-'}`)
      response.writeHead(204).end()
    })
  })
  const folder = mkdtempSync(join(tmpdir(), 'svc-silence-'))
  const store = join(folder, 'svc.db')
  const yaml = `serve: {confirm: 5s}
notify: [{name: chat, webhook: {url: "${hook.origin}/chat"}}]
types:
${monitors}`
  const node = await startNode({ store, yaml })
  const home = svcHome()
  onTestFinished(async () => {
    await node.stop()
    await hook[Symbol.asyncDispose]()
    home.remove()
    rmSync(folder, { recursive: true, force: true })
  })
  const here = ['--store', store, '--config', node.config]
  const svc = async (...args: readonly string[]) => await home.run([...args, ...here])
  /** Whether the receiver knows all that it has to know. */
  const isSilencedNow = async (): Promise<boolean> =>
    (await ask(`${node.url}/metrics`)).body.includes('svc_notify_pending{receiver="chat"} 0\n')
  return { sent, node, home, store, svc, isSilencedNow }
}

const tcp = (name: string, port: number): string =>
  `  App:\n    host: false\n    monitors: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, every: 10s}]\n`

const health = async (home: Home, { url }: ServeNode, ...args: readonly string[]) =>
  await home.run(['health', '-t', 'App', '--server', url, ...args])

test.concurrent('M8 M11 a gate during a silence fails and says until when and why, passes with --honor-silences, and the fault is sent when the silence ends', {
  timeout: 4 * waitMs,
}, async (context) => {
  const { sent, node, home, svc } = await watched(tcp('shop', await freePort()), context)
  const made = await svc('silence', 'App/*', '--for', '30d', '--reason', 'patch night', '--json')
  expect(made.stderr).toBe('')
  const [{ id }] = (JSON.parse(made.stdout) as { silences: [{ id: string }] }).silences
  await until(async () => (await ask(`${node.url}/metrics`)).body.includes('svc_incident_info{'), waitMs)

  const gate = await health(home, node)
  expect([gate.code, gate.stdout]).toEqual([
    3,
    expect.stringMatching(/silenced until \d{4}-.* UTC, local:\S+: patch night/),
  ])
  const nagios = await health(home, node, '--output', 'nagios')
  expect([nagios.code, nagios.stdout]).toEqual([2, expect.stringMatching(/^SVC CRITICAL - .*\(silenced until /)])
  const honoring = await health(home, node, '--honor-silences', '--output', 'nagios')
  expect([honoring.code, honoring.stdout]).toEqual([0, expect.stringContaining('1 silenced result not counted')])
  const path = '/healthcheck?ExecutionMode=Standard&ServerType=App'
  expect((await ask(`${node.url}${path}`)).status).toBe(503)
  expect((await ask(`${node.url}${path}&Silence=Honor`)).status).toBe(200)
  expect((await ask(`${node.url}/readyz?Silence=Honor`)).status).toBe(200)
  const metrics = (await ask(`${node.url}/metrics`)).body
  expect(metrics).toMatch(/^svc_check_silenced\{.*monitor="tcp shop".*source="hand"\} 1$/m)
  expect(sent).toEqual([])

  expect((await svc('silence', 'end', id)).code).toBe(0)
  await until(() => sent.length > 0, waitMs)
  expect(sent).toEqual(['firing tcp shop failed refused'])
})

test.concurrent('M8 at a server, the permission silence allows to silence, and a silence that ends by its time sends what still stands', {
  timeout: 4 * waitMs,
}, async (context) => {
  const { sent, node } = await watched(tcp('shop', await freePort()), context)
  const token = tokenOf(await signIn(node))
  const post = async (path: string, body: object, bearer?: string) =>
    await ask(`${node.url}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
      body: JSON.stringify(body),
    })
  const wish = { Monitors: ['tcp shop'], For: 'PT40S', Reason: 'move' }
  expect((await post('/silences/monitors', wish)).status).toBe(401)
  const made = await post('/silences/monitors', wish, token)
  expect(made.status).toBe(200)
  expect(JSON.parse(made.body)).toMatchObject({
    Covers: [{ ServerType: 'App', MonitorName: 'tcp shop' }],
    Silence: { Source: 'Hand', By: 'Ann', Reason: 'move' },
  })
  await until(async () => (await ask(`${node.url}/metrics`)).body.includes('svc_incident_info{'), waitMs)
  expect(sent).toEqual([])
  await until(() => sent.length > 0, waitMs)
  expect(sent).toEqual(['firing tcp shop failed refused'])
})

test.concurrent('M9 an acknowledged fault is silent while it is the same, and loud once its class changes', {
  timeout: 6 * waitMs,
}, async (context) => {
  let status = 500
  const server = createServer((_request, response) => response.writeHead(status).end()).listen(0, '127.0.0.1')
  context.onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { sent, home, store, svc, isSilencedNow } = await watched(
    `  App:\n    host: false\n    monitors: [{kind: http, name: shop, url: "http://127.0.0.1:${port}/", every: 10s}]\n`,
    context,
  )
  await until(() => sent.length > 0, waitMs)
  const [first = ''] = sent
  expect(first).toMatch(/^firing http shop failed /)
  await until(isSilencedNow, waitMs)
  expect((await svc('ack', 'http shop', '--reason', 'INC-7')).code).toBe(0)
  // Longer than a server needs to know of it, and than two runs.
  await pause(25_000)
  expect(sent).toEqual([first])

  status = 401
  await until(() => sent.length > 1, waitMs)
  expect(sent[1]).toMatch(/^firing http shop failed /)
  expect(sent[1]).not.toBe(first)
  expect(JSON.parse((await svc('silence', 'list', '--json')).stdout)).toMatchObject({ silences: [] })
  const audit = async () => (await home.run(['audit', 'list', '--store', store])).stdout
  await until(async () => (await audit()).includes('the fault became another one'), waitMs)
})

test.concurrent('M9 an acknowledged warning that becomes a failure is loud, and its recovery is sent', {
  timeout: 6 * waitMs,
}, async (context) => {
  const { sent, svc, isSilencedNow } = await watched(
    `  Agents:\n    host: false\n    monitors: [{kind: heartbeat, name: jobs, agents: [nightly], every: 10s}]\n`,
    context,
  )
  const report = async (status: string): Promise<void> =>
    expect((await svc('heartbeat', 'nightly', '--status', status)).code).toBe(0)
  await report('Warn')
  await until(() => sent.includes('firing heartbeat jobs warning -'), waitMs)
  await until(isSilencedNow, waitMs)
  expect((await svc('ack', 'heartbeat jobs', '--reason', 'INC-8')).code).toBe(0)
  const before = sent.length
  await pause(6_000)
  await report('Fail')
  await until(() => sent.length > before, waitMs)
  expect(sent[before]).toMatch(/^firing heartbeat jobs failed, was a warning /)
  await report('Ok')
  await until(() => sent.some((one) => one.startsWith('resolved heartbeat jobs recovered')), waitMs)
})
