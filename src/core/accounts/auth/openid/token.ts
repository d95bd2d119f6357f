import { randomUUID } from 'node:crypto'
import { isObject, type JsonObject, member, repeatedNameIn } from '../../../base/json.ts'
import { looksLikeAdmin } from '../../../base/names.ts'
import { isSubject, userNameProblems } from '../names.ts'
import type { OpenIdSettings } from '../providers/provider.ts'
import { ProviderProblem } from './ask.ts'
import type { OpenIdIssuer } from './issuer.ts'

/** Maximum characters of a token. Longer ones are refused unread. */
export const maxToken = 16 * 1024

/** Fixed: the token does not decide how it is verified. All use a key pair, never a shared secret (T7). */
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA']

/** The types of tokens that sign in: an ID token, and an access token (RFC 9068). */
const types: ReadonlySet<string> = new Set(['jwt', 'at+jwt'])
/** The same in the claims of Keycloak, whose refresh and logout tokens name their type there. */
const claimedTypes: ReadonlySet<string> = new Set(['id', 'bearer', 'jwt'])

/** Header members that name or contain a key, or change how a token is read. */
const refusedMembers = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64', 'zip'] as const

/** Why a token does not sign in. The message is for the audit; the caller learns nothing of it. */
export class Refusal extends Error {}

export const loadJose = () => import('jose')

type Unverified = { readonly header: JsonObject; readonly claims: JsonObject }

/** The parts of a signed token. Undefined for an opaque one. Throws Refusal for one that nobody should read. */
export function readJwt(token: string): Unverified | undefined {
  const parts = token.split('.', 4)
  const [head, body] = parts
  if (parts.length !== 3 || head === undefined || body === undefined) return undefined
  const header = decoded(head)
  if (header?.['alg'] === undefined) return undefined
  const claims = decoded(body)
  if (!claims) throw new Refusal('its claims are not JSON')
  return { header, claims }
}

function decoded(part: string): JsonObject | undefined {
  if (!/^[\w-]+$/.test(part)) return undefined
  let text: string
  let json: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(part, 'base64url'))
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(json)) return undefined
  // Two readers of such a text may see different values.
  if (repeatedNameIn(text) !== undefined) throw new Refusal('it names a member twice')
  return json
}

export type TokenExpectation = {
  /** Milliseconds. */
  readonly now: () => number
  /** Required of the ID token of a browser sign-in, which must be for the client itself. */
  readonly nonce?: string | undefined
}

/** The claims of a token of this issuer that signs in. Throws Refusal with the reason, or ProviderProblem. */
export async function verifyJwt(
  issuer: OpenIdIssuer,
  token: string,
  { header, claims }: Unverified,
  expected: TokenExpectation,
): Promise<JsonObject> {
  refuseHeader(header)
  // Before any request to the provider: a foreign token costs nothing.
  checkClaims(issuer, claims, expected)
  await verifySignature(issuer, token, expected.now)
  return claims
}

