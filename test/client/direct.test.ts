import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readAddress } from '../../src/core/client/address.ts'
import { exchangeDirectly, isDirect } from '../../src/core/client/direct.ts'
import { type ClientAsk, exchange } from '../../src/core/client/exchange.ts'
import { farMs } from '../support/suite/until.ts'

/** The answer of the server: the pieces that it writes one after another, and whether it then closes. */
type Script = {
  readonly pieces: readonly (string | Buffer)[]
  readonly closes?: boolean
  readonly resets?: boolean
  /** The rest never comes: the deadline ends it. */
  readonly stalls?: boolean
}

let script: Script = { pieces: [] }
const requests: string[] = []
const open = new Set<Socket>()
const server = createServer(async (socket) => {
  open.add(socket)
  socket.on('error', () => {}).setNoDelay(true)
  socket.on('close', () => open.delete(socket))
  const { pieces, closes = false, resets = false } = script
  const [request] = (await once(socket, 'data')) as [Buffer]
  requests.push(request.toString('latin1'))
  // A second request on this connection, or a request that is sent once more.
  socket.on('data', (more: Buffer) => requests.push(more.toString('latin1')))
  for (const piece of pieces) {
    socket.write(piece)
    if (pieces.length > 1) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  if (resets) socket.resetAndDestroy()
  else if (closes) socket.end()
})
beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  for (const socket of open) socket.destroy()
  server.close()
})

const ask: ClientAsk = {
  method: 'GET',
  path: '/ops/healthcheck?ServerType=Sql',
  headers: { Accept: 'application/json', 'User-Agent': 'svc/1', Authorization: 'Bearer t' },
  body: undefined,
}
const port = (): number => (server.address() as { port: number }).port
const address = () => readAddress(`http://127.0.0.1:${port()}/ops`, false)

type Outcome = {
  readonly stage: string
  readonly received?: unknown
  readonly code?: unknown
  readonly message?: string
}
async function outcomeOf(how: 'directly' | 'over node:http', answer: Script): Promise<Outcome> {
  script = answer
  const progress = { stage: 'connecting' as const }
  const deadline = AbortSignal.timeout(answer.stalls ? 1_000 : farMs)
  const sent =
    how === 'directly'
      ? exchangeDirectly(address(), ask, deadline, progress)
      : exchange(address(), ask, { proxy: undefined, tls: undefined }, deadline, progress)
  try {
    const { bytes, headers, ...rest } = await sent
    return { stage: progress.stage, received: { ...rest, headers: { ...headers }, body: bytes.toString('latin1') } }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return { stage: progress.stage, code, message }
  }
}

