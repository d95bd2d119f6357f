import { quote, safeUrl } from '../../net/text.ts'
import { hostOf, portOf, usualPort } from '../../net/url.ts'
import { ProbeError } from '../../probe-error.ts'
import { hostAndPort, type Secret } from '../../settings/index.ts'
import type { OidcJson, OidcProvider, SharedSettings } from './provider.ts'

/**
 * The URL of the discovery document (OpenID Connect Discovery 1.0, 4). A trailing slash of the issuer is not doubled.
 */
export const discoveryUrl = ({ issuer }: Pick<SharedSettings, 'issuer'>): URL =>
  new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)

type EndpointSettings = Pick<SharedSettings, 'issuer' | 'endpointHosts'>

/** An endpoint that the provider names, or why svc neither trusts it nor sends requests to it. */
export type Endpoint = { readonly url: URL } | { readonly problem: string }

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
