import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { showBytes } from '../../../base/format.ts'
import type { Chain } from '../../../base/net/certificates.ts'
import { quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { Connection } from '../../engine/index.ts'

/** A HealthCheckResponse has 2 bytes; the rest leaves room for fields of later versions, which are skipped. */
const maxMessageBytes = 4 * 1024

/**
 * The prefix of a gRPC frame: one byte for the compression flag and four for the message length. The message follows.
 */
const frameHeadBytes = 5

/** `HealthCheckRequest { string service = 1 }` in a frame. An empty name asks about the server as a whole. */
export function healthRequest(service: string): Buffer {
  const name = Buffer.from(service)
  const field = name.length === 0 ? [] : [0x0a, ...varint(name.length)]
  const head = Buffer.alloc(frameHeadBytes)
  head.writeUInt32BE(field.length + name.length, 1)
  return Buffer.concat([head, Buffer.from(field), name])
}

function varint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]
}

/** Assembles the single message of an answer. Never buffers more than the maximum size of a message. */
class MessageReader {
  readonly #address: string
  #bytes = Buffer.alloc(0)

  constructor(address: string) {
    this.#address = address
  }

  /** Throws ProbeError `protocol` as soon as the bytes cannot form one uncompressed message. */
  push(chunk: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    const flag = this.#bytes[0]
    if (flag === 1) throw this.#problem('compressed its message, although svc offers no compression')
    if (flag !== undefined && flag !== 0) throw this.#problem(`began its message with ${flag}, which is not gRPC`)
    const length = this.#length
    if (length === undefined) return
    if (length > maxMessageBytes) {
      throw this.#problem(`announced a message of ${showBytes(length)} (limit ${showBytes(maxMessageBytes)})`)
    }
    if (this.#bytes.length > frameHeadBytes + length) throw this.#problem('sent more than one message')
  }

  /** Returns the message after the end of the answer. Throws ProbeError `protocol` if it is missing or incomplete. */
  end(): Buffer {
    const length = this.#length
    if (this.#bytes.length === 0) throw this.#problem('answered OK without a message')
    if (length === undefined) throw this.#problem(`cut its message short, after ${showBytes(this.#bytes.length)}`)
    const message = this.#bytes.subarray(frameHeadBytes)
    if (message.length === length) return message
    throw this.#problem(`cut its message short, after ${showBytes(message.length)} of ${showBytes(length)}`)
  }

  /** The announced length; undefined until the frame prefix is complete. */
  get #length(): number | undefined {
    return this.#bytes.length < frameHeadBytes ? undefined : this.#bytes.readUInt32BE(1)
  }

  #problem(what: string): ProbeError {
    return new ProbeError('protocol', `${this.#address} ${what}`)
  }
}

/**
 * Reads `status` from `HealthCheckResponse { ServingStatus status = 1 }`. Returns 0 if it is absent, because proto3
 * omits UNKNOWN. Skips other fields. Returns undefined for bytes that are not such a message.
 */
export function servingStatus(message: Uint8Array): number | undefined {
  let status = 0
  let at = 0
  const readVarint = (): number | undefined => {
    let value = 0
    for (let index = 0; index < 10; index += 1) {
      const byte = message[at]
      if (byte === undefined) return undefined
      at += 1
      value += (byte & 0x7f) * 2 ** (7 * index)
      if (byte < 0x80) return value
    }
    return undefined
  }
  while (at < message.length) {
    const tag = readVarint()
    if (tag === undefined || tag < 8) return undefined
    const [field, wireType] = [Math.floor(tag / 8), tag % 8]
    if (wireType === 0) {
      const value = readVarint()
      if (value === undefined) return undefined
      if (field === 1) status = value
      continue
    }
    if (field === 1) return undefined
    const size = wireType === 1 ? 8 : wireType === 5 ? 4 : wireType === 2 ? readVarint() : undefined
    if (size === undefined) return undefined
    at += size
  }
  return at === message.length ? status : undefined
}

/** Maximum bytes of HTTP/2 that a peer may send before its first answer, and then for each answer. */
const maxAnswerBytes = 64 * 1024
/** Maximum bytes of headers or trailers, after decompression. */
const maxHeaderBytes = 16 * 1024

