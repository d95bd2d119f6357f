import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Call } from '../../src/core/protocol/service/service.ts'
import { admit } from '../../src/core/server/connections.ts'
import { until } from '../support/suite/until.ts'
import { get, openConnection } from '../support/wire/exchange.ts'
import { ask, healthy, openSite, question, raw, type Site, startSite, withSite } from './site.ts'

let site: Site
beforeAll(async () => {
  site = await startSite()
})
afterAll(() => site.server.stop())

const common = [
  /^x-correlation-id: [0-9a-f-]{36}$/im,
  /^vary: accept$/im,
  /^x-content-type-options: nosniff$/im,
  /^content-security-policy: default-src 'none'/im,
  /^referrer-policy: no-referrer$/im,
  /^cache-control: no-store$/im,
  /^connection: close$/im,
  /^date: /im,
]

/** One answer, of that status, with the common headers and a ResponseStatus; the connection closed after it. */
function refused(got: { text: string; closed: boolean }, status: number, errorCode: string): void {
  expect(got.text.match(/^HTTP\/1\.1 \d{3} /gm)).toEqual([`HTTP/1.1 ${status} `])
  for (const header of common) expect(got.text).toMatch(header)
  const body = got.text.slice(got.text.indexOf('\r\n\r\n') + 4)
  expect(Number(/^content-length: (\d+)$/im.exec(got.text)?.[1])).toBe(Buffer.byteLength(body))
  expect(JSON.parse(body)).toMatchObject({ ResponseStatus: { ErrorCode: errorCode, Errors: [] } })
  expect(got.closed).toBe(true)
}

