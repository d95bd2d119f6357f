import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Fault } from '../../../src/core/base/errors.ts'
import { openClient } from '../../../src/core/client/index.ts'
import { loadConfig } from '../../../src/core/config/index.ts'
import type { ReportHeartbeat } from '../../../src/core/protocol/index.ts'
import { type Call, type Credential, type Service, serveDefaults } from '../../../src/core/protocol/service/service.ts'
import { startServer } from '../../../src/core/server/index.ts'
import { type Core, openCore } from '../../../src/core/service/open.ts'
import { openData } from '../../../src/core/store/index.ts'
import { adminOver } from '../../support/store/admin.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

const folder = temporaryFolder()
const by = { who: 'local:tester', correlationId: 'heartbeats' }
const password = 'violet-harbour-42'

type Opened = {
  readonly core: Core
  readonly service: Service
  /** Of the server; undefined in process. */
  readonly url: string | undefined
  readonly keys: Readonly<Record<'only' | 'boss' | 'ned' | 'web', string>>
  readonly close: () => Promise<void>
}

async function opened(name: string, overHttp: boolean): Promise<Opened> {
  const core = await openCore({
    version: '1.2.3',
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: join(folder, name, 'svc.db'),
    shared: overHttp,
    details: 'signed-in',
  })
  const admin = adminOver(core.service)
  const add = (userName: string, more: object) => admin.users.add({ userName, password, ...more }, by)
  await add('agents', { permissions: ['heartbeat', 'other'], roles: ['Ops'] })
  await add('boss', { roles: ['Admin'] })
  await add('ned', { permissions: ['other'] })
  await add('web', { permissions: ['heartbeat:web-*', 'heartbeat:batch'] })
  const key = async (userName: string, permissions?: readonly string[]) =>
    (await admin.keys.create({ name: `${userName} key`, userName, permissions }, by)).secret
  const keys = {
    only: await key('agents', ['heartbeat']),
    boss: await key('boss'),
    ned: await key('ned'),
    web: await key('web'),
  }
  if (!overHttp) return { core, service: core.service, url: undefined, keys, close: core.runtime.close }
  const { service, runtime } = core
  const started = {
    service,
    runtime,
    options: serveDefaults,
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    log: () => {},
  }
  const server = await startServer(started)
  const client = openClient({ baseUrl: server.url, userAgent: 'svc-test' })
  const close = async (): Promise<void> => {
    client.close()
    await server.stop()
    await runtime.close()
  }
  return { core, service: client, url: server.url, keys, close }
}

const bearer = (token: string): Credential => ({ kind: 'bearer', token })
const as = (credential?: Credential): Call => ({
  caller: { kind: 'http', address: '127.0.0.1', loopback: true },
  credential,
  correlationId: 'heartbeats-1',
  signal: new AbortController().signal,
})
const refusal = async (request: Promise<unknown>): Promise<Fault> => {
  const error: unknown = await request.then(
    () => expect.fail('It was not refused'),
    (reason: unknown) => reason,
  )
  if (error instanceof Fault) return error
  throw error
}

