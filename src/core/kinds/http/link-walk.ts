import { answerOf, type Content } from '../../assert/content.ts'
import { type Answer, select } from '../../assert/document.ts'
import { type LinkEntry, readsBody } from '../../assert/link-settings.ts'
import { readXml } from '../../assert/xml.ts'
import { type CheckContext, deadlineSignal } from '../../engine/index.ts'
import { call } from '../../net/http/call.ts'
import { nextOf, open, type Route, requestTo } from '../../net/http/route.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { safeUrl } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import { admit } from './link-admit.ts'

/** What became of one link, before it is judged. */
export type LinkSeen = { readonly see: 'link'; readonly entry: number; readonly url: string } & Outcome
type Outcome =
  | {
      readonly is: 'answered'
      readonly address: string
      /** Where the answer came from: the last of the redirects. */
      readonly from: URL
      readonly status: number
      readonly type: string | undefined
      /** What the document says that the type is. */
      readonly wanted: string | undefined
      readonly signedIn: boolean
      readonly content: Content | undefined
    }
  | { readonly is: 'failed'; readonly cause: unknown; readonly afterMs: number }
  | { readonly is: 'refused'; readonly why: string }
  | { readonly is: 'deep' | 'loop' | 'none' }
  | { readonly is: 'left'; readonly count: number }

type Walk = {
  readonly entries: readonly LinkEntry[]
  readonly hosts: readonly string[] | undefined
  readonly maxBody: number
  readonly route: Route
  readonly target: PeerAddress
  readonly context: CheckContext
}
type Place = { readonly answer: Answer; readonly base: URL; readonly chain: readonly string[] }

/**
 * Asks what an answer links to, one after the other: only where the entries say, at most `most` of
 * each, the answers' own links `levels` deep. Ends with the run; yields what became of each.
 */
export async function* walkLinks(first: Answer, base: URL, walk: Walk): AsyncGenerator<LinkSeen> {
  const { entries, target, context } = walk
  const asked = entries.map(() => 0)
  const left = entries.map(() => 0)
  const found = entries.map(() => 0)
  const done = new Set<string>()
  const places: Place[] = [{ answer: first, base, chain: [base.href] }]
  for (let place = places.shift(); place !== undefined; place = places.shift()) {
    for (const [index, entry] of entries.entries()) {
      const selected = select(place.answer, entry.path)
      if ('problem' in selected) continue
      for (const item of selected) {
        found[index] = (found[index] ?? 0) + 1
        const written =
          entry.url === undefined ? item.text : entry.url.replaceAll('{}', encodeURIComponent(item.text.toWellFormed()))
        const url = written === '' ? null : URL.parse(written, place.base.href)
        const seen = { see: 'link', entry: index, url: url === null ? '' : safeUrl(url) } as const
        const key = url === null ? `${index} ${written}` : `${index} ${plain(url)}`
        // The chain is of documents within documents: whoever comes back to one would never end.
        const back = entry.levels > 1 && url !== null && place.chain.includes(url.href)
        if (done.has(key) && !back) continue
        // What is refused counts too: a peer must not choose how much there is to tell.
        if ((asked[index] ?? 0) >= entry.most) {
          left[index] = (left[index] ?? 0) + 1
          continue
        }
        asked[index] = (asked[index] ?? 0) + 1
        if (url === null) {
          done.add(key)
          yield { ...seen, is: 'refused', why: 'what stands there is no URL' }
          continue
        }
        if (back) {
          yield { ...seen, is: 'loop' }
          continue
        }
        if (entry.levels > 1 && place.chain.length > entry.levels) {
          yield { ...seen, is: 'deep' }
          continue
        }
        done.add(key)
        target.step('links')
        const start = context.now()
        try {
          const wanted = entry.typeAt === undefined ? undefined : item.within(entry.typeAt)?.at(0)?.text
          const outcome = await ask(url, entry, wanted, walk)
          yield { ...seen, ...outcome }
          if (entry.levels > 1 && outcome.is === 'answered' && outcome.content) {
            const chain = [...place.chain, url.href]
            places.push({ answer: answerOf(outcome.content), base: outcome.from, chain })
          }
        } catch (cause) {
          if (target.signal.aborted) throw cause
          yield { ...seen, is: 'failed', cause, afterMs: context.now() - start }
        }
      }
    }
  }
  for (const index of entries.keys()) {
    const seen = { see: 'link', entry: index, url: '' } as const
    if (found[index] === 0) yield { ...seen, is: 'none' }
    if ((left[index] ?? 0) > 0) yield { ...seen, is: 'left', count: left[index] ?? 0 }
  }
}

/** Takes out what is never sent, and gives the rest. */
function plain(url: URL): string {
  url.hash = ''
  url.username = ''
  url.password = ''
  return url.href
}

/** Asks one URL and, where they are allowed, its redirects; each is admitted by itself. */
async function ask(first: URL, entry: LinkEntry, wanted: string | undefined, walk: Walk): Promise<Outcome> {
  const { context, hosts } = walk
  const route: Route = { ...walk.route, method: entry.method, body: undefined }
  const gate = { home: route.url, target: walk.target, hosts, plainHttp: entry.plainHttp }
  const deadline = deadlineSignal(walk.target.signal, entry.within)
  let url = first
  try {
    for (let hop = 0; ; hop += 1) {
      // A name server that is slow must not cost more than the link may.
      const admitted = await admit(url, gate, {
        ...context,
        resolve: (host) => inTime(context.resolve(host), deadline.signal),
      })
      if ('refused' in admitted) return { is: 'refused', why: admitted.refused }
      const at = { ...admitted.target, signal: deadline.signal }
      const { socket } = await open(at, url, route, context)
      try {
        const head = await call(socket, at.address, requestTo(url, route), route.hide)
        const next = nextOf(head, url, at, route)
        if (next === undefined) {
          const { 'content-type': type } = head.headers
          const content = readsBody(entry) ? await contentOf(at.address, head, walk) : undefined
          const signedIn = route.signsIn && url.origin === route.url.origin
          return {
            is: 'answered',
            address: at.address,
            from: url,
            status: head.status,
            type,
            wanted,
            signedIn,
            content,
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

async function contentOf(address: string, head: Awaited<ReturnType<typeof call>>, walk: Walk): Promise<Content> {
  const body = await head.read(walk.maxBody)
  const { headers } = head
  const xml = await readXml(body.bytes, headers['content-type'])
  return { address, headers, body: body.bytes, more: body.more, hide: walk.route.hide, at: walk.context.date(), xml }
}

function inTime<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(signal.reason as Error)
    if (signal.aborted) late()
    signal.addEventListener('abort', late, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', late))
  })
}
