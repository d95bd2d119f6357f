import type { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { ProbeError } from '../probe-error.ts'
import type { Setting } from '../settings/index.ts'
import { count, sanitize } from './text.ts'

/** The setting of whatever connects with TLS and reads its file with `readCaFile`. */
export const caFileSetting = {
  type: 'text',
  doc: 'PEM file of CAs trusted beside those of the system',
} as const satisfies Setting

/** The CAs of a `caFile`. Throws ProbeError `data` that names the file. */
export async function readCaFile(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const pem = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ProbeError('data', `caFile ${path} cannot be read: ${error.code ?? 'unknown'}`)
  })
  if (certificatesOf(pem).length === 0) throw new ProbeError('data', `caFile ${path} holds no certificate in PEM`)
  return pem
}

/** Roots that this machine trusts and that have signed a certificate. */
export function anchorsFor(top: X509Certificate | undefined, ca?: string): readonly X509Certificate[] {
  if (top === undefined) return []
  const { getCACertificates } = process.getBuiltinModule('node:tls')
  const roots = [...certificatesOf(ca ?? ''), ...getCACertificates('default'), ...getCACertificates('system')]
  // Parsing every root of a system takes a tenth of a second; a search for the issuer's name does not.
  const issuer = /^CN=([ -~]+)$/m.exec(top.issuer)?.[1]
  const candidates = roots.filter(
    (pem) => issuer === undefined || Buffer.from(pem.replaceAll(/-----[^-]+-----/g, ''), 'base64').includes(issuer),
  )
  return [...new Set(candidates)].flatMap((pem) => {
    const root = parsed(pem)
    return root !== undefined && top.checkIssued(root) && top.verify(root.publicKey) ? [root] : []
  })
}

/**
 * Has Node read the certificates that this machine trusts: its own list, that of NODE_EXTRA_CA_CERTS, and the
 * system's. Node reads each once and keeps what it got: a file that could not be opened for a moment would
 * be an empty list for as long as the process lives.
 */
export function preloadAnchors(): void {
  const { createSecureContext, getCACertificates } = process.getBuiltinModule('node:tls')
  createSecureContext()
  getCACertificates('system')
}

/**
 * Dates left aside, do signatures lead from the server's certificate to a trusted root? Only for
 * the message: nothing is sent to a server because of it.
 */
export function signedByTrusted(chain: readonly X509Certificate[], ca: string | undefined): boolean {
  const linked = chain.every((one, index) => {
    const issuer = chain[index + 1]
    return issuer === undefined || (one.checkIssued(issuer) && one.verify(issuer.publicKey))
  })
  return linked && anchorsFor(chain.at(-1), ca).length > 0
}

const certificatesOf = (pem: string): readonly string[] =>
  pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []

function parsed(pem: string): X509Certificate | undefined {
  const { X509Certificate: Parsed } = process.getBuiltinModule('node:crypto')
  try {
    return new Parsed(pem)
  } catch {
    return undefined
  }
}

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
const maxChain = 16

/**
 * The server's chain, its own certificate first; each next one is the issuer of the one before. To be
 * read once: a second reading of the same socket finds nothing.
 */
