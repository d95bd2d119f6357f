import { asksPeerAt } from '../../../base/net/http/route.ts'
import { type SettingsSpec, statusMistake, type Values } from '../../../base/settings/index.ts'
import type { ExecutionMode } from '../../../protocol/index.ts'
import { shownLocation } from '../../assert/content.ts'
import { expectedValues } from '../../assert/document.ts'
import { PatternBudget, statusAllowed } from '../../assert/expectation.ts'
import { limitsOn } from '../../assert/limit-check.ts'
import { linkFields } from '../../assert/link-settings.ts'
import { measureFields } from '../../assert/measure.ts'
import { type Nonce, newNonce } from '../../assert/nonce.ts'
import { readXml } from '../../assert/xml.ts'
import {
  type AddressTurn,
  type CheckContext,
  checksOn,
  includes,
  proxySettings,
  sharedRead,
  socketSettings,
  UnacceptedAnswerError,
} from '../../engine/index.ts'
import { type ClientToken, clientToken, oauth2Setting } from './oauth2.ts'
import {
  openRequest,
  type RequestConnection,
  type RequestRoute,
  requestSettings,
  routeOf,
  routeWithNonce,
} from './request.ts'

/** The expectations of the body also determine the Accept header of the request. */
export const bodySettings = {
  health: {
    type: 'flag',
    default: false,
    doc: 'The URL is the /healthcheck of another svc or a compatible server: its body must report Success',
  },
  json: {
    ...expectedValues('json'),
    doc: 'Values expected in a JSON body: path such as $.a.b[0].c to text, /pattern/ or comparison such as >= 3. [*] matches each element of a list; count(path) is the number of matches',
  },
  xml: {
    ...expectedValues('xml'),
    doc: 'Values expected in an XML body: path such as /VAST/Ad[0]/@id to text, /pattern/ or comparison. Without an index, it matches each element of that name; count(path) is the number of matches',
  },
  measure: { type: 'groups', fields: measureFields, doc: 'Figures, dates and counts of a JSON or XML body' },
  links: {
    type: 'groups',
    fields: linkFields,
    doc: 'Which URLs in a JSON or XML body are requested too, and how; no others are requested',
  },
} as const satisfies SettingsSpec
type BodySettings = Values<typeof bodySettings>

export const statusSetting = {
  type: 'texts',
  mistake: statusMistake,
  needsOne: true,
  doc: 'Accepted status codes: 200, 2xx, 200-299, <500. By default <500 in Basic, and 2xx from Standard on, where `health` is set also 503. If credentials are set, Basic requests without them and accepts <500',
} as const satisfies SettingsSpec[string]

export const judgeFrom = {
  type: 'choice',
  values: ['Basic', 'Standard'],
  default: 'Standard',
  doc: 'Mode from which on headers and body are evaluated. With `Basic`, links are not followed, and an answer to a request without configured credentials is not evaluated',
} as const satisfies SettingsSpec[string]

export const connectionSettings = {
  ...requestSettings,
  oauth2: oauth2Setting,
  ...bodySettings,
  ...proxySettings,
  ...socketSettings,
  status: statusSetting,
  judgeFrom,
  maxBody: { type: 'bytes', default: 1024 * 1024, doc: 'Maximum bytes of the answer that are read and evaluated' },
} as const satisfies SettingsSpec
type ConnectionSettings = Values<typeof connectionSettings>

/** Read once, before connecting to any address. */
type Prepared = {
  readonly route: RequestRoute
  /** Links are checked once per run, for the first address that answers. */
  readonly links: { taken: boolean }
  /** The token of the client, in a mode that signs in. */
  readonly token: ClientToken | undefined
}

/** A connection for one request. Its route contains the nonce of this connection. */
export type Http = RequestConnection<RequestRoute> & {
  readonly nonce: Nonce
  /** False if this mode sends no request, because a POST may write. */
  readonly sends: boolean
  readonly maxBody: number
  readonly readsXml: boolean
  readonly links: Prepared['links']
  /** The status codes that are accepted in this run. */
  readonly accepted: readonly string[]
}

