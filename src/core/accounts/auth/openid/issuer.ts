import type { JSONWebKeySet, JWK } from 'jose'
import { filesWithin } from '../../../base/files/index.ts'
import { isObject, member } from '../../../base/json.ts'
import { isLoopbackHost } from '../../../base/loopback.ts'
import type { OpenIdSettings } from '../providers/provider.ts'
import { ask, ProviderProblem } from './ask.ts'

/** Milliseconds. */
type CacheTimes = {
  /** Used without another request. */
  readonly fresh: number
  /** Used while the provider does not answer. */
  readonly stale: number
}

/** After a failed request, the provider is left alone for this long. Milliseconds. */
export const pauseMs = 10_000

/** A document of the provider, requested again when it is old. Concurrent callers share one request. */
class DocumentCache<T> {
  readonly #load: (now: () => number) => Promise<T>
  readonly #times: CacheTimes
  #value: { readonly it: T; readonly at: number } | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  #failedAt = Number.NEGATIVE_INFINITY
  #problem: unknown
  #loading: Promise<void> | undefined

  constructor(times: CacheTimes, load: (now: () => number) => Promise<T>) {
    this.#times = times
    this.#load = load
  }

  /**
   * The document. `renewAfter`: milliseconds after the last request from which it is requested again although it is
   * fresh. Throws ProviderProblem when there is none that may still be used.
   */
  async get(now: () => number, renewAfter?: number): Promise<T> {
    const at = now()
    const age = this.#value === undefined ? Number.POSITIVE_INFINITY : Math.abs(at - this.#value.at)
    const isDue = age >= this.#times.fresh || (renewAfter !== undefined && at - this.#triedAt >= renewAfter)
    if (isDue && Math.abs(at - this.#failedAt) >= pauseMs) {
      this.#loading ??= this.#renew(now)
      await this.#loading
    }
    const current = this.#value
    if (current && Math.abs(at - current.at) < this.#times.stale) return current.it
    throw this.#problem ?? new ProviderProblem('the provider did not answer')
  }

  async #renew(now: () => number): Promise<void> {
    const at = now()
    this.#triedAt = at
    try {
      this.#value = { it: await this.#load(now), at }
      this.#failedAt = Number.NEGATIVE_INFINITY
    } catch (error) {
      this.#failedAt = now()
      this.#problem = error
    } finally {
      this.#loading = undefined
    }
  }
}

const minute = 60_000

/** The members of the discovery document that svc uses. */
export type Endpoints = {
  readonly authorization: URL | undefined
  readonly token: URL | undefined
  readonly introspection: URL | undefined
  readonly keys: URL
  /** The provider names itself in every answer to a browser (RFC 9207). */
  readonly namesItself: boolean
  /** Whether the token endpoint takes the secret in a header. */
  readonly basic: boolean
}

/** The provider: what svc knows of it in this process. Its URLs come from the configured issuer only (T7). */
export class OpenIdIssuer {
  readonly settings: OpenIdSettings
  readonly #endpoints: DocumentCache<Endpoints>
  readonly #keys: DocumentCache<JSONWebKeySet>
  #running = 0

  constructor(settings: OpenIdSettings) {
    this.settings = settings
    this.#endpoints = new DocumentCache({ fresh: 60 * minute, stale: 24 * 60 * minute }, () => this.#discover())
    this.#keys = new DocumentCache({ fresh: 10 * minute, stale: 60 * minute }, (now) => this.#readKeys(now))
  }

  endpoints(now: () => number): Promise<Endpoints> {
    return this.#endpoints.get(now)
  }

  /** The keys. `renewed`: as new as an unknown key justifies, which is requested at most every 30 s. */
  async keys(now: () => number, renewed = false): Promise<JSONWebKeySet> {
    return await this.#keys.get(now, renewed ? minute / 2 : undefined)
  }

