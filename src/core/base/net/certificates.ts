import type { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { fileProblem } from '../file-errors.ts'
import { type ConfiguredFiles, readText } from '../files/index.ts'
import { count } from '../format.ts'
import { ProbeError } from '../probe-error.ts'
import { humanTime, usualZone } from '../zone.ts'
import { sanitize } from './text.ts'

/** Bytes. The bundle of a distribution has 250 KB. */
const maxCaFile = 8 * 1024 * 1024

/** The CAs of a `caFile`. Throws ProbeError `data`, naming the file. */
export async function readCaFile(path: string | undefined, files: ConfiguredFiles): Promise<string | undefined> {
  if (path === undefined) return undefined
  const { text: pem } = await readText(files, path, maxCaFile).catch((error: NodeJS.ErrnoException) => {
    if (error instanceof ProbeError) throw error
    throw new ProbeError('data', `caFile ${path} ${fileProblem(error)}`)
  })
  if (certificatesOf(pem).length === 0) throw new ProbeError('data', `caFile ${path} contains no PEM certificate`)
  return pem
}

/** The trusted roots, including those of `ca`, that signed a certificate. `only`: those of `ca` alone. */
export function anchorsFor(top: X509Certificate | undefined, ca?: string, only = false): readonly X509Certificate[] {
  if (top === undefined) return []
  const { getCACertificates } = process.getBuiltinModule('node:tls')
  const others = only ? [] : [...getCACertificates('default'), ...systemCertificates()]
  const roots = [...certificatesOf(ca ?? ''), ...others]
  // Parsing every root of a system takes a tenth of a second; searching for the issuer's name does not.
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
 * The certificates that the operating system trusts, as PEM. Empty on a machine without any, such as a minimal container:
 * there, Node would print a line of its own to standard error. Node reads the list once and keeps it.
 */
function systemCertificates(): readonly string[] {
  const { getCACertificates } = process.getBuiltinModule('node:tls')
  const hasFiles =
    process.platform === 'win32' ||
    process.platform === 'darwin' ||
    existsSync(process.env['SSL_CERT_DIR'] ?? '/etc/ssl/certs') ||
    existsSync(process.env['SSL_CERT_FILE'] ?? '/etc/ssl/cert.pem')
  return hasFiles ? getCACertificates('system') : []
}

/**
 * Makes Node read the certificates that this machine trusts: its own list, that of NODE_EXTRA_CA_CERTS, and the
 * system's. Node reads each once and keeps the result. A file that could not be opened for a moment would count as an
 * empty list until the process ends.
 */
export function preloadAnchors(): void {
  const { createSecureContext } = process.getBuiltinModule('node:tls')
  createSecureContext()
  systemCertificates()
}

/**
 * Whether signatures lead from the server's certificate to a trusted root, ignoring dates. Used only for the message;
 * nothing is sent to a server because of it.
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

/** One certificate of a chain, as the checks see it. Names are sanitized. */
export type Certificate = {
  readonly name: string
  readonly issuer: string
  readonly from: Date
  readonly to: Date
  readonly selfSigned: boolean
  /** The length of an RSA key. Undefined for other keys. */
  readonly keyBits?: number | undefined
  /** Whether it may sign others. */
  readonly isCa: boolean
}

/**
 * The chain that a TLS server presented. It is read without verification, so that the dates of an expired chain can be
 * checked too.
 */
export type Chain = {
  readonly address: string
  /** The name that the certificate must be valid for. */
  readonly host: string
  /** e.g. `TLSv1.3`. */
  readonly protocol: string
  /** The server's own certificate first. */
  readonly certificates: readonly Certificate[]
  /** SHA-256 of the server's own certificate, to recognize it on another connection. */
  readonly fingerprint?: string | undefined
  /** OpenSSL's verification error, ignoring the host name. Undefined when the chain is trusted. */
  readonly trustError: string | undefined
  /** How many of a trusted chain's certificates the path to a root takes. Undefined: all that have not expired. */
  readonly needed?: number | undefined
  /** When `trustError` is about a date: whether signatures lead to a trusted root anyway. */
  readonly trustedButForDates: boolean
  /** Why the certificate is not valid for `host`: continues a sentence about it. Undefined when it is. */
  readonly hostError: string | undefined
  /** Whether the certificate has one of the pinned fingerprints. Undefined when none is pinned. */
  readonly pin: 'matches' | 'differs' | undefined
  /**
   * Whether the server sent the OCSP staple that its certificate requires (must-staple). Undefined where it requires
   * none, and where the connection did not ask for one.
   */
  readonly staple?: 'sent' | 'missing' | undefined
  /** The origin of the CA that signed the chain. Undefined when the chain is not trusted. */
  readonly trustedBy: 'caFile' | 'system' | undefined
  readonly at: Date
}

/** Verification errors that concern dates, not signatures. */
export const dateErrors: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

/** Maximum number of certificates followed: a malicious chain may never end. */
const maxChain = 16

/**
 * The server's chain: its own certificate first, each followed by its issuer. Read it once: a second call for the same
 * socket finds nothing.
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

/** OpenSSL's verification error for the chain, ignoring the host name. Undefined when the chain is trusted. */
export function verdict(socket: TLSSocket): string | undefined {
  if (socket.authorized) return undefined
  // The type says Error, but Node gives the text of the code.
  const error = socket.authorizationError as unknown
  return error instanceof Error ? error.message : String(error)
}

type ChainOptions = {
  readonly address: string
  readonly host: string
  readonly ca?: string | undefined
  /**
   * The origin of the CA that signed the chain, if the chain is trusted. Default: `caFile` with `ca`, otherwise the
   * system.
   */
  readonly signer?: 'caFile' | 'system'
  /** Fingerprints of `TlsTrust`. */
  readonly pinned?: readonly string[]
  readonly verify: boolean
  /** Whether the server sent an OCSP staple. Undefined where it was not asked for one. */
  readonly isStapled?: boolean | undefined
  readonly date: () => Date
}

/** The DER of the extension id-pe-tlsfeature (RFC 7633), and of the feature status_request in its list. */
const tlsFeature = Buffer.from('06082b06010505070118', 'hex')
const statusRequest = Buffer.from('020105', 'hex')

/** Whether a certificate requires its server to send an OCSP staple. */
function requiresStaple({ raw }: X509Certificate): boolean {
  const at = raw.indexOf(tlsFeature)
  // The value follows within a few bytes: whether it is critical, and the lengths of two lists.
  return at >= 0 && raw.subarray(at + tlsFeature.length, at + tlsFeature.length + 16).includes(statusRequest)
}

/** Describes the chain after the handshake. Throws ProbeError when the server presented no certificate. */
export function describeChain(
  socket: TLSSocket,
  certificates: readonly X509Certificate[],
  options: ChainOptions,
): Chain {
  const [own] = certificates
  if (own === undefined) throw new ProbeError('tls', `${options.address} presented no certificate`)
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
      // A key that may not sign certificates still signs its own: the default certificate of Traefik has one.
      selfSigned: one.checkIssued(one) || (one.subject === one.issuer && one.verify(one.publicKey)),
      keyBits: one.publicKey.asymmetricKeyDetails?.modulusLength,
      isCa: one.ca,
    })),
    fingerprint: own.fingerprint256,
    trustError,
    needed: trustError === undefined ? neededOf(certificates, options) : undefined,
    trustedButForDates:
      options.verify &&
      trustError !== undefined &&
      dateErrors.has(trustError) &&
      signedByTrusted(certificates, options.ca),
    hostError: hostError(own, options.host),
    pin: pinOf(own.fingerprint256, options.pinned),
    staple:
      options.isStapled === undefined || !requiresStaple(own) ? undefined : options.isStapled ? 'sent' : 'missing',
    trustedBy:
      trustError === undefined ? (options.signer ?? (options.ca === undefined ? 'system' : 'caFile')) : undefined,
    at: options.date(),
  }
}

