import {
  atMost,
  certificateCheck,
  evaluateExpiry,
  fail,
  httpsCertificateSetting,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { count, quote, safeUrl, sanitize } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { documentOf, type OidcConnection, onOidc } from './connection.ts'
import { discoveryUrl, endpointAt, endpointOf } from './endpoint.ts'
import { inspectKeys } from './keys.ts'
import { type OidcAnswer, type OidcJson, type SharedSettings, sharedSettings } from './provider.ts'

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
    const why = 'which is not followed: is issuer written as clients have it?'
    return failed('data', `${address} redirects${where} (${status}), ${why}`)
  }
  if (status === 404)
    return failed('data', `${address} has no discovery document at ${at}: is issuer right, its path too?`)
  if (status !== 200) return failed('data', `${address} answered ${status} to ${at}`)
  const document = documentOf(answer)
  if (document === undefined) {
    const what = 'problem' in body ? body.problem : 'JSON that is no object'
    return failed('protocol', `${address} answered ${at} with ${what}: no OpenID provider, or a proxy's page`)
  }
  const absent = missingMembers(document)
  if (absent.length > 0) return failed('data', `${address}: the discovery document has no sound ${absent.join(', ')}`)
  const what = `${address}: the discovery document was there in`
  return atMost({ check: 'discovery', what, value: ms, unit: 'duration', threshold: settings.latency })
}

/** Compares byte for byte, as clients do (Discovery 1.0, 4.3); a trailing slash makes a difference. */
export const issuer = onOidc({
  depth: 'Standard',
  results: { issuer: 'It says the issuer that clients have, to the last slash' },
  settings: { issuer: sharedSettings.issuer },
  observe: ({ address, document }) => Promise.resolve({ address, actual: document.issuer }),
  evaluate: ({ address, actual }, { issuer: expected }) => {
    if (actual === expected) return ok('issuer', `${address} is ${quote(expected, 200)}`)
    if (typeof actual !== 'string') return fail('issuer', 'data', `${address} does not say which issuer it is`)
    const isSlash = actual.replace(/\/$/, '') === expected.replace(/\/$/, '')
    const slash = isSlash ? ': they differ by the slash at the end' : ''
    const next = 'clients refuse every token then: correct issuer here, or the public URL that the provider is set to'
    const message = `${address} says that it is ${quote(actual, 200)}, not ${quote(expected, 200)}${slash}`
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
    const wrong = names.flatMap((name) => {
      const endpoint = endpointOf(document[name], settings)
      return 'problem' in endpoint ? [`${sanitize(name, 48)} ${endpoint.problem}`] : []
    })
    const [first, ...more] = wrong
    if (first !== undefined)
      return fail('endpoints', 'data', `${address}: ${withOthers(first, more)}`, { details: more })
    if (new URL(settings.issuer).protocol === 'http:' && !loopback && !settings.insecureHttp) {
      const why = 'the issuer is plain http: whoever is in between can replace its keys. Use https, or insecureHttp'
      return fail('endpoints', 'data', `${address}: ${why}`)
    }
    return ok('endpoints', `${address}: ${count(names.length, 'endpoint')} where they should be`)
  },
})

const keysResult = {
  keys: 'The keys can be read and are sound: told apart, strong, public, one to verify with',
} as const

/** Tokens must be signed with a key that is not shared. Reports a result only if they are not. */
export const algorithms = onOidc({
  depth: 'Standard',
  results: keysResult,
  settings: {},
  observe: ({ address, document }) =>
    Promise.resolve({ address, offered: document.id_token_signing_alg_values_supported }),
  evaluate: ({ address, offered }) => {
    if (!Array.isArray(offered)) return []
    const names = offered as readonly unknown[]
    const sound = names.some((one) => typeof one === 'string' && one.toLowerCase() !== 'none' && !/^HS\d/.test(one))
    if (sound) return []
    const shared = names.slice(0, 8).flatMap((one) => (typeof one === 'string' ? [sanitize(one, 16)] : []))
    const why = 'nothing that a client can verify by its keys'
    return fail('keys', 'data', `${address} signs ID tokens by ${shared.join(', ') || 'nothing'} alone: ${why}`)
  },
})

export const keys = onOidc({
  depth: 'Standard',
  results: keysResult,
  settings: {
    keyBits: { type: 'integer', default: 2_048, min: 1_024, max: 8_192, doc: 'Bits that an RSA key has at least' },
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
    const what = `${address}: ${count(total, 'key')}, ${signing.length} of them to verify with, read in`
    return atMost({ check: 'keys', what, value, unit: 'duration', threshold })
  },
})

const dayMs = 86_400_000

export const keyAge = onOidc({
  depth: 'Advanced',
  results: { 'key age': 'The newest signing key is not too old, where keys have certificates' },
  settings: {
    keyAge: {
      type: 'threshold',
      unit: 'days',
      default: { warn: 90 },
      doc: 'How old the newest signing key may be, by its certificate; left out where keys have none (x5c)',
    },
  },
  observe: (oidc, _, { date }) => Promise.resolve({ address: oidc.address, newest: oidc.keys?.newest, at: date() }),
  evaluate: ({ address, newest, at }, { keyAge: threshold }) => {
    if (newest === undefined) return []
    const value = Math.max(0, Math.floor(((at.getTime() - newest.getTime()) / dayMs) * 10) / 10)
    const what = `${address}: the newest signing key is old by`
    return atMost({ check: 'key age', what, value, unit: 'days', threshold, at: newest })
  },
})

export const certificate = certificateCheck({
  depth: 'Standard',
  setting: httpsCertificateSetting,
  scheme: 'https',
  chain: ({ provider }: OidcConnection) => provider.chains()[0],
})

/** Endpoints may be on other hosts, so this check runs after all requests. */
export const endpointCertificates = onOidc({
  depth: 'Standard',
  results: certificate.results,
  settings: certificate.settings,
  last: true,
  elsewhere: true,
  observe: ({ provider }: OidcConnection) => Promise.resolve(provider.chains().slice(1)),
  evaluate: (chains, settings) => chains.map((chain) => evaluateExpiry('certificate', chain, settings.certificate)),
})
