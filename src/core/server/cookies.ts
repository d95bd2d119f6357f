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
