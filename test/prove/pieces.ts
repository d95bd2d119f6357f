import fc from 'fast-check'

/**
 * Bytes for a connection, one character each. `{{id}}` is a correlation id of its own; `hiddenMark` that of a request
 * which is none: it lies in a body, or behind what ends the connection, and must never be answered.
 */
export type Piece = {
  /** `whole`: one answer, and the connection goes on. `last`: one answer, and it closes. `broken`: as `last`, by the parser. */
  readonly kind: 'whole' | 'last' | 'broken'
  readonly method: string
  readonly bytes: string
  /** Of a `last` one: the statuses that will do. */
  readonly statuses?: readonly number[]
}

/** As long as an id, because it stands where lengths are counted. */
export const hiddenMark = `{{${'hidden'.padEnd(21, '-')}}}`
const hidden = `GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Correlation-Id: ${hiddenMark}\r\n\r\n`
const host = 'Host: localhost\r\n'
const id = 'X-Correlation-Id: {{id}}\r\n'
const json = 'Content-Type: application/json\r\n'

const paths = [
  ...['/livez', '/readyz', '/metrics', '/', '/nothing', '/auth', '/openapi.json', '/healthcheck', '/types/typescript'],
  ...['/healthcheck?ExecutionMode=Basic&ServerType=Sql', '/healthcheck?ExecutionMode=Basic&ServerType=Ftp&format=csv'],
]
const bodies = [
  '{}',
  hidden,
  '',
  '{"UserName":',
  'x'.repeat(20_000),
  `{"Meta":${'['.repeat(3_000)}`,
  '0\r\n\r\n',
  '\r\n\r\n',
]
const posts = [
  '/assignroles',
  '/access-token',
  '/api/HealthCheckRequest',
  '/heartbeats/x',
  '/nothing',
  '/auth/logout',
  '/livez',
]

/** Headers that change nothing. */
const harmless = [
  ...['', '', '', 'Connection: keep-alive\r\n', 'TE: trailers\r\n', 'Range: bytes=0-1\r\n', 'X-Odd: \x80\xff\xa0\r\n'],
  ...['X-Empty:\r\n', 'X-Tab:\ta\t\r\n', 'X-Tight:a\r\n', "x-|~!#$%&*+^`'.: 1\r\n", 'Cookie: a=b\r\nCookie: c=d\r\n'],
  ...['Connection: x-odd\r\nX-Odd: 1\r\n', 'Upgrade-Insecure-Requests: 1\r\n', 'Date: x\r\nAge: -1\r\n'],
]

const piece = (kind: Piece['kind'], method: string, bytes: string, statuses?: readonly number[]): Piece => ({
  kind,
  method,
  bytes,
  ...(statuses ? { statuses } : {}),
})

const asked = fc
  .tuple(
    fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'DELETE', 'PUT', 'TRACE', 'PROPFIND'),
    fc.constantFrom(...paths),
    fc.constantFrom(...harmless),
  )
  .map(([method, path, more]) => piece('whole', method, `${method} ${path} HTTP/1.1\r\n${host}${id}${more}\r\n`))

const leading = fc
  .constantFrom('', '', '\r\n', '\r\n\r\n')
  .chain((lines) => asked.map((one) => ({ ...one, bytes: lines + one.bytes })))

const sent = fc
  .tuple(
    fc.constantFrom('POST', 'DELETE'),
    fc.constantFrom(...posts),
    fc.constantFrom(...bodies),
    fc.constantFrom(...harmless),
  )
  .map(([method, path, body, more]) =>
    piece(
      'whole',
      method,
      `${method} ${path} HTTP/1.1\r\n${host}${id}${json}${more}Content-Length: ${body.length}\r\n\r\n${body}`,
    ),
  )

