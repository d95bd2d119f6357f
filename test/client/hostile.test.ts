import { getEventListeners } from 'node:events'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import {
  blackHole,
  cutAfter,
  endless,
  http,
  hugeHeaders,
  peer,
  refusedPort,
  replies,
  reset,
  settled,
  speaks,
} from '../support/faults/faults.ts'
import { endsByDeadline } from '../support/suite/deadline.ts'
import { farMs } from '../support/suite/until.ts'
import { basicSql, callWith, clientOf, faultOf, healthAt } from './asking.ts'
import { bodies, real } from './recorded.ts'

const json = { 'Content-Type': 'application/json; charset=utf-8' }
const whole = http(200, bodies.healthy, json)
const MiB = 1024 * 1024
const bombed = gzipSync(JSON.stringify({ Status: 'Success', StatusMessage: 'x'.repeat(20 * MiB) }))
const packed = (coding: string, body: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n`,
    ),
    body,
  ])
const latin1 = Buffer.from(http(200, '{"Status":"Success","StatusMessage":"X"}', json))
latin1[latin1.lastIndexOf('X')] = 0xe9

test.each([
  ['cut short of its Content-Length', cutAfter(whole.length - 1, whole)],
  ['cut so that what came is whole JSON', replies(http(200, bodies.healthy, { ...json, 'Content-Length': '5000' }))],
  ['cut within a chunk', cutAfter(400, real('200 OK', bodies.healthy))],
  ['cut before its last chunk', replies(real('200 OK', bodies.healthy).slice(0, -5))],
  ['cut within its headers', cutAfter(30, whole)],
  [
    'cut where only the end of the connection would tell',
    replies(`HTTP/1.0 200 OK\r\n\r\n${bodies.healthy.slice(0, -1)}`),
  ],
  ['none at all', replies('')],
  ['reset', reset],
  ['longer than its Content-Length', replies(`${whole}{"Status":"Failure"}`)],
  ['of two lengths', replies(http(200, bodies.healthy, { ...json, 'content-length': '9' }))],
  ['a web page', replies(http(200, '<!DOCTYPE html><p>Success', { 'Content-Type': 'text/html' }))],
  ['a web page that claims to be JSON', replies(http(200, '  <html>{"Status":"Success"}', json))],
  ['JSON that claims to be a web page', replies(http(200, bodies.healthy, { 'Content-Type': 'text/html' }))],
  ['gzip', replies(packed('gzip', gzipSync(bodies.healthy)))],
  ['a gzip bomb', replies(packed('gzip', bombed))],
  ['marked as br', replies(packed('br', Buffer.from(bodies.healthy)))],
  ['empty', replies(http(200, '', json))],
  ['blank', replies(http(200, ' \r\n', json))],
  ['204', replies(http(204))],
  ['a list', replies(http(200, `[${bodies.healthy}]`, json))],
  ['a text', replies(http(200, '"Success"', json))],
  ['not JSON', replies(http(200, 'Success', { 'Content-Type': 'text/plain' }))],
  ['half JSON', replies(http(200, bodies.healthy.slice(0, -1), json))],
  ['two documents', replies(http(200, bodies.healthy + bodies.healthy, json))],
  ['XML', replies(http(200, '<?xml version="1.0"?><HealthCheckResponse/>', { 'Content-Type': 'application/xml' }))],
  ['nested too deeply', replies(http(200, `{"Status":"Success","x":${'['.repeat(9_000)}${']'.repeat(9_000)}}`, json))],
  ['not UTF-8', replies(latin1)],
  ['not HTTP', replies('SSH-2.0-OpenSSH_9.6\r\n')],
  ['binary rubbish', replies(Buffer.from([0, 255, 21, 3, 1, 0, 2, 2, 40]))],
  ['huge headers', replies(hugeHeaders(200_000))],
])('K7 an answer is an error, never Success, when it is %s', async (_, behaviour) => {
  await using server = await peer(behaviour)
  const fault = await faultOf(healthAt(server.port))
  expect([fault.fault, fault.exitCode]).toEqual(['UnreadableAnswer', 8])
})

test.each([
  ['with a compressed body, which svc did not request', packed('gzip', gzipSync(bodies.healthy))],
  ['with a web page instead of JSON', http(200, '<p>Success', { 'Content-Type': 'text/html' })],
  ['with an empty body', http(200, '', json)],
  ['with a body that is not UTF-8', latin1],
])('K7 the error describes what arrived: %s', async (what, came) => {
  await using server = await peer(replies(came))
  const fault = await faultOf(healthAt(server.port))
  expect(fault.message).toBe(`http://127.0.0.1:${server.port} answered ${what}`)
  expect(fault.details.remoteStatus).toBe(200)
})

test('K7 an answer that arrives before the request is an error', async () => {
  await using server = await peer(speaks('220 mail.example.com ESMTP\r\n'))
  expect((await faultOf(healthAt(server.port))).fault).toBe('UnreadableAnswer')
})

test('K7 an answer that declares more than 8 MiB is rejected before any of it arrives', async () => {
  await using server = await peer(speaks(`HTTP/1.1 200 OK\r\nContent-Length: ${8 * MiB + 1}\r\n\r\n`))
  const fault = await faultOf(healthAt(server.port))
  expect([fault.fault, fault.message]).toEqual(['UnreadableAnswer', 'The answer is longer than 8 MiB'])
})

