import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { isLoopback } from '../../../base/loopback.ts'
import type { PeerAddress } from '../../../base/net/addresses.ts'
import type { Chain } from '../../../base/net/certificates.ts'
import { hostPort } from '../../../base/net/connect.ts'
import { callOver, open, type Route } from '../../../base/net/http/route.ts'
import { readJson } from '../../../base/net/json.ts'
import { createRedactor, quote, type Redact, safeUrl } from '../../../base/net/text.ts'
import { readTrust, trustSettings } from '../../../base/net/trust.ts'
import { hostOf, portOf, usualPort } from '../../../base/net/url.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { hostAndPort, type Secret, type SettingsSpec, type Values } from '../../../base/settings/index.ts'
import { type CheckContext, latencySetting, proxySettings } from '../../engine/index.ts'

/** Settings for the requests and their credentials, which several checks share. */
export const sharedSettings = {
  ...proxySettings,
  issuer: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'Issuer exactly as clients use it, with or without a slash at the end; without /.well-known/',
  },
  endpointHosts: {
    type: 'texts',
    doc: 'Other hosts of its endpoints: `host`, or `host:port` if the port is not the default',
  },
  ...trustSettings,
  insecureHttp: { type: 'flag', default: false, doc: 'Allow http://, also for sending secrets to other machines' },
  clientId: { type: 'text', doc: 'A dedicated client: Advanced requests a token with its client credentials' },
  clientSecret: { type: 'secret', doc: 'Secret of the client, sent only to the token endpoint' },
  scope: { type: 'text', doc: 'Scopes to request, separated by spaces' },
  audience: { type: 'text', doc: 'Required audience of the token (aud); also sent as `audience`' },
  resource: {
    type: 'text',
    doc: 'Sent as `resource` (RFC 8707), for providers that derive the audience of a token from it',
  },
  username: { type: 'text', doc: 'A dedicated account, if the provider still supports the password grant' },
  password: { type: 'secret', doc: "The user's password, sent only to the token endpoint" },
  latency: latencySetting(
    { warn: 1_000, limit: 3_000 },
    'How long the discovery document, the keys and each token may take',
  ),
} as const satisfies SettingsSpec
export type SharedSettings = Values<typeof sharedSettings>

/**
 * Maximum bytes of one answer: documents have a few thousand, and a hundred keys with certificates a few hundred
 * thousand.
 */
const maxAnswer = 512 * 1024
/** Maximum nesting depth of JSON, more than twice the depth of any answer of a provider. */
const deepest = 32

export type OidcJson = Readonly<Record<string, unknown>>
export const object = (value: unknown): OidcJson =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as OidcJson) : {}

export type OidcAnswer = {
  readonly address: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly json: unknown } | { readonly problem: string }
  /** The wall-clock times before the request and at the start of the answer. */
  readonly sent: Date
  readonly receivedAt: Date
  readonly ms: number
}

/** `authorization` and `form` contain secrets. `secrets` lists all of them, in every form in which they are sent. */
export type OidcAsk = {
  readonly authorization?: string | undefined
  readonly form?: URLSearchParams | undefined
  readonly secrets?: readonly string[]
}

/** A provider at one address. Every request opens its own connection and follows no redirect. */
export type OidcProvider = {
  readonly address: string
  /** On loopback, plain http is safe. */
  readonly loopback: boolean
  /** Where the secrets of its settings are read. */
  readonly files: ConfiguredFiles
  /** Sends a GET, or a POST with a form. Throws ProbeError, or a socket's error. */
  readonly ask: (url: URL, ask?: OidcAsk) => Promise<OidcAnswer>
  /** The certificate chains of the hosts that were contacted over https. `issuer` is undefined for an http issuer. */
  readonly chains: () => { readonly issuer: Chain | undefined; readonly others: readonly Chain[] }
  /** Redacts all secrets that svc has sent or received so far from a peer's text. */
  readonly redact: Redact
  /** Adds a secret that the provider issued, so that `redact` covers it as well. */
  readonly keep: (secret: string) => void
}

