import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { deadlines } from '../../src/core/checks/engine/index.ts'
import { patienceFor } from '../../src/core/client/index.ts'
import {
  type ExecutionMode,
  type HealthCheckResponse,
  HealthCheckResponse as HealthCheckResponseDto,
  type OperationSpec,
  operations,
  schemaOf,
} from '../../src/core/protocol/index.ts'
import { encodeJson } from '../../src/core/protocol/wire/index.ts'
import { http, peer, replies } from '../support/faults/faults.ts'
import { basicSql, callWith, clientOf, faultOf, healthAt } from './asking.ts'
import { bodies, real } from './recorded.ts'

const json = { 'Content-Type': 'application/json; charset=utf-8' }
const monitors: HealthCheckResponse['MonitorSummaries'] = [
  {
    MonitorName: 'Sql',
    Status: 'Success',
    Results: [{ MonitoringName: 'ping', Status: 'Success', StatusMessage: 'ok' }],
    ErrorMessages: [],
  },
]
const healthy: HealthCheckResponse = {
  Status: 'Success',
  StatusMessage: 'm,"q"',
  CorrelationId: 'c1',
  FailedMonitorCount: 0,
  MonitorSummaries: monitors,
  ExecutionMetrics: { StartDateTime: new Date(1614834367089), EndDateTime: new Date(1614834368323), Duration: 1234 },
}

test('C1 a health check is a GET that requests uncompressed JSON, with its inputs in the query', async () => {
  await using server = await peer(replies(real('200 OK', bodies.healthy)))
  await clientOf(`http://127.0.0.1:${server.port}`).healthCheck(
    {
      ExecutionMode: 'Advanced',
      ServerType: 'MsgVast',
      IncludeServerStateInformation: true,
      SuppressErrorCodes: false,
    },
    callWith(),
  )
  const [head = '', body] = server.input().split('\r\n\r\n')
  expect(head.split('\r\n')).toEqual([
    'GET /healthcheck?ExecutionMode=Advanced&ServerType=MsgVast&IncludeServerStateInformation=true&SuppressErrorCodes=false HTTP/1.1',
    'Accept: application/vnd.svc.run+json;version=1, application/json',
    'User-Agent: svc/test',
    'X-Correlation-Id: c0ffee-1',
    `Host: 127.0.0.1:${server.port}`,
    'Connection: close',
  ])
  expect(body).toBe('')
})

