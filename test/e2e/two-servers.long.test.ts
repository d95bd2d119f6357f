import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, type TestContext, test } from 'vitest'
import { ask, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { svcHome } from '../support/program/svc.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { until } from '../support/suite/until.ts'

// The tests of this file run at the same time: nearly all of what they take is waiting.

const statusOf = async (node: ServeNode, path: string): Promise<number> => (await ask(`${node.url}${path}`)).status
/** Tests that run at the same time must not remove the folders of each other. */
function homeOf({ onTestFinished }: TestContext) {
  const home = svcHome()
  onTestFinished(home.remove)
  return { ...home, store: join(home.folder, 'store', 'svc.db') }
}
const marked = (store: string): unknown =>
  (JSON.parse(readFileSync(`${store}.serve.json`, 'utf8')) as { pid: unknown }).pid

test.concurrent('W30 a second svc serve as a service waits and is not ready, receivers are told each fault once, and it watches as soon as the first one was killed', {
  timeout: 240_000,
}, async (context) => {
  let messages = 0
  await using hook = await httpPeer((request, response) => {
    messages += request.url === '/chat' ? 1 : 0
    request.resume()
    response.writeHead(204).end()
  })
  const { store } = homeOf(context)
  const yaml = `serve: {confirm: 5s, every: {Standard: 10s, Advanced: off}}
notify: [{name: chat, webhook: {url: "${hook.origin}/chat"}}]
types: {App: {host: false, monitors: [{kind: tcp, name: shop, host: 127.0.0.1, port: 1}]}}
`
  await using first = await startNode({ store, yaml })
  // It listens in place of the server that waits, after 15 s.
  await using second = await startNode({ store, yaml })
  expect(await statusOf(second, '/livez')).toBe(200)
  const ready = await ask(`${second.url}/readyz`)
  expect([ready.status, ready.body]).toEqual([503, expect.stringContaining('another svc serve')])
  expect(await statusOf(second, '/healthcheck?ExecutionMode=Basic&ServerType=App')).toBe(503)
  expect(second.log()).toMatch(
    new RegExp(
      `another svc serve \\(process ${first.pid}, account \\S+, since \\S+Z, at ${first.url}\\) uses the store`,
    ),
  )
  expect(second.log()).toContain('this server is not ready and watches nothing until that one has ended')
  await until(() => messages > 0)
  expect([marked(store), messages]).toEqual([first.pid, 1])
  // A server that is frozen may go on at any time, and would tell everything again.
  first.signal('SIGSTOP')
  // Longer than the pause between two attempts.
  await pause(6_000)
  expect(await statusOf(second, '/readyz')).toBe(503)
  first.signal('SIGKILL')
  await first.ended
  await until(async () => (await statusOf(second, '/readyz').catch(() => 0)) === 200)
  await until(() => marked(store) === second.pid)
  // The incident goes on from the store, and nobody is told again.
  await until(async () => (await ask(`${second.url}/metrics`)).body.includes('svc_incident_info{'))
  expect(messages).toBe(1)
  expect(await second.stop()).toBe(0)
})

test.concurrent('W30 a server that starts while the one before finishes has the store as soon as that has ended', {
  timeout: 120_000,
}, async (context) => {
  const { store } = homeOf(context)
  await using before = await startNode({ store, flags: ['--drain-delay', '4s'] })
  const stopped = before.stop()
  await using next = await startNode({ store })
  expect(await stopped).toBe(0)
  expect(await statusOf(next, '/readyz')).toBe(200)
  expect(next.log()).not.toContain('is not ready')
  expect(marked(store)).toBe(next.pid)
})

test.concurrent('W30 on a terminal a second svc serve ends after 15 s with exit code 12, and names the process, the account and the URL of the other; --only health needs no store', {
  timeout: 120_000,
}, async (context) => {
  const home = homeOf(context)
  const { store } = home
  await using first = await startNode({ store })
  const { code, stdout } = await home.terminal(['serve', '--port', '0'], () => undefined, { COLUMNS: '200' })
  const screen = stdout.replaceAll(/\s+/g, ' ')
  expect([code, screen]).toEqual([
    12,
    expect.stringMatching(new RegExp(`Error: another svc serve \\(process ${first.pid}, account \\S+, since \\S+, at`)),
  ])
  expect(screen).toContain(`${first.url}) uses the store ${store}`)
  expect(screen).toContain(`kill ${first.pid}`)
  await using beside = await startNode({ store, only: 'health' })
  expect(await statusOf(beside, '/readyz')).toBe(200)
  // Nothing is written to that store without the lock.
  expect(await statusOf(first, '/readyz')).toBe(200)
})

test.concurrent('W30 a port in use is named with the svc serve of this account that has it', {
  timeout: 120_000,
}, async (context) => {
  const home = homeOf(context)
  await using first = await startNode({ store: join(home.folder, 'a', 'svc.db'), env: { HOME: home.folder } })
  const ran = await home.svc(['serve', '--port', String(first.port)])
  expect(ran.code).toBe(12)
  expect(ran.stderr).toContain(`the svc serve with the process id ${first.pid} has it`)
})
