import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'
import type { LookupFunction } from 'node:net'
import { decodeText } from '../../encoding.ts'
import { ProbeError } from '../../probe-error.ts'
import { noteConnection, wayOut } from '../connect.ts'
import { safeUrl } from '../text.ts'
import { hostOf } from '../url.ts'
import { decodeBody } from './coding.ts'

/** How to send one request, and how much of its answer to read. */
export type BoundedRequest = Omit<RequestOptions, 'host' | 'port' | 'path' | 'agent'> & {
  readonly rejectUnauthorized?: boolean
  readonly ca?: string[]
  readonly body?: string | undefined
  /** A larger body is refused, so that it cannot fill the memory. */
  readonly maxBytes: number
  /** The error of a larger body. */
  readonly tooLarge: () => Error
}

/**
 * Sends one request on a connection of its own and reads its whole answer: no redirects, no keep-alive, no credentials but
 * those of the headers. Rejects with Node's errors, with `tooLarge`, and with the reason of the signal.
 */
export async function sendBounded(
  url: URL,
  { body, maxBytes, tooLarge, ...options }: BoundedRequest,
): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly bytes: Buffer }> {
  const request: RequestOptions = {
    ...options,
    // Brackets around IPv6 addresses belong to URLs, not to sockets.
    host: hostOf(url),
    port: url.port,
    path: `${url.pathname}${url.search}`,
    agent: false,
    localAddress: wayOut().source,
  }
  // This costs half as much at start-up as an import of the same module.
  const sent: ClientRequest =
    url.protocol === 'https:'
      ? process.getBuiltinModule('node:https').request(request)
      : process.getBuiltinModule('node:http').request(request)
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number
    headers: IncomingHttpHeaders
    bytes: Buffer
  }>()
  sent.on('error', reject)
  // Its callers name the URL as the address.
  sent.once('socket', (socket) => socket.once('connect', () => noteConnection(socket, safeUrl(url))))
  sent.once('response', (answer: IncomingMessage) => {
    const parts: Buffer[] = []
    let length = 0
    answer.on('data', (part: Buffer) => {
      length += part.length
      if (length > maxBytes) return reject(tooLarge())
      parts.push(part)
    })
    answer.on('error', reject)
    answer.once('end', () =>
      resolve({ status: answer.statusCode ?? 0, headers: answer.headers, bytes: Buffer.concat(parts) }),
    )
  })
  sent.end(body)
  try {
    return await promise
  } finally {
    sent.destroy()
  }
}

export type GetOptions = {
  readonly signal: AbortSignal
  readonly lookup: LookupFunction
  /** A larger body is refused, also after decoding. */
  readonly maxBytes: number
  readonly accept?: string
  /** Only for requests that send no secret and whose response is not trusted. */
  readonly anyCertificate?: true
}

/**
 * Sends one small GET: no redirects, no keep-alive, no credentials (not even those of the URL). Rejects with a socket's
 * error or a ProbeError; ends with the signal.
 */
export async function get(url: URL, options: GetOptions): Promise<{ readonly status: number; readonly body: string }> {
  const { signal, lookup, maxBytes } = options
  signal.throwIfAborted()
  const tooLarge = (): ProbeError => new ProbeError('protocol', `the answer is larger than ${maxBytes} bytes`)
  const { status, headers, bytes } = await sendBounded(url, {
    method: 'GET',
    headers: {
      Accept: options.accept ?? '*/*',
      'Accept-Encoding': 'identity',
      'Cache-Control': 'no-store',
      Connection: 'close',
    },
    lookup,
    signal,
    ...(options.anyCertificate ? { rejectUnauthorized: false } : {}),
    maxBytes,
    tooLarge,
  }).catch((error: NodeJS.ErrnoException) => {
    throw error.code?.startsWith('HPE_') ? new ProbeError('protocol', 'did not send valid HTTP', [error.code]) : error
  })
  const { 'content-encoding': coding, 'content-type': contentType } = headers
  const decoded = await decodeBody({ bytes, more: false }, { coding, max: maxBytes, address: url.host })
  if (decoded.more) throw tooLarge()
  return { status, body: decodeText(decoded.bytes, { contentType }) }
}
