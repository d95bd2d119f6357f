/** Maximum numbers of cookies, and of characters in each: a peer must not choose how much svc stores. */
const maxCookies = 50
const maxCookie = 4_096

type Cookie = { readonly value: string; readonly path: string; readonly secure: boolean }

/** The cookies of one run for one host (RFC 6265, without the parts that only browsers need). */
export class CookieJar {
  readonly #cookies = new Map<string, Cookie>()

  /** Stores the cookie of a Set-Cookie header in an answer to `path`. Returns its value, or undefined. */
  take(line: string, path: string, now: Date): string | undefined {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
    // Ignores cookies that are not valid in a header.
    if (at < 1 || pair.length > maxCookie || !/^[\x20-\x7e]*$/.test(pair)) return undefined
    const fields = new Map(
      attributes.map((attribute) => {
        const [key = '', ...rest] = attribute.split('=')
        return [key.toLowerCase(), rest.join('=')] as const
      }),
    )
    if (ended(fields, now)) {
      this.#cookies.delete(name)
      return undefined
    }
    if (this.#cookies.size >= maxCookies && !this.#cookies.has(name)) return undefined
    const scopePath = fields.get('path') ?? ''
    this.#cookies.set(name, {
      value,
      path: scopePath.startsWith('/') ? scopePath : folderOf(path),
      secure: fields.has('secure'),
    })
    return value
  }

  get(name: string): string | undefined {
    return this.#cookies.get(name)?.value
  }

  /** The Cookie header for a path, or undefined. */
  header(path: string, encrypted: boolean): string | undefined {
    const sent = [...this.#cookies].filter(([, cookie]) => (encrypted || !cookie.secure) && within(path, cookie.path))
    return sent.length === 0 ? undefined : sent.map(([name, { value }]) => `${name}=${value}`).join('; ')
  }
}

/** Max-Age takes precedence over Expires. */
function ended(fields: ReadonlyMap<string, string>, now: Date): boolean {
  const age = fields.get('max-age')
  if (age !== undefined && /^-?\d+$/.test(age)) return Number(age) <= 0
  const expires = Date.parse(fields.get('expires') ?? '')
  return expires <= now.getTime()
}

const folderOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf('/')))
const within = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
