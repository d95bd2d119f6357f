import { count, quote, type Redact, sanitize } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { type SigningKey, signatures } from './keys.ts'
import { type OidcJson, object, read } from './provider.ts'

/** Maximum characters of a token. Tokens travel in a header, for which servers accept 8 or 16 thousand. */
const maxToken = 64 * 1024

/** The form of an access token: only a signed one can be decoded (RFC 7515, 3.1; RFC 7516, 3.1). */
export type Token =
  | { readonly form: 'signed'; readonly header: OidcJson; readonly claims: OidcJson }
  | { readonly form: 'encrypted' | 'opaque' }

/**
 * Decodes a token without trusting it: its issuer may have written our own secrets into it. Throws ProbeError `data`
 * for a token that is too long.
 */
export function readToken(token: string, redact: Redact): Token {
  if (token.length > maxToken)
    throw new ProbeError('data', `the token has ${token.length} characters, too many for a header`)
  const parts = token.split('.')
  const header = decoded(parts[0])
  if (parts.length === 5 && header?.enc !== undefined) return { form: 'encrypted' }
  const claims = decoded(parts[1])
  if (parts.length !== 3 || header?.alg === undefined || claims === undefined) return { form: 'opaque' }
  return { form: 'signed', header: redacted(header, redact), claims: redacted(claims, redact) }
}

/**
 * Redacts a JSON value. Values without a secret stay unchanged, so that they can be compared exactly; a redacted value
 * never equals anything.
 */
function redacted(json: OidcJson, redact: Redact): OidcJson {
  const hush = (value: unknown): unknown =>
    typeof value === 'string' && redact(value).includes(hidden) ? hidden : value
  const entries = Object.entries(json).map(([name, value]) => [
    name,
    Array.isArray(value) ? (value as readonly unknown[]).map(hush) : hush(value),
  ])
  return Object.fromEntries(entries) as OidcJson
}
const hidden = '[secret]'

function decoded(part: string | undefined): OidcJson | undefined {
  if (part === undefined || !/^[\w-]+$/.test(part)) return undefined
  const body = read(Buffer.from(part, 'base64url'))
  return 'json' in body && typeof body.json === 'object' && body.json !== null ? object(body.json) : undefined
}

/** Header members in which a token names its own key. A verifier that trusts them would trust a forger. */
const foreignKeys = ['jwk', 'jku', 'x5u'] as const

export const loadJose = () => import('jose')

/** Why a token's signature proves nothing; undefined if it verifies with a key of the provider. */
export async function unsigned(
  token: string,
  header: OidcJson,
  keys: readonly SigningKey[],
): Promise<string | undefined> {
  const alg = typeof header.alg === 'string' ? header.alg : ''
  if (alg.toLowerCase() === 'none') return 'the token is not signed (alg none): anyone can forge one'
  if (/^HS\d+$/.test(alg))
    return `the token is signed with a shared secret (${sanitize(alg, 16)}): whoever verifies it can forge it`
  if (!signatures.has(alg)) return `the token is signed with ${quote(alg, 32)}, which svc does not support`
  const foreign = foreignKeys.find((name) => header[name] !== undefined)
  if (foreign !== undefined) return `the token contains its own key (${foreign}), which svc does not trust`
  const kid = typeof header.kid === 'string' ? header.kid : undefined
  const subject = kid === undefined ? 'names no kid' : `is signed with the kid ${quote(kid, 64)}`
  const { compactVerify, createLocalJWKSet } = await loadJose()
  try {
    await compactVerify(token, createLocalJWKSet({ keys: [...keys] }), { algorithms: [...signatures] })
    return undefined
  } catch (error) {
    switch ((error as { code?: unknown }).code) {
      case 'ERR_JWKS_NO_MATCHING_KEY': {
        const why =
          kid === undefined ? 'none is for its algorithm' : 'check whether the key was rotated but not published'
        return `the token ${subject}, but matches no key of the provider (${count(keys.length, 'key')}): ${why}`
      }
      case 'ERR_JWKS_MULTIPLE_MATCHING_KEYS':
        return `the token ${subject}, but several keys of the provider match: clients cannot choose`
      case 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED':
        return `the signature of the token is wrong: it ${subject}, but that key did not make the signature`
      default:
        return `the signature of the token cannot be verified: ${sanitize((error as Error).message, 120)}`
    }
  }
}

/** Why the claims of a token are not valid at a given time (RFC 9068, 4). */
export function wrongClaims(
  claims: OidcJson,
  expected: {
    readonly issuer: string
    readonly audience: string | undefined
    readonly at: Date
    readonly leewayMs: number
  },
): readonly string[] {
  const { iss, aud, exp, nbf } = claims
  const now = expected.at.getTime()
  const wrong: string[] = []
  if (iss !== expected.issuer) wrong.push(`iss is ${text(iss)}, not ${quote(expected.issuer, 200)}`)
  const audiences = (Array.isArray(aud) ? (aud as readonly unknown[]) : [aud]).slice(0, 100)
  if (expected.audience !== undefined && !audiences.includes(expected.audience)) {
    wrong.push(`aud is ${audiences.slice(0, 5).map(text).join(', ')}, not ${quote(expected.audience, 200)}`)
  }
  if (exp === undefined) wrong.push('exp is missing: the token never expires')
  else if (!isTime(exp)) wrong.push('exp is not a time')
  else if (exp * 1_000 <= now) wrong.push(`it expired at ${day(exp)}, before it arrived: check the clocks`)
  if (nbf !== undefined && !isTime(nbf)) wrong.push('nbf is not a time')
  else if (isTime(nbf) && nbf * 1_000 > now + expected.leewayMs)
    wrong.push(`it is not valid before ${day(nbf)}: check the clocks`)
  return wrong
}

/** True for seconds since 1970 within the range of a Date. */
export const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Math.abs(value) <= 8_640_000_000_000
const day = (seconds: number): string => `${new Date(seconds * 1_000).toISOString().slice(0, 19).replace('T', ' ')} UTC`
const text = (value: unknown): string => {
  if (value === undefined) return 'missing'
  return typeof value === 'string' ? quote(value, 200) : 'not text'
}

/**
 * The milliseconds by which the provider's clock is ahead of ours (negative: behind), as far as the measurement proves
 * it: the provider read its clock between two readings of ours, and reports whole seconds.
 */
export function aheadBy(seconds: number, sent: Date, receivedAt: Date): number {
  const from = Math.floor(seconds) * 1_000
  if (from > receivedAt.getTime()) return from - receivedAt.getTime()
  return Math.min(0, from + 1_000 - sent.getTime())
}