describe.each([
  ['in process', false],
  ['over HTTP', true],
] as const)('heartbeats %s', (name, overHttp) => {
  let it: Opened
  beforeAll(async () => {
    it = await opened(name, overHttp)
  })
  afterAll(() => it.close())
  const report = (request: ReportHeartbeat, credential?: Credential) =>
    it.service.reportHeartbeat(request, as(credential))
  const storedHeartbeat = async (agent: string) => {
    const data = await openData({ store: join(folder, name, 'svc.db'), create: false })
    const stored = await data.heartbeats.list()
    await data.close()
    return stored.find((one) => one.name === agent)
  }

  test('B1 a report is stored with the time of the server, and the skew of the other clock is returned', async () => {
    const before = Date.now()
    const request = {
      Name: 'agent-1',
      Status: 'Warn',
      Message: 'queue is slow',
      Version: '2.4.1',
      Interval: 90_000,
      Backlog: 12,
      DiskFreePercent: 41.5,
      SentAt: new Date(before + 3_600_000),
    } as const
    const answer = await report(request, bearer(it.keys.only))
    expect(answer).toMatchObject({ Name: 'agent-1', ReceivedAt: expect.any(Date) })
    expect(answer.ReceivedAt?.getTime()).toBeGreaterThanOrEqual(before)
    expect(answer.ReceivedAt?.getTime()).toBeLessThanOrEqual(Date.now())
    expect(answer.ClockSkew).toBeGreaterThan(3_500_000)
    expect(await storedHeartbeat('agent-1')).toEqual({
      name: 'agent-1',
      at: answer.ReceivedAt?.getTime(),
      who: 'agents',
      status: 'Warn',
      message: 'queue is slow',
      version: '2.4.1',
      intervalMs: 90_000,
      backlog: 12,
      diskFreePercent: 41.5,
      skewMs: answer.ClockSkew,
      history: [{ at: answer.ReceivedAt?.getTime(), status: 'Warn' }],
    })
  })

  test('B2 heartbeat:NAME allows one name, and heartbeat:NAME* those that begin with it', async () => {
    const web = bearer(it.keys.web)
    for (const Name of ['web-', 'web-1', 'batch']) expect((await report({ Name }, web)).Name).toBe(Name)
    for (const Name of ['web', 'Web-1', 'batch-2', 'x web-1', 'web*']) {
      expect(await refusal(report({ Name }, web))).toMatchObject({ status: 403 })
    }
    expect(await storedHeartbeat('batch-2')).toBeUndefined()
  })

  test('B2 a key may have a permission for fewer heartbeats than its user, and not for more', async () => {
    const admin = adminOver(it.core.service)
    const create = (name: string, userName: string, permission: string) =>
      admin.keys.create({ name, userName, permissions: [permission] }, by)
    const { secret } = await create('narrow', 'web', 'heartbeat:web-1*')
    expect((await report({ Name: 'web-17' }, bearer(secret))).Name).toBe('web-17')
    expect(await refusal(report({ Name: 'web-2' }, bearer(secret)))).toMatchObject({ status: 403 })
    await create('one', 'agents', 'heartbeat:agent-7')
    for (const wide of ['heartbeat', 'heartbeat:we*', 'heartbeat:batch*']) {
      expect((await refusal(create(`wide ${wide}`, 'web', wide))).status).toBe(400)
    }
    for (const invalid of ['heartbeat:', 'heartbeat:*', 'heartbeat:a*b']) {
      expect((await refusal(create(`wrong ${invalid}`, 'agents', invalid))).message).toContain('names no heartbeat')
    }
  })

  test('B5 the start and the end of a run are stored, and the exit code decides the status', async () => {
    const StartedAt = new Date('2026-01-14T02:00:00Z')
    await report({ Name: 'job', StartedAt, MaxDuration: 3_600_000 }, bearer(it.keys.only))
    const started = await storedHeartbeat('job')
    expect(started?.run).toEqual({ id: StartedAt.getTime(), startedAt: started?.at, maxMs: 3_600_000 })
    const end = { Name: 'job', StartedAt, Duration: 1_500, ExitCode: 2, Output: 'line 1\n\tline 2' }
    await report(end, bearer(it.keys.only))
    expect(await storedHeartbeat('job')).toMatchObject({
      status: 'Fail',
      run: { durationMs: 1_500, exitCode: 2, output: 'line 1\n\tline 2', startedAt: started?.run?.startedAt },
    })
    await report({ ...end, ExitCode: 0 }, bearer(it.keys.only))
    expect(await storedHeartbeat('job')).toMatchObject({ status: 'Ok', run: { exitCode: 0 } })
  })

  test('B5 every field of a run that cannot be stored is refused', async () => {
    const StartedAt = new Date()
    const fieldsOf = async (request: ReportHeartbeat) =>
      (await refusal(report({ Name: 'job', ...request }, bearer(it.keys.only)))).details.fields?.map(
        ({ FieldName }) => FieldName,
      )
    expect(await fieldsOf({ Duration: 5, ExitCode: 0 })).toEqual(['Duration'])
    expect(await fieldsOf({ StartedAt, ExitCode: 0 })).toEqual(['ExitCode'])
    expect(await fieldsOf({ StartedAt, Output: 'x' })).toEqual(['Output'])
    expect(await fieldsOf({ StartedAt, Duration: -1 })).toEqual(['Duration'])
    expect(await fieldsOf({ StartedAt, Duration: 1, ExitCode: 256 })).toEqual(['ExitCode'])
    expect(await fieldsOf({ StartedAt, MaxDuration: 10 })).toEqual(['MaxDuration'])
    expect(await fieldsOf({ StartedAt, Duration: 1, Output: 'x'.repeat(4_001) })).toEqual(['Output'])
    expect(await fieldsOf({ StartedAt, Duration: 1, Output: 'a\u001b[31mb' })).toEqual(['Output'])
    await report(
      { Name: 'job', StartedAt, Duration: 0, ExitCode: 255, Output: 'x'.repeat(4_000) },
      bearer(it.keys.only),
    )
  })

  test('B1 a name alone is enough, whatever its characters', async () => {
    for (const agent of ['db1.example.com', 'backup.json', 'a b/c?d', '..', 'Zürich']) {
      expect(await report({ Name: agent }, bearer(it.keys.only))).toMatchObject({ Name: agent })
      expect(await storedHeartbeat(agent)).toMatchObject({ status: 'Ok', message: undefined, skewMs: undefined })
    }
  })

  test('B2 a caller that is anonymous or lacks the permission is refused before the report is checked', async () => {
    expect(await refusal(report({ Name: '' }))).toMatchObject({ fault: 'Unauthorized' })
    expect(await refusal(report({ Name: '' }, bearer('garbage')))).toMatchObject({ fault: 'Unauthorized' })
    expect(await refusal(report({ Name: '' }, bearer(it.keys.ned)))).toMatchObject({ fault: 'Forbidden' })
    expect(await report({ Name: 'by-admin' }, bearer(it.keys.boss))).toMatchObject({ Name: 'by-admin' })
  })

  test('B2 a key that may send heartbeats may do nothing else, and not even that once its user may not', async () => {
    const credential = bearer(it.keys.only)
    const facts = await it.service.authenticate({}, { ...as(credential), verb: 'GET' })
    expect(facts).toMatchObject({ UserName: 'agents', Roles: [], Permissions: ['heartbeat'] })
    expect(await refusal(it.service.assignRoles({ UserName: 'ned' }, as(credential)))).toMatchObject({
      fault: 'Forbidden',
    })
    const change = { UserName: 'agents', Permissions: ['heartbeat'] }
    await it.service.unAssignRoles(change, as(bearer(it.keys.boss)))
    expect(await refusal(report({ Name: 'x' }, credential))).toMatchObject({ fault: 'Forbidden' })
    await it.service.assignRoles(change, as(bearer(it.keys.boss)))
    await report({ Name: 'x' }, credential)
  })

  test('B3 an invalid report is refused with each field that is wrong', async () => {
    const invalid = {
      Name: 'n'.repeat(129),
      Message: 'two\nlines',
      Version: '\u202e1',
      Interval: 10,
      Backlog: -1,
      DiskFreePercent: 101,
    }
    const fault = await refusal(report(invalid, bearer(it.keys.only)))
    expect([fault.fault, fault.errorCode]).toEqual(['BadRequest', 'ValidationException'])
    expect(fault.details.fields?.map(({ FieldName }) => FieldName)).toEqual(Object.keys(invalid))
    expect(await refusal(report({}, bearer(it.keys.only)))).toMatchObject({
      details: { fields: [{ ErrorCode: 'NotEmpty', FieldName: 'Name' }] },
    })
    await report({ Name: 'n'.repeat(128), Interval: 1_000, Backlog: 0, DiskFreePercent: 100 }, bearer(it.keys.only))
  })
})

