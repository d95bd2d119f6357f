import type { Content } from '../../assert/content.ts'
import { loadXmlParser } from '../../assert/xml.ts'
import {
  type AddressTurn,
  atMost,
  type CheckContext,
  type Connection,
  checksOn,
  networkKind,
  ok,
  sharedRead,
} from '../../engine/index.ts'
import { showBytes } from '../../format.ts'
import { type Arrival, asksPeerAt, open, type Route, travel, urlTarget } from '../../net/http/route.ts'
import { ExecutionMode, ServerType } from '../../protocol/index.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'
import { declineForPeer, declineOwnProcess, routeOf, signsIn, urlProblem } from '../http/index.ts'
import { evaluatePeer } from './peer-answer.ts'

/** Bytes of an answer that are read. */
const maxBody = 1024 * 1024

const peerSettings = {
  url: { type: 'url', protocols: ['http', 'https'], required: true, doc: 'The server, or its /healthcheck' },
  type: { type: 'choice', values: ServerType.values, default: 'App', doc: 'Which server type is asked for there' },
  mode: {
    type: 'choice',
    values: ExecutionMode.values,
    default: 'Standard',
    doc: 'How deep it is asked at most; a shallower run of ours asks no deeper than itself',
  },
  token: { type: 'secret', doc: 'Token or key there, with which it tells details; sent from Standard on' },
  insecureHttp: { type: 'flag', default: false, doc: 'Send the token over http:// to another machine too' },
  suppressDeployment: {
    type: 'flag',
    default: false,
    doc: 'Ask it to let deployment-related failures of its own pass',
  },
  verify: { type: 'flag', default: true, doc: 'Ask nothing of a server whose certificate is not trusted' },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
} as const satisfies SettingsSpec
type PeerSettings = Values<typeof peerSettings>

/** Where it is asked, of a run of ours in `mode`. Every health result there is answered with 200. */
function peerUrl(settings: PeerSettings, mode: ExecutionMode): URL {
  const url = new URL(settings.url)
  if (!asksPeerAt(url)) url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/healthcheck`
  const order = ExecutionMode.values
  const depth = Math.min(order.indexOf(settings.mode), order.indexOf(mode))
  url.searchParams.set('ExecutionMode', order[depth] ?? 'Basic')
  url.searchParams.set('ServerType', settings.type)
  url.searchParams.set('SuppressErrorCodes', 'true')
  if (settings.suppressDeployment) url.searchParams.set('SuppressDeploymentErrors', 'true')
  return url
}

type Peer = Connection & {
  readonly address: string
  /** Monotonic milliseconds at which connecting began. */
  readonly openedMs: number
  readonly route: Route
  /** Sends the request. */
  readonly request: (context: CheckContext) => Promise<Arrival>
}

async function preparePeer(settings: PeerSettings, context: CheckContext): Promise<Route> {
  const url = peerUrl(settings, context.mode)
  context.step('connect', url.host)
  // It then ends its run before we give up, and answers with the results that it has by then.
  const headers = { 'X-Prometheus-Scrape-Timeout-Seconds': (context.msLeft() / 1_000).toFixed(3) }
  const { token, insecureHttp, verify, caFile } = settings
  const request = { url: url.href, method: 'GET', headers, token, insecureHttp, redirects: 0, verify, caFile } as const
  return await routeOf(request, url, { mode: context.mode, accept: 'application/json', asksPeer: true })
}

async function openPeer(at: AddressTurn, _: PeerSettings, context: CheckContext, route: Route): Promise<Peer> {
  const openedMs = context.now()
  const link = await open(at, route.url, route, context)
  let { socket } = link
  return {
    usable: true,
    close: () => void socket.destroy(),
    address: at.address,
    openedMs,
    route,
    request: async (during) => {
      const arrival = await travel(link, { ...at, step: during.step }, route, during)
      socket = arrival.socket
      return arrival
    },
  }
}

const check = checksOn<Peer>()
const healthDoc = 'Its health answer says Success; failed monitors are named'

const answer = sharedRead('health', healthDoc, async (peer: Peer, context) => {
  const { head } = await peer.request(context)
  context.step('health')
  const { bytes, more } = await head.read(maxBody)
  const ms = context.now() - peer.openedMs
  const { hide, signsIn: signedIn } = peer.route
  const { address } = peer
  const content: Content = {
    address,
    headers: head.headers,
    body: bytes,
    more,
    hide,
    at: context.date(),
    xml: undefined,
  }
  return { ...content, status: head.status, signedIn, ms }
})

export const health = check({
  depth: 'Basic',
  results: { health: healthDoc },
  settings: {},
  observe: answer,
  evaluate: evaluatePeer,
})

export const latency = check({
  depth: 'Basic',
  results: { latency: 'The whole answer is there in time' },
  settings: {
    latency: {
      type: 'threshold',
      unit: 'duration',
      default: {},
      doc: 'How long the whole answer may take; when left out, as long as this monitor may',
    },
  },
  observe: answer,
  evaluate: ({ address, body, ms }, { latency: threshold }) => {
    const what = `${address} answered ${showBytes(body.length)} in`
    return atMost({ check: 'latency', what, value: ms, unit: 'duration', threshold })
  },
})

/**
 * Another server's own health check. It is asked by one hop only: a run that another svc asked for asks
 * no further, and no process asks itself.
 */
export default networkKind({
  name: 'svc',
  title: 'The /healthcheck of another svc, or of a server like it, says Success',
  preload: loadXmlParser,
  settings: peerSettings,
  target: urlTarget,
  signsIn,
  validate: ({ url }) => urlProblem(url),
  declineRun: (_, context) => declineForPeer(context),
  declineAddress: (at, _, context) => declineOwnProcess(at, context),
  prepare: preparePeer,
  connect: {
    results: { connect: 'The port accepts a connection; over https the server is who it should be' },
    open: openPeer,
    evaluate: ({ connection: { address }, ms }) =>
      ok('connect', `${address} accepted`, { measurement: { value: ms, unit: 'milliseconds' } }),
  },
  checks: [health, latency],
})
