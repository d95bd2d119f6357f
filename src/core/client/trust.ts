import type { SecureContext } from 'node:tls'
import { Fault } from '../base/errors.ts'
import { fileProblem } from '../base/file-errors.ts'
import { lazy } from '../base/lazy.ts'

/** Error codes for a certificate from an unknown issuer. */
const unknownIssuer = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])
export const isTrustError = (code: unknown): boolean => typeof code === 'string' && unknownIssuer.has(code)

const oldestTls = 'TLSv1.2'

/** How TLS connections are checked. These options override Node's own variables and flags. */
export type TlsRules =
  | { readonly rejectUnauthorized: true; readonly minVersion: 'TLSv1.2' }
  | { readonly rejectUnauthorized: true; readonly secureContext: SecureContext }

/**
 * The certificate authorities that are trusted (K5): Node's list and `--ca-file`. The list of the operating system is
 * added only after a server's issuer was not among them, because reading it takes long.
 */
export class Trust {
  readonly #caFile: string | undefined
  readonly #read = lazy(() => (this.#caFile === undefined ? Promise.resolve([]) : readCaFile(this.#caFile)))
  #added: readonly string[] = []
  #context: SecureContext | undefined
  #widened = false

  /** `caFile`: a PEM file of certificates to trust in addition to Node's own. */
  constructor(caFile: string | undefined) {
    this.#caFile = caFile
  }

  /** Reads the file, once. Await it before the first connection. Throws `Fault` Local with the name of the file. */
  async ready(): Promise<void> {
    this.#added = await this.#read.get()
  }

  get widened(): boolean {
    return this.#widened
  }

  rules(): TlsRules {
    if (this.#added.length === 0 && !this.#widened) return { rejectUnauthorized: true, minVersion: oldestTls }
    this.#context ??= this.#build()
    return { rejectUnauthorized: true, secureContext: this.#context }
  }

  /** Adds the operating system's list from now on. */
  widen(): void {
    if (this.#widened) return
    this.#widened = true
    this.#context = undefined
  }

  #build(): SecureContext {
    const tls = process.getBuiltinModule('node:tls')
    const ca = [...this.#added, ...tls.getCACertificates('default')]
    if (this.#widened) ca.push(...tls.getCACertificates('system'))
    return tls.createSecureContext({ ca: [...new Set(ca)], minVersion: oldestTls })
  }
}

/** Bytes. The bundle of all public authorities has 220 KB. */
const maxCaFile = 4 * 1_024 * 1_024

/** The certificates of a PEM file. Throws `Fault` Local, with the name of the file, when it has none. */
async function readCaFile(path: string): Promise<readonly string[]> {
  const local = (what: string): Fault =>
    new Fault('Local', `--ca-file ${path} ${what}`, {
      hints: [
        'Provide the certificate of the authority that signed the server certificate, in PEM (-----BEGIN CERTIFICATE-----).',
      ],
    })
  // Most commands name no such file.
  const { readNamed, SilentShareError } = await import('../base/files/index.ts')
  let pem: string
  try {
    pem = await readNamed(path, maxCaFile)
  } catch (error) {
    // A share that does not answer has no code.
    throw local(error instanceof SilentShareError ? `cannot be read: ${error.message}` : fileProblem(error))
  }
  // A block without its end line is damaged, so it counts as present.
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*(?:-----END CERTIFICATE-----)?/g) ?? []
  if (blocks.length === 0) throw local('contains no certificate')
  const { X509Certificate } = process.getBuiltinModule('node:crypto')
  for (const block of blocks) {
    try {
      new X509Certificate(block)
    } catch {
      throw local('contains a damaged certificate')
    }
  }
  return blocks
}