describe('over HTTP as a script sends it', () => {
  let it: Opened
  beforeAll(async () => {
    it = await opened('script', true)
  })
  afterAll(() => it.close())
  const post = async (path: string, body = '{}', type = 'application/json') => {
    const headers = { authorization: `Bearer ${it.keys.only}`, 'content-type': type, accept: 'application/json' }
    const got = await fetch(`${it.url}${path}`, { method: 'POST', headers, body })
    return { status: got.status, text: await got.text() }
  }

  test('B1 a path with dots names the agent, and a suffix still selects the format', async () => {
    expect(await post('/heartbeats/db1.example.com')).toMatchObject({
      status: 200,
      text: expect.stringContaining('"Name":"db1.example.com"'),
    })
    const csv = await post('/heartbeats/db1.csv', 'Status=fail&Interval=PT1H', 'application/x-www-form-urlencoded')
    expect(csv.text).toMatch(/^Name,ReceivedAt,ClockSkew/)
    const stored = await adminOver(it.core.service).heartbeats.list()
    expect(stored.map(({ name, status, interval }) => [name, status, interval])).toEqual([
      ['db1', 'Fail', 3_600_000],
      ['db1.example.com', 'Ok', undefined],
    ])
    expect(await post('/api/ReportHeartbeat', '{"Name":"by-api"}')).toMatchObject({ status: 200 })
    expect((await fetch(`${it.url}/heartbeats/x`)).status).toBe(405)
  })

  test('B1 an unknown status and a body that is too large are refused', async () => {
    expect(await post('/heartbeats/x', '{"Status":"Great"}')).toMatchObject({ status: 400 })
    expect(await post('/heartbeats/x', `{"Message":"${'m'.repeat(1_001)}"}`)).toMatchObject({ status: 400 })
    expect(await post('/heartbeats/x', `{"Message":"${'m'.repeat(2_000_000)}"}`)).toMatchObject({ status: 413 })
  })

  test('B2 a page of another site cannot report with the cookie of its reader', async () => {
    const signedIn = await fetch(`${it.url}/auth/credentials`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ UserName: 'boss', Password: password }),
    })
    const cookie = signedIn.headers
      .getSetCookie()
      .map((one) => one.split(';')[0])
      .join('; ')
    const from = async (headers: Record<string, string>) =>
      (await fetch(`${it.url}/heartbeats/y`, { method: 'POST', headers: { cookie, ...headers } })).status
    expect(await from({ origin: 'https://evil.example' })).toBe(403)
    expect(await from({})).toBe(200)
  })
})

