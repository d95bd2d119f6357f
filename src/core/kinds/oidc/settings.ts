import { hostOf, portOf } from '../../net/http/route.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'

/** Settings that decide how to ask, and as whom; several checks use each. */
export const sharedSettings = {
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
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long the discovery document, the keys and each token may take',
  },
} as const satisfies SettingsSpec
export type SharedSettings = Values<typeof sharedSettings>

export const placeOf = (url: URL) => ({ host: hostOf(url), port: portOf(url) })

/** Where the discovery document is (OpenID Connect Discovery 1.0, 4): a slash at the issuer's end is not doubled. */
export const discoveryUrl = ({ issuer }: Pick<SharedSettings, 'issuer'>): URL =>
  new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)

/** The host and the port of an entry of endpointHosts; undefined for what is none. */
export function listedPlace(entry: string): { readonly host: string; readonly port: number | undefined } | undefined {
  const [, host, port] = /^(\[[\da-f:.]+\]|[\p{L}\p{M}\p{N}._-]+)(?::(\d{1,5}))?$/iu.exec(entry) ?? []
  return host === undefined ? undefined : { host, port: port === undefined ? undefined : Number(port) }
}
