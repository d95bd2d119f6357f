import { createPublicKey, type JsonWebKey, X509Certificate } from 'node:crypto'
import { count } from '../../../base/format.ts'
import { quote } from '../../../base/net/text.ts'
import { type OidcJson, object } from './provider.ts'

/** Maximum number of keys to inspect: rotation needs two or three. */
export const maxKeys = 100
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const
/** The members that make up a public key, for each type that signs or encrypts (RFC 7518, RFC 8037). */
const publicMembers = { RSA: ['n', 'e'], EC: ['crv', 'x', 'y'], OKP: ['crv', 'x'] } as const
const curves = { EC: ['P-256', 'P-384', 'P-521'], OKP: ['Ed25519', 'Ed448', 'X25519', 'X448'] } as const
const maxBits = 16_384

/** The signature algorithms that svc verifies; each uses a private key, never a shared secret. */
export const signatures: ReadonlySet<string> = new Set(
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '),
)
const encryptions = /^(?:RSA-OAEP(?:-256|-384|-512)?|RSA1_5|ECDH-ES(?:\+A(?:128|192|256)KW)?)$/
const lessUsual = new Set(['ES256K', 'Ed448'])

/** A key that may have signed a token, reduced to its public members. */
export type SigningKey = JsonWebKey & { readonly kty: string; readonly kid?: string; readonly alg?: string }

export type KeySet = ReturnType<typeof inspectKeys>

/** Lists the problems of a key set (RFC 7517), worst first. Makes no requests. */
export function inspectKeys(json: unknown, keyBits: number) {
  const listed = object(json).keys
  const empty = { warnings: [], signing: [], total: 0, newest: undefined }
  if (!Array.isArray(listed)) return { ...empty, problems: ['the document has no list of keys'] }
  if (listed.length > maxKeys) {
    return {
      ...empty,
      total: listed.length,
      problems: [`the document has ${listed.length} keys (limit ${maxKeys}): check the key rotation`],
    }
  }
  const keys = (listed as readonly unknown[]).map(object)
  const inspected = keys.map((key, index) => inspect(key, nameOf(key, index), keyBits, keys.length > 1))
  const signing = inspected.flatMap(({ signs }) => signs ?? [])
  const none = signing.length === 0 ? ['the document has no valid key for verifying signatures'] : []
  const dates = inspected.flatMap(({ signs, since }) => (signs && since ? since.getTime() : []))
  return {
    problems: [
      ...inspected.flatMap(({ exposed }) => exposed ?? []),
      ...doubled(keys),
      ...inspected.flatMap(({ problem }) => problem ?? []),
      ...none,
    ],
    warnings: inspected.flatMap(({ warning }) => warning ?? []),
    signing,
    /** The number of all keys, including those that are not signing keys. */
    total: keys.length,
    /** The start of validity of the most recent signing certificate (x5c). */
    newest: dates.length === 0 ? undefined : new Date(Math.max(...dates)),
  }
}

const nameOf = (key: OidcJson, index: number): string =>
  typeof key.kid === 'string' ? `key ${quote(key.kid, 64)}` : `key ${index + 1}`

function doubled(keys: readonly OidcJson[]): readonly string[] {
  const kids = keys.flatMap(({ kid }) => (typeof kid === 'string' ? [kid] : []))
  const twice = [...new Set(kids.filter((kid, index) => kids.indexOf(kid) !== index))]
  return twice.map(
    (kid) =>
      `${count(kids.filter((one) => one === kid).length, 'key')} have the kid ${quote(kid, 64)}: clients may choose either`,
  )
}

type Inspected = {
  /** Set if the key set exposes a member that must stay secret. */
  readonly exposed?: string
  readonly problem?: string
  readonly warning?: string
  readonly signs?: SigningKey
  readonly since?: Date | undefined
}

