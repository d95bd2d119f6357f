import type { IncomingHttpHeaders } from 'node:http'
import type {
  Call,
  Credential,
  DigestCredential,
  PasswordCredential,
  SignedRequest,
} from '../protocol/service/service.ts'

/** The sign-in cookies (A2), with the names that existing clients use. */
export const cookieNames = { session: 'ss-id', permanent: 'ss-pid', option: 'ss-opt', token: 'ss-tok' } as const

/** The characters of a cookie name (RFC 6265). */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/**
 * The first non-empty value of each cookie; an empty cookie counts as absent. Skips whatever is not a name-value pair,
 * because an existing client sends parts of dates (A9). Java's clients write cookies as RFC 2965 does: the value in
 * quotes, and attributes such as `$Path` beside it, which are not cookies.
 */
export function readCookies(header: string | undefined): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of header?.split(';') ?? []) {
    const mark = pair.indexOf('=')
    const name = pair.slice(0, Math.max(0, mark)).trim()
    const value = unquoted(pair.slice(mark + 1).trim())
    if (token.test(name) && !name.startsWith('$') && value !== '' && !cookies.has(name)) cookies.set(name, value)
  }
  return cookies
}

const unquoted = (value: string): string =>
  value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value

/**
 * A Set-Cookie header as a flat list. `maxAge` is in seconds: 0 removes the cookie, undefined makes it a session
 * cookie. Never uses Expires: its comma breaks clients that split on commas.
 */
export function setCookie(name: string, value: string, secure: boolean, maxAge?: number): readonly string[] {
  const lasting = maxAge === undefined ? '' : `; Max-Age=${maxAge}`
  return ['Set-Cookie', `${name}=${value}; Path=/${lasting}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`]
}

/** The credential of a request. `ambient`: a browser may have added it by itself (a cookie, HTTP Basic or Digest). */
export type PresentedCredential = {
  readonly credential: Call['credential']
  readonly ambient: boolean
}

const nobody: PresentedCredential = { credential: undefined, ambient: false }

/**
 * Looks for HTTP Basic and Digest where they are enabled, a bearer token, the session header, the session cookie and the token
 * cookie, in this order (A9). The first one present counts, valid or not. `ambient: false` skips ambient credentials:
 * for JSONP, which any page may load (F2). `session: true` prefers a session, because a sign-in ends the session that
 * it presents, whatever else it carries (A8).
 */
export function presented(
  headers: IncomingHttpHeaders,
  options: {
    readonly ambient: boolean
    readonly session?: boolean | undefined
    readonly basic: boolean
    /** The request that a digest must be for. Undefined where digest is off. */
    readonly signed: SignedRequest | undefined
  },
): PresentedCredential {
  const ways = options.session ? [sessionHeader, sessionCookie, bearer, tokenCookie] : usual
  const forOneRequest =
    (options.basic ? basicCredential(headers) : undefined) ??
    (options.signed ? digestCredential(headers, options.signed) : undefined)
  if (forOneRequest && options.ambient) return { credential: forOneRequest, ambient: true }
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

/**
 * The user name and password of HTTP Basic. The user name ends at the first colon (RFC 7617). Invalid UTF-8 names no
 * user.
 */
export function basicCredential({ authorization }: IncomingHttpHeaders): PasswordCredential | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? []
  if (encoded === undefined) return undefined
  const [, userName, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString('utf8')) ?? []
  if (userName === undefined || password === undefined || `${userName}${password}`.includes('\ufffd')) return undefined
  return { kind: 'basic', userName, password }
}

/** The parameters of HTTP Digest, which the provider reads. Undefined for another scheme. */
export const digestParameters = ({ authorization = '' }: IncomingHttpHeaders): string | undefined =>
  /^digest[ ]/i.test(authorization) ? authorization.slice('digest '.length) : undefined

function digestCredential(headers: IncomingHttpHeaders, signed: SignedRequest): DigestCredential | undefined {
  const digest = digestParameters(headers)
  return digest === undefined ? undefined : { kind: 'digest', ...signed, digest }
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
