import { quote, sanitize } from '../../../base/net/text.ts'
import { ProbeError, RefusedSignInError } from '../../../base/probe-error.ts'
import {
  endpointAt,
  type OidcAnswer,
  type OidcJson,
  type OidcProvider,
  type OidcSession,
  object,
  type SharedSettings,
  secretFor,
} from './provider.ts'

export type Tokens = ReturnType<typeof tokensOf>

type Credentials = { readonly authorization?: string; readonly fields: OidcJson; readonly secrets: readonly string[] }

/** Form-encodes one half of the credentials before they are combined (RFC 6749, 2.3.1). */
const encoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

/** The client's credentials, in a form that the provider accepts. `secret` replaces the configured one. */
async function credentials(session: OidcSession, url: URL, secret?: string): Promise<Credentials> {
  const { settings, document, provider } = session
  const id = settings.clientId ?? ''
  if (settings.clientSecret === undefined) return { fields: { client_id: id }, secrets: [] }
  const offered = document.token_endpoint_auth_methods_supported
  const methods = Array.isArray(offered) ? (offered as readonly unknown[]) : ['client_secret_basic']
  const basic = methods.includes('client_secret_basic')
  if (!basic && !methods.includes('client_secret_post')) {
    const why =
      'accepts no client secret (token_endpoint_auth_methods_supported), and this monitor has no other credential'
    throw new ProbeError('data', `${provider.address} ${why}: nothing was sent`)
  }
  const clientSecret = secret ?? (await secretFor(url, settings.clientSecret, 'clientSecret', session))
  if (!basic)
    return { fields: { client_id: id, client_secret: clientSecret }, secrets: [clientSecret, encoded(clientSecret)] }
  const packed = Buffer.from(`${encoded(id)}:${encoded(clientSecret)}`).toString('base64')
  return { authorization: `Basic ${packed}`, fields: {}, secrets: [clientSecret, encoded(clientSecret), packed] }
}

async function post(
  session: OidcSession,
  url: URL,
  fields: Readonly<Record<string, string | undefined>>,
  { secret, secrets = [] }: { readonly secret?: string | undefined; readonly secrets?: readonly string[] } = {},
): Promise<OidcAnswer> {
  const client = await credentials(session, url, secret)
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...fields, ...client.fields })) {
    if (typeof value === 'string') form.set(name, value)
  }
  return session.provider.ask(url, {
    form,
    authorization: client.authorization,
    secrets: [...client.secrets, ...secrets.flatMap((one) => [one, encoded(one)])],
  })
}

/**
 * Requests a token with the client's own credentials (RFC 6749, 4.4). Throws ProbeError; `auth` if the client is
 * refused.
 */
export async function byClient(session: OidcSession): Promise<Tokens> {
  const url = endpointAt(session, 'token_endpoint')
  return tokensOf(
    await post(session, url, { grant_type: 'client_credentials', ...tokenParameters(session.settings) }),
    session,
    clientOf(session),
  )
}

/** Requests a token with the account's password (RFC 6749, 4.3). Throws like `byClient`. */
export async function byPassword(session: OidcSession): Promise<Tokens> {
  const { settings, document, provider } = session
  const grants = document.grant_types_supported
  if (Array.isArray(grants) && !grants.includes('password')) {
    throw new ProbeError('data', `${provider.address} does not offer the password grant: remove user and password`)
  }
  const url = endpointAt(session, 'token_endpoint')
  const password = settings.password === undefined ? '' : await secretFor(url, settings.password, 'password', session)
  const fields = { grant_type: 'password', username: settings.username, password, ...tokenParameters(settings) }
  return tokensOf(
    await post(session, url, fields, { secrets: [password] }),
    session,
    quote(settings.username ?? '', 64),
  )
}

/** Requests a new token with a refresh token. Throws ProbeError. */
export async function byRefresh(session: OidcSession, refresh: string): Promise<Tokens> {
  const url = endpointAt(session, 'token_endpoint')
  const fields = { grant_type: 'refresh_token', refresh_token: refresh }
  return tokensOf(
    await post(session, url, fields, { secrets: [refresh] }),
    session,
    `the refresh token of ${clientOf(session)}`,
    'data',
  )
}

const clientOf = ({ settings }: OidcSession): string => `the client ${quote(settings.clientId ?? '', 64)}`
const tokenParameters = ({ scope, audience, resource }: SharedSettings) => ({ scope, audience, resource })

/** Revokes a refresh token (RFC 7009). Returns false if the provider does not support that or refuses. */
export async function revoke(session: OidcSession, refresh: string): Promise<boolean> {
  if (session.document.revocation_endpoint === undefined) return false
  const url = endpointAt(session, 'revocation_endpoint')
  const fields = { token: refresh, token_type_hint: 'refresh_token' }
  return (await post(session, url, fields, { secrets: [refresh] })).status === 200
}

