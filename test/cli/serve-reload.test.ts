import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { reloadText } from '../../src/cli/serve/lists.ts'
import { announce, entryFile, leaveRequest, requestFile, takeRequest } from '../../src/cli/session/running.ts'
import { identityInPs, identityOf, type ProcessIdentity, startTicks } from '../../src/core/base/running-process.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { farMs, until } from '../support/suite/until.ts'

let home: Home
beforeEach(() => {
  home = temporaryHome()
})

/** Registers a process as if it were a server, and returns the file. */
function registered(
  pid: number,
  more: object = {},
  identity: { readonly [K in keyof ProcessIdentity]?: ProcessIdentity[K] | undefined } = {},
): string {
  const file = entryFile(home.folder, pid)
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const server = { pid, url: `http://127.0.0.1:${pid % 60_000}/`, store: `/store/${pid}.db` }
  writeFileSync(file, JSON.stringify({ ...server, ...identityOf(pid), ...identity, ...more }), { mode: 0o600 })
  return file
}
const reloading = { reloads: { latest: 0 } }
const reload = (...flags: readonly string[]) => home.run(['serve', 'reload', ...flags])

test('W9 svc serve reload without a running server exits with 6, and says what to run for others', async () => {
  const { code, stderr } = await reload()
  expect(code).toBe(6)
  expect(stderr).toMatch(/^Error: No svc serve of this account runs here\n/)
  expect(stderr).toContain('systemctl reload svc')
})

test.each([
  ['its start', { started: '1' }],
  ['its command', { command: 'another' }],
  ['its account', { uid: 4_242 }],
  ['anything', { started: undefined, command: undefined, uid: undefined }],
])('W9 a process that has got the id of a server that ended gets no signal: %s differs', async (_, identity) => {
  // This process: SIGHUP would end it.
  const file = registered(process.pid, reloading, identity)
  expect((await reload()).code).toBe(6)
  expect(existsSync(file)).toBe(false)
})

test.runIf(process.getuid?.() === 0)(
  'W9 an entry that another account wrote or could write gets nobody a signal',
  async () => {
    const file = registered(process.pid, reloading)
    chownSync(file, 65_534, 65_534)
    const foreign = await reload()
    expect([foreign.code, foreign.stderr]).toEqual([
      6,
      expect.stringMatching(/Not believed: .*belongs to another account/),
    ])
    // It is somebody else's, so it stays.
    expect(existsSync(file)).toBe(true)
    chownSync(file, 0, 0)
    chmodSync(dirname(file), 0o777)
    expect((await reload()).stderr).toMatch(/Not believed: .*accessible to other accounts/)
  },
)

test('W9 machines that share a home folder neither believe nor delete entries of each other', async () => {
  const file = registered(process.pid, reloading)
  const [, ownName = ''] = /([^/]+)-\d+\.json$/.exec(file) ?? []
  const other = file.replace(ownName, 'f'.repeat(16))
  renameSync(file, other)
  expect((await reload()).code).toBe(6)
  expect(readdirSync(dirname(file))).toEqual([other.replace(`${dirname(file)}/`, '')])
})

test.skipIf(process.platform === 'win32').each([
  [[], 12, 'The svc serve at http://127.0.0.1:1/ cannot reload by this command: an earlier version of svc started it'],
  [['--pid', String(process.pid)], 12, `Restart it: its process is ${process.pid}.`],
  [['--store', '/another.db'], 6, 'No svc serve of this account runs here'],
])('W9 a server of an earlier version gets no signal: with %j, exit %i and %s', async (flags, exit, words) => {
  const current = entryFile(home.folder, process.pid)
  mkdirSync(dirname(current), { recursive: true, mode: 0o700 })
  const file = join(dirname(current), `${process.pid}.json`)
  const entry = { pid: process.pid, url: 'http://127.0.0.1:1/', store: '/store.db', ...reloading }
  writeFileSync(file, JSON.stringify({ ...entry, started: startTicks(process.pid) }), { mode: 0o600 })
  const { code, stderr } = await reload(...flags)
  expect([code, stderr]).toEqual([exit, expect.stringContaining(words)])
  // That of another process, which may belong to another machine, stays as well.
  writeFileSync(file, JSON.stringify({ ...entry, pid: 2 ** 22 + 1 }), { mode: 0o600 })
  expect((await reload()).code).toBe(6)
  expect(existsSync(file)).toBe(true)
})

test('W9 a server signs its entry with its account, start and command, and removes it when it ends', () => {
  const forget = announce({ pid: process.pid, url: 'http://127.0.0.1:1/', store: 'none' }, home.folder)
  const file = entryFile(home.folder, process.pid)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject(identityOf(process.pid) ?? {})
  forget()
  expect(existsSync(file)).toBe(false)
})

test('W9 a request holds for one reload, and only while its command waits', () => {
  announce({ pid: process.pid, url: 'http://127.0.0.1:1/', store: 'none' }, home.folder)
  expect(takeRequest(home.folder)).toBeUndefined()
  for (const emptyInclude of [true, false]) {
    leaveRequest(process.pid, home.folder, { emptyInclude })
    expect([takeRequest(home.folder), takeRequest(home.folder)]).toEqual([{ emptyInclude }, undefined])
  }
  const ended = { pid: process.pid, ...identityOf(process.pid), started: '1', emptyInclude: true }
  const file = requestFile(home.folder, process.pid)
  writeFileSync(file, JSON.stringify(ended), { mode: 0o600 })
  expect(takeRequest(home.folder)).toBeUndefined()
  expect(existsSync(file)).toBe(false)
})

// macOS has no /proc: there, ps says when a process started. On Linux, only its format is the same.
test('W9 a line of ps identifies a process by account, start and command', () => {
  const line = '  501 Sun Nov  9 06:30:44 2026     /usr/local/bin/node svc serve\n'
  const identity = identityInPs(line)
  expect(identity).toMatchObject({ uid: 501, started: 'Sun Nov 9 06:30:44 2026' })
  expect(identityInPs(line.replace('44', '45'))?.started).not.toBe(identity?.started)
  expect(identityInPs(line.replace('serve', 'health'))?.command).not.toBe(identity?.command)
  expect(identityInPs('')).toBeUndefined()
})

test.skipIf(!existsSync('/bin/ps'))('W9 the program ps identifies this process, and no process that has ended', () => {
  expect(identityOf(process.pid, 'darwin')).toMatchObject({ uid: process.getuid?.() })
  expect(identityOf(2 ** 22 + 1, 'darwin')).toBeUndefined()
})

test('W9 svc serve reload sends no signal: it leaves a request, and waits for the outcome', async () => {
  const file = registered(process.pid, reloading)
  const waits = reload()
  // This process: SIGHUP would end it.
  await until(() => takeRequest(home.folder) !== undefined, farMs)
  const last = { number: 1, added: ['App/tcp a'], removed: [], changed: [], warnings: [] }
  const entry = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...entry, reloads: { latest: 1, last } }))
  const { code, stdout } = await waits
  expect([code, stdout]).toEqual([0, expect.stringContaining('App/tcp a')])
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
