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
/** Bytes that look like a request where none is. */
export const hidden = `GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Correlation-Id: ${hiddenMark}\r\n\r\n`
export const host = 'Host: localhost\r\n'
export const id = 'X-Correlation-Id: {{id}}\r\n'
export const json = 'Content-Type: application/json\r\n'

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

export const piece = (kind: Piece['kind'], method: string, bytes: string, statuses?: readonly number[]): Piece => ({
  kind,
  method,
  bytes,
  ...(statuses ? { statuses } : {}),
})

const requests = fc
  .tuple(
    fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'DELETE', 'PUT', 'TRACE', 'PROPFIND'),
    fc.constantFrom(...paths),
    fc.constantFrom(...harmless),
  )
  .map(([method, path, more]) => piece('whole', method, `${method} ${path} HTTP/1.1\r\n${host}${id}${more}\r\n`))

const leading = fc
  .constantFrom('', '', '\r\n', '\r\n\r\n')
  .chain((lines) => requests.map((one) => ({ ...one, bytes: lines + one.bytes })))

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

export const chunk = (size: string, data: string, extension = ''): string => `${size}${extension}\r\n${data}\r\n`
export const hex = (data: string): string => data.length.toString(16)
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

/** Requests that are complete, after which the connection goes on. */
export const whole = fc.oneof(
  { weight: 4, arbitrary: leading },
  { weight: 2, arbitrary: sent },
  { weight: 2, arbitrary: chunked },
  { weight: 1, arbitrary: expecting },
)
