import { ProbeError } from '../probe-error.ts'
import { sanitize } from './text.ts'

/** OpenSSL's reasons that only an answer in TLS has: an alert of the peer, or what it has chosen. */
const ofTls = /\balert\b|unsupported protocol|version too low|too small|too weak|renegotiation|certificate required/

/** A TLS connection that failed. `reason` is OpenSSL's word for it, such as `unsupported protocol`. */
export class TlsError extends ProbeError {
  override readonly name = 'TlsError'
  readonly reason: string
  /** Whether the peer has answered in TLS. */
  get isAnswer(): boolean {
    return ofTls.test(this.reason)
  }
  constructor(message: string, reason: string, details: readonly string[]) {
    super('tls', message, details)
    this.reason = reason
  }
}

/** Continues the address of a server. */
export const needsClientCertificate = 'requires a client certificate that it accepts: set clientCert and clientKey'

/** The meanings of OpenSSL's reasons. Each sentence continues the address of the server. The first match counts. */
const meanings: readonly (readonly [RegExp, string])[] = [
  [/wrong version number|packet length too long|record layer failure/, 'does not speak TLS on this port'],
  [/certificate required/, needsClientCertificate],
  [/alert handshake failure/, `refused the TLS handshake: no cipher in common, or it ${needsClientCertificate}`],
  [
    /alert protocol version|unsupported protocol|wrong ssl version|version too (?:low|high)|no protocols available/,
    'refused the TLS handshake: no TLS version in common (svc speaks TLS 1.2 and 1.3)',
  ],
  [
    /unrecognized name/,
    'has no certificate for this name: set servername to one that it serves, or add the name at the server',
  ],
  [/no application protocol/, 'refused the TLS handshake: no application protocol (ALPN) in common'],
  [
    /alert (?:unknown ca|bad certificate|certificate (?:unknown|expired|revoked)|unsupported certificate|access denied)/,
    needsClientCertificate,
  ],
  [/unsafe legacy renegotiation/, 'supports only the insecure renegotiation of old TLS: update its TLS library'],
  [/(?:key|modulus) too small/, 'uses a key that is too short to be secure'],
  [/md too weak|digest too weak|wrong signature type/, 'uses a signature that is too weak to be secure'],
  [/no shared cipher|no ciphers available/, 'refused the TLS handshake: no cipher in common'],
  [/alert internal error/, 'reports an internal error in the TLS handshake: its log has the cause'],
  [
    /bad record mac|decrypt(?:ion)? (?:error|failed)|digest check failed/,
    'sent or received damaged TLS data: a network device changes it, or the server uses the key of another certificate',
  ],
  [/unexpected eof/, 'closed the connection during the TLS handshake'],
]

/** OpenSSL's reason in an error of a socket: its messages also contain thread ids and source files. */
function reasonOf(error: { readonly code?: unknown; readonly reason?: unknown }): string | undefined {
  if (typeof error.reason === 'string' && error.reason !== '') return sanitize(error.reason, 80)
  const [, name] = /^ERR_SSL_(.+)$/.exec(typeof error.code === 'string' ? error.code : '') ?? []
  return name === undefined ? undefined : sanitize(name.toLowerCase().replaceAll('_', ' '), 80)
}

/** An error of OpenSSL in words, with its own reason. Undefined for any other error. */
export function tlsErrorOf(error: unknown, address: string): TlsError | undefined {
  const e = (error ?? {}) as { readonly code?: unknown; readonly reason?: unknown }
  const reason = reasonOf(e)
  if (reason === undefined) return undefined
  const [, meaning] = meanings.find(([pattern]) => pattern.test(reason)) ?? []
  const sentence = meaning === undefined ? `refused the TLS handshake: ${reason}` : `${meaning} (${reason})`
  return new TlsError(`${address} ${sentence}`, reason, typeof e.code === 'string' ? [e.code] : [])
}
