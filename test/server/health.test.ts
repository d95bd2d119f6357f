import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import type { HealthCheckResponse } from '../../src/core/protocol/index.ts'
import { until } from '../support/suite/until.ts'
import { ask, failing, healthy, openSite, question, type Site, startSite, type withSite } from './site.ts'

let site: Site
let sick: Site
beforeAll(async () => {
  site = await startSite()
  sick = await startSite({ health: async (_request, call) => failing(call) })
})
afterAll(() => Promise.all([site.server.stop(), sick.server.stop()]))

describe('H1 the status', () => {
  test('H1 200 without a ResponseStatus when all monitors pass', async () => {
    const got = await ask(site.port, question)
    expect(got.status).toBe(200)
    expect(got.json).toMatchObject({ Status: 'Success', FailedMonitorCount: 0 })
    expect(got.json.ResponseStatus).toBeUndefined()
  })

  test('H1 503 with the whole answer and a final ResponseStatus when any monitor fails', async () => {
    const got = await ask(sick.port, question)
    expect(got.status).toBe(503)
    expect(Object.keys(got.json)).toEqual([
      'Status',
      'StatusMessage',
      'CorrelationId',
      'FailedMonitorCount',
      'MonitorSummaries',
      'ExecutionMetrics',
      'ResponseStatus',
    ])
    expect(got.json.ResponseStatus).toEqual({
      ErrorCode: 'HealthCheckFailed',
      Message: 'Sql is unhealthy: 1 of 1 monitor failed: postgres orders connect: refused in 2 ms',
      Errors: [{ ErrorCode: 'HealthCheckFailed', FieldName: 'postgres orders/connect', Message: 'refused in 2 ms' }],
    })
  })
})

describe('H2 SuppressErrorCodes', () => {
  test('H2 a failed check is a 200 whose body says Failure', async () => {
    const got = await ask(sick.port, `${question}&suppresserrorcodes=1`)
    expect(got.status).toBe(200)
    expect(got.json.Status).toBe('Failure')
    expect(got.json.ResponseStatus).toBeUndefined()
  })

  test('H2 a bad request stays 400 and a foreign host 421', async () => {
    expect((await ask(sick.port, '/healthcheck?SuppressErrorCodes=true')).status).toBe(400)
    const got = await ask(sick.port, `${question}&SuppressErrorCodes=true`, { headers: { host: 'evil.example' } })
    expect(got.status).toBe(421)
  })

  test('H2 an overloaded Service stays 503', async () => {
    const health = async (): Promise<HealthCheckResponse> => {
      throw new Fault('Unavailable', 'Too many runs', { retryAfter: 7 })
    }
    const { port } = await openSite({ health })
    const got = await ask(port, `${question}&SuppressErrorCodes=true`)
    expect(got.status).toBe(503)
    expect(got.headers['retry-after']).toBe('7')
  })
})

describe('H3 missing and invalid fields', () => {
  const errors = async (query: string) => {
    const got = await ask(site.port, `/healthcheck?${query}`)
    expect(got.status).toBe(400)
    const { ResponseStatus: status } = got.json
    return { code: status?.ErrorCode, message: status?.Message, fields: status?.Errors.map((e) => e.FieldName) }
  }

  test('H3 both missing fields are named', async () => {
    expect(await errors('')).toEqual({
      code: 'NotEmpty',
      message: "'ExecutionMode' must not be empty.",
      fields: ['ExecutionMode', 'ServerType'],
    })
  })

  test('H3 a bad enum names both fields, as the client wrote them', async () => {
    expect(await errors('executionMODE=Foo&ServerType=14')).toEqual({
      code: 'SerializationException',
      message: "Unable to bind to request 'HealthCheckRequest'",
      fields: ['executionMODE', 'ServerType'],
    })
    const got = await ask(site.port, '/healthcheck?executionMODE=Foo&ServerType=Sql')
    expect(got.json.ResponseStatus?.Errors[0]?.Message).toBe("'Foo' is an Invalid value for 'executionMODE'")
  })

  test('H3 one answer names what is invalid and what is missing', async () => {
    expect((await errors('ServerType=Foo&SuppressErrorCodes=maybe')).fields).toEqual([
      'ServerType',
      'SuppressErrorCodes',
      'ExecutionMode',
    ])
  })

  test('H3 an invalid field in a form is named as well', async () => {
    const got = await ask(site.port, '/api/HealthCheckRequest?ServerType=Sql', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'ExecutionMode=Foo',
    })
    expect(got.status).toBe(400)
    expect(got.json.ResponseStatus?.Errors[0]?.FieldName).toBe('ExecutionMode')
  })
})