describe('S2 ambiguous requests', () => {
  const host = 'Host: localhost\r\n'
  const get = (headers: string, target = '/livez', version = '1.1') => `GET ${target} HTTP/${version}\r\n${headers}\r\n`

  test.each([
    ['two Host headers', get(`${host}hOST: evil.example\r\n`)],
    ['two equal Host headers', get(host + host)],
    ['two Authorization headers', get(`${host}Authorization: Bearer a\r\nauthorization: Bearer b\r\n`)],
    ['two Content-Type headers', get(`${host}Content-Type: text/plain\r\nContent-Type: application/json\r\n`)],
    ['no Host', get('')],
    ['an empty Host in HTTP/1.0', get('Host:\r\n', '/livez', '1.0')],
    ['an empty Host', get('Host:\r\n')],
    ['an absolute-form target', get(host, 'http://evil.example/livez')],
    ['an asterisk', `OPTIONS * HTTP/1.1\r\n${host}\r\n`],
    ['two slashes first', get(host, '//evil.example/livez')],
    ['a backslash', get(host, '/\\evil.example/livez')],
    ['an encoded NUL', get(host, '/livez%00')],
    ['an encoded line feed in the query', get(host, '/livez?a=%0a')],
    ['an encoded DEL', get(host, '/%7Flivez')],
    ['a fragment', get(host, '/livez#x')],
    ['raw bytes beyond ASCII', get(host, '/liv\u00e9')],
    ['HTTP/2.0 in the request line', get(host, '/livez', '2.0')],
    ['chunks in HTTP/1.0', `POST /livez HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['an unknown expectation', get(`${host}Expect: 200-ok\r\n`)],
  ])('S2 %s is a 400 and closes the connection', async (_what, bytes) => {
    refused(await raw(site.port, bytes), 400, 'BadRequest')
  })

  test.each(['/livez', '/readyz'])(
    'W13 GET %s in HTTP/1.0 without a Host, as balancers probe, is answered',
    async (path) => {
      expect((await raw(site.port, get('', path, '1.0'))).text).toMatch(/^HTTP\/1\.1 200 /)
    },
  )

  test.each(['/', '/metrics', '/healthcheck?ServerType=App&ExecutionMode=Basic', '/auth', '/nothing'])(
    'W13 GET %s in HTTP/1.0 without a Host is a 400',
    async (path) => {
      const got = await raw(site.port, get('', path, '1.0'))
      expect(got.text).toMatch(/^HTTP\/1\.1 400 /)
      expect(got.text).toContain('The Host header is missing')
    },
  )

  const lines = get('')
  const bodies = [
    ['with a length', `Content-Length: ${lines.length}\r\n\r\n${lines}`],
    ['in chunks', `Transfer-Encoding: chunked\r\n\r\n${lines.length.toString(16)}\r\n${lines}\r\n0\r\n\r\n`],
    ['that never comes', 'Content-Length: 5000000\r\n\r\n'],
    ['that waits for 100 Continue', 'Expect: 100-continue\r\nContent-Length: 5\r\n\r\n'],
  ] as const

  test.each([
    'gzip, chunked',
    'chunked, chunked',
    'identity, chunked',
    'chunked\r\nTransfer-Encoding: chunked',
    'gzip\r\nTransfer-Encoding: chunked',
    ', chunked',
  ])('S2 the transfer coding %j is a 400 and closes the connection', async (coding) => {
    for (const method of ['POST', 'GET']) {
      const bytes = `${method} /auth HTTP/1.1\r\n${host}Transfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`
      refused(await raw(site.port, bytes), 400, 'BadRequest')
    }
  })

  test.each(bodies)('R4 S2 GET with a body %s is read as without it, and the connection closes', async (_, body) => {
    const before = site.calls.length
    const behind = get(host, `${question}&behind`)
    const got = await raw(site.port, `GET ${question} HTTP/1.1\r\n${host}Content-Type: text/plain\r\n${body}${behind}`)
    expect(got.text.match(/^HTTP\/1\.1 \d{3} /gm)).toEqual(['HTTP/1.1 200 '])
    expect(got.text).toMatch(/^connection: close$/im)
    expect(JSON.parse(got.text.slice(got.text.indexOf('\r\n\r\n') + 4))).toMatchObject({ Status: 'Success' })
    expect(got.closed).toBe(true)
    await sleep(50)
    expect(site.calls.slice(before)).toHaveLength(1)
  })

  test('R4 S2 HEAD and OPTIONS with a body are answered as without it, and the connection closes', async () => {
    for (const method of ['HEAD', 'OPTIONS']) {
      const got = await raw(site.port, `${method} /livez HTTP/1.1\r\n${host}Content-Length: 3\r\n\r\nabc${get(host)}`)
      expect(got.text).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/)
      expect(got.closed).toBe(true)
    }
  })

  test('R4 a GET with a body that is larger than any limit is answered', async () => {
    const got = await ask(site.port, '/livez', { method: 'GET', body: Buffer.alloc(3 * 1024 * 1024, 'a') })
    expect([got.status, got.text]).toEqual([200, 'alive\n'])
  })

  test.each(['PUT', 'PATCH', 'TRACE', 'PROPFIND'])('R4 %s with a body is a 405 with Allow', async (method) => {
    const got = await raw(
      site.port,
      `${method} /healthcheck HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
    )
    refused(got, 405, 'MethodNotAllowed')
    expect(got.text).toMatch(/^allow: GET, HEAD/im)
  })

  test('S2 a request behind a refused one is not executed', async () => {
    const before = site.calls.length
    const smuggled = `GET ${question} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    refused(await raw(site.port, `GET //x HTTP/1.1\r\nHost: localhost\r\n\r\n${smuggled}`), 400, 'BadRequest')
    for (const [method, headers] of [
      ['POST', `Content-Length: 5\r\nTransfer-Encoding: chunked`],
      ['GET', `Content-Length: 5\r\nTransfer-Encoding: chunked`],
      ['GET', `Content-Length: 5\r\nContent-Length: ${smuggled.length + 5}`],
    ]) {
      const both = `${method} /livez HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n0\r\n\r\n${smuggled}`
      refused(await raw(site.port, both), 400, 'BadRequest')
    }
    await sleep(50)
    expect(site.calls.length).toBe(before)
  })

  test('S2 TRACE and CONNECT are 405 and name what is allowed', async () => {
    const trace = await ask(site.port, '/healthcheck', { method: 'TRACE' })
    expect(trace.status).toBe(405)
    expect(trace.headers.allow).toBe('GET, HEAD, POST, DELETE, OPTIONS')
    expect(trace.json.ResponseStatus?.ErrorCode).toBe('MethodNotAllowed')
    const connected = await raw(site.port, 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n')
    refused(connected, 405, 'MethodNotAllowed')
    expect(connected.text).toMatch(/^allow: GET, HEAD, POST, DELETE, OPTIONS$/im)
  })

  test('S2 an upgrade is ignored', async () => {
    const got = await ask(site.port, '/livez', { headers: { connection: 'Upgrade', upgrade: 'websocket' } })
    expect(got.status).toBe(200)
  })

  test.each([
    ['Content-Length and chunks', 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n'],
    ['two Content-Lengths', 'Content-Length: 3\r\nContent-Length: 4\r\n'],
    ['an unknown transfer coding', 'Transfer-Encoding: xchunked\r\n'],
    ['a space before the colon', 'X-A : b\r\n'],
    ['a folded header', 'X-A: b\r\n c\r\n'],
    ['a negative length', 'Content-Length: -3\r\n'],
    ['NUL in a header', 'X-A: b\0c\r\n'],
  ])('E2 the parser refuses %s, with the same headers and a ResponseStatus', async (_what, headers) => {
    const got = await raw(site.port, `POST /auth HTTP/1.1\r\nHost: localhost\r\n${headers}\r\nabc`)
    refused(got, 400, 'BadRequest')
  })

  test.each([
    'GARBAGE\r\n\r\n',
    'get /livez HTTP/1.1\r\nHost: x\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  ])('E2 %j is not a valid request', async (bytes) =>
    refused(await raw(site.port, Buffer.from(bytes, 'latin1')), 400, 'BadRequest'),
  )

  test('E2 a broken chunk in a body is a 400', async () => {
    const got = await raw(
      site.port,
      'POST /auth HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    )
    refused(got, 400, 'BadRequest')
  })

  test('E2 garbage after an unanswered request neither changes its answer nor keeps the connection open', async () => {
    const { promise: answered, resolve: letGo } = Promise.withResolvers<void>()
    const { port, calls } = await openSite({ health: () => answered.then(() => Promise.reject(new Error('late'))) })
    const got = raw(port, `GET ${question} HTTP/1.1\r\nHost: localhost\r\n\r\nGARBAGE\r\n\r\n`)
    await until(() => calls.length === 1)
    expect(await got).toEqual({ text: '', closed: true })
    letGo()
  })
})

describe('S3 bounds', () => {
  test('S3 headers above 8 KiB are a 431', async () => {
    const bytes = `GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'a'.repeat(8_193)}\r\n\r\n`
    refused(await raw(site.port, bytes), 431, 'RequestHeaderFieldsTooLarge')
    refused(await raw(site.port, bytes.replace('aaa', 'a'.repeat(300_000))), 431, 'RequestHeaderFieldsTooLarge')
  })

  test('S3 64 headers pass and 65 are a 431', async () => {
    const bytes = (count: number) =>
      `GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${'X-A: b\r\n'.repeat(count - 2)}\r\n`
    expect((await raw(site.port, bytes(64))).text).toMatch(/^HTTP\/1\.1 200 /)
    refused(await raw(site.port, bytes(65)), 431, 'RequestHeaderFieldsTooLarge')
    refused(await raw(site.port, bytes(400)), 431, 'RequestHeaderFieldsTooLarge')
  })

  test('S3 a body above the limit is a 413 whether announced or streamed, and one just below it is read', async () => {
    await withSite({ options: { maxBody: 1_000 } }, async ({ port, calls }) => {
      const post = (head: string) => `POST /auth HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n${head}`
      refused(await raw(port, post('Content-Length: 1001\r\n\r\n')), 413, 'RequestEntityTooLarge')
      const chunk = `${(600).toString(16)}\r\n${'a'.repeat(600)}\r\n`
      refused(await raw(port, post(`Transfer-Encoding: chunked\r\n\r\n${chunk}${chunk}`)), 413, 'RequestEntityTooLarge')
      expect(calls).toEqual([])
      expect((await ask(port, '/auth', { method: 'POST', body: 'a'.repeat(1_000) })).status).toBe(501)
    })
  })

  test('S3 a caller that sends a large body to its end still reads why it was refused', async () => {
    const body = Buffer.alloc(3 * 1024 * 1024, 'a')
    const got = await ask(site.port, '/auth', { method: 'POST', body })
    expect(got.status).toBe(413)
    expect(got.headers.connection).toBe('close')
    expect(got.json.ResponseStatus?.Message).toContain('1048576')
    expect((await ask(site.port, '/nothing', { method: 'POST', body })).status).toBe(404)
  })

  test('S3 an endless body is cut off', async () => {
    const { port } = await openSite({ options: { maxBody: 1_000 }, limits: { lingerBytes: 100_000 } })
    const socket = connect(port, '127.0.0.1')
    let sent = 0
    const closed = new Promise<void>((resolve) => {
      socket.on('close', () => resolve())
      socket.on('error', () => {})
    })
    socket.write('POST /auth HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = `${(65_536).toString(16)}\r\n${'a'.repeat(65_536)}\r\n`
    for (let i = 0; i < 10_000 && socket.writable; i += 1) {
      sent += chunk.length
      if (!socket.write(chunk)) await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))])
    }
    await closed
    expect(sent).toBeLessThan(64 * 1024 * 1024)
  })

  test('S3 100-continue is sent only when the server wants the body', async () => {
    const head = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n`
    const refused = await raw(site.port, `${head('/nothing')}\r\n`)
    expect(refused.text).toMatch(/^HTTP\/1\.1 404 /)
    const expectedAnswer = await raw(
      site.port,
      `${head('/auth')}Content-Type: application/json\r\nConnection: close\r\n\r\n{}`,
    )
    expect(expectedAnswer.text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 501 /)
  })

  test('S3 slow headers, a slow body and a silent connection each end in a 408', async () => {
    const limits = { headersMs: 300, requestMs: 600, checkEveryMs: 100 }
    const { port, log } = await openSite({ limits })
    const [headers, body, silent] = await Promise.all([
      raw(port, 'GET /livez HTTP/1.1\r\nHost: loc'),
      raw(port, 'POST /auth HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc'),
      raw(port, ''),
    ])
    refused(headers, 408, 'RequestTimeout')
    refused(body, 408, 'RequestTimeout')
    refused(silent, 408, 'RequestTimeout')
    await until(() => log.filter((entry) => entry.status === 408).length === 3)
  })

  test('S3 an honest caller is answered while 50 slow ones hang', async () => {
    const slow = Array.from({ length: 50 }, () => {
      const socket = connect(site.port, '127.0.0.1')
      socket.write(`GET ${question} HTTP/1.1\r\nHost: local`)
      return socket.on('error', () => {})
    })
    await Promise.all(slow.map((socket) => until(() => socket.readyState === 'open')))
    expect((await ask(site.port, question)).status).toBe(200)
    expect(slow.every((socket) => socket.readyState === 'open')).toBe(true)
    for (const socket of slow) socket.destroy()
  })

  test('S3 connections beyond the limit are answered probes only, and counted', async () => {
    await withSite({ limits: { connections: 3 } }, async ({ port }) => {
      const sockets = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'))
      await Promise.all(sockets.map((socket) => until(() => socket.readyState === 'open')))
      await sleep(50)
      const first = async (path: string) =>
        (await raw(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).text.split('\r\n')[0]
      expect([await first('/livez'), await first('/readyz')]).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 200 OK'])
      expect(await first(question)).toBe('')
      for (const socket of sockets) socket.destroy()
      let refused = 3
      const metrics = await until(() =>
        ask(port, '/metrics').catch(() => {
          // It has not noticed yet that they are gone.
          refused += 1
          return false as const
        }),
      )
      expect(metrics.text).toMatch(new RegExp(`^svc_http_connections_refused_total ${refused}$`, 'm'))
    })
  })

  test('S3 64 requests may wait on one connection, and one that sends more is closed and counted', async () => {
    const { promise, resolve: letGo } = Promise.withResolvers<void>()
    const health = async (_request: unknown, call: Call) => {
      await promise
      return healthy(call)
    }
    const site = await openSite({ health })
    const greedy = await openConnection(site.port)
    greedy.socket.write(get(question).repeat(20_000))
    expect((await greedy.outcome).answers).toEqual([])
    expect(site.calls.length).toBeLessThanOrEqual(64)
    await until(() => site.calls.every(({ call }) => call.signal.aborted))

    const before = site.calls.length
    const { socket, outcome } = await openConnection(site.port)
    socket.write(get(question).repeat(64))
    await until(() => site.calls.length === before + 64)
    letGo()
    socket.end()
    expect((await outcome).answers.map(({ status }) => status)).toEqual(Array.from({ length: 64 }, () => 200))
    const { text } = await ask(site.port, '/metrics', { headers: { host: 'localhost' } })
    expect(text).toContain('\nsvc_http_connections_refused_total 1\n')
    expect(text).toContain('\nsvc_http_requests_in_flight 1\n')
  })

  test.each([
    ['as it is', '', (body: string) => Buffer.from(body)],
    ['compressed', 'Content-Encoding: gzip\r\n', (body: string) => gzipSync(body)],
  ])('S3 a body that arrived %s while its request waited for its turn is read', async (_, header, encode) => {
    const post = (body: string, more = '') =>
      Buffer.concat([
        Buffer.from(
          `POST /api/HealthCheckRequest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${header}${more}` +
            `Content-Length: ${encode(body).length}\r\n\r\n`,
        ),
        encode(body),
      ])
    const bodies = (connection: number) =>
      ['App', 'Sql', 'Identity'].map((type) => `{"ServerType":"${type}","ExecutionMode":"Basic","${connection}":1}`)
    const health = async (_request: unknown, call: Call) => {
      // Longer than one turn of the loop has for requests, so that those of other connections wait.
      for (const until = performance.now() + 6; performance.now() < until; );
      return healthy(call)
    }
    const site = await openSite({ health })
    const outcomes = await Promise.all(
      Array.from({ length: 4 }, async (_, connection) => {
        const { socket, outcome } = await openConnection(site.port)
        const requests = bodies(connection).map((body, at) => post(body, at === 2 ? 'Connection: close\r\n' : ''))
        socket.write(Buffer.concat(requests))
        return await outcome
      }),
    )
    expect(outcomes.map(({ answers }) => answers.map(({ status }) => status))).toEqual(
      Array.from({ length: 4 }, () => [200, 200, 200]),
    )
    const types = site.calls.map(({ request }) => (request as { ServerType: string }).ServerType)
    expect(types.toSorted()).toEqual(
      ['App', 'Identity', 'Sql'].flatMap((type) => Array.from({ length: 4 }, () => type)),
    )
  })

  test('S3 an address with too many connections gets no more, other addresses do', async () => {
    let refused = 0
    let address = '192.0.2.7'
    const admitted = admit({
      most: 2,
      addressOf: () => address,
      refuse: (socket) => {
        refused += 1
        socket.destroy()
      },
    })
    const judged: boolean[] = []
    let ended = 0
    const server = createServer(async (socket) => {
      socket.on('error', () => {})
      admitted(socket)
      await turn()
      judged.push(!socket.destroyed)
      socket.on('close', () => {
        ended += 1
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const open: Socket[] = []
    const another = async (): Promise<boolean> => {
      const before = judged.length
      open.push(connect(port, '127.0.0.1').on('error', () => {}))
      await until(() => judged.length > before)
      return judged.at(-1) === true
    }
    const socketsSeen = [await another(), await another(), await another()]
    expect([socketsSeen, refused]).toEqual([[true, true, false], 1])
    address = '192.0.2.8'
    expect(await another()).toBe(true)
    // A connection that ends makes room.
    address = '192.0.2.7'
    const endedBefore = ended
    open[0]?.destroy()
    await until(() => ended > endedBefore)
    expect(await another()).toBe(true)
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })

  test('S3 an idle connection is closed', async () => {
    const { promise: never } = Promise.withResolvers<never>()
    const { port, calls } = await openSite({ limits: { silenceMs: 200 }, health: () => never })
    const got = await raw(port, `GET ${question} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    expect(got).toEqual({ text: '', closed: true })
    await until(() => calls[0]?.call.signal.aborted === true)
  })

  test('requests on one connection are answered one after another', async () => {
    const one = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'
    const last = 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    const got = await raw(site.port, one + one + last)
    expect(got.text.match(/^(?:alive|ready)$/gm)).toEqual(['alive', 'alive', 'ready'])
    expect(got.closed).toBe(true)
  })
})

describe('E2 bodies that cannot be read', () => {
  const post = (body: string | Buffer, type = 'application/json') =>
    ask(site.port, '/assignroles', { method: 'POST', headers: { 'content-type': type }, body })

  test('E2 JSON that does not parse is a SerializationException', async () => {
    const got = await post('{"UserName": "bob",')
    expect(got.status).toBe(400)
    expect(got.json.ResponseStatus?.ErrorCode).toBe('SerializationException')
    expect(got.json.ResponseStatus?.Message).toMatch(/^Could not deserialize 'application\/json' request using/)
    expect(got.text).not.toContain('bob')
  })

  test('E2 an unsupported type is a 415', async () => {
    expect((await post('<a/>', 'application/xml')).status).toBe(415)
    expect((await post('a', 'no/;such/')).status).toBe(415)
  })

  test('E2 invalid UTF-8 and forbidden names are a 400', async () => {
    expect((await post(Buffer.from('7b2261223a22ff227d', 'hex'))).status).toBe(400)
    expect((await post('{"__proto__":{"a":1}}')).status).toBe(400)
  })
})
