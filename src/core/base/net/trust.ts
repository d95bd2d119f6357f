import type { X509Certificate } from 'node:crypto'
import { fileProblem } from '../file-errors.ts'
import { type ConfiguredFiles, type FileStatus, readText } from '../files/index.ts'
import { ProbeError } from '../probe-error.ts'
import type { SettingsSpec } from '../settings/index.ts'
import { readCaFile } from './certificates.ts'

/** The setting of all kinds that connect with TLS and read the file with `readTrust`. */
export const caFileSetting = {
  type: 'text',
  file: 'certificates',
  doc: 'PEM file of CAs to trust in addition to those of the system',
} as const satisfies SettingsSpec[string]

/** The settings of the certificate that svc shows to a server that demands one. */
const clientSettings = {
  clientCert: {
    type: 'text',
    file: 'certificates',
    needs: 'clientKey',
    doc: 'PEM file of the certificate that svc shows to a server that demands one, followed by its intermediate certificates',
  },
  clientKey: {
    type: 'text',
    file: 'text',
    needs: 'clientCert',
    doc: 'PEM file of the key of clientCert, without a passphrase. svc refuses a key that other accounts can read',
  },
  clientExpiry: {
    type: 'threshold',
    unit: 'days',
    isMinimum: true,
    needs: 'clientCert',
    doc: 'Minimum remaining validity of clientCert, in days. Default: as for the certificate of a server',
  },
} as const satisfies SettingsSpec

/** 32 bytes in hexadecimal, as `openssl x509 -fingerprint -sha256` and browsers print them. */
const sha256 = /^[0-9A-Fa-f]{2}(?::?[0-9A-Fa-f]{2}){31}$/

/** The settings of every kind that connects with TLS: together they decide which server is trusted. */
export const trustSettings = {
  servername: {
    type: 'text',
    doc: 'Name sent as SNI and expected in the certificate, if it is not that of the server',
  },
  caFile: caFileSetting,
  fingerprint: {
    type: 'texts',
    pattern: sha256,
    doc: 'SHA-256 fingerprint of the certificate, with or without colons; several while it is replaced. The server must present one of them. Its chain and its name are then not checked, and if it has expired, that is a warning',
  },
  ...clientSettings,
} as const satisfies SettingsSpec

export type TrustValues = ClientValues & {
  readonly servername?: string | undefined
  readonly caFile?: string | undefined
  readonly fingerprint?: readonly string[] | undefined
}

/** The CAs and certificates that a TLS connection accepts besides the CAs of the system, and what it shows itself. */
export type TlsTrust = {
  /** PEM of further CAs. */
  readonly ca: string | undefined
  /** SHA-256 fingerprints in the form that Node prints. Empty: no certificate is pinned. */
  readonly pinned: readonly string[]
  /** The client certificate. Undefined: none. */
  readonly client?: ClientIdentity | undefined
}

/** Reads the files that the settings name. Throws ProbeError `data`, naming the file. */
export const readTrust = async (values: TrustValues, files: ConfiguredFiles): Promise<TlsTrust> => ({
  ca: await readCaFile(values.caFile, files),
  pinned: pinnedOf(values.fingerprint ?? []),
  client: await readClient(values, files),
})

export type ClientValues = { readonly clientCert?: string | undefined; readonly clientKey?: string | undefined }

/** The certificate that svc shows to a server that demands one, with its key. */
export type ClientIdentity = {
  readonly pem: { readonly cert: string; readonly key: string }
  readonly certificate: X509Certificate
}

/** Bytes. A chain or a key has a few KB. */
const maxBytes = 256 * 1024

/**
 * The client certificate of the settings and its key. Undefined without one. Throws ProbeError `data`, naming the file,
 * where a file cannot be read or used, where other accounts can read the key, and where the two do not belong together.
 */
export async function readClient(
  { clientCert, clientKey }: ClientValues,
  files: ConfiguredFiles,
): Promise<ClientIdentity | undefined> {
  if (clientCert === undefined || clientKey === undefined) return undefined
  const { X509Certificate: Parsed, createPrivateKey } = process.getBuiltinModule('node:crypto')
  const { text: cert } = await readPem('clientCert', clientCert, files)
  const { text: key, status } = await readPem('clientKey', clientKey, files)
  if (isExposed(status)) {
    const mode = (status.mode & 0o777).toString(8).padStart(4, '0')
    throw invalid(`clientKey ${clientKey} is readable by other accounts (mode ${mode}): chmod 600`)
  }
  const certificate =
    orUndefined(() => new Parsed(cert)) ?? unusable(`clientCert ${clientCert} contains no PEM certificate`)
  const privateKey =
    orUndefined(() => createPrivateKey(key)) ??
    unusable(`clientKey ${clientKey} ${/ENCRYPTED/.test(key) ? 'has a passphrase: remove it' : 'contains no PEM key'}`)
  if (!certificate.checkPrivateKey(privateKey)) {
    throw invalid(`clientKey ${clientKey} is not the key of clientCert ${clientCert}: the server would refuse both`)
  }
  return { pem: { cert, key }, certificate }
}

const readPem = (setting: string, path: string, files: ConfiguredFiles) =>
  readText(files, path, maxBytes).catch((error: NodeJS.ErrnoException) => {
    if (error instanceof ProbeError) throw error
    throw invalid(`${setting} ${path} ${fileProblem(error)}`)
  })

/** The rule of libpq: the owner alone may read a key, or root and a group. Windows has no such mode. */
const isExposed = ({ mode, uid }: FileStatus): boolean =>
  process.platform !== 'win32' && (mode & (uid === 0 ? 0o007 : 0o077)) !== 0

const invalid = (message: string): ProbeError => new ProbeError('data', message)
const unusable = (message: string): never => {
  throw invalid(message)
}

function orUndefined<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

/** Fingerprints in the form that Node prints: upper case, with colons. */
export const pinnedOf = (fingerprints: readonly string[]): readonly string[] =>
  fingerprints.map((one) =>
    one
      .replaceAll(':', '')
      .toUpperCase()
      .replaceAll(/..(?=.)/g, '$&:'),
  )

/** Why settings that decide about trust have no effect, or undefined. `needs`: what turns TLS on, e.g. `tls: true`. */
export function unusedTrust(settings: TrustValues, needs: string): string | undefined {
  const names = (['servername', 'caFile', 'fingerprint', 'clientCert'] as const).filter(
    (name) => settings[name] !== undefined,
  )
  if (names.length === 0) return undefined
  return `${names.join(' and ')} ${names.length === 1 ? 'needs' : 'need'} ${needs}`
}