export const onHttp = checksOn<Http>()
export const limitOnHttp = limitsOn<Http>()

/** Whether the URL is the health check of another svc, even if `health` is not set. */
export const asksPeer = ({ url, health }: Pick<ConnectionSettings, 'url' | 'health'>): boolean =>
  health || asksPeerAt(new URL(url))

export async function prepareHttp(settings: ConnectionSettings, context: CheckContext): Promise<Prepared> {
  const url = new URL(settings.url)
  context.step('connect', url.host)
  const options = { mode: context.mode, accept: acceptOf(settings), asksPeer: asksPeer(settings), files: context.files }
  const route = await routeOf(settings, url, options)
  const { oauth2, caFile } = settings
  const token = oauth2 && route.signsIn ? await clientToken(oauth2, caFile, context) : undefined
  return { route: token ? routeWithToken(route, token) : route, links: { taken: false }, token }
}

export async function openHttp(
  at: AddressTurn,
  settings: ConnectionSettings,
  context: CheckContext,
  { route: common, links, token }: Prepared,
): Promise<Http> {
  const nonce = newNonce()
  let connection = await openRequest(at, routeWithNonce(common, nonce), context)
  const { request, ...first } = connection
  return {
    ...first,
    get route() {
      return connection.route
    },
    close: async () => await connection.close(),
    async request(during) {
      const arrival = await request(during)
      const isRefused = arrival.head.status === 401 && arrival.url.origin === first.route.url.origin
      const renewed = isRefused ? await token?.renewed() : undefined
      if (!renewed) return arrival
      arrival.socket.destroy()
      connection = await openRequest(at, routeWithToken(first.route, renewed), during)
      return await connection.request(during)
    },
    nonce,
    accepted: acceptedStatuses(settings, context.mode, common.withheld),
    sends: common.method !== 'POST' || includes(context.mode, 'Standard'),
    maxBody: settings.maxBody,
    readsXml: readsXml(settings),
    links,
  }
}

const routeWithToken = (route: RequestRoute, { access, redact }: ClientToken): RequestRoute => {
  const header = { Authorization: `Bearer ${access}` }
  return { ...route, own: { ...route.own, ...header }, credentials: { ...route.credentials, ...header }, redact }
}

/**
 * Accepted status codes if svc.yaml names none. Basic only asks whether something answers. A redirect is not what the
 * client wanted: it may lead to a login page, to a page about maintenance, or nowhere.
 */
const acceptedByDefault = { Basic: ['<500'], Standard: ['2xx'], Advanced: ['2xx'] } as const

/** `withheld`: without its credentials, a server may give a different answer. */
function acceptedStatuses(settings: ConnectionSettings, mode: ExecutionMode, withheld: boolean): readonly string[] {
  if (withheld) return acceptedByDefault.Basic
  // A server that is not healthy answers 503 with the document that says why, which `health` evaluates.
  const unhealthy = settings.health && includes(mode, settings.judgeFrom) ? ['503'] : []
  return settings.status ?? [...acceptedByDefault[mode], ...unhealthy]
}

/**
 * Whether the status of an answer is accepted. `<500` accepts a 401, but not from a server that received credentials; a
 * list that names 401 accepts it in any case. Throws RangeError for an entry that is not a status.
 */
export const isAccepted = (accepted: readonly string[], status: number, signedIn: boolean): boolean =>
  statusAllowed(status, accepted) && !isRefusedSignIn(accepted, status, signedIn)

export const isRefusedSignIn = (accepted: readonly string[], status: number, signedIn: boolean): boolean =>
  status === 401 && signedIn && !accepted.some((entry) => /^4(?:01|xx)$/i.test(entry))