/**
 * How many certificates of a trusted chain its shortest path to a root takes. Undefined where it makes no difference,
 * because no issuer ends before the server's own certificate, and where the roots are not known here.
 */
function neededOf(
  certificates: readonly X509Certificate[],
  { ca, signer, date }: Pick<ChainOptions, 'ca' | 'signer' | 'date'>,
): number | undefined {
  const [own, ...issuers] = certificates
  if (own === undefined || !issuers.some(({ validToDate }) => validToDate < own.validToDate)) return undefined
  if (ca === undefined && signer === 'caFile') return undefined
  const now = date()
  const last = certificates.findIndex((one) =>
    anchorsFor(one, ca, ca !== undefined).some((root) => root.validFromDate <= now && now <= root.validToDate),
  )
  return last < 0 ? undefined : last + 1
}

/** Whether this machine trusts a chain without a certificate that its server sends: an old root, for example. */
export const isSpare = (chain: Chain, one: Certificate): boolean => {
  const index = chain.certificates.indexOf(one)
  if (chain.trustError !== undefined || index < 1) return false
  return chain.at > one.to || (chain.needed !== undefined && index >= chain.needed)
}

/** The common name, else the first alternative name, else the whole subject. Peers choose these texts. */
export function nameOf(certificate: X509Certificate | undefined, subject: string): string {
  const common = /^CN=(.+)$/m.exec(subject)?.[1]
  const alternative = certificate?.subjectAltName?.split(',', 1)[0]?.replace(/^\w+:/, '')
  return sanitize(common ?? alternative ?? (subject || 'nameless'), 64)
}

