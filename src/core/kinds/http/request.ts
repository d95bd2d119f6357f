import { expectationProblem, patternProblem } from '../../assert/expectation.ts'
import { assertionProblem, linkProblem } from '../../assert/link-settings.ts'
import { holdsNonce, newNonce, valuesWithNonce, withNonce } from '../../assert/nonce.ts'
import { type CheckContext, includes } from '../../engine/index.ts'
import { readCaFile } from '../../net/ca-file.ts'
import { asksPeerAt, type Route } from '../../net/http/route.ts'
import { hiding, said } from '../../net/text.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { hostProblem } from './link-admit.ts'
import type { HttpSettings } from './settings.ts'

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

/** Nor may a token stand in one of these; a bare token in Authorization or a cookie is what some servers want. */
const ownHeaders = new Set([...reservedHeaders, 'host'].filter((name) => name !== 'authorization' && name !== 'cookie'))

/** The /healthcheck of a server like this one, also where `health` was forgotten. */
export const asksPeer = (given: HttpSettings, url: URL): boolean => given.health || asksPeerAt(url)

type AskedRoute = Route & {
  /** Credentials are configured, but this mode sends none. */
  readonly withheld: boolean
  /** As configured: what a nonce goes into. A credential is never looked through for one. */
  readonly template: Pick<HttpSettings, 'url' | 'headers' | 'body'>
  readonly credentials: Readonly<Record<string, string>>
}

/**
 * What is sent where, in a mode: Basic signs in nowhere. Reads the secrets.
 */
export async function routeOf(given: HttpSettings, url: URL, context: CheckContext): Promise<AskedRoute> {
  const configured = given.password !== undefined || given.token !== undefined
  const signing = signsIn(given, context.mode)
  const { headers, secrets } = signing ? await credentialsOf(given) : { headers: {}, secrets: [] }
  return {
    url,
    method: given.method,
    body: given.body,
    common: {
      'User-Agent': 'svc',
      Accept: accepts(given),
      'Cache-Control': 'no-store',
      ...(asksPeer(given, url) ? { 'X-Svc-Hops': '1' } : {}),
    },
    own: { ...given.headers, ...headers },
    signsIn: signing,
    withheld: configured && !signing,
    template: { url: given.url, headers: given.headers, body: given.body },
    credentials: headers,
    insecureHttp: given.insecureHttp,
    redirects: given.redirects,
    verify: given.verify,
    ca: await readCaFile(given.caFile),
    hide: hiding(secrets),
  }
}

/** The same with a nonce in what is sent to our own origin. */
export function routeWithNonce(route: AskedRoute, nonce: string): AskedRoute {
  const { url, headers, body } = route.template
  if (!holdsNonce(url, headers, body)) return route
  return {
    ...route,
    url: new URL(withNonce(url, nonce)),
    body: withNonce(body, nonce),
    own: { ...valuesWithNonce(headers, nonce), ...route.credentials },
  }
}

/** A server that can say it in several ways is asked for the one that is judged. */
function accepts(given: HttpSettings): string {
  if (wantsXml(given)) return 'application/xml, text/xml;q=0.9, */*;q=0.1'
  return given.health || wantsJson(given) ? 'application/json' : '*/*'
}

const pathsOf = (given: HttpSettings): readonly string[] =>
  [...(given.measure ?? []), ...(given.links ?? [])].map(({ path }) => path)
const wantsJson = (given: HttpSettings): boolean =>
  given.json !== undefined || pathsOf(given).some((path) => path.includes('$'))
/** Whether an answer has to be read as XML. */
export const wantsXml = (given: HttpSettings): boolean =>
  given.xml !== undefined || pathsOf(given).some((path) => /^(?:count\()?\//.test(path))

async function credentialsOf(given: HttpSettings) {
  if (given.token !== undefined) {
    const token = await given.token.reveal()
    const headers =
      given.tokenHeader === undefined ? { Authorization: `Bearer ${token}` } : { [given.tokenHeader]: token }
    return { headers, secrets: [token] }
  }
  const password = (await given.password?.reveal()) ?? ''
  const packed = Buffer.from(`${given.username ?? ''}:${password}`).toString('base64')
  return { headers: { Authorization: `Basic ${packed}` }, secrets: [password, packed] }
}

/** Whether a nonce changes whom a URL asks: the credentials would go to a server that svc.yaml does not name. */
function leadsAway(url: string): boolean {
  const { origin, host } = new URL(url)
  return holdsNonce(host) || URL.parse(withNonce(url, newNonce()))?.origin !== origin
}

/** Why the settings cannot be used together, or undefined. */
export function validate(given: HttpSettings): string | undefined {
  const url = new URL(given.url)
  if (url.username !== '' || url.password !== '') return 'url holds a user or a password: use username and password'
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'url is neither http nor https'
  if (leadsAway(given.url)) return 'url holds {nonce} before its path: put it into the path or the query'
  if (given.body !== undefined && given.method !== 'POST') return 'a body needs method: POST'
  if (given.token !== undefined && given.password !== undefined) return 'token and password exclude each other'
  if (given.password !== undefined && given.username === undefined) return 'password needs a username'
  const { header, contains, matches, json, xml, headers, body } = given
  if (holdsNonce(header, contains, matches, json, xml) && !holdsNonce(given.url, headers, body)) {
    return 'expects {nonce}, which neither url nor headers nor body sends: put it into one of them'
  }
  if (given.username?.includes(':')) return 'a username of HTTP basic sign-in holds no colon'
  const judgesBody =
    given.health || given.contains !== undefined || given.matches !== undefined || wantsJson(given) || wantsXml(given)
  if (given.method === 'HEAD' && judgesBody) return 'method: HEAD has no body to judge'
  const names = Object.keys(given.headers ?? {})
  const secret = given.password !== undefined || given.token !== undefined
  // Behind one address many servers may be told apart by it: the secret is for the one that url names.
  if (secret && names.some((name) => name.toLowerCase() === 'host'))
    return 'headers may not set Host beside a password or token'
  if (given.tokenHeader !== undefined && ownHeaders.has(given.tokenHeader.toLowerCase())) {
    return `tokenHeader may not be ${said(given.tokenHeader, 64)}`
  }
  const taken = names.find((name) => reservedHeaders.has(name.toLowerCase()))
  if (taken === undefined) return documentProblem(given)
  return `headers may not set ${said(taken, 64)}${taken.toLowerCase() === 'authorization' ? ': use password or token' : ''}`
}

function documentProblem(given: HttpSettings): string | undefined {
  const links = given.links ?? []
  const lost = links.map(linkProblem).find((problem) => problem !== undefined)
  if (lost !== undefined) return lost
  if (given.linkHosts !== undefined && links.length === 0) return 'linkHosts needs links'
  const pattern = given.matches === undefined ? undefined : patternProblem(given.matches)
  if (pattern !== undefined) return `matches: ${pattern}`
  for (const [name, expectation] of Object.entries(given.header ?? {})) {
    const wrong = expectationProblem(expectation)
    if (wrong !== undefined) return `header ${said(name, 64)}: ${wrong}`
  }
  const host = given.linkHosts?.map(hostProblem).find((problem) => problem !== undefined)
  return host ?? assertionProblem(given, 'this monitor', ['parse'])
}

/** Credentials are configured: they are sent from Standard on. */
export const signsIn = (given: HttpSettings, mode: ExecutionMode): boolean =>
  (given.password !== undefined || given.token !== undefined) && includes(mode, 'Standard')
