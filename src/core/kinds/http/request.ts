import { holdsNonce, newNonce, valuesWithNonce, withNonce } from '../../assert/nonce.ts'
import { includes } from '../../engine/index.ts'
import { readCaFile } from '../../net/ca-file.ts'
import type { Route } from '../../net/http/route.ts'
import { hiding } from '../../net/text.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import type { RequestSettings } from './settings.ts'

/** Headers that are ours to set: framing, packing (an answer must not be a zip bomb), and credentials. */
export const reservedHeaders: ReadonlySet<string> = new Set([
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'cookie',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-svc-hops',
])

export type RequestRoute = Route & {
  /** Credentials are configured, but this mode sends none. */
  readonly withheld: boolean
  /** As configured: what a nonce goes into. A credential is never looked through for one. */
  readonly template: Pick<RequestSettings, 'url' | 'headers' | 'body'>
  readonly credentials: Readonly<Record<string, string>>
}

type RouteOptions = {
  readonly mode: ExecutionMode
  /** The content type to ask for. */
  readonly accept: string
  /** The URL is the health check of another svc. */
  readonly asksPeer: boolean
}

/**
 * What is sent where, in a mode: Basic signs in nowhere. Reads the secrets and the CA file. Throws ProbeError for one
 * that cannot be read.
 */
export async function routeOf(
  settings: RequestSettings,
  url: URL,
  { mode, accept, asksPeer }: RouteOptions,
): Promise<RequestRoute> {
  const configured = hasCredentials(settings)
  const signing = signsIn(settings, mode)
  const { headers, secrets } = signing ? await credentialsOf(settings) : { headers: {}, secrets: [] }
  return {
    url,
    method: settings.method,
    body: settings.body,
    common: {
      'User-Agent': 'svc',
      Accept: accept,
      'Cache-Control': 'no-store',
      ...(asksPeer ? { 'X-Svc-Hops': '1' } : {}),
    },
    own: { ...settings.headers, ...headers },
    signsIn: signing,
    withheld: configured && !signing,
    template: { url: settings.url, headers: settings.headers, body: settings.body },
    credentials: headers,
    insecureHttp: settings.insecureHttp,
    redirects: settings.redirects,
    verify: settings.verify,
    ca: await readCaFile(settings.caFile),
    hide: hiding(secrets),
  }
}

/** The same with a nonce in what is sent to our own origin. */
export function routeWithNonce(route: RequestRoute, nonce: string): RequestRoute {
  const { url, headers, body } = route.template
  if (!holdsNonce(url, headers, body)) return route
  return {
    ...route,
    url: new URL(withNonce(url, nonce)),
    body: withNonce(body, nonce),
    own: { ...valuesWithNonce(headers, nonce), ...route.credentials },
  }
}

type Credentials = Pick<RequestSettings, 'username' | 'password' | 'token' | 'tokenHeader'>

async function credentialsOf(settings: Credentials) {
  if (settings.token !== undefined) {
    const token = await settings.token.reveal()
    const headers =
      settings.tokenHeader === undefined ? { Authorization: `Bearer ${token}` } : { [settings.tokenHeader]: token }
    return { headers, secrets: [token] }
  }
  const password = (await settings.password?.reveal()) ?? ''
  const packed = Buffer.from(`${settings.username ?? ''}:${password}`).toString('base64')
  return { headers: { Authorization: `Basic ${packed}` }, secrets: [password, packed] }
}

const hasCredentials = ({ password, token }: Credentials): boolean => password !== undefined || token !== undefined

/** Credentials are configured: they are sent from Standard on. */
export const signsIn = (settings: Credentials, mode: ExecutionMode): boolean =>
  hasCredentials(settings) && includes(mode, 'Standard')

/** Why a URL cannot be asked, or undefined. */
export function urlProblem(text: string): string | undefined {
  const { username, password, protocol } = new URL(text)
  if (username !== '' || password !== '') return 'url holds a user or a password: use username and password'
  if (protocol !== 'http:' && protocol !== 'https:') return 'url is neither http nor https'
  return leadsAway(text) ? 'url holds {nonce} before its path: put it into the path or the query' : undefined
}

/** Whether a nonce changes whom a URL asks: the credentials would go to a server that svc.yaml does not name. */
function leadsAway(url: string): boolean {
  const { origin, host } = new URL(url)
  return holdsNonce(host) || URL.parse(withNonce(url, newNonce()))?.origin !== origin
}
