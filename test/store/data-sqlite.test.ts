import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fixedClock } from '../../src/core/store/clock.ts'
import { type Data, openData } from '../../src/core/store/index.ts'
import { linkSqlite } from '../../src/core/store/sqlite-link.ts'
import { actor, failed, failuresOf, faultOf, newUser, nobody, withData } from '../support/store/data-fixture.ts'
import { endsByDeadline } from '../support/suite/deadline.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

let folder = ''
let store = ''
let data: Data
beforeEach(async () => {
  folder = temporaryFolder()
  store = join(folder, 'home', 'svc.db')
  data = await openData({ store, create: true })
})
afterEach(() => data.close())
const holding = (): DatabaseSync => {
  const holder = new DatabaseSync(store)
  holder.exec('BEGIN IMMEDIATE')
  return holder
}

test('D1 a transaction begins IMMEDIATE: it has the write lock before it reads', async () => {
  const link = linkSqlite({ path: store, create: false })
  const holder = holding()
  let ran = 0
  const write = link.write(async (tx) => {
    ran += 1
    return await tx.selectFrom('users').select('id').execute()
  })
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(ran).toBe(0)
  holder.exec('COMMIT')
  holder.close()
  expect(await write).toEqual([])
  expect(ran).toBe(1)
  await link.close()
})
test('D1 a store that another process holds is unavailable after 2 s, and blocks nothing else meanwhile', async () => {
  await data.users.add(newUser('alice'), actor())
  const holder = holding()
  let beats = 0
  const beat = setInterval(() => {
    beats += 1
  }, 5)
  const writes = Array.from({ length: 5 }, (_, n) => faultOf(failed(data, `k${n}`, 1, 1)))
  expect((await data.users.find('ALICE'))?.userName).toBe('alice')
  const faults = await endsByDeadline(2_000, Promise.all(writes), 5)
  clearInterval(beat)
  expect(faults.map(({ fault, message }) => [fault, message])).toEqual(
    Array(5).fill(['Unavailable', 'The store is locked by another process']),
  )
  // A try may block for 20 ms. Were this process to stand still while it waits, it would beat once a write at most.
  expect(beats).toBeGreaterThan(20)
  holder.exec('ROLLBACK')
  holder.close()
  expect(await failed(data, 'k0', 1, 1)).toBe(1)
})
test('D4 on a full disk a change is unavailable, none of it is stored, and reads continue', async () => {
  const { id } = await data.users.add(newUser('alice'), actor())
  const link = linkSqlite({ path: store, create: false })
  await link.close()
  const limit = new DatabaseSync(store)
  const { page_count: pages } = limit.prepare('PRAGMA page_count').get() as { page_count: number }
  limit.close()
  await data.close()
  const full = await fullAfter(pages)
  const change = { add: { roles: ['x'.repeat(50_000)], permissions: [] }, remove: nobody }
  const fault = await faultOf(full.users.changeGrants(id, change, actor()))
  expect([fault.fault, fault.message]).toEqual(['Unavailable', 'The store cannot be written: the disk is full'])
  expect((await full.users.byId(id))?.roles).toEqual([])
  expect((await full.audit.list({ limit: 9 })).map(({ event }) => event)).toEqual(['user.added'])
  await failed(full, 'k', 1, 1)
  await full.close()
})
test('a read writes nothing', async () => {
  const { id } = await data.users.add(newUser('alice'), actor())
  const size = (): number => statSync(`${store}-wal`).size
  const before = size()
  await Promise.all([
    data.ping(),
    data.users.find('alice'),
    data.users.byId(id),
    data.users.list(),
    data.users.any(),
    data.users.anyAdmin(),
    data.users.holders('Admin'),
    data.sessions.find('x'),
    data.tokens.access('x'),
    data.tokens.refresh('x'),
    data.keys.find('x'),
    data.keys.list(),
    failuresOf(data, 'x'),
    data.audit.list({ limit: 1 }),
  ])
  expect(size()).toBe(before)
  await failed(data, 'x', 1, 1)
  expect(size()).toBeGreaterThan(before)
})
test('a transaction that fails does not disturb the next ones, and no read sees half of it', async () => {
  const { id } = await data.users.add(newUser('alice'), actor())
  const counts = new Set<number>()
  const reading = (async () => {
    for (let n = 0; n < 200; n += 1) {
      counts.add((await data.users.byId(id))?.roles.length ?? -1)
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  const change = { add: { roles: ['a', 'b', 'c'], permissions: [] }, remove: nobody }
  const ends = await Promise.allSettled([
    data.users.add(newUser('alice'), actor()),
    data.users.changeGrants(id, change, actor()),
    data.users.add(newUser('Alice'), actor()),
    data.users.add(newUser('bob'), actor()),
  ])
  await reading
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled'])
  expect([...counts].filter((count) => count !== 0 && count !== 3)).toEqual([])
  await withData(store, async (again) => expect(await again.users.list()).toHaveLength(2))
})

/** A store that may not grow beyond so many pages, as on a full disk. */
async function fullAfter(pages: number): Promise<Data> {
  const { dataOver } = await import('../../src/core/store/data-over.ts')
  const { sql } = await import('kysely')
  const link = linkSqlite({ path: store, create: false })
  // Of the connection, not of the file: so it is set on the one that writes.
  await link.write((tx) => sql`PRAGMA max_page_count = ${sql.raw(String(pages))}`.execute(tx))
  return dataOver(link, fixedClock(Date.now), { isShared: false, link: async () => undefined, close: async () => {} })
}