  /** A POST to an endpoint, with the credentials of the client. At most 16 at once. */
  async post(
    url: URL,
    form: URLSearchParams,
    basic: boolean,
  ): Promise<{ readonly status: number; readonly json: unknown }> {
    if (this.#running >= mostAtOnce) throw new ProviderProblem('too many requests at once')
    this.#running += 1
    try {
      const { clientId, clientSecret, caFile } = this.settings
      const secret = await clientSecret?.reveal(filesWithin(maxSecretMs)).catch((error: unknown) => {
        throw new ProviderProblem(error instanceof Error ? error.message : 'the secret cannot be read')
      })
      if (secret !== undefined && basic) {
        return await ask(url, { form, authorization: `Basic ${basicPair(clientId, secret)}`, caFile })
      }
      form.set('client_id', clientId)
      if (secret !== undefined) form.set('client_secret', secret)
      return await ask(url, { form, caFile })
    } finally {
      this.#running -= 1
    }
  }

  async #discover(): Promise<Endpoints> {
    const { issuer, caFile } = this.settings
    const url = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
    const { status, json } = await ask(url, { caFile })
    if (status !== 200) throw new ProviderProblem(`${url.href} answered ${status}`)
    if (member(json, 'issuer') !== issuer) {
      throw new ProviderProblem(`the discovery document names another issuer than ${issuer}`)
    }
    const keys = endpoint(json, 'jwks_uri')
    if (!keys) throw new ProviderProblem('the discovery document has no jwks_uri with https')
    const methods = member(json, 'token_endpoint_auth_methods_supported')
    return {
      authorization: endpoint(json, 'authorization_endpoint'),
      token: endpoint(json, 'token_endpoint'),
      introspection: endpoint(json, 'introspection_endpoint'),
      keys,
      namesItself: member(json, 'authorization_response_iss_parameter_supported') === true,
      basic:
        !Array.isArray(methods) || methods.includes('client_secret_basic') || !methods.includes('client_secret_post'),
    }
  }

  async #readKeys(now: () => number): Promise<JSONWebKeySet> {
    const { keys: url } = await this.endpoints(now)
    const { status, json } = await ask(url, { caFile: this.settings.caFile })
    const listed = member(json, 'keys')
    if (status !== 200 || !Array.isArray(listed))
      throw new ProviderProblem(`${url.href} answered ${status} without keys`)
    if (listed.length > mostKeys) throw new ProviderProblem(`${url.href} has more than ${mostKeys} keys`)
    return { keys: (listed as readonly unknown[]).flatMap(signingKey) }
  }
}

const mostAtOnce = 16
/** Milliseconds that a share with the secret may take. */
const maxSecretMs = 5_000
const mostKeys = 100

/** Both parts are encoded as in a form (RFC 6749, 2.3.1). */
function basicPair(clientId: string, secret: string): string {
  const encoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
  return Buffer.from(`${encoded(clientId)}:${encoded(secret)}`).toString('base64')
}

/** An endpoint with https, or with http on this machine. */
function endpoint(document: unknown, name: string): URL | undefined {
  const written = member(document, name)
  const url = typeof written === 'string' && written.length <= 2_048 ? URL.parse(written) : null
  if (url === null || url.username !== '' || url.password !== '') return undefined
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname)) ? url : undefined
}

const publicMembers: Readonly<Record<string, readonly string[]>> = {
  RSA: ['n', 'e'],
  EC: ['crv', 'x', 'y'],
  OKP: ['crv', 'x'],
}

/** A public key for signatures, reduced to the members that matter. A shared secret never verifies anything. */
function signingKey(key: unknown): readonly JWK[] {
  if (!isObject(key) || key['use'] === 'enc') return []
  const members =
    typeof key['kty'] === 'string' && Object.hasOwn(publicMembers, key['kty']) ? publicMembers[key['kty']] : []
  if (!members || members.length === 0) return []
  const publicPart = ['kty', 'kid', 'alg', ...members].flatMap((name) => {
    const value = member(key, name)
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  return [Object.fromEntries(publicPart) as JWK]
}
