import {
  atMost,
  evaluateExpiry,
  evaluateProblem,
  evaluateUnreached,
  fail,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { count, quoted, safeUrl, said } from '../../net/text.ts'
import { endpointOf } from './endpoint.ts'
import type { Json } from './http.ts'
import { wrongClaims } from './jwt.ts'
import { discoveryUrl, type OidcSettings } from './settings.ts'
import { documentOf, type OidcSeen } from './visit.ts'

type Of<S extends OidcSeen['see']> = Extract<OidcSeen, { readonly see: S }>

/** Judges what a visit to an OpenID provider saw. */
export function evaluateOidc(seen: OidcSeen, given: OidcSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'discovery':
      return evaluateDiscovery(seen, given)
    case 'document':
      return [evaluateIssuer(seen, given), evaluateEndpoints(seen, given), ...evaluateOffer(seen)]
    case 'keys':
      return evaluateKeys(seen, given)
    case 'key age':
      return evaluateKeyAge(seen, given)
    case 'certificate':
      return evaluateExpiry('certificate', seen.chain, given.certificate)
    case 'token':
      return evaluateToken(seen, given)
    case 'signature':
      return evaluateSignature(seen)
    case 'claims':
      return evaluateClaims(seen, given)
    case 'clock':
      return evaluateClock(seen, given)
    case 'introspection':
      return evaluateIntrospection(seen)
    case 'refresh':
      return evaluateRefresh(seen, given)
    case 'wrong secret':
      return evaluateWrongSecret(seen, given)
    case 'problem':
      return evaluateProblem(seen)
    case 'unreached':
      return evaluateUnreached(seen)
  }
}

const together = (first: string, more: readonly string[]): string =>
  more.length === 0 ? first : `${first} (and ${count(more.length, 'other')})`

const texts = ['issuer', 'authorization_endpoint', 'jwks_uri'] as const
const lists = ['response_types_supported', 'subject_types_supported', 'id_token_signing_alg_values_supported'] as const

/** What a document must say (OpenID Connect Discovery 1.0, 3). */
function missing(document: Json): readonly string[] {
  const response = document.response_types_supported
  const implicit =
    Array.isArray(response) && response.every((type) => typeof type === 'string' && !/\bcode\b/.test(type))
  return [
    ...[...texts, ...(implicit ? [] : ['token_endpoint'])].filter((name) => typeof document[name] !== 'string'),
    ...lists.filter((name) => !Array.isArray(document[name])),
  ]
}

function evaluateDiscovery({ answer, address }: Of<'discovery'>, given: OidcSettings): Result {
  const { status, headers, body, ms } = answer
  const at = safeUrl(discoveryUrl(given))
  const failed = (fault: 'data' | 'protocol', message: string, details: readonly string[] = []): Result =>
    fail('discovery', fault, message, { address, measurement: { value: status, unit: 'count' }, details })
  if (status >= 300 && status < 400) {
    const to = URL.parse(headers.location ?? '', at)
    const where = to === null ? '' : ` to ${safeUrl(to)}`
    return failed(
      'data',
      `${address} redirects${where} (${status}), which is not followed: is issuer written as clients have it?`,
    )
  }
  if (status === 404)
    return failed('data', `${address} has no discovery document at ${at}: is issuer right, its path too?`)
  if (status !== 200) return failed('data', `${address} answered ${status} to ${at}`)
  const document = documentOf(answer)
  if (document === undefined) {
    const what = 'problem' in body ? body.problem : 'JSON that is no object'
    return failed('protocol', `${address} answered ${at} with ${what}: no OpenID provider, or a proxy's page`)
  }
  const absent = missing(document)
  if (absent.length > 0) return failed('data', `${address}: the discovery document has no sound ${absent.join(', ')}`)
  const what = `${address}: the discovery document was there in`
  return atMost({ check: 'discovery', what, value: ms, unit: 'duration', threshold: given.latency, address })
}