/** The Accept header, for a server that offers several representations. */
function acceptOf(settings: BodySettings): string {
  if (readsXml(settings)) return 'application/xml, text/xml;q=0.9, */*;q=0.1'
  return settings.health || readsJson(settings) ? 'application/json' : '*/*'
}

const pathsOf = ({ measure = [], links = [] }: BodySettings): readonly string[] =>
  [...measure, ...links].map(({ path }) => path)
/** Whether the checks read the answer as JSON. */
export const readsJson = (settings: BodySettings): boolean =>
  settings.json !== undefined || pathsOf(settings).some((path) => path.includes('$'))
/** Whether the checks read the answer as XML. */
export const readsXml = (settings: BodySettings): boolean =>
  settings.xml !== undefined || pathsOf(settings).some((path) => /^(?:count\()?\//.test(path))

export const statusDoc = 'The status code is accepted'
export const bodyDoc = 'Reported only if the answer is cut short'
/** Results that checks of the answer and of the linked documents share. */
export const documentResults = {
  json: 'JSON values are as expected',
  xml: 'XML values are as expected',
  measure: 'Figures, dates and counts in the body are within their thresholds',
} as const

/** The head of the answer, and its final URL after redirects. */
export const response = sharedRead('status', statusDoc, async (http: Http, context) => {
  const { head, url, hops, chains, sent, receivedAt } = await http.request(context)
  const { status, headers, read } = head
  const { route } = http
  return {
    status,
    headers,
    read,
    url,
    sent,
    received: receivedAt,
    signedIn: route.signsIn && url.origin === route.url.origin,
    redirects: hops.length - 1,
    chains,
    location: headers['location'] === undefined ? undefined : shownLocation(headers['location'], url),
  }
})

/** The body of the answer, up to `maxBody`. */
export const body = sharedRead('body', bodyDoc, async (http: Http, context) => {
  const { read, headers, sent, received } = await response(http, undefined, context)
  context.step('body')
  const { bytes, more } = await read(http.maxBody)
  return { bytes, more, headers, sent, received, ms: context.now() - http.openedMs }
})

/**
 * The head of an answer that shows what checks of headers and body are about. Throws UnacceptedAnswerError for a status that is
 * not accepted: `status` has failed already, and an error page is something else.
 */
export async function acceptedResponse(http: Http, context: CheckContext) {
  const head = await response(http, undefined, context)
  const { status, signedIn } = head
  if (!isAccepted(http.accepted, status, signedIn)) {
    throw new UnacceptedAnswerError(
      `${http.at.address} answered ${status}, and \`status\` accepts ${http.accepted.join(', ')}`,
    )
  }
  return head
}

/** The answer in the form that the checks of headers and body evaluate. */
export const answer = sharedRead('body', bodyDoc, async (http: Http, context) => {
  const { status } = await acceptedResponse(http, context)
  // Basic accepts an error page by default, which lacks anything.
  const isPage = !http.accepted.includes('<500') || statusAllowed(status, ['2xx'])
  const { headers, bytes, more } = await body(http, undefined, context)
  const xml = http.readsXml ? await readXml(bytes, headers['content-type']) : undefined
  return {
    status,
    content: {
      address: http.at.address,
      headers,
      body: bytes,
      more,
      unseen: isPage
        ? undefined
        : `the status ${status} proves no absence: set status to the codes of a healthy answer`,
      redact: http.route.redact,
      at: context.date(),
      xml,
    },
    nonce: http.nonce,
    /** The budget that all patterns for this answer share. */
    patterns: new PatternBudget(),
  }
})

/** The common parts of the checks of headers and body. Their patterns share one budget. */
export const ofAnswer = {
  depth: 'Standard',
  depthWith: (settings: { readonly judgeFrom: ExecutionMode }) => settings.judgeFrom,
  // Without its credentials, a server may give a different answer.
  applies: ({ sends, route }: Http) => sends && !route.withheld,
  observe: answer,
} as const
