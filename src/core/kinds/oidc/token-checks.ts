import { randomBytes } from 'node:crypto'
import { atMost, type CheckContext, fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { quote, sanitize } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { SettingsSpec } from '../../settings/index.ts'
import { withOthers } from './checks.ts'
import { type OidcConnection, onOidc } from './connection.ts'
import { aheadBy, isTime, readToken, type Token, unsigned, wrongClaims } from './jwt.ts'
import { type OidcJson, type SharedSettings, sharedSettings } from './provider.ts'
import { byClient, byPassword, byRefresh, introspect, revoke, showWrongSecret, type Tokens } from './token.ts'

const { issuer, clientId, clientSecret, username: userSetting, audience, resource, latency } = sharedSettings

const skew = {
  type: 'threshold',
  unit: 'duration',
  default: { warn: 2_000, limit: 30_000 },
  doc: 'Maximum difference between the clock of the provider (iat of a token, Date header) and ours',
} as const satisfies SettingsSpec[string]

type Grant = {
  readonly address: string
  readonly form: Token['form']
  readonly ms: number
} & Pick<Tokens, 'type' | 'expiresIn'>

/** A token, and everything that it and the accompanying answer show. */
type FirstGrant = Grant & {
  /** Undefined for a token that cannot be decoded. */
  readonly signed?: {
    /** Why the signature proves nothing; undefined if it verifies. */
    readonly wrong: string | undefined
    readonly header: OidcJson
    readonly claims: OidcJson
    readonly at: Date
  }
  /** The milliseconds by which the provider's clock is ahead, according to each source. */
  readonly ahead: readonly { readonly by: string; readonly ms: number }[]
}

const grantOf = (address: string, { answer, type, expiresIn }: Tokens, { form }: Token): Grant => ({
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
  const wrong =
    oidc.keys === undefined
      ? 'not verified: the keys of the provider were not read'
      : await unsigned(tokens.access, header, oidc.keys.signing)
  return { ...grant, signed: { wrong, header, claims, at: receivedAt } }
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
    const { wrong, header } = signed
    if (wrong !== undefined) return fail('signature', 'data', `${address}: ${wrong}`)
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
    const [first, ...more] = wrongClaims(signed.claims, conditions)
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

export const wrongSecret = onOidc({
  depth: 'Advanced',
  results: { 'wrong secret': 'A wrong secret is refused' },
  settings: {
    clientId,
    refusesWrongSecret: {
      type: 'flag',
      default: false,
      doc: 'In Advanced, a wrong secret must be refused. Use a dedicated client, because it may get locked',
    },
  },
  when: ['refusesWrongSecret'],
  observe: async (oidc) => {
    if (oidc.clientTokens === undefined) return undefined
    // A random value, so that it is nobody's real secret.
    return { address: oidc.address, ...(await showWrongSecret(oidc, randomBytes(24).toString('base64url'))) }
  },
  evaluate: (observation, settings) => {
    if (observation === undefined) return withoutToken('wrong secret')
    const { address, wrong, why } = observation
    const client = quote(settings.clientId ?? '', 64)
    if (wrong === 'accepted') {
      const message = `${address} issued ${client} a token for a wrong secret: anyone can act as this client`
      return fail('wrong secret', 'data', message)
    }
    if (wrong === 'unproved') {
      return warn('wrong secret', `${address} issued ${client} no token, but not because of the wrong secret: ${why}`)
    }
    return ok('wrong secret', `${address} refused a wrong secret for ${client} (${why})`)
  },
})
