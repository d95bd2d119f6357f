import { Fault } from '../errors.ts'
import type { Received } from './exchange.ts'
import { type Asked, said } from './refusal.ts'

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
export const mostRedirects = 3

/** Where people are sent to sign in: by its path, by its host, or by the way back that it is given. */
const loginPath = /(?:^|[/._-])(?:log-?[io]n|sign-?[io]n|sso|authorize|saml2?)(?:[/._-]|$)/i
const loginHost = /^(?:login|signin|sso|auth|accounts|idp)\./i
const wayBack = /^(?:redirect(?:_?ur[il])?|return_?url|continue|RelayState|SAMLRequest)$/i

/**
 * The path to ask next, or undefined for an answer that sends nowhere. Only a GET is sent on, and only within its
 * server: another one's health is not the answer, and a POST may carry a password (K5). Throws `Fault` Unauthorized for
 * a login page (C2), ServerError for any other place.
 */
export function redirectPath(received: Received, asked: Asked, path: string, followed: number): string | undefined {
  const { location } = received.headers
  if (!redirects.has(received.status) || location === undefined) return undefined
  const { origin } = new URL(asked.server)
  const target = URL.parse(location, `${origin}${path}`)
  const remoteStatus = received.status
  if (target === null || !/^https?:$/.test(target.protocol)) {
    throw new Fault('ServerError', `${asked.server} sends on to an address that makes no sense (${remoteStatus})`, {
      remoteStatus,
      hints: ['Is the base URL right?'],
    })
  }
  // Without the query: it may hold what nobody else should read.
  const shown = said(`${target.origin}${target.pathname}`, 200)
  if (isLogin(target)) {
    throw new Fault('Unauthorized', `${asked.server} sends us to a login page (${remoteStatus} to ${shown})`, {
      remoteStatus,
      hints: ['A gateway before the server, or the server itself, wants a caller who is signed in.'],
    })
  }
  if (asked.method !== 'GET' || target.origin !== origin) {
    const base = said(`${target.origin}${baseOf(target.pathname, asked, origin)}`, 200)
    throw new Fault('ServerError', `${asked.server} sends us on to ${shown} (${remoteStatus}), which is not followed`, {
      remoteStatus,
      hints: [`If that is where the service is: --server ${base}`],
    })
  }
  if (followed >= mostRedirects) {
    throw new Fault('ServerError', `${asked.server} sends us on more than ${mostRedirects} times`, {
      remoteStatus,
      hints: ['The redirects of the server, or of a proxy before it, may run in a circle.'],
    })
  }
  return `${target.pathname}${target.search}`
}

const isLogin = (target: URL): boolean =>
  loginPath.test(target.pathname) ||
  loginHost.test(target.hostname) ||
  [...target.searchParams.keys()].some((name) => wayBack.test(name))

/** The new base URL's path: what is left without the operation's own path. */
function baseOf(pathname: string, asked: Asked, origin: string): string {
  const own = asked.url.slice(asked.server.length)
  const prefix = asked.server.slice(origin.length)
  return pathname.endsWith(own) ? pathname.slice(0, -own.length) : prefix
}
