import { Fault } from '../errors.ts'
import type { Received } from './exchange.ts'
import { type SentRequest, sanitizeServerText } from './failure.ts'

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
export const maxRedirects = 3

/** Recognizes the address of a login page by its path, its host or its return parameter. */
const loginPath = /(?:^|[/._-])(?:log-?[io]n|sign-?[io]n|sso|authorize|saml2?)(?:[/._-]|$)/i
const loginHost = /^(?:login|signin|sso|auth|accounts|idp)\./i
const wayBack = /^(?:redirect(?:_?ur[il])?|return_?url|continue|RelayState|SAMLRequest)$/i

/**
 * The path of the next request, or undefined when the answer is not a redirect. Only a GET follows redirects, and only
 * within its server: another server's health is not the answer, and a POST may carry a password (K5). Throws `Fault`
 * Unauthorized for a login page (C2), ServerError for any other target.
 */
export function redirectPath(
  received: Received,
  request: SentRequest,
  path: string,
  followed: number,
): string | undefined {
  const { location } = received.headers
  if (!redirects.has(received.status) || location === undefined) return undefined
  const { origin } = new URL(request.server)
  const target = URL.parse(location, `${origin}${path}`)
  const remoteStatus = received.status
  if (target === null || !/^https?:$/.test(target.protocol)) {
    throw new Fault('ServerError', `${request.server} redirects to an invalid address (${remoteStatus})`, {
      remoteStatus,
      hints: ['Is the base URL correct?'],
    })
  }
  // Without the query, which may hold secrets.
  const label = sanitizeServerText(`${target.origin}${target.pathname}`, 200)
  if (isLogin(target)) {
    throw new Fault('Unauthorized', `${request.server} redirects to a login page (${remoteStatus} to ${label})`, {
      remoteStatus,
      hints: ['The server, or a gateway in front of it, requires sign-in.'],
    })
  }
  if (request.method !== 'GET' || target.origin !== origin) {
    const base = sanitizeServerText(`${target.origin}${baseOf(target.pathname, request, origin)}`, 200)
    throw new Fault(
      'ServerError',
      `${request.server} redirects to ${label} (${remoteStatus}), which svc does not follow`,
      {
        remoteStatus,
        hints: [`If the service is there: --server ${base}`],
      },
    )
  }
  if (followed >= maxRedirects) {
    throw new Fault('ServerError', `${request.server} redirects more than ${maxRedirects} times`, {
      remoteStatus,
      hints: ['The server, or a proxy in front of it, may have a redirect loop.'],
    })
  }
  return `${target.pathname}${target.search}`
}

const isLogin = (target: URL): boolean =>
  loginPath.test(target.pathname) ||
  loginHost.test(target.hostname) ||
  [...target.searchParams.keys()].some((name) => wayBack.test(name))

/** The path of the new base URL: the redirect's path without the operation's own path. */
function baseOf(pathname: string, request: SentRequest, origin: string): string {
  const own = request.url.slice(request.server.length)
  const prefix = request.server.slice(origin.length)
  return pathname.endsWith(own) ? pathname.slice(0, -own.length) : prefix
}
