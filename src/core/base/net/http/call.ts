import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { showBytes } from '../../format.ts'
import { ProbeError } from '../../probe-error.ts'
import { quote, type Redact } from '../text.ts'
import { type Body, decodeBody } from './coding.ts'

/** Maximum bytes of response headers. The parser refuses more. */
const maxHeaderBytes = 16 * 1024
/** How much longer than `max` a body may be in its content coding: headers and checksums. */
const codingBytes = 4 * 1024
/** Maximum number of interim responses (1xx) before a peer counts as hostile. */
const maxInterim = 16

export type HttpCall = {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}
export type Head = {
  readonly status: number
  /** Names are in lower case. Repeated headers are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>
  /** Each Set-Cookie line separately: joined, they could not be split again. */
  readonly cookies: readonly string[]
  /**
   * Reads the body, up to `max` bytes, closes the connection and removes the content coding. Throws ProbeError
   * `protocol` when the body is truncated or damaged.
   */
  readonly read: (max: number) => Promise<Body>
}

/**
 * Sends one HTTP/1.1 request over a socket that the caller opened and destroys. `redact` removes the caller's secrets
 * from texts of the peer. Throws ProbeError, or the socket's error.
 */
export function call(socket: Socket, address: string, ask: HttpCall, redact: Redact): Promise<Head> {
  const { request } = process.getBuiltinModule('node:http')
  const { method, path } = ask
  // Without this header, a server may send any content coding (RFC 9110, 12.5.3).
  const headers = { ...ask.headers, 'Accept-Encoding': 'identity' }
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      socket.destroy()
      reject(meaning(error, address, redact))
    }
    try {
      const out = request({ method, path, headers, createConnection: () => socket, maxHeaderSize: maxHeaderBytes })
      let interim = 0
      const interimAnswer = (): void => {
        interim += 1
        if (interim > maxInterim)
          out.destroy(new ProbeError('protocol', `${address} sent too many interim responses (1xx)`))
      }
      out.on('continue', interimAnswer)
      out.on('information', interimAnswer)
      out.on('error', failed)
      // What the parser cannot read in the body: the answer itself only ends.
      let unreadable: NodeJS.ErrnoException | undefined
      out.on('error', (error) => {
        unreadable = error
      })
      const head = (answer: IncomingMessage): Head => headOf(answer, address, redact, () => unreadable)
      out.on('upgrade', (answer) => resolve(head(answer)))
      out.on('response', (answer) => resolve(head(answer)))
      out.end(ask.body)
    } catch (error) {
      failed(error as NodeJS.ErrnoException)
    }
  })
}

function headOf(answer: IncomingMessage, address: string, redact: Redact, unreadable: Unreadable): Head {
  // A connection that breaks before anyone reads must not cause an unhandled error; `read` reports it.
  answer.on('error', () => {})
  const headers = Object.entries(answer.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')])
  return {
    status: answer.statusCode ?? 0,
    headers: Object.fromEntries(headers) as Record<string, string>,
    cookies: answer.headersDistinct['set-cookie'] ?? [],
    read: (max) => readBody(answer, address, max, redact, unreadable),
  }
}

/** The error of the parser, if it could not read on. */
type Unreadable = () => NodeJS.ErrnoException | undefined

async function readBody(
  answer: IncomingMessage,
  address: string,
  max: number,
  redact: Redact,
  unreadable: Unreadable,
): Promise<Body> {
  const coding = answer.headers['content-encoding']
  const received = await receive(answer, address, coding === undefined ? max : max + codingBytes, redact, unreadable)
  const { bytes, more } = await decodeBody(received, { coding, max, address })
  return { bytes: bytes.subarray(0, max), more: more || bytes.length > max }
}

async function receive(
  answer: IncomingMessage,
  address: string,
  max: number,
  redact: Redact,
  unreadable: Unreadable,
): Promise<Body> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      length += chunk.length
      // Leaving the loop destroys the response and its socket.
      if (length > max) break
    }
  } catch (error) {
    const systemError = error as NodeJS.ErrnoException
    const parsing = unreadable()
    if (parsing?.code?.startsWith('HPE_') && parsing.code !== 'HPE_INVALID_EOF_STATE')
      throw meaning(parsing, address, redact)
    if (systemError.code !== 'ECONNRESET' && systemError.code !== 'ERR_STREAM_PREMATURE_CLOSE')
      throw meaning(systemError, address, redact)
    const announced = answer.headers['content-length']
    const whole = announced === undefined ? '' : ` of ${showBytes(Number(announced))}`
    throw new ProbeError('protocol', `${address} sent an incomplete response: ${showBytes(length)}${whole}`)
  }
  const bytes = Buffer.concat(chunks)
  return { bytes: bytes.subarray(0, max), more: length > max }
}

/** Codes of the parser for answers whose end is not clear (RFC 9112, 6.3). */
const ambiguous: Readonly<Record<string, string>> = {
  HPE_UNEXPECTED_CONTENT_LENGTH: 'sent Content-Length twice',
  HPE_INVALID_TRANSFER_ENCODING: 'sent Transfer-Encoding beside Content-Length',
  HPE_INVALID_CONTENT_LENGTH: 'sent a Content-Length that is not one number',
}

/** Translates the parser's error codes for operators. */
function meaning(error: NodeJS.ErrnoException & { rawPacket?: unknown }, address: string, redact: Redact): Error {
  // The code of a DOMException is a number.
  const code = typeof error.code === 'string' ? error.code : ''
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ProbeError('protocol', `${address} sent more than ${showBytes(maxHeaderBytes)} of headers`, [code])
  }
  const isBeside = code === 'HPE_INVALID_CONTENT_LENGTH' && error.message.includes('Transfer-Encoding')
  const why = ambiguous[isBeside ? 'HPE_INVALID_TRANSFER_ENCODING' : code]
  if (why !== undefined) {
    return new ProbeError('protocol', `${address} ${why}: clients disagree on where the answer ends`, [code])
  }
  if (code === 'HPE_INVALID_CHUNK_SIZE' || code === 'HPE_STRICT') {
    return new ProbeError('protocol', `${address} sent a body whose chunks cannot be read (size of a chunk)`, [code])
  }
  if (code.startsWith('HPE_')) {
    const received = Buffer.isBuffer(error.rawPacket) ? `: it sent ${quote(redact(error.rawPacket))}` : ''
    return new ProbeError('protocol', `${address} did not send valid HTTP${received}`, [code])
  }
  if (code === 'ERR_INVALID_CHAR' || code === 'ERR_INVALID_HTTP_TOKEN' || code === 'ERR_HTTP_INVALID_HEADER_VALUE') {
    return new ProbeError('data', 'a header of this monitor contains a character that HTTP does not allow', [code])
  }
  return error
}
