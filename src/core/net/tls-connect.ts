import { isIP, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ProbeError } from '../probe-error.ts'
import type { PeerAddress } from './addresses.ts'
import { anchorsFor, type Chain, chainOf, describeChain, verdict } from './certificates.ts'
import { connectTcp } from './connect.ts'
import { sanitize } from './text.ts'

export type TlsOptions = {
  /** Sent as SNI and looked for in the certificate. */
  readonly host: string
  /** PEM of CAs that are trusted beside the system's. */
  readonly ca?: string | undefined
  /** False when nobody will ask whether the chain is trusted: saves the second look. */
  readonly verify: boolean
  /** Where clients fail, try what none should use any more, so that it can be told. Not with data to send. */
  readonly weak?: boolean
  /** The one protocol to negotiate (ALPN), e.g. `h2`. Without it none is offered. */
  readonly protocol?: string
  /** Opens a socket on which TLS may begin, where something is said before it (AUTH TLS, STARTTLS). */
  readonly open?: () => Promise<Socket>
  readonly date: () => Date
}

const noIssuer = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/**
 * Connects, shakes hands without verifying and reads the chain; whether to go on is the caller's
 * decision. Trust is OpenSSL's verdict with `caFile` or, without one, the bundled CAs; where that
 * knows no issuer, a second connection asks with what the system trusts.
 */
export async function connectTls(
  target: PeerAddress,
  options: TlsOptions,
): Promise<{ readonly socket: TLSSocket; readonly chain: Chain }> {
  const trusted = options.ca === undefined ? undefined : [options.ca]
  let socket = await shake(target, options, trusted).catch((error: unknown) => {
    const tooOld = error instanceof ProbeError && /protocol|handshake failure|too small|legacy/.test(error.message)
    if (!options.weak || !tooOld || target.signal.aborted) throw error
    return shake(target, options, trusted, true)
  })
  const first = socket
  try {
    let certificates = chainOf(first)
    const unknown = options.verify && noIssuer.has(verdict(first) ?? '')
    const anchors = unknown ? anchorsFor(certificates.at(-1)).map((anchor) => anchor.toString()) : []
    if (anchors.length > 0) {
      socket = await shake(target, options, [...(trusted ?? []), ...anchors])
      first.destroy()
      certificates = chainOf(socket)
    }
    return { socket, chain: describeChain(socket, certificates, { ...options, address: target.address }) }
  } catch (error) {
    first.destroy()
    socket.destroy()
    throw error
  }
}

async function shake(
  target: PeerAddress,
  options: TlsOptions,
  ca: readonly string[] | undefined,
  weak = false,
): Promise<TLSSocket> {
  const { connect } = process.getBuiltinModule('node:tls')
  const { address, signal } = target
  const raw = await (options.open ?? (() => connectTcp(target.ip, target.port, signal)))()
  const socket = connect({
    socket: raw,
    host: options.host,
    // An address is no server name (RFC 6066, 3).
    ...(isIP(options.host) ? {} : { servername: options.host }),
    ...(ca === undefined ? {} : { ca: [...ca] }),
    ...(options.protocol === undefined ? {} : { ALPNProtocols: [options.protocol] }),
    ...(weak ? { minVersion: 'TLSv1' as const, ciphers: 'DEFAULT@SECLEVEL=0' } : {}),
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
  })
  tie(raw, socket)
  // A socket that is destroyed under its handshake tells of it twice; the second time must not be fatal.
  socket.on('error', () => {})
  return await new Promise((resolve, reject) => {
    socket.once('error', (error) => reject(signal.aborted ? error : handshakeError(error, address)))
    socket.once('close', () =>
      reject(new ProbeError('tls', `${address} closed the connection during the TLS handshake`)),
    )
    socket.once('secureConnect', () => resolve(socket))
  })
}

/**
 * Has a raw socket and the encryption on it end together. What destroys the raw one (the signal) may
 * destroy the other too; before the raw handle has closed, Node 24 then ends with a segmentation fault:
 * so the encryption always goes first.
 */
export function tie(raw: Socket, socket: TLSSocket): void {
  const destroyRaw = raw.destroy.bind(raw)
  raw.destroy = (cause) => {
    socket.destroy(cause)
    return destroyRaw(cause)
  }
  socket.once('close', () => raw.destroy())
}

/** OpenSSL's texts carry thread ids and source files; what an operator needs is the reason. */
function handshakeError(error: NodeJS.ErrnoException & { reason?: unknown }, address: string): Error {
  const reason = typeof error.reason === 'string' ? sanitize(error.reason, 80) : ''
  if (reason === 'wrong version number' || reason === 'packet length too long' || reason === 'record layer failure') {
    return new ProbeError('tls', `${address} does not speak TLS on this port (${reason})`, detail(error))
  }
  if (reason !== '') return new ProbeError('tls', `${address} refused the TLS handshake: ${reason}`, detail(error))
  if (error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    return new ProbeError('tls', `${address} closed the connection during the TLS handshake`, detail(error))
  }
  return error
}
const detail = (error: NodeJS.ErrnoException): readonly string[] => (error.code ? [error.code] : [])
