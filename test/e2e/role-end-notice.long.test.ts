import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startNode } from '../support/program/serve-node.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { freePort } from '../support/servers/server.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const waitMs = 40_000

test('O8 svc serve tells receivers once that a role ends soon, and the next process does it if none accepted', {
  timeout: 5 * waitMs,
}, async () => {
  const bodies: string[] = []
  await using hook = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      bodies.push(body)
      response.writeHead(204).end()
    })
  })
  const folder = temporaryFolder()
  const store = join(folder, 'store', 'svc.db')
  const home = temporaryHome()
  const svc = async (...args: readonly string[]): Promise<void> => {
    const { code, stderr } = await home.svc([...args, '--store', store])
    if (code !== 0) throw new Error(stderr)
  }
  const yaml = (origin: string): string => `serve: {name: prod}
notify:
  - {name: chat, webhook: {url: "${origin}/hook"}}
  - {name: pager, only: {severity: failed}, webhook: {url: "${origin}/pager"}}
`
  await svc('users', 'add', 'root', '--no-password', '--role', 'Admin')
  await svc('users', 'add', 'bob', '--no-password')
  const assign = (role: string, time: string) =>
    svc('roles', 'assign', 'bob', '--role', role, '--for', time, '--reason', 'INC-1', '--local')
  // The notice of 301 s is due after a second; that of a day after 21.6 h; 300 s are too short for one.
  await assign('Deploy', '301s')
  await assign('Ops', '1d')
  await assign('Short', '300s')
  await pause(1_100)
  const unreachable = await startNode({ store, yaml: yaml(`http://127.0.0.1:${await freePort()}`) })
  await pause(1_500)
  await unreachable.stop()
  expect(bodies).toEqual([])
  const first = await startNode({ store, yaml: yaml(hook.origin) })
  onTestFinished(() => first[Symbol.asyncDispose]())
  await until(() => bodies.length > 0, waitMs)
  await first.stop()
  const second = await startNode({ store, yaml: yaml(hook.origin) })
  onTestFinished(() => second[Symbol.asyncDispose]())
  // Longer than the pause between two looks.
  await pause(35_000)
  expect(bodies).toHaveLength(1)
  expect(bodies[0]).toContain('role Deploy of bob ends soon')
  expect(bodies[0]).toMatch(/bob loses the role \\"Deploy\\" at .* UTC \(granted by local:\w+: INC-1\)/)
  // Another end is another notice.
  await svc('roles', 'extend', 'bob', '--role', 'Deploy', '--for', '50s', '--reason', 'INC-1 continues', '--local')
  await until(() => bodies.length === 2, 2 * waitMs)
})
