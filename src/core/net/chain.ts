import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ProbeError } from '../probe-error.ts'
import { signedByTrusted } from './ca-file.ts'
import { said } from './text.ts'

/** One certificate of a chain, as its judges see it. Names are fit to be printed. */
export type Certificate = {
  readonly name: string
  readonly issuer: string
  readonly from: Date
  readonly to: Date
  readonly selfSigned: boolean
}

/** What a TLS server showed: read with verification off, so that an expired chain can be dated too. */
export type Chain = {
  readonly address: string
  /** The name that the certificate has to bear. */
  readonly host: string
  /** e.g. `TLSv1.3`. */
  readonly protocol: string
  /** The server's own certificate first. */
  readonly certificates: readonly Certificate[]
  /** SHA-256 of the server's own certificate: to know it again on another connection. */
  readonly fingerprint?: string | undefined
  /** OpenSSL's verdict, host name left aside; undefined when the chain is trusted. */
  readonly trustError: string | undefined
  /** With `trustError` about a date: whether signatures lead to a trusted root all the same. */
  readonly trustedButForDates: boolean
  /** What the certificate is for, when it is not for `host`. */
  readonly hostError: string | undefined
  readonly at: Date
}

/** Verdicts that say nothing about who signed. */
export const dateErrors: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

/** At most this many certificates are followed: a chain may be made to lead nowhere. */
const longestChain = 16

/**
 * The server's chain, its own certificate first; each next one is the issuer of the one before. To be
 * read once: a second reading of the same socket finds nothing.
 */
export function chainOf(socket: TLSSocket): readonly X509Certificate[] {
  const chain: X509Certificate[] = []
  let next = socket.getPeerX509Certificate()
  while (next && chain.length < longestChain) {
    chain.push(next)
    const issuer: X509Certificate | undefined = next.issuerCertificate
    next = issuer && issuer.fingerprint256 !== next.fingerprint256 ? issuer : undefined
  }
  return chain
}

/** OpenSSL's verdict on the chain, the host name left aside; undefined when it is trusted. */
export function verdict(socket: TLSSocket): string | undefined {
  if (socket.authorized) return undefined
  // Typed as an Error, but Node gives the code's text.
  const error = socket.authorizationError as unknown
  return error instanceof Error ? error.message : String(error)
}

type Asked = {
  readonly address: string
  readonly host: string
  readonly ca?: string | undefined
  readonly verify: boolean
  readonly date: () => Date
}

/** What there is to judge of a server that has shaken hands. Throws ProbeError when it showed no certificate. */
export function describeChain(socket: TLSSocket, certificates: readonly X509Certificate[], asked: Asked): Chain {
  const [own] = certificates
  if (own === undefined) throw new ProbeError('tls', `${asked.address} showed no certificate`)
  const trustError = verdict(socket)
  return {
    address: asked.address,
    host: asked.host,
    protocol: socket.getProtocol() ?? 'unknown',
    certificates: certificates.map((one) => ({
      name: nameOf(one, one.subject),
      issuer: nameOf(undefined, one.issuer),
      from: one.validFromDate,
      to: one.validToDate,
      selfSigned: one.checkIssued(one),
    })),
    fingerprint: own.fingerprint256,
    trustError,
    trustedButForDates:
      asked.verify && trustError !== undefined && dateErrors.has(trustError) && signedByTrusted(certificates, asked.ca),
    hostError: hostError(own, asked.host),
    at: asked.date(),
  }
}

/** The common name, else the first alternative name, else the whole subject. Peers choose them. */
function nameOf(certificate: X509Certificate | undefined, subject: string): string {
  const common = /^CN=(.+)$/m.exec(subject)?.[1]
  const alternative = certificate?.subjectAltName?.split(',', 1)[0]?.replace(/^\w+:/, '')
  return said(common ?? alternative ?? (subject || 'nameless'), 64)
}

/** Names in the subject do not count: clients have stopped to look there. */
function hostError(own: X509Certificate, host: string): string | undefined {
  const found = isIP(host) ? own.checkIP(host) : own.checkHost(host, { subject: 'never' })
  if (found !== undefined) return undefined
  const names = (own.subjectAltName ?? '').replaceAll(/\b(?:DNS|IP Address):/g, '')
  return names === '' ? `only for "${nameOf(own, own.subject)}", without alternative names` : `for ${said(names, 128)}`
}
