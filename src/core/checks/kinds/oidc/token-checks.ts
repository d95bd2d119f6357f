import { randomBytes } from 'node:crypto'
import { count, showDuration } from '../../../base/format.ts'
import { quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { SettingsSpec } from '../../../base/settings/index.ts'
import { humanTime, usualZone } from '../../../base/zone.ts'
import { atMost, type CheckContext, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { withOthers } from './checks.ts'
import { type OidcConnection, onOidc } from './connection.ts'
import { type SigningKey, signatures } from './keys.ts'
import { type OidcJson, object, read, type SharedSettings, sharedSettings } from './provider.ts'
import { byClient, byPassword, byRefresh, introspect, presentOtherSecret, revoke, type Tokens } from './token.ts'

/** Maximum characters of a token. Tokens travel in a header, for which servers accept 8 or 16 thousand. */
const maxToken = 64 * 1024

/** The form of an access token: only a signed one can be decoded (RFC 7515, 3.1; RFC 7516, 3.1). */
type Token =
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
async function unsigned(token: string, header: OidcJson, keys: readonly SigningKey[]): Promise<string | undefined> {
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
function claimProblems(
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
  const problems: string[] = []
  if (iss !== expected.issuer) problems.push(`iss is ${text(iss)}, not ${quote(expected.issuer, 200)}`)
  const audiences = (Array.isArray(aud) ? (aud as readonly unknown[]) : [aud]).slice(0, 100)
  if (expected.audience !== undefined && !audiences.includes(expected.audience)) {
    problems.push(`aud is ${audiences.slice(0, 5).map(text).join(', ')}, not ${quote(expected.audience, 200)}`)
  }
  if (exp === undefined) problems.push('exp is missing: the token never expires')
  else if (!isTime(exp)) problems.push('exp is not a time')
  else if (exp * 1_000 <= now) problems.push(`it expired at ${day(exp)}, before it arrived: check the clocks`)
  if (nbf !== undefined && !isTime(nbf)) problems.push('nbf is not a time')
  else if (isTime(nbf) && nbf * 1_000 > now + expected.leewayMs)
    problems.push(`it is not valid before ${day(nbf)}: check the clocks`)
  return problems
}

/** True for seconds since 1970 within the range of a Date. */
const isTime = (value: unknown): value is number => typeof value === 'number' && Math.abs(value) <= 8_640_000_000_000
const day = (seconds: number): string => humanTime(seconds * 1_000, { zone: usualZone })
const text = (value: unknown): string => {
  if (value === undefined) return 'missing'
  return typeof value === 'string' ? quote(value, 200) : 'not text'
}

/**
 * The milliseconds by which the provider's clock is ahead of ours (negative: behind), as far as the measurement proves
 * it: the provider read its clock between two readings of ours, and reports whole seconds.
 */
function aheadBy(seconds: number, sent: Date, receivedAt: Date): number {
  const from = Math.floor(seconds) * 1_000
  if (from > receivedAt.getTime()) return from - receivedAt.getTime()
  return Math.min(0, from + 1_000 - sent.getTime())
}

const { issuer, clientId, clientSecret, username: userSetting, audience, resource, latency } = sharedSettings

const skew = {
  type: 'threshold',
  unit: 'duration',
  default: { warn: 2_000, limit: 30_000 },
  doc: 'Maximum difference between the clock of the provider (iat of a token, Date header) and that of this machine',
} as const satisfies SettingsSpec[string]

type Grant = ReturnType<typeof grantOf>

/** A token, and everything that it and the accompanying answer show. */
type FirstGrant = Grant & {
  /** Undefined for a token that cannot be decoded. */
  readonly signed?: {
    /** Why the signature proves nothing; undefined if it verifies. */
    readonly problem: string | undefined
    readonly header: OidcJson
    readonly claims: OidcJson
    readonly at: Date
  }
  /** The milliseconds by which the provider's clock is ahead, according to each source. */
  readonly ahead: readonly { readonly by: string; readonly ms: number }[]
}

const grantOf = (address: string, { answer, type, expiresIn }: Tokens, { form }: Token) => ({
  address,
  form,
  ms: answer.ms,
  type,
  expiresIn,
})

/**
 * Requests the client's token, or the account's if the client has no secret. Only this first token is inspected,
 * because the others are issued in the same way.
 */
async function observeFirstToken(oidc: OidcConnection): Promise<FirstGrant> {
  const { address, provider, settings, document } = oidc
  if (document.issuer !== settings.issuer) {
    // Discovery 1.0, 4.3: such a document must not be used.
    throw new ProbeError('dependency', 'nothing was sent: the discovery document is that of another issuer')
  }
  const isClient = settings.clientSecret !== undefined
  const tokens = await (isClient ? byClient(oidc) : byPassword(oidc))
  if (isClient) oidc.clientTokens = tokens
  oidc.granted = true
  oidc.refreshToken = tokens.refresh
  const token = readToken(tokens.access, provider.redact)
  const { sent, receivedAt, headers } = tokens.answer
  const ahead: { by: string; ms: number }[] = []
  if (token.form === 'signed' && isTime(token.claims.iat)) {
    ahead.push({ by: 'iat of the token', ms: aheadBy(token.claims.iat, sent, receivedAt) })
  }
  const date = Date.parse(headers.date ?? '')
  if (!Number.isNaN(date)) ahead.push({ by: 'its Date header', ms: aheadBy(date / 1_000, sent, receivedAt) })
  const grant = { ...grantOf(address, tokens, token), ahead }
  if (token.form !== 'signed') return grant
  const { header, claims } = token
  const problem =
    oidc.keys === undefined
      ? 'not verified: the keys of the provider were not read'
      : await unsigned(tokens.access, header, oidc.keys.signing)
  return { ...grant, signed: { problem, header, claims, at: receivedAt } }
}

const forms: Readonly<Record<Token['form'], string>> = {
  signed: 'a signed token',
  encrypted: 'an encrypted token (readable only by its audience)',
  opaque: 'an opaque token (readable only by the provider)',
}

function evaluateGrant<const Name extends string>(
  check: Name,
  whom: string,
  { address, form, ms: value, type, expiresIn }: Grant,
  { latency: threshold }: Pick<SharedSettings, 'latency'>,
): Result<Name> {
  if (expiresIn !== undefined && expiresIn <= 0) {
    return fail(check, 'data', `${address} issued a token that has already expired (expires_in ${expiresIn})`)
  }
  const ends = expiresIn === undefined ? '' : `, valid for ${showDuration(expiresIn * 1_000)}`
  const kind = type === '' ? ', without a token_type' : ''
  const what = `${address} issued ${whom} ${forms[form]}${ends}${kind}, in`
  return atMost({ check, what, value, unit: 'duration', threshold })
}

export const clientToken = onOidc({
  depth: 'Advanced',
  results: { token: 'The client gets a token with its credentials in time' },
  settings: { clientId, clientSecret, latency },
  when: ['clientSecret'],
  observe: observeFirstToken,
  evaluate: (grant, settings) =>
    evaluateGrant('token', `the client ${quote(settings.clientId ?? '', 64)}`, grant, settings),
})

const userResult = { user: 'The account gets a token with its password in time' } as const
const userSettings = { username: userSetting, clientSecret, latency } as const

/** Without a client secret, the account's token is the first one. */
export const onlyUserToken = onOidc({
  depth: 'Advanced',
  results: userResult,
  settings: userSettings,
  when: ['username'],
  applies: (_, settings) => settings.clientSecret === undefined,
  observe: observeFirstToken,
  evaluate: (grant, settings) => evaluateGrant('user', quote(settings.username ?? '', 64), grant, settings),
})

export const signature = onOidc({
  depth: 'Advanced',
  results: { signature: 'A signed token can be verified with a key of the provider' },
  settings: { clientId },
  when: ['clientId'],
  emptyWhere: 'the token is not signed',
  observe: observeFirstToken,
  evaluate: ({ address, signed }): Result<'signature'> | [] => {
    if (!signed) return []
    const { problem, header } = signed
    if (problem !== undefined) return fail('signature', 'data', `${address}: ${problem}`)
    const by = typeof header.kid === 'string' ? `, kid ${quote(header.kid, 64)}` : ''
    const how = `${sanitize(String(header.alg), 16)}${by}`
    return ok('signature', `${address}: the token is signed with a key of the provider (${how})`)
  },
})

export const claims = onOidc({
  depth: 'Advanced',
  results: { claims: 'A signed token is from this issuer, for `audience`, and currently valid' },
  settings: { issuer, clientId, audience, resource, skew },
  when: ['clientId'],
  emptyWhere: 'the token is not signed, and `audience` is not set',
  observe: observeFirstToken,
  evaluate: ({ address, form, signed }, settings): Result<'claims'> | [] => {
    if (!signed && settings.audience !== undefined) {
      return notChecked(
        'claims',
        'missing',
        `the audience: ${address} issued ${forms[form]}; remove audience if that is intended`,
      )
    }
    if (!signed) return []
    const expected = settings.audience ?? settings.resource
    const leewayMs = settings.skew.limit ?? settings.skew.warn ?? 0
    const conditions = { issuer: settings.issuer, audience: expected, at: signed.at, leewayMs }
    const [first, ...more] = claimProblems(signed.claims, conditions)
    if (first !== undefined) {
      return fail('claims', 'data', `${address}: the token: ${withOthers(first, more)}`, { details: more })
    }
    const whom =
      expected === undefined
        ? '; its audience is not checked, because audience is not set'
        : ` for ${quote(expected, 120)}`
    return ok('claims', `${address}: the token is from this issuer and currently valid${whom}`)
  },
})

export const clock = onOidc({
  depth: 'Advanced',
  results: { clock: "The provider's clock agrees with ours" },
  settings: { clientId, skew },
  when: ['clientId'],
  emptyWhere: 'no answer contains a time',
  observe: observeFirstToken,
  evaluate: ({ address, ahead }, { skew: threshold }): Result<'clock'> | [] => {
    const [worst, ...rest] = [...ahead].sort((a, b) => Math.abs(b.ms) - Math.abs(a.ms))
    if (!worst) return []
    const { by, ms } = worst
    const what = `the clock of ${address} is ${ms < 0 ? 'behind' : 'ahead of'} ours (${by}) by`
    const details = rest.map((one) => `by ${one.by}: ${showDuration(one.ms)}`)
    return atMost({ check: 'clock', what, value: Math.abs(ms), unit: 'duration', threshold, details })
  },
})

/** The result of a check that needs a token, when an earlier check could not get one. */
const withoutToken = <const Name extends string>(check: Name, cause: 'token' | 'user' = 'token'): Result<Name> =>
  notChecked(check, 'missing', 'the provider issued no token', { cause })

export const introspection = onOidc({
  depth: 'Advanced',
  results: { introspection: 'The provider reports its token as active' },
  settings: {
    introspect: { type: 'flag', default: false, doc: 'Ask the provider whether the token is active (RFC 7662)' },
  },
  when: ['introspect'],
  observe: async (oidc) => ({
    address: oidc.address,
    ...(oidc.clientTokens ? await introspect(oidc, oidc.clientTokens.access) : { active: undefined }),
  }),
  evaluate: ({ address, active }) =>
    active === undefined
      ? withoutToken('introspection')
      : active
        ? ok('introspection', `${address} reports its token as active`)
        : fail(
            'introspection',
            'data',
            `${address} reports the token that it has just issued as not active: Keycloak does so if the client is not in the audience (aud) of its token`,
          ),
})

/** Runs only after the client has got its own token: otherwise the fault is the provider's or the client's. */
export const userToken = onOidc({
  depth: 'Advanced',
  results: userResult,
  settings: userSettings,
  when: ['username'],
  applies: (_, settings) => settings.clientSecret !== undefined,
  observe: async (oidc) => {
    if (oidc.clientTokens === undefined) return undefined
    const tokens = await byPassword(oidc)
    oidc.refreshToken = tokens.refresh ?? oidc.refreshToken
    return grantOf(oidc.address, tokens, readToken(tokens.access, oidc.provider.redact))
  },
  evaluate: (grant, settings) =>
    grant === undefined
      ? withoutToken('user')
      : evaluateGrant('user', quote(settings.username ?? '', 64), grant, settings),
})

export const refresh = onOidc({
  depth: 'Advanced',
  results: { refresh: 'A refresh token, if there is one, yields a new token' },
  settings: { clientId, clientSecret, username: userSetting, latency },
  when: ['clientId'],
  emptyWhere: 'client credentials yield no refresh token',
  observe: async (oidc, { username: user }, context) => {
    const { address, refreshToken, granted } = oidc
    if (refreshToken !== undefined) return await observeRefresh(oidc, refreshToken, context)
    return { address, granted, user }
  },
  evaluate: (observation, settings) => {
    if (!('ms' in observation)) {
      if (!observation.granted) return withoutToken('refresh', settings.clientSecret ? 'token' : 'user')
      // Client credentials yield no refresh token (RFC 6749, 4.4.3).
      if (observation.user === undefined) return []
      const why = `${observation.address} issued no refresh token for ${quote(observation.user, 64)}: request one with scope, e.g. offline_access`
      return warn('refresh', `not checked: ${why}`, { notChecked: 'missing' })
    }
    const { address, ms: value, rotated, revoked } = observation
    const threshold = settings.latency
    const details = revoked ? [] : ['its session was not revoked and ends on its own']
    const what = `${address} issued a new token for the refresh token${rotated ? ' and replaced it' : ''} in`
    return atMost({ check: 'refresh', what, value, unit: 'duration', threshold, details })
  },
})

/** Exchanges a refresh token for a new token, and then revokes the grant, so that no unused session remains. */
async function observeRefresh(oidc: OidcConnection, token: string, { now, signal }: CheckContext) {
  const since = now()
  const tokens = await byRefresh(oidc, token)
  const ms = now() - since
  const revoked = await revoke(oidc, tokens.refresh ?? token).catch((error: unknown) => {
    if (signal.aborted) throw error
    return false
  })
  return { address: oidc.address, ms, rotated: tokens.refresh !== undefined && tokens.refresh !== token, revoked }
}

export const secretRefusal = onOidc({
  depth: 'Advanced',
  results: { 'wrong secret': 'A wrong secret is refused' },
  settings: {
    clientId,
    refusesWrongSecret: {
      type: 'flag',
      default: false,
      doc: 'In Advanced, the provider must refuse a wrong secret. Use a dedicated client, because the provider may lock it',
    },
  },
  when: ['refusesWrongSecret'],
  observe: async (oidc) => {
    if (oidc.clientTokens === undefined) return undefined
    // A random value, so that it is nobody's real secret.
    return { address: oidc.address, ...(await presentOtherSecret(oidc, randomBytes(24).toString('base64url'))) }
  },
  evaluate: (observation, settings) => {
    if (observation === undefined) return withoutToken('wrong secret')
    const { address, outcome, why } = observation
    const client = quote(settings.clientId ?? '', 64)
    if (outcome === 'accepted') {
      const message = `${address} issued ${client} a token for a wrong secret: anyone can act as this client`
      return fail('wrong secret', 'data', message)
    }
    if (outcome === 'unproved') {
      return warn('wrong secret', `${address} issued ${client} no token, but not because of the wrong secret: ${why}`)
    }
    return ok('wrong secret', `${address} refused a wrong secret for ${client} (${why})`)
  },
})
