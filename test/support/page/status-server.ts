import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { envOf, type ServeNode, startNode } from '../program/serve-node.ts'

const program = new URL('../../../bin/run.js', import.meta.url).pathname

export const viewer = { userName: 'viewer', password: 'quiet-lantern-73' } as const
/** Makes a request look like one of another machine, so that svc asks for a credential (S11). */
export const fromElsewhere = { 'x-forwarded-for': '192.0.2.9' } as const

/**
 * A real `svc serve` that watches 24 healthy paths, one that answers 500, one that is slow, a closed port and a monitor that
 * depends on it; with the Admin Ann and the user `viewer`, who has the permission `health` and nothing else.
 */
export async function startStatusServer(): Promise<ServeNode> {
  const web = createServer(({ url = '' }, response) => {
    response.statusCode = url === '/broken' ? 500 : 200
    setTimeout(() => response.end('ready'), url === '/slow' ? 400 : 0)
  }).listen(0, '127.0.0.1')
  await once(web, 'listening')
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const closedPort = (closed.address() as AddressInfo).port
  closed.close()
  const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`
  const paths = [...Array.from({ length: 24 }, (_, at) => `shop-${at}`), 'broken']
  const yaml = `serve: {every: 10s}
types:
  App:
    host: false
    monitors:
${paths.map((path) => `      - {kind: http, name: ${path}, url: '${url}/${path}', confirm: 5s}\n`).join('')}      - {kind: http, name: slow, url: '${url}/slow', latency: {warn: 200ms, limit: 3s}, confirm: 5s}
      - {kind: http, name: needs-orders, url: '${url}/broken', dependsOn: Sql/tcp orders, confirm: 5s}
  Sql: {host: false, monitors: [{kind: tcp, name: orders, host: 127.0.0.1, port: ${closedPort}, confirm: 5s}]}
  Batch: {host: false, monitors: [{kind: http, name: worker, url: '${url}/worker', confirm: 5s}]}
`
  const folder = mkdtempSync(join(tmpdir(), 'svc-status-'))
  const store = join(folder, 'store', 'svc.db')
  const node = await startNode({ store, yaml })
  execFileSync(
    process.execPath,
    [program, 'users', 'add', viewer.userName, '--permission', 'health', '--password-stdin'],
    { env: { ...envOf(folder), SVC_STORE: store }, input: viewer.password, stdio: ['pipe', 'ignore', 'inherit'] },
  )
  return {
    ...node,
    [Symbol.asyncDispose]: async () => {
      await node[Symbol.asyncDispose]()
      web.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
