import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { farMs } from '../suite/until.ts'

/** The behaviour of a peer on a connection. */
export type Behaviour = (socket: Socket) => void

export type Peer = {
  readonly port: number
  /** All bytes that it received, over all connections. */
  readonly input: () => string
  /** The number of connections so far, and of those that are open. */
  readonly connections: () => number
  readonly open: () => number
  readonly close: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export type PeerOptions = {
  readonly host?: string
  readonly port?: number
  readonly tls?: {
    readonly key: string
    readonly cert: string
    readonly minVersion?: 'TLSv1'
    readonly maxVersion?: 'TLSv1.1' | 'TLSv1.2'
    readonly ALPNProtocols?: string[]
    readonly ca?: string
    readonly requestCert?: boolean
    readonly rejectUnauthorized?: boolean
  }
}

/** A real server on loopback with a configured behaviour, correct or faulty. */
export async function peer(behave: Behaviour, options: PeerOptions = {}): Promise<Peer> {
  const sockets = new Set<Socket>()
  let input = ''
  let connections = 0
  const handle = (socket: Socket): void => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      input += chunk.toString('latin1')
    })
    behave(socket)
  }
  const server = options.tls
    ? createTlsServer({ ...options.tls, ...(options.tls.minVersion ? { ciphers: 'DEFAULT@SECLEVEL=0' } : {}) }, handle)
    : createServer(handle)
  server.on('tlsClientError', () => {})
  // Also those that never get through their TLS handshake.
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    if (!server.listening) return
    server.close()
    await once(server, 'close')
  }
  return {
    port: (server.address() as AddressInfo).port,
    input: () => input,
    connections: () => connections,
    open: () => sockets.size,
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** A port of loopback on which nothing listens. */
export async function refusedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Accepts, reads, and never says anything. */
export const blackHole: Behaviour = () => {}

/** Says something as soon as it is connected, after `ms`. */
export const speaks =
  (text: string | Buffer, ms = 0): Behaviour =>
  (socket) =>
    later(socket, ms, () => socket.write(text))

/** Waits until it is spoken to, then answers and hangs up. `answer` may depend on what was said. */
export const replies =
  (answer: string | Buffer | ((asked: string) => string | Buffer), ms = 0): Behaviour =>
  (socket) =>
    void socket.once('data', (request) =>
      later(socket, ms, () => socket.end(typeof answer === 'function' ? answer(request.toString('latin1')) : answer)),
    )

/** Answers as `replies`, but only the first `bytes` of it. */
export const cutAfter = (bytes: number, answer: string): Behaviour => replies(answer.slice(0, bytes))

/** Resets the connection as soon as it is spoken to. */
export const reset: Behaviour = (socket) => void socket.once('data', () => socket.resetAndDestroy())

/** Echoes its input, and keeps the connection open. */
/** Greets and answers as an IMAP server, and repeats everything else. */
export const talk: Behaviour = (socket) => {
  socket.write('* OK here\r\n')
  socket.on('data', (data) => {
    const [tag] = /^a\d(?= )/.exec(data.toString()) ?? []
    socket.write(tag === undefined ? data : `${tag} OK\r\n`)
  })
}

/** The messages that `talk` gets in the cases of costs. */
export const messagesTo = (sent: string): number => sent.match(/PING|a\d [A-Z]+/g)?.length ?? 0

export const echo: Behaviour = (socket) => void socket.on('data', (text) => socket.write(text))

/** Says `head` and then the same chunk for ever, as fast as it is read. */
export const endless =
  (head: string, chunk = 'x'.repeat(4096)): Behaviour =>
  (socket) =>
    void socket.once('data', () => {
      socket.write(head)
      const more = (): void => {
        if (socket.destroyed) return
        // Never in one breath: the peer under test lives in the same process.
        if (socket.write(chunk)) setImmediate(more)
        else socket.once('drain', more)
      }
      more()
    })

/** An HTTP answer as text, with the length that belongs to its body. */
export function http(status: number, body = '', headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ 'Content-Length': String(Buffer.byteLength(body)), ...headers })
  return `HTTP/1.1 ${status} Said\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

/** Headers of `bytes` bytes before an empty body. */
export const hugeHeaders = (bytes: number): string => http(200, '', { 'X-Huge': 'h'.repeat(bytes) })

/** Redirects from `/a` to `/b` and from anywhere else to `/a`. */
export const redirectLoop: Behaviour = replies((request) =>
  http(302, '', { Location: request.startsWith('GET /a') ? '/b?token=abcd' : '/a' }),
)

/** Sequences that would clear a terminal, set its title, colour it and ring. */
export const escapeSequences = '\x1b[2J\x1b]0;owned\x07\x1b[31mred\x1b[0m\x07\x9b1m\x00\u202egnp'

function later(socket: Socket, ms: number, act: () => void): void {
  if (ms === 0) {
    act()
    return
  }
  const timer = setTimeout(act, ms)
  socket.on('close', () => clearTimeout(timer))
}

/** The open sockets and look-ups of this process, its own peers included, e.g. `TCPSocketWrap 2`. */
function resources(): string {
  const counts = new Map<string, number>()
  for (const kind of process
    .getActiveResourcesInfo()
    .filter((name) => /TCP|TLS|UDP|QUERY|GETADDR|Connect/i.test(name))) {
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return [...counts]
    .map(([kind, count]) => `${kind} ${count}`)
    .sort()
    .join(', ')
}

/** Resolves with the resources as soon as they are as `expected`, or after `farMs` as they are then. */
export async function settled(expected: string): Promise<string> {
  const ends = performance.now() + farMs
  while (performance.now() < ends && resources() !== expected) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return resources()
}
