import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { describe, expect, test, vi } from 'vitest'
import type { Call } from '../../src/core/protocol/service/service.ts'
import { serverLimits } from '../../src/core/server/index.ts'
import { until } from '../support/suite/until.ts'
import { get, openConnection, outcomeOf } from '../support/wire/exchange.ts'
import { cert, key } from './certificate.ts'
import { ask, healthy, question, startSite } from './site.ts'

const text = (socket: Socket): Promise<string> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', () => {})
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
  })

/** Whether nothing listens there any more. */
const refuses = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const done = (refused: boolean) => (): void => {
      socket.destroy()
      resolve(refused)
    }
    socket.once('connect', done(false)).once('error', done(true))
  })

/** Makes a TLS connection and ends it. */
const handshake = async (port: number): Promise<void> => {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  socket.destroy()
}

/** A site whose health check ends when the test says so. */
const siteWithPendingCall = async (limits: Parameters<typeof startSite>[0] = {}) => {
  const { promise, resolve: letGo } = Promise.withResolvers<void>()
  const health = async (_request: unknown, call: Call) => {
    await promise
    return healthy(call)
  }
  return { ...(await startSite({ health, ...limits })), letGo }
}

describe('S9 shutting down', () => {
  test('S9 the limits are 8 s for calls and less than 10 s altogether', () => {
    expect(serverLimits.cancelAfterMs).toBe(8_000)
    expect(serverLimits.closeAfterMs).toBeGreaterThan(serverLimits.cancelAfterMs)
    expect(serverLimits.closeAfterMs).toBeLessThan(10_000)
  })

  test('S9 a request in progress is answered with Connection: close, and no new connection is accepted', async () => {
    const site = await siteWithPendingCall()
    const socket = connect(site.port, '127.0.0.1')
    const answerText = text(socket)
    socket.write(`GET ${question} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await until(() => site.calls.length === 1)
    const stopped = site.server.stop()
    await until(() => refuses(site.port))
    site.letGo()
    await stopped
    expect(await answerText).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*^Connection: close\r$[\s\S]*"Status":"Success"/m)
    expect(site.calls[0]?.call.signal.aborted).toBe(false)
  })

  test('S9 a further request on an open connection gets a 503, as does readiness, but not liveness', async () => {
    const site = await siteWithPendingCall()
    const { socket, outcome } = await openConnection(site.port)
    socket.write(get(question))
    await until(() => site.calls.length === 1)
    const stopped = site.server.stop()
    socket.write(get('/readyz') + get('/livez') + get(question))
    await until(() => site.log.length === 3)
    expect(site.log.map(({ path, status }) => `${path} ${status}`).sort()).toEqual([
      `${question} 503`,
      '/livez 200',
      '/readyz 503',
    ])
    site.letGo()
    await stopped
    // Nothing is answered behind `Connection: close`, so the last answer alone says it.
    const { answers } = await outcome
    const summaries = answers.map(({ status, head }) => `${status} ${/^Connection: (.+)$/m.exec(head)?.[1]}`)
    expect(summaries).toEqual(['200 keep-alive', '503 keep-alive', '200 keep-alive', '503 close'])
    expect(site.calls.length).toBe(1)
  })

  test('S9 a call that does not end is cancelled and answered 503, whether or not it observes its signal', async () => {
    const { promise: never } = Promise.withResolvers<void>()
    const reasons: unknown[] = []
    const site = await startSite({
      // To close connections takes longer than this test may: only the cancellation can end the stop in time.
      limits: { cancelAfterMs: 200, closeAfterMs: 120_000 },
      health: async (_request, call) => {
        call.signal.addEventListener('abort', () => reasons.push(call.signal.reason))
        await never
        return healthy(call)
      },
    })
    const got = ask(site.port, question)
    await until(() => site.calls.length === 1)
    await site.server.stop()
    const { status, headers, json } = await got
    expect(status).toBe(503)
    expect(headers.connection).toBe('close')
    expect(headers['retry-after']).toBe('5')
    expect(json.ResponseStatus).toMatchObject({ ErrorCode: 'ServiceUnavailable', Message: 'The server is stopping' })
    expect(reasons).toHaveLength(1)
  })

  test('S9 a request with half a body is answered 503 as well', async () => {
    const site = await startSite({ limits: { cancelAfterMs: 200, closeAfterMs: 2_000 } })
    const socket = connect(site.port, '127.0.0.1')
    const answerText = text(socket)
    socket.write('POST /auth HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc')
    await until(() => socket.bytesWritten > 0)
    await ask(site.port, '/livez')
    await site.server.stop()
    expect(await answerText).toMatch(/^HTTP\/1\.1 503 /)
  })

  test('S9 E2 a request with half a header is answered 503, with the time of the next attempt', async () => {
    const site = await startSite()
    const socket = connect(site.port, '127.0.0.1')
    const answerText = text(socket)
    socket.write('GET /livez HTTP/1.1\r\nHost: loc')
    await until(() => socket.bytesWritten > 0)
    await ask(site.port, '/livez')
    await site.server.stop()
    expect(await answerText).toMatch(/^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: 5\r\n/)
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

  test('S9 idle and half-open connections do not delay the stop, and two calls to stop are one stop', async () => {
    // Neither limit for calls ends within the time of this test.
    const site = await startSite()
    const idle = connect(site.port, '127.0.0.1').on('error', () => {})
    const slow = connect(site.port, '127.0.0.1').on('error', () => {})
    slow.write('GET /livez HTTP/1.1\r\nHost: loc')
    await until(() => idle.readyState === 'open' && slow.bytesWritten > 0)
    await ask(site.port, '/livez')
    const [first, second] = [site.server.stop(), site.server.stop()]
    expect(second).toBe(first)
    await first
    idle.destroy()
    slow.destroy()
  })

  test('S9 until the drain delay ends, the server listens and answers readiness and new requests with 503', async () => {
    const site = await startSite({ limits: { drainDelayMs: 1_500 } })
    const stopped = site.server.stop()
    for (const [path, status] of [
      ['/readyz', 503],
      ['/livez', 200],
      [question, 503],
    ] as const) {
      const got = await ask(site.port, path)
      expect(`${path} ${got.status} ${got.headers.connection}`).toBe(`${path} ${status} close`)
    }
    await stopped
    expect(await refuses(site.port)).toBe(true)
    expect(site.calls).toEqual([])
  })

  test.each([
    ['on a machine with time', 1],
    ['on a machine that takes a second for each millisecond', 1_000],
  ])('S9 callers that ask again at once get an answer or a refused connection, never a reset, %s', async (_, pace) => {
    const site = await startSite()
    const outcomes = new Map<string, number>()
    const again = async (): Promise<void> => {
      for (;;) {
        const socket = connect(site.port, '127.0.0.1')
        const outcome = outcomeOf(socket)
        socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        const { answers, error } = await outcome
        const what = answers[0] ? String(answers[0].status) : (error ?? 'closed')
        outcomes.set(what, (outcomes.get(what) ?? 0) + 1)
        if (!answers[0]) return
      }
    }
    const callers = Array.from({ length: 64 }, again)
    await until(() => (outcomes.get('200') ?? 0) > 200)
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() * pace)
    await site.server.stop()
    clock.mockRestore()
    await Promise.all(callers)
    expect([...outcomes.keys()].sort()).toEqual(['200', 'ECONNREFUSED'])
    expect(outcomes.get('ECONNREFUSED')).toBe(64)
  })

  test('S9 a drain delay longer than the limit for calls leaves time to read the last connections', async () => {
    const site = await startSite({
      limits: { drainDelayMs: 400, quietMs: 1_000, cancelAfterMs: 50, closeAfterMs: 100 },
    })
    const { socket, outcome } = await openConnection(site.port)
    await ask(site.port, '/livez')
    const stopped = site.server.stop()
    await until(() => refuses(site.port))
    socket.write(get(question))
    expect(await outcome).toMatchObject({ answers: [{ status: 503 }], error: undefined })
    await stopped
  })

  test('S9 a request that was sent before the stop and not yet read is answered', async () => {
    const site = await startSite()
    const idle = await openConnection(site.port)
    idle.socket.write(get('/livez'))
    await until(() => site.log.length === 1)
    // Nothing is read between these two lines.
    idle.socket.write(get(question))
    const stopped = site.server.stop()
    const { answers, error } = await idle.outcome
    expect(answers.map(({ status }) => status)).toEqual([200, 503])
    expect(answers[1]?.head).toMatch(/^Connection: close$/m)
    expect(error).toBeUndefined()
    await stopped
  })

  test('S9 a connection that was accepted before the stop is read for a moment after the listener closes', async () => {
    const site = await startSite({ limits: { quietMs: 2_000 } })
    const silent = await openConnection(site.port)
    const slow = await openConnection(site.port)
    slow.socket.write('GET /readyz HTTP/1.1\r\nHo')
    // Whoever is answered came after both.
    await ask(site.port, '/livez')
    const stopped = site.server.stop()
    await until(() => refuses(site.port))
    await pause(150)
    silent.socket.write(get(question))
    slow.socket.write('st: localhost\r\n\r\n')
    expect(await silent.outcome).toMatchObject({ answers: [{ status: 503 }], rest: '', error: undefined })
    expect(await slow.outcome).toMatchObject({ answers: [{ status: 503 }], rest: '', error: undefined })
    await stopped
  })

  test('S9 a request with incomplete headers is answered 503', async () => {
    const site = await startSite()
    const { socket, outcome } = await openConnection(site.port)
    socket.write('GET /readyz HTTP/1.1\r\nHo')
    await ask(site.port, '/livez')
    await site.server.stop()
    const { answers, error } = await outcome
    expect(answers).toMatchObject([{ status: 503 }])
    expect(answers[0]?.body).toContain('The server is stopping')
    expect(error).toBeUndefined()
  })

  test('S9 a body in transit at the stop is accepted, and one that comes later is refused', async () => {
    const site = await startSite({
      service: { reportHeartbeat: async () => ({ Name: 'agent', ReceivedAt: new Date(0) }) },
      limits: { quietMs: 2_000 },
    })
    const [early, late] = [await openConnection(site.port), await openConnection(site.port)]
    const head =
      'POST /heartbeats/agent HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n'
    early.socket.write(`${head}{`)
    await ask(site.port, '/livez')
    const stopped = site.server.stop()
    late.socket.write(`${head}{`)
    await until(() => refuses(site.port))
    early.socket.write('}')
    late.socket.write('}')
    expect(await early.outcome).toMatchObject({ answers: [{ status: 200 }], error: undefined })
    expect(await late.outcome).toMatchObject({ answers: [{ status: 503 }], error: undefined })
    await stopped
  })

  test('S9 a caller that reads slowly gets the whole answer', async () => {
    const size = 32 * 1024 * 1024
    const site = await startSite({
      health: async (_request, call) => healthy(call, { StatusMessage: 'x'.repeat(size) }),
    })
    const { socket, outcome } = await openConnection(site.port)
    socket.pause()
    socket.write(get(question))
    await until(() => site.log.length === 1)
    const stopped = site.server.stop()
    await until(() => refuses(site.port))
    await pause(300)
    socket.resume()
    const { answers, error } = await outcome
    expect(answers.map(({ status, body }) => `${status} ${body.length > size}`)).toEqual(['200 true'])
    expect(error).toBeUndefined()
    await stopped
  })

  test('S9 a TLS handshake in progress at the stop completes, and its request is answered', async () => {
    const site = await startSite({ tls: { cert, key }, limits: { quietMs: 2_000 } })
    const { socket: transport } = await openConnection(site.port)
    // Another handshake that is complete says that this connection was accepted.
    await handshake(site.port)
    const stopped = site.server.stop()
    await until(() => refuses(site.port))
    const socket = connectTls({ socket: transport, rejectUnauthorized: false })
    const outcome = outcomeOf(socket)
    await once(socket, 'secureConnect')
    await pause(150)
    socket.write(get(question))
    expect(await outcome).toMatchObject({ answers: [{ status: 503 }], error: undefined })
    await stopped
  })

  test('S9 a TLS handshake that stalls does not delay the stop', async () => {
    const site = await startSite({ tls: { cert, key }, limits: { headersMs: 60_000, requestMs: 60_000 } })
    const { outcome } = await openConnection(site.port)
    await handshake(site.port)
    await site.server.stop()
    expect((await outcome).answers).toEqual([])
  })
})
