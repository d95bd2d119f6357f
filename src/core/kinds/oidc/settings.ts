import { hostOf, portOf } from '../../net/http/route.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What svc.yaml may say of an oidc monitor. */
export const oidcSettings = {
  issuer: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'Exactly as clients have it, with or without a slash at the end: what comes before /.well-known/',
  },
  endpointHosts: {
    type: 'texts',
    doc: 'Other hosts where its endpoints may be: `host`, or `host:port` where the port is not the usual one',
  },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
  insecureHttp: { type: 'flag', default: false, doc: 'Allow http://, also to send secrets to another machine' },
  clientId: { type: 'text', doc: 'A client made for this: Advanced gets a token by its client credentials' },
  clientSecret: { type: 'secret', doc: 'Its secret, sent to the token endpoint alone' },
  scope: { type: 'text', doc: 'Scopes to ask for, with spaces between' },
  audience: { type: 'text', doc: 'What the token must be for (aud); also sent as `audience`' },
  resource: {
    type: 'text',
    doc: 'Sent as `resource` (RFC 8707), where the provider decides by it whom a token is for',
  },
  user: { type: 'text', doc: 'An account made for this, where the provider still has the password grant' },
  password: { type: 'secret', doc: "The user's password, sent to the token endpoint alone" },
  introspect: { type: 'flag', default: false, doc: 'Ask the provider whether the token is active (RFC 7662)' },
  refusesWrongSecret: {
    type: 'flag',
    default: false,
    doc: 'In Advanced, a wrong secret must be refused. Only with a client that nothing else uses: it may get locked',
  },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long the discovery document, the keys and each token may take',
  },
  skew: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 2_000, limit: 30_000 },
    doc: "How far the provider's clock (iat of a token, Date header) may be from ours",
  },
  keyBits: { type: 'integer', default: 2_048, min: 1_024, max: 8_192, doc: 'Bits that an RSA key has at least' },
  keyAge: {
    type: 'threshold',
    unit: 'days',
    default: { warn: 90 },
    doc: 'How old the newest signing key may be, by its certificate; left out where keys have none (x5c)',
  },
  certificate: {
    type: 'threshold',
    unit: 'days',
    default: { warn: 20, limit: 3 },
    doc: 'Days that every certificate of the chain has left at least (https)',
  },
} as const satisfies SettingsSpec
export type OidcSettings = Values<typeof oidcSettings>

export const placeOf = (url: URL) => ({ host: hostOf(url), port: portOf(url) })

/** Where the discovery document is (OpenID Connect Discovery 1.0, 4): a slash at the issuer's end is not doubled. */
export const discoveryUrl = ({ issuer }: Pick<OidcSettings, 'issuer'>): URL =>
  new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)

/** The host and the port of an entry of endpointHosts; undefined for what is none. */
export function listedPlace(entry: string): { readonly host: string; readonly port: number | undefined } | undefined {
  const [, host, port] = /^(\[[\da-f:.]+\]|[\p{L}\p{M}\p{N}._-]+)(?::(\d{1,5}))?$/iu.exec(entry) ?? []
  return host === undefined ? undefined : { host, port: port === undefined ? undefined : Number(port) }
}

/** Why the settings cannot be used together, or undefined. */
export function oidcContradiction(given: OidcSettings): string | undefined {
  const url = new URL(given.issuer)
  if (url.username !== '' || url.password !== '') return 'issuer holds a user: use clientId and clientSecret'
  if (/[?#]/.test(given.issuer)) return 'issuer holds a query or a fragment: an issuer has none'
  if (given.issuer.includes('/.well-known/')) return 'issuer is what comes before /.well-known/'
  const odd = given.endpointHosts?.find((entry) => listedPlace(entry) === undefined)
  if (odd !== undefined) return 'endpointHosts takes host or host:port, without https://'
  const { clientId, clientSecret, user, password } = given
  if (clientSecret !== undefined && clientId === undefined) return 'clientSecret needs a clientId'
  if (clientId !== undefined && clientSecret === undefined && user === undefined) return 'clientId needs a clientSecret'
  if (user !== undefined && password === undefined) return 'user needs a password'
  if (password !== undefined && user === undefined) return 'password needs a user'
  if (user !== undefined && clientId === undefined)
    return 'user needs a clientId: the password grant belongs to a client'
  if (given.refusesWrongSecret && clientSecret === undefined)
    return 'refusesWrongSecret needs clientId and clientSecret'
  if (given.introspect && clientSecret === undefined) return 'introspect needs clientId and clientSecret'
  return undefined
}