const head = (...lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n`
const ok = 'HTTP/1.1 200 OK'
const answers: readonly (readonly [string, Script])[] = [
  ['whole', { pieces: [`${head(ok, 'Content-Type: text/plain', 'Content-Length: 4')}fine`] }],
  ['without a body', { pieces: [head(ok, 'Content-Length: 0')] }],
  ['a refusal', { pieces: [`${head('HTTP/1.1 503 Service Unavailable', 'Content-Length: 2')}no`] }],
  ['a redirect', { pieces: [head('HTTP/1.1 302 Found', 'Location: /there', 'Content-Length: 0')] }],
  ['of an unknown status', { pieces: [`${head('HTTP/1.1 299 Odd', 'Content-Length: 1')}x`] }],
  ['a body in a piece of its own', { pieces: [head(ok, 'Content-Length: 4'), 'fine'] }],
  ['a body byte by byte', { pieces: [head(ok, 'Content-Length: 4'), 'f', 'i', 'n', 'e'] }],
  ['a head in two pieces', { pieces: ['HTTP/1.1 20', `0 OK\r\nContent-Length: 4\r\n\r\nfine`] }],
  ['byte by byte', { pieces: [...`${head(ok, 'Content-Length: 2')}ok`] }],
  ['chunked', { pieces: [`${head(ok, 'Transfer-Encoding: chunked')}4\r\nfine\r\n0\r\n\r\n`] }],
  ['chunked, in pieces', { pieces: [head(ok, 'Transfer-Encoding: chunked'), '4\r\nfi', 'ne\r\n', '0\r\n\r\n'] }],
  ['chunked and of a length', { pieces: [`${head(ok, 'Transfer-Encoding: chunked', 'Content-Length: 4')}fine`] }],
  ['until it closes', { pieces: [`${head(ok, 'Connection: close')}fine`], closes: true }],
  ['of HTTP/1.0', { pieces: [`${head('HTTP/1.0 200 OK', 'Content-Length: 4')}fine`] }],
  ['of HTTP/2.0', { pieces: [`${head('HTTP/2.0 200 OK', 'Content-Length: 4')}fine`] }],
  ['without a reason', { pieces: [`${head('HTTP/1.1 200 ', 'Content-Length: 4')}fine`] }],
  ['after an early hint', { pieces: [`${head('HTTP/1.1 103 Early Hints')}${head(ok, 'Content-Length: 4')}fine`] }],
  ['204', { pieces: [head('HTTP/1.1 204 No Content', 'Content-Length: 0')] }],
  ['205', { pieces: [head('HTTP/1.1 205 Reset Content', 'Content-Length: 0')] }],
  ['304 of a length', { pieces: [head('HTTP/1.1 304 Not Modified', 'Content-Length: 4')] }],
  [
    'a change of protocol',
    { pieces: [head('HTTP/1.1 101 Switching', 'Upgrade: x', 'Connection: upgrade')], stalls: true },
  ],
  ['two lengths', { pieces: [`${head(ok, 'Content-Length: 4', 'Content-Length: 4')}fine`] }],
  ['two lengths that differ', { pieces: [`${head(ok, 'Content-Length: 4', 'content-length: 5')}fine!`] }],
  ['a length with a sign', { pieces: [`${head(ok, 'Content-Length: +4')}fine`] }],
  ['a length below nothing', { pieces: [`${head(ok, 'Content-Length: -4')}fine`] }],
  ['a length in hexadecimal', { pieces: [`${head(ok, 'Content-Length: 0x4')}fine`] }],
  ['a list of lengths', { pieces: [`${head(ok, 'Content-Length: 4, 4')}fine`] }],
  ['an empty length', { pieces: [`${head(ok, 'Content-Length: ')}fine`], closes: true }],
  ['a length with a zero before it', { pieces: [`${head(ok, 'Content-Length: 04')}fine`] }],
  ['a length beyond all numbers', { pieces: [`${head(ok, `Content-Length: 1${'0'.repeat(30)}`)}fine`] }],
  ['a length beyond what is read', { pieces: [`${head(ok, 'Content-Length: 9000000')}fine`] }],
  ['longer than its length', { pieces: [`${head(ok, 'Content-Length: 4')}fine and more`] }],
  ['longer than its length, in pieces', { pieces: [`${head(ok, 'Content-Length: 4')}fi`, 'ne and more'] }],
  ['of a megabyte', { pieces: [`${head(ok, 'Content-Length: 1000000')}${'x'.repeat(1_000_000)}`] }],
  ['two answers', { pieces: [`${head(ok, 'Content-Length: 4')}fine${head(ok, 'Content-Length: 2')}no`] }],
  ['of which the last byte lacks', { pieces: [`${head(ok, 'Content-Length: 4')}fin`], closes: true }],
  ['of which the body lacks', { pieces: [head(ok, 'Content-Length: 4')], closes: true }],
  ['of which the head lacks its end', { pieces: [`${ok}\r\nContent-Length: 4\r\n`], closes: true }],
  ['reset in its body', { pieces: [`${head(ok, 'Content-Length: 4')}fi`, ''], resets: true }],
  ['reset before it', { pieces: [], resets: true }],
  ['none at all', { pieces: [], closes: true }],
  ['not HTTP', { pieces: ['220 mail.example.com ESMTP\r\n'] }],
  ['a page without a head', { pieces: ['<html>\r\n\r\n</html>'] }],
  ['lines that end in LF only', { pieces: [`${ok}\nContent-Length: 4\n\nfine`] }],
  ['one line that ends in LF only', { pieces: [`${ok}\r\nA: b\nContent-Length: 4\r\n\r\nfine`] }],
  ['a folded header', { pieces: [`${head(ok, 'A: b', ' c', 'Content-Length: 4')}fine`] }],
  ['a blank before a colon', { pieces: [`${head(ok, 'Content-Length : 4')}fine`] }],
  ['a header without a blank', { pieces: [`${head(ok, 'A:b', 'Content-Length:4')}fine`] }],
  ['blanks about a value', { pieces: [`${head(ok, 'A:  b  ', 'Content-Length: 4  ')}fine`] }],
  ['a header without a name', { pieces: [`${head(ok, ': b', 'Content-Length: 4')}fine`] }],
  ['a header without a colon', { pieces: [`${head(ok, 'A b', 'Content-Length: 4')}fine`] }],
  ['an empty header', { pieces: [`${head(ok, 'A: ', 'Content-Length: 4')}fine`] }],
  ['a header twice', { pieces: [`${head(ok, 'A: b', 'a: c', 'Content-Length: 4')}fine`] }],
  ['Age twice', { pieces: [`${head(ok, 'Age: 1', 'Age: 2', 'Content-Length: 4')}fine`] }],
  ['cookies', { pieces: [`${head(ok, 'Set-Cookie: a=b', 'Set-Cookie: c=d', 'Content-Length: 4')}fine`] }],
  ['a NUL in a header', { pieces: [`${head(ok, 'A: b\0c', 'Content-Length: 4')}fine`] }],
  ['a CR in a header', { pieces: [`${head(ok, 'A: b\rc', 'Content-Length: 4')}fine`] }],
  ['Latin-1 in a header', { pieces: [Buffer.from(`${head(ok, 'A: \xe9', 'Content-Length: 4')}fine`, 'latin1')] }],
  ['a tab in a header', { pieces: [`${head(ok, 'A: b\tc', 'Content-Length: 4')}fine`] }],
  ['many headers', { pieces: [`${head(ok, ...Array(200).fill('A: b'), 'Content-Length: 4')}fine`] }],
  ['a head of 20 KiB', { pieces: [`${head(ok, `A: ${'b'.repeat(20_000)}`, 'Content-Length: 4')}fine`] }],
  ['a head of 10 KiB', { pieces: [`${head(ok, `A: ${'b'.repeat(10_000)}`, 'Content-Length: 4')}fine`] }],
  ['an empty line before it', { pieces: [`\r\n${head(ok, 'Content-Length: 4')}fine`] }],
  ['UTF-8 in its body', { pieces: [Buffer.from(`${head(ok, 'Content-Length: 2')}é`)] }],
  ['half a head, and then nothing', { pieces: [`${ok}\r\nContent-Le`], stalls: true }],
  ['half a body, and then nothing', { pieces: [`${head(ok, 'Content-Length: 4')}fi`], stalls: true }],
]

test.each(answers)('node:http reads the same answer when it arrives %s', async (_, answer) => {
  const expected = await outcomeOf('over node:http', answer)
  requests.length = 0
  expect(await outcomeOf('directly', answer)).toEqual(expected)
  expect(requests, 'sent once').toHaveLength(1)
})

test('a request equals that of node:http byte for byte', async () => {
  requests.length = 0
  const answer: Script = { pieces: [head(ok, 'Content-Length: 0')] }
  await outcomeOf('over node:http', answer)
  await outcomeOf('directly', answer)
  expect(requests[0]).toContain('Host: 127.0.0.1:')
  expect(requests[1]).toBe(requests[0])
})

test.each([
  ['a POST', { method: 'POST' }],
  ['a body', { body: Buffer.from('{}') }],
  ['a line break in a header', { headers: { Authorization: 'Bearer a\r\nX-Admin: 1' } }],
  ['Latin-1 in a header', { headers: { Authorization: 'Bearer \xe9' } }],
  ['a blank in the path', { path: '/a b' }],
  ['a line break in the path', { path: '/a\r\nX-Admin: 1' }],
  ['a path without a slash', { path: 'http://elsewhere/' }],
])('a request with %s is left to node:http', (_, more) => {
  expect(isDirect(address(), ask)).toBe(true)
  expect(isDirect(address(), { ...ask, ...more })).toBe(false)
})

test('a request over TLS is left to node:https', () => {
  expect(isDirect(readAddress('https://127.0.0.1', false), ask)).toBe(false)
})
