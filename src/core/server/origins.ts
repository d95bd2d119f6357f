import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Fault } from '../errors.ts'

/**
 * The origin of a browser's request: its Origin header, or the origin of its Referer (a script tag sends no Origin).
 */
export function originOf({ origin, referer }: IncomingHttpHeaders): string | undefined {
  if (origin !== undefined) return origin
  return referer !== undefined && URL.canParse(referer) ? new URL(referer).origin : undefined
}

/**
 * Throws Forbidden for a request from a page of another site, or of another origin of this site, unless its origin is
 * listed (S11). Otherwise any web page could read a local server through a script tag, or start Advanced runs.
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
 * Throws Forbidden for a change that a foreign page made the browser request (T6): a page of neither this server,
 * whose origin is `own`, nor a listed origin. A typed address or a bookmark sends a GET without an origin. A request
 * with neither header does not come from a browser.
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
    // Another port of localhost counts as the same site, but any local program or account may own it and could read an
    // answer through a script tag. Following a link is safe, unlike a frame, which could start a run unseen. Only
    // browsers send these headers.
    return String(fetchSite).includes('cross-site') || (String(fetchSite).includes('same-site') && !followed)
  }
  // Browsers without Sec-Fetch-Site still send Origin with requests from scripts.
  const { origin, host } = headers
  if (origin === undefined) return false
  return !URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase()
}

const exposed = 'X-Correlation-Id, Age, Retry-After, X-AutoBatch-Completed'
const accepted = [
  'Accept, Authorization, Cache-Control, Content-Type, X-Correlation-Id, traceparent',
  'X-ss-id, X-ss-opt, X-ss-pid',
].join(', ')

/** CORS response headers for a listed origin, as a flat list; none for any other. Never a wildcard. */
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

/** Additional headers for the preflight of a listed origin (R5). */
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
