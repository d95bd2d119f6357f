import type { IncomingHttpHeaders } from 'node:http'
import type { Credential, PasswordCredential } from '../service.ts'

/** Cookies of sign-in (A2), as existing clients know them. */
export const cookieNames = { session: 'ss-id', permanent: 'ss-pid', option: 'ss-opt', token: 'ss-tok' } as const

/** RFC 6265: what a cookie's name may be made of. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/**
 * The first value of each cookie that has one: an empty cookie is absent. What is no pair of a name and
 * a value is skipped and spoils nothing, because an existing client sends parts of dates (A9).
 */
export function readCookies(header: string | undefined): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of header?.split(';') ?? []) {
    const mark = pair.indexOf('=')
    const name = pair.slice(0, Math.max(0, mark)).trim()
    const value = pair.slice(mark + 1).trim()
    if (token.test(name) && value !== '' && !cookies.has(name)) cookies.set(name, value)
  }
  return cookies
}

/**
 * A Set-Cookie header, flat. `maxAge` in seconds, 0 to remove it; undefined: until the browser ends.
 * Never Expires: its comma trips clients that split on commas.
 */
export function setCookie(name: string, value: string, secure: boolean, maxAge?: number): readonly string[] {
  const lasting = maxAge === undefined ? '' : `; Max-Age=${maxAge}`
  return ['Set-Cookie', `${name}=${value}; Path=/${lasting}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`]
}

/** What a request presents of itself. `ambient`: a browser may have added it unasked, a cookie or HTTP Basic. */
export type PresentedCredential = {
  readonly credential: Credential | PasswordCredential | undefined
  readonly ambient: boolean
}

const nobody: PresentedCredential = { credential: undefined, ambient: false }

/**
 * A9: HTTP Basic where it is turned on, bearer token, session header, session cookie, token cookie; the first that is
 * there counts, whatever it is worth. `ambient: false` passes over what is: for JSONP, which any page may load (F2).
 * `session: true` prefers a session: a sign-in ends the one that it presents (A8), whatever else it carries.
 */
export function presented(
  headers: IncomingHttpHeaders,
  options: { readonly ambient: boolean; readonly session?: boolean | undefined; readonly basic: boolean },
): PresentedCredential {
  const ways = options.session ? [sessionHeader, sessionCookie, bearer, tokenCookie] : usual
  const basicCredential = options.basic ? basic(headers) : undefined
  if (basicCredential && options.ambient) return { credential: basicCredential, ambient: true }
  for (const way of ways) {
    const ambient = way === sessionCookie || way === tokenCookie
    if (ambient && (!options.ambient || headers.cookie === undefined)) continue
    const credential = way(headers)
    if (credential) return { credential, ambient }
  }
  return nobody
}

function bearer({ authorization }: IncomingHttpHeaders): Credential | undefined {
  const token = /^bearer +([^ ].*)$/i.exec(authorization ?? '')?.[1]
  return token === undefined ? undefined : { kind: 'bearer', token }
}

/** RFC 7617: the name ends at the first colon. What is no UTF-8 names nobody. */
function basic({ authorization }: IncomingHttpHeaders): PasswordCredential | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? []
  if (encoded === undefined) return undefined
  const [, userName, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? []
  if (userName === undefined || password === undefined || `${userName}${password}`.includes('\ufffd')) return undefined
  return { kind: 'basic', userName, password }
}

function sessionHeader(headers: IncomingHttpHeaders): Credential | undefined {
  const permanent = isPermanent(headers['x-ss-opt'])
  return session(headers[permanent ? 'x-ss-pid' : 'x-ss-id'], permanent)
}

function sessionCookie({ cookie }: IncomingHttpHeaders): Credential | undefined {
  const cookies = readCookies(cookie)
  const permanent = isPermanent(cookies.get(cookieNames.option))
  return session(cookies.get(permanent ? cookieNames.permanent : cookieNames.session), permanent)
}

function tokenCookie({ cookie }: IncomingHttpHeaders): Credential | undefined {
  const token = readCookies(cookie).get(cookieNames.token)
  return token === undefined ? undefined : { kind: 'bearer', token }
}

const usual = [bearer, sessionHeader, sessionCookie, tokenCookie]

const isPermanent = (option: string | readonly string[] | undefined): boolean =>
  String(option ?? '').toLowerCase() === 'perm'

const session = (secret: string | readonly string[] | undefined, permanent: boolean): Credential | undefined =>
  typeof secret === 'string' && secret !== '' ? { kind: 'session', secret, permanent } : undefined
