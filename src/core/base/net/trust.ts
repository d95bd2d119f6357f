import type { ConfiguredFiles } from '../files/index.ts'
import type { SettingsSpec } from '../settings/index.ts'
import { readCaFile } from './certificates.ts'

/** The setting of all kinds that connect with TLS and read the file with `readTrust`. */
export const caFileSetting = {
  type: 'text',
  file: 'certificates',
  doc: 'PEM file of CAs to trust in addition to those of the system',
} as const satisfies SettingsSpec[string]

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
} as const satisfies SettingsSpec

export type TrustValues = {
  readonly servername?: string | undefined
  readonly caFile?: string | undefined
  readonly fingerprint?: readonly string[] | undefined
}

/** The CAs and certificates that a TLS connection accepts besides the CAs of the system. */
export type TlsTrust = {
  /** PEM of further CAs. */
  readonly ca: string | undefined
  /** SHA-256 fingerprints in the form that Node prints. Empty: no certificate is pinned. */
  readonly pinned: readonly string[]
}

/** Reads the `caFile`. Throws ProbeError `data`, naming the file. */
export const readTrust = async (
  { caFile, fingerprint = [] }: TrustValues,
  files: ConfiguredFiles,
): Promise<TlsTrust> => ({
  ca: await readCaFile(caFile, files),
  pinned: pinnedOf(fingerprint),
})

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
  const names = (['servername', 'caFile', 'fingerprint'] as const).filter((name) => settings[name] !== undefined)
  if (names.length === 0) return undefined
  return `${names.join(' and ')} ${names.length === 1 ? 'needs' : 'need'} ${needs}`
}