const chunk = (size: string, data: string, extension = ''): string => `${size}${extension}\r\n${data}\r\n`
const hex = (data: string): string => data.length.toString(16)
const coding = [
  'Transfer-Encoding: chunked\r\n',
  'transfer-encoding:chunked\r\n',
  'TRANSFER-ENCODING: Chunked\r\n',
  'Transfer-Encoding:\tchunked \r\n',
]
const ways: readonly ((data: string) => string)[] = [
  (data) => (data === '' ? '' : chunk(hex(data), data)),
  (data) => (data === '' ? '' : chunk(hex(data).toUpperCase().padStart(6, '0'), data)),
  (data) => (data === '' ? '' : chunk(hex(data), data, ';a=b;c="d"')),
  (data) => [...data.slice(0, 50)].map((letter) => chunk('1', letter)).join(''),
]
const ends = [
  '0\r\n\r\n',
  '000\r\n\r\n',
  '0;last\r\n\r\n',
  '0\r\nX-Trailer: a\r\n\r\n',
  '0\r\nHost: evil.example\r\nAuthorization: Bearer x\r\n\r\n',
]

const chunked = fc
  .tuple(
    fc.constantFrom(...posts),
    fc.constantFrom(...bodies),
    fc.constantFrom(...coding),
    fc.constantFrom(...ways),
    fc.constantFrom(...ends),
  )
  .map(([path, body, header, way, end]) =>
    piece('whole', 'POST', `POST ${path} HTTP/1.1\r\n${host}${id}${json}${header}\r\n${way(body)}${end}`),
  )

