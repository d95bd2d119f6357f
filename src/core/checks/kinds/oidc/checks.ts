import { count } from '../../../base/format.ts'
import { quote, safeUrl, sanitize } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import {
  atMost,
  certificateCheck,
  evaluateExpiry,
  fail,
  httpsCertificateSetting,
  includes,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { documentOf, type OidcConnection, onOidc } from './connection.ts'
import { inspectKeys } from './keys.ts'
import {
  discoveryUrl,
  endpointAt,
  endpointOf,
  type OidcAnswer,
  type OidcJson,
  type SharedSettings,
  sharedSettings,
} from './provider.ts'
import { errorOf } from './token.ts'

/** The first problem, and the number of further ones. */
export const withOthers = (first: string, more: readonly string[]): string =>
  more.length === 0 ? first : `${first} (and ${count(more.length, 'other')})`

const texts = ['issuer', 'authorization_endpoint', 'jwks_uri'] as const
const lists = ['response_types_supported', 'subject_types_supported', 'id_token_signing_alg_values_supported'] as const

/** The required members that the document lacks (OpenID Connect Discovery 1.0, 3). */
function missingMembers(document: OidcJson): readonly string[] {
  const response = document.response_types_supported
  const implicit =
    Array.isArray(response) && response.every((type) => typeof type === 'string' && !/\bcode\b/.test(type))
  return [
    ...[...texts, ...(implicit ? [] : ['token_endpoint'])].filter((name) => typeof document[name] !== 'string'),
    ...lists.filter((name) => !Array.isArray(document[name])),
  ]
}

export function evaluateDiscovery(address: string, answer: OidcAnswer, settings: SharedSettings): Result<'discovery'> {
  const { status, headers, body, ms } = answer
  const at = safeUrl(discoveryUrl(settings))
  const failed = (fault: 'data' | 'protocol', message: string): Result<'discovery'> =>
    fail('discovery', fault, message, { measurement: { value: status, unit: 'count' }, details: [] })
  if (status >= 300 && status < 400) {
    const to = URL.parse(headers.location ?? '', at)
    const where = to === null ? '' : ` to ${safeUrl(to)}`
    const why = 'which svc does not follow: check that issuer is written as clients use it'
    return failed('data', `${address} redirects${where} (${status}), ${why}`)
  }
  if (status === 404)
    return failed('data', `${address} has no discovery document at ${at}: check issuer, including its path`)
  if (status !== 200) return failed('data', `${address} answered ${status} to ${at}`)
  const document = documentOf(answer)
  if (document === undefined) {
    const what = 'problem' in body ? body.problem : 'JSON that is not an object'
    return failed('protocol', `${address} answered ${at} with ${what}: not an OpenID provider, or the page of a proxy`)
  }
  const absent = missingMembers(document)
  if (absent.length > 0) return failed('data', `${address}: the discovery document has no valid ${absent.join(', ')}`)
  const what = `${address}: discovery document read in`
  return atMost({ check: 'discovery', what, value: ms, unit: 'duration', threshold: settings.latency })
}

/** Compares byte for byte, as clients do (Discovery 1.0, 4.3); a trailing slash makes a difference. */
export const issuer = onOidc({
  depth: 'Standard',
  results: { issuer: 'The provider reports exactly the issuer that clients use, including a slash at the end' },
  settings: { issuer: sharedSettings.issuer },
  observe: ({ address, document }) => Promise.resolve({ address, actual: document.issuer }),
  evaluate: ({ address, actual }, { issuer: expected }) => {
    if (actual === expected) return ok('issuer', `${address} is ${quote(expected, 200)}`)
    if (typeof actual !== 'string') return fail('issuer', 'data', `${address} does not report its issuer`)
    const isSlash = actual.replace(/\/$/, '') === expected.replace(/\/$/, '')
    const slash = isSlash ? ': they differ by the slash at the end' : ''
    const next =
      'clients then refuse every token: correct issuer here, or the public URL that is configured in the provider'
    const message = `${address} reports the issuer ${quote(actual, 200)}, not ${quote(expected, 200)}${slash}`
    return fail('issuer', 'data', message, { details: [next] })
  },
})

const endpointNames = (document: OidcJson): readonly string[] =>
  Object.keys(document)
    .filter((name) => name === 'jwks_uri' || name.endsWith('_endpoint'))
    .slice(0, 32)

export const endpoints = onOidc({
  depth: 'Standard',
  results: { endpoints: "Every endpoint is https, and at the issuer's host or one of `endpointHosts`" },
  settings: {
    issuer: sharedSettings.issuer,
    endpointHosts: sharedSettings.endpointHosts,
    insecureHttp: sharedSettings.insecureHttp,
  },
  observe: ({ address, document, provider }) => Promise.resolve({ address, document, loopback: provider.loopback }),
  evaluate: ({ address, document, loopback }, settings) => {
    const names = endpointNames(document)
    const problems = names.flatMap((name) => {
      const endpoint = endpointOf(document[name], settings)
      return 'problem' in endpoint ? [`${sanitize(name, 48)} ${endpoint.problem}`] : []
    })
    const [first, ...more] = problems
    if (first !== undefined)
      return fail('endpoints', 'data', `${address}: ${withOthers(first, more)}`, { details: more })
    if (new URL(settings.issuer).protocol === 'http:' && !loopback && !settings.insecureHttp) {
      const why =
        'the issuer uses plain http: anyone on the network path can replace its keys. Use https, or insecureHttp'
      return fail('endpoints', 'data', `${address}: ${why}`)
    }
    return ok('endpoints', `${address}: ${count(names.length, 'endpoint')} at the expected hosts`)
  },
})

/** The OAuth errors that mean that the endpoint works (RFC 6749, 5.2). */
const expectedErrors = new Set(['invalid_request', 'invalid_client', 'unsupported_grant_type', 'unauthorized_client'])

/**
 * A request without any parameter contains no account and no client, so it cannot lock one. A realm that is disabled
 * publishes its documents as usual and refuses only here.
 */
export const tokenEndpoint = onOidc({
  depth: 'Standard',
  results: {
    'token endpoint':
      'The token endpoint answers an empty request with the error that OAuth prescribes; in Advanced only without a client',
  },
  settings: { clientId: sharedSettings.clientId },
  // The document of another issuer must not be used (Discovery 1.0, 4.3).
  applies: ({ document, settings }) =>
    typeof document.token_endpoint === 'string' && document.issuer === settings.issuer,
  observe: async (oidc, { clientId }, { mode }) => {
    const { provider } = oidc
    // The endpoints check already reports an endpoint that svc must not use.
    const endpoint = endpointOf(oidc.document.token_endpoint, oidc.settings)
    // In Advanced, a request with the client's credentials proves more.
    if ('problem' in endpoint || (clientId !== undefined && includes(mode, 'Advanced'))) return undefined
    const answer = await provider.ask(endpoint.url, { form: new URLSearchParams() })
    return { address: answer.address, status: answer.status, ...errorOf(answer, provider) }
  },
  evaluate: (observation): Result<'token endpoint'> | [] => {
    if (observation === undefined) return []
    const { address, status, error, description } = observation
    const more: Partial<Result> = { address, measurement: { value: status, unit: 'count' } }
    const text = `${address} answered an empty token request with ${description}`
    if (status === 400 || status === 401) return ok('token endpoint', text, more)
    if (status === 200) return fail('token endpoint', 'data', `${text}: it must refuse it`, more)
    if (status === 403 && error === 'access_denied')
      return fail('token endpoint', 'data', `${text}: it refuses every client, as a disabled realm does`, more)
    if (status === 404 || status === 405 || status >= 500)
      return fail('token endpoint', 'data', `${text}: no client gets a token`, more)
    if (error !== undefined && expectedErrors.has(error) && !/https/i.test(description))
      return ok('token endpoint', text, more)
    return warn('token endpoint', `${text}: check that clients get tokens`, more)
  },
})

const keysResult = {
  keys: 'The keys are readable and valid: distinguishable, strong, public, and at least one verifies signatures',
} as const

/** Tokens must be signed with a key that is not shared. Reports a result only if they are not. */
export const algorithms = onOidc({
  depth: 'Standard',
  results: keysResult,
  observe: ({ address, document }) =>
    Promise.resolve({ address, offered: document.id_token_signing_alg_values_supported }),
  evaluate: ({ address, offered }) => {
    if (!Array.isArray(offered)) return []
    const names = offered as readonly unknown[]
    const sound = names.some((one) => typeof one === 'string' && one.toLowerCase() !== 'none' && !/^HS\d/.test(one))
    if (sound) return []
    const shared = names.slice(0, 8).flatMap((one) => (typeof one === 'string' ? [sanitize(one, 16)] : []))
    const why = 'clients cannot verify these with its keys'
    return fail('keys', 'data', `${address} signs ID tokens only with ${shared.join(', ') || 'nothing'}: ${why}`)
  },
})

export const keys = onOidc({
  depth: 'Standard',
  results: keysResult,
  settings: {
    keyBits: { type: 'integer', default: 2_048, min: 1_024, max: 8_192, doc: 'Minimum number of bits of an RSA key' },
    latency: sharedSettings.latency,
  },
  observe: async (oidc, { keyBits }) => {
    const { status, body, address, ms } = await oidc.provider.ask(endpointAt(oidc, 'jwks_uri'))
    if (status !== 200)
      throw new ProbeError('data', `${address} answered ${status} to the request for its keys (jwks_uri)`)
    if ('problem' in body)
      throw new ProbeError('protocol', `${address} answered the request for its keys with ${body.problem}`)
    oidc.keys = inspectKeys(body.json, keyBits)
    return { address: oidc.address, keys: oidc.keys, ms }
  },
  evaluate: ({ address, keys: { problems, warnings, signing, total }, ms: value }, { latency: threshold }) => {
    const [first, ...more] = problems
    const details = [...more, ...warnings].slice(0, 20)
    if (first !== undefined) return fail('keys', 'data', `${address}: ${withOthers(first, more)}`, { details })
    const [doubt, ...doubts] = warnings
    if (doubt !== undefined)
      return warn('keys', `${address}: ${withOthers(doubt, doubts)}`, { details: doubts.slice(0, 20) })
    const what = `${address}: ${count(total, 'key')}, ${signing.length} for verifying signatures, read in`
    return atMost({ check: 'keys', what, value, unit: 'duration', threshold })
  },
})

const dayMs = 86_400_000

export const keyAge = onOidc({
  depth: 'Advanced',
  results: { 'key age': 'The age of the newest signing key, if keys have certificates' },
  settings: {
    keyAge: {
      type: 'threshold',
      unit: 'days',
      doc: 'Maximum age of the newest signing key, from its certificate; left out if keys have none (x5c). Without it, the age is only a figure: many providers rotate keys on request',
    },
  },
  observe: (oidc, _, { date }) => Promise.resolve({ address: oidc.address, newest: oidc.keys?.newest, at: date() }),
  evaluate: ({ address, newest, at }, { keyAge: threshold = {} }) => {
    if (newest === undefined) return []
    const value = Math.max(0, Math.floor(((at.getTime() - newest.getTime()) / dayMs) * 10) / 10)
    const what = `${address}: age of the newest signing key`
    return atMost({ check: 'key age', what, value, unit: 'days', threshold, at: newest })
  },
})

export const certificate = certificateCheck({
  depth: 'Standard',
  setting: httpsCertificateSetting,
  scheme: 'https',
  chain: ({ provider }: OidcConnection) => provider.chains().issuer,
})

/** Endpoints may be on other hosts, so this check runs after all requests. */
export const endpointCertificates = onOidc({
  depth: 'Standard',
  results: certificate.results,
  settings: certificate.settings,
  last: true,
  elsewhere: true,
  observe: ({ provider }: OidcConnection) => Promise.resolve(provider.chains().others),
  evaluate: (chains, settings) => chains.map((chain) => evaluateExpiry('certificate', chain, settings.certificate)),
})
