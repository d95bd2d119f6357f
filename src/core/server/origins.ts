import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Fault } from '../base/errors.ts'

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
 * Throws Forbidden for a callback unless the request shows that a page of this server or of a listed origin asks, or a
 * person who typed the address (S11). Browsers send Sec-Fetch-Site only over TLS and to loopback, and a page decides
 * whether its requests carry a Referer. So a request without any of these headers may come from any page, unless its
 * caller is on this machine: a browser there would have sent Sec-Fetch-Site.
 */
export function refuseForeignCallback(
  headers: IncomingHttpHeaders,
  caller: { readonly loopback: boolean },
  listed: ReadonlySet<string>,
): void {
  const origin = originOf(headers)
  if (origin !== undefined && listed.has(origin)) return
  const from = headers['sec-fetch-site']
  if (from === 'same-origin') return
  if (from === undefined || from === 'none') {
    if (origin !== undefined ? hasHost(origin, headers.host) : from === 'none' || caller.loopback) return
  }
  throw new Fault(
    'Forbidden',
    'JSONP is answered only for pages of this server and of the origins in serve.origins, and the request does not show that it comes from one: see Sec-Fetch-Site, Origin and Referer',
  )
}

/**
 * Throws Forbidden for a change that a foreign page made the browser request (T6): a page of neither this server,
 * whose origin is `own`, nor a listed origin. A typed address or a bookmark sends a GET without an origin. Browsers
 * send an Origin with every POST, so a POST without these headers does not come from a browser. A GET may: over plain
 * http a link carries at most a Referer. With a cookie it must show where it comes from, unless its caller is on this
 * machine and no Referer names another origin.
 */
export function refuseForeignChange(
  { headers, method }: Pick<IncomingMessage, 'headers' | 'method'>,
  caller: { readonly loopback: boolean },
  own: string,
  listed: ReadonlySet<string>,
): void {
  const { 'sec-fetch-site': from, origin } = headers
  if (from === undefined && origin === undefined) {
    if (method !== 'GET' || headers.cookie === undefined) return
    const referrer = originOf(headers)
    if (referrer === undefined ? caller.loopback : referrer === own || listed.has(referrer)) return
    throw new Fault(
      'Forbidden',
      'Cross-origin request refused: a GET that signs out by cookie must carry Sec-Fetch-Site, Origin or Referer from this server: use POST',
    )
  }
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
  return origin !== undefined && !hasHost(origin, host)
}

/** Whether an origin has that host and port. Its scheme may differ: a proxy may add TLS. */
const hasHost = (origin: string, host: string | undefined): boolean =>
  URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()

const exposed = 'X-Correlation-Id, Age, Retry-After, X-AutoBatch-Completed'
const accepted = [
  'Accept, Authorization, Cache-Control, Content-Type, X-Correlation-Id, traceparent',
  'X-ss-id, X-ss-opt, X-ss-pid',
].join(', ')

/**
 * The value of Cross-Origin-Resource-Policy: only pages of this origin may load an answer as a script, image or style
 * sheet, and those of a listed origin. It also holds where the browser sends nothing about the page.
 */
export function resourcePolicy(headers: IncomingHttpHeaders, listed: ReadonlySet<string>): string {
  const origin = listed.size === 0 ? undefined : originOf(headers)
  return origin !== undefined && listed.has(origin) ? 'cross-origin' : 'same-origin'
}

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

/** Every verb: a browser hides the 405 that names the allowed ones from a page if the preflight refuses the verb. */
const verbs = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

/** Additional headers for the preflight of a listed origin (R4, R5). */
export function preflightHeaders(headers: IncomingHttpHeaders, listed: ReadonlySet<string>): readonly string[] {
  if (headers.origin === undefined || !listed.has(headers.origin)) return []
  return [
    'Access-Control-Allow-Methods',
    verbs,
    'Access-Control-Allow-Headers',
    accepted,
    'Access-Control-Max-Age',
    '600',
  ]
}
