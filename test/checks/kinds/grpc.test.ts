import { once } from 'node:events'
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type Metadata, status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { servingStatus } from '../../../src/core/checks/kinds/grpc/connection.ts'
import grpc from '../../../src/core/checks/kinds/grpc/index.ts'
import { finds, findsOnly } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import {
  type Behaviour,
  blackHole,
  escapeSequences,
  peer,
  replies,
  settled,
  speaks,
} from '../../support/faults/faults.ts'
import { grpcHead, http2Frame, pours } from '../../support/hostile/servers.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { checkServer, healthServer, type Refusal } from '../../support/servers/grpc.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const host = '127.0.0.1'
/** The open resources of this process while a test listens at one port without a connection. */
const listening = 'TCPServerWrap 1'
type Settings = Parameters<typeof runKind<typeof grpc.settings>>[1]

const message = (bytes: readonly number[], length = bytes.length, flag = 0): Buffer =>
  Buffer.from([flag, length >>> 24, (length >>> 16) & 255, (length >>> 8) & 255, length & 255, ...bytes])
const serving = message([8, 1])
const head = { ':status': 200, 'content-type': 'application/grpc' }

type Reply = {
  readonly head?: OutgoingHttpHeaders
  readonly body?: Buffer
  /** `none`: the answer ends without. */
  readonly trailers?: OutgoingHttpHeaders | 'none'
}
/** Answers of HTTP/2 that no server of gRPC gives: Node's own server, with what a test says. */
async function http2Server(behave: (stream: ServerHttp2Stream, request: IncomingHttpHeaders) => void) {
  const server: Http2Server = createServer()
  const sessions = new Set<{ destroy: () => void }>()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => sessions.delete(session))
  })
  server.on('stream', (stream, request) => {
    stream.on('error', () => {})
    behave(stream, request)
  })
  server.listen(0, host)
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    for (const session of sessions) session.destroy()
    server.close()
    await once(server, 'close')
  }
  return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: close }
}
const says =
  ({ head: first = head, body, trailers = { 'grpc-status': '0' } }: Reply) =>
  (stream: ServerHttp2Stream): void => {
    if (body === undefined && trailers !== 'none') {
      stream.respond({ ...first, ...trailers }, { endStream: true })
      return
    }
    stream.respond(first, { waitForTrailers: trailers !== 'none' })
    if (trailers !== 'none') stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    stream.end(body)
  }

const type = { data: 0, headers: 1, rstStream: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 } as const

/** Frames of HTTP/2 as a test writes them, once the client has sent its request. */
const frames =
  (behave: (socket: Socket) => void): Behaviour =>
  (socket) => {
    let received = Buffer.alloc(0)
    let at = 24
    socket.write(http2Frame(type.settings, 0, 0))
    const read = (chunk: Buffer): void => {
      received = Buffer.concat([received, chunk])
      while (received.length >= at + 9) {
        const isRequest = received[at + 3] === type.headers
        at += 9 + received.readUIntBE(at, 3)
        if (!isRequest) continue
        socket.off('data', read)
        behave(socket)
        return
      }
    }
    socket.on('data', read)
  }
/** Writes the same for ever, as fast as it is read. */
const forEver = (socket: Socket, first: Buffer, chunk: Buffer): void => pours(first, chunk, 'at once')(socket)

const look = (port: number, input: Settings = {}, options: RunKindOptions = {}) =>
  runKind(grpc, { host, port, ...input }, 'Standard', options)
const statuses = (results: Awaited<ReturnType<typeof look>>) => results.map((result) => [result.check, result.status])

