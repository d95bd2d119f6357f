import type { LookupFunction, Socket } from 'node:net'
import { ProbeError } from '../../probe-error.ts'
import type { Setting } from '../../settings/index.ts'
import { familyOf, isLocal, leadsNearer, type PeerAddress, reachOf } from '../addresses.ts'
import { type Chain, whyDistrusted } from '../certificates.ts'
import { connectTcp, hostPort } from '../connect.ts'
import { quote, type Redact, safeUrl } from '../text.ts'
import { connectTls } from '../tls-connect.ts'
import type { TlsTrust } from '../trust.ts'
import { hostOf, portOf } from '../url.ts'
import { call, type Head, type HttpCall } from './call.ts'
import { CookieJar } from './cookies.ts'
import { explainSilence } from './diagnose.ts'

/** The setting that becomes `Route.verify`. */
export const verifySetting = {
  type: 'flag',
  default: true,
  doc: 'Send no request to a server whose certificate is not trusted',
} as const satisfies Setting

export type Route = {
  readonly url: URL
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly body?: string | undefined
  /** Sent to every server. */
  readonly common: Readonly<Record<string, string>>
  /** Sent to the origin of `url` only: configured headers and credentials. */
  readonly own: Readonly<Record<string, string>>
  /** True when `own` holds a password or a token. */
  readonly signsIn: boolean
  readonly insecureHttp: boolean
  readonly redirects: number
  readonly verify: boolean
  /** The trust of the host of `url`. Another host is trusted by its CAs alone. */
  readonly trust: TlsTrust
  /** Name for SNI and in the certificate of that host, if it is not the host itself. */
  readonly servername?: string | undefined
  readonly redact: Redact
}

export type RouteLink = { readonly socket: Socket; readonly chain: Chain | undefined }

/** Connects, with TLS for https. With `verify`, a server that cannot be verified gets no request. */
export async function open(target: PeerAddress, url: URL, route: Route, context: NetContext): Promise<RouteLink> {
  if (url.protocol === 'http:') {
    if (route.signsIn && isOurs(url, route) && !route.insecureHttp && !isLocal(target.ip)) {
      const advice = 'use https, or insecureHttp'
      throw new ProbeError('data', `credentials are not sent to ${target.address} over plain http: ${advice}`)
    }
    return { socket: await connectTcp(target.ip, target.port, target.signal), chain: undefined }
  }
  const { verify, trust } = route
  const isOwnHost = hostOf(url) === hostOf(route.url)
  const { socket, chain } = await connectTls(target, {
    host: (isOwnHost ? route.servername : undefined) ?? hostOf(url),
    ca: trust.ca,
    pinned: isOwnHost ? trust.pinned : [],
    client: isOwnHost ? trust.client : undefined,
    verify,
    date: context.date,
  })
  // A pinned certificate is required even where the chain does not matter.
  const why = verify || chain.pin !== undefined ? whyDistrusted(chain) : undefined
  if (why === undefined) return { socket, chain }
  socket.destroy()
  throw new ProbeError('tls', why)
}

const isOurs = (url: URL, route: Route): boolean => url.origin === route.url.origin

/** Whether a URL is the /healthcheck of a server like this one: A must not query B that queries A. */
export const asksPeerAt = (url: URL): boolean =>
  /\/(?:healthcheck|HealthCheckRequest)(?:\.\w+)?\/?$/i.test(url.pathname)

export type Arrival = {
  readonly head: Head
  readonly socket: Socket
  /** The URL that answered: the last of the redirects. */
  readonly url: URL
  /** Every URL requested, sanitized. */
  readonly hops: readonly string[]
  /** The certificates of each server that a redirect led to over https. */
  readonly chains: readonly Chain[]
  /** The wall clock before the last request, and when its response headers arrived. */
  readonly sent: Date
  readonly receivedAt: Date
}

/**
 * Sends a request and follows as many redirects as allowed; none for a POST. Another origin gets neither configured
 * headers nor credentials. Each host gets the cookies back that it has set on the way. The caller destroys the returned socket.
 */
