import { shownLocation } from '../../assert/content.ts'
import { PatternBudget } from '../../assert/expectation.ts'
import { newNonce } from '../../assert/nonce.ts'
import { readXml } from '../../assert/xml.ts'
import {
  type AddressTurn,
  type CheckContext,
  type Connection,
  checksOn,
  includes,
  sharedRead,
} from '../../engine/index.ts'
import type { Chain } from '../../net/chain.ts'
import { type Arrival, asksPeerAt, open, travel } from '../../net/http/route.ts'
import { type RequestRoute, routeOf, routeWithNonce } from './request.ts'
import type { BodySettings, ConnectionSettings } from './settings.ts'

/** What is read once, before any address is asked. */
export type Prepared = {
  readonly route: RequestRoute
  /** Links are asked once in a run: of the first address that answers. */
  readonly links: { taken: boolean }
}

/** A connection to one address, for one request. */
export type Http = Connection & {
  readonly at: AddressTurn
  readonly chain: Chain | undefined
  /** With the nonce of this connection. */
  readonly route: RequestRoute
  readonly nonce: string
  /** Monotonic milliseconds at which connecting began. */
  readonly openedMs: number
  /** False where this mode sends nothing: a POST may write. */
  readonly sends: boolean
  readonly maxBody: number
  readonly readsXml: boolean
  readonly links: Prepared['links']
  /** Sends the request and follows redirects. */
  readonly request: (context: CheckContext) => Promise<Arrival>
}

export const onHttp = checksOn<Http>()

/** Whether the URL is the health check of a server like this one, also where `health` was forgotten. */
export const asksPeer = ({ url, health }: Pick<ConnectionSettings, 'url' | 'health'>): boolean =>
  health || asksPeerAt(new URL(url))

export async function prepareHttp(settings: ConnectionSettings, context: CheckContext): Promise<Prepared> {
  const url = new URL(settings.url)
  context.step('connect', url.host)
  const options = { mode: context.mode, accept: acceptOf(settings), asksPeer: asksPeer(settings) }
  return { route: await routeOf(settings, url, options), links: { taken: false } }
}

export async function openHttp(
  at: AddressTurn,
  settings: ConnectionSettings,
  context: CheckContext,
  { route: common, links }: Prepared,
): Promise<Http> {
  const openedMs = context.now()
  const nonce = newNonce()
  const route = routeWithNonce(common, nonce)
  const link = await open(at, route.url, route, context)
  let { socket } = link
  return {
    usable: true,
    close: () => void socket.destroy(),
    at,
    chain: link.chain,
    route,
    nonce,
    openedMs,
    sends: route.method !== 'POST' || includes(context.mode, 'Standard'),
    maxBody: settings.maxBody,
    readsXml: readsXml(settings),
    links,
    request: async (during) => {
      const arrival = await travel(link, { ...at, step: during.step }, route, during)
      socket = arrival.socket
      return arrival
    },
  }
}

/** A server that has several representations is asked for the one that is evaluated. */
function acceptOf(settings: BodySettings): string {
  if (readsXml(settings)) return 'application/xml, text/xml;q=0.9, */*;q=0.1'
  return settings.health || readsJson(settings) ? 'application/json' : '*/*'
}

const pathsOf = ({ measure = [], links = [] }: BodySettings): readonly string[] =>
  [...measure, ...links].map(({ path }) => path)
/** Whether an answer has to be read as JSON. */
export const readsJson = (settings: BodySettings): boolean =>
  settings.json !== undefined || pathsOf(settings).some((path) => path.includes('$'))
/** Whether an answer has to be read as XML. */
export const readsXml = (settings: BodySettings): boolean =>
  settings.xml !== undefined || pathsOf(settings).some((path) => /^(?:count\()?\//.test(path))

export const statusDoc = 'The status code is one of those expected'
export const bodyDoc = 'Told when the answer is cut short'

/** The head of the answer, and where it comes from after redirects. */
export const response = sharedRead('status', statusDoc, async (http: Http, context) => {
  const { head, url, hops, sent, heard } = await http.request(context)
  const { status, headers, read } = head
  const { route } = http
  return {
    status,
    headers,
    read,
    url,
    sent,
    received: heard,
    signedIn: route.signsIn && url.origin === route.url.origin,
    redirects: hops.length - 1,
    location: headers['location'] === undefined ? undefined : shownLocation(headers['location'], url),
  }
})

/** The whole answer, up to `maxBody`. */
export const body = sharedRead('body', bodyDoc, async (http: Http, context) => {
  const { read, headers, sent, received } = await response(http, undefined, context)
  context.step('body')
  const { bytes, more } = await read(http.maxBody)
  return { bytes, more, headers, sent, received, ms: context.now() - http.openedMs }
})

/** The answer as checks of its headers and its body evaluate it. */
export const answer = sharedRead('body', bodyDoc, async (http: Http, context) => {
  const { headers, bytes, more } = await body(http, undefined, context)
  const xml = http.readsXml ? await readXml(bytes, headers['content-type']) : undefined
  return {
    content: {
      address: http.at.address,
      headers,
      body: bytes,
      more,
      hide: http.route.hide,
      at: context.date(),
      xml,
    },
    nonce: http.nonce,
    /** All patterns that checks hold against this answer share it. */
    patterns: new PatternBudget(),
  }
})