/** Whether the provider reports its own token as active (RFC 7662). Throws ProbeError. */
export async function introspect(session: OidcSession, token: string): Promise<{ readonly active: boolean }> {
  const url = endpointAt(session, 'introspection_endpoint')
  const fields = { token, token_type_hint: 'access_token' }
  const answer = await post(session, url, fields, { secrets: [token] })
  const active = 'json' in answer.body ? object(answer.body.json).active : undefined
  if (answer.status === 200 && typeof active === 'boolean') return { active }
  throw refusal(answer, session, `the introspection by ${clientOf(session)}`, 'data')
}

export type SecretAttempt = { readonly outcome: 'refused' | 'accepted' | 'unproved'; readonly why: string }

/** Sends a random client secret. The right one was accepted before, so a refusal is due to the wrong secret. */
export async function presentOtherSecret(session: OidcSession, secret: string): Promise<SecretAttempt> {
  const url = endpointAt(session, 'token_endpoint')
  const fields = { grant_type: 'client_credentials', ...tokenParameters(session.settings) }
  const answer = await post(session, url, fields, { secret })
  if (answer.status === 200) return { outcome: 'accepted', why: '' }
  const { error, description } = errorOf(answer, session.provider)
  const refused = answer.status === 401 || (answer.status === 400 && error === 'invalid_client')
  return { outcome: refused ? 'refused' : 'unproved', why: description }
}

function tokensOf(answer: OidcAnswer, session: OidcSession, asker: string, refused?: 'data') {
  const { provider } = session
  if (answer.status !== 200) throw refusal(answer, session, asker, refused)
  const json = 'json' in answer.body ? object(answer.body.json) : {}
  const { access_token: access, refresh_token: refresh, token_type: type, expires_in: expires } = json
  if (typeof access !== 'string' || access === '') {
    const what = 'json' in answer.body ? 'JSON without an access_token' : answer.body.problem
    throw new ProbeError('protocol', `${answer.address} answered 200 to the request for a token, with ${what}`)
  }
  for (const one of [access, refresh]) if (typeof one === 'string') provider.keep(one)
  return {
    answer,
    access,
    refresh: typeof refresh === 'string' && refresh !== '' ? refresh : undefined,
    /** e.g. `Bearer`. */
    type: typeof type === 'string' ? sanitize(provider.redact(type), 16) : '',
    /** Seconds, as reported by the server. */
    expiresIn: typeof expires === 'number' && Number.isFinite(expires) ? expires : undefined,
  }
}

/** The error in a refusing answer (RFC 6749, 5.2), safe to show. */
export function errorOf({ status, body }: OidcAnswer, { redact }: OidcProvider) {
  const { error, error_description: description } = 'json' in body ? object(body.json) : {}
  const words = [error, description].flatMap((word) =>
    typeof word === 'string' && word !== '' ? [sanitize(redact(word), 160)] : [],
  )
  return { error: typeof error === 'string' ? error : undefined, description: [`${status}`, ...words].join(': ') }
}

const advice: Readonly<Record<string, string>> = {
  invalid_client: 'clientId or clientSecret is wrong, or the client was removed',
  unauthorized_client: 'the client may not use this grant: allow it in the provider',
  unsupported_grant_type: 'the provider does not support this grant',
  invalid_scope: 'check scope, and the scopes that the client may request',
  invalid_target: 'check audience and resource',
  invalid_grant: 'the account or its password is wrong, or the account may not sign in this way',
  access_denied: 'the client has no permission: check audience and scope',
}

/**
 * Classifies a refusal of a request of `asker`. `auth`: the credentials were refused; with `refused`, they were
 * accepted before.
 */
function refusal(answer: OidcAnswer, session: OidcSession, asker: string, refused?: 'data'): ProbeError {
  const { address, status, headers } = answer
  const { error = '', description } = errorOf(answer, session.provider)
  if (status >= 300 && status < 400) {
    const to = URL.parse(headers.location ?? '')
    const where = to === null ? '' : ` to ${sanitize(session.provider.redact(to.host), 128)}`
    const what = `answered ${asker} with a redirect${where} (${status})`
    return new ProbeError('protocol', `${address} ${what}: not followed, nothing was sent there`)
  }
  const next = Object.hasOwn(advice, error) ? [advice[error] ?? ''] : []
  const unknown = status === 401 || error === 'invalid_client' || error === 'invalid_grant'
  if (refused === undefined && unknown)
    return new RefusedSignInError(`${address} refused ${asker}: ${description}`, description, next)
  const side = status >= 500 ? ': an error of the provider, not of the client' : ''
  return new ProbeError('data', `${address} answered ${asker} with ${description}${side}`, next)
}
