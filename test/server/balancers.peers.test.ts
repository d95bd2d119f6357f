import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Peer, peer, speaks } from '../support/faults/faults.ts'
import { admin, ask, type ServeNode, startNode } from '../support/program/serve-node.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import {
  haproxyMissing,
  nginxMissing,
  type ReverseProxy,
  startHaproxy,
  startNginxProxy,
} from '../support/servers/reverse-proxy.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

const missing = nginxMissing ?? haproxyMissing ?? opensslMissing()
const question = '/healthcheck?ServerType=App&ExecutionMode=Basic'
/** Longer than the two checks after which HAProxy leaves a node out. */
const noticedMs = 6_000

type Lock = { readonly end: () => Promise<void> }

/** Another process that holds the lock of a store: every write of its server fails. */
async function lockStore(store: string): Promise<Lock> {
  const program = `const d = new (require('node:sqlite').DatabaseSync)(${JSON.stringify(store)}, { timeout: 10000 })
    d.exec('BEGIN IMMEDIATE'); process.stdin.once('data', () => { d.exec('ROLLBACK'); process.exit() }); console.log('locked')`
  const holder = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const kill = (): void => void holder.kill('SIGKILL')
  process.once('exit', kill)
  await once(holder.stdout, 'data')
  return {
    end: async () => {
      holder.stdin.end('end')
      await once(holder, 'exit')
      process.off('exit', kill)
    },
  }
}

peerSuite(missing, 'two servers behind the balancers of docs/serve.md', () => {
  let folder: string
  let target: Peer
  let monitored: string
  let nodes: readonly [ServeNode, ServeNode]
  const certificates = makeCertificates()
  const stores = (): readonly [string, string] => [join(folder, 'a', 'svc.db'), join(folder, 'b', 'svc.db')]
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-balancers-'))
    target = await peer(speaks('hello\n'))
    monitored = `types:\n  App:\n    - {kind: tcp, name: greeting, host: 127.0.0.1, port: ${target.port}, expect: hello}\n`
    const [a, b] = stores()
    const flags = ['--behind-proxy', '127.0.0.1', '--allowed-host', 'svc.example.com']
    nodes = [
      await startNode({ store: a, yaml: monitored, flags }),
      await startNode({ store: b, yaml: monitored, flags }),
    ]
  }, 60_000)
  afterAll(async () => {
    for (const node of nodes ?? []) await node.stop()
    await target?.close()
    certificates.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  /** The lines of the page, for these servers and a free port. */
  async function started(name: 'nginx' | 'haproxy'): Promise<ReverseProxy> {
    const block = new RegExp(`\`\`\`${name} balancer\\n(.*?)\`\`\``, 's').exec(
      readFileSync('docs/serve.md', 'utf8'),
    )?.[1]
    if (block === undefined) throw new Error(`docs/serve.md has no lines for ${name}`)
    const { cert, key } = certificates.selfSigned
    const lines = (port: number, own: string): string => {
      const files = { 'chain.pem': cert, 'key.pem': key, 'chain-and-key.pem': `${cert}\n${key}` }
      for (const [file, pem] of Object.entries(files)) writeFileSync(join(own, file), pem)
      return block
        .replace(
          /(listen|bind :?)\s?443/,
          (_, word: string) => `${word.startsWith('bind') ? 'bind' : word} 127.0.0.1:${port}`,
        )
        .replaceAll('10.0.0.1:8790', `127.0.0.1:${nodes[0].port}`)
        .replaceAll('10.0.0.2:8790', `127.0.0.1:${nodes[1].port}`)
        .replaceAll(/\b(chain|key|chain-and-key)\.pem/g, (file) => join(own, file))
    }
    return name === 'nginx' ? await startNginxProxy(lines) : await startHaproxy(lines)
  }

  type Sent = { readonly path: string; readonly body?: string }
  /** The status of each of so many requests through the balancer. */
  async function statuses({ port }: ReverseProxy, { path, body }: Sent, count = 10): Promise<readonly number[]> {
    const { request } = await import('node:https')
    const one = async (): Promise<number> => {
      const headers = { host: 'svc.example.com', accept: 'application/json', 'content-type': 'application/json' }
      const method = body === undefined ? 'GET' : 'POST'
      const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false, rejectUnauthorized: false })
      sent.end(body)
      const [response] = await once(sent, 'response')
      response.resume()
      await once(response, 'end')
      return response.statusCode
    }
    const all: number[] = []
    for (let n = 0; n < count; n += 1) all.push(await one())
    return all
  }
  const ten = (status: number): readonly number[] => Array.from({ length: 10 }, () => status)
  const health: Sent = { path: question }
  const signIn: Sent = {
    path: '/auth',
    body: JSON.stringify({ provider: 'credentials', UserName: admin.userName, Password: admin.password }),
  }
  const isReady = async (node: ServeNode): Promise<boolean> => (await ask(`${node.url}/readyz`)).status === 200

  /** The status of each of so many requests through each balancer. */
  const ofBoth = async (balancers: readonly ReverseProxy[], sent: Sent): Promise<readonly (readonly number[])[]> =>
    await Promise.all(balancers.map((balancer) => statuses(balancer, sent)))
  const tenEach = (status: number): readonly (readonly number[])[] => [ten(status), ten(status)]

  test('W13 behind haproxy and nginx: while the store of one server cannot be written, every sign-in reaches the other one, and without any store health still answers', async () => {
    await using haproxy = await started('haproxy')
    await using nginx = await started('nginx')
    const both = [haproxy, nginx]
    await until(async () => (await ofBoth(both, health)).flat().every((status) => status === 200))
    expect(await ofBoth(both, signIn)).toEqual(tenEach(200))
    const first = await lockStore(stores()[0])
    try {
      await until(async () => !(await isReady(nodes[0])), 30_000)
      await pause(noticedMs)
      expect(await ofBoth(both, signIn)).toEqual(tenEach(200))
      expect(await ofBoth(both, health)).toEqual(tenEach(200))
      const second = await lockStore(stores()[1])
      try {
        await until(async () => !(await isReady(nodes[1])), 30_000)
        await pause(noticedMs)
        expect(await ofBoth(both, health)).toEqual(tenEach(200))
        for (const balancer of both) expect([502, 503]).toContain((await statuses(balancer, signIn, 1))[0])
      } finally {
        await second.end()
      }
    } finally {
      await first.end()
    }
    await until(async () => (await isReady(nodes[0])) && (await isReady(nodes[1])), 30_000)
    await pause(noticedMs)
    expect(await ofBoth(both, signIn)).toEqual(tenEach(200))
  }, 180_000)

  test.each(['haproxy', 'nginx'] as const)(
    'W13 %s: while one server stops, no request fails',
    async (name) => {
      const store = join(folder, name, 'svc.db')
      const flags = ['--behind-proxy', '127.0.0.1', '--allowed-host', 'svc.example.com']
      const stopping = await startNode({ store, yaml: monitored, flags })
      const [, other] = nodes
      const both = nodes
      nodes = [stopping, other]
      onTestFinished(() => {
        nodes = both
      })

      await using balancer = await started(name)
      await until(async () => (await statuses(balancer, health)).every((status) => status === 200))
      const ended = stopping.stop()
      for (let round = 0; round < 3; round += 1) {
        expect(await statuses(balancer, health)).toEqual(ten(200))
        expect(await statuses(balancer, signIn)).toEqual(ten(200))
      }
      expect(await ended).toBe(0)
      expect(await statuses(balancer, health)).toEqual(ten(200))
    },
    120_000,
  )
})
