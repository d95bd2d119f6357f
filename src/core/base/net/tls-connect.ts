import { isIP, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ProbeError } from '../probe-error.ts'
import type { PeerAddress } from './addresses.ts'
import { anchorsFor, type Chain, chainOf, describeChain, pinOf, verdict } from './certificates.ts'
import { connectTcp } from './connect.ts'
import { secureContextFor } from './secure-context.ts'
import { TlsError, tlsErrorOf } from './tls-reasons.ts'
import type { ClientIdentity } from './trust.ts'

export type TlsOptions = {
  /** Sent as SNI and compared with the certificate. */
  readonly host: string
  /** PEM of CAs trusted besides the system's. */
  readonly ca?: string | undefined
  /** Fingerprints of `TlsTrust`. */
  readonly pinned?: readonly string[]
  /** The certificate to show to a server that demands one. */
  readonly client?: ClientIdentity | undefined
  /** False when the trust of the chain does not matter. This saves the second connection. */
  readonly verify: boolean
  /**
   * When the handshake fails, try obsolete protocols, so that the message can name them. Not for connections that send
   * data.
   */
  readonly weak?: boolean
  /** The protocol to negotiate (ALPN), e.g. `h2`. Without it, none is offered. */
  readonly protocol?: string
  /** Opens a socket that is ready for TLS, for protocols that begin in clear text (AUTH TLS, STARTTLS). */
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
 * Connects, shakes hands without verification and reads the chain; the caller decides whether to continue. Trust is
 * OpenSSL's result with `caFile` or, without one, with the bundled CAs. If these contain no issuer, a second connection
 * verifies with the CAs that the system trusts.
 */
export async function connectTls(
  target: PeerAddress,
  options: TlsOptions,
): Promise<{ readonly socket: TLSSocket; readonly chain: Chain }> {
  const trusted = options.ca === undefined ? undefined : [options.ca]
  let isStapled = false
  const noteStaple = (): void => {
    isStapled = true
  }
  let socket = await shake(target, options, trusted, { noteStaple }).catch((error: unknown) => {
    const tooOld = error instanceof TlsError && /protocol|handshake failure|too small|legacy/.test(error.reason)
    if (!options.weak || !tooOld || target.signal.aborted) throw error
    return shake(target, options, trusted, { noteStaple, weak: true })
  })
  const first = socket
  try {
    let certificates = chainOf(first)
    const isPinned = pinOf(certificates[0]?.fingerprint256, options.pinned) === 'matches'
    const unknown = options.verify && !isPinned && noIssuer.has(verdict(first) ?? '')
    const anchors = unknown ? anchorsFor(certificates.at(-1)).map((anchor) => anchor.toString()) : []
    if (anchors.length > 0) {
      socket = await shake(target, options, [...(trusted ?? []), ...anchors])
      first.destroy()
      certificates = chainOf(socket)
    }
    const signer = anchors.length > 0 ? { signer: 'system' as const } : {}
    const { address } = target
    return { socket, chain: describeChain(socket, certificates, { ...options, ...signer, isStapled, address }) }
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
  { weak = false, noteStaple }: { readonly weak?: boolean; readonly noteStaple?: () => void } = {},
): Promise<TLSSocket> {
  const { connect } = process.getBuiltinModule('node:tls')
  const { address, signal } = target
  const raw = await (options.open ?? (() => connectTcp(target.ip, target.port, signal)))()
  const socket = connect({
    socket: raw,
    host: options.host,
    // SNI takes no IP addresses (RFC 6066, 3).
    ...(isIP(options.host) ? {} : { servername: options.host }),
    secureContext: secureContextFor({
      ca,
      ...options.client?.pem,
      ...(weak ? { minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } : {}),
    }),
    ...(options.protocol === undefined ? {} : { ALPNProtocols: [options.protocol] }),
    requestOCSP: true,
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
  })
  tie(raw, socket)
  socket.on('OCSPResponse', (staple: Buffer | null) => {
    if (staple && staple.length > 0) noteStaple?.()
  })
  // A socket destroyed during its handshake emits two errors. The second must not be fatal.
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
 * Ends a raw socket and the TLS socket on it together. The signal may destroy both. Node 24 crashes with a segmentation
 * fault when the TLS socket is destroyed after the raw one but before the raw handle has closed, so the TLS socket is
 * always destroyed first.
 */
export function tie(raw: Socket, socket: TLSSocket): void {
  const destroyRaw = raw.destroy.bind(raw)
  raw.destroy = (cause) => {
    socket.destroy(cause)
    return destroyRaw(cause)
  }
  socket.once('close', () => raw.destroy())
}

/** The error of a handshake in words. OpenSSL's own messages contain thread ids and source files. */
function handshakeError(error: NodeJS.ErrnoException, address: string): Error {
  const explained = tlsErrorOf(error, address)
  if (explained) return explained
  if (error.code === 'ECONNRESET' || error.code === 'EPIPE') {
    return new ProbeError('tls', `${address} closed the connection during the TLS handshake`, [error.code])
  }
  return error
}
