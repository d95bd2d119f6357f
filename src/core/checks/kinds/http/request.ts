import { isIP } from 'node:net'
import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { isLocal, ownAddresses, type PeerAddress } from '../../../base/net/addresses.ts'
import type { Chain } from '../../../base/net/certificates.ts'
import { type Arrival, open, type Route, travel, verifySetting } from '../../../base/net/http/route.ts'
import { createRedactor } from '../../../base/net/text.ts'
import { readTrust, trustSettings, unusedTrust } from '../../../base/net/trust.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import {
  headerMistake,
  headerNameMistake,
  type SettingsSpec,
  sameHeader,
  type Values,
} from '../../../base/settings/index.ts'
import type { ExecutionMode } from '../../../protocol/index.ts'
import { holdsNonce, type Nonce, newNonce, valuesWithNonce, withNonce } from '../../assert/nonce.ts'
import {
  type AddressTurn,
  type CheckContext,
  type Connection,
  includes,
  ok,
  type Result,
  type SignIn,
  warn,
} from '../../engine/index.ts'

import { clientSignIn, type OAuth2 } from './oauth2.ts'

/** The settings of a request, which all kinds that send one share. */
export const requestSettings = {
  url: {
    type: 'url',
    protocols: ['http', 'https'],
    required: true,
    doc: 'URL to request, without user or password. {nonce} in its path or query, in headers and in body stands for 16 random characters, new for each connection; in header, contains, matches, json and xml it stands for the value that was sent',
  },
  method: {
    type: 'choice',
    observed: true,
    values: ['GET', 'HEAD', 'POST'],
    default: 'GET',
    doc: 'POST is sent from Standard on, because it may write; Basic then only connects',
  },
  headers: {
    type: 'map',
    observed: true,
    mistake: headerMistake,
    sameKey: sameHeader,
    doc: 'Request headers; put credentials in password or token',
  },
  body: { type: 'text', observed: true, doc: 'Request body of a POST; set its Content-Type in headers' },
  username: { type: 'text', doc: 'User of HTTP basic sign-in, with password; sent from Standard on' },
  password: { type: 'secret', doc: 'Password of HTTP basic sign-in' },
  token: { type: 'secret', form: 'header', doc: 'Bearer token; sent from Standard on' },
  tokenHeader: {
    type: 'text',
    mistake: headerNameMistake,
    doc: 'Header that takes the bare token instead of Authorization, e.g. X-Api-Key',
  },
  insecureHttp: { type: 'flag', default: false, doc: 'Send password or token over http:// to other machines too' },
  redirects: {
    type: 'integer',
    default: 0,
    min: 0,
    max: 10,
    doc: 'How many redirects are followed; headers and credentials are not sent to another origin, and a POST follows none',
  },
  verify: verifySetting,
  ...trustSettings,
} as const satisfies SettingsSpec
export type RequestSettings = Values<typeof requestSettings>

/** Headers that only svc sets: framing, compression (an answer must not be a zip bomb), and credentials. */
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
  /** True if credentials are configured that this mode does not send. */
  readonly withheld: boolean
  /** The configured request, in which a nonce is substituted. A credential is never searched for one. */
  readonly template: Pick<RequestSettings, 'url' | 'headers' | 'body'>
  readonly credentials: Readonly<Record<string, string>>
}

type RouteOptions = {
  readonly mode: ExecutionMode
  /** The Accept header. */
  readonly accept: string
  /** True if the URL is the health check of another svc. */
  readonly asksPeer: boolean
  readonly files: ConfiguredFiles
}

/**
 * The request and its target in a mode; Basic never signs in. Reads the secrets and the CA file. Throws ProbeError if
 * one of them cannot be read.
 */
export async function routeOf(
  settings: RequestSettings & Credentials,
  url: URL,
  { mode, accept, asksPeer, files }: RouteOptions,
): Promise<RequestRoute> {
  const configured = hasCredentials(settings)
  const signing = signsIn(settings, mode) !== undefined
  const { headers, secrets } = signing ? await credentialsOf(settings, files) : { headers: {}, secrets: [] }
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
    trust: await readTrust(settings, files),
    servername: settings.servername,
    redact: createRedactor(secrets),
  }
}

/** The same route with a nonce, which is substituted only in requests to our own origin. */
export function routeWithNonce(route: RequestRoute, nonce: Nonce): RequestRoute {
  const { url, headers, body } = route.template
  if (!holdsNonce(url, headers, body)) return route
  return {
    ...route,
    url: new URL(withNonce(url, nonce)),
    body: withNonce(body, nonce),
    own: { ...valuesWithNonce(headers, nonce), ...route.credentials },
  }
}

type Credentials = Pick<RequestSettings, 'username' | 'password' | 'token' | 'tokenHeader'> & {
  readonly oauth2?: OAuth2 | undefined
}