export async function providerAt(
  settings: SharedSettings,
  at: PeerAddress,
  context: CheckContext,
): Promise<OidcProvider> {
  const issuer = new URL(settings.issuer)
  const trust = await readTrust(settings, context.files)
  const chains = new Map<string, Chain>()
  const hidden = new Set<string>()
  const redact: Redact = (text) => createRedactor([...hidden])(text)
  const ask = async (url: URL, { authorization, form, secrets = [] }: OidcAsk = {}): Promise<OidcAnswer> => {
    for (const secret of secrets) hidden.add(secret)
    // The fingerprint and the name are those of the issuer's own host.
    const isIssuer = hostOf(url) === hostOf(issuer)
    const route: Route = {
      url,
      method: form ? 'POST' : 'GET',
      common: {},
      own: {},
      signsIn: authorization !== undefined || secrets.length > 0,
      insecureHttp: settings.insecureHttp,
      redirects: 0,
      verify: true,
      trust: isIssuer ? trust : { ...trust, pinned: [] },
      servername: isIssuer ? settings.servername : undefined,
      redact,
    }
    const began = context.now()
    const target = await placeFor(url, issuer, at, context)
    const { socket, chain } = await open(target, url, route, context)
    try {
      if (chain && !chains.has(url.host)) chains.set(url.host, chain)
      const body = form?.toString()
      const headers = {
        Host: url.host,
        'User-Agent': 'svc',
        Accept: 'application/json, application/jwk-set+json;q=0.9',
        ...(authorization === undefined ? {} : { Authorization: authorization }),
        ...(body === undefined
          ? {}
          : {
              'Content-Type': 'application/x-www-form-urlencoded',
              'Content-Length': String(Buffer.byteLength(body)),
            }),
        Connection: 'close',
      }
      const sent = context.date()
      const path = `${url.pathname}${url.search}`
      const request = { method: route.method, path, headers, body }
      const head = await callOver({ socket, at: target, url }, request, route, context)
      const receivedAt = context.date()
      const { bytes, more } = await head.read(maxAnswer)
      if (more) {
        throw new ProbeError('protocol', `${target.address} answered ${safeUrl(url)} with more than 512 KiB`)
      }
      const { status, headers: heads } = head
      return {
        address: target.address,
        status,
        headers: heads,
        body: read(bytes),
        sent,
        receivedAt,
        ms: context.now() - began,
      }
    } finally {
      socket.destroy()
    }
  }
  return {
    address: at.address,
    loopback: isLoopback(at.ip),
    files: context.files,
    ask,
    chains: () => ({
      issuer: chains.get(issuer.host),
      others: [...chains].flatMap(([place, chain]) => (place === issuer.host ? [] : [chain])),
    }),
    redact,
    keep: (secret) => void hidden.add(secret),
  }
}

/** Requests to the issuer's own host use the address that is being probed. */
async function placeFor(url: URL, issuer: URL, at: PeerAddress, context: CheckContext): Promise<PeerAddress> {
  const port = portOf(url)
  const ip = hostOf(url) === hostOf(issuer) ? at.ip : (await context.resolve(hostOf(url)))[0]
  if (ip === undefined) throw new ProbeError('dns', `${hostOf(url)} has no address`)
  return { ...at, ip, port, address: hostPort(ip, port) }
}

/** Parses JSON from a peer, up to a limited depth. */
export function read(bytes: Buffer): OidcAnswer['body'] {
  const answer = readJson(bytes.toString('utf8'), deepest)
  if ('json' in answer) return answer
  if (answer.problem === 'tooDeep') return { problem: `JSON nested more than ${deepest} deep` }
  return { problem: bytes.length === 0 ? 'nothing' : 'no JSON' }
}

/**
 * The URL of the discovery document (OpenID Connect Discovery 1.0, 4). A trailing slash of the issuer is not doubled.
 */