test('C1 a POST carries JSON and its length, and follows the route of its operation', async () => {
  await using server = await peer(replies(real('200 OK', bodies.assigned)))
  const client = clientOf(`http://127.0.0.1:${server.port}/`)
  const answer = await client.assignRoles({ UserName: 'zoë', Roles: ['R1', 'a,b'] }, callWith())
  expect(answer).toEqual({ AllRoles: ['R1', 'R2', 'R3', 'R4', 'r1'], AllPermissions: ['P1'] })
  const [head = '', body = ''] = Buffer.from(server.input(), 'latin1').toString('utf8').split('\r\n\r\n')
  expect(body).toBe('{"UserName":"zoë","Roles":["R1","a,b"]}')
  expect(head.split('\r\n')).toEqual([
    'POST /assignroles HTTP/1.1',
    'Accept: application/json',
    'User-Agent: svc/test',
    'X-Correlation-Id: c0ffee-1',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Host: 127.0.0.1:${server.port}`,
    'Connection: close',
  ])
})

test('a provider is part of the path, percent-encoded, and never consists of dots alone', async () => {
  await using server = await peer(replies(real('200 OK', bodies.signedOut)))
  const client = clientOf(`http://127.0.0.1:${server.port}`)
  for (const provider of ['logout', 'a/b?c', '..', undefined]) {
    expect(await client.authenticate({ provider }, callWith())).toEqual({ ResponseStatus: {} })
  }
  expect(server.input().match(/POST \S+(?= HTTP)/g)).toEqual([
    'POST /auth/logout',
    'POST /auth/a%2Fb%3Fc',
    'POST /auth',
    'POST /auth',
  ])
})

test('no operation that uses GET has a field that a query of texts cannot hold', () => {
  const rows: readonly OperationSpec[] = Object.values(operations)
  const requests = rows.filter((row) => row.routes.every((route) => !route.verbs.includes('POST')))
  expect(requests.map((row) => row.name)).toEqual([
    'HealthCheckRequest',
    'GetServerTypes',
    'GetHistory',
    'GetImpact',
    'GetDrill',
    'GetSilences',
    'GetNodes',
    'GetSessions',
    'GetUsers',
    'GetUser',
    'GetKeys',
    'GetAudit',
    'GetAuditHead',
    'GetHeartbeats',
    'GetRoleHolders',
    'GetRoleHistory',
  ])
  for (const field of requests.flatMap((row) => Object.values(row.request.fields))) {
    const schema = schemaOf(field)
    expect(['text', 'flag', 'number', 'choice', 'date']).toContain(
      schema.kind === 'list' ? schema.item.kind : schema.kind,
    )
  }
})

test('Cache-Control requests a fresh answer, and a run for a peer is marked as such', async () => {
  await using server = await peer(replies(http(200, bodies.healthy, json)))
  await healthAt(server.port, { fresh: true, calledByPeer: true })
  expect(server.input()).toContain('\r\nCache-Control: no-cache\r\n')
  expect(server.input()).toContain('\r\nX-Svc-Hops: 1\r\n')
})

test.each(['/ops', '/ops/', '/ops//', '/a/b%20c/'])('a base URL may have a path: %s', async (path) => {
  await using server = await peer(replies(http(200, bodies.healthy, json)))
  await healthAt(`http://127.0.0.1:${server.port}${path}`)
  expect(server.input()).toMatch(new RegExp(`^GET ${path.replace(/\/+$/, '')}/healthcheck\\?ExecutionMode=Basic&`))
})

test.each([
  ['5.8', real('200 OK', bodies.healthy)],
  ['a newer server, camelCase and ISO', real('200 OK', bodies.newer)],
  ['a byte order mark before it', http(200, `\ufeff${bodies.healthy}`, json)],
  ['no Content-Type', http(200, bodies.healthy)],
  ['the connection closed at its end', `HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n${bodies.healthy}`],
])('C3 the same answer is read from %s', async (_, answer) => {
  await using server = await peer(replies(answer))
  expect(await healthAt(server.port)).toEqual(healthy)
})

test('C3 server state is read, and text inside strings stays as it is', async () => {
  const text = 'C:\\x \u202egnp \x1b[31m /Date(1)/ PT5S é😀'
  const body = bodies.withState.replace('"m,\\"q\\""', JSON.stringify(text))
  await using server = await peer(replies(real('200 OK', body)))
  const answer = await healthAt(server.port)
  expect(answer.StatusMessage).toBe(text)
  expect(answer.ServerState).toEqual({
    ServerName: 'vm',
    TotalRamInMb: 24105.5,
    AvailableRamInMb: 20_000,
    UsedCpuPercent: 12.25,
  })
})

test.each([
  ['503, as recorded', real('503 ServiceUnavailable', bodies.failing)],
  ['200, suppressed', real('200 OK', bodies.failing)],
  ['500', real('500 Broken', bodies.failing)],
  ['403', real('403 Forbidden', bodies.failing)],
  [
    '503 with a ResponseStatus after it, as svc serve sends it',
    real('503 x', bodies.failing.replace(/}$/, ',"ResponseStatus":{"ErrorCode":"HealthCheckFailed","Errors":[]}}')),
  ],
])('C2 a body with Status is a health answer whatever its HTTP status: %s', async (_, answer) => {
  await using server = await peer(replies(answer))
  const response = await healthAt(server.port)
  expect(response).toMatchObject({ Status: 'Failure', FailedMonitorCount: 1 })
  expect(response).not.toHaveProperty('ResponseStatus')
})

test('the age of a shared answer is reported once, and only when the server sends it', async () => {
  const ages: unknown[] = []
  const note = (facts: unknown): void => void ages.push(facts)
  const age = async (headers: Record<string, string>): Promise<unknown[]> => {
    ages.length = 0
    await using server = await peer(replies(http(503, bodies.failing, { ...json, ...headers })))
    await healthAt(server.port, { note })
    return [...ages]
  }
  expect(await age({ Age: '17' })).toEqual([{ ageSeconds: 17, runId: 'c1' }])
  expect(await age({ Age: '0' })).toEqual([{ ageSeconds: 0, runId: 'c1' }])
  expect(await age({})).toEqual([])
  expect(await age({ Age: '-3' })).toEqual([])
})

test('the client makes the selection', async () => {
  await using server = await peer(replies(http(503, bodies.failing, json)))
  expect(await healthAt(server.port, { selection: { only: ['mongo'], skip: [] } })).toMatchObject({ Status: 'Failure' })
  await expect(healthAt(server.port, { selection: { only: ['nope'], skip: [] } })).rejects.toMatchObject({
    fault: 'Usage',
  })
  expect(server.input()).not.toMatch(/mongo|nope/)
})

const modes = Object.keys(deadlines) as ExecutionMode[]
test.each(modes)('without a timeout a call of %s gets its budget and 5 s for the network', (ExecutionMode) => {
  expect(patienceFor({ ExecutionMode })).toBe(deadlines[ExecutionMode].run + 5_000)
})

test.each(modes)('a new run of %s may wait for the end of the current one and a second more', (ExecutionMode) => {
  const { run } = deadlines[ExecutionMode]
  expect(patienceFor({ ExecutionMode }, true)).toBe(run + 1_000 + run + 5_000)
})

test('many concurrent calls each get their own answer, and leave no connection behind', async () => {
  const server = createServer((request, response) => {
    const id = String(request.headers['x-correlation-id'])
    setTimeout(() => response.end(JSON.stringify({ Status: 'Success', CorrelationId: id })), Math.random() * 20)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const client = clientOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    client.close()
    server.close()
  })

  const ids = Array.from({ length: 40 }, (_, at) => `id-${at}`)
  const answers = await Promise.all(ids.map((id) => client.healthCheck(basicSql, callWith({ correlationId: id }))))
  expect(answers.map((answer) => answer.CorrelationId)).toEqual(ids)
  await expect.poll(() => new Promise((resolve) => server.getConnections((_, open) => resolve(open)))).toBe(0)
})

const failedResult = { MonitoringName: 'read', Status: 'Failure', StatusMessage: 'no answer' }
const [passing] = monitors ?? []

test.each<[what: string, parts: Record<string, unknown>, count: number, why: string]>([
  ['a count of failed monitors', { FailedMonitorCount: 2 }, 2, 'also 2 failed monitors'],
  ['a failed monitor', { MonitorSummaries: [passing, { ...passing, Status: 'Failure' }] }, 1, 'also 1 failed monitor'],
  [
    'a failed result of a monitor that passed',
    { MonitorSummaries: [{ ...passing, Results: [...(passing?.Results ?? []), failedResult] }] },
    1,
    'also 1 failed monitor',
  ],
  ['no monitor', { MonitorSummaries: [] }, 0, 'no monitor: nothing was checked'],
  ['no list of monitors', { MonitorSummaries: undefined }, 0, 'no monitor: nothing was checked'],
])('C9 a Success with %s is a Failure, and says so', async (_, parts, count, why) => {
  const document = {
    Status: 'Success',
    StatusMessage: 'All good',
    FailedMonitorCount: 0,
    MonitorSummaries: monitors,
    ...parts,
  }
  await using server = await peer(replies(http(200, JSON.stringify(document), json)))
  const answer = await healthAt(server.port)
  expect(answer).toMatchObject({ Status: 'Failure', FailedMonitorCount: count })
  expect(answer.StatusMessage).toContain(why)
  expect(answer.StatusMessage).toContain('All good')
  expect((answer.MonitorSummaries ?? []).filter(({ Status }) => Status === 'Failure')).toHaveLength(
    count === 2 ? 0 : count,
  )
})

test('C9 a Failure keeps its message, and a monitor that passed with a failed result has failed', async () => {
  const MonitorSummaries = [{ ...passing, Results: [failedResult] }]
  const document = { Status: 'Failure', StatusMessage: 'Broken', FailedMonitorCount: 0, MonitorSummaries }
  await using server = await peer(replies(http(503, JSON.stringify(document), json)))
  const answer = await healthAt(server.port)
  expect(answer).toMatchObject({ Status: 'Failure', StatusMessage: 'Broken', FailedMonitorCount: 1 })
  expect(answer.MonitorSummaries?.[0]?.Status).toBe('Failure')
})

/** An end at 10:06:08.323 UTC, as a server five hours behind UTC writes it. */
const asInstant = 1614852368323
const asWallClock = 1614834368323
const ends = (ms: number): Record<string, unknown> => ({
  ...healthy,
  ExecutionMetrics: { StartDateTime: `/Date(${ms - 1234}-0500)/`, EndDateTime: `/Date(${ms}-0500)/`, Duration: 'PT1S' },
})

test.each<[what: string, sent: number, date: string | undefined, at: number]>([
  ['the instant, by the Date header', asInstant, 'Thu, 04 Mar 2021 10:06:09 GMT', asInstant],
  ['the wall clock, by the Date header', asWallClock, 'Thu, 04 Mar 2021 10:06:09 GMT', asInstant],
  ['the instant, without a Date header', asWallClock, undefined, asWallClock],
  ['the instant, with a Date header that is not a date', asWallClock, 'yesterday', asWallClock],
])('milliseconds with an offset are %s, and keep the offset (N3)', async (_, sent, date, at) => {
  const headers = { ...json, ...(date === undefined ? {} : { Date: date }) }
  await using server = await peer(replies(http(200, JSON.stringify(ends(sent)), headers)))
  const { ExecutionMetrics } = await healthAt(server.port)
  expect(ExecutionMetrics?.EndDateTime?.getTime()).toBe(at)
  expect(ExecutionMetrics?.StartDateTime?.getTime()).toBe(at - 1234)
  expect(encodeJson(HealthCheckResponseDto, { ExecutionMetrics })).toContain(`"EndDateTime":"\\/Date(${at}-0500)\\/"`)
})

test('a failure is not said to be in the log under our correlation id unless the server returned it', async () => {
  const hints = async (headers: Record<string, string>): Promise<string> => {
    await using server = await peer(replies(http(500, '{}', { ...json, ...headers })))
    const fault = await faultOf(healthAt(server.port))
    return (fault.details.hints ?? []).join(' ')
  }
  expect(await hints({})).toBe('See the log of the server.')
  expect(await hints({ 'X-Correlation-Id': 'c0ffee-1' })).toContain('contains the correlation id of this call')
})