describe('grpc health', () => {
  test('a server that serves is ok in each check, and Basic does not call it', async () => {
    await using server = await healthServer({ '': 'SERVING' })
    const basic = await runKind(grpc, { host, port: server.port })
    expect(statuses(basic)).toEqual([['connect', 'ok']])
    expect(basic[0]?.message).toMatch(
      /^127\.0\.0\.1:\d+ opened an HTTP\/2 connection in [\d.]+ m?s \(warn 1 s, fail 5 s\)$/,
    )
    expect(basic[0]?.message).not.toContain('SERVING')
    const results = await look(server.port)
    expect(statuses(results)).toEqual([
      ['connect', 'ok'],
      ['health', 'ok'],
      ['latency', 'ok'],
    ])
    await finds(
      results,
      [`health: ${host}:${server.port} answers SERVING`, { address: `${host}:${server.port}` }],
      ['latency', { measurement: { unit: 'milliseconds', limit: 5_000 } }],
    )
    expect(await settled(listening)).toBe(listening)
  })

  test('each service has its own result, and one that fails does not hide the others', async () => {
    await using server = await healthServer({ '': 'SERVING', a: 'NOT_SERVING', b: 'SERVING', c: 'UNKNOWN' })
    const results = await look(server.port, { services: ['a', 'b', 'c', 'missing.Service'] })
    const at = `${host}:${server.port}`
    expect(
      results
        .filter(({ check }) => check === 'health')
        .map(({ subject, status: state, fault, message: text }) => [subject, state, fault, text]),
    ).toEqual([
      ['a', 'failed', 'data', `${at} answers NOT_SERVING for a`],
      ['b', 'ok', undefined, `${at} answers SERVING for b`],
      ['c', 'failed', 'data', `${at} does not report whether it serves: it answers UNKNOWN for c`],
      ['missing.Service', 'failed', 'data', expect.stringMatching(/has no status for missing\.Service \(NOT_FOUND: "/)],
    ])
    expect(results.filter(({ check }) => check === 'latency').map(({ subject }) => subject)).toEqual([
      'a',
      'b',
      'c',
      'missing.Service',
    ])
  })

  test('a healthy server is not asked about itself when services are named', async () => {
    await using server = await healthServer({ '': 'NOT_SERVING', a: 'SERVING' })
    await finds(look(server.port, { services: ['a'] }), 'health ok')
    await finds(look(server.port), ['health', / answers NOT_SERVING$/])
  })

  test('a server without a status of its own is reported with the setting to add', async () => {
    await using server = await healthServer({ a: 'SERVING' })
    await finds(look(server.port), [
      'health failed (data)',
      'has no status for the server as a whole: list its services in services (NOT_FOUND',
    ])
  })

  test.each([
    [status.CANCELLED, 'protocol', 'failed to answer (CANCELLED: "why")'],
    [status.DEADLINE_EXCEEDED, 'timeout', 'did not finish its answer in time (DEADLINE_EXCEEDED: "why")'],
    [status.PERMISSION_DENIED, 'auth', 'asks for credentials, and this monitor has none (PERMISSION_DENIED: "why")'],
    [status.UNAUTHENTICATED, 'auth', 'asks for credentials, and this monitor has none (UNAUTHENTICATED: "why")'],
    [status.RESOURCE_EXHAUSTED, 'refused', 'cannot answer now (RESOURCE_EXHAUSTED: "why")'],
    [status.UNAVAILABLE, 'refused', 'cannot answer now (UNAVAILABLE: "why")'],
    [status.INTERNAL, 'protocol', 'failed to answer (INTERNAL: "why")'],
    [42, 'protocol', 'failed to answer (status 42: "why")'],
  ])('grpc-status %i is %s', async (code, fault, text) => {
    await using server = await checkServer(() => ({ code, details: 'why' }))
    await finds(look(server.port), [`health failed: ${host}:${server.port} ${text}`, { fault }])
  })

  test('grpc-message is decoded, and never reaches a terminal unescaped', async () => {
    await using server = await checkServer(() => ({ code: 13, details: `größer 100 % ${escapeSequences}` }))
    const result = checked(await look(server.port), 'health')
    expect(result.message).toContain('(INTERNAL: "größer 100 % ')
    expect(JSON.stringify(result)).not.toMatch(/\\u00(?:0|1|9)|\x1b|%[0-9A-F]{2}/)
    await using long = await checkServer(() => ({ code: 13, details: '%'.repeat(3_000) }))
    expect(checked(await look(long.port), 'health').message.length).toBeLessThan(300)
  })

  test('a late answer fails in latency, and in connect where that is late', async () => {
    await using server = await healthServer({ '': 'SERVING' })
    await finds(
      look(server.port, { latency: { limit: 0 } }),
      'health ok',
      'latency failed (threshold)',
      'connect failed (threshold)',
    )
  })
})

describe('grpc metadata', () => {
  const token = 'correct-horse-9'
  const echoes = (metadata: Metadata): Refusal => {
    const { authorization, 'x-key': key, tenant, 'user-agent': agent } = metadata.getMap()
    return { code: 16, details: JSON.stringify([authorization, key, tenant, agent]) }
  }

  test('headers and a bearer token go with each call, and the token is not shown', async () => {
    await using server = await checkServer(echoes)
    const results = await look(server.port, { headers: { Tenant: 'blue' }, token: secret(token) })
    const result = checked(results, 'health')
    expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
    expect(result.message).toContain(
      'refuses the token of this monitor (UNAUTHENTICATED: "["Bearer [secret]",null,"blue"',
    )
    expect(JSON.stringify(results)).not.toContain(token)
    await finds(look(server.port, { token: secret(token), tokenHeader: 'X-Key' }), 'health: …[null,"[secret]",null,…')
  })

  test('a server that accepts the token serves', async () => {
    await using server = await checkServer((metadata) =>
      metadata.getMap()['authorization'] === `Bearer ${token}` ? undefined : { code: 16, details: 'no' },
    )
    await finds(look(server.port, { token: secret(token) }), 'health ok')
    await finds(look(server.port, { token: secret('other') }), 'health (auth)')
  })

  test('a token that no header can contain is reported, and not sent', async () => {
    await using server = await checkServer(echoes)
    await findsOnly(
      look(server.port, { token: secret('two\nlines') }),
      'connect failed (data): the token contains a character that a header does not allow',
    )
  })

  test.each<[Settings, string]>([
    [{}, 'localhost:'],
    [{ authority: 'shop.internal' }, 'shop.internal'],
  ])('with %o the authority begins with %s', async (input, expected) => {
    const authorities: (string | undefined)[] = []
    await using server = await http2Server((stream, { ':authority': authority }) => {
      authorities.push(authority)
      says({ body: serving })(stream)
    })
    await look(server.port, { host: 'localhost', ...input })
    expect(authorities).toEqual([expected.endsWith(':') ? `${expected}${server.port}` : expected])
  })
})

suiteWith(opensslMissing(), 'grpc over TLS', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())
  const trusted = (): Settings => ({ tls: true, servername: 'svc.test', caFile: made.caFile })

  test('a trusted server is called, and its certificates are dated', async () => {
    await using server = await healthServer({ '': 'SERVING' }, made.good)
    const results = await look(server.port, trusted())
    expect(statuses(results)).toEqual([
      ['connect', 'ok'],
      ['certificate', 'ok'],
      ['health', 'ok'],
      ['latency', 'ok'],
    ])
    await finds(
      results,
      ['connect', / opened an HTTP\/2 connection over TLSv1\.3 in /],
      ['certificate', { measurement: { unit: 'days', warn: 20, limit: 3 } }],
    )
    expect(await settled(listening)).toBe(listening)
  })

  test('a certificate that expires soon warns, and the server is called nevertheless', async () => {
    await using server = await healthServer({ '': 'SERVING' }, made.fiveDays)
    await finds(look(server.port, trusted()), 'certificate warning', 'health ok')
  })

  test.each([
    ['selfSigned', '"self.test" is self-signed'],
    ['otherHost', 'the certificate is not for svc.test'],
    ['expired', 'expired on'],
  ] as const)('a server with a certificate that is %s gets no request', async (name, text) => {
    let calls = 0
    await using server = await checkServer(() => {
      calls += 1
      return undefined
    }, made[name])
    const results = await look(server.port, { ...trusted(), token: secret('correct-horse-9') })
    await findsOnly(results, 'connect failed (tls)')
    expect(results[0]?.message).toContain(text)
    expect(calls).toBe(0)
  })

  test('verify: false calls a server whose certificate is not trusted', async () => {
    await using server = await healthServer({ '': 'SERVING' }, made.selfSigned)
    await finds(look(server.port, { tls: true, verify: false }), 'health ok')
  })

  test('without tls a server that requires it is distinguished from one that is not gRPC', async () => {
    await using server = await healthServer({ '': 'SERVING' }, made.good)
    const [result, ...more] = await look(server.port)
    expect(result).toMatchObject({ check: 'connect', status: 'failed', fault: 'protocol' })
    expect(result?.message).toContain(
      'closed the connection before it spoke HTTP/2; if the port expects TLS, set tls: true',
    )
    expect(more).toEqual([])
    await using alert = await peer(replies(Buffer.from('15030100020246', 'hex')))
    expect((await look(alert.port))[0]?.message).toBe(`${host}:${alert.port} expects TLS on this port: set tls: true`)
  })

  test('a TLS server without HTTP/2 is reported, whether it refuses or ignores the offer', async () => {
    const https = createHttps(made.good, (_, response) => response.end('hello')).listen(0, host)
    await once(https, 'listening')
    try {
      const { port } = https.address() as AddressInfo
      const [result] = await look(port, trusted())
      expect(result).toMatchObject({ check: 'connect', status: 'failed', fault: 'protocol' })
      expect(result?.message).toBe(`${host}:${port} does not offer HTTP/2 over TLS (ALPN h2), which gRPC needs`)
    } finally {
      https.close()
    }
    await using silent = await peer(blackHole, { tls: made.good })
    const [result] = await look(silent.port, trusted())
    expect(result?.message).toBe(`${host}:${silent.port} does not offer HTTP/2 over TLS (ALPN h2), which gRPC needs`)
  })
})

describe('grpc connection', () => {
  test.each<[string, Behaviour, string]>([
    [
      'HTTP/1.1',
      replies('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n'),
      'speaks HTTP/1, gRPC needs HTTP/2: it answered "HTTP/1.1 400 Bad Request Content-Length: 0"',
    ],
    ['SSH', speaks('SSH-2.0-OpenSSH_9.2\r\n'), 'does not answer in HTTP/2: it sent "SSH-2.0-OpenSSH_9.2"'],
    [
      'what begins like no SETTINGS',
      speaks(http2Frame(type.ping, 0, 0, Buffer.alloc(8))),
      'does not speak valid HTTP/2: ',
    ],
    ['a frame over its limit', speaks(Buffer.from([0, 255, 255, 4, 0, 0, 0, 0, 0])), 'does not speak valid HTTP/2: '],
    [
      'a hang-up',
      (socket) => void socket.once('data', () => socket.end()),
      'closed the connection before it spoke HTTP/2',
    ],
    [
      'a reset',
      (socket) => void socket.once('data', () => socket.resetAndDestroy()),
      'closed the connection before it spoke HTTP/2',
    ],
  ])('%s is a separate failure', async (_, behave, text) => {
    await using server = await peer(behave)
    await findsOnly(look(server.port), `connect failed (protocol): …${host}:${server.port} ${text}…`)
    expect(await settled(listening)).toBe(listening)
  })

  test('all addresses are probed separately', async () => {
    await using server = await healthServer({ '': 'SERVING' })
    const resolve = async () => ['127.0.0.1', '127.0.0.2']
    const results = await look(server.port, { host: 'shop.test', addresses: 'all' }, { resolve })
    const of = (ip: string) => results.filter(({ address }) => address === `${ip}:${server.port}`)
    expect(statuses(of('127.0.0.1')).map(([, state]) => state)).toEqual(['ok', 'ok', 'ok'])
    expect(of('127.0.0.2')).toEqual([expect.objectContaining({ check: 'connect', fault: 'refused' })])
  })
})

describe('grpc answers that are incomplete', () => {
  test('a complete answer of the same peer is ok', async () => {
    await using server = await http2Server(says({ body: serving }))
    await finds(look(server.port), 'health ok')
    await using later = await http2Server(says({ body: message([0x1a, 2, 7, 7, 8, 1]) }))
    await finds(look(later.port), 'health ok')
  })

  test.each<[string, Reply, string, string]>([
    ['no grpc-status', { body: serving, trailers: 'none' }, 'protocol', 'ended its answer without grpc-status'],
    ['other trailers', { body: serving, trailers: { a: 'b' } }, 'protocol', 'ended its answer without grpc-status'],
    [
      'grpc-status before the message alone',
      { head: { ...head, 'grpc-status': '0' }, body: serving, trailers: 'none' },
      'protocol',
      'ended its answer without grpc-status',
    ],
    [
      'a status that is not a number',
      { body: serving, trailers: { 'grpc-status': 'OK' } },
      'protocol',
      'with grpc-status "OK"',
    ],
    ['two statuses', { body: serving, trailers: { 'grpc-status': ['0', '12'] } }, 'protocol', 'ended its answer with'],
    ['no message', {}, 'protocol', 'answered OK without a message'],
    ['no message before its trailers', { body: Buffer.alloc(0) }, 'protocol', 'answered OK without a message'],
    ['an empty message', { body: message([]) }, 'data', 'does not report whether it serves: it answers UNKNOWN'],
    ['a cut head of a message', { body: serving.subarray(0, 3) }, 'protocol', 'cut its message short, after 3 B'],
    ['a cut message', { body: serving.subarray(0, 6) }, 'protocol', 'cut its message short, after 1 B of 2 B'],
    ['a compressed message', { body: message([8, 1], 2, 1) }, 'protocol', 'compressed its message'],
    ['a flag that gRPC does not have', { body: message([8, 1], 2, 9) }, 'protocol', 'began its message with 9'],
    ['two messages', { body: Buffer.concat([serving, serving]) }, 'protocol', 'sent more than one message'],
    ['no protobuf', { body: message([0xff, 0xff]) }, 'protocol', 'a message that is not a HealthCheckResponse'],
    [
      'another type of status',
      { body: message([10, 1, 1]) },
      'protocol',
      'a message that is not a HealthCheckResponse',
    ],
    [
      'a status of a later version',
      { body: message([8, 9]) },
      'protocol',
      'a status that grpc.health.v1 does not define',
    ],
    ['SERVICE_UNKNOWN', { body: message([8, 3]) }, 'data', 'does not know the service: it answers SERVICE_UNKNOWN'],
    ...['text/html; charset=utf-8', 'application/grpc-web+proto'].map(
      (contentType): [string, Reply, string, string] => [
        contentType,
        { head: { ':status': 200, 'content-type': contentType }, body: serving },
        'protocol',
        `answered with content-type "${contentType}", not as gRPC`,
      ],
    ),
    ['no content-type', { head: { ':status': 200 }, body: serving }, 'protocol', 'answered without a content-type'],
    ...[404, 401, 503].map((code): [string, Reply, string, string] => [
      `HTTP ${code}`,
      { head: { ...head, ':status': code }, body: serving },
      { 404: 'protocol', 401: 'auth', 503: 'refused' }[code] ?? '',
      `answered with HTTP ${code} instead of gRPC`,
    ]),
  ])('%s is a separate failure', async (_, reply, fault, text) => {
    await using server = await http2Server(says(reply))
    const result = checked(await look(server.port), 'health')
    expect(result).toMatchObject({ status: 'failed', fault })
    expect(result.message).toContain(`${host}:${server.port} `)
    expect(result.message).toContain(text)
    expect(await settled(listening)).toBe(listening)
  })

  const answer = Buffer.concat([http2Frame(type.headers, 4, 1, grpcHead), http2Frame(type.data, 0, 1, serving)])
  const code = (value: number): Buffer => Buffer.from([0, 0, 0, value])
  test.each<[string, Buffer, string]>([
    [
      'RST_STREAM',
      Buffer.concat([answer, http2Frame(type.rstStream, 0, 1, code(2))]),
      'was aborted (RST_STREAM, INTERNAL_ERROR)',
    ],
    [
      'RST_STREAM without an error',
      Buffer.concat([answer, http2Frame(type.rstStream, 0, 1, code(0))]),
      'ended its answer without grpc-status',
    ],
    [
      'a stream that is cancelled',
      Buffer.concat([answer, http2Frame(type.rstStream, 0, 1, code(8))]),
      'was aborted (RST_STREAM, CANCEL)',
    ],
    [
      'GOAWAY',
      http2Frame(type.goaway, 0, 0, Buffer.concat([code(0), code(0)])),
      'ended the connection instead of answering (GOAWAY, NO_ERROR)',
    ],
    [
      'GOAWAY with an error',
      Buffer.concat([answer, http2Frame(type.goaway, 0, 0, Buffer.concat([code(1), code(11)]))]),
      'ended the connection instead of answering (GOAWAY, ENHANCE_YOUR_CALM)',
    ],
  ])('%s is a separate failure', async (_, bytes, text) => {
    await using server = await peer(frames((socket) => void socket.write(bytes)))
    const result = checked(await look(server.port), 'health')
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toContain(text)
    expect(await settled(listening)).toBe(listening)
  })

  test.each([1, 2])(
    'H50 a server that ends the connection after %d calls without an error gets another one',
    async (each) => {
      let calls = 0
      let connections = 0
      const callsOf = new WeakMap<object, number>()
      await using server = await http2Server((stream) => {
        calls += 1
        const { session } = stream
        const before = (session && callsOf.get(session)) ?? 0
        if (before === 0) connections += 1
        if (session) callsOf.set(session, before + 1)
        says({ body: serving })(stream)
        if (before + 1 >= each) session?.close()
      })
      const services = ['a', 'b', 'c', 'd', 'e']
      const results = await look(server.port, { services })
      expect(results.filter(({ check }) => check === 'health').map(({ status }) => status)).toEqual(
        services.map(() => 'ok'),
      )
      expect({ calls, connections }).toEqual({ calls: 5, connections: Math.ceil(5 / each) })
      expect(await settled(listening)).toBe(listening)
    },
  )

  test('H50 a server that ends the connection between two calls with an error fails', async () => {
    await using server = await http2Server((stream) => {
      says({ body: serving })(stream)
      stream.session?.goaway(11)
    })
    const results = await look(server.port, { services: ['a', 'b'] })
    expect(results.some(({ status, message }) => status === 'failed' && /ENHANCE_YOUR_CALM/.test(message))).toBe(true)
  })

  test('a connection that is closed or reset in mid answer is a separate failure', async () => {
    const cuts: readonly ((socket: Socket) => void)[] = [
      (socket) => void socket.end(answer),
      (socket) => void socket.write(answer, () => socket.resetAndDestroy()),
    ]
    for (const cut of cuts) {
      await using server = await peer(frames(cut))
      await finds(look(server.port), 'health failed (protocol): …closed the connection instead of answering…')
    }
  })

  test('an invalid answer about one service does not hide the others', async () => {
    let calls = 0
    await using server = await http2Server((stream) => {
      calls += 1
      if (calls === 1) stream.close(2)
      else says({ body: serving })(stream)
    })
    const results = await look(server.port, { services: ['a', 'b'] })
    expect(results.filter(({ check }) => check === 'health')).toEqual([
      expect.objectContaining({ subject: 'a', status: 'failed', message: expect.stringMatching(/ \(query for a\)$/) }),
      expect.objectContaining({ subject: 'b', status: 'ok' }),
    ])
  })

  test('a server that stops after its answer is ok', async () => {
    const packedTrailers = Buffer.concat([Buffer.from([0x10, 11]), Buffer.from('grpc-status'), Buffer.from([1, 48])])
    const whole = Buffer.concat([
      http2Frame(type.goaway, 0, 0, Buffer.concat([code(1), code(0)])),
      answer,
      http2Frame(type.headers, 5, 1, packedTrailers),
    ])
    await using server = await peer(frames((socket) => void socket.write(whole)))
    await finds(look(server.port), 'health ok')
  })
})

describe('grpc hostile peers', () => {
  const open = Buffer.concat([http2Frame(type.headers, 4, 1, grpcHead)])
  const big = Buffer.alloc(16_384)
  test.each<[string, (socket: Socket) => void, RegExp]>([
    [
      'headers without end',
      (socket) =>
        forEver(
          socket,
          http2Frame(type.headers, 0, 1, grpcHead),
          http2Frame(type.continuation, 0, 1, Buffer.alloc(4_096, 0x90)),
        ),
      /was aborted \(RST_STREAM, ENHANCE_YOUR_CALM\)$/,
    ],
    [
      'headers that unpack to more than they are',
      // A value of 4,000 bytes goes into the table, and is then named 10,000 times.
      (socket) =>
        void socket.write(
          http2Frame(
            type.headers,
            4,
            1,
            Buffer.concat([
              grpcHead,
              Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x1e]),
              Buffer.alloc(4_000, 0x62),
              Buffer.alloc(10_000, 0xbe),
            ]),
          ),
        ),
      /RST_STREAM|valid HTTP\/2|closed/,
    ],
    [
      'pings without end',
      (socket) => forEver(socket, open, http2Frame(type.ping, 0, 0, Buffer.alloc(8))),
      /sent more than 64 KiB|valid HTTP\/2|closed/,
    ],
    [
      'settings without end',
      (socket) => forEver(socket, open, http2Frame(type.settings, 0, 0)),
      /sent more than 64 KiB|valid HTTP\/2|closed/,
    ],
    [
      'empty data without end',
      (socket) => forEver(socket, open, http2Frame(type.data, 0, 1)),
      /sent more than 64 KiB|valid HTTP\/2|closed/,
    ],
    [
      'data without end',
      (socket) => forEver(socket, open, http2Frame(type.data, 0, 1, big)),
      /sent more than one message/,
    ],
    [
      'interim answers without end',
      // `:status: 103`.
      (socket) =>
        forEver(socket, Buffer.alloc(0), http2Frame(type.headers, 4, 1, Buffer.from([0x08, 3, 0x31, 0x30, 0x33]))),
      /sent more than 64 KiB|valid HTTP\/2|closed/,
    ],
    [
      'a giant message',
      (socket) =>
        forEver(
          socket,
          Buffer.concat([open, http2Frame(type.data, 0, 1, message([], 0xffffffff))]),
          http2Frame(type.data, 0, 1, big),
        ),
      /announced a message of 4 GiB \(limit 4 KiB\)/,
    ],
    [
      'bytes that are not frames',
      (socket) => forEver(socket, Buffer.alloc(0), Buffer.alloc(4_096, 0xff)),
      /does not speak valid HTTP\/2/,
    ],
  ])('%s end soon, and as a failure', async (_, behave, text) => {
    let sent = 0
    await using server = await peer(
      frames((socket) => {
        socket.on('close', () => {
          sent = socket.bytesWritten
        })
        behave(socket)
      }),
    )
    // The deadline of a monitor in Standard is 10 s: a failure that came with it would be a timeout.
    const result = checked(await look(server.port), 'health')
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toMatch(text)
    expect(await settled(listening)).toBe(listening)
    // What lies in the buffers of the system counts as sent.
    expect(sent).toBeLessThan(32 * 1024 * 1024)
  })

  test.each<[string, (socket: Socket) => void]>([
    ['nothing', () => {}],
    ['a head and then nothing', (socket) => void socket.write(open)],
    [
      'a message and then nothing',
      (socket) => void socket.write(Buffer.concat([open, http2Frame(type.data, 0, 1, serving)])),
    ],
  ])('a server that answers %s is a timeout, and leaves nothing open', async (_, behave) => {
    await using server = await peer(frames(behave))
    await finds(look(server.port, {}, { timeoutMs: 400 }), 'connect ok', 'health failed (timeout)')
    expect(await settled(listening)).toBe(listening)
  })

  test('a run that is aborted ends the connection', async () => {
    await using server = await peer(frames(() => {}))
    const abort = new AbortController()
    const running = look(server.port, {}, { signal: abort.signal })
    setTimeout(() => abort.abort(), 200)
    await expect(running).rejects.toThrow()
    expect(await settled(listening)).toBe(listening)
  })
})

