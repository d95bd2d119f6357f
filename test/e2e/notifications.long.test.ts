import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { ask, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const waitMs = 120_000

const listen = async (port: number): Promise<Server> => {
  const server = createServer((socket) => socket.end())
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return server
}

test('W23 svc serve tells a real HTTP server of a fault, is killed with -9, and its next process tells of the recovery', {
  timeout: 5 * waitMs,
}, async () => {
  const bodies: string[] = []
  await using hook = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      bodies.push(body)
      response.writeHead(204).end()
    })
  })
  const port = await freePort()
  const folder = temporaryFolder()
  const store = join(folder, 'svc.db')
  const yaml = `serve: {confirm: 5s, name: prod}
notify:
  - {name: chat, webhook: {url: "${hook.origin}/hook"}}
types:
  App:
    host: false
    monitors: [{kind: tcp, name: peer, host: 127.0.0.1, port: ${port}, every: 10s}]
`
  const running: ServeNode[] = []
  onTestFinished(async () => {
    for (const node of running) await node[Symbol.asyncDispose]()
  })
  const begin = async (): Promise<ServeNode> => {
    const node = await startNode({ store, yaml })
    running.push(node)
    return node
  }
  const all = () =>
    bodies.flatMap(
      (body) =>
        (JSON.parse(body) as { alerts: readonly { status: string; labels: Readonly<Record<string, string>> }[] })
          .alerts,
    )
  const first = await begin()
  await until(() => bodies.length > 0, waitMs)
  expect(all()[0]).toMatchObject({
    status: 'firing',
    labels: { server: 'prod', type: 'App', check: expect.any(String) },
  })
  await until(
    async () =>
      (await ask(`${first.url}/metrics`)).body.includes('svc_notifications_total{receiver="chat",result="accepted"} 1'),
    waitMs,
  )
  first.signal('SIGKILL')
  await first.ended
  const peer = await listen(port)
  onTestFinished(() => void peer.close())
  const next = await begin()
  await until(() => all().some(({ status }) => status === 'resolved'), waitMs)
  expect(await next.stop()).toBe(0)
})
