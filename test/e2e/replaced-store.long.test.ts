import { execFile } from 'node:child_process'
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openData } from '../../src/core/store/index.ts'
import { ask, envOf, type ServeNode, signIn, startNode, statusAs, tokenOf } from '../support/program/serve-node.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const program = new URL('../../bin/run.js', import.meta.url).pathname
let folder: string
let store: string
let node: ServeNode
beforeEach(async () => {
  folder = temporaryFolder()
  store = join(folder, 'store', 'svc.db')
  node = await startNode({ store })
}, 60_000)
afterEach(() => node.stop())

type Ran = { readonly code: number; readonly stderr: string }
/** Another svc, on the same store. */
const svc = (...args: readonly string[]): Promise<Ran> =>
  new Promise((resolve) => {
    const env = { ...envOf(folder), SVC_STORE: store }
    execFile(process.execPath, [program, ...args], { env }, (error, _, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stderr }),
    )
  })
const addUser = (name: string): Promise<Ran> => svc('users', 'add', name, '--no-password')
const userNames = async (path: string): Promise<readonly string[]> => {
  const data = await openData({ store: path, create: false })
  const names = (await data.users.list()).map(({ userName }) => userName)
  await data.close()
  return names
}
const readiness = async () => await ask(`${node.url}/readyz`)

test('W10 after the store was moved, no write is acknowledged, another svc makes no new one in its place, and both go on when it is moved back', async () => {
  const token = tokenOf(await signIn(node))
  renameSync(store, `${store}.old`)
  expect((await signIn(node)).status).toBe(503)
  const { status, body } = await readiness()
  expect([status, body]).toEqual([
    503,
    expect.stringContaining('The store has been moved or removed while svc uses it'),
  ])
  const refused = await addUser('Ben')
  expect(refused.code).toBe(12)
  expect(refused.stderr).toContain(`is not the file that the svc serve with the process id ${node.pid} uses`)
  expect(existsSync(store)).toBe(false)
  renameSync(`${store}.old`, store)
  await until(async () => (await readiness()).status === 200, 20_000)
  expect((await addUser('Ben')).code).toBe(0)
  expect(await statusAs(node, token)).toBe(200)
}, 60_000)

test('W10 after the store was replaced by a copy, neither the server nor another svc acknowledges a write', async () => {
  expect((await signIn(node)).status).toBe(200)
  copyFileSync(store, `${store}.copy`)
  renameSync(`${store}.copy`, store)
  expect((await signIn(node)).status).toBe(503)
  expect((await readiness()).body).toContain('The store has been replaced by another file while svc uses it')
  const refused = await addUser('Ben')
  expect(refused.code).toBe(12)
  expect(refused.stderr).toContain(`process id ${node.pid}`)
  // A server that has ended keeps nobody from writing.
  expect(await node.stop()).toBe(0)
  expect((await addUser('Ben')).code).toBe(0)
}, 60_000)

test('W10 after its write-ahead log was removed, no write is acknowledged, and the end of the server brings back every earlier one', async () => {
  for (const name of ['Ben', 'Cleo']) expect((await addUser(name)).code).toBe(0)
  expect((await signIn(node)).status).toBe(200)
  rmSync(`${store}-wal`)
  expect((await signIn(node)).status).toBe(503)
  expect((await readiness()).body).toContain('The store has lost its write-ahead log while svc uses it')
  const refused = await addUser('Dora')
  expect(refused.code).toBe(12)
  expect(refused.stderr).toContain(`process id ${node.pid}`)
  expect(await node.stop()).toBe(0)
  expect((await addUser('Dora')).code).toBe(0)
  expect(await userNames(store)).toEqual(['Ann', 'Ben', 'Cleo', 'Dora'])
}, 60_000)

test('W10 the marker of a server that was killed keeps nobody from using the store in its place', async () => {
  node.signal('SIGKILL')
  await node.ended
  expect(existsSync(`${store}.serve.json`)).toBe(true)
  copyFileSync(store, `${store}.copy`)
  renameSync(`${store}.copy`, store)
  for (const end of ['-wal', '-shm']) rmSync(`${store}${end}`, { force: true })
  expect((await addUser('Ben')).code).toBe(0)
}, 60_000)
