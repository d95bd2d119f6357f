import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { beforeEach, expect, test } from 'vitest'
import { ask, signIn, startNode } from '../support/program/serve-node.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})

test('W9 SIGHUP does not end a server that was not started on a terminal: waiting calls are answered, and it reloads its configuration', async () => {
  await using node = await startNode({ store: join(folder, 'store', 'svc.db') })
  const question = `${node.url}/healthcheck?ServerType=App&ExecutionMode=Basic`
  const fresh = async () => (await ask(question, { headers: { 'cache-control': 'no-cache' } })).status
  const first = await fresh()
  // They wait for a run, which begins a second after the one before.
  const waiting = Array.from({ length: 8 }, fresh)
  await pause(200)
  node.signal('SIGHUP')
  expect(await Promise.all(waiting)).toEqual(Array.from({ length: 8 }, () => first))
  await until(() => node.log().includes('reloaded: 0 added, 0 removed, 0 changed'), 30_000)
  expect((await ask(`${node.url}/readyz`)).status).toBe(200)
  expect(await node.stop()).toBe(0)
}, 60_000)

test('W9 SIGHUP stops a server that was started on a terminal, as SIGTERM does', async () => {
  const home = temporaryHome()
  const ran = await home.terminal(['serve', '--only', 'health', '--port', '0'], (screen) =>
    screen.includes('listens on') ? { signal: 'SIGHUP' } : undefined,
  )
  expect(ran.stdout).toContain('stopping: finishing requests in progress')
  expect(ran.code).toBe(0)
}, 60_000)

test('W9 a limit of address space below what a server needs is refused at the start with both figures, and one above it works', async () => {
  const under = (kilobytes: number) => ['sh', '-c', `ulimit -v ${kilobytes}; exec "$@"`, 'sh']
  const store = join(folder, 'store', 'svc.db')
  await expect(startNode({ store, command: under(1_500_000) })).rejects.toThrow(
    /svc serve ended with 12: .*needs 1900 MB of address space, and its limit is 1536 MB/s,
  )
  await using node = await startNode({ store, command: under(1_900_000) })
  const attempts = await Promise.all(Array.from({ length: 16 }, () => signIn(node)))
  expect(attempts.map(({ status }) => status)).toEqual(attempts.map(() => 200))
  expect((await ask(`${node.url}/livez`)).status).toBe(200)
}, 60_000)
