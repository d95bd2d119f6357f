import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { serverLimits } from '../../src/core/server/index.ts'
import type { Call } from '../../src/core/service.ts'
import { until } from '../support/until.ts'
import { ask, healthy, question, startSite } from './site.ts'

const text = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', () => {})
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
  })

/** A site whose health check ends when the test says so. */
const held = async (limits: Parameters<typeof startSite>[0] = {}) => {
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  const health = async (_request: unknown, call: Call) => {
    await promise
    return healthy(call)
  }
  return { ...(await startSite({ health, ...limits })), letGo }
}

describe('S9 shutting down', () => {
  test('S9 the bounds are 8 s for calls and less than 10 s for everything', () => {
    expect(serverLimits.cancelAfterMs).toBe(8_000)
    expect(serverLimits.closeAfterMs).toBeGreaterThan(serverLimits.cancelAfterMs)
    expect(serverLimits.closeAfterMs).toBeLessThan(10_000)
  })

  test('S9 what is under way is answered with Connection: close, and nothing new is accepted', async () => {
    const site = await held()
    const socket = connect(site.port, '127.0.0.1')
    const said = text(socket)
    socket.write(`GET ${question} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await until(() => site.calls.length === 1)
    const stopped = site.server.stop()
    await expect(ask(site.port, '/livez')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    site.letGo()
    await stopped
    expect(await said).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*^Connection: close\r$[\s\S]*"Status":"Success"/m)
    expect(site.calls[0]?.call.signal.aborted).toBe(false)
  })

  test('S9 a further request on an open connection is refused with 503, readiness too, liveness not', async () => {
    const site = await held()
    const socket = connect(site.port, '127.0.0.1')
    const said = text(socket)
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    socket.write(request(question))
    await until(() => site.calls.length === 1)
    const stopped = site.server.stop()
    socket.write(request('/readyz') + request('/livez') + request(question))
    await until(() => site.log.length === 3)
    expect(site.log.map(({ path, status }) => `${path} ${status}`).sort()).toEqual([
      `${question} 503`,
      '/livez 200',
      '/readyz 503',
    ])
    site.letGo()
    await stopped
    expect(await said).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(site.calls.length).toBe(1)
  })

  test('S9 a call that does not end is cancelled and answered 503, heeding its signal or not', async () => {
    const { promise: never } = Promise.withResolvers<void>()
    const reasons: unknown[] = []
    const site = await startSite({
      limits: { cancelAfterMs: 200, closeAfterMs: 20_000 },
      health: async (_request, call) => {
        call.signal.addEventListener('abort', () => reasons.push(call.signal.reason))
        await never
        return healthy(call)
      },
    })
    const got = ask(site.port, question)
    await until(() => site.calls.length === 1)
    const started = performance.now()
    await site.server.stop()
    expect(performance.now() - started).toBeLessThan(10_000)
    const { status, headers, json } = await got
    expect(status).toBe(503)
    expect(headers.connection).toBe('close')
    expect(headers['retry-after']).toBe('5')
    expect(json.ResponseStatus).toMatchObject({ ErrorCode: 'ServiceUnavailable', Message: 'The server is stopping' })
    expect(reasons).toHaveLength(1)
  })

  test('S9 half a body under way is answered 503 as well', async () => {
    const site = await startSite({ limits: { cancelAfterMs: 200, closeAfterMs: 2_000 } })
    const socket = connect(site.port, '127.0.0.1')
    const said = text(socket)
    socket.write('POST /auth HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc')
    await until(() => socket.bytesWritten > 0)
    await ask(site.port, '/livez')
    await site.server.stop()
    expect(await said).toMatch(/^HTTP\/1\.1 503 /)
  })

  test('S9 a caller that reads nothing is cut off', async () => {
    const site = await startSite({
      limits: { cancelAfterMs: 100, closeAfterMs: 400 },
      health: async (_request, call) => healthy(call, { StatusMessage: 'x'.repeat(32 * 1024 * 1024) }),
    })
    const socket = connect(site.port, '127.0.0.1').on('error', () => {})
    socket.pause()
    socket.write(`GET ${question} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await until(() => site.log.length === 1)
    await site.server.stop()
    socket.destroy()
  })

  test('S9 idle and half-open connections do not hold it up, and stopping twice is one stop', async () => {
    const site = await startSite()
    const idle = connect(site.port, '127.0.0.1').on('error', () => {})
    const slow = connect(site.port, '127.0.0.1').on('error', () => {})
    slow.write('GET /livez HTTP/1.1\r\nHost: loc')
    await until(() => idle.readyState === 'open' && slow.bytesWritten > 0)
    await ask(site.port, '/livez')
    const started = performance.now()
    const [first, second] = [site.server.stop(), site.server.stop()]
    expect(second).toBe(first)
    await first
    expect(performance.now() - started).toBeLessThan(6_000)
    idle.destroy()
    slow.destroy()
  })
})
