import { expect, test } from 'vitest'
import { escapeSequences, http, peer, replies } from '../support/faults/faults.ts'
import { callWith, clientOf, faultOf, faultText, healthAt } from './asking.ts'
import { bodies, notFoundText, real } from './recorded.ts'

const json = { 'Content-Type': 'application/json; charset=utf-8' }
const page = '<!DOCTYPE html><html><body>Please sign in</body></html>'
const html = { 'Content-Type': 'text/html' }
const problem = (status: number): string =>
  `{"type":"about:blank","title":"Not Found","status":${status},"traceId":"00-1"}`

test.each([
  ['401 that says Invalid Role', real('401 Invalid Role', bodies.invalidRole), 'Unauthorized', 4],
  ['401 with an empty body', http(401, '', { 'WWW-Authenticate': 'credentials realm="/auth"' }), 'Unauthorized', 4],
  ['403 that says Invalid Role', real('403 Invalid Role', bodies.invalidRole), 'Forbidden', 5],
  ['403 as text', real('403 Forbidden', 'Forbidden\n\nRequest.HttpMethod: GET', 'text/plain'), 'Forbidden', 5],
  ['403 as a page', http(403, page, html), 'Forbidden', 5],
  ['400 with fields', real('400 Bad Request', bodies.badEnum), 'BadRequest', 9],
  ['400 ValidationException', real('400 ValidationException', bodies.emptySignIn), 'BadRequest', 9],
  ['500 ValidationException', real('500 ValidationException', bodies.emptySignIn), 'BadRequest', 9],
  ['500 with a page', http(500, page, html), 'ServerError', 8],
  ['500 with nothing', http(500), 'ServerError', 8],
  ['502 of a gateway', http(502, page, html), 'ServerError', 8],
  ['503 of a load balancer', http(503, page, html), 'Unavailable', 8],
  ['429', http(429, '', { 'Retry-After': '30' }), 'TooManyRequests', 8],
  ['408', http(408), 'RequestTimeout', 7],
  ['421', http(421, '{"ResponseStatus":{"ErrorCode":"MisdirectedRequest"}}', json), 'Misdirected', 9],
  ['418', http(418, 'a teapot', { 'Content-Type': 'text/plain' }), 'BadRequest', 9],
  ['an error in another shape', http(500, problem(500), json), 'ServerError', 8],
  ['304', http(304), 'ServerError', 8],
  ['206 with nothing', http(206), 'UnreadableAnswer', 8],
])('C2 the status decides: %s', async (_, answer, fault, exit) => {
  await using server = await peer(replies(answer))
  const error = await faultOf(healthAt(server.port))
  expect([error.fault, error.exitCode, error.details.remoteStatus]).toEqual([fault, exit, Number(answer.slice(9, 12))])
  expect(error.message).toContain(`http://127.0.0.1:${server.port}`)
})

test.each([
  ['the text 404', notFoundText],
  ['404 with a page', http(404, page, html)],
  ['404 as a problem document, whose status is not a Status', http(404, problem(404), json)],
  ['404 with a ResponseStatus', http(404, '{"ResponseStatus":{"ErrorCode":"NotFound","Message":"x"}}', json)],
  ['405', real('405 Method Not Allowed', bodies.noMethod)],
])('C7 a server without the health operation is exit 9 with that reason: %s', async (_, answer) => {
  await using server = await peer(replies(answer))
  const fault = await faultOf(healthAt(`http://127.0.0.1:${server.port}/ops/`))
  expect([fault.fault, fault.exitCode, fault.details.remoteStatus]).toEqual([
    'NoSuchOperation',
    9,
    Number(answer.slice(9, 12)),
  ])
  expect(fault.message).toContain(`GET http://127.0.0.1:${server.port}/ops/healthcheck`)
  expect(fault.details.hints?.join(' ')).toContain('ServiceStack itself has none')
})

test('C2 the message and the fields of the server are passed on', async () => {
  await using server = await peer(replies(real('400 Bad Request', bodies.badEnum)))
  const fault = await faultOf(healthAt(server.port))
  expect(fault.message).toBe(
    `http://127.0.0.1:${server.port} rejects the request (400): Unable to bind to request 'HealthCheckRequest'`,
  )
  expect(fault.errorCode).toBe('SerializationException')
  expect(fault.details.fields).toEqual([
    {
      ErrorCode: 'SerializationException',
      FieldName: 'ExecutionMode',
      Message: "'Wild' is an Invalid value for 'ExecutionMode'",
    },
  ])
})