export async function travel(
  link: RouteLink,
  target: PeerAddress,
  route: Route,
  context: NetContext,
): Promise<Arrival> {
  let { url } = route
  let { socket } = link
  let at = target
  const hops = [safeUrl(url)]
  const chains: Chain[] = []
  const visited = new Set<string>()
  const jars = new Map<string, CookieJar>()
  try {
    for (;;) {
      at.step('status')
      const sent = context.date()
      const jar = jars.get(url.hostname) ?? new CookieJar()
      jars.set(url.hostname, jar)
      const cookie = jar.header(url.pathname, url.protocol === 'https:')
      visited.add(`${url.href} ${cookie}`)
      const head = await callOver({ socket, at, url }, requestTo(url, route, cookie), route, context)
      const receivedAt = context.date()
      const next = nextOf(head, url, at, route)
      if (next === undefined) return { head, socket, url, hops, chains, sent, receivedAt }
      hops.push(safeUrl(next))
      for (const line of head.cookies) jar.take(line, url.pathname, receivedAt)
      const cookies = jars.get(next.hostname)?.header(next.pathname, next.protocol === 'https:')
      if (visited.has(`${next.href} ${cookies}`))
        throw new ProbeError('protocol', `${at.address} redirects in a loop: ${hopText(hops)}`)
      if (hops.length - 1 > route.redirects) {
        throw new ProbeError('protocol', `${at.address} redirects more than ${route.redirects} times: ${hopText(hops)}`)
      }
      socket.destroy()
      at = await targetOf(next, url, at, target, context)
      at.step('connect')
      const opened = await open(at, next, route, context)
      socket = opened.socket
      if (opened.chain) chains.push(opened.chain)
      url = next
    }
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Sends one request. Throws like `call`, with the protocol that the server speaks instead of HTTP/1.1. */
export async function callOver(
  { socket, at, url }: { readonly socket: Socket; readonly at: PeerAddress; readonly url: URL },
  request: HttpCall,
  route: Pick<Route, 'url' | 'servername' | 'redact'>,
  { date }: Pick<NetContext, 'date'>,
): Promise<Head> {
  try {
    return await call(socket, at.address, request, route.redact)
  } catch (error) {
    const servername = hostOf(url) === hostOf(route.url) ? route.servername : undefined
    throw await explainSilence(error, at, url, { date, servername })
  }
}

const hopText = (hops: readonly string[]): string => hops.slice(-4).join(' -> ')

/** The request to a URL. Configured headers and credentials go to the configured origin only. */
export function requestTo(url: URL, route: Route, cookie?: string) {
  const ours = isOurs(url, route)
  const hops = asksPeerAt(url) ? { 'X-Svc-Hops': '1' } : {}
  const own = ours ? route.own : {}
  const headers: Record<string, string> = { Host: url.host, ...route.common, ...hops, ...own, Connection: 'close' }
  // A token may be a cookie, too.
  const name = Object.keys(own).find((header) => header.toLowerCase() === 'cookie') ?? 'Cookie'
  if (cookie !== undefined) headers[name] = [headers[name], cookie].filter(Boolean).join('; ')
  return { method: route.method, path: `${url.pathname}${url.search}`, headers, body: ours ? route.body : undefined }
}

/** The URL of a redirect, if it should be followed. */
export function nextOf(head: Head, url: URL, at: PeerAddress, route: Route): URL | undefined {
  const { location } = head.headers
  const redirects = [301, 302, 303, 307, 308].includes(head.status)
  if (!redirects || location === undefined || route.redirects === 0 || route.method === 'POST') return undefined
  const next = URL.parse(location, url.href)
  if (next === null)
    throw new ProbeError('protocol', `${at.address} redirects to ${quote(location, 80)}, which is not a URL`)
  if (next.protocol !== 'http:' && next.protocol !== 'https:') {
    throw new ProbeError('protocol', `${at.address} redirects to ${quote(next.protocol, 32)}, which is not followed`)
  }
  next.hash = ''
  next.username = ''
  next.password = ''
  return next
}

/** The same host and port keep their address, because that address is being checked. */
export async function targetOf(
  next: URL,
  url: URL,
  at: PeerAddress,
  first: PeerAddress,
  context: Pick<NetContext, 'resolve'>,
): Promise<PeerAddress> {
  const port = portOf(next)
  const same = hostOf(next) === hostOf(url)
  if (same && at.ip.startsWith('/') && port !== portOf(url))
    throw new ProbeError('protocol', `${at.address} redirects to ${safeUrl(next)}, which is not at this socket`)
  const others = same ? [] : await context.resolve(hostOf(next))
  // A check of one family stays in it.
  const ip = same ? at.ip : (others.find((one) => familyOf(one) === familyOf(at.ip)) ?? others[0])
  if (ip === undefined) throw new ProbeError('dns', `${hostOf(next)} has no address`)
  if (leadsNearer(first.ip, ip)) {
    const where = reachOf(ip) === 'machine' ? 'this machine' : 'on the link of this machine'
    throw new ProbeError('protocol', `${at.address} redirects to ${safeUrl(next)}, which is ${where}: not followed`)
  }
  const address = hostPort(ip, port)
  return { ...first, ip, port, address, step: (check) => first.step(check, address) }
}

/** The context that a connection to a peer needs from its run. */
export type NetContext = {
  /** Aborts at the deadline, or when the run is cancelled. Everything opened must end with it. */
  readonly signal: AbortSignal
  /** Milliseconds left until the deadline, for server-side statement timeouts. */
  readonly msLeft: () => number
  /** Monotonic milliseconds, for durations. */
  readonly now: () => number
  /** The wall clock, for dates. */
  readonly date: () => Date
  /** Every address of a name, from the hosts file, else from DNS. The signal cancels it. It never uses getaddrinfo. */
  readonly resolve: (host: string) => Promise<readonly string[]>
  /** The same for drivers that take a `lookup`. */
  readonly lookup: LookupFunction
}