/** Names in the subject do not count: clients no longer look there. */
function hostError(own: X509Certificate, host: string): string | undefined {
  const match = isIP(host) ? own.checkIP(host) : own.checkHost(host, { subject: 'never' })
  if (match !== undefined) return undefined
  const names = (own.subjectAltName ?? '').replaceAll(/\b(?:DNS|IP Address):/g, '')
  return names === ''
    ? `has no subjectAltName, and clients do not read the name "${nameOf(own, own.subject)}" in its subject: issue it again with one for ${host}`
    : `is not for ${host}, but for ${sanitize(names, 128)}`
}

/**
 * Whether a certificate has one of the pinned fingerprints. Undefined when none is pinned.
 *
 * @example
 * ```ts
 * pinOf('AB:CD', ['AB:CD']) // 'matches'
 * ```
 */
export const pinOf = (fingerprint: string | undefined, pinned: readonly string[] = []): Chain['pin'] =>
  pinned.length === 0 ? undefined : fingerprint !== undefined && pinned.includes(fingerprint) ? 'matches' : 'differs'

const dayMs = 86_400_000

/**
 * A date in UTC, to the minute.
 *
 * @example
 * ```ts
 * formatDay(new Date(0)) // '1970-01-01 00:00 UTC'
 * ```
 */
export const formatDay = (date: Date): string => humanTime(date.getTime(), { zone: usualZone, to: 'minute' })
/** The days between two dates, not rounded. */
export const exactDaysBetween = (from: Date, to: Date): number => (to.getTime() - from.getTime()) / dayMs
/**
 * Days in tenths, rounded down: a value below a limit of 3 d must not read `3 d`.
 *
 * @example
 * ```ts
 * daysBetween(new Date(0), new Date(129_600_000)) // 1.5
 * ```
 */
export const daysBetween = (from: Date, to: Date): number => Math.floor(exactDaysBetween(from, to) * 10) / 10

export const certificateName = (chain: Chain, one: Certificate): string =>
  one === chain.certificates[0] ? `certificate "${one.name}"` : `issuer certificate "${one.name}"`

export const describeExpiry = (chain: Chain, one: Certificate): string => {
  const left = daysBetween(chain.at, one.to)
  if (chain.at > one.to)
    return `${certificateName(chain, one)} expired on ${formatDay(one.to)}, ${daysBetween(one.to, chain.at)} d ago`
  if (chain.at < one.from)
    return `${certificateName(chain, one)} is not valid before ${formatDay(one.from)}: activated too early, or a wrong clock`
  return `${certificateName(chain, one)} expires on ${formatDay(one.to)}, in ${left} d`
}

/** Certificates that servers make for themselves, by the name of the certificate or of its issuer. */
const standIns: readonly (readonly [name: RegExp, what: string])[] = [
  [/^TRAEFIK DEFAULT CERT$/, 'which Traefik uses where none of its certificates is for this name'],
  [/^Caddy Local Authority/, 'the own CA of Caddy (tls internal): add its root.crt to caFile'],
  [
    /^Kubernetes Ingress Controller Fake Certificate$/,
    'which ingress-nginx uses where none of its secrets is for this name',
  ],
]

/** OpenSSL trusts no shorter RSA key, whoever signed it. */
const leastKeyBits = 2_048

function distrust(chain: Chain, error: string, top: string): string {
  const own = chain.certificates[0]
  const short = chain.certificates.find(({ keyBits = leastKeyBits }) => keyBits < leastKeyBits)
  // Node has no code for this error of OpenSSL.
  if (short && error === 'UNSPECIFIED') {
    return `the key of "${short.name}" has ${short.keyBits} bits, which is too short to trust: renew it with ${leastKeyBits} or more`
  }
  const standIn = standIns.find(([name]) => name.test(own?.selfSigned ? own.name : (own?.issuer ?? '')))
  const what = standIn === undefined ? '' : `, ${standIn[1]}`
  if (own?.selfSigned) return `certificate "${own.name}" is self-signed${what}; if that is intended, add it to caFile`
  if (standIn) return `certificate "${own?.name}" is by "${own?.issuer}"${what}`
  if (error === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' || error === 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY') {
    return `issuer "${top}" is unknown here and not sent by the server: either the server lacks an intermediate certificate, or caFile lacks a private CA`
  }
  if (error === 'SELF_SIGNED_CERT_IN_CHAIN' || dateErrors.has(error)) {
    return `the chain ends at "${top}", which this machine does not trust; add a private CA to caFile`
  }
  const invalid = purposeErrors.has(error) ? chain.certificates.slice(1).find(({ isCa }) => !isCa) : undefined
  if (invalid) return `the chain does not verify: issuer "${invalid.name}" is not a CA, so it may not sign certificates`
  if (error === 'UNSPECIFIED') {
    const such = 'such as a signature with SHA-1, name constraints, or a critical extension that clients do not know'
    return `the chain does not verify, for a reason that Node does not name, ${such}: openssl s_client -connect names it`
  }
  return `the chain does not verify: ${verificationErrors[error] ?? 'openssl s_client -connect shows why'} (${error})`
}