/** The answer to a call: the gRPC status, and the message if that status is OK. */
export type GrpcAnswer =
  | { readonly code: 0; readonly message: Buffer }
  /** `text` is the server's own message, decoded, redacted and without control characters. */
  | { readonly code: number; readonly text: string; readonly message?: undefined }

/** Connects to the same address. */
export type Reach = () => Promise<Pick<GrpcLink, 'socket' | 'chain'>>

/** The parts of a connection. */
export type GrpcLink = {
  readonly socket: Socket
  readonly chain: Chain | undefined
  readonly address: string
  /** Sent as `:authority`. */
  readonly authority: string
  /** Metadata and credentials, sent with each call. */
  readonly metadata: Readonly<Record<string, string>>
  /** Names in `metadata` whose values are credentials. HTTP/2 never indexes them in its compression tables. */
  readonly secretNames: readonly string[]
  readonly redact: Redact
}

/**
 * Sits between a socket and node:http2, which reads without limit and does not report what it received. Counts the
 * bytes, and detects a peer that speaks another protocol by its first byte.
 */
class MeteredSocket extends Duplex {
  readonly #socket: Socket
  #left = maxAnswerBytes
  #started = false
  /** Why the peer's data destroyed this stream, if it did. */
  problem: ProbeError | undefined
  /** The socket's error, known here before node:http2 reports it. */
  error: NodeJS.ErrnoException | undefined
  /** True once the peer has ended the connection, as opposed to svc. */
  isEnded = false

  constructor({ socket, address, chain, redact }: GrpcLink) {
    super()
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#left -= chunk.length
      this.problem ??= this.#started
        ? undefined
        : foreignProtocol(chunk, { address, isTls: chain !== undefined, redact })
      this.#started = true
      if (this.#left < 0) {
        this.problem ??= new ProbeError('protocol', `${address} sent more than ${showBytes(maxAnswerBytes)}`)
      }
      if (this.problem) this.destroy(this.problem)
      else if (!this.push(chunk)) socket.pause()
    })
    socket.on('end', () => {
      this.isEnded = true
      this.push(null)
    })
    socket.on('error', (error) => {
      this.error ??= error
      this.destroy(error)
    })
    socket.on('close', () => {
      this.isEnded ||= !this.destroyed
      this.destroy()
    })
    // Callers that wait for an answer learn of the error from the session.
    this.on('error', () => {})
  }

  /** Allows the peer to send one more answer. */
  allowAnswer(): void {
    this.#left = maxAnswerBytes
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}

type Peer = { readonly address: string; readonly isTls: boolean; readonly redact: Redact }

/** HTTP/2 begins with a SETTINGS frame shorter than 65,536 bytes, so its first byte is 0. */
function foreignProtocol(first: Buffer, { address, isTls, redact }: Peer): ProbeError | undefined {
  if (first[0] === 0) return undefined
  const text = quote(redact(first), 80)
  if (first.toString('latin1', 0, 7) === 'HTTP/1.') {
    return new ProbeError('protocol', `${address} speaks HTTP/1, gRPC needs HTTP/2: it answered ${text}`)
  }
  // A TLS alert or handshake record.
  if (!isTls && (first[0] === 0x15 || first[0] === 0x16) && first[1] === 3) {
    return new ProbeError('protocol', `${address} expects TLS on this port: set tls: true`)
  }
  return new ProbeError('protocol', `${address} does not answer in HTTP/2: it sent ${text}`)
}

/** An HTTP/2 connection to a gRPC server, for consecutive calls. */
export class GrpcConnection implements Connection {
  readonly address: string
  readonly chain: Chain | undefined
  readonly redact: Redact
  /** Whether calls carry credentials. */
  readonly signsIn: boolean
  readonly #link: GrpcLink
  readonly #socket: MeteredSocket
  readonly #session: ClientHttp2Session
  readonly #reach: Reach
  /** The connection after this one. */
  #next: GrpcConnection | undefined
  #answered = 0
  #error: NodeJS.ErrnoException | undefined
  /** The code of the peer's GOAWAY frame. */
  #goaway: number | undefined

