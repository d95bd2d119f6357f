import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'

type Pair = { readonly cert: string | Buffer; readonly key: string | Buffer }

/** What OpenSSL's refusals of a certificate and its key mean. */
const meanings: readonly (readonly [RegExp, string])[] = [
  [/(?:key|modulus) too small/, 'the key is too short to be secure: an RSA key needs 2048 bits'],
  [/md too weak|digest too weak/, 'the certificate is signed with a digest that is too weak to be secure'],
  [/wrong curve|unsupported (?:elliptic )?curve|unknown group/, 'the key uses a curve that TLS does not support'],
]

/**
 * Why a server cannot use this certificate and key, in words, without any part of the key. `error` is what the server
 * threw.
 */
export function certificateProblem({ cert, key }: Pair, error: unknown): string {
  const certificate = attempt(() => new X509Certificate(cert))
  if (!certificate) return `--tls-cert ${contentOf(cert)} no certificate in PEM format (-----BEGIN CERTIFICATE-----)`
  const parsed = privateKey(key)
  if (typeof parsed === 'string') return parsed
  if (!certificate.checkPrivateKey(parsed))
    return 'the key of --tls-key does not belong to the first certificate of --tls-cert'
  const text = error instanceof Error ? error.message : ''
  const [, meaning] = meanings.find(([pattern]) => pattern.test(text)) ?? []
  // OpenSSL's message names the problem and never the key. Its last part is the reason.
  return meaning ?? `TLS refuses them: ${text.split(':').at(-1)?.trim() || 'without a reason'}`
}

function privateKey(key: string | Buffer): KeyObject | string {
  if (/ENCRYPTED/.test(String(key)))
    return 'the key of --tls-key is encrypted, and svc has no passphrase for it: openssl pkey -in FILE -out KEY'
  return (
    attempt(() => createPrivateKey(key)) ??
    `--tls-key ${contentOf(key)} no private key in PEM format (-----BEGIN PRIVATE KEY-----)`
  )
}

const contentOf = (pem: string | Buffer): string => (String(pem).trim() === '' ? 'is empty:' : 'contains')

function attempt<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}
