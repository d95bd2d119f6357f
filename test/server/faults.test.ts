import { describe, expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { escapeControls, stackOf } from '../../src/core/server/log.ts'
import { ask, openSite, question, withSite } from './site.ts'

const throwing = (thrown: unknown) => ({
  health: async (): Promise<never> => {
    throw thrown
  },
})

describe('S6 an unexpected exception', () => {
  test('S6 is a 500 with a correlation id and no detail, is logged with its stack, and the process continues to serve', async () => {
    const defect = new Error('connect to postgres://svc:hunter2@db1/orders failed', { cause: new TypeError('inner') })
    const { port, log } = await openSite(throwing(defect))
    const got = await ask(port, question)
    expect(got.status).toBe(500)
    expect(got.json.ResponseStatus?.ErrorCode).toBe('InternalServerError')
    expect(got.json.ResponseStatus?.StackTrace).toBeUndefined()
    expect(got.text).not.toMatch(/postgres|hunter2|inner|\.ts/)
    expect(got.text).toContain(got.headers['x-correlation-id'])
    expect(log[0]).toMatchObject({ level: 'error', status: 500, correlationId: got.headers['x-correlation-id'] })
    expect(log[0]?.stack).toMatch(/connect to postgres[\s\S]*faults\.test\.ts[\s\S]*caused by TypeError: inner/)
    expect((await ask(port, '/livez')).status).toBe(200)
  })

  test.each([
    ['undefined', undefined],
    ['a string', 'hunter2'],
    ['a Service that throws before it promises', null],
  ])('S6 %s as a thrown value is a 500 as well', async (_what, thrown) => {
    const health = () => {
      throw thrown
    }
    const { port, log } = await openSite({ health })
    const got = await ask(port, question)
    expect(got.status).toBe(500)
    expect(got.text + JSON.stringify(log)).not.toContain('hunter2')
  })

  test('S6 a response that cannot be serialized is a 500', async () => {
    const health = async () => ({ MonitorSummaries: 7 }) as never
    const { port } = await openSite({ health })
    expect((await ask(port, question)).status).toBe(500)
  })

  test('S6 a response that cannot be sent closes the connection, and the process continues to serve', async () => {
    const fault = new Fault('Conflict', 'x', { headers: { 'X-Bad': 'a\r\nSet-Cookie: b=c' } })
    const { port, log } = await openSite(throwing(fault))
    await expect(ask(port, question)).rejects.toThrow(/hang up|ECONNRESET/)
    expect(log.at(-1)).toMatchObject({ level: 'error', msg: 'could not write a response' })
    expect((await ask(port, '/livez')).status).toBe(200)
  })

  test('S6 a fault of this machine is not disclosed to callers', async () => {
    const local = new Fault('Local', '/var/lib/svc/store.db is owned by root')
    const { port, log } = await openSite(throwing(local))
    const got = await ask(port, question)
    expect(got.status).toBe(500)
    expect(got.text).not.toContain('/var/lib')
    expect(log[0]?.stack).toContain('/var/lib/svc/store.db')
  })

  test('E1 the debug switch adds the stack to the response, and only for an internal error', async () => {
    const { port } = await openSite({ ...throwing(new Error('boom')), options: { debug: true } })
    expect((await ask(port, question)).json.ResponseStatus?.StackTrace).toContain('Error: boom')
    expect((await ask(port, '/healthcheck')).json.ResponseStatus?.StackTrace).toBeUndefined()
  })
})

describe('E1 faults of the Service', () => {
  test('E1 their status, code, fields and headers reach the caller', async () => {
    const fields = [{ ErrorCode: 'NotEmpty', FieldName: 'UserName', Message: 'empty' }]
    const fault = new Fault('Conflict', 'The last Admin stays', { fields, headers: { 'X-Extra': '1' } })
    const { port } = await openSite(throwing(fault))
    const got = await ask(port, question)
    expect(got.status).toBe(409)
    expect(got.headers['x-extra']).toBe('1')
    expect(got.json).toEqual({
      ResponseStatus: { ErrorCode: 'Conflict', Message: 'The last Admin stays', Errors: fields },
    })
  })

  test.each([
    ['TooManyRequests', 429, '30'],
    ['Unavailable', 503, '30'],
  ] as const)('E2 %s is a %i with Retry-After', async (name, status, retryAfter) => {
    await withSite(throwing(new Fault(name, 'busy', { retryAfter: 29.2 })), async ({ port }) => {
      const got = await ask(port, question)
      expect(got.status).toBe(status)
      expect(got.headers['retry-after']).toBe(retryAfter)
    })
    const { port } = await openSite(throwing(new Fault(name)))
    expect((await ask(port, question)).headers['retry-after']).toBe('5')
  })
})

describe('S7 log lines', () => {
  test('S7 text from callers is escaped and truncated', async () => {
    expect(escapeControls('a\r\nb\x1b[31m\u202eevil\u0000')).toBe('a\\u{d}\\u{a}b\\u{1b}[31m\\u{202e}evil\\u{0}')
    expect(escapeControls('x'.repeat(10_000)).length).toBe(257)
    expect(escapeControls('\x1b'.repeat(10_000)).length).toBe(257)
    expect(stackOf(new Error('a\x1b[2Jb'))).toContain('a\\u{1b}[2Jb\n')
    const { port, log } = await openSite({})
    await ask(port, `/${'%E2%80%AE'.repeat(20)}${'a'.repeat(2_000)}`)
    await ask(port, '/healthcheck?ExecutionMode=%E2%80%AEBasic&Password=hunter2&x=y')
    expect(log[0]?.path?.length).toBeLessThan(300)
    expect(log[1]?.path).toBe('/healthcheck?ExecutionMode=\\u{202e}Basic&…')
    const messages = JSON.stringify(log)
    expect(messages).not.toMatch(/[\u202a-\u202e]|hunter2/)
  })

  test('S7 only the query parameters of a health check are logged', async () => {
    await withSite({}, async ({ port, log }) => {
      await ask(port, `${question}&token=hunter2&format=nagios&hunter2`)
      expect(log[0]?.path).toBe(`${question}&format=nagios&…`)
    })
  })

  test('S7 each response is logged on one line with method, path, status, time and address', async () => {
    const { port, log } = await openSite({})
    await ask(port, '/auth', { method: 'DELETE' })
    await ask(port, '/nothing?a=b')
    expect(log).toEqual([
      expect.objectContaining({ level: 'info', method: 'DELETE', path: '/auth', status: 501, address: '127.0.0.1' }),
      expect.objectContaining({ level: 'info', method: 'GET', path: '/nothing', status: 404 }),
    ])
    expect(log.every(({ ms }) => ms !== undefined && ms >= 0 && ms < 60_000)).toBe(true)
  })
})
