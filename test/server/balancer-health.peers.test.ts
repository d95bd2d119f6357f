import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { probedPeer } from '../support/faults/probed-peers.ts'
import { startServeProcess } from '../support/program/serve-process.ts'
import { haproxyMissing, startHaproxy } from '../support/servers/reverse-proxy.ts'
import { freePort } from '../support/servers/server.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { read } from '../support/suite/repository.ts'
import { until } from '../support/suite/until.ts'

async function startApplication(): Promise<number> {
  const server = createServer((_, response) => void response.end('served')).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  return (server.address() as AddressInfo).port
}

peerSuite(haproxyMissing, 'the lines for HAProxy in docs/load-balancers.md', () => {
  test('W13 HAProxy asks /healthcheck under the name of the server, and takes an application back when svc finds it healthy', async () => {
    const [, block = ''] = /```haproxy health\n(.*?)```/s.exec(read('docs/load-balancers.md')) ?? []
    expect(block).toContain('hdr Host svc.example.com')
    const monitored = await probedPeer('app', await freePort())
    onTestFinished(() => monitored.close())
    monitored.fail()
    const monitor = `{kind: tcp, name: app, host: 127.0.0.1, port: ${monitored.port}, expect: hello}`
    await using svc = await startServeProcess(`types:\n  App: [${monitor}]\n`, ['--allowed-host', 'svc.example.com'])
    const [a, b] = [await startApplication(), await startApplication()]
    await using haproxy = await startHaproxy((port) => {
      const front = `frontend web\n  mode http\n  bind 127.0.0.1:${port}\n  default_backend app\n`
      const own = block
        .replace('10.0.0.1:80', `127.0.0.1:${a}`)
        .replace('10.0.0.2:80', `127.0.0.1:${b}`)
        .replace('check port 8790 inter 10s', `check port ${svc.port} inter 500ms`)
      expect(own).toContain(`check port ${svc.port}`)
      return front + own
    })
    const status = async (): Promise<number> => (await fetch(`http://127.0.0.1:${haproxy.port}/`)).status
    // Before its first checks, HAProxy takes a server for healthy.
    await until(async () => (await status()) === 503)
    monitored.recover()
    await until(async () => (await status()) === 200)
  })
})
