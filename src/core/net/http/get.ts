import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import type { LookupFunction } from 'node:net'
import { decodeText } from '../../encoding.ts'
import { ProbeError } from '../../probe-error.ts'
import { noteConnection } from '../connect.ts'
import { safeUrl } from '../text.ts'
import { hostOf } from '../url.ts'
import { decodeBody } from './coding.ts'

export type GetOptions = {
  readonly signal: AbortSignal
  readonly lookup: LookupFunction
  /** A larger body is refused, so that it cannot fill the memory. */
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
  const request: RequestOptions & { rejectUnauthorized?: boolean } = {
    method: 'GET',
    // Brackets around IPv6 addresses belong to URLs, not to sockets.
    host: hostOf(url),
    port: url.port,
    path: `${url.pathname}${url.search}`,
    headers: {
      Accept: options.accept ?? '*/*',
      'Accept-Encoding': 'identity',
      'Cache-Control': 'no-store',
      Connection: 'close',
    },
    agent: false,
    lookup,
    signal,
    ...(options.anyCertificate ? { rejectUnauthorized: false } : {}),
  }
  // This costs half as much at start-up as an import of the same module.
  const sent: ClientRequest =
    url.protocol === 'https:'
      ? process.getBuiltinModule('node:https').request(request)
      : process.getBuiltinModule('node:http').request(request)
  const tooLarge = new ProbeError('protocol', `the answer is larger than ${maxBytes} bytes`)
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>()
  sent.on('error', (error: NodeJS.ErrnoException) =>
    reject(
      error.code?.startsWith('HPE_') ? new ProbeError('protocol', 'did not send valid HTTP', [error.code]) : error,
    ),
  )
  // Its callers name the URL as the address.
  sent.once('socket', (socket) => socket.once('connect', () => noteConnection(socket, safeUrl(url))))
  sent.once('response', (answer: IncomingMessage) => {
    const parts: Buffer[] = []
    let length = 0
    answer.on('data', (part: Buffer) => {
      length += part.length
      if (length > maxBytes) return reject(tooLarge)
      parts.push(part)
    })
    answer.on('error', reject)
    answer.once('end', () => {
      const { 'content-encoding': coding, 'content-type': contentType } = answer.headers
      decodeBody({ bytes: Buffer.concat(parts), more: false }, { coding, max: maxBytes, address: url.host })
        .then(({ bytes, more }) => {
          if (more) throw tooLarge
          resolve({ status: answer.statusCode ?? 0, body: decodeText(bytes, { contentType }) })
        })
        .catch(reject)
    })
  })
  sent.end()
  try {
    return await promise
  } finally {
    sent.destroy()
  }
}