async function credentialsOf(settings: Credentials, files: ConfiguredFiles) {
  // The token of a client is known later.
  if (settings.oauth2 !== undefined) return { headers: {}, secrets: [] }
  if (settings.token !== undefined) {
    const token = await settings.token.reveal(files)
    const headers =
      settings.tokenHeader === undefined ? { Authorization: `Bearer ${token}` } : { [settings.tokenHeader]: token }
    return { headers, secrets: [token] }
  }
  const password = (await settings.password?.reveal(files)) ?? ''
  const packed = Buffer.from(`${settings.username ?? ''}:${password}`).toString('base64')
  return { headers: { Authorization: `Basic ${packed}` }, secrets: [password, packed] }
}

const hasCredentials = ({ password, token, oauth2 }: Credentials): boolean =>
  password !== undefined || token !== undefined || oauth2 !== undefined

/** The account whose credentials this mode sends, from Standard on. Undefined if none are configured. */
export const signsIn = (settings: Credentials, mode: ExecutionMode): SignIn | undefined => {
  if (!hasCredentials(settings) || !includes(mode, 'Standard')) return undefined
  if (settings.oauth2 !== undefined) return clientSignIn(settings.oauth2)
  return { account: settings.username ?? 'token', secrets: [settings.token, settings.password], result: 'status' }
}

/** A connection to one address, for one request. */
export type RequestConnection<R extends Route = Route> = Connection & {
  readonly at: AddressTurn
  readonly route: R
  readonly chain: Chain | undefined
  /** The start of connecting, in monotonic milliseconds. */
  readonly openedMs: number
  /** Sends the request and follows redirects. */
  readonly request: (context: CheckContext) => Promise<Arrival>
}

/** Connects for one request, with TLS for https. Throws ProbeError, or the socket's error. */
export async function openRequest<R extends Route>(
  at: AddressTurn,
  route: R,
  context: CheckContext,
): Promise<RequestConnection<R>> {
  const openedMs = context.now()
  const link = await open(at, route.url, route, context)
  let { socket } = link
  return {
    usable: true,
    close: () => void socket.destroy(),
    at,
    route,
    chain: link.chain,
    openedMs,
    request: async (during) => {
      const arrival = await travel(link, { ...at, step: during.step }, route, during)
      socket = arrival.socket
      return arrival
    },
  }
}

/** Why `url` cannot be used, or undefined. */
export function urlProblem({
  url: text,
  fingerprint,
  clientCert,
  redirects = 0,
}: Pick<RequestSettings, 'url' | 'fingerprint' | 'clientCert'> & Partial<Pick<RequestSettings, 'redirects'>>):
  | string
  | undefined {
  const { username, password, protocol } = new URL(text)
  const unused = protocol === 'http:' && redirects === 0 ? unusedTrust({ fingerprint, clientCert }, 'https') : undefined
  if (unused !== undefined) return unused
  if (username !== '' || password !== '') return 'url contains a user or a password: use username and password'
  if (protocol !== 'http:' && protocol !== 'https:') return 'url is neither http nor https'
  return leadsAway(text) ? 'url contains {nonce} before its path: move it to the path or the query' : undefined
}

/** Whether a nonce changes the origin of a URL: the credentials would go to a server that svc.yaml does not name. */
function leadsAway(url: string): boolean {
  const { origin, host } = new URL(url)
  return holdsNonce(host) || URL.parse(withNonce(url, newNonce()))?.origin !== origin
}

/**
 * The result in a run that another svc requested. Such a run queries no other svc, because two could query each other
 * for ever.
 */
export const declineForPeer = ({ calledByPeer }: Pick<CheckContext, 'calledByPeer'>): Result | undefined =>
  calledByPeer ? ok('health', 'skipped to avoid a loop: another svc requested this run') : undefined

declare module '../../engine/index.ts' {
  interface Services {
    /** The URL of this process, once it serves HTTP. */
    readonly ownUrl: () => string | undefined
  }
}

/** The result if the address is that of this process. */
export const declineOwnProcess = (
  { ip, port, address }: PeerAddress,
  { services }: Pick<CheckContext, 'services'>,
): Result | undefined =>
  isOwnProcess(ip, port, services.ownUrl?.())
    ? warn('health', `not requested: ${address} is this svc process itself`)
    : undefined

/** Whether this process itself listens at an address and port; `url` is its announced URL. */
export function isOwnProcess(ip: string, port: number, url: string | undefined): boolean {
  const own = url === undefined ? null : URL.parse(url)
  if (own === null || portOf(own) !== port) return false
  const host = hostOf(own)
  // It listens at one address only.
  if (isIP(host) !== 0 && host !== '0.0.0.0' && host !== '::') return ip === host
  return isLocal(ip) || ownAddresses().includes(ip)
}