export function chainOf(socket: TLSSocket): readonly X509Certificate[] {
  const chain: X509Certificate[] = []
  let next = socket.getPeerX509Certificate()
  while (next && chain.length < maxChain) {
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

type ChainOptions = {
  readonly address: string
  readonly host: string
  readonly ca?: string | undefined
  readonly verify: boolean
  readonly date: () => Date
}

/** What there is to judge of a server that has shaken hands. Throws ProbeError when it showed no certificate. */
export function describeChain(
  socket: TLSSocket,
  certificates: readonly X509Certificate[],
  options: ChainOptions,
): Chain {
  const [own] = certificates
  if (own === undefined) throw new ProbeError('tls', `${options.address} showed no certificate`)
  const trustError = verdict(socket)
  return {
    address: options.address,
    host: options.host,
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
      options.verify &&
      trustError !== undefined &&
      dateErrors.has(trustError) &&
      signedByTrusted(certificates, options.ca),
    hostError: hostError(own, options.host),
    at: options.date(),
  }
}

/** The common name, else the first alternative name, else the whole subject. Peers choose them. */
function nameOf(certificate: X509Certificate | undefined, subject: string): string {
  const common = /^CN=(.+)$/m.exec(subject)?.[1]
  const alternative = certificate?.subjectAltName?.split(',', 1)[0]?.replace(/^\w+:/, '')
  return sanitize(common ?? alternative ?? (subject || 'nameless'), 64)
}

/** Names in the subject do not count: clients have stopped to look there. */
function hostError(own: X509Certificate, host: string): string | undefined {
  const match = isIP(host) ? own.checkIP(host) : own.checkHost(host, { subject: 'never' })
  if (match !== undefined) return undefined
  const names = (own.subjectAltName ?? '').replaceAll(/\b(?:DNS|IP Address):/g, '')
  return names === ''
    ? `only for "${nameOf(own, own.subject)}", without alternative names`
    : `for ${sanitize(names, 128)}`
}

const dayMs = 86_400_000

export const formatDay = (date: Date): string => `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`
/** Tenths of a day, rounded down: `3 d` must not be said of what fails a limit of 3 d. */
export const daysBetween = (from: Date, to: Date): number =>
  Math.floor(((to.getTime() - from.getTime()) / dayMs) * 10) / 10

export const certificateName = (chain: Chain, one: Certificate): string =>
  one === chain.certificates[0] ? `certificate "${one.name}"` : `issuer certificate "${one.name}"`

export const describeExpiry = (chain: Chain, one: Certificate): string => {
  const left = daysBetween(chain.at, one.to)
  if (chain.at > one.to)
    return `${certificateName(chain, one)} expired on ${formatDay(one.to)}, ${daysBetween(one.to, chain.at)} d ago`
  if (chain.at < one.from)
    return `${certificateName(chain, one)} is not valid before ${formatDay(one.from)}: renewed too early, or a wrong clock`
  return `${certificateName(chain, one)} expires on ${formatDay(one.to)}, in ${left} d`
}

function distrust(chain: Chain, error: string, top: string): string {
  const own = chain.certificates[0]
  if (own?.selfSigned) return `certificate "${own.name}" is self-signed; name it in caFile if it is meant to be`
  if (error === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' || error === 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY') {
    return `the issuer "${top}" is unknown here and the server does not send it: an intermediate is missing there, or a private CA here (caFile)`
  }
  if (error === 'SELF_SIGNED_CERT_IN_CHAIN' || dateErrors.has(error)) {
    return `the chain ends at "${top}", which this machine does not trust; a private CA belongs in caFile`
  }
  return `the chain does not verify (${error})`
}

/** Why the chain is not trusted, its dates aside; undefined when it leads to a trusted root. */
export function trustProblem(chain: Chain): string | undefined {
  const { address, trustError } = chain
  if (trustError === undefined || (dateErrors.has(trustError) && chain.trustedButForDates)) return undefined
  const root = chain.certificates.at(-1)
  const top = root?.selfSigned ? root.name : (root?.issuer ?? 'nobody')
  return `${address}: ${distrust(chain, trustError, top)}`
}

/** Why the certificate is not for the name that clients use; undefined when it is. */
export const hostProblem = ({ address, host, hostError }: Chain): string | undefined =>
  hostError === undefined ? undefined : `${address}: the certificate is not for ${host}, but ${hostError}`

/** Why nothing may be sent to this server, most urgent first; undefined when it is who it should be. */
export function whyDistrusted(chain: Chain): string | undefined {
  const { trustError } = chain
  if (trustError === undefined) return hostProblem(chain)
  const wrong = chain.certificates.find((one) => chain.at > one.to || chain.at < one.from)
  if (dateErrors.has(trustError) && wrong) return `${chain.address}: ${describeExpiry(chain, wrong)}`
  return trustProblem(chain) ?? `${chain.address}: ${trustedSentence(chain)}`
}

/** How a trusted chain is described. */
export const trustedSentence = ({ certificates, trustError }: Chain): string =>
  `${count(certificates.length, 'certificate')} up to a trusted root${trustError === undefined ? '' : ', its dates aside'}`