/** Byte for byte, as clients compare it (Discovery 1.0, 4.3): the slash at the end too. */
function evaluateIssuer({ document, address }: Of<'document'>, given: OidcSettings): Result {
  const { issuer } = document
  if (issuer === given.issuer) return ok('issuer', `${address} is ${quoted(issuer, 200)}`, { address })
  if (typeof issuer !== 'string')
    return fail('issuer', 'data', `${address} does not say which issuer it is`, { address })
  const slash =
    issuer.replace(/\/$/, '') === given.issuer.replace(/\/$/, '') ? ': they differ by the slash at the end' : ''
  const next = 'clients refuse every token then: correct issuer here, or the public URL that the provider is set to'
  return fail(
    'issuer',
    'data',
    `${address} says that it is ${quoted(issuer, 200)}, not ${quoted(given.issuer, 200)}${slash}`,
    {
      address,
      details: [next],
    },
  )
}

const named = (document: Json): readonly string[] =>
  Object.keys(document)
    .filter((name) => name === 'jwks_uri' || name.endsWith('_endpoint'))
    .slice(0, 32)

function evaluateEndpoints({ document, loopback, address }: Of<'document'>, given: OidcSettings): Result {
  const names = named(document)
  const wrong = names.flatMap((name) => {
    const endpoint = endpointOf(document[name], given)
    return 'problem' in endpoint ? [`${said(name, 48)} ${endpoint.problem}`] : []
  })
  const [first, ...more] = wrong
  if (first !== undefined)
    return fail('endpoints', 'data', `${address}: ${together(first, more)}`, { address, details: more })
  if (new URL(given.issuer).protocol === 'http:' && !loopback && !given.insecureHttp) {
    const why = 'the issuer is plain http: whoever is in between can replace its keys. Use https, or insecureHttp'
    return fail('endpoints', 'data', `${address}: ${why}`, { address })
  }
  return ok('endpoints', `${address}: ${count(names.length, 'endpoint')} where they should be`, { address })
}

/** Tokens must be signed with a key that is not shared; said only where it is not so. */
function evaluateOffer({ document, address }: Of<'document'>): readonly Result[] {
  const offered = document.id_token_signing_alg_values_supported
  if (!Array.isArray(offered)) return []
  const algorithms = offered as readonly unknown[]
  const sound = algorithms.some((one) => typeof one === 'string' && one.toLowerCase() !== 'none' && !/^HS\d/.test(one))
  if (sound) return []
  const told = algorithms.slice(0, 8).flatMap((one) => (typeof one === 'string' ? [said(one, 16)] : []))
  const what = `${address} signs ID tokens by ${told.join(', ') || 'nothing'} alone: nothing that a client can verify by its keys`
  return [fail('keys', 'data', what, { address })]
}

function evaluateKeys({ keys, answer, address }: Of<'keys'>, given: OidcSettings): Result {
  const { problems, warnings, signing, total } = keys
  const [first, ...more] = problems
  const details = [...more, ...warnings].slice(0, 20)
  if (first !== undefined) return fail('keys', 'data', `${address}: ${together(first, more)}`, { address, details })
  const [doubt, ...doubts] = warnings
  if (doubt !== undefined)
    return warn('keys', `${address}: ${together(doubt, doubts)}`, { address, details: doubts.slice(0, 20) })
  const what = `${address}: ${count(total, 'key')}, ${signing.length} of them to verify with, read in`
  return atMost({ check: 'keys', what, value: answer.ms, unit: 'duration', threshold: given.latency, address })
}

const dayMs = 86_400_000

function evaluateKeyAge({ newest, at, address }: Of<'key age'>, given: OidcSettings): Result {
  const value = Math.max(0, Math.floor(((at.getTime() - newest.getTime()) / dayMs) * 10) / 10)
  const what = `${address}: the newest signing key is old by`
  return atMost({ check: 'key age', what, value, unit: 'days', threshold: given.keyAge, address })
}

const forms: Readonly<Record<string, string>> = {
  signed: 'a signed token',
  encrypted: 'an encrypted token, which only its audience can read',
  opaque: 'an opaque token, which only the provider can read',
}