test('B4 in process the OS account reports, and the monitor of the same store finds the report', async () => {
  const yaml = join(folder, 'agents.yaml')
  const { writeFileSync } = await import('node:fs')
  writeFileSync(yaml, 'types:\n  Agents:\n    - {kind: heartbeat, agents: [job-*]}\n', { mode: 0o600 })
  const config = await loadConfig({ path: yaml, env: {}, platform: process.platform, home: folder })
  const options = { version: '1', config, shared: false, details: 'anyone' } as const
  const core = await openCore({ ...options, store: join(folder, 'here', 'svc.db') })
  const call: Call = { ...as(), caller: { kind: 'local', account: 'alice' } }
  const look = async (of: Core) =>
    await of.service.healthCheck({ ExecutionMode: 'Basic', ServerType: 'Agents' }, { ...call })
  // There is no store yet.
  expect(await look(core)).toMatchObject({
    Status: 'Failure',
    StatusMessage: expect.stringContaining('heartbeats cannot be read: No store exists at'),
  })
  await adminOver(core.service).users.add({ userName: 'ann' }, by)
  expect((await look(core)).StatusMessage).toContain('no heartbeat from job-* has arrived')
  await core.service.reportHeartbeat({ Name: 'job-1' }, call)
  expect(await look(core)).toMatchObject({ Status: 'Success' })
  expect((await adminOver(core.service).heartbeats.list())[0]?.who).toBe('local:alice')
  await core.runtime.close()
  const without = await openCore({ ...options, store: undefined })
  expect((await look(without)).StatusMessage).toContain('there is no store to keep heartbeats in')
  await without.runtime.close()
})
