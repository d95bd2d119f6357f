import { ProviderProblem } from './ask.ts'
import type { OpenIdIssuer } from './issuer.ts'
import { isObject, type JsonObject } from './json.ts'
import { checkAudience, checkKind, checkTimes, Refusal } from './token.ts'

/** The characters of a bearer token (RFC 6750, 2.1). */
const bearer = /^[\w.~+/-]+=*$/

/**
 * The claims of an opaque access token, from the provider itself (RFC 7662). Throws Refusal for a token that does not
 * sign in, and for every opaque token of a provider without a client secret.
 */
export async function introspect(issuer: OpenIdIssuer, token: string, now: () => number): Promise<JsonObject> {
  const { settings } = issuer
  if (!bearer.test(token)) throw new Refusal('it is not a token')
  if (settings.clientSecret === undefined) throw new Refusal('it is opaque, and clientSecret is not set')
  const { introspection, basic } = await issuer.endpoints(now)
  if (!introspection) throw new Refusal('it is opaque, and the provider has no introspection_endpoint with https')
  const form = new URLSearchParams({ token, token_type_hint: 'access_token' })
  const { status, json } = await issuer.post(introspection, form, basic)
  if (status !== 200 || !isObject(json)) throw new ProviderProblem(`the introspection endpoint answered ${status}`)
  if (json['active'] !== true) throw new Refusal('the provider says that it is not active')
  return checked(issuer, json, now())
}

function checked({ settings }: OpenIdIssuer, answer: JsonObject, at: number): JsonObject {
  const { iss, aud, client_id: clientId, token_type: type, typ, exp } = answer
  if (iss !== undefined && iss !== settings.issuer) throw new Refusal('iss is not the issuer')
  // A refresh token is active too.
  const kind = type ?? typ
  if (typeof kind !== 'string' || kind.toLowerCase() !== 'bearer') throw new Refusal('it is not a bearer access token')
  if (aud !== undefined) checkAudience(answer, settings.clientId, settings.audience)
  else if (clientId !== settings.clientId) throw new Refusal('it was issued to another client')
  // The provider has checked the times; a member that contradicts it still counts.
  checkTimes({ ...answer, exp: exp ?? Math.ceil(at / 1_000) + 1 }, at, settings.tolerance)
  const { username } = answer
  const claims = { preferred_username: username, ...answer, typ: undefined }
  // The client itself may be named beside its user.
  checkKind(claims)
  return claims
}