  private constructor(link: GrpcLink, reach: Reach) {
    const { connect } = process.getBuiltinModule('node:http2')
    this.address = link.address
    this.chain = link.chain
    this.redact = link.redact
    this.signsIn = link.secretNames.length > 0
    this.#link = link
    this.#reach = reach
    this.#socket = new MeteredSocket(link)
    // The URL has no effect: the socket is already connected, and each call names its scheme and authority.
    this.#session = connect('http://localhost', {
      createConnection: () => this.#socket,
      settings: { enablePush: false, maxHeaderListSize: maxHeaderBytes },
    })
    this.#session.on('error', (error) => {
      this.#error ??= error
    })
    this.#session.on('goaway', (code) => {
      this.#goaway ??= code
    })
  }

  /**
   * Speaks HTTP/2 over a socket, which the connection then owns. Resolves when the peer has sent its settings. Throws
   * ProbeError, or the socket's error. `reach` is for a peer that ends the connection between two calls.
   */
  static async open(link: Omit<GrpcLink, 'socket' | 'chain'>, reach: Reach): Promise<GrpcConnection> {
    const connection = new GrpcConnection({ ...link, ...(await reach()) }, reach)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    connection.#session.once('remoteSettings', () => resolve())
    connection.#session.once('close', () =>
      reject(
        connection.#cause(
          connection.chain
            ? 'before it spoke HTTP/2'
            : 'before it spoke HTTP/2; if the port expects TLS, set tls: true',
        ),
      ),
    )
    try {
      await promise
      return connection
    } catch (error) {
      connection.close()
      throw error
    }
  }

  get usable(): boolean {
    return this.#next ? this.#next.usable : this.#isOpen || this.#isOver
  }

  get #isOpen(): boolean {
    return !this.#session.closed && !this.#session.destroyed
  }

  /**
   * True once the peer has answered calls and then ended the connection without an error (GOAWAY, NO_ERROR), as servers do
   * after a number of calls, or at a certain age: the next call belongs on a new one.
   */
  get #isOver(): boolean {
    return !this.#isOpen && this.#answered > 0 && this.#goaway === 0 && !this.#socket.problem
  }

  /** Connects again if the peer has ended this connection between two calls. */
  async #current(): Promise<GrpcConnection> {
    if (this.#next) return await this.#next.#current()
    if (!this.#isOver) return this
    this.#next = await GrpcConnection.open(this.#link, this.#reach)
    return this.#next
  }

  close(): void {
    this.#next?.close()
    this.#session.destroy()
    this.#socket.destroy()
  }

  /**
   * Makes one unary call. `path` is `/package.Service/Method`. Throws ProbeError if the response is not a complete gRPC
   * answer, or the socket's error.
   */
  async call(path: string, request: Buffer, msLeft: number): Promise<GrpcAnswer> {
    const on = await this.#current()
    try {
      return await on.#ask(path, request, msLeft)
    } catch (error) {
      // The end may have crossed the call, which the peer has then not answered.
      if (!on.#isOver) throw error
      return await (await this.#current()).#ask(path, request, msLeft)
    }
  }

  async #ask(path: string, request: Buffer, msLeft: number): Promise<GrpcAnswer> {
    this.#socket.allowAnswer()
    const stream = this.#send(path, msLeft)
    try {
      const answer = await this.#answer(stream, request)
      this.#answered += 1
      return answer
    } finally {
      stream.close(cancelCode)
    }
  }

  #send(path: string, msLeft: number): ClientHttp2Stream {
    const { sensitiveHeaders } = process.getBuiltinModule('node:http2')
    const { authority, chain, metadata, secretNames } = this.#link
    if (!this.#isOpen) throw this.#cause('before the call')
    return this.#session.request({
      ':method': 'POST',
      ':scheme': chain ? 'https' : 'http',
      ':authority': authority,
      ':path': path,
      te: 'trailers',
      'content-type': 'application/grpc',
      'user-agent': 'svc',
      // The header allows at most eight digits.
      'grpc-timeout': `${Math.min(99_999_999, msLeft)}m`,
      'grpc-accept-encoding': 'identity',
      ...metadata,
      [sensitiveHeaders]: [...secretNames],
    })
  }

  #answer(stream: ClientHttp2Stream, request: Buffer): Promise<GrpcAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<GrpcAnswer>()
    const reader = new MessageReader(this.address)
    let trailers: IncomingHttpHeaders | undefined
    const orReject = (act: () => void): void => {
      try {
        act()
      } catch (problem) {
        reject(problem as Error)
      }
    }
    stream.on('response', (head, flags) => {
      orReject(() => refuseHead(head, this))
      // A trailers-only response: its headers end the stream.
      if ((flags & endStreamFlag) !== 0) trailers = head
    })
    stream.on('trailers', (last) => {
      trailers = last
    })
    stream.on('data', (chunk: Buffer) => orReject(() => reader.push(chunk)))
    let ended = false
    stream.on('end', () => {
      ended = true
    })
    // The `close` event follows and gives more information.
    stream.on('error', () => {})
    stream.on('close', () => {
      if (!ended || stream.rstCode !== 0) return reject(this.#cut(stream.rstCode))
      orReject(() => resolve(answerOf(trailers, reader, this)))
    })
    stream.end(request)
    return promise
  }

  /** Why a call ended without an answer. */
  #cut(code: number): Error {
    if (!this.#isOpen) return this.#cause('instead of answering')
    // node:http2 itself also resets a stream whose headers are too large or invalid, so the message does not name a
    // side.
    const why = `RST_STREAM, ${codeName(code)}`
    return new ProbeError('protocol', `the answer of ${this.address} was aborted (${why})`)
  }

  /** Why the connection is over. */
  #cause(when: string): Error {
    if (this.#socket.problem) return this.#socket.problem
    if (this.#goaway !== undefined) {
      const why = codeName(this.#goaway)
      return new ProbeError('protocol', `${this.address} ended the connection ${when} (GOAWAY, ${why})`)
    }
    const error = this.#socket.error ?? this.#error
    // The reason of an abort has either no code or a numeric one.
    const code = typeof error?.code === 'string' ? error.code : undefined
    const isClosed = code === 'ECONNRESET' || code === 'EPIPE'
    const isHttp2 = code?.startsWith('ERR_HTTP2')
    if (error && !isClosed && !isHttp2) return error
    const details = code === undefined ? [] : [code]
    if (isClosed || this.#socket.isEnded) {
      return new ProbeError('protocol', `${this.address} closed the connection ${when}`, details)
    }
    const why = error ? `: ${sanitize(error.message, 80)}` : ''
    return new ProbeError('protocol', `${this.address} does not speak valid HTTP/2${why}`, details)
  }
}