const expecting = fc
  .tuple(fc.constantFrom(...posts), fc.constantFrom('{}', hidden))
  .map(([path, body]) =>
    piece(
      'whole',
      'POST',
      `POST ${path} HTTP/1.1\r\n${host}${id}${json}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    ),
  )

const whole = fc.oneof(
  { weight: 4, arbitrary: leading },
  { weight: 2, arbitrary: sent },
  { weight: 2, arbitrary: chunked },
  { weight: 1, arbitrary: expecting },
)

const get = 'GET /livez HTTP/1.1\r\n'
const bad = [400]

/** Requests that are complete, and answered with a `Connection: close`. */
const last: readonly Piece[] = [
  piece('last', 'GET', `${get}${host}${id}Connection: close\r\n\r\n`, [200]),
  piece('last', 'GET', `${get}${host}${id}Proxy-Connection: close\r\n\r\n`, [200]),
  piece('last', 'GET', `GET /livez HTTP/1.0\r\n${host}${id}\r\n`, [200]),
  piece('last', 'GET', `${get}${host}${id}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, [200]),
  piece(
    'last',
    'POST',
    `POST /assignroles HTTP/1.1\r\n${host}${id}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n${json}Content-Length: 2\r\n\r\n{}`,
    [401],
  ),
  ...['http://localhost/livez', '//livez', '//evil.example/livez', '*', '/a\\b', '/%00', '/%1f', '/a%7fb'].map(
    (target) => piece('last', 'GET', `GET ${target} HTTP/1.1\r\n${host}${id}\r\n`, bad),
  ),
  piece('last', 'GET', `${get}${id}\r\n`, bad),
  piece('last', 'GET', `${get}Host:\r\n${id}\r\n`, bad),
  piece('last', 'GET', `${get}${host}HOST: localhost\r\n${id}\r\n`, bad),
  piece('last', 'GET', `${get}${host}${id}Authorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n`, bad),
  piece(
    'last',
    'POST',
    `POST /assignroles HTTP/1.1\r\n${host}${id}${json}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}`,
    bad,
  ),
  piece('last', 'GET', `${get}${host}${id}Expect: 200-ok\r\n\r\n`, bad),
  piece('last', 'GET', `${get}${host}${id}Content-Length: ${hidden.length}\r\n\r\n${hidden}`, bad),
  piece(
    'last',
    'GET',
    `${get}${host}${id}Transfer-Encoding: chunked\r\n\r\n${chunk(hex(hidden), hidden)}0\r\n\r\n`,
    bad,
  ),
  piece(
    'last',
    'POST',
    `POST /assignroles HTTP/1.0\r\n${host}${id}${json}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    bad,
  ),
  piece('last', 'GET', `${get}${host}${id}${'X-Many: 1\r\n'.repeat(63)}\r\n`, [431]),
  piece('last', 'CONNECT', `CONNECT localhost:80 HTTP/1.1\r\n${host}\r\n`, [405]),
  piece('last', 'CONNECT', `CONNECT /livez HTTP/1.1\r\n${host}\r\n`, [400, 405]),
]

const post = `POST /assignroles HTTP/1.1\r\n${host}${json}`
const te = 'Transfer-Encoding: chunked\r\n'

/** Bytes that are no request, or one that two readers could understand differently. */
const broken: readonly string[] = [
  ...[
    '\0',
    '\0\0\0\0',
    'x',
    ' ',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    '\x80\x2e\x01\x03\x01',
    '{"a":1}\r\n\r\n',
  ],
  ...['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'GET /livez\r\n\r\n', 'GET\r\n\r\n', 'GET  \r\n\r\n'],
  ...[
    'GET /livez HTTP/0.9\r\n\r\n',
    'GET /livez HTTP/1.2\r\n\r\n',
    'GET /livez HTTP/2\r\n\r\n',
    'GET /livez HTTP/11\r\n\r\n',
  ],
  ...[
    'GET /livez HTTP/1.1 \r\n\r\n',
    'GET /livez http/1.1\r\n\r\n',
    'GET /a b HTTP/1.1\r\n\r\n',
    'GET\t/livez\tHTTP/1.1\r\n\r\n',
  ],
  ...[
    'get /livez HTTP/1.1\r\n\r\n',
    'FOO /livez HTTP/1.1\r\n\r\n',
    'GET /li\0vez HTTP/1.1\r\n\r\n',
    'GET /\xff HTTP/1.1\r\n\r\n',
    ` ${get}\r\n`,
    '<>',
    'SSH-2.0-x\r\n',
  ],
  ...['HTTP/1.1 200 OK\r\n\r\n', 'EHLO x\r\n', `${get.repeat(2)}\r\n`, `G${'E'.repeat(9_000)}T / HTTP/1.1\r\n\r\n`],
  ...[
    `GET /${'a'.repeat(9_000)} HTTP/1.1\r\n${host}\r\n`,
    `${get}${host}X-Large: ${'a'.repeat(9_000)}\r\n\r\n`,
    `${get}${'X: 1\r\n'.repeat(3_000)}\r\n`,
    `${get}${host}${'X: 1\r\n'.repeat(70)}\r\n`,
  ],
  ...[
    'Host : localhost',
    ' Host: localhost',
    ': x',
    'X',
    'X\0: 1',
    'X: \0',
    'X: \x01',
    'X: \x7f',
    'X: a\rb',
    'X\x80: 1',
    'X Y: 1',
    'X: a\n b\rc',
    'X: a\r\n b',
  ].map((line) => `${get}${host}${line}\r\n\r\n`),
  ...[
    'Content-Length: x',
    'Content-Length: -1',
    'Content-Length: +2',
    'Content-Length: 0x2',
    'Content-Length: 2 2',
    'Content-Length: 2, 2',
    'Content-Length:',
    'Content-Length: 99999999999999999999',
    'Content-Length: 2\r\nContent-Length: 3',
    'Content-Length: 2\r\nContent-Length: 2',
    'Content-Length : 2',
    'Content-Length: 2;',
  ].map((line) => `${post}${line}\r\n\r\n{}`),
  ...[
    `${te}Content-Length: 2\r\n`,
    `Content-Length: 2\r\n${te}`,
    'Transfer-Encoding: chunked, identity\r\n',
    'Transfer-Encoding: identity\r\n',
    'Transfer-Encoding: xchunked\r\n',
    'Transfer-Encoding : chunked\r\n',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n',
    'Transfer-Encoding: \x0bchunked\r\n',
    'Transfer-Encoding: chunked\0\r\n',
    'Transfer-Encoding: "chunked"\r\n',
    'Transfer-Encoding: gzip\r\n',
  ].map((lines) => `${post}${lines}\r\n0\r\n\r\n`),
  ...[
    'x\r\n',
    '-1\r\n',
    '0x2\r\n{}\r\n0\r\n\r\n',
    ' 2\r\n{}\r\n',
    '2 \r\n{}\r\n0\r\n\r\n',
    '2\n{}\n0\n\n',
    '2\r{}\r\n',
    '2\r\n{}x\r\n',
    '2\r\n{}\r\r',
    '1\r\n{}\r\n',
    'ffffffffffffffffff\r\n{}',
    '2\r\n{}0\r\n\r\n',
    ';\r\n',
    '\r\n',
    '2;\0\r\n{}\r\n',
    '0\r\nX\r\n\r\n',
    '0\r\nX: \0\r\n\r\n',
    '0\r\n\r\r',
    '0\n\n',
    '0\r\nContent-Length: 5\r\n\r\n',
  ].map((data) => `${post}${te}\r\n${data}`),
  `${post}${te}\r\n2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
  `${post}${te}\r\n0\r\n${'X: 1\r\n'.repeat(3_000)}\r\n`,
]

export type Talk = {
  readonly wholes: readonly Piece[]
  /** What ends the connection, if anything does. */
  readonly end: Piece | undefined
  /** What is sent behind it. */
  readonly behind: string
  /** Where the bytes are cut into packets, of 1,000. */
  readonly cuts: readonly number[]
  readonly leaves: 'waits' | 'half-closes' | 'resets'
}

/** Conversations that every reader must understand alike: so many requests, and then perhaps an end. */
export const talk: fc.Arbitrary<Talk> = fc.record({
  wholes: fc.array(whole, { maxLength: 4 }),
  end: fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    { weight: 3, arbitrary: fc.constantFrom(...last) },
    { weight: 4, arbitrary: fc.constantFrom(...broken).map((bytes) => piece('broken', 'POST', bytes)) },
  ),
  behind: fc.constantFrom('', '', hidden, hidden + hidden, `\r\n${hidden}`, '\0', 'x'.repeat(30_000), '0\r\n\r\n'),
  cuts: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.nat(1_000), { maxLength: 5 }) },
  ),
  leaves: fc.oneof(
    { weight: 8, arbitrary: fc.constant<Talk['leaves']>('waits') },
    { weight: 1, arbitrary: fc.constantFrom<Talk['leaves']>('half-closes', 'resets') },
  ),
})

