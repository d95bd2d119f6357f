import { loadXmlParser } from '../../assert/xml.ts'
import {
  atMost,
  eachAddress,
  evaluateUnreached,
  monitorKind,
  ok,
  type Result,
  type Unreached,
  warn,
} from '../../engine/index.ts'
import { showBytes } from '../../format.ts'
import { hostOf, open, portOf, travel, urlTarget } from '../../net/http/route.ts'
import { isOwnProcess } from '../../system/own-process.ts'
import { routeOf, signsIn, urlProblem } from '../http/index.ts'
import { evaluatePeer, type PeerAnswer } from './judge.ts'
import { maxBody, overHttp, peerSettings, peerUrl } from './settings.ts'

type Seen =
  | { readonly see: 'hushed' }
  | { readonly see: 'own'; readonly address: string }
  | { readonly see: 'connect'; readonly address: string; readonly ms: number }
  | { readonly see: 'latency'; readonly address: string; readonly ms: number; readonly bytes: number }
  | { readonly see: 'answer'; readonly answer: PeerAnswer }
  | Unreached

/**
 * Another server's own health check. It is asked by one hop only: a run that another svc asked for asks
 * no further, and no process asks itself.
 */
export default monitorKind({
  name: 'svc',
  title: 'The /healthcheck of another svc, or of a server like it, says Success',
  preload: loadXmlParser,
  settings: peerSettings,
  checks: [
    {
      name: 'connect',
      depth: 'Basic',
      doc: 'The port accepts a connection; over https the server is who it should be',
    },
    { name: 'health', depth: 'Basic', doc: 'Its health answer says Success; failed monitors are named' },
    { name: 'latency', depth: 'Basic', doc: 'The whole answer is there in time' },
  ],
  target: urlTarget,
  signsIn,
  validate: ({ url }) => urlProblem(url),
  async *observe(given, context): AsyncGenerator<Seen> {
    const url = peerUrl(given, context.mode)
    const [host, port] = [hostOf(url), portOf(url)]
    context.step('connect', url.host)
    if (context.calledByPeer) return yield { see: 'hushed' }
    // It then ends its run before we give up, and tells what it has seen by then.
    const patience = { 'X-Prometheus-Scrape-Timeout-Seconds': (context.msLeft() / 1_000).toFixed(3) }
    const options = { mode: context.mode, accept: 'application/json', asksPeer: true }
    const route = await routeOf(overHttp(given, url, patience), url, options)
    yield* eachAddress<Seen>(context, { host, port, which: 'any', check: 'connect' }, async function* (target) {
      const { address } = target
      if (isOwnProcess(target.ip, port, context.ownUrl?.())) return yield { see: 'own', address }
      const start = context.now()
      const link = await open(target, url, route, context)
      let { socket } = link
      try {
        yield { see: 'connect', address, ms: context.now() - start }
        target.step('health')
        const { head, socket: last } = await travel(link, target, route, context)
        socket = last
        target.step('health')
        const { bytes, more } = await head.read(maxBody)
        const { status, headers } = head
        const { hide, signsIn: signedIn } = route
        const content = { address, headers, body: bytes, more, hide, at: context.date(), xml: undefined }
        yield { see: 'answer', answer: { ...content, status, signedIn } }
        yield { see: 'latency', address, ms: context.now() - start, bytes: bytes.length }
      } finally {
        socket.destroy()
      }
    })
  },
  evaluate: (seen, given): Result | readonly Result[] => {
    switch (seen.see) {
      case 'hushed':
        return ok('health', 'not asked: another svc asked for this run, and a run so asked asks no further')
      case 'own':
        return warn('health', `not asked: ${seen.address} is this very process, which does not ask itself`)
      case 'connect':
        return ok('connect', `${seen.address} accepted`, {
          address: seen.address,
          measurement: { value: seen.ms, unit: 'milliseconds' },
        })
      case 'answer':
        return evaluatePeer(seen.answer)
      case 'latency': {
        const { address, bytes, ms: value } = seen
        const what = `${address} answered ${showBytes(bytes)} in`
        return atMost({ check: 'latency', what, value, unit: 'duration', threshold: given.latency, address })
      }
      case 'unreached':
        return evaluateUnreached(seen)
    }
  },
})
