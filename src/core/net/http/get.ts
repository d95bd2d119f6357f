import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import type { LookupFunction } from 'node:net'
import { ProbeError } from '../../probe-error.ts'
import { hostOf } from '../url.ts'

export type GetOptions = {
  readonly signal: AbortSignal
  readonly lookup: LookupFunction
  /** More than this is refused, so that an answer cannot fill the memory. */
  readonly maxBytes: number
  readonly accept?: string
  /** Only where nothing secret is sent and nothing that is received is trusted. */
  readonly anyCertificate?: true
}

/**
 * One small GET: no redirects, no kept connection, no credentials (those of a URL are not sent).
 * Rejects with what the socket says or a ProbeError; ends with the signal.
 */
export async function get(url: URL, options: GetOptions): Promise<{ readonly status: number; readonly body: string }> {
  const { signal, lookup, maxBytes } = options
  signal.throwIfAborted()
  const request: RequestOptions & { rejectUnauthorized?: boolean } = {
    method: 'GET',
    // The brackets of an IPv6 address belong to URLs, not to sockets.
    host: hostOf(url),
    port: url.port,
    path: `${url.pathname}${url.search}`,
    headers: { Accept: options.accept ?? '*/*', 'Cache-Control': 'no-store', Connection: 'close' },
    agent: false,
    lookup,
    signal,
    ...(options.anyCertificate ? { rejectUnauthorized: false } : {}),
  }
  // Half the start-up cost of an import of the same module.
  const sent: ClientRequest =
    url.protocol === 'https:'
      ? process.getBuiltinModule('node:https').request(request)
      : process.getBuiltinModule('node:http').request(request)
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>()
  sent.on('error', (error: NodeJS.ErrnoException) =>
    reject(
      error.code?.startsWith('HPE_')
        ? new ProbeError('protocol', 'does not answer in sound HTTP', [error.code])
        : error,
    ),
  )
  sent.once('response', (answer: IncomingMessage) => {
    const parts: Buffer[] = []
    let length = 0
    answer.on('data', (part: Buffer) => {
      length += part.length
      if (length > maxBytes) return reject(new ProbeError('protocol', `the answer is larger than ${maxBytes} bytes`))
      parts.push(part)
    })
    answer.on('error', reject)
    answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString('utf8') }))
  })
  sent.end()
  try {
    return await promise
  } finally {
    sent.destroy()
  }
}
