import { count } from '../../../base/format.ts'
import { isPublic, leadsNearer, type PeerAddress, reachOf } from '../../../base/net/addresses.ts'
import { hostPort } from '../../../base/net/connect.ts'
import type { Head } from '../../../base/net/http/call.ts'
import { asksPeerAt, callOver, nextOf, open, type Route, requestTo } from '../../../base/net/http/route.ts'
import { quote, safeUrl, sanitize } from '../../../base/net/text.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { answerOf, type Content, evaluateAssertions } from '../../assert/content.ts'
import { type DocumentAnswer, missingList, select } from '../../assert/document.ts'
import { describeMismatch, statusAllowed, textIn, withPatternBudget } from '../../assert/expectation.ts'
import { codeOf, type LinkEntry, type LinkFault, readsBody } from '../../assert/link-settings.ts'
import { measuresIn } from '../../assert/measure.ts'
import { readXml } from '../../assert/xml.ts'
import {
  type CheckContext,
  classify,
  deadlineSignal,
  fail,
  notChecked,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { answer, bodySettings, documentResults, onHttp, response } from './connection.ts'

export type LinkGate = {
  /** The monitor's own URL. Requests to its origin are always allowed. */
  readonly home: URL
  /** The address of the monitor's own request. */
  readonly target: PeerAddress
  /**
   * `host`, `host:port` or `*.domain`. If given, no other host is allowed; otherwise, only public addresses on the
   * default ports.
   */
  readonly hosts: readonly string[] | undefined
  readonly plainHttp: boolean
}
type Admission = { readonly target: PeerAddress } | { readonly refusal: string }

/**
 * Decides whether svc follows a URL of a peer's choice, and to which address. A hostile answer must not make svc send
 * requests to internal machines, or scan ports. svc then connects to the very address that was checked here, so that a
 * name cannot change its address in between.
 */
export async function admit(
  url: URL,
  gate: LinkGate,
  context: Pick<CheckContext, 'resolve' | 'calledByPeer'>,
): Promise<Admission> {
  const { home, target } = gate
  const refused = (why: string): Admission => ({ refusal: `${safeUrl(url)} is not requested: ${why}` })
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return refused('it is neither https nor http')
  if (context.calledByPeer && asksPeerAt(url)) return refused('another svc asked for this run')
  if (url.origin === home.origin) return { target }
  if (url.protocol === 'http:' && !gate.plainHttp) return refused('it is not https')
  const listed = gate.hosts?.some((entry) => matches(entry, url))
  if (listed === false) return refused('its host is not in linkHosts')
  if (!listed && url.port !== '') return refused('its port is not the default: add host:port to linkHosts')
  const [ip] = await context.resolve(hostOf(url))
  if (ip === undefined) return refused('its host has no address')
  if (!listed && !isPublic(ip)) return refused('its address is not public: add the host to linkHosts')
  if (listed && leadsNearer(target.ip, ip)) {
    return refused(`it leads to ${reachOf(ip) === 'machine' ? '' : 'the link of '}this machine`)
  }
  const port = portOf(url)
  return { target: { ...target, ip, port, address: hostPort(ip, port) } }
}

function matches(entry: string, url: URL): boolean {
  const expected = entry.toLowerCase()
  if (expected === url.host || expected === `${url.hostname}:${portOf(url)}`) return true
  // An entry without a port allows all ports; `*.` allows all names below a domain.
  if (expected.startsWith('*.'))
    return url.hostname.endsWith(expected.slice(1)) && url.hostname.length > expected.length - 1
  return expected === url.hostname || expected === hostOf(url)
}

/** Why an entry of linkHosts is invalid, or undefined. */
export const hostProblem = (entry: string): string | undefined =>
  /^(?:\*\.)?[\w.-]+(?::\d{1,5})?$|^\[[\da-f:.]+\](?::\d{1,5})?$|^[\da-f:.]+$/i.test(entry) &&
  !(entry.startsWith('*.') && !/^\*\.[\w-]+\.[\w.-]+$/.test(entry))
    ? undefined
    : 'linkHosts takes cdn.example.com, cdn.example.com:8443 or *.cdn.example.com'

export const links = onHttp({
  depth: 'Standard',
  results: {
    links: 'The URLs in the body that `links` selects answer as expected',
    ...documentResults,
    measure: {
      doc: documentResults.measure,
      when: ['links'],
      items: ({ links: entries = [] }: { readonly links?: readonly LinkEntry[] }) => entries.flatMap(measuresIn),
    },
  },
  settings: {
    links: bodySettings.links,
    linkHosts: {
      type: 'texts',
      doc: 'Hosts that links may lead to besides the host of url: cdn.example.com, host:8443, *.example.com. By default public addresses on the default ports',
    },
  },
  when: ['links'],
  emptyWhere: 'the answer of an earlier address has been searched for links',
  last: true,
  elsewhere: true,
  async *observe(http, { links: entries = [], linkHosts: hosts }, context) {
    const { content } = await answer(http, undefined, context)
    const { url } = await response(http, undefined, context)
    if (http.links.taken) return
    http.links.taken = true
    // This connection is no longer needed, and must not stay open during the other requests.
    await http.close()
    const target = { ...http.at, step: context.step }
    yield* walkLinks(answerOf(content), url, {
      entries,
      hosts,
      maxBody: http.maxBody,
      route: http.route,
      target,
      context,
    })
  },
  evaluate: (outcome, { links: entries = [] }) =>
    withPatternBudget(() => evaluateLink(outcome, entries[outcome.entry])),
})

/** The outcome of one link. `entry` is its index in `links`; `url` is safe to show, and empty if there is none. */
type LinkOutcome = { readonly entry: number; readonly url: string } & (
  | ({ readonly type: 'answer' } & LinkAnswer)
  | { readonly type: 'failure'; readonly cause: unknown; readonly afterMs: number }
  | { readonly type: 'refusal'; readonly why: string }
  | { readonly type: 'too deep' | 'loop' }
  /** No link. `missing` is the list that no document has, or undefined if there is an empty one. */
  | { readonly type: 'none'; readonly missing: string | undefined }
  /** The answer, or a linked document, cannot be searched for links. */
  | { readonly type: 'unreadable'; readonly problem: string }
  /** More links than the limit. */
  | { readonly type: 'rest'; readonly count: number }
)
type LinkAnswer = {
  readonly address: string
  /** The final URL, after redirects. */
  readonly from: URL
  readonly status: number
  readonly contentType: string | undefined
  /** The content type that the document states for the link. */
  readonly documentedType: string | undefined
  readonly signedIn: boolean
  readonly content: Content | undefined
}
type LinkResults = readonly Result<'links' | 'json' | 'xml' | 'measure'>[]

function evaluateLink(outcome: LinkOutcome, entry: LinkEntry | undefined): LinkResults {
  if (!entry) return []
  const name = sanitize(entry.name, 64)
  const code = codeOf(entry.codes)
  const where = outcome.url === '' ? name : `${name} ${outcome.url}`
  const failed = (fault: LinkFault, kind: NonNullable<Result['fault']>, message: string, more?: Partial<Result>) => [
    fail('links', kind, `${code(fault)}${message}`, more),
  ]
  switch (outcome.type) {
    case 'none':
      if (outcome.missing !== undefined) {
        const why = `not checked: ${name}: the answer has no list ${sanitize(outcome.missing, 80)}`
        return [warn('links', why, { notChecked: 'missing' })]
      }
      return [ok('links', `${name}: none in the answer`)]
    case 'unreadable':
      return [notChecked('links', 'missing', `${where}: ${code('parse')}${outcome.problem}`)]
    case 'rest': {
      const rest = count(outcome.count, 'more', 'more')
      return [warn('links', `${name}: ${rest} not requested (limit ${entry.most})`)]
    }
    case 'refusal':
      return failed('refused', 'data', `${name}: ${outcome.why}`)
    case 'loop':
      return failed('loop', 'protocol', `${where} leads back to a document that it was linked from`)
    case 'too deep':
      return failed('deep', 'protocol', `${where} exceeds the depth of ${entry.levels} levels`)
    case 'failure': {
      const { fault, message, details } = classify(outcome.cause, outcome.url, outcome.afterMs)
      return failed(fault === 'timeout' ? 'timeout' : 'unreachable', fault, `${where}: ${message}`, { details })
    }
    case 'answer':
      return evaluateAnswer(outcome, entry, where).map((result) => ({ ...result, address: outcome.address }))
  }
}

function evaluateAnswer(answer: LinkAnswer, entry: LinkEntry, where: string): LinkResults {
  const { address, status, signedIn, documentedType, content } = answer
  const code = codeOf(entry.codes)
  const more: Partial<Result> = { measurement: { value: status, unit: 'count' } }
  const text = `${where}: ${address} answered ${status}`
  if (status === 401 && signedIn) {
    const message = `${code('status')}${text}: the sign-in of this monitor was refused`
    return [fail('links', 'auth', message, { ...more, refusal: `status ${status}` })]
  }
  try {
    if (!statusAllowed(status, entry.status)) {
      return [fail('links', 'data', `${code('status')}${text} (expected ${entry.status.join(', ')})`, more)]
    }
  } catch (error) {
    return [fail('links', 'data', `${text}, which cannot be evaluated: ${(error as RangeError).message}`, more)]
  }
  const type = (answer.contentType ?? '').replace(/;.*$/s, '').trim().toLowerCase()
  for (const expected of [entry.type, documentedType]) {
    if (expected === undefined) continue
    // The content type in the document is chosen by the peer, so it is compared as text and never used as a pattern.
    const isSame = type === textIn(expected).trim().toLowerCase()
    const problem = expected === entry.type ? describeMismatch(type, expected) : isSame ? undefined : ''
    if (problem === undefined) continue
    const why = problem === '' ? `is ${quote(type, 80)}, expected ${quote(textIn(expected), 80)}` : problem
    return [fail('links', 'data', `${code('type')}${text}, whose type ${why}`, more)]
  }
  const fine = ok('links', `${text}${type === '' ? '' : `, ${quote(type, 80)}`}`, more)
  return content ? [fine, ...evaluateAssertions(content, entry, entry.levels > 1)] : [fine]
}

type Walk = {
  readonly entries: readonly LinkEntry[]
  readonly hosts: readonly string[] | undefined
  readonly maxBody: number
  readonly route: Route
  readonly target: PeerAddress
  readonly context: CheckContext
}
/** A document to search for links; `chain` contains the URLs that led to it. */
type Page = { readonly answer: DocumentAnswer; readonly base: URL; readonly chain: readonly string[] }

/**
 * Follows the links of a document one by one: only those that an entry selects, at most `most` per entry, and links in
 * linked documents up to `levels` deep. Ends with the run. Yields the outcome of each link.
 */
async function* walkLinks(first: DocumentAnswer, base: URL, walk: Walk): AsyncGenerator<LinkOutcome> {
  const { entries, target, context } = walk
  const counts = entries.map(() => ({ links: 0, requests: 0, rest: 0, unreadable: false, hasList: false }))
  const done = new Set<string>()
  const pages: Page[] = [{ answer: first, base, chain: [base.href] }]
  for (let page = pages.shift(); page !== undefined; page = pages.shift()) {
    for (const [index, entry] of entries.entries()) {
      const counted = counts[index]
      const selected = select(page.answer, entry.path)
      if (counted === undefined) continue
      if ('problem' in selected) {
        counted.unreadable = true
        const url = page.chain.length === 1 ? '' : safeUrl(page.base)
        yield { entry: index, url, type: 'unreadable', problem: selected.problem }
        continue
      }
      counted.hasList ||= missingList(page.answer, entry.path) === undefined
      for (const item of selected) {
        counted.links += 1
        const text =
          entry.url === undefined ? item.text : entry.url.replaceAll('{}', encodeURIComponent(item.text.toWellFormed()))
        const url = text === '' ? null : URL.parse(text, page.base.href)
        const link = { entry: index, url: url === null ? '' : safeUrl(url) }
        const key = url === null ? `${index} ${text}` : `${index} ${plain(url)}`
        // The chain contains the documents around this one; a link back to any of them would never end.
        const isLoop = entry.levels > 1 && url !== null && page.chain.includes(url.href)
        if (done.has(key) && !isLoop) continue
        // Counts refusals too, so that a peer cannot choose the number of results.
        if (counted.requests >= entry.most) {
          counted.rest += 1
          continue
        }
        counted.requests += 1
        if (url === null) {
          done.add(key)
          yield { ...link, type: 'refusal', why: 'the value is not a URL' }
          continue
        }
        if (isLoop) {
          yield { ...link, type: 'loop' }
          continue
        }
        if (entry.levels > 1 && page.chain.length > entry.levels) {
          yield { ...link, type: 'too deep' }
          continue
        }
        done.add(key)
        target.step('links')
        const start = context.now()
        try {
          const documentedType = entry.typeAt === undefined ? undefined : item.within(entry.typeAt)?.at(0)?.text
          const outcome = await requestLink(url, entry, documentedType, walk)
          yield { ...link, ...outcome }
          if (entry.levels > 1 && outcome.type === 'answer' && outcome.content) {
            const chain = [...page.chain, url.href]
            pages.push({ answer: answerOf(outcome.content), base: outcome.from, chain })
          }
        } catch (cause) {
          if (target.signal.aborted) throw cause
          yield { ...link, type: 'failure', cause, afterMs: context.now() - start }
        }
      }
    }
  }
  for (const [entry, counted] of counts.entries()) {
    if (counted.links === 0 && !counted.unreadable) {
      const missing = counted.hasList ? undefined : entries[entry]?.path.split('[*]', 1)[0]
      yield { entry, url: '', type: 'none', missing }
    }
    if (counted.rest > 0) yield { entry, url: '', type: 'rest', count: counted.rest }
  }
}

/** The URL without its fragment and credentials, which are never sent. */
function plain(url: URL): string {
  url.hash = ''
  url.username = ''
  url.password = ''
  return url.href
}

type Response = ({ readonly type: 'answer' } & LinkAnswer) | { readonly type: 'refusal'; readonly why: string }

/** Requests one URL and follows redirects if they are allowed. Checks the admission of each URL separately. */
async function requestLink(
  first: URL,
  entry: LinkEntry,
  documentedType: string | undefined,
  walk: Walk,
): Promise<Response> {
  const { context, hosts } = walk
  const route: Route = { ...walk.route, method: entry.method, body: undefined }
  const gate = { home: route.url, target: walk.target, hosts, plainHttp: entry.plainHttp }
  const deadline = deadlineSignal(walk.target.signal, entry.within)
  let url = first
  try {
    for (let hop = 0; ; hop += 1) {
      // A slow name server must not exceed the link's own timeout.
      const admitted = await admit(url, gate, {
        ...context,
        resolve: (host) => inTime(context.resolve(host), deadline.signal),
      })
      if ('refusal' in admitted) return { type: 'refusal', why: admitted.refusal }
      const at = { ...admitted.target, signal: deadline.signal }
      const { socket } = await open(at, url, route, context)
      try {
        const head = await callOver({ socket, at, url }, requestTo(url, route), route, context)
        const next = nextOf(head, url, at, route)
        if (next === undefined) {
          return {
            type: 'answer',
            address: at.address,
            from: url,
            status: head.status,
            contentType: head.headers['content-type'],
            documentedType,
            signedIn: route.signsIn && url.origin === route.url.origin,
            content: readsBody(entry) ? await contentOf(at.address, head, walk) : undefined,
          }
        }
        if (hop >= route.redirects) {
          throw new ProbeError('protocol', `${at.address} redirects more than ${route.redirects} times`)
        }
        url = next
      } finally {
        socket.destroy()
      }
    }
  } catch (error) {
    if (walk.target.signal.aborted || !deadline.signal.aborted) throw error
    throw new ProbeError('timeout', `${safeUrl(url)} gave no answer within ${entry.within / 1_000} s`)
  } finally {
    deadline.clear()
  }
}

async function contentOf(address: string, { headers, read }: Head, walk: Walk): Promise<Content> {
  const { bytes, more } = await read(walk.maxBody)
  const xml = await readXml(bytes, headers['content-type'])
  return { address, headers, body: bytes, more, redact: walk.route.redact, at: walk.context.date(), xml }
}

function inTime<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(signal.reason as Error)
    if (signal.aborted) late()
    signal.addEventListener('abort', late, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', late))
  })
}