test.each([
  [[], 0],
  [[8, 0], 0],
  [[8, 1], 1],
  [[8, 2, 8, 1], 1],
  [[8, 0x81, 0], 1],
  [[0x12, 1, 0, 8, 1], 1],
  [[0x15, 0, 0, 0, 0, 0x19, 0, 0, 0, 0, 0, 0, 0, 0, 8, 1], 1],
  [[8], undefined],
  [[0], undefined],
  [[0x12, 5, 0], undefined],
  [[0x13, 8, 1], undefined],
  [[8, ...Array<number>(11).fill(0x80)], undefined],
])('the message %j has the status %s', (bytes, expected) => {
  expect(servingStatus(Buffer.from(bytes))).toBe(expected)
})

test.each<[Settings, string]>([
  [{ caFile: '/ca.pem' }, 'caFile needs tls: true'],
  [{ servername: 'a', fingerprint: ['ab'] }, 'servername and fingerprint need tls: true'],
  [{ verify: false }, 'verify needs tls: true'],
  [{ services: Array.from({ length: 51 }, (_, index) => `s${index}`) }, 'services has more than 50 names'],
  [{ services: ['a'.repeat(121)] }, 'is longer than 120 characters'],
  [{ services: ['a\nb'] }, 'or contains unprintable characters'],
  [{ services: ['a', 'a'] }, 'services lists a name twice'],
  [{ tokenHeader: 'x-key' }, 'tokenHeader needs token'],
  [{ token: secret('x'), tokenHeader: 'grpc-timeout' }, 'tokenHeader may not set grpc-timeout'],
  [{ headers: { ':path': '/x' } }, 'headers: ":path" is not a metadata key'],
  [{ headers: { TE: 'x' } }, 'headers may not set TE'],
  [{ headers: { a: 'ä' } }, 'contains characters that are not printable ASCII'],
])('the settings %o cannot be used together', async (input, text) => {
  const results = await look(1, input)
  await findsOnly(results, 'settings failed (data)')
  expect(results[0]?.message).toContain(text)
})
