import type { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { ProbeError } from '../probe-error.ts'
import type { Setting } from '../settings/index.ts'

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
  const known = [...certificatesOf(ca ?? ''), ...getCACertificates('default'), ...getCACertificates('system')]
  // Parsing every root of a system takes a tenth of a second; a search for the issuer's name does not.
  const issuer = /^CN=([ -~]+)$/m.exec(top.issuer)?.[1]
  const candidates = known.filter(
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
