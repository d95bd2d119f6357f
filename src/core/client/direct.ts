import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { isLoopback } from '../loopback.ts'
import type { Address } from './address.ts'
import {
  BoundedBuffer,
  type ClientAsk,
  cutShort,
  exchange,
  leadsElsewhere,
  maxAnswer,
  type Progress,
  perAddressMs,
  type Received,
} from './exchange.ts'

/**
 * Loading node:http and making a request with it costs a process 6 ms, a fifth of what Node itself takes to start. Most
 * requests are a GET over plain http without a proxy, most answers are a head and as many bytes as it declares: those
 * go over a socket. This reader takes one form of answer only, and guesses nothing. In doubt node:http reads
 * the answer from its first byte: chunked bodies, unusual heads and everything that is not HTTP are its concern.
 */

/** Bytes of an answer's head; Node itself takes 16 KiB. */
const maxHead = 8 * 1024
const maxHeaders = 64
const headEnd = '\r\n\r\n'

const target = /^\/[\x21-\x7e]*$/
const headerValue = /^[\x20-\x7e]*$/
const statusLine = /^HTTP\/1\.1 ([2-5]\d\d) ([\x20-\x7e]*)$/
const headerLine = /^([!#$%&'*+.^_`|~\dA-Za-z-]+): ((?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?)$/
const contentLength = /^(?:0|[1-9]\d{0,7})$/
/** What ends a body in another way, what node:http makes no text of, and answers that change the protocol. */
const unusual: ReadonlySet<string> = new Set(['transfer-encoding', 'set-cookie', 'upgrade', 'trailer'])
/** Statuses without a body, whatever their headers declare. */
const bodiless: ReadonlySet<string> = new Set(['204', '205', '304'])

/** Whether `exchangeDirectly` can send this. What it cannot, node:http sends or refuses. */
export const isDirect = (address: Address, { method, path, headers, body }: ClientAsk): boolean =>
  !address.secure &&
  method === 'GET' &&
  body === undefined &&
  target.test(path) &&
  Object.values(headers).every((value) => headerValue.test(value))

/** As `exchange`, for a request that `isDirect` accepts, without a proxy. */
export function exchangeDirectly(
  address: Address,
  ask: ClientAsk,
  signal: AbortSignal,
  progress: Progress,
): Promise<Received> {
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  const { promise, resolve, reject } = Promise.withResolvers<Received>()
  const { connect, isIP } = process.getBuiltinModule('node:net')
  const { host, port } = address
  progress.stage = isIP(host) === 0 ? 'resolving' : 'connecting'
  const socket = connect({ host, port, autoSelectFamilyAttemptTimeout: perAddressMs })
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })

  const arrived = new BoundedBuffer(Number.NaN)
  let head: Head | undefined
  const handOver = (last: Buffer | undefined): void => {
    socket.removeAllListeners('data').removeAllListeners('end')
    const wire = replay(socket, arrived.bytes(), last)
    exchange(address, ask, { proxy: undefined, tls: undefined, sent: wire }, signal, progress).then(resolve, reject)
  }
  socket.once('lookup', () => {
    progress.stage = 'connecting'
  })
  socket.once('connect', () => {
    progress.stage = 'asking'
    const remote = socket.remoteAddress ?? ''
    if (address.loopbackOnly && !isLoopback(remote)) reject(leadsElsewhere(address, remote))
    else socket.write(requestText(address, ask), 'latin1')
  })
  socket.on('data', (chunk: Buffer) => {
    head ??= readHead(chunk)
    if (!head || arrived.length + chunk.length > head.end + head.length) return handOver(chunk)
    progress.stage = 'reading'
    arrived.add(chunk)
    if (arrived.length < head.end + head.length) return
    const { status, reason, headers, rawHeaders } = head
    resolve({ status, reason, headers, rawHeaders, bytes: arrived.bytes().subarray(head.end) })
  })
  socket.once('end', () => {
    if (head) reject(cutShort(arrived.length - head.end))
    else handOver(undefined)
  })
  socket.once('error', reject)

  return promise.finally(() => {
    signal.removeEventListener('abort', abort)
    // What is destroyed may still have something to say, which nobody waits for.
    socket.on('error', () => {})
    socket.destroy()
  })
}

/** As node:http writes it. */
function requestText({ host, port }: Address, { path, headers }: ClientAsk): string {
  const name = host.includes(':') ? `[${host}]` : host
  const lines = Object.entries({
    ...headers,
    Host: port === 80 ? name : `${name}:${port}`,
    Connection: 'close',
  }).map(([header, value]) => `${header}: ${value}\r\n`)
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

type Head = Omit<Received, 'bytes'> & {
  /** Bytes of the head, with the empty line. */
  readonly end: number
  /** Bytes of the body. */
  readonly length: number
}

/**
 * The head of an answer, where it came in one piece and node:http would read the very same. Undefined for everything
 * else, also for half a head: whether the rest could make it good is for node:http to say, at once and not in the end.
 */
function readHead(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf(headEnd)
  if (end === -1 || end > maxHead) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const [, status = '', reason = ''] = statusLine.exec(first) ?? []
  if (status === '' || bodiless.has(status) || lines.length > maxHeaders) return undefined
  // Without a prototype: no name has a meaning of its own.
  const headers: Record<string, string> = Object.create(null)
  const rawHeaders: string[] = []
  for (const line of lines) {
    const [, written = '', value = ''] = headerLine.exec(line) ?? []
    const name = written.toLowerCase()
    if (name === '' || unusual.has(name) || Object.hasOwn(headers, name)) return undefined
    headers[name] = value
    rawHeaders.push(written, value)
  }
  const declared = headers['content-length'] ?? ''
  const length = Number(declared)
  if (!contentLength.test(declared) || end + headEnd.length + length > maxAnswer) return undefined
  return { status: Number(status), reason, headers, rawHeaders, end: end + headEnd.length, length }
}

/**
 * A connection for node:http, which reads from it what has arrived, its last piece (undefined for the end), and what
 * follows. What it writes goes nowhere: the request is on its way already, and must not be sent a second time.
 */
function replay(socket: Socket, arrived: Buffer, last: Buffer | undefined): Duplex {
  const { Duplex } = process.getBuiltinModule('node:stream')
  const wire = new Duplex({
    read: () => socket.resume(),
    write: (_chunk, _encoding, done) => done(),
  })
  if (arrived.length > 0) wire.push(arrived)
  wire.push(last ?? null)
  socket.on('data', (chunk) => {
    if (!wire.push(chunk)) socket.pause()
  })
  socket.once('end', () => wire.push(null))
  socket.on('error', (error) => wire.destroy(error))
  return wire
}