function evaluateToken({ check, address, form, ms, type, expiresIn }: Of<'token'>, given: OidcSettings): Result {
  const whom = check === 'user' ? quoted(given.user ?? '', 64) : `the client ${quoted(given.clientId ?? '', 64)}`
  if (expiresIn !== undefined && expiresIn <= 0) {
    return fail(check, 'data', `${address} gave a token that has already ended (expires_in ${expiresIn})`, { address })
  }
  const ends = expiresIn === undefined ? '' : ` for ${showDuration(expiresIn * 1_000)}`
  const kind = type === '' ? ' without a token_type' : ''
  const what = `${address} gave ${whom} ${forms[form]}${ends}${kind}, in`
  return atMost({ check, what, value: ms, unit: 'duration', threshold: given.latency, address })
}

function evaluateSignature({ wrong, alg, kid, address }: Of<'signature'>): Result {
  if (wrong !== undefined) return fail('signature', 'data', `${address}: ${wrong}`, { address })
  const by = typeof kid === 'string' ? `, kid ${quoted(kid, 64)}` : ''
  return ok('signature', `${address}: the token is signed by a key of the provider (${said(String(alg), 16)}${by})`, {
    address,
  })
}

function evaluateClaims({ claims, at, address }: Of<'claims'>, given: OidcSettings): Result {
  const audience = given.audience ?? given.resource
  const leewayMs = given.skew.limit ?? given.skew.warn ?? 0
  const [first, ...more] = wrongClaims(claims, { issuer: given.issuer, audience, at, leewayMs })
  if (first !== undefined) {
    return fail('claims', 'data', `${address}: the token: ${together(first, more)}`, { address, details: more })
  }
  const whom =
    audience === undefined ? '; whom it is for is not judged without audience' : ` for ${quoted(audience, 120)}`
  return ok('claims', `${address}: the token is from this issuer and in force${whom}`, { address })
}

function evaluateClock({ ahead, address }: Of<'clock'>, given: OidcSettings): Result {
  const [worst, ...rest] = [...ahead].sort((a, b) => Math.abs(b.ms) - Math.abs(a.ms))
  const { by = '', ms = 0 } = worst ?? {}
  const what = `the clock of ${address} is ${ms < 0 ? 'behind' : 'ahead of'} ours (${by}) by`
  const details = rest.map((one) => `by ${one.by}: ${showDuration(one.ms)}`)
  return atMost({
    check: 'clock',
    what,
    value: Math.abs(ms),
    unit: 'duration',
    threshold: given.skew,
    address,
    details,
  })
}

function evaluateIntrospection({ active, address }: Of<'introspection'>): Result {
  return active
    ? ok('introspection', `${address} says of its token that it is active`, { address })
    : fail('introspection', 'data', `${address} says of the token that it has just given that it is not active`, {
        address,
      })
}

function evaluateRefresh({ ms, rotated, left, address }: Of<'refresh'>, given: OidcSettings): Result {
  const session = left ? ['the session that it stands for was not revoked: it ends by itself'] : []
  const what = `${address} gave a new token for the refresh token${rotated ? ', which it replaced' : ''}, in`
  return atMost({
    check: 'refresh',
    what,
    value: ms,
    unit: 'duration',
    threshold: given.latency,
    address,
    details: session,
  })
}

function evaluateWrongSecret({ wrong, why, address }: Of<'wrong secret'>, given: OidcSettings): Result {
  const client = quoted(given.clientId ?? '', 64)
  if (wrong === 'accepted') {
    return fail(
      'wrong secret',
      'data',
      `${address} gave ${client} a token for a wrong secret: anybody may be this client`,
      { address },
    )
  }
  if (wrong === 'unproved') {
    return warn('wrong secret', `${address} gave ${client} no token, but not because of its wrong secret: ${why}`, {
      address,
    })
  }
  return ok('wrong secret', `${address} refused a wrong secret of ${client} (${why})`, { address })
}
