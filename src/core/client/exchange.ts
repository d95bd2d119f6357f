import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault } from '../errors.ts'
import { isLoopback } from '../loopback.ts'
import type { Address } from './address.ts'
import type { ProxyServer } from './proxy.ts'
import type { TlsRules } from './trust.ts'

/** Bytes: no health answer comes near it. */
export const maxAnswer = 8 * 1024 * 1024
const firstRoom = 16 * 1024

/**
 * An answer as it arrives. The pieces are copied together: a hostile server may send one byte at a time, and kept
 * apart each would cost a hundred.
 */
export class BoundedBuffer {
  #room: Buffer
  #length = 0
  #tooLong: boolean

  /** The length that the server declared; NaN for none. */
  constructor(declared: number) {
    this.#tooLong = declared > maxAnswer
    this.#room = Buffer.allocUnsafe(declared > 0 && declared <= maxAnswer ? declared : firstRoom)
  }

  get length(): number {
    return this.#length
  }

  /** True when there is more than is read; nothing is added from then on. */
  get tooLong(): boolean {
    return this.#tooLong
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length
    if (this.#tooLong || length > maxAnswer) {
      this.#tooLong = true
      return
    }
    if (length > this.#room.length) {
      const wider = Buffer.allocUnsafe(Math.min(maxAnswer, Math.max(length, this.#room.length * 2)))
      this.#room.copy(wider, 0, 0, this.#length)
      this.#room = wider
    }
    piece.copy(this.#room, this.#length)
    this.#length = length
  }

  bytes(): Buffer {
    return this.#room.subarray(0, this.#length)
  }
}

/** How far an exchange has come: what a deadline and a broken connection are told with. */
export type Stage = 'resolving' | 'connecting' | 'tunnel' | 'handshake' | 'asking' | 'reading'
export type Progress = { stage: Stage }

export type ClientAsk = {
  readonly method: string
  /** With the base URL's prefix and the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
}

export type Received = {
  readonly status: number
  /** The server's words for it, as `Not Found`; empty when it has none. */
  readonly reason: string
  readonly headers: IncomingHttpHeaders
  /** The header lines as they came: names and values in turn. */
  readonly rawHeaders: readonly string[]
  readonly bytes: Buffer
}

/**
 * How long one of a name's addresses may take before the next is tried. Node gives up on an address after 250 ms, which
 * a satellite link does not make.
 */
export const perAddressMs = 1_000

/**
 * One request and its whole answer, on a connection of its own that ends with it. Follows nothing and judges nothing.
 * Rejects with what Node says of a connection that fails, with the signal's reason, and with `Fault` UnreadableAnswer
 * for an answer that is cut short or too long (K7).
 */
export function exchange(
  address: Address,
  ask: ClientAsk,
  means: {
    readonly proxy: ProxyServer | undefined
    readonly tls: TlsRules | undefined
    /** A connection over which the request has gone already, with the answer from its first byte. */
    readonly sent?: Duplex
  },
  signal: AbortSignal,
  progress: Progress,
): Promise<Received> {
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  const { promise, resolve, reject } = Promise.withResolvers<Received>()
  const { Agent, request: open } = process.getBuiltinModule(address.secure ? 'node:https' : 'node:http')
  const agent = new Agent({ autoSelectFamilyAttemptTimeout: perAddressMs, proxyEnv: proxyEnv(means.proxy) })
  // Who is connected to; and what follows once that connection has finished its own handshake.
  const next = means.proxy ?? address
  const shaken: Stage = means.proxy && address.secure ? 'tunnel' : 'asking'
  if (means.sent) progress.stage = 'asking'
  else progress.stage = process.getBuiltinModule('node:net').isIP(next.host) === 0 ? 'resolving' : 'connecting'

  // A request that is destroyed while its tunnel is made leaves the connection to the proxy open, so it is held here.
  let wire: Duplex | undefined = means.sent
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (options, callback) => {
    if (means.sent) return means.sent
    const made = connect(options, callback)
    const socket = made as Socket
    wire = socket
    socket.once('lookup', () => {
      progress.stage = 'connecting'
    })
    socket.once('connect', () => {
      progress.stage = next.secure ? 'handshake' : shaken
      // The request is written once the connection is there, and so never to a wire that was destroyed here.
      const remote = socket.remoteAddress ?? ''
      if (address.loopbackOnly && !isLoopback(remote)) socket.destroy(leadsElsewhere(address, remote))
    })
    socket.once('secureConnect', () => {
      progress.stage = shaken
    })
    return made
  }

  const request: ClientRequest = open({
    agent,
    host: address.host,
    port: address.port,
    method: ask.method,
    path: ask.path,
    headers: ask.headers,
    ...means.tls,
  })
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  request.on('error', reject)
  request.once('socket', () => {
    if (means.proxy && address.secure) progress.stage = 'asking'
  })
  request.once('response', (response: IncomingMessage) => {
    progress.stage = 'reading'
    readAll(response).then((bytes) => {
      const { statusCode: status = 0, statusMessage: reason = '', headers, rawHeaders } = response
      resolve({ status, reason, headers, rawHeaders, bytes })
    }, reject)
  })
  request.end(ask.body)

  return promise.finally(() => {
    signal.removeEventListener('abort', abort)
    request.destroy()
    // What is destroyed may still have something to say, which nobody waits for.
    wire?.on('error', () => {})
    wire?.destroy()
  })
}

/** The fault for a connection that is not to this machine, as its address has it. */
export const leadsElsewhere = ({ host }: Address, remote: string): Fault =>
  new Fault('Local', `${host} leads to another machine here (${remote}): nothing is sent to it over plain http`, {
    hints: [
      'Name the address that is meant, or look into the hosts file.',
      'On a network that you trust: --insecure-http',
    ],
  })

/** Whether to go by a proxy is decided by us, also where Node is told to look for itself: Node only makes the tunnel. */
const proxyEnv = (proxy: ProxyServer | undefined): Record<string, string> =>
  proxy ? { http_proxy: proxy.url, https_proxy: proxy.url } : {}

/** The fault for an answer of which `length` bytes of the body came. */
export const cutShort = (length: number): Fault =>
  new Fault('UnreadableAnswer', `The answer was cut short after ${length} bytes`)

async function readAll(response: IncomingMessage): Promise<Buffer> {
  const body = new BoundedBuffer(Number(response.headers['content-length']))
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const closed = (): void => reject(cutShort(body.length))
  const tooLong = (): void => {
    reject(new Fault('UnreadableAnswer', `The answer is longer than ${maxAnswer / 1024 / 1024} MiB`))
  }
  if (body.tooLong) tooLong()
  response.on('data', (chunk: Buffer) => {
    body.add(chunk)
    if (body.tooLong) tooLong()
  })
  response.once('end', () => (response.complete ? resolve(body.bytes()) : closed()))
  response.on('error', closed)
  response.once('close', closed)
  return await promise
}