test.each([
  ['seconds', () => '120', 120],
  ['a date', (now: number) => new Date(now + 60_500).toUTCString(), 60],
  ['a date that has passed', () => new Date(0).toUTCString(), 0],
  ['nothing that can be read', () => 'soon', undefined],
])('C2 a 503 and a 429 without Status name Retry-After: %s', async (_, input, seconds) => {
  for (const status of [503, 429]) {
    const began = Date.now()
    await using server = await peer(replies(http(status, '', { 'Retry-After': input(began) })))
    const fault = await faultOf(healthAt(server.port))
    const tookSeconds = (Date.now() - began) / 1_000
    expect(fault.exitCode).toBe(8)
    if (seconds === undefined) expect(fault.details.retryAfter).toBeUndefined()
    else {
      expect(Math.abs((fault.details.retryAfter ?? Number.NaN) - seconds)).toBeLessThanOrEqual(2 + tookSeconds)
      expect(fault.message).toContain(`${fault.details.retryAfter} s (Retry-After)`)
    }
  }
})

test.each([
  ['a Status that nobody knows', http(200, '{"status":"UP"}', json), 'UnreadableAnswer'],
  ['no Status', http(200, '{"hello":"world"}', json), 'UnreadableAnswer'],
  ['null for Status', http(200, '{"Status":null}', json), 'UnreadableAnswer'],
  ['an error with 200', http(200, '{"ResponseStatus":{"ErrorCode":"Boom","Message":"no"}}', json), 'ServerError'],
])('C2 a 200 with %s is not a success', async (_, answer, fault) => {
  await using server = await peer(replies(answer))
  const error = await faultOf(healthAt(server.port))
  expect([error.fault, error.exitCode, error.details.remoteStatus]).toEqual([fault, 8, 200])
})

test('C2 on other operations a 404 that names what is missing does not mean a missing operation', async () => {
  const ask = async (answer: string) => {
    await using server = await peer(replies(answer))
    const client = clientOf(`http://127.0.0.1:${server.port}`)
    return await faultOf(client.assignRoles({ UserName: 'nobody' }, callWith()))
  }
  const unknown = await ask(real('404 NotFound', bodies.unknownUser))
  expect([unknown.fault, unknown.exitCode]).toEqual(['NotFound', 9])
  expect(unknown.message).toMatch(/\(404\): nobody$/)
  const absent = await ask(notFoundText)
  expect([absent.fault, absent.exitCode]).toEqual(['NoSuchOperation', 9])
  expect(absent.message).toContain('AssignRoles')
  const noUser = await ask(real('400 ArgumentNullException', bodies.noUser))
  expect(noUser.message).toMatch(/Value cannot be null\. Parameter name: UserName$/)
  expect(noUser.details.fields?.[0]?.FieldName).toBe('UserName')
  expect((await ask(real('405 Method Not Allowed', bodies.noMethod))).fault).toBe('MethodNotAllowed')
  expect((await ask(real('403 Invalid Role', bodies.invalidRole))).fault).toBe('Forbidden')
  const emptyOk = await ask(http(200, '{"ResponseStatus":{"ErrorCode":"Boom","Message":"no"}}', json))
  expect(emptyOk.fault).toBe('ServerError')
})

test('text from a server appears without control characters, without passwords of URLs, and truncated', async () => {
  const message = `${escapeSequences} line\r\nnext postgres://bob:hunter2@db/x ${'long '.repeat(5_000)}`
  const body = JSON.stringify({
    ResponseStatus: { ErrorCode: 'X\u202e\x1b[2J', Message: message, Errors: [{ Message: message }] },
  })
  await using server = await peer(replies(http(400, body, json)))
  const fault = await faultOf(healthAt(server.port))
  expect(faultText(fault)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]|hunter2/)
  expect(fault.message.length).toBeLessThan(400)
  expect(fault.message).toContain('line next postgres://***@db/x long')
  expect(fault.errorCode).toBe('BadRequest')
})

test('P82 the remedy of a server is bounded and sanitized, and never runs as another account', async () => {
  const lines = [
    'Assign Admin to another user first.',
    `${escapeSequences}x`,
    '',
    'sudo -u root svc COMMAND',
    'y'.repeat(1_000),
    ...Array.from({ length: 99 }, (_, n) => `line ${n}`),
  ]
  const body = { ResponseStatus: { ErrorCode: 'Conflict', Message: 'no', Meta: { 'svc.remedy': lines.join('\n') } } }
  await using server = await peer(replies(http(409, JSON.stringify(body), json)))
  const client = clientOf(`http://127.0.0.1:${server.port}`)
  const { hints = [] } = (await faultOf(client.assignRoles({ UserName: 'ann' }, callWith()))).details
  expect(hints[0]).toBe(lines[0])
  expect(hints.length).toBeLessThanOrEqual(10)
  expect(Math.max(...hints.map((hint) => hint.length))).toBe(300)
  expect(hints.join('\n')).not.toMatch(/sudo|[^ -~…\n]/)
})
