import {
  answerOf,
  type Build,
  type Content,
  evaluateAssertions,
  evaluateBody,
  evaluateHeaders,
  evaluateHealth,
  evaluateSameVersion,
  evaluateVersion,
  shownLocation,
  versionIn,
} from '../../assert/content.ts'
import { asOneAnswer, statusAllowed } from '../../assert/expectation.ts'
import { newNonce, valuesWithNonce, withNonce } from '../../assert/nonce.ts'
import { loadXmlParser, readXml } from '../../assert/xml.ts'
import {
  atMost,
  eachAddress,
  evaluateExpiry,
  evaluateUnreached,
  fail,
  includes,
  monitorKind,
  ok,
  type Result,
  type Unreached,
  warn,
} from '../../engine/index.ts'
import { showBytes } from '../../format.ts'
import type { Chain } from '../../net/chain.ts'
import { hostOf, open, portOf, travel, urlTarget } from '../../net/http/route.ts'
import { count } from '../../net/text.ts'
import type { Threshold } from '../../settings/index.ts'
import { isOwnProcess } from '../../system/own-process.ts'
import { evaluateLink } from './link-judge.ts'
import { type LinkSeen, walkLinks } from './link-walk.ts'
import { asksPeer, routeOf, routeWithNonce, signsIn, validate, wantsXml } from './request.ts'
import { type HttpSettings, httpSettings } from './settings.ts'

export { reservedHeaders, routeOf, signsIn, validate } from './request.ts'
export type { HttpSettings } from './settings.ts'

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
  name: 'http',
  title: 'An HTTP or HTTPS URL answers as expected',
  preload: loadXmlParser,
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
  validate,
  async *observe(given, context): AsyncGenerator<Seen> {
    const url = new URL(given.url)
    const [host, port] = [hostOf(url), portOf(url)]
    context.step('connect', url.host)
    if (context.calledByPeer && asksPeer(given, url)) {
      yield { see: 'hushed' }
      return
    }
    const common = await routeOf(given, url, context)
    // Of several addresses, the first that answers is the one whose links are asked.
    let walked = false
    const which = given.addresses ?? (includes(context.mode, 'Standard') ? 'all' : 'first')
    const builds: Build[] = []
    yield* eachAddress<Seen>(context, { host, port, which, check: 'connect' }, async function* (target) {
      const { address } = target
      if (asksPeer(given, url) && isOwnProcess(target.ip, port, context.ownUrl?.()))
        return yield { see: 'own', address }
      const start = context.now()
      const nonce = newNonce()
      const route = routeWithNonce(common, nonce)
      const link = await open(target, route.url, route, context)
      let { socket } = link
      try {
        yield { see: 'connect', address, ms: context.now() - start, chain: link.chain }
        const certificate: Seen[] =
          link.chain && includes(context.mode, 'Advanced') ? [{ see: 'certificate', chain: link.chain }] : []
        yield* certificate
        if (route.method === 'POST' && !includes(context.mode, 'Standard')) return
        const arrival = await travel(link, target, route, context)
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
        yield { see: 'latency', address, ms: context.now() - start, bytes: body.bytes.length }
        // Without its credentials a server may answer something else.
        const judged = includes(context.mode, given.judgeFrom) && !route.withheld
        if (judged || includes(context.mode, 'Standard')) {
          const { bytes, more } = body
          const xml = wantsXml(given) ? await readXml(bytes, headers['content-type']) : undefined
          const content: Content = { address, headers, body: bytes, more, hide: route.hide, at: context.date(), xml }
          yield { see: 'content', nonce, ...content }
          const version = given.version && versionIn(content, given.version)
          if (version && 'version' in version) builds.push({ address, version: content.hide(version.version) })
          if (given.links && !walked && includes(context.mode, 'Standard')) {
            walked = true
            // Its work is done, and the peer must not be kept while others are asked.
            socket.destroy()
            const walk = {
              entries: given.links,
              hosts: given.linkHosts,
              maxBody: given.maxBody,
              route,
              target,
              context,
            }
            yield* walkLinks(answerOf(content), arrival.url, walk)
          }
        }
        if (includes(context.mode, 'Advanced') && headers.date !== undefined && isJudged(given.clock)) {
          yield { see: 'clock', address, skewMs: skew(headers.date, headers.age, arrival.sent, arrival.heard) }
        }
      } finally {
        socket.destroy()
      }
    })
    if (builds.length > 1 && includes(context.mode, 'Advanced')) yield { see: 'builds', builds }
  },
  evaluate: (seen, given) => {
    switch (seen.see) {
      case 'unreached':
        return evaluateUnreached(seen)
      case 'own':
        return warn('health', `not asked: ${seen.address} is this very process, which does not ask itself`)
      case 'hushed':
        return ok('health', 'not asked: another svc asked for this run, and a run so asked asks no further')
      case 'connect': {
        const { address, chain, ms } = seen
        return ok('connect', `${address} accepted${chain ? `, ${chain.protocol}` : ''}`, {
          address,
          measurement: { value: ms, unit: 'milliseconds' },
        })
      }
      case 'status':
        return evaluateStatus(seen, given.status)
      case 'latency': {
        const what = `${seen.address} answered ${showBytes(seen.bytes)} in`
        const { address, ms: value } = seen
        return atMost({ check: 'latency', what, value, unit: 'duration', threshold: given.latency, address })
      }
      case 'content':
        return asOneAnswer(() => evaluateContent(seen, expectedWith(given, seen.nonce)))
      case 'link':
        return asOneAnswer(() => evaluateLink(seen, given.links))
      case 'builds':
        return evaluateSameVersion(seen.builds)
      case 'certificate':
        return evaluateExpiry('certificate', seen.chain, given.certificate)
      case 'clock':
        return evaluateClock(seen.address, seen.skewMs, given.clock)
    }
  },
})

function evaluateStatus(seen: Answered, configured: readonly string[]): Result {
  const { address, status } = seen
  const allowed = seen.withheld ? ['<500'] : configured
  const followed = seen.followed > 0 ? ` after ${count(seen.followed, 'redirect')}` : ''
  const to = status >= 300 && status < 400 && seen.location !== undefined ? ` to ${seen.location}` : ''
  const said = `${address} answered ${status}${to}${followed}`
  const more: Partial<Result> = { address, measurement: { value: status, unit: 'count' } }
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

function evaluateContent(content: Content, given: HttpSettings): readonly Result[] {
  const { header, contains, matches, health, version } = given
  return [
    ...(header ? [evaluateHeaders(content, header)] : []),
    ...(contains !== undefined || matches !== undefined ? [evaluateBody(content, contains, matches)] : []),
    ...evaluateAssertions(content, given),
    ...(health ? [evaluateHealth(content)] : []),
    ...(version ? [evaluateVersion(content, version)] : []),
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

function evaluateClock(address: string, skewMs: number | undefined, threshold: Threshold): Result {
  if (skewMs === undefined) return warn('clock', `${address} sent a Date header that is no date`, { address })
  const what = `the clock of ${address} is ${skewMs < 0 ? 'behind' : 'ahead of'} ours by`
  return atMost({ check: 'clock', what, value: Math.abs(skewMs), unit: 'duration', threshold, address })
}