test('K7 an endless answer is rejected at 8 MiB, and memory does not grow with it', async () => {
  const chunk = `1000\r\n${'x'.repeat(4096)}\r\n`
  await using server = await peer(endless('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', chunk))
  const before = process.memoryUsage().arrayBuffers
  const fault = await faultOf(healthAt(server.port))
  expect([fault.fault, fault.message]).toEqual(['UnreadableAnswer', 'The answer is longer than 8 MiB'])
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * MiB)
})

test('K7 an answer in chunks of one byte uses no more memory than its bytes', async () => {
  const size = 200_000
  const head = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
  const body = `{"Status":"Failure","StatusMessage":"${'y'.repeat(size)}"}`
  const chunked = [...body].map((byte) => `1\r\n${byte}\r\n`).join('')
  await using server = await peer(replies(`${head}${chunked}0\r\n\r\n`))
  expect((await healthAt(server.port)).StatusMessage).toHaveLength(size)
})

const stalls: readonly (readonly [string, RegExp, Parameters<typeof peer>[0]])[] = [
  ['says nothing', /accepted the connection, but did not answer/, blackHole],
  ['sends half its headers', /did not answer/, speaks('HTTP/1.1 200 OK\r\nContent-Ty')],
  ['sends half its body', /began to answer, but did not finish/, speaks(whole.slice(0, -20))],
  [
    'drips a byte now and then',
    /did not finish/,
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n')
      const timer = setInterval(() => socket.write('x'), 20)
      socket.on('close', () => clearInterval(timer))
    },
  ],
]
test.each(stalls)('a server that %s ends at the deadline with exit 7', async (_, words, behaviour) => {
  await using server = await peer(behaviour)
  const fault = await endsByDeadline(200, faultOf(healthAt(server.port, { timeoutMs: 200 })), 50)
  expect([fault.fault, fault.exitCode]).toEqual(['Timeout', 7])
  expect(fault.message).toMatch(/^No answer within 0\.2 s: /)
  expect(fault.message).toMatch(words)
  await expect.poll(server.open).toBe(0)
})

test('the deadline covers all redirects together, and the options supply it when the call does not', async () => {
  await using server = await peer(replies(http(302, '', { Location: '/on' }), 120))
  const client = clientOf(`http://127.0.0.1:${server.port}`, { timeoutMs: 200 })
  const fault = await faultOf(client.healthCheck(basicSql, callWith({ timeoutMs: undefined })))
  expect(fault.fault).toBe('Timeout')
})

test('an abort rejects at once with its reason and leaves no connection', async () => {
  await using server = await peer(blackHole)
  // As node:timers and others put it: a code, as broken connections have one.
  const reason = Object.assign(new Error('SIGINT'), { code: 'ABORT_ERR' })
  const stop = new AbortController()
  const pendingCall = healthAt(server.port, { signal: stop.signal })
  await expect.poll(server.connections).toBe(1)
  stop.abort(reason)
  await expect(pendingCall).rejects.toBe(reason)
  await expect.poll(server.open).toBe(0)
  await expect(healthAt(server.port, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  expect(server.connections()).toBe(1)
})

test('a closed client ends calls in progress and sends no more', async () => {
  await using server = await peer(blackHole)
  const client = clientOf(`http://127.0.0.1:${server.port}`)
  const pendingCall = faultOf(client.healthCheck(basicSql, callWith()))
  await expect.poll(server.connections).toBe(1)
  client.close()
  client.close()
  expect((await pendingCall).fault).toBe('Interrupted')
  expect((await faultOf(client.healthCheck(basicSql, callWith()))).fault).toBe('Interrupted')
  expect(server.connections()).toBe(1)
  await expect.poll(server.open).toBe(0)
})

test('of many calls with one signal, a closed client ends its own, and the signal the others', async () => {
  await using server = await peer(blackHole)
  const stop = new AbortController()
  const clients = Array.from({ length: 3 }, () => clientOf(`http://127.0.0.1:${server.port}`))
  const calls = clients.map((client) =>
    client
      .healthCheck(basicSql, callWith({ signal: stop.signal, timeoutMs: 10 * farMs }))
      .catch((error: unknown) => error),
  )
  await expect.poll(server.connections).toBe(3)
  // Node searches all listeners of a signal for each that is added or removed.
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1)
  clients[0]?.close()
  expect(await calls[0]).toMatchObject({ fault: 'Interrupted' })
  await expect.poll(server.open).toBe(2)
  const reason = new Error('SIGINT')
  stop.abort(reason)
  await expect.poll(server.open).toBe(0)
  expect(await Promise.all(calls.slice(1))).toEqual([reason, reason])
})

test('a refused connection reports the address and the next step', async () => {
  const port = await refusedPort()
  for (const host of ['127.0.0.1', 'localhost']) {
    const fault = await faultOf(healthAt(`http://${host}:${port}`))
    expect([fault.fault, fault.exitCode]).toEqual(['Unreachable', 6])
    expect(fault.message).toBe(`http://${host}:${port} refuses connections (ECONNREFUSED)`)
    expect(fault.details.hints?.at(-1)).toContain(`svc serve --port ${port}`)
  }
})

test('a name that cannot exist is reported as one that does not resolve', async () => {
  // Longer than DNS allows: no query is sent.
  const name = `${'x'.repeat(64)}.invalid`
  const fault = await faultOf(healthAt(`https://${name}`))
  expect([fault.fault, fault.exitCode]).toEqual(['Unreachable', 6])
  expect(fault.message).toContain(`${name} does not resolve`)
})

test('failures leave no socket behind', async () => {
  const before = await settled('')
  for (const behaviour of [reset, replies(''), cutAfter(40, whole)]) {
    await using server = await peer(behaviour)
    await faultOf(healthAt(server.port))
  }
  expect(await settled(before)).toBe(before)
})
