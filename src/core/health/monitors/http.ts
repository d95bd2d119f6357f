import { includes } from '../engine.ts'
import { atMost, fail, ok, showBytes, warn } from '../judge.ts'
import { type Finding, monitorKind } from '../monitor.ts'
import { isOwnProcess } from '../peer/own.ts'
import { eachAddress, judgeUnreached, type Unreached } from '../probe/addresses.ts'
import { judgeExpiry } from '../probe/certificates.ts'
import type { Chain } from '../probe/chain.ts'
import { asOneAnswer, statusAllowed } from '../probe/expectation.ts'
import {
  answerOf,
  type Build,
  type Content,
  judgeAssertions,
  judgeBody,
  judgeHeaders,
  judgeHealth,
  judgeSameVersion,
  judgeVersion,
  shownLocation,
  versionIn,
} from '../probe/http-content.ts'
import { asksPeer, contradiction, routeOf, routeWithNonce, signsIn, wantsXml } from '../probe/http-request.ts'
import { hostOf, open, portOf, travel, urlTarget } from '../probe/http-route.ts'
import { type HttpSettings, httpSettings } from '../probe/http-settings.ts'
import { judgeLink } from '../probe/link-judge.ts'
import { type LinkSeen, walkLinks } from '../probe/link-walk.ts'
import { newNonce, valuesWithNonce, withNonce } from '../probe/nonce.ts'
import { count } from '../probe/text.ts'
import { loadXmlParser, readXml } from '../probe/xml.ts'
import type { Threshold } from '../settings.ts'

type Seen =
  | { readonly see: 'hushed' }
  | { readonly see: 'own'; readonly address: string }
  | { readonly see: 'connect'; readonly address: string; readonly ms: number; readonly chain: Chain | undefined }
  | Answered
  | { readonly see: 'latency'; readonly address: string; readonly ms: number; readonly bytes: number }
  | ({ readonly see: 'content'; readonly nonce: string } & Content)
  | LinkSeen
  | { readonly see: 'builds'; readonly builds: readonly Build[] }
  | { readonly see: 'certificate'; readonly chain: Chain }
  | { readonly see: 'clock'; readonly address: string; readonly skewMs: number | undefined }
  | Unreached
type Answered = {
  readonly see: 'status'
  readonly address: string
  readonly status: number
  readonly signedIn: boolean
  /** Credentials are configured, but this mode sends none. */
  readonly withheld: boolean
  readonly followed: number
  readonly location: string | undefined
}

