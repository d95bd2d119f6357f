import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type MountNamespace, mountNamespaceMissing, startMountNamespace } from '../support/faults/mount-namespace.ts'
import { ask, envOf, type ServeNode, signIn, startNode, statusAs, tokenOf } from '../support/program/serve-node.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

const program = new URL('../../bin/run.js', import.meta.url).pathname
let home: Home
let store: string
beforeEach(() => {
  home = temporaryHome()
  store = join(home.folder, 'store', 'svc.db')
})

type Account = { readonly userName: string; readonly roles: readonly string[] }
const usersOf = async (at: Home): Promise<readonly Account[]> => {
  const { stdout } = await at.svc(['users', 'list', '--json'])
  return (JSON.parse(stdout) as { users: readonly Account[] }).users
}

/** Gives Bob one role after the other until `end`. */
function writer(node: ServeNode, token: string, prefix: string) {
  let requested = 0
  let acknowledged = 0
  let ended = false
  const work = (async () => {
    while (!ended) {
      requested += 1
      const { status } = await ask(`${node.url}/assignroles`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ UserName: 'bob', Roles: [`${prefix}-${requested}`] }),
      })
      if (status !== 200) throw new Error(`assignroles answered ${status}`)
      acknowledged = requested
    }
  })()
  return {
    requested: () => requested,
    acknowledged: () => acknowledged,
    end: async () => {
      ended = true
      await work
    },
  }
}

test('W15 a backup taken under writers, restored on another machine, signs in and has the roles of one moment, with every write that was acknowledged before', async () => {
  await using node = await startNode({ store })
  expect((await home.svc(['users', 'add', 'bob', '--no-password'])).code).toBe(0)
  const token = tokenOf(await signIn(node))
  const writers = ['a', 'b', 'c'].map((prefix) => writer(node, token, prefix))
  await until(() => writers.every((one) => one.acknowledged() >= 5), 60_000)
  const before = writers.map((one) => one.acknowledged())
  const file = join(home.folder, 'backup.db')
  const ran = await home.svc(['backup', file, '--json'])
  expect(ran).toMatchObject({ code: 0, stderr: '' })
  const after = writers.map((one) => one.requested())
  // The writers go on, so the backup is older than the store.
  await until(() => writers.every((one, at) => one.acknowledged() > (after[at] ?? 0)), 60_000)
  for (const one of writers) await one.end()

  const refused = await home.svc(['restore', file])
  expect(refused).toMatchObject({ code: 12, stdout: '' })
  expect(refused.stderr).toContain(`The svc serve with the process id ${node.pid} uses the store`)

  const other = temporaryHome()
  try {
    expect(await other.svc(['restore', file])).toMatchObject({ code: 0 })
    const bob = (await usersOf(other)).find(({ userName }) => userName === 'bob')
    const counts = ['a', 'b', 'c'].map((prefix) => {
      const numbers = (bob?.roles ?? []).flatMap((role) =>
        role.startsWith(`${prefix}-`) ? [Number(role.slice(prefix.length + 1))] : [],
      )
      // One moment: no role is missing between those that are there.
      expect(numbers).toEqual(numbers.map((_, at) => at + 1))
      return numbers.length
    })
    for (const [at, count] of counts.entries()) {
      expect(count).toBeGreaterThanOrEqual(before[at] ?? Number.POSITIVE_INFINITY)
      expect(count).toBeLessThanOrEqual(after[at] ?? 0)
    }
    await using restored = await startNode({ store: join(other.folder, 'store', 'svc.db') })
    expect(await statusAs(restored, token)).toBe(401)
    expect(await statusAs(restored, tokenOf(await signIn(restored)))).toBe(200)
    // The first server still runs, on its own store.
    expect(await statusAs(node, token)).toBe(200)
  } finally {
  }
}, 180_000)

test('W15 svc restore refuses while a server without a marker uses the store', async () => {
  await using node = await startNode({ store })
  const file = join(home.folder, 'backup.db')
  expect((await home.svc(['backup', file])).code).toBe(0)
  const before = await usersOf(home)
  // The server writes its marker again every 5 s, if it has not found a folder in its place.
  rmSync(`${store}.serve.json`)
  mkdirSync(`${store}.serve.json`)
  const refused = await home.svc(['restore', file])
  expect(refused).toMatchObject({ code: 12, stdout: '' })
  expect(refused.stderr).toContain(`Another process uses the store ${store}`)
  expect(await usersOf(home)).toEqual(before)
  expect((await signIn(node)).status).toBe(200)
}, 90_000)

