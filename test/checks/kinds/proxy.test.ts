import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import { runKind, secret } from '../../support/engine/run-kind.ts'

/** How a simulated proxy reacts to the bytes of a client. */
type Act = (socket: Socket, received: Buffer) => void

async function withProxy(scheme: 'http' | 'socks5', act: Act, settings = {}, timeoutMs?: number) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => act(socket, bytes))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const proxy = `${scheme}://127.0.0.1:${port}`
  const options = timeoutMs === undefined ? {} : { timeoutMs }
  try {
    const results = await runKind(tcp, { host: 'shop.test', port: 443, proxy, ...settings }, 'Standard', options)
    return results.map(({ check, status, fault, notChecked, message }) => ({
      check,
      as: notChecked ?? (status === 'failed' ? fault : status),
      message: message.replaceAll(`127.0.0.1:${port}`, 'PROXY'),
    }))
  } finally {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
}

const answers =
  (line: string, headers = ''): Act =>
  (socket) =>
    socket.end(`HTTP/1.1 ${line}\r\n${headers}Content-Length: 0\r\n\r\n`)

const peer = 'shop.test:443 does not accept connections: the proxy PROXY'
const unreached = 'so that shop.test:443 was not reached'

test.each([
  ['502 Bad Gateway', '', 'refused', `${peer} answered 502 Bad Gateway to CONNECT`],
  ['504 Gateway Timeout', '', 'refused', `${peer} answered 504 Gateway Timeout to CONNECT`],
  ['500 Unable to connect', '', 'refused', `${peer} answered 500 Unable to connect to CONNECT`],
  ['503 Down', 'X-Squid-Error: ERR_CONNECT_FAIL 111\r\n', 'refused', `${peer} answered 503 Down to CONNECT`],
  ['503 Down', 'Proxy-Status: p; error=dns_error\r\n', 'refused', `${peer} answered 503 Down to CONNECT`],
  ['503 Busy', '', 'route', `not checked: the proxy PROXY answered 503 Busy to CONNECT, ${unreached}`],
  ['403 Forbidden', '', 'route', `not checked: the proxy PROXY answered 403 Forbidden to CONNECT, ${unreached}`],
  [
    '407 Who',
    '',
    'route',
    `not checked: the proxy PROXY demands a sign-in (proxyUsername, proxyPassword), ${unreached}`,
  ],
])('H84 a simulated proxy that answers %s %s is judged by whether it tried', async (line, headers, as, message) => {
  expect(await withProxy('http', answers(line, headers))).toEqual([{ check: 'connect', as, message }])
})

const socksReply =
  (code: number): Act =>
  (socket, bytes) =>
    socket.write(Buffer.from(bytes.length === 3 ? [5, 0] : [5, code, 0, 1, 0, 0, 0, 0, 0, 0]))

test.each([
  [1, 'route', `not checked: the proxy PROXY reports a failure without a cause, ${unreached}`],
  [2, 'route', `not checked: the proxy PROXY does not allow this connection, ${unreached}`],
  [3, 'refused', `${peer} has no route to its network`],
  [4, 'refused', `${peer} has no route to it`],
  [5, 'refused', `${peer} was refused`],
  [6, 'refused', `${peer} got no answer from it`],
  [7, 'route', `not checked: the proxy PROXY answered 7, ${unreached}`],
])('H84 a simulated SOCKS proxy that replies %i is judged by whether it tried', async (code, as, message) => {
  expect(await withProxy('socks5', socksReply(code))).toEqual([{ check: 'connect', as, message }])
})

test.each([
  ['http', (socket) => socket.end('220 mail ready\r\n'), 'does not speak HTTP'],
  ['http', (socket) => socket.destroy(), 'closed the connection without an answer'],
  ['socks5', (socket) => socket.end('HTTP/1.1 400 Bad\r\n\r\n'), 'does not speak SOCKS 5'],
  ['socks5', (socket) => socket.end(Buffer.from([5])), 'closed the connection without an answer'],
] as const satisfies readonly (readonly ['http' | 'socks5', Act, string])[])(
  'H84 a simulated server that is no proxy is named, and not the server behind it: %s',
  async (scheme, act, why) => {
    const message = `not checked: the proxy PROXY ${why}, ${unreached}`
    expect(await withProxy(scheme, act)).toEqual([{ check: 'connect', as: 'route', message }])
  },
)

test('H84 a simulated proxy that accepts and stays silent: the fault names the proxy and the server', async () => {
  expect(await withProxy('http', () => {}, {}, 300)).toEqual([
    { check: 'connect', as: 'timeout', message: 'the proxy PROXY has not connected to shop.test:443 within 0.3 s' },
  ])
})

test('H84 what a server sends at once arrives behind a simulated proxy, which sends it with its own answer', async () => {
  const greeting = (socket: Socket): unknown => socket.write('HTTP/1.1 200 OK\r\n\r\n220 mail ready\r\n')
  const results = await withProxy('http', greeting, { expect: '220 mail' })
  expect(results.map(({ check, as }) => [check, as])).toEqual([
    ['connect', 'ok'],
    ['answer', 'ok'],
  ])
})

test('H84 a simulated SOCKS proxy gets the name and the sign-in, and passes on what follows', async () => {
  const received: string[] = []
  const act: Act = (socket, bytes) => {
    received.push(bytes.toString('latin1'))
    const replies = [[5, 2], [1, 0], [5, 0, 0, 3, 2, 97, 98, 0, 80], [...Buffer.from('hello')]]
    socket.write(Buffer.from(replies[received.length - 1] ?? []))
    // The server speaks first, in the packet of the reply.
    if (received.length === 3) socket.write('hello')
  }
  const account = { proxyUsername: 'svc', proxyPassword: secret('horse') }
  const results = await withProxy('socks5', act, { expect: 'hello', ...account })
  expect(results.map(({ as }) => as)).toEqual(['ok', 'ok'])
  expect(received).toEqual(['\x05\x02\x00\x02', '\x01\x03svc\x05horse', '\x05\x01\x00\x03\x09shop.test\x01\xbb'])
})
