import { createCipheriv, createDecipheriv, createHmac, randomBytes, scrypt } from 'node:crypto'
import { sanitize } from '../../base/net/text.ts'

/** The longest pause after a refused sign-in, in milliseconds. */
export const maxPauseMs = 60 * 60_000

/** Where refusals outlive the process: one small private file. Each method may reject; svc then only forgets. */
export type RefusalStore = {
  /** Undefined when there is no file. */
  readonly read: () => Promise<string | undefined>
  readonly write: (text: string) => Promise<void>
}

/** A sign-in without its secrets: it can neither be shown nor written by mistake. */
export type SignInKey = {
  /** The server and the account. */
  readonly place: string
  /** The server, the account and the secrets. Differs from process to process. */
  readonly id: string
  /** The secrets, as text. */
  readonly reveal: () => string
}

/** Times are milliseconds since 1970. */
export type RefusedSignIn = {
  /** The monitor that signed in. */
  readonly by: string
  /** Why the server refused it. */
  readonly cause?: string | undefined
  readonly at: number
  readonly pause: number
}

/** A refusal in the file. */
type Entry = Omit<RefusedSignIn, 'cause'> & {
  /** A keyed hash of the server and the account. */
  readonly place: string
  readonly salt: string
  readonly check: string
  /** The cause, encrypted. */
  readonly sealed?: string | undefined
}
/** A refusal that ended because the server accepted the same sign-in at `at`. */
type Accepted = Pick<Entry, 'place' | 'salt' | 'check' | 'at'>
type Content = {
  readonly version: 1
  readonly salt: string
  readonly refusals: readonly Entry[]
  /** For processes that remember the refusal. A missing entry proves nothing: another process may have overwritten it. */
  readonly accepted: readonly Accepted[]
}

/** The oldest are dropped. */
const maxEntries = 100
/** Entries are kept this long, so that another refusal doubles the pause. Milliseconds. */
const keptMs = 24 * 60 * 60_000
const maxCharacters = 256 * 1_024
const maxCause = 160

/**
 * Refusals on disk. The file tells neither servers nor accounts, and its two bytes of scrypt for each secret recognize
 * a corrected secret (all but one in 65,536), but are too few to confirm a guess, however many guesses are tried. The
 * cause may name the server and the account: it is encrypted with a key made of both, which therefore tells nothing to
 * anyone who does not know them, and nothing about the secret to anyone.
 */
export class RefusalFile {
  readonly #store: RefusalStore
  /** The places that the file mentioned when it was last read. */
  #places: ReadonlySet<string> = new Set()
  /** Whether an entry belongs to a sign-in, by the id of the sign-in and the salt of the entry: scrypt is slow. */
  readonly #matches = new Map<string, boolean>()
  /** Changes of this process, one after the other. */
  #changes: Promise<unknown> = Promise.resolve()

  constructor(store: RefusalStore) {
    this.#store = store
  }

  /**
   * The refusal of a sign-in. `accepted`: the server has accepted it since `after`, in milliseconds since 1970.
   * Undefined if the file does not say.
   */
  async find(key: SignInKey, after: number | undefined): Promise<RefusedSignIn | 'accepted' | undefined> {
    const content = await this.#read()
    const entry = await this.#entryOf(content, content.refusals, key)
    if (entry) return { by: entry.by, at: entry.at, pause: entry.pause, cause: opened(content, key, entry) }
    const since = content.accepted.filter(({ at }) => after !== undefined && at >= after)
    return (await this.#entryOf(content, since, key)) && 'accepted'
  }

  async add(key: SignInKey, { by, at, pause, cause }: RefusedSignIn): Promise<void> {
    await this.#change(async (content) => {
      const before = await this.#entryOf(content, content.refusals, key)
      const salt = randomBytes(16).toString('base64')
      const entry = {
        by,
        at,
        pause,
        salt,
        place: placeOf(content, key),
        check: await checkOf(key, salt),
        sealed: cause === undefined ? undefined : sealedCause(content, key, salt, cause),
      }
      const isRecent = (one: { readonly at: number }): boolean => one.at + keptMs > at
      const others = content.refusals.filter((one) => one !== before && isRecent(one))
      return { ...content, refusals: [...others, entry], accepted: content.accepted.filter(isRecent) }
    })
  }

  /** Ends the refusal of a sign-in, which the server has accepted at `at`. */
  async remove(key: SignInKey, at: number): Promise<void> {
    if (!this.#places.has(key.place)) return
    await this.#change(async (content) => {
      const entry = await this.#entryOf(content, content.refusals, key)
      if (!entry) return undefined
      const { place, salt, check } = entry
      const refusals = content.refusals.filter((one) => one !== entry)
      return { ...content, refusals, accepted: [...content.accepted, { place, salt, check, at }] }
    })
  }

  /** Reads, changes and writes. Undefined: there is nothing to write. */
  async #change(change: (content: Content) => Promise<Content | undefined>): Promise<void> {
    const made = this.#changes.then(async () => {
      const content = await change(await this.#read())
      if (content) await this.#write(content)
    })
    this.#changes = made.catch(() => {})
    await made
  }

  async #entryOf<E extends Accepted>(content: Content, entries: readonly E[], key: SignInKey): Promise<E | undefined> {
    const place = placeOf(content, key)
    const candidates = entries.filter((entry) => entry.place === place)
    if (candidates.length > 0) this.#places = new Set([...this.#places, key.place])
    for (const entry of candidates) if (await this.#isOf(entry, key)) return entry
    return undefined
  }

  async #isOf({ salt, check }: Accepted, key: SignInKey): Promise<boolean> {
    const pair = `${key.id} ${salt} ${check}`
    const matches = this.#matches.get(pair) ?? (await checkOf(key, salt)) === check
    if (this.#matches.size >= maxEntries * 10) this.#matches.clear()
    this.#matches.set(pair, matches)
    return matches
  }

  async #read(): Promise<Content> {
    const text = await this.#store.read().catch(() => undefined)
    return (
      (text === undefined || text.length > maxCharacters ? undefined : parsed(text)) ?? {
        version: 1,
        salt: randomBytes(16).toString('base64'),
        refusals: [],
        accepted: [],
      }
    )
  }

  async #write(content: Content): Promise<void> {
    const refusals = content.refusals.slice(-maxEntries)
    const accepted = content.accepted.slice(-maxEntries)
    await this.#store.write(`${JSON.stringify({ ...content, refusals, accepted })}\n`).catch(() => {})
  }
}

