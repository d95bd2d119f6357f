import { Fault } from '../../../core/base/errors.ts'
import { isObject, type JsonObject } from '../../../core/base/json.ts'
import type { Call } from '../../../core/protocol/service/service.ts'
import { askProvider, type DiscoveredProvider, type ProviderLink, printable } from './issuer.ts'
import type { OpenIdProvider } from './server-providers.ts'

/** The answer of a token endpoint: tokens, or an error of RFC 6749 or RFC 8628. */
export type TokenAnswer =
  | { readonly idToken: string | undefined; readonly accessToken: string | undefined }
  | { readonly error: string; readonly refused: Fault }

const maxToken = 64 * 1024

/** Asks the token endpoint. Rejects with a `Fault` if there is no answer of that form. */
export async function requestTokens(
  issuer: DiscoveredProvider,
  form: Readonly<Record<string, string>>,
  link: ProviderLink,
  call: Call,
): Promise<TokenAnswer> {
  const { status, json } = await askProvider(issuer.token, { method: 'POST', form }, link, call)
  const error = refusalIn(issuer, { status, json }, form['client_id'] ?? '')
  if (error) return error
  const [idToken, accessToken] = [tokenIn(json?.['id_token']), tokenIn(json?.['access_token'])]
  if (status === 200 && (idToken !== undefined || accessToken !== undefined)) return { idToken, accessToken }
  throw new Fault('UnreadableAnswer', `${printable(issuer.issuer)} returned no token (${status})`, {
    remoteStatus: status,
  })
}

/** The error in an answer of a provider: `invalid_grant`, with the fault that describes it. */
export function refusalIn(
  { issuer }: DiscoveredProvider,
  { status, json }: { readonly status: number; readonly json: JsonObject | undefined },
  clientId: string,
): { readonly error: string; readonly refused: Fault } | undefined {
  const error = json?.['error']
  if (typeof error !== 'string') return undefined
  return { error: error.slice(0, 100), refused: refusal(issuer, error, json?.['error_description'], clientId, status) }
}

/** The fault of a sign-in that the provider refuses, with its own words. */
export function refusal(
  issuer: string,
  error: string,
  description: unknown,
  clientId: string,
  remoteStatus?: number,
): Fault {
  const words = typeof description === 'string' ? ` (${printable(description)})` : ''
  const ofClient = /^(?:invalid_client|unauthorized_client|invalid_redirect_uri)$/.test(error)
  const isFailure = error === 'server_error' || error === 'temporarily_unavailable'
  return new Fault(
    isFailure ? 'ServerError' : 'Unauthorized',
    `${printable(issuer)} ${isFailure ? 'failed' : 'refuses the sign-in'}: ${printable(error)}${words}`,
    {
      remoteStatus,
      hints: ofClient
        ? [
            `The provider must know the client ${printable(clientId)} as a public client (without a secret) with the redirect URI http://127.0.0.1/callback on any port.`,
          ]
        : [],
    },
  )
}

const tokenIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= maxToken && /^[\x21-\x7e]+$/.test(value) ? value : undefined

/**
 * The token to send to svc's server: the ID token, else the access token. The server verifies its signature. Throws
 * `Fault` Unauthorized for a token of another issuer, for another client, or of another sign-in, which must not be sent.
 */
export function tokenToSend(
  answer: Extract<TokenAnswer, { readonly idToken: string | undefined }>,
  { name, issuer, clientId }: OpenIdProvider,
  nonce: string | undefined,
): string {
  const refuse = (what: string): Fault =>
    new Fault('Unauthorized', `the token of the provider ${printable(name)} is not sent: ${what}`)
  const { idToken, accessToken = '' } = answer
  if (idToken === undefined) {
    const other = claimsOf(accessToken)?.['iss']
    if (other !== undefined && other !== issuer) throw refuse(`its issuer is ${printable(other)}, not ${issuer}`)
    return accessToken
  }
  const claims = claimsOf(idToken)
  if (!claims) throw refuse('it is not a JSON Web Token')
  const { iss, aud, azp } = claims
  if (iss !== issuer) throw refuse(`its issuer is ${printable(iss)}, not ${issuer}`)
  const audience: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audience.includes(clientId)) throw refuse('it is for another client')
  if (azp === undefined ? audience.length > 1 : azp !== clientId) throw refuse('it was issued to another client')
  if (nonce !== undefined && claims['nonce'] !== nonce) throw refuse('it does not belong to this sign-in (nonce)')
  return idToken
}

/** The claims of a JWT, which nothing has verified. Undefined for any other text. */
function claimsOf(token: string): JsonObject | undefined {
  const [, payload, , ...more] = token.split('.')
  if (payload === undefined || more.length > 0 || !/^[\w-]+$/.test(payload)) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString())
    return isObject(claims) ? claims : undefined
  } catch {
    return undefined
  }
}
