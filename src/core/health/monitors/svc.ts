import { atMost, ok, showBytes, warn } from '../judge.ts'
import { type Finding, monitorKind } from '../monitor.ts'
import { judgePeer, type PeerAnswer } from '../peer/judge.ts'
import { isOwnProcess } from '../peer/own.ts'
import { overHttp, peerSettings, peerUrl } from '../peer/settings.ts'
import { eachAddress, judgeUnreached, type Unreached } from '../probe/addresses.ts'
import { contradiction, routeOf, signsIn } from '../probe/http-request.ts'
import { hostOf, open, portOf, travel, urlTarget } from '../probe/http-route.ts'

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
  kind: 'svc',
  title: 'The /healthcheck of another svc, or of a server like it, says Success',
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
  signsIn: (given, mode) => signsIn(overHttp(given, new URL(given.url), {}), mode),
  contradiction: (given) => contradiction(overHttp(given, new URL(given.url), {})),
  async *observe(given, world): AsyncGenerator<Seen> {
    const url = peerUrl(given, world.mode)
    const [host, port] = [hostOf(url), portOf(url)]
    world.step('connect', url.host)
    if (world.calledByPeer) return yield { see: 'hushed' }
    // It then ends its run before we give up, and tells what it has seen by then.
    const patience = { 'X-Prometheus-Scrape-Timeout-Seconds': (world.msLeft() / 1_000).toFixed(3) }
    const route = await routeOf(overHttp(given, url, patience), url, world)
    yield* eachAddress<Seen>(world, { host, port, which: 'any', check: 'connect' }, async function* (target) {
      const { address } = target
      if (isOwnProcess(target.ip, port, world.ownUrl?.())) return yield { see: 'own', address }
      const start = world.now()
      const link = await open(target, url, route, world)
      let { socket } = link
      try {
        yield { see: 'connect', address, ms: world.now() - start }
        target.step('health')
        const { head, socket: last } = await travel(link, target, route, world)
        socket = last
        target.step('health')
        const { bytes, more } = await head.read(overHttp(given, url, {}).maxBody)
        const { status, headers } = head
        const { hide, signsIn: signedIn } = route
        const content = { address, headers, body: bytes, more, hide, at: world.date(), xml: undefined }
        yield { see: 'answer', answer: { ...content, status, signedIn } }
        yield { see: 'latency', address, ms: world.now() - start, bytes: bytes.length }
      } finally {
        socket.destroy()
      }
    })
  },
  judge: (seen, given): Finding | readonly Finding[] => {
    switch (seen.see) {
      case 'hushed':
        return ok('health', 'not asked: another svc asked for this run, and a run so asked asks no further')
      case 'own':
        return warn('health', `not asked: ${seen.address} is this very process, which does not ask itself`)
      case 'connect':
        return ok('connect', `${seen.address} accepted`, { address: seen.address, observed: seen.ms, unit: 'ms' })
      case 'answer':
        return judgePeer(seen.answer)
      case 'latency': {
        const { address, bytes, ms: value } = seen
        const what = `${address} answered ${showBytes(bytes)} in`
        return atMost({ check: 'latency', what, value, unit: 'duration', threshold: given.latency, address })
      }
      case 'unreached':
        return judgeUnreached(seen)
    }
  },
})
