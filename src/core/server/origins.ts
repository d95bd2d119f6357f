import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Fault } from '../errors.ts'

/** Where a request from a browser comes from: its Origin, or that of its Referer (a script tag sends no Origin). */
export function originOf({ origin, referer }: IncomingHttpHeaders): string | undefined {
  if (origin !== undefined) return origin
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : undefined
}

/**
 * S11: throws Forbidden for a request that a page of another site, or of another origin of this one,
 * made, unless its origin is listed: any web page could otherwise read a local server by a script tag,
 * and start Advanced runs.
 */
export function refuseCrossSite(headers: IncomingHttpHeaders, listed: ReadonlySet<string>): void {
  if (!crossSite(headers)) return
  const origin = originOf(headers)
  if (origin !== undefined && listed.has(origin)) return
  throw foreign()
}

const foreign = (): Fault =>
  new Fault('Forbidden', 'Cross-origin request refused: to allow it, add the origin to serve.origins')

/**
 * T6: throws Forbidden for a change that a browser was made to ask for by a page that is neither of this
 * server, whose origin is `own`, nor of a listed origin. An address typed in or a bookmark is a GET from
 * nowhere. Whoever carries neither header is no browser.
 */
export function refuseForeignChange(
  { headers, method }: Pick<IncomingMessage, 'headers' | 'method'>,
  own: string,
  listed: ReadonlySet<string>,
): void {
  const { 'sec-fetch-site': from, origin } = headers
  if (from === undefined && origin === undefined) return
  if (from === 'same-origin' || (from === 'none' && method === 'GET')) return
  if (from === undefined && origin === own) return
  const asking = originOf(headers)
  if (asking !== undefined && listed.has(asking)) return
  throw foreign()
}

function crossSite(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-site': fetchSite, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } = headers
  const followed = mode === 'navigate' && dest === 'document'
  if (fetchSite !== undefined) {
    // Another port of localhost is of the same site, and any program's or account's: as a script, an answer can be
    // read there. Not so a page that a link leads to; a frame in a page may start a run unseen. Clients that are no browser send none of this.
    return String(fetchSite).includes('cross-site') || (String(fetchSite).includes('same-site') && !followed)
  }
  // Browsers without Sec-Fetch-Site still send Origin with what a script asks for.
  const { origin, host } = headers
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase()
}

const exposed = 'X-Correlation-Id, Age, Retry-After, X-AutoBatch-Completed'
const accepted = [
  'Accept, Authorization, Cache-Control, Content-Type, X-Correlation-Id, traceparent',
  'X-ss-id, X-ss-opt, X-ss-pid',
].join(', ')

/** Response headers for a listed origin, flat; none for any other: never a wildcard. */
export function corsHeaders(headers: IncomingHttpHeaders, listed: ReadonlySet<string>): readonly string[] {
  const { origin } = headers
  if (origin === undefined || !listed.has(origin)) return []
  return [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Allow-Credentials',
    'true',
    'Access-Control-Expose-Headers',
    exposed,
  ]
}

/** What a preflight of a listed origin is told beside that (R5). */
export function preflightHeaders(
  headers: IncomingHttpHeaders,
  listed: ReadonlySet<string>,
  allow: string,
): readonly string[] {
  if (headers.origin === undefined || !listed.has(headers.origin)) return []
  return [
    'Access-Control-Allow-Methods',
    allow,
    'Access-Control-Allow-Headers',
    accepted,
    'Access-Control-Max-Age',
    '600',
  ]
}
