import { Fault } from '../../../core/base/errors.ts'
import type { JsonObject } from '../../../core/base/json.ts'
import { isLoopbackHost } from '../../../core/base/loopback.ts'
import { sanitizeAndCut } from '../../../core/base/sanitize.ts'
import { type ClientOptions, openClient } from '../../../core/client/index.ts'
import type { Call } from '../../../core/protocol/service/service.ts'
import { readJson } from './json.ts'
import type { OpenIdProvider } from './server-providers.ts'

/** The parts of the connection to svc's server that also apply to the provider. */
export type ProviderLink = Pick<ClientOptions, 'caFile' | 'userAgent' | 'env'>

/** The configuration of the provider (OpenID Connect Discovery 1.0, RFC 8414). */
export type DiscoveredProvider = {
  readonly issuer: string
  readonly authorization: URL | undefined
  readonly token: URL
  readonly deviceAuthorization: URL | undefined
  /** Whether its answers through the browser always name the issuer (RFC 9207). */
  readonly namesItself: boolean
}

/** Milliseconds for one request to the provider. */
const patience = 10_000
const maxAddress = 2_000

/**
 * An address that may be opened in a browser or receive a code: https, or http on this machine. Undefined for anything
 * else.
 */
export function safeAddress(value: unknown): URL | undefined {
  if (typeof value !== 'string' || value.length > maxAddress) return undefined
  const url = URL.parse(value)
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return undefined
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname)) ? url : undefined
}

/** Reads the configuration of a provider. Rejects with a `Fault` that names the provider. */
export async function discover(provider: OpenIdProvider, link: ProviderLink, call: Call): Promise<DiscoveredProvider> {
  const { issuer } = provider
  const base = safeAddress(issuer)
  if (base?.search !== '') {
    throw new Fault('ServerError', `the server names an unusable provider: ${printable(issuer)}`, {
      hints: [
        'The issuer must be an https URL without a query; http is allowed on this machine only.',
        whereConfigured,
      ],
    })
  }
  const at = new URL(`${base.origin}${base.pathname.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const { status, json } = await askProvider(at, { method: 'GET' }, link, call)
  const unusable = (what: string): Fault =>
    new Fault('ServerError', `${printable(issuer)} ${what}`, { remoteStatus: status, hints: [whereConfigured] })
  if (status !== 200 || !json) throw unusable(`has no OpenID configuration (${status} for GET ${at.href})`)
  if (json['issuer'] !== issuer)
    throw unusable(`names the issuer ${printable(json['issuer'])} in its OpenID configuration`)
  const endpoint = (name: string): URL | undefined => {
    const url = safeAddress(json[name])
    // Traffic may be unencrypted only if the whole provider is on this machine.
    return url?.protocol === 'http:' && base.protocol === 'https:' ? undefined : url
  }
  const token = endpoint('token_endpoint')
  if (!token) throw unusable('has no usable token endpoint in its OpenID configuration')
  const methods = json['code_challenge_methods_supported']
  const challenges = !Array.isArray(methods) || methods.includes('S256')
  return {
    issuer,
    // Without the challenge, a program that reads the answer of the browser could use the code.
    authorization: challenges ? endpoint('authorization_endpoint') : undefined,
    token,
    deviceAuthorization: endpoint('device_authorization_endpoint'),
    namesItself: json['authorization_response_iss_parameter_supported'] === true,
  }
}

const whereConfigured = 'The provider is configured at the server, in auth.openid of its svc.yaml.'
export const printable = (text: unknown): string => sanitizeAndCut(String(text), 200)

/** Sends one request to a provider and reads its JSON. Rejects with a `Fault` if there is no answer. */
export async function askProvider(
  url: URL,
  request: { readonly method: 'GET' } | { readonly method: 'POST'; readonly form: Readonly<Record<string, string>> },
  { caFile, userAgent, env }: ProviderLink,
  call: Call,
): Promise<{ readonly status: number; readonly json: JsonObject | undefined }> {
  const { signal, caller, correlationId } = call
  try {
    using client = openClient({ baseUrl: url.origin, caFile, userAgent, env, insecureHttp: false })
    const answer = await client.ask(
      {
        method: request.method,
        path: `${url.pathname}${url.search}`,
        headers: request.method === 'POST' ? [['Content-Type', 'application/x-www-form-urlencoded']] : [],
        body: request.method === 'POST' ? Buffer.from(new URLSearchParams(request.form).toString()) : undefined,
      },
      { signal, caller, correlationId, timeoutMs: patience },
    )
    return { status: answer.status, json: readJson(answer.bytes) }
  } catch (error) {
    if (signal.aborted || !(error instanceof Fault)) throw error
    // The other hints are about svc's own server.
    const hints = (error.details.hints ?? []).filter((hint) => /--ca-file|_PROXY|DNS|VPN/.test(hint))
    throw new Fault(error.fault, `identity provider: ${error.message}`, {
      ...error.details,
      hints: [...hints, whereConfigured],
    })
  }
}