function refuseHeader(header: JsonObject): void {
  const { alg, typ, kid } = header
  if (typeof alg !== 'string' || !algorithms.includes(alg)) throw new Refusal('its algorithm is not accepted')
  const present = refusedMembers.find((name) => Object.hasOwn(header, name))
  if (present !== undefined) throw new Refusal(`its header contains ${present}`)
  if (kid !== undefined && typeof kid !== 'string') throw new Refusal('its kid is not text')
  if (typ === undefined) return
  if (typeof typ !== 'string' || !types.has(typ.toLowerCase().replace(/^application\//, ''))) {
    throw new Refusal('its type is not that of an ID token or an access token')
  }
}

async function verifySignature(issuer: OpenIdIssuer, token: string, now: () => number): Promise<void> {
  const { compactVerify, createLocalJWKSet } = await loadJose()
  const verify = async (renewed: boolean): Promise<string | undefined> => {
    const keys = await issuer.keys(now, renewed)
    try {
      await compactVerify(token, createLocalJWKSet(keys), { algorithms })
      return undefined
    } catch (error) {
      return (error as { code?: string }).code ?? 'unknown'
    }
  }
  const missing = 'ERR_JWKS_NO_MATCHING_KEY'
  const first = await verify(false)
  // The provider may have begun to sign with a new key.
  const last = first === missing ? await verify(true) : first
  if (last === undefined) return
  throw new Refusal(last === missing ? 'no key of the provider matches it' : `its signature is wrong (${last})`)
}

/** Throws Refusal unless the claims are for this server, now. */
function checkClaims(issuer: OpenIdIssuer, claims: JsonObject, { now, nonce }: TokenExpectation): void {
  const { settings } = issuer
  if (claims['iss'] !== settings.issuer) throw new Refusal('iss is not the issuer')
  checkAudience(claims, settings.clientId, nonce === undefined ? settings.audience : undefined)
  checkTimes(claims, now(), settings.tolerance)
  checkKind(claims)
  if (nonce !== undefined && claims['nonce'] !== nonce) throw new Refusal('nonce is not that of this sign-in')
}

export function checkAudience(claims: JsonObject, clientId: string, audience: string | undefined): void {
  const { aud, azp } = claims
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud.slice(0, 100) : [aud]
  if (audience !== undefined && audiences.includes(audience)) return
  if (!audiences.includes(clientId)) throw new Refusal('aud is not this service')
  // OpenID Connect Core, 3.1.3.7: the party that the token was issued to.
  if (azp === undefined ? audiences.length > 1 : azp !== clientId) throw new Refusal('azp is not this client')
}

export function checkTimes({ exp, nbf, iat }: JsonObject, at: number, tolerance: number): void {
  if (!isTime(exp)) throw new Refusal('exp is missing')
  if (exp * 1_000 + tolerance <= at) throw new Refusal('it has expired')
  if (nbf !== undefined && !(isTime(nbf) && nbf * 1_000 - tolerance <= at)) throw new Refusal('it is not valid yet')
  if (iat !== undefined && !(isTime(iat) && iat * 1_000 - tolerance <= at))
    throw new Refusal('it was issued in the future')
}

/** Seconds since 1970. */
const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && Math.abs(value) < 8_640_000_000_000

/** Throws Refusal for a token that is for something else than a sign-in, and for one that needs a further proof. */
export function checkKind({ sub, typ, client_id: clientId, cnf, events }: JsonObject): void {
  if (!isSubject(sub)) throw new Refusal('sub is missing or not plain text')
  if (typ !== undefined && !(typeof typ === 'string' && claimedTypes.has(typ.toLowerCase()))) {
    throw new Refusal('typ is not that of an ID token or an access token')
  }
  if (events !== undefined) throw new Refusal('it is a logout token or another event')
  if (cnf !== undefined) throw new Refusal('it is bound to a key of its holder (cnf)')
  if (clientId === sub) throw new Refusal('it is the token of a client, not of a user')
}

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

/** Values of the claim that are read. Providers put at most a few hundred groups into a token. */
const mostValues = 1_000

/** The roles that the claims give. */
export function rolesFrom(settings: OpenIdSettings, claims: JsonObject): readonly string[] {
  const { roles } = settings
  if (!roles) return []
  const value = at(claims, roles.claim)
  const values: readonly unknown[] = Array.isArray(value) ? value.slice(0, mostValues) : [value]
  const mapped = values.flatMap((one) => {
    const role = typeof one === 'string' ? member(roles.map, one) : undefined
    return typeof role === 'string' ? [role] : []
  })
  return [...new Set(mapped)]
}

/** A claim by its name, which may contain dots as `https://example.com/roles` does, or by a path. */
function at(claims: JsonObject, path: string): unknown {
  const direct = member(claims, path)
  if (direct !== undefined) return direct
  return path.split('.').reduce<unknown>((value, step) => member(value, step), claims)
}

/**
 * Names for a new user, the best first. The provider has verified an e-mail address only if it says so. Users of a
 * provider often choose their own `preferred_username`: one with a colon could pass for a name that svc gives to
 * somebody of another provider, and one that reads like Admin for an administrator.
 */
export function namesFrom(settings: OpenIdSettings, claims: JsonObject): readonly string[] {
  const { preferred_username: preferred, email, email_verified: verified, sub } = claims
  const chosen = typeof preferred === 'string' && !isReserved(preferred) ? preferred : undefined
  const own = [chosen, verified === true ? email : undefined].flatMap((name) =>
    typeof name === 'string' ? [name.normalize('NFC')] : [],
  )
  const fallback = `${settings.name}:${String(sub)}`
  return [...own, fallback, `${settings.name}:${randomUUID()}`].filter(
    (name) => name.length <= maxName && userNameProblems('UserName', name).length === 0,
  )
}

const isReserved = (name: string): boolean =>
  name.normalize('NFKC').includes(':') || name.toLowerCase() === 'admin' || looksLikeAdmin(name)

const maxName = 128

export function displayNameFrom({ name }: JsonObject): string | undefined {
  return typeof name === 'string' && name.length <= maxName && userNameProblems('DisplayName', name).length === 0
    ? name
    : undefined
}