/** The codes that OpenSSL gives where one of the issuers is not a CA. */
const purposeErrors: ReadonlySet<string> = new Set(['INVALID_PURPOSE', 'INVALID_CA'])

/**
 * The meanings of OpenSSL's verification errors, as far as Node names them. Dates and unknown issuers are told apart
 * above.
 */
const verificationErrors: Readonly<Record<string, string>> = {
  INVALID_PURPOSE: 'the certificate was not issued for servers (extended key usage)',
  INVALID_CA: 'one of the issuers is not a CA',
  PATH_LENGTH_EXCEEDED: 'an issuer has more issuers below it than it allows (pathlen)',
  CERT_SIGNATURE_FAILURE: 'a signature is wrong, so the certificate and its issuer do not belong together',
  UNABLE_TO_DECRYPT_CERT_SIGNATURE: 'a signature cannot be read',
  UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY: 'the key of an issuer cannot be read',
  UNABLE_TO_GET_ISSUER_CERT: 'the certificate of an issuer is missing',
  CERT_CHAIN_TOO_LONG: 'the chain is too long',
  CERT_UNTRUSTED: 'its root is not trusted for servers',
  CERT_REJECTED: 'its root rejects this use',
  CERT_REVOKED: 'a certificate has been revoked',
  ERROR_IN_CERT_NOT_BEFORE_FIELD: 'a date in a certificate cannot be read',
  ERROR_IN_CERT_NOT_AFTER_FIELD: 'a date in a certificate cannot be read',
}

/** Why the chain is not trusted, ignoring dates. Undefined when it leads to a trusted root. */
export function trustProblem(chain: Chain): string | undefined {
  const { address, trustError } = chain
  if (trustError === undefined || (dateErrors.has(trustError) && chain.trustedButForDates)) return undefined
  const root = chain.certificates.at(-1)
  const top = root?.selfSigned ? root.name : (root?.issuer ?? 'nobody')
  return `${address}: ${distrust(chain, trustError, top)}`
}

/** Why the certificate is not valid for the name that clients use. Undefined when it is. */
export const hostProblem = ({ address, hostError }: Chain): string | undefined =>
  hostError === undefined ? undefined : `${address}: the certificate ${hostError}`

/** Why the certificate is not the pinned one. Undefined when it is, or when none is pinned. */
export const pinProblem = ({
  address,
  pin,
  fingerprint,
}: Pick<Chain, 'address' | 'pin' | 'fingerprint'>): string | undefined =>
  pin === 'differs'
    ? `${address}: the certificate does not match the pinned fingerprint; its fingerprint is ${fingerprint ?? 'unknown'}`
    : undefined

/**
 * Why nothing may be sent to this server, the most urgent reason first. Undefined when the server is trusted. A pinned
 * certificate is trusted whatever its chain, its name and its dates.
 */
export function whyDistrusted(chain: Chain): string | undefined {
  const { trustError } = chain
  if (chain.pin !== undefined) return pinProblem(chain)
  if (trustError === undefined) return hostProblem(chain)
  const invalid = chain.certificates.find((one) => chain.at > one.to || chain.at < one.from)
  if (dateErrors.has(trustError) && invalid) return `${chain.address}: ${describeExpiry(chain, invalid)}`
  return trustProblem(chain) ?? `${chain.address}: ${trustedSentence(chain)}`
}

/** The description of a trusted chain. */
export const trustedSentence = ({ certificates, trustError, trustedBy }: Chain): string => {
  const where = trustedBy === undefined ? '' : trustedBy === 'caFile' ? ' in caFile' : ' of this system'
  return `${count(certificates.length, 'certificate')} up to a trusted root${where}${trustError === undefined ? '' : ', ignoring dates'}`
}

/**
 * The reason to trust the server: continues a sentence about its certificate. Undefined when the server is not trusted.
 */
export function trustDecision({ pin, trustedBy, host, hostError }: Chain): string | undefined {
  if (pin === 'matches') return 'matches the pinned fingerprint'
  if (pin === 'differs' || trustedBy === undefined || hostError !== undefined) return undefined
  return `is for ${host} and trusted by ${trustedBy === 'caFile' ? 'caFile' : 'the CAs of this system'}`
}