/** Asks one URL and judges the answer. */
export default monitorKind({
  kind: 'http',
  title: 'An HTTP or HTTPS URL answers as expected',
  settings: httpSettings,
  checks: [
    {
      name: 'connect',
      depth: 'Basic',
      doc: 'The port accepts a connection; over https the server is who it should be',
    },
    { name: 'status', depth: 'Basic', doc: 'The status code is one of those expected' },
    { name: 'latency', depth: 'Basic', doc: 'The whole answer is there in time' },
    { name: 'body', depth: 'Basic', doc: 'Told when the answer is cut short' },
    { name: 'header', depth: 'Standard', doc: 'Response headers are as expected', when: ['header'] },
    {
      name: 'content',
      depth: 'Standard',
      doc: 'The body contains and matches what is expected',
      when: ['contains', 'matches'],
    },
    { name: 'json', depth: 'Standard', doc: 'JSON values are as expected', when: ['json', 'links'] },
    { name: 'xml', depth: 'Standard', doc: 'XML values are as expected', when: ['xml', 'links'] },
    {
      name: 'measure',
      depth: 'Standard',
      doc: 'Figures, dates and counts in the body are within their thresholds',
      when: ['measure', 'links'],
    },
    {
      name: 'links',
      depth: 'Standard',
      doc: 'What the body links to, where `links` says, answers as expected',
      when: ['links'],
    },
    { name: 'health', depth: 'Standard', doc: "The other server's own health answer says Success", when: ['health'] },
    { name: 'version', depth: 'Standard', doc: 'The expected version is running', when: ['version'] },
    { name: 'addresses', depth: 'Standard', doc: 'Every address is probed by itself; told when there are too many' },
    {
      name: 'same version',
      depth: 'Advanced',
      doc: 'Where `version` is set and all of several addresses are asked: they run the same one',
      when: ['version'],
    },
    { name: 'certificate', depth: 'Advanced', doc: 'Every certificate of the chain stays valid long enough' },
    { name: 'clock', depth: 'Advanced', doc: 'The Date header agrees with our clock' },
  ],
  target: urlTarget,
  signsIn,
  contradiction,
  preload: loadXmlParser,
  async *observe(given, world): AsyncGenerator<Seen> {
    const url = new URL(given.url)
    const [host, port] = [hostOf(url), portOf(url)]
    world.step('connect', url.host)
    if (world.calledByPeer && asksPeer(given, url)) {
      yield { see: 'hushed' }
      return
    }
    const common = await routeOf(given, url, world)
    // Of several addresses, the first that answers is the one whose links are asked.
    let walked = false
    const which = given.addresses ?? (includes(world.mode, 'Standard') ? 'all' : 'first')
    const builds: Build[] = []
    yield* eachAddress<Seen>(world, { host, port, which, check: 'connect' }, async function* (target) {
      const { address } = target
      if (asksPeer(given, url) && isOwnProcess(target.ip, port, world.ownUrl?.())) return yield { see: 'own', address }
      const start = world.now()
      const nonce = newNonce()
      const route = routeWithNonce(common, nonce)
      const link = await open(target, route.url, route, world)
      let { socket } = link
      try {
        yield { see: 'connect', address, ms: world.now() - start, chain: link.chain }
        const certificate: Seen[] =
          link.chain && includes(world.mode, 'Advanced') ? [{ see: 'certificate', chain: link.chain }] : []
        yield* certificate
        if (route.method === 'POST' && !includes(world.mode, 'Standard')) return
        const arrival = await travel(link, target, route, world)
        socket = arrival.socket
        const { head } = arrival
        const { status, headers } = head
        yield {
          see: 'status',
          address,
          status,
          signedIn: route.signsIn && arrival.url.origin === route.url.origin,
          withheld: route.withheld,
          followed: arrival.hops.length - 1,
          location: headers.location === undefined ? undefined : shownLocation(headers.location, arrival.url),
        }
        target.step('body')
        const body = await head.read(given.maxBody)
        yield { see: 'latency', address, ms: world.now() - start, bytes: body.bytes.length }
        // Without its credentials a server may answer something else.
        const judged = includes(world.mode, given.judgeFrom) && !route.withheld
        if (judged || includes(world.mode, 'Standard')) {
          const { bytes, more } = body
          const xml = wantsXml(given) ? await readXml(bytes, headers['content-type']) : undefined
          const content: Content = { address, headers, body: bytes, more, hide: route.hide, at: world.date(), xml }
          yield { see: 'content', nonce, ...content }
          const version = given.version && versionIn(content, given.version)
          if (version && 'version' in version) builds.push({ address, version: content.hide(version.version) })
          if (given.links && !walked && includes(world.mode, 'Standard')) {
            walked = true
            // Its work is done, and the peer must not be kept while others are asked.
            socket.destroy()
            const walk = { entries: given.links, hosts: given.linkHosts, maxBody: given.maxBody, route, target, world }
            yield* walkLinks(answerOf(content), arrival.url, walk)
          }
        }
        if (includes(world.mode, 'Advanced') && headers.date !== undefined && isJudged(given.clock)) {
          yield { see: 'clock', address, skewMs: skew(headers.date, headers.age, arrival.sent, arrival.heard) }
        }
      } finally {
        socket.destroy()
      }
    })
    if (builds.length > 1 && includes(world.mode, 'Advanced')) yield { see: 'builds', builds }
  },
  judge: (seen, given) => {
    switch (seen.see) {
      case 'unreached':
        return judgeUnreached(seen)
      case 'own':
        return warn('health', `not asked: ${seen.address} is this very process, which does not ask itself`)
      case 'hushed':
        return ok('health', 'not asked: another svc asked for this run, and a run so asked asks no further')
      case 'connect': {
        const { address, chain, ms } = seen
        return ok('connect', `${address} accepted${chain ? `, ${chain.protocol}` : ''}`, {
          address,
          observed: ms,
          unit: 'ms',
        })
      }
      case 'status':
        return judgeStatus(seen, given.status)
      case 'latency': {
        const what = `${seen.address} answered ${showBytes(seen.bytes)} in`
        const { address, ms: value } = seen
        return atMost({ check: 'latency', what, value, unit: 'duration', threshold: given.latency, address })
      }
      case 'content':
        return asOneAnswer(() => judgeContent(seen, expectedWith(given, seen.nonce)))
      case 'link':
        return asOneAnswer(() => judgeLink(seen, given.links))
      case 'builds':
        return judgeSameVersion(seen.builds)
      case 'certificate':
        return judgeExpiry('certificate', seen.chain, given.certificate)
      case 'clock':
        return judgeClock(seen.address, seen.skewMs, given.clock)
    }
  },
})