/**
 * Runs svc, and kills it this long after an unfinished file has appeared in the folder. Undefined: lets it end. Gives how
 * long it ran with that file, and whether it was killed.
 */
async function killed(args: readonly string[], folder: string, afterMs?: number) {
  const unfinished = (): readonly string[] => readdirSync(folder).filter((name) => name.startsWith('.svc'))
  const before = new Set(unfinished())
  const child = spawn(process.execPath, [program, ...args], { env: envOf(home.folder), stdio: 'ignore' })
  const ended = once(child, 'exit')
  await until(() => child.exitCode !== null || unfinished().some((name) => !before.has(name)), 60_000, 1)
  const start = performance.now()
  if (afterMs !== undefined) {
    await Promise.race([ended, pause(afterMs)])
    child.kill('SIGKILL')
  }
  const [code] = await ended
  return { isKilled: code === null, ms: performance.now() - start }
}

/** A third of the kills come at once, the others spread over the usual time. */
const delay = (round: number, usualMs: number): number => (round % 3 === 0 ? 0 : (usualMs * round) / rounds)

const sound = (path: string): readonly unknown[] => {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    const names = database.prepare('SELECT "userName" AS name FROM "users" ORDER BY "nameKey"').all()
    const check = database.prepare('PRAGMA integrity_check').get()?.integrity_check
    return [check, ...names.map(({ name }) => name)]
  } finally {
    database.close()
  }
}