function inspect(key: OidcJson, name: string, keyBits: number, several: boolean): Inspected {
  const { kty, kid, use, alg } = key
  if (kty === 'oct') return { exposed: `${name} is a published shared secret: replace it now` }
  if (privateMembers.some((member) => key[member] !== undefined)) {
    return { exposed: `${name} reveals its private part: anyone can sign tokens; replace it now` }
  }
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') {
    return { warning: `${name} is of the type ${display(kty)}, which svc does not support: not checked` }
  }
  const weak = kty === 'RSA' ? weakness(key, keyBits) : unknownCurve(kty, key.crv)
  if (weak !== undefined) return { problem: `${name} ${weak}` }
  const jwk = Object.fromEntries(publicMembers[kty].map((member) => [member, key[member]]))
  const made = imported({ kty, ...jwk })
  if (made === undefined) return { problem: `${name} is not a valid ${kty} key` }
  if (kid !== undefined && (typeof kid !== 'string' || kid === ''))
    return { problem: `${name} has a kid that is not text` }
  if (kid === undefined && several)
    return { problem: `${name} has no kid: clients cannot distinguish it from the others` }
  if (use !== undefined && use !== 'sig' && use !== 'enc')
    return { warning: `${name} is for the use ${display(use)}, which is not known` }
  const operations = Array.isArray(key.key_ops) ? (key.key_ops as readonly unknown[]) : undefined
  if (alg !== undefined && !isKnown(alg)) {
    return alg === 'none'
      ? { problem: `${name} is for the algorithm none` }
      : { warning: `${name} is for the algorithm ${display(alg)}, which is not known` }
  }
  const certified = certificateOf(key.x5c)
  if (certified && !made.equals(certified.publicKey))
    return { problem: `${name} has a certificate of another key (x5c)` }
  const encrypts =
    use === 'enc' ||
    (typeof alg === 'string' && encryptions.test(alg)) ||
    (operations !== undefined && !operations.includes('verify')) ||
    key.crv === 'X25519' ||
    key.crv === 'X448'
  if (encrypts) return {}
  const signs = {
    kty,
    ...jwk,
    ...(typeof kid === 'string' ? { kid } : {}),
    ...(typeof alg === 'string' ? { alg } : {}),
  } as SigningKey
  const nameless = kid === undefined ? { warning: `${name} has no kid: the next rotation will confuse clients` } : {}
  return { signs, since: certified?.validFromDate, ...nameless }
}

const display = (value: unknown): string => (typeof value === 'string' ? quote(value, 32) : 'that is not text')

const isKnown = (alg: unknown): boolean =>
  typeof alg === 'string' && (signatures.has(alg) || lessUsual.has(alg) || encryptions.test(alg))

function weakness(key: OidcJson, least: number): string | undefined {
  const [n, e] = [bytesOf(key.n), bytesOf(key.e)]
  if (n === undefined || e === undefined) return 'is not a valid RSA key'
  const bits = bitsOf(n)
  if (bits < least) return `is RSA of ${bits} bits (fail below ${least})`
  if (bits > maxBits) return `is RSA of ${bits} bits: too long for clients`
  const exponent = e.length > 8 ? undefined : Number(`0x${e.toString('hex')}`)
  return exponent !== undefined && (exponent < 3 || exponent % 2 === 0)
    ? `has the exponent ${exponent}: its signatures prove nothing`
    : undefined
}

/** The bit length of an unsigned number, without leading zeros. */
function bitsOf(bytes: Buffer): number {
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? 0 : (bytes.length - first) * 8 - Math.clz32(bytes[first] ?? 0) + 24
}

function bytesOf(value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || value === '' || !/^[\w-]+$/.test(value)) return undefined
  return Buffer.from(value, 'base64url')
}

function unknownCurve(kty: 'EC' | 'OKP', crv: unknown): string | undefined {
  const supported: readonly string[] = curves[kty]
  return typeof crv === 'string' && supported.includes(crv)
    ? undefined
    : `is on the curve ${display(crv)} (known: ${supported.join(', ')})`
}

function imported(jwk: JsonWebKey) {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return undefined
  }
}

/** The certificate of the key itself, which comes first in the chain (RFC 7517, 4.7). */
function certificateOf(x5c: unknown): X509Certificate | undefined {
  const first: unknown = Array.isArray(x5c) ? x5c[0] : undefined
  if (typeof first !== 'string' || first.length > 64 * 1024) return undefined
  try {
    return new X509Certificate(Buffer.from(first, 'base64'))
  } catch {
    return undefined
  }
}
