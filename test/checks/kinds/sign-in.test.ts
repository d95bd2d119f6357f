import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { probePasswordHash, probeUserLookup } from '../../../src/core/accounts/auth/index.ts'
import { HashQueue, passwords } from '../../../src/core/accounts/auth/passwords.ts'
import { Fault } from '../../../src/core/base/errors.ts'
import type { OwnSignIn } from '../../../src/core/checks/kinds/sign-in.ts'
import signIn, { lookUp } from '../../../src/core/checks/kinds/sign-in.ts'
import { assemble } from '../../../src/core/checks/plan/index.ts'
import { loadConfig } from '../../../src/core/config/index.ts'
import type { ExecutionMode, HealthCheckResponse } from '../../../src/core/protocol/index.ts'
import { openCore } from '../../../src/core/service/open.ts'
import { faultOf, openFixture } from '../../accounts/auth/fixture.ts'
import { checked, evaluated, runKind } from '../../support/engine/run-kind.ts'
import { peer, refusedPort } from '../../support/faults/faults.ts'
import { adminOver } from '../../support/store/admin.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

const folder = temporaryFolder()
const never = new AbortController().signal
const realNow = performance.now.bind(performance)
const slowed = (): number => realNow() / 100
const by = { who: 'local:tester', correlationId: 'test' }

const core = async (store: string | undefined, shared = false) =>
  openCore({
    version: '1.2.3',
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store,
    shared,
    details: 'signed-in',
  })
type Opened = Awaited<ReturnType<typeof core>>

const ask = ({ service }: Opened, mode: ExecutionMode): Promise<HealthCheckResponse> =>
  service.healthCheck(
    { ServerType: 'Identity', ExecutionMode: mode },
    { caller: { kind: 'local', account: 'tester' }, correlationId: 'test', signal: never, fresh: true },
  )
const own = ({ MonitorSummaries }: HealthCheckResponse) =>
  MonitorSummaries?.find(({ MonitorName }) => MonitorName === 'sign-in own accounts')
const messagesOf = (response: HealthCheckResponse) =>
  own(response)?.Results?.map(
    ({ MonitoringName, Status, StatusMessage }) => `${MonitoringName} ${Status}: ${StatusMessage}`,
  )

let stores = 0
const fresh = (): string => {
  stores += 1
  return join(folder, `s${stores}`, 'svc.db')
}

describe('Identity without configuration', () => {
  // A clock on which no hash is slow, however busy the machine is.
  beforeAll(() => {
    vi.spyOn(performance, 'now').mockImplementation(slowed)
  })
  afterAll(() => {
    vi.restoreAllMocks()
  })

  test("svc's own sign-in is checked for real, and the headline reports that as a warning", async () => {
    const opened = await core(fresh(), true)
    onTestFinished(() => opened.runtime.close())

    await adminOver(opened.service).users.add({ userName: 'Ann', password: 'violet-harbour-42', roles: ['Admin'] }, by)
    const response = await ask(opened, 'Standard')
    expect(response.StatusMessage).toContain("Identity: no server configured; svc's own sign-in was checked")
    expect(messagesOf(response)).toEqual([
      expect.stringMatching(/^store Success: (?:warning: )?account store answered in /),
      'administrator Success: at least one Admin may sign in',
      expect.stringMatching(/^look-up Success: (?:warning: )?account looked up in /),
      expect.stringMatching(/^password hash Success: (?:warning: )?test password hashed and verified in /),
    ])
    expect((await ask(opened, 'Basic')).StatusMessage).toContain("svc's own sign-in was checked")
  })

  test('Basic opens the store and looks for an Admin, and hashes nothing', async () => {
    const opened = await core(fresh())
    onTestFinished(() => opened.runtime.close())

    const lines = messagesOf(await ask(opened, 'Basic'))
    expect(lines?.map((line) => line.split(' ')[0])).toEqual(['store', 'administrator'])
  })

  test('the lack of an Admin is a warning with the next command, even where others can sign in', async () => {
    const opened = await core(fresh(), true)
    const admin = adminOver(opened.service)
    const warning = 'administrator Success: warning: no user is Admin: svc users add NAME --role Admin'
    onTestFinished(() => opened.runtime.close())

    expect(messagesOf(await ask(opened, 'Basic'))).toContain(warning)
    await admin.users.add({ userName: 'Ned', password: 'violet-harbour-42', roles: ['Editor'] }, by)
    const response = await ask(opened, 'Standard')
    expect(messagesOf(response)).toContain(warning)
    expect(own(response)?.Status).toBe('Success')
  })

  test('a command creates a missing store, as for Sql', async () => {
    const store = fresh()
    const opened = await core(store)
    onTestFinished(() => opened.runtime.close())

    expect(messagesOf(await ask(opened, 'Basic'))?.[0]).toMatch(/^store Success/)
    expect(existsSync(store)).toBe(true)
  })

  test.each([
    ['is another program’s database', (path: string) => new DatabaseSync(path).exec('CREATE TABLE t (a)')],
    ['is not a database', (path: string) => writeFileSync(path, 'x'.repeat(5_000), { mode: 0o600 })],
  ])('a store that %s is one failure, in words', async (_, make) => {
    const store = fresh()
    mkdirSync(join(store, '..'), { mode: 0o700 })
    make(store)
    const opened = await core(store)
    onTestFinished(() => opened.runtime.close())

    const response = await ask(opened, 'Standard')
    expect(response.Status).toBe('Failure')
    const lines = messagesOf(response)
    expect(lines).toHaveLength(1)
    expect(lines?.[0]).toMatch(/^store Failure: \S.*svc\.db/)
    expect(lines?.[0]).not.toMatch(/Error:|SQLITE_|undefined/)
  })

  test('a store in a PostgreSQL that does not run is a failure without the password', async () => {
    const opened = await core(`postgres://svc:hunter2hunter2@127.0.0.1:${await refusedPort()}/svc`)
    onTestFinished(() => opened.runtime.close())

    const response = await ask(opened, 'Basic')
    expect(own(response)?.Status).toBe('Failure')
    expect(JSON.stringify(response)).not.toContain('hunter2')
  })

  test('a store in a PostgreSQL that never answers fails by its deadline', async () => {
    await using hole = await peer(() => {})
    const opened = await core(`postgres://svc@127.0.0.1:${hole.port}/svc`)
    try {
      const response = await endsByDeadline(2_000, ask(opened, 'Basic'), 4)
      expect(own(response)?.Status).toBe('Failure')
    } finally {
      await opened.runtime.close()
    }
    await expect.poll(hole.open).toBe(0)
  })

  test('without a store (serve --only health) it is not configured', async () => {
    const opened = await core(undefined, true)
    try {
      const response = await ask(opened, 'Basic')
      expect(response.Status).toBe('Failure')
      expect(response.StatusMessage).toContain('Identity is not configured here: add it under types: in svc.yaml')
      expect(own(response)).toBeUndefined()
    } finally {
      await opened.runtime.close()
    }
    const parts = { storePath: undefined, version: '1.2.3' }
    const planned = await assemble('Identity', {
      configured: [],
      host: false,
      parts,
      listening: async () => [],
      signal: never,
    })
    expect(planned.map(({ name }) => name)).toEqual(['Configuration'])
  })
})