const placeOf = ({ salt }: Content, { place }: SignInKey): string =>
  createHmac('sha256', salt).update(place).digest('base64')

/** Two bytes of scrypt: see `RefusalFile`. */
const checkOf = (key: SignInKey, salt: string): Promise<string> =>
  new Promise((resolve, reject) => {
    scrypt(key.reveal(), salt, 2, (error, hash) => (error ? reject(error) : resolve(hash.toString('hex'))))
  })

const algorithm = 'aes-256-gcm'
const ivBytes = 12
const tagBytes = 16

/** The key of a cause: another one for every entry. */
const causeKey = ({ salt }: Content, { place }: SignInKey, entrySalt: string): Buffer =>
  createHmac('sha256', salt).update(`cause ${entrySalt} ${place}`).digest()

function sealedCause(content: Content, key: SignInKey, salt: string, cause: string): string {
  const iv = randomBytes(ivBytes)
  const cipher = createCipheriv(algorithm, causeKey(content, key, salt), iv)
  const text = Buffer.concat([cipher.update(sanitize(cause, maxCause), 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64')
}

/** Undefined for an entry without a cause, or with a damaged one. */
function opened(content: Content, key: SignInKey, { salt, sealed }: Entry): string | undefined {
  if (sealed === undefined) return undefined
  const bytes = Buffer.from(sealed, 'base64')
  if (bytes.length < ivBytes + tagBytes) return undefined
  try {
    const iv = bytes.subarray(0, ivBytes)
    const decipher = createDecipheriv(algorithm, causeKey(content, key, salt), iv)
    decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes))
    const text = Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()])
    return sanitize(text.toString('utf8'), maxCause)
  } catch {
    return undefined
  }
}

/** Undefined for anything but a file that svc has written. */
function parsed(text: string): Content | undefined {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  const { version, salt, refusals, accepted = [] } = (json ?? {}) as Partial<Record<keyof Content, unknown>>
  if (version !== 1 || typeof salt !== 'string' || !Array.isArray(refusals) || !Array.isArray(accepted))
    return undefined
  const accepts = accepted.slice(-maxEntries).flatMap(acceptedIn)
  return { version, salt, refusals: refusals.slice(-maxEntries).flatMap(entryIn), accepted: accepts }
}

function acceptedIn(json: unknown): readonly Accepted[] {
  const { place, salt, check, at } = (json ?? {}) as Partial<Record<keyof Accepted, unknown>>
  if (typeof place !== 'string' || typeof salt !== 'string' || typeof check !== 'string' || !isTime(at)) return []
  return [{ place, salt, check, at }]
}

function entryIn(json: unknown): readonly Entry[] {
  const { by, pause, sealed } = (json ?? {}) as Partial<Record<keyof Entry, unknown>>
  if (typeof by !== 'string' || !isTime(pause) || pause > maxPauseMs) return []
  const cause = typeof sealed === 'string' ? { sealed } : {}
  return acceptedIn(json).map((entry) => ({ ...entry, by: sanitize(by, 200), pause, ...cause }))
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0