/** NGHTTP2_FLAG_END_STREAM and NGHTTP2_CANCEL. */
const endStreamFlag = 1
const cancelCode = 8

const codeNames = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
]
/** The name of an HTTP/2 error code (RFC 9113, 7). */
const codeName = (code: number): string => codeNames[code] ?? `code ${code}`

type Answering = { readonly address: string; readonly redact: Redact }

/** Throws ProbeError if the headers are not those of a gRPC response. */
function refuseHead(head: IncomingHttpHeaders, { address, redact }: Answering): void {
  const status = Number(head[':status'])
  const type = head['content-type']
  if (status !== 200) {
    const fault =
      status === 401 || status === 403 ? 'auth' : [429, 502, 503, 504].includes(status) ? 'refused' : 'protocol'
    throw new ProbeError(fault, `${address} answered with HTTP ${status} instead of gRPC`)
  }
  if (type === undefined) throw new ProbeError('protocol', `${address} answered without a content-type, not as gRPC`)
  if (!/^application\/grpc(?:[+;]|$)/i.test(type.slice(0, 64))) {
    throw new ProbeError('protocol', `${address} answered with content-type ${quote(redact(type), 64)}, not as gRPC`)
  }
}

/** Throws ProbeError if the response has no status, or if it says OK without exactly one message. */
function answerOf(trailers: IncomingHttpHeaders | undefined, reader: MessageReader, peer: Answering): GrpcAnswer {
  const { address, redact } = peer
  const status = trailers?.['grpc-status']
  if (typeof status !== 'string') {
    throw new ProbeError('protocol', `${address} ended its answer without grpc-status: the answer may be incomplete`)
  }
  if (!/^\d{1,4}$/.test(status.slice(0, 5))) {
    throw new ProbeError('protocol', `${address} ended its answer with grpc-status ${quote(redact(status), 32)}`)
  }
  const code = Number(status)
  if (code === 0) return { code, message: reader.end() }
  return { code, text: redact(percentDecoded(String(trailers?.['grpc-message'] ?? '').slice(0, 4_096))) }
}

/** Decodes grpc-message, which is percent-encoded UTF-8. Invalid sequences stay unchanged. */
const percentDecoded = (text: string): string =>
  Buffer.from(
    text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString('utf8')