describe('the self-test of sign-in', () => {
  test('counts no failure, audits nothing and changes no user', async () => {
    const { data, store, clock } = await openFixture()
    const rows = (): unknown => {
      const database = new DatabaseSync(store, { readOnly: true })
      const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all()
      const all = tables.map(({ name }) => [name, database.prepare(`SELECT * FROM "${String(name)}"`).all()])
      database.close()
      return all
    }
    const before = rows()
    await probeUserLookup(data, () => clock.at)
    expect(await probePasswordHash(passwords(new HashQueue(2, 20_000)), never)).toBe(true)
    expect(rows()).toEqual(before)
    expect(JSON.stringify(before)).toContain('Ann')
  })

  test('a full queue of sign-ins is a warning, and leaves it on cancellation', async () => {
    const queue = new HashQueue(1, 300)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const working = queue.run(() => released, never)
    const hashes = passwords(queue)
    expect((await faultOf(probePasswordHash(hashes, never))).fault).toBe('Unavailable')
    const hash: OwnSignIn['hash'] = (signal) => probePasswordHash(hashes, signal)
    const results = await runKind(signIn, {}, 'Standard', { services: { ownSignIn: { ...sound, hash } } })
    expect(checked(results, 'password hash')).toMatchObject({
      status: 'warning',
      message: 'too many sign-ins at once: further ones are temporarily refused',
    })
    release()
    await working
    const after = await runKind(signIn, {}, 'Standard', { services: { ownSignIn: { ...sound, hash } } })
    // It hashes again. How long that takes is up to the machine.
    expect(checked(after, 'password hash').message).toMatch(/^test password hashed and verified in/)
  })

  const sound: OwnSignIn = {
    store: async () => {},
    anyAdmin: async () => true,
    lookUp: async () => {},
    hash: async () => true,
  }

  test('one query that fails, simulated, does not hide the others', async () => {
    const lookUp = async (): Promise<void> => {
      throw new Fault('Unavailable', 'The store is busy', { hints: ['try again'] })
    }
    const results = await runKind(signIn, {}, 'Advanced', { services: { ownSignIn: { ...sound, lookUp } } })
    expect(results.map(({ check, status }) => `${check} ${status}`)).toEqual([
      'store ok',
      'administrator ok',
      'look-up failed',
      'password hash ok',
    ])
    expect(checked(results, 'look-up')).toMatchObject({ message: 'The store is busy', details: ['try again'] })
  })

  test('a hash that accepts any password, simulated, is a failure', async () => {
    const results = await runKind(signIn, {}, 'Standard', {
      services: { ownSignIn: { ...sound, hash: async () => false } },
    })
    expect(checked(results, 'password hash')).toMatchObject({ status: 'failed', fault: 'internal' })
  })

  test('values at the boundaries of one and of three seconds are ok', () => {
    const status = (ms: number) => evaluated(lookUp, { ms, value: undefined })[0]?.status
    expect([1_000, 1_001, 3_000, 3_001].map(status)).toEqual(['ok', 'warning', 'warning', 'failed'])
  })
})
