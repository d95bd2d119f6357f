import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { openStore } from '../../src/core/store/index.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { adminOver } from '../support/store/admin.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const password = 'violet-harbour-42'
const by = { who: 'local:tester', correlationId: 'test' }
const regrant = `CREATE TRIGGER "regrant" AFTER DELETE ON "grants" BEGIN
  INSERT OR IGNORE INTO "grants" ("userId", "kind", "name") VALUES (OLD."userId", 'role', 'Admin'); END`
/** svc compares the schema of a store that it uses every 10 s. */
const noticedMs = 25_000

let folder = ''
let store = ''
beforeEach(() => {
  folder = temporaryFolder()
  store = join(folder, 'store', 'svc.db')
})
const exec = (sql: string): void => {
  const database = new DatabaseSync(store)
  database.exec(sql)
  database.close()
}

async function serving() {
  const log: string[] = []
  const { service, runtime } = await testCore({
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store,
    details: 'anyone',
    log: ({ level, msg }) => log.push(`${level}: ${msg}`),
  })
  const server = await testServer({ service, runtime })
  const status = async (path: string, init?: RequestInit) => (await fetch(new URL(path, server.url), init)).status
  const signIn = () =>
    status('/auth/credentials', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ UserName: 'Ann', Password: password }),
    })
  return {
    log,
    service,
    signIn,
    /** Of what needs no store, and of what does. */
    statuses: async () => [await status('/livez'), await status('/readyz'), await signIn()],
    close: async (): Promise<void> => {
      await server.stop()
      await runtime.close()
    },
  }
}

describe('W16 svc serve and a trigger in its store', () => {
  test('W16 a server that starts names it, goes on without the store, and uses the store once the trigger is removed', {
    timeout: 60_000,
  }, async () => {
    openStore({ path: store, create: true }).close()
    exec(regrant)
    const { log, statuses, service, close, signIn } = await serving()
    expect(await statuses()).toEqual([200, 503, 503])
    expect(log.filter((line) => line.includes('svc did not make'))).toEqual([
      expect.stringMatching(
        /the trigger "regrant" on the table "grants": this server runs its monitors without it.*DROP TRIGGER "regrant";/,
      ),
    ])
    exec('DROP TRIGGER "regrant"')
    await until(() => log.some((line) => line.includes('this server uses it from now on')), noticedMs)
    await adminOver(service).users.add({ userName: 'Ann', password, roles: ['Admin'] }, by)
    expect(await signIn()).toBe(200)
    await close()
  })
  test('W16 a server that runs notices it, names it, and goes on without the store until it is removed', {
    timeout: 90_000,
  }, async () => {
    const { log, statuses, service, close } = await serving()
    await adminOver(service).users.add({ userName: 'Ann', password, roles: ['Admin'] }, by)
    expect(await statuses()).toEqual([200, 200, 200])
    exec(regrant)
    await until(async () => (await statuses())[2] === 503, noticedMs)
    expect(await statuses()).toEqual([200, 503, 503])
    expect(log.filter((line) => line.includes('svc did not make'))).toEqual([
      expect.stringMatching(/^warn: .*the trigger "regrant" on the table "grants".*DROP TRIGGER "regrant";/),
    ])
    exec('DROP TRIGGER "regrant"')
    await until(async () => (await statuses())[2] === 200, noticedMs)
    await until(async () => (await statuses())[1] === 200, noticedMs)
    await close()
  })
})
