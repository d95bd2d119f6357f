import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { reloadText } from '../../src/cli/serve/lists.ts'
import { startTicks } from '../../src/core/running-process.ts'
import { type Home, svcHome } from '../support/program/svc.ts'

let home: Home
beforeEach(() => {
  home = svcHome()
})
afterEach(() => home.remove())

/** Registers a process as if it were a server. */
function registered(pid: number, more: object = {}, started = startTicks(pid)): void {
  const folder = join(home.folder, '.cache', 'svc', 'running')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const entry = { pid, url: `http://127.0.0.1:${pid % 60_000}/`, store: `/store/${pid}.db`, started, ...more }
  writeFileSync(join(folder, `${pid}.json`), JSON.stringify(entry), { mode: 0o600 })
}
const reloading = { reloads: { latest: 0 } }
const reload = (...flags: readonly string[]) => home.run(['serve', 'reload', ...flags])

test('W9 svc serve reload without a running server exits with 6, and says what to run for others', async () => {
  const { code, stderr } = await reload()
  expect(code).toBe(6)
  expect(stderr).toMatch(/^Error: No svc serve of this account runs here\n/)
  expect(stderr).toContain('systemctl reload svc')
})

test('W9 a process that has got the id of a server that ended gets no signal', async () => {
  // This process: SIGHUP would end it.
  registered(process.pid, reloading, (startTicks(process.pid) ?? 0) + 1)
  expect((await reload()).code).toBe(process.platform === 'linux' ? 6 : 0)
})

test('W9 a server that SIGHUP would end gets no signal', async () => {
  registered(process.pid)
  const { code, stderr } = await reload()
  expect(code).toBe(12)
  expect(stderr).toContain('it was started on a terminal, where SIGHUP ends it')
})

test('W9 of several servers none is chosen by chance: the error names each with what chooses it', async () => {
  registered(process.pid, reloading)
  registered(process.ppid, reloading)
  const { code, stderr } = await reload()
  expect(code).toBe(2)
  expect(stderr).toContain('2 svc serve of this account run here: choose one with --pid')
  for (const pid of [process.pid, process.ppid]) expect(stderr).toContain(`--pid ${pid}   http`)
})

test.each([
  ['--config', 'other.yaml'],
  ['--store', 'other.db'],
  ['--pid', '1'],
])('W9 %s that no running server has exits with 6, and lists those that run', async (flag, value) => {
  registered(process.pid, { ...reloading, configuration: '/etc/svc/svc.yaml' })
  const { code, stderr } = await reload(flag, value)
  expect(code).toBe(6)
  expect(stderr).toContain(`--pid ${process.pid}   http`)
  expect(stderr).toContain('/etc/svc/svc.yaml')
})

test('W9 on a terminal, svc serve reload names what was added, removed and changed, twenty of each at most', () => {
  const screen = { isTTY: true, columns: 80, colour: false, unicode: true }
  const added = Array.from({ length: 22 }, (_, at) => `App/tcp m${at}`)
  const reloaded = { pid: 1, url: 'http://127.0.0.1:1', configuration: '/svc.yaml', added, removed: [], warnings: [] }
  const text = reloadText({ ...reloaded, changed: ['Sql/tcp db'] }, 'this machine', { json: false, screen })
  const [counts = '', ...names] = text.replaceAll(/\s+/g, ' ').split(' added: ')
  expect(counts).toContain('22 added, 0 removed, 1 changed')
  expect(names.join()).toMatch(/^App\/tcp m0, .*App\/tcp m19, and 2 more changed: Sql\/tcp db$/)
  expect(text).not.toContain('removed:')
})
