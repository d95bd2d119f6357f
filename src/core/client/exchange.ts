import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Fault } from '../base/errors.ts'
import { isLoopback } from '../base/loopback.ts'
import type { ProxyServer } from '../base/proxy-variables.ts'
import type { Address } from './address.ts'
import type { TlsRules } from './trust.ts'

/** Bytes; far larger than any health answer. */
export const maxAnswer = 8 * 1024 * 1024
/** Most answers arrive in one piece, which then has its own size. */
const leastSize = 1024

/**
 * Collects an answer as it arrives. Copies the pieces together: a hostile server may send one byte at a time, and each
 * separate piece would cost a hundred bytes.
 */
export class BoundedBuffer {
  #buffer: Buffer
  #length = 0
  #tooLong: boolean

  /** `declared` is the length that the server declared; NaN for none. */
  constructor(declared: number) {
    this.#tooLong = declared > maxAnswer
    this.#buffer = Buffer.allocUnsafe(declared > 0 && declared <= maxAnswer ? declared : 0)
  }

  get length(): number {
    return this.#length
  }

  /** True when the answer exceeds the limit. Nothing is added from then on. */
  get tooLong(): boolean {
    return this.#tooLong
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length
    if (this.#tooLong || length > maxAnswer) {
      this.#tooLong = true
      return
    }
    if (length > this.#buffer.length) {
      const wider = Buffer.allocUnsafe(Math.min(maxAnswer, Math.max(leastSize, length, this.#buffer.length * 2)))
      this.#buffer.copy(wider, 0, 0, this.#length)
      this.#buffer = wider
    }
    piece.copy(this.#buffer, this.#length)
    this.#length = length
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }
}

/** The progress of an exchange, for the messages of timeouts and broken connections. */
export type Stage = 'resolving' | 'connecting' | 'tunnel' | 'handshake' | 'asking' | 'reading'
export type Progress = {
  stage: Stage
  /** Called when the request is written. */
  onSent?: (() => void) | undefined
  /** Called at each piece of the answer. */
  onAnswer?: (() => void) | undefined
  /** True when the server sent nothing, not even on a second connection. */
  hangs?: boolean | undefined
}

export type ClientAsk = {
  readonly method: string
  /** Includes the base URL's prefix and the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
}

export type Received = {
  readonly status: number
  /** The server's reason phrase, e.g. `Not Found`; may be empty. */
  readonly reason: string
  readonly headers: IncomingHttpHeaders
  /** The header lines as received: names and values alternate. */
  readonly rawHeaders: readonly string[]
  readonly bytes: Buffer
}

/**
 * How long one address of a name may take before the next is tried. Node's default of 250 ms is too short for a
 * satellite link.
 */
export const perAddressMs = 1_000

/**
 * Sends one request and reads its whole answer, on a connection of its own that is closed afterwards. Follows no
 * redirects and does not interpret the answer. Rejects with Node's error for a failed connection, with the signal's
 * reason, and with `Fault` UnreadableAnswer for an answer that is cut short or too long (K7).
 */
export function exchange(
  address: Address,
  ask: ClientAsk,
  means: {
    readonly proxy: ProxyServer | undefined
    readonly tls: TlsRules | undefined
    /** A connection on which the request has already been sent, with the answer from its first byte. */
    readonly sent?: Duplex
  },
  signal: AbortSignal,
  progress: Progress,
): Promise<Received> {
  if (signal.aborted) return Promise.reject(signal.reason as Error)
  const { promise, resolve, reject } = Promise.withResolvers<Received>()
  const { Agent, request: open } = process.getBuiltinModule(address.secure ? 'node:https' : 'node:http')
  const agent = new Agent({ autoSelectFamilyAttemptTimeout: perAddressMs, proxyEnv: proxyEnv(means.proxy) })
  // The next hop, and the stage after its own handshake.
  const next = means.proxy ?? address
  const shaken: Stage = means.proxy && address.secure ? 'tunnel' : 'asking'
  if (means.sent) progress.stage = 'asking'
  else progress.stage = process.getBuiltinModule('node:net').isIP(next.host) === 0 ? 'resolving' : 'connecting'

  // Destroying a request while its tunnel is being made leaves the connection to the proxy open, so it is kept here.
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
      // The request is written only after this, so a connection that is destroyed here never carries it.
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
  request.once('socket', (socket) => {
    if (means.proxy && address.secure) progress.stage = 'asking'
    // node:http already reads the socket here, so that nothing is lost.
    socket.once('data', () => progress.onAnswer?.())
  })
  if (!means.sent) request.once('finish', () => progress.onSent?.())
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
    // A destroyed socket may still emit an error, which is irrelevant.
    wire?.on('error', () => {})
    wire?.destroy()
  })
}

/** The fault of a connection to another machine although the address is loopback. */
export const leadsElsewhere = ({ host }: Address, remote: string): Fault =>
  new Fault('Local', `${host} resolves to another machine (${remote}): svc sends nothing to it over plain http`, {
    hints: ['Specify the address of the server, or check the hosts file.', 'On a trusted network: --insecure-http'],
  })

/** We decide whether to use a proxy, whatever Node's own settings say. Node only makes the tunnel. */
const proxyEnv = (proxy: ProxyServer | undefined): Record<string, string> =>
  proxy ? { http_proxy: proxy.url, https_proxy: proxy.url } : {}

/** The fault of an answer that ended after `length` bytes of the body. */
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

/** Milliseconds for the name, the connection, the proxy's tunnel and the TLS handshake together. */
const connectMs = 10_000
/** Milliseconds without a byte after the request was sent, before svc asks whether the server lives. */
const silentMs = 3_000
/** Milliseconds for the answer to that question. */
const aliveMs = 5_000
/** A timer that is later than this shows that this process stood still, and proves nothing about the server. */
const standstillMs = 500

const connecting: ReadonlySet<Stage> = new Set<Stage>(['resolving', 'connecting', 'tunnel', 'handshake'])

export type HangWatch = {
  /** Whether the caller has set a time limit. It rules: nothing else ends the exchange then. */
  readonly hasTimeout: boolean
  /** Sends the question whether the server lives, on a connection of its own. Rejects like an exchange. */
  readonly askAlive: (signal: AbortSignal, progress: Progress) => Promise<unknown>
  /** The fault of an exchange that does not get as far as its request. */
  readonly notConnected: (ms: number) => Fault
  /** The fault of a server that hangs: milliseconds without an answer, to the request and to the question. */
  readonly hanging: (silent: number, alive: number) => Fault
}

/**
 * Runs one exchange and ends it early when the server shows no life: when the connection takes too long, or when no byte
 * of an answer arrives and a second connection stays silent, too. A server that answers the question with anything, or
 * refuses the second connection, may be slow: the exchange then has all of its time. Rejects like `work`, which `end`
 * ends: with a fault of `watch`, if the server shows no life.
 */
export async function watchHang<T>(
  end: AbortController,
  progress: Progress,
  watch: HangWatch,
  work: () => Promise<T>,
): Promise<T> {
  let hasAnswer = false
  let question: AbortController | undefined
  let connectTimer: NodeJS.Timeout | undefined
  const limitConnecting = (): void => {
    const began = performance.now()
    connectTimer = setTimeout(() => {
      if (watch.hasTimeout || !connecting.has(progress.stage)) return
      if (stoodStill(began, connectMs)) limitConnecting()
      else end.abort(watch.notConnected(connectMs))
    }, connectMs)
  }
  limitConnecting()
  let silenceTimer: NodeJS.Timeout | undefined
  progress.onSent = () => {
    const sentAt = performance.now()
    silenceTimer = setTimeout(() => {
      if (hasAnswer) return
      question = new AbortController()
      void isSilent(AbortSignal.any([end.signal, question.signal]), watch).then((silent) => {
        if (!silent || hasAnswer) return
        progress.hangs = true
        if (!watch.hasTimeout) end.abort(watch.hanging(performance.now() - sentAt, aliveMs))
      })
    }, silentMs)
  }
  progress.onAnswer = () => {
    clearTimeout(silenceTimer)
    hasAnswer = true
    question?.abort()
  }
  try {
    return await work()
  } finally {
    clearTimeout(connectTimer)
    progress.onAnswer()
    progress.onSent = undefined
    progress.onAnswer = undefined
  }
}

/** Whether the server says nothing at all on a second connection. Never rejects. */
async function isSilent(signal: AbortSignal, watch: HangWatch): Promise<boolean> {
  const began = performance.now()
  const late = AbortSignal.timeout(aliveMs)
  let hasAnswer = false
  const progress: Progress = {
    stage: 'connecting',
    onAnswer: () => {
      hasAnswer = true
    },
  }
  try {
    await watch.askAlive(AbortSignal.any([signal, late]), progress)
    return false
  } catch {
    // A refused or broken second connection proves no hang: the server may be closing its listener.
    if (!late.aborted || signal.aborted || hasAnswer) return false
    return stoodStill(began, aliveMs) ? await isSilent(signal, watch) : true
  }
}

const stoodStill = (began: number, ms: number): boolean => performance.now() - began > ms + standstillMs
