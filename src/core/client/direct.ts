import type * as Net from 'node:net'
import type { Duplex } from 'node:stream'
import { isLoopback } from '../base/loopback.ts'
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
 * Loading node:http and making a request with it costs a process 6 ms, a fifth of Node's own start. Most requests are
 * a GET over plain http without a proxy, and most answers are a head and as many bytes as it declares: those use a
 * plain socket. This reader accepts one form of answer and never guesses. In doubt node:http reads the answer from its
 * first byte: it handles chunked bodies, unusual heads and everything that is not HTTP.
 */

/** The maximum size of an answer's head in bytes. Node itself accepts 16 KiB. */
const maxHead = 8 * 1024
const maxHeaders = 64
const headEnd = '\r\n\r\n'

const target = /^\/[\x21-\x7e]*$/
const headerValue = /^[\x20-\x7e]*$/
const statusLine = /^HTTP\/1\.1 ([2-5]\d\d) ([\x20-\x7e]*)$/
const headerLine = /^([!#$%&'*+.^_`|~\dA-Za-z-]+): ((?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?)$/
const contentLength = /^(?:0|[1-9]\d{0,7})$/
/** Headers of other body framings, headers that node:http does not return as text, and protocol upgrades. */
const unusual: ReadonlySet<string> = new Set(['transfer-encoding', 'set-cookie', 'upgrade', 'trailer'])
/** Statuses that never have a body, whatever their headers declare. */
const bodiless: ReadonlySet<string> = new Set(['204', '205', '304'])

/** Whether `exchangeDirectly` can send this request. Otherwise node:http sends or refuses it. */
export const isDirect = (address: Address, { method, path, headers, body }: ClientAsk): boolean =>
  !address.secure &&
  method === 'GET' &&
  body === undefined &&
  target.test(path) &&
  Object.values(headers).every((value) => headerValue.test(value))

/** Kept, because each call of `getBuiltinModule` reads all names that the module exports. */
let net: typeof Net | undefined
/** Where each connection reads: one for all, because each piece is handled before the next is read. */
let reading: Buffer | undefined

/** Like `exchange`, for a request that `isDirect` accepts, without a proxy. */
export function exchangeDirectly(
  address: Address,
  ask: ClientAsk,
  signal: AbortSignal,
  progress: Progress,
): Promise<Received> {
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  const { promise, resolve, reject } = Promise.withResolvers<Received>()
  net ??= process.getBuiltinModule('node:net')
  const { host, port } = address
  const isName = net.isIP(host) === 0
  progress.stage = isName ? 'resolving' : 'connecting'
  let receive = (chunk: Buffer): boolean => {
    progress.onAnswer?.()
    head ??= readHead(chunk)
    if (!head || arrived.length + chunk.length > head.end + head.length) {
      handOver(Buffer.from(chunk))
      return true
    }
    progress.stage = 'reading'
    arrived.add(chunk)
    if (arrived.length === head.end + head.length) {
      const { status, reason, headers, rawHeaders } = head
      resolve({ status, reason, headers, rawHeaders, bytes: arrived.bytes().subarray(head.end) })
    }
    return true
  }
  reading ??= Buffer.allocUnsafeSlow(65_536)
  const socket = net.connect({
    host,
    port,
    autoSelectFamilyAttemptTimeout: perAddressMs,
    // Without a stream's own buffer for each piece.
    onread: {
      buffer: reading,
      callback: (length, buffer) => receive((buffer as Buffer).subarray(0, length)),
    },
  })
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })

  const arrived = new BoundedBuffer(Number.NaN)
  let head: Head | undefined
  const handOver = (last: Buffer | undefined): void => {
    socket.removeAllListeners('end')
    const wire = replay(socket, arrived.bytes(), last)
    receive = (chunk) => wire.push(Buffer.from(chunk))
    exchange(address, ask, { proxy: undefined, tls: undefined, sent: wire }, signal, progress).then(resolve, reject)
  }
  socket.once('lookup', () => {
    progress.stage = 'connecting'
  })
  socket.once('connect', () => {
    progress.stage = 'asking'
    const remote = isName ? (socket.remoteAddress ?? '') : host
    if (address.loopbackOnly && !isLoopback(remote)) reject(leadsElsewhere(address, remote))
    else socket.write(requestText(address, ask), 'latin1', () => progress.onSent?.())
  })
  socket.once('end', () => {
    if (head) reject(cutShort(arrived.length - head.end))
    else handOver(undefined)
  })
  // A destroyed socket may still emit an error, which then changes nothing.
  socket.on('error', reject)

  return promise.finally(() => {
    signal.removeEventListener('abort', abort)
    socket.destroy()
  })
}

/** The request as node:http would write it. */
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
  /** Bytes of the head, including the empty line. */
  readonly end: number
  /** Bytes of the body. */
  readonly length: number
}

/**
 * The head of an answer that arrived in one piece and that node:http would read identically. Undefined for everything
 * else, including an incomplete head, which goes to node:http at once.
 */
function readHead(bytes: Buffer): Head | undefined {
  const end = bytes.indexOf(headEnd)
  if (end === -1 || end > maxHead) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const [, status = '', reason = ''] = statusLine.exec(first) ?? []
  if (status === '' || bodiless.has(status) || lines.length > maxHeaders) return undefined
  // Without a prototype, so that no header name has a special meaning.
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
 * A connection for node:http that replays what has arrived, ending with `last` (undefined for the end of the stream),
 * and then what the caller pushes, up to the end of the stream. It discards what node:http writes: the request is already sent and must not be sent twice.
 */
function replay(socket: Net.Socket, arrived: Buffer, last: Buffer | undefined): Duplex {
  const { Duplex } = process.getBuiltinModule('node:stream')
  const wire = new Duplex({
    read: () => socket.resume(),
    write: (_chunk, _encoding, done) => done(),
  })
  if (arrived.length > 0) wire.push(arrived)
  wire.push(last ?? null)
  socket.once('end', () => wire.push(null))
  socket.on('error', (error) => wire.destroy(error))
  return wire
}