export type Noise = {
  readonly bytes: string
  readonly cuts: readonly number[]
  readonly leaves: 'half-closes' | 'resets'
}

/** Requests with bytes lost, doubled or changed: nobody can say what they are. */
export const noise: fc.Arbitrary<Noise> = fc.record({
  bytes: fc
    .tuple(
      fc.array(
        fc.oneof(
          whole,
          fc.constantFrom(...last),
          fc.constantFrom(...broken).map((bytes) => ({ bytes })),
        ),
        { minLength: 1, maxLength: 3 },
      ),
      fc.array(
        fc.tuple(
          fc.nat(10_000),
          fc.constantFrom('', '\0', '\r', '\n', ' ', ':', 'x', '\xff', '0', '\r\n', '\r\n\r\n', hidden),
          fc.nat(3),
        ),
        { maxLength: 4 },
      ),
    )
    .map(([pieces, changes]) => changes.reduce(changed, pieces.map((one) => one.bytes).join(''))),
  cuts: fc.array(fc.nat(1_000), { maxLength: 3 }),
  leaves: fc.constantFrom('half-closes', 'half-closes', 'half-closes', 'resets'),
})

const changed = (bytes: string, [where, put, drop]: readonly [number, string, number]): string => {
  const at = Math.floor((where / 10_000) * bytes.length)
  return bytes.slice(0, at) + put + bytes.slice(at + drop)
}
