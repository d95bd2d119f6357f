import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openClient } from '../../src/core/client/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { Fault } from '../../src/core/errors.ts'
import { openCore } from '../../src/core/open.ts'
import { ExecutionMode, type HealthCheckRequest, ServerType } from '../../src/core/protocol/index.ts'
import { startServer } from '../../src/core/server/index.ts'
import { type AnswerFacts, type Call, type Service, serveDefaults } from '../../src/core/service.ts'

type Opened = { readonly service: Service; readonly close: () => Promise<void> }

const folder = mkdtempSync(join(tmpdir(), 'svc-contract-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const core = async (shared: boolean, store: string) =>
  openCore({
    version: '1.2.3',
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: join(folder, store, 'svc.db'),
    shared,
    details: 'signed-in',
  })

async function inProcess(): Promise<Opened> {
  const { service, runtime } = await core(false, 'local')
  return { service, close: runtime.close }
}

async function overHttp(): Promise<Opened> {
  const { service, runtime } = await core(true, 'http')
  const server = await startServer({
    service,
    runtime,
    options: serveDefaults,
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
    log: () => {},
  })
  const client = openClient({ baseUrl: server.url, userAgent: 'svc-contract' })
  return {
    service: client,
    close: async () => {
      client.close()
      await server.stop()
      await runtime.close()
    },
  }
}

const call = (more: Partial<Call> = {}): Call => ({
  caller: { kind: 'local', account: 'tester' },
  correlationId: 'contract-1',
  signal: new AbortController().signal,
  ...more,
})
const ask = (more: Partial<HealthCheckRequest> = {}): HealthCheckRequest => ({
  ExecutionMode: 'Basic',
  ServerType: 'App',
  ...more,
})

/** What every Service keeps to, wherever it is computed. */
describe.each([
  ['in process', inProcess],
  ['over HTTP', overHttp],
])('a Service %s', (_, open) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open()
  })
  afterAll(() => opened.close())

  test('H1 a healthy type is Success, with no failed monitor and its metrics', async () => {
    const answer = await opened.service.healthCheck(ask(), call())
    expect(answer).toMatchObject({ Status: 'Success', FailedMonitorCount: 0 })
    expect(answer.MonitorSummaries?.map((summary) => summary.MonitorName)).toContain('self svc')
    expect(answer.ExecutionMetrics?.StartDateTime).toBeInstanceOf(Date)
    expect(answer.ExecutionMetrics?.Duration).toBeGreaterThan(0)
  })

  test('H1 a failure is an answer like any other, whatever carries it', async () => {
    const answer = await opened.service.healthCheck(ask({ ServerType: 'Mongo' }), call())
    expect(answer).toMatchObject({ Status: 'Failure', FailedMonitorCount: 1 })
    expect(answer.StatusMessage).toContain('Mongo is not configured here: add it under types: in svc.yaml')
  })

  test('H2 SuppressErrorCodes leaves the answer as it is', async () => {
    const answer = await opened.service.healthCheck(ask({ ServerType: 'Mongo', SuppressErrorCodes: true }), call())
    expect(answer.Status).toBe('Failure')
  })

  test('H4 server state only when it is asked for', async () => {
    expect((await opened.service.healthCheck(ask(), call())).ServerState).toBeUndefined()
    const { ServerState: state } = await opened.service.healthCheck(
      ask({ IncludeServerStateInformation: true }),
      call(),
    )
    expect(state?.TotalRamInMb).toBeGreaterThan(0)
  })

  test('H6 the correlation id of the call is the one in the answer', async () => {
    expect((await opened.service.healthCheck(ask(), call({ correlationId: 'abc-123' }))).CorrelationId).toBe('abc-123')
  })

  test('the facts beside the answer are noted once', async () => {
    const noted: AnswerFacts[] = []
    await opened.service.healthCheck(ask(), call({ note: (facts) => noted.push(facts) }))
    expect(noted).toHaveLength(1)
    expect(noted[0]?.ageSeconds).toBeGreaterThanOrEqual(0)
  })

  test('a selection leaves out what it does not name, and says so when it names nothing', async () => {
    const only = await opened.service.healthCheck(ask(), call({ selection: { only: ['uptime'], skip: [] } }))
    expect(only.MonitorSummaries?.map((summary) => summary.MonitorName)).toEqual(['host'])
    const nothing = opened.service.healthCheck(ask(), call({ selection: { only: ['nonsense'], skip: [] } }))
    await expect(nothing).rejects.toMatchObject({ fault: 'Usage' })
  })

  test('an aborted call rejects with the reason of its signal', async () => {
    const controller = new AbortController()
    const reason = new Fault('Interrupted')
    const asked = opened.service.healthCheck(ask({ ExecutionMode: 'Advanced' }), call({ signal: controller.signal }))
    controller.abort(reason)
    await expect(asked).rejects.toBe(reason)
  })

  test('every type answers at every mode', async () => {
    for (const type of ServerType.values) {
      for (const mode of ExecutionMode.values.slice(0, 1)) {
        const answer = await opened.service.healthCheck(ask({ ServerType: type, ExecutionMode: mode }), call())
        expect([type, answer.Status]).toEqual([type, expect.stringMatching(/^(Success|Failure)$/)])
        expect(answer.MonitorSummaries?.length).toBeGreaterThan(0)
      }
    }
  })

  test('operations of a later version are refused in a way that says so', async () => {
    for (const refused of [
      opened.service.authenticate({ provider: 'credentials' }, call()),
      opened.service.assignRoles({ UserName: 'bob' }, call()),
      opened.service.unAssignRoles({ UserName: 'bob' }, call()),
    ]) {
      await expect(refused).rejects.toBeInstanceOf(Fault)
      await expect(refused).rejects.toMatchObject({
        message: expect.stringContaining('does not exist in this version'),
      })
    }
  })
})