export const discoveryUrl = ({ issuer }: Pick<SharedSettings, 'issuer'>): URL =>
  new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)

type EndpointSettings = Pick<SharedSettings, 'issuer' | 'endpointHosts'>

/** An endpoint that the provider names, or why svc neither trusts it nor sends requests to it. */
type Endpoint = { readonly url: URL } | { readonly problem: string }

/**
 * Validates an endpoint of the discovery document against the configuration: a document must choose neither the hosts
 * that svc connects to nor the recipients of its secrets.
 */
export function endpointOf(written: unknown, settings: EndpointSettings): Endpoint {
  if (typeof written !== 'string') return { problem: 'is not text' }
  const url = written.length > 2_048 ? null : URL.parse(written)
  if (url === null) return { problem: `is ${quote(written, 80)}, which is not a URL` }
  const issuer = new URL(settings.issuer)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return { problem: `begins with ${quote(url.protocol, 16)}` }
  if (url.protocol === 'http:' && issuer.protocol === 'https:') {
    return {
      problem: `is ${safeUrl(url)}, plain http, although the issuer is https: check that the proxy forwards its scheme`,
    }
  }
  if (url.username !== '' || url.password !== '') return { problem: `is ${safeUrl(url)}, with a user in it` }
  if (url.hash !== '') return { problem: `is ${safeUrl(url)}, with a fragment` }
  if (url.origin === issuer.origin || (settings.endpointHosts ?? []).some((entry) => matches(entry, url)))
    return { url }
  return {
    problem: `is ${safeUrl(url)}, not at ${issuer.host}: if that is intended, add ${quote(url.host, 128)} to endpointHosts`,
  }
}

/** The host and the port of an entry of endpointHosts; undefined for an invalid entry. */
export function listedPlace(entry: string): { readonly host: string; readonly port: number | undefined } | undefined {
  const [, host, port] = /^(\[[\da-f:.]+\]|[\p{L}\p{M}\p{N}._-]+)(?::(\d{1,5}))?$/iu.exec(entry) ?? []
  return host === undefined ? undefined : { host, port: port === undefined ? undefined : Number(port) }
}

function matches(entry: string, url: URL): boolean {
  const place = listedPlace(entry)
  if (place === undefined) return false
  return hostAndPort(place.host, place.port ?? usualPort(url)) === hostAndPort(hostOf(url), portOf(url))
}

/** A provider and its discovery document, which names the other endpoints. */
export type OidcSession = {
  readonly provider: OidcProvider
  readonly settings: SharedSettings
  readonly document: OidcJson
}

/** The URL of an endpoint that svc may use. Otherwise throws ProbeError `data` that names the endpoint. */
export function endpointAt({ document, settings, provider }: OidcSession, name: string): URL {
  const written = document[name]
  if (written === undefined) throw new ProbeError('data', `${provider.address} reports no ${name}`)
  const endpoint = endpointOf(written, settings)
  if ('url' in endpoint) return endpoint.url
  throw new ProbeError('data', `nothing was sent: ${name} ${endpoint.problem}`)
}

/**
 * The secret, for one URL. A keychain stores a secret for the host and port of `target()`, which are the issuer's. Such
 * a secret is never sent to another host, even if that is listed. Throws ProbeError `data`, or the error of reading the
 * secret.
 */
export async function secretFor(
  url: URL,
  secret: Secret,
  name: string,
  { settings, provider }: Pick<OidcSession, 'settings' | 'provider'>,
): Promise<string> {
  const issuer = new URL(settings.issuer)
  const [bound, place] = [hostAndPort(hostOf(issuer), portOf(issuer)), hostAndPort(hostOf(url), portOf(url))]
  if (secret.origin.startsWith('{keychain:') && bound !== place) {
    const why = `${name} ${secret.origin} is bound to ${bound}, but the provider requires it at ${place}: nothing was sent`
    throw new ProbeError('data', `${why}. If it belongs there, use {file: /path}`)
  }
  return secret.reveal(provider.files)
}