/** Makes the work of a backup long enough to be killed in the middle. */
function enlarge(path: string): void {
  const database = new DatabaseSync(path)
  database.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
    INSERT INTO "audit" ("at", "event", "who", "correlationId", "after")
      SELECT 1, 'signin', '-', i, hex(randomblob(200)) FROM n`)
  database.close()
}

const rounds = 24

test(`W15 ${rounds} times kill -9 during svc backup: the file is the backup before or a new one, whole`, async () => {
  await home.run(['users', 'add', 'ann', '--no-password'])
  enlarge(store)
  const file = join(home.folder, 'backup.db')
  await home.svc(['backup', file])
  await home.run(['users', 'add', 'bob', '--no-password'])
  const old = ['ok', 'ann']
  const next = ['ok', 'ann', 'bob']
  const copy = join(home.folder, 'copy.db')
  copyFileSync(file, copy)
  const { ms } = await killed(['backup', join(home.folder, 'other.db')], home.folder)
  let kills = 0
  for (let round = 0; round < rounds; round++) {
    const { isKilled } = await killed(['backup', file, '--overwrite'], home.folder, delay(round, ms))
    if (isKilled) kills += 1
    const contents = sound(file)
    expect([old, next]).toContainEqual(contents)
    if (contents.length === next.length) copyFileSync(copy, file)
    expect(sound(store)).toEqual(next)
  }
  process.stderr.write(`W15 ${kills} of ${rounds} killed in the middle of its work\n`)
  expect(kills).toBeGreaterThan(0)
  // What killed processes leave goes away one hour later, and does not keep the next one from its work.
  expect(await home.svc(['backup', file, '--overwrite'])).toMatchObject({ code: 0 })
  expect(sound(file)).toEqual(next)
}, 240_000)

test(`W15 ${rounds} times kill -9 during svc restore: the store is the one before or the restored one, whole`, async () => {
  await home.run(['users', 'add', 'ann', '--no-password'])
  enlarge(store)
  const file = join(home.folder, 'backup.db')
  await home.svc(['backup', file])
  await home.run(['users', 'add', 'bob', '--no-password'])
  const later = join(home.folder, 'later.db')
  await home.svc(['backup', later])
  const states = [
    ['ok', 'ann'],
    ['ok', 'ann', 'bob'],
  ]
  const folder = join(home.folder, 'store')
  const { ms } = await killed(['restore', later], folder)
  let kills = 0
  for (let round = 0; round < rounds; round++) {
    const from = round % 2 === 0 ? file : later
    const { isKilled } = await killed(['restore', from], folder, delay(round, ms))
    if (isKilled) kills += 1
    expect(existsSync(store)).toBe(true)
    const listed = await home.run(['users', 'list', '--json'])
    expect(listed.code).toBe(0)
    expect(states).toContainEqual(sound(store))
  }
  process.stderr.write(`W15 ${kills} of ${rounds} killed in the middle of its work\n`)
  expect(kills).toBeGreaterThan(0)
  expect((await home.svc(['restore', file])).code).toBe(0)
  expect(sound(store)).toEqual(['ok', 'ann'])
  for (const name of readdirSync(folder)) {
    if (name.includes('.before-')) expect(sound(join(home.folder, 'store', name))[0], name).toBe('ok')
  }
}, 300_000)

suiteWith(mountNamespaceMissing, 'W15 a file system without room', () => {
  let mounts: MountNamespace
  beforeEach(async () => {
    mounts = await startMountNamespace()
  })
  afterEach(async () => await mounts.remove())

  const svc = async (...args: readonly string[]) => {
    const [file, all] = mounts.command(process.execPath, [program, ...args])
    const child = spawn(file, [...all], { env: envOf(home.folder), stdio: ['ignore', 'ignore', 'pipe'] })
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += String(chunk)
    })
    const [code] = await once(child, 'close')
    return { code, stderr }
  }

  test.each([
    ['space', 'size=200k', 'the disk is full'],
    // The folder and the backup before have one each.
    ['inodes', 'size=20m,nr_inodes=2', 'no inode is left on its file system'],
    ['permission to write', 'ro', 'is on a read-only file system'],
  ])('W15 without %s, svc backup says so, and the backup before stays', async (_, options, why) => {
    await home.run(['users', 'add', 'ann', '--no-password'])
    await mounts.shell(`mkdir ${mounts.folder}/target && mount -t tmpfs -o size=20m none ${mounts.folder}/target
      echo before > ${mounts.folder}/target/b.db && mount -o remount,${options} ${mounts.folder}/target`)
    const file = join(mounts.folder, 'target', 'b.db')
    const { code, stderr } = await svc('backup', file, '--overwrite')
    expect(code).toBe(12)
    expect(stderr).toContain(`${file} cannot be written: `)
    expect(stderr).toContain(why)
    expect(await mounts.shell(`cat ${file}; ls -A ${mounts.folder}/target`)).toBe('before\nb.db\n')
  })

  test('W10 a store that cannot be made, or opened, because no inode is left is reported as such', async () => {
    const folder = join(mounts.folder, 'inodes')
    await mounts.shell(`mkdir ${folder} && mount -t tmpfs -o size=20m none ${folder} && mkdir -m 700 ${folder}/store
      mount -o remount,nr_inodes=2 ${folder}`)
    const at = join(folder, 'store', 'svc.db')
    const add = ['users', 'add', 'ann', '--no-password', '--store', at]
    const made = await svc(...add)
    expect([made.code, made.stderr]).toEqual([12, expect.stringContaining('no inode is left on its file system')])
    await mounts.shell(`mount -o remount,nr_inodes=100 ${folder}`)
    expect((await svc(...add)).code).toBe(0)
    await mounts.shell(`mount -o remount,nr_inodes=3 ${folder}`)
    const opened = await svc('users', 'list', '--store', at)
    expect([opened.code, opened.stderr]).toEqual([12, expect.stringContaining('no inode is left on its file system')])
  })

  test.each([
    ['space', 'size=400k', 'the disk is full'],
    ['inodes', 'size=20m,nr_inodes=3', 'no inode is left on its file system'],
  ])('W15 without %s, svc restore says so, and the previous store stays', async (_, options, why) => {
    await home.run(['users', 'add', 'ann', '--no-password'])
    const file = join(home.folder, 'b.db')
    expect((await home.svc(['backup', file])).code).toBe(0)
    const folder = join(mounts.folder, 'target')
    await mounts.shell(`mkdir ${folder} && mount -t tmpfs -o size=20m none ${folder} && mkdir -m 700 ${folder}/store
      cp -p ${store} ${folder}/store/svc.db && mount -o remount,${options} ${folder}`)
    const at = join(folder, 'store', 'svc.db')
    const before = await mounts.shell(`sha256sum ${at}`)
    const { code, stderr } = await svc('restore', file, '--store', at)
    expect(code).toBe(12)
    expect(stderr).toContain(why)
    expect(await mounts.shell(`mount -o remount,size=20m,nr_inodes=100 ${folder}; sha256sum ${at}`)).toBe(before)
    expect(await mounts.shell(`ls -A ${folder}/store`)).toBe('svc.db\n')
    expect(readFileSync(file).length).toBeGreaterThan(0)
  })
})
