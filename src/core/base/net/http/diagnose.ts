import type { Socket } from 'node:net'
import { ProbeError } from '../../probe-error.ts'
import type { PeerAddress } from '../addresses.ts'
import { connectTcp } from '../connect.ts'
import { safeUrl } from '../text.ts'
import { connectTls } from '../tls-connect.ts'
import { TlsError } from '../tls-reasons.ts'
import { hostOf } from '../url.ts'

/** How long each of the further connections may take, in milliseconds. */
const attemptMs = 1_000

/** The connection preface of HTTP/2 with empty SETTINGS (RFC 9113, 3.4). */
const preface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from('000000040000000000', 'hex'),
])
const frameHeader = 9
const settingsFrame = 4

type Target = Pick<PeerAddress, 'ip' | 'port' | 'address' | 'signal'>
type Context = { readonly date: () => Date; readonly servername?: string | undefined }

/** Whether a port completes a TLS handshake. Sends no request. Never rejects. */
export async function supportsTls(target: Target, host: string, { date, servername }: Context): Promise<boolean> {
  return await attempt(target, async (limited) => {
    try {
      const { socket } = await connectTls(limited, { host: servername ?? host, verify: false, date })
      socket.destroy()
      return true
    } catch (error) {
      // A server that refuses a handshake speaks TLS.
      return error instanceof TlsError && error.isAnswer
    }
  })
}

/** SSLRequest, which a PostgreSQL server answers with one letter before any sign-in. */
const sslRequest = Buffer.from('0000000804d2162f', 'hex')

/** Servers that close a connection at a request of HTTP without a word, and how each answers in its protocol. */
const silentServers = [
  { name: 'PostgreSQL', kind: 'postgres', ask: sslRequest, length: 1, is: /^[SN]$/ },
  { name: 'Redis', kind: 'redis', ask: Buffer.from('PING\r\n'), length: 5, is: /^(?:\+PONG|-NOAU|-DENI|-ERR )/ },
] as const

/** Whether a port answers as such a server does. Never rejects. */
async function answersAs({ ask, length, is }: (typeof silentServers)[number], target: Target): Promise<boolean> {
  return await attempt(target, async (limited) => {
    const socket = await connectTcp(limited.ip, limited.port, limited.signal)
    try {
      socket.write(ask)
      return is.test((await firstBytes(socket, length)).toString('latin1'))
    } finally {
      socket.destroy()
    }
  })
}

/** Whether a port answers the preface of HTTP/2. Sends no request. Never rejects. */
async function supportsHttp2(target: Target, url: URL, { date, servername }: Context): Promise<boolean> {
  return await attempt(target, async (limited) => {
    const host = servername ?? hostOf(url)
    const socket =
      url.protocol === 'https:'
        ? (await connectTls(limited, { host, verify: false, protocol: 'h2', date })).socket
        : await connectTcp(limited.ip, limited.port, limited.signal)
    try {
      socket.write(preface)
      return isSettings(await firstBytes(socket, frameHeader))
    } finally {
      socket.destroy()
    }
  })
}

async function attempt(target: Target, run: (limited: PeerAddress) => Promise<boolean>): Promise<boolean> {
  const signal = AbortSignal.any([target.signal, AbortSignal.timeout(attemptMs)])
  try {
    return await run({ ...target, signal, step: () => {} })
  } catch {
    return false
  }
}

/** A server begins with SETTINGS on stream 0, whose entries have 6 bytes each (RFC 9113, 6.5). */
const isSettings = (bytes: Buffer): boolean =>
  bytes.length >= frameHeader &&
  bytes[3] === settingsFrame &&
  bytes.readUIntBE(0, 3) % 6 === 0 &&
  bytes.readUInt32BE(5) === 0

/** At least this many bytes of a socket, or all that it sends before it ends. */
async function firstBytes(socket: Socket, length: number): Promise<Buffer> {
  let bytes = Buffer.alloc(0)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.length >= length) break
  }
  return bytes
}

/** The advice for a plain request to a TLS port: continues the address. */
export const httpsAdvice = (url: URL): string =>
  `speaks TLS on this port: begin url with https://, as in ${safeUrl(new URL(url.href.replace(/^http:/, 'https:')))}`

/** Continues the address of a server. */
export const onlyHttp2 = 'speaks HTTP/2 only, and svc HTTP/1.1: allow both at the server'

/** Whether an answer never began, or was not HTTP/1.1. */
const isUnanswered = (error: unknown): boolean => {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  const codes = error instanceof ProbeError && error.fault === 'protocol' ? error.details : [code]
  return codes.some((one) => one === 'ECONNRESET' || one === 'EPIPE' || one === 'HPE_INVALID_CONSTANT')
}

/**
 * Explains why a server did not answer a request with HTTP/1.1: it speaks TLS, only HTTP/2, or the protocol of PostgreSQL
 * or Redis on this port. Opens at most four further connections and sends no request. Returns any other error unchanged. Never rejects.
 */
export async function explainSilence(error: unknown, target: Target, url: URL, context: Context): Promise<unknown> {
  if (!isUnanswered(error) || target.signal.aborted) return error
  if (url.protocol === 'http:' && (await supportsTls(target, hostOf(url), context))) {
    return new ProbeError('protocol', `${target.address} ${httpsAdvice(url)}`)
  }
  if (await supportsHttp2(target, url, context)) {
    return new ProbeError('protocol', `${target.address} ${onlyHttp2}`)
  }
  for (const server of silentServers) {
    if (!(await answersAs(server, target))) continue
    const advice = `speaks the protocol of ${server.name}: use kind: ${server.kind}`
    return new ProbeError('protocol', `${target.address} ${advice}`)
  }
  return error
}