describe('H8 the age of an answer', () => {
  test.each([
    ['JSON', ''],
    ['JSONP', '&callback=cb'],
    ['CSV', '&format=csv'],
    ['a report', '&format=nagios'],
  ])('H8 each answer has Age: %s', async (_, query) => {
    const siteAnswering = (shape: typeof healthy): Parameters<typeof withSite>[0] => ({
      health: async (_request, call) => {
        call.note?.({ ageSeconds: 3.9, runId: 'run-1' })
        return shape(call)
      },
    })
    for (const shape of [healthy, failing]) {
      const { port } = await openSite(siteAnswering(shape))
      expect((await ask(port, `${question}${query}`)).headers.age).toBe('3')
    }
    expect((await ask(site.port, `${question}${query}`)).headers.age).toBe('0')
  })
})

describe('H6 the correlation id', () => {
  test('H6 is in the body, in the header and in the log line of the run', async () => {
    const run = { ageSeconds: 3.9, runId: 'run-1' }
    const health: Parameters<typeof withSite>[0]['health'] = async (_request, call) => {
      call.note?.(run)
      return healthy(call)
    }
    const { port, log } = await openSite({ health })
    const got = await ask(port, question)
    const id = got.json.CorrelationId
    expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(got.headers['x-correlation-id']).toBe(id)
    expect(got.headers.age).toBe('3')
    expect(log).toEqual([
      expect.objectContaining({ correlationId: id, runId: 'run-1', status: 200, method: 'GET', path: question }),
    ])
    // Two answers from one run are distinguished.
    expect((await ask(port, question)).json.CorrelationId).not.toBe(id)
    expect(log.map((entry) => entry.runId)).toEqual(['run-1', 'run-1'])
  })

  const trace = '0af7651916cd43dd8448eb211c80319c'
  test.each([
    [{ 'x-correlation-id': 'order-17.b:3' }, 'order-17.b:3'],
    [{ traceparent: `00-${trace}-b7ad6b7169203331-01` }, trace],
    [{ traceparent: `cc-${trace}-b7ad6b7169203331-01-what-the-future-brings` }, trace],
    [{ 'x-correlation-id': 'mine', traceparent: `00-${trace}-b7ad6b7169203331-01` }, 'mine'],
  ])('H6 a valid id from the caller is kept: %j', async (headers, id) => {
    expect((await ask(site.port, question, { headers })).json.CorrelationId).toBe(id)
  })

  test.each([
    { 'x-correlation-id': 'has space' },
    { 'x-correlation-id': '"><script>' },
    { 'x-correlation-id': 'x'.repeat(129) },
    { 'x-correlation-id': '' },
    { traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` },
    { traceparent: `00-${trace}-${'0'.repeat(16)}-01` },
    { traceparent: `ff-${trace}-b7ad6b7169203331-01` },
    { traceparent: `00-${trace}-b7ad6b7169203331-01-more` },
  ])('H6 an invalid id is replaced by a new one: %j', async (headers) => {
    expect((await ask(site.port, question, { headers })).json.CorrelationId).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('answers that share a run', () => {
  test('contain only what was prepared for their caller', async () => {
    // One run, two views: the same run id, flags and status, and other words.
    const health: Parameters<typeof withSite>[0]['health'] = async (_request, call) => {
      call.note?.({ ageSeconds: 0, runId: 'shared' })
      const full = call.caller.kind === 'http' && call.caller.loopback
      const result = { MonitoringName: 'connect', Status: 'Success', StatusMessage: full ? '10.1.2.3 in 2 ms' : 'ok' }
      return healthy(call, {
        MonitorSummaries: [{ MonitorName: 'tcp', Status: 'Success', Results: [result as never], ErrorMessages: [] }],
      })
    }
    const { port } = await openSite({ health })
    const relayed = { headers: { 'x-forwarded-for': '192.0.2.7' } }
    for (let round = 0; round < 3; round += 1) {
      expect((await ask(port, question)).text).toContain('10.1.2.3 in 2 ms')
      const stranger = await ask(port, question, relayed)
      expect(stranger.text).not.toContain('10.1.2.3')
      expect(stranger.json.CorrelationId).toBe(stranger.headers['x-correlation-id'])
    }
  })

  test('a failed one has its ResponseStatus whether or not another caller suppressed it', async () => {
    const health: Parameters<typeof withSite>[0]['health'] = async (_request, call) => {
      call.note?.({ ageSeconds: 0, runId: 'shared' })
      return failing(call)
    }
    const { port } = await openSite({ health })
    for (let round = 0; round < 2; round += 1) {
      expect((await ask(port, question)).json.ResponseStatus?.ErrorCode).toBe('HealthCheckFailed')
      expect((await ask(port, `${question}&SuppressErrorCodes=true`)).json.ResponseStatus).toBeUndefined()
    }
  })
})

describe('the input of a call', () => {
  const called = async (headers: Record<string, string>, path = question) => {
    await ask(site.port, path, { headers })
    return site.calls.at(-1)?.call
  }

  test('H8 Cache-Control: no-cache asks for a fresh run', async () => {
    expect(await called({ 'cache-control': 'max-age=0, No-Cache' })).toMatchObject({ fresh: true })
    expect(await called({ 'cache-control': 'max-age=0' })).toMatchObject({ fresh: false })
    expect(await called({})).toMatchObject({ fresh: false, calledByPeer: false, timeoutMs: undefined })
  })

  test('X-Svc-Hops marks a request from another svc', async () => {
    expect(await called({ 'x-svc-hops': '1' })).toMatchObject({ calledByPeer: true })
    expect(await called({ 'x-svc-hops': '0' })).toMatchObject({ calledByPeer: false })
  })

  test.each([
    ['10', 9_500],
    ['2.5', 2_000],
    ['0.3', 100],
    ['0', undefined],
    ['-3', undefined],
    ['soon', undefined],
  ])('X-Prometheus-Scrape-Timeout-Seconds %s allows %s ms', async (seconds, timeoutMs) => {
    expect((await called({ 'x-prometheus-scrape-timeout-seconds': seconds }))?.timeoutMs).toBe(timeoutMs)
  })

  test('all callers that ask for one target share one request, and nobody can change it', async () => {
    await ask(site.port, question)
    const first = site.calls.at(-1)?.request
    await ask(site.port, question)
    expect(site.calls.at(-1)?.request).toEqual(first)
    expect(Object.isFrozen(site.calls.at(-1)?.request)).toBe(true)
  })

  test('a caller that disconnects cancels its call', async () => {
    let reason: unknown
    const health: Parameters<typeof withSite>[0]['health'] = (_request, call) =>
      new Promise((_resolve, reject) => {
        call.signal.addEventListener('abort', () => {
          reason = call.signal.reason
          reject(call.signal.reason)
        })
      })
    const { port, calls, log } = await openSite({ health })
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET ${question} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await until(() => calls.length === 1)
    socket.destroy()
    await until(() => log.length === 1)
    expect(reason).toBeInstanceOf(Fault)
    expect(log[0]).toMatchObject({ status: 499, level: 'info', msg: 'client disconnected' })
  })
})