function judgeStatus(seen: Answered, configured: readonly string[]): Finding {
  const { address, status } = seen
  const allowed = seen.withheld ? ['<500'] : configured
  const followed = seen.followed > 0 ? ` after ${count(seen.followed, 'redirect')}` : ''
  const to = status >= 300 && status < 400 && seen.location !== undefined ? ` to ${seen.location}` : ''
  const said = `${address} answered ${status}${to}${followed}`
  const more = { address, observed: status }
  try {
    const well = statusAllowed(status, allowed)
    // `<500` lets a 401 pass, but not of a server that was shown credentials; a list that names 401 does.
    if (status === 401 && seen.signedIn && !allowed.some((entry) => /^4(?:01|xx)$/i.test(entry))) {
      return fail('status', 'auth', `${said}: the sign-in of this monitor was refused`, more)
    }
    return well ? ok('status', said, more) : fail('status', 'data', `${said} (expected ${allowed.join(', ')})`, more)
  } catch (error) {
    return fail('status', 'data', `${said}, which cannot be judged: ${(error as RangeError).message}`, more)
  }
}

const expectedWith = (given: HttpSettings, nonce: string): HttpSettings => ({
  ...given,
  header: valuesWithNonce(given.header, nonce),
  contains: withNonce(given.contains, nonce),
  matches: withNonce(given.matches, nonce),
  json: valuesWithNonce(given.json, nonce),
  xml: valuesWithNonce(given.xml, nonce),
})

function judgeContent(content: Content, given: HttpSettings): readonly Finding[] {
  const { header, contains, matches, health, version } = given
  return [
    ...(header ? [judgeHeaders(content, header)] : []),
    ...(contains !== undefined || matches !== undefined ? [judgeBody(content, contains, matches)] : []),
    ...judgeAssertions(content, given),
    ...(health ? [judgeHealth(content)] : []),
    ...(version ? [judgeVersion(content, version)] : []),
  ]
}

/** Whether a threshold says anything: `off` leaves its row out. */
const isJudged = ({ warn, limit }: Threshold): boolean => warn !== undefined || limit !== undefined

/**
 * Milliseconds by which their clock is ahead of ours (negative: behind), as far as it is proved: the
 * header counts whole seconds, and the request was under way for a while. Undefined: unreadable.
 */
function skew(date: string, age: string | undefined, sent: Date, heard: Date): number | undefined {
  const theirs = Date.parse(date) + (age !== undefined && /^\d{1,9}$/.test(age) ? Number(age) * 1_000 : 0)
  if (Number.isNaN(theirs)) return undefined
  if (theirs > heard.getTime()) return theirs - heard.getTime()
  return Math.min(0, theirs + 1_000 - sent.getTime())
}

function judgeClock(address: string, skewMs: number | undefined, threshold: Threshold): Finding {
  if (skewMs === undefined) return warn('clock', `${address} sent a Date header that is no date`, { address })
  const what = `the clock of ${address} is ${skewMs < 0 ? 'behind' : 'ahead of'} ours by`
  return atMost({ check: 'clock', what, value: Math.abs(skewMs), unit: 'duration', threshold, address })
}
