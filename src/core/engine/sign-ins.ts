import { createHmac, randomBytes, scrypt } from 'node:crypto'
import { showDuration } from '../format.ts'
import { sanitize } from '../net/text.ts'
import { hostAndPort, type Target } from '../settings/index.ts'
import type { SignIn } from './kind.ts'
import { NoSlot, orAborted } from './limits.ts'

const firstPauseMs = 5 * 60_000
const maxPauseMs = 60 * 60_000

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

/** A refused sign-in. Times are milliseconds since 1970. */
type Refusal = { readonly by: string; readonly at: number; readonly pause: number }

export type Blocked = {
  /** The monitor whose sign-in was refused. */
  readonly by: string
  /** Durations as text: since the refusal, and until the next attempt. */
  readonly ago: string
  readonly next: string
}

/** The right to sign in first. Siblings wait until it ends. */
export type SignInTurn = {
  /** What the turn had to wait for. */
  readonly waitedFor: string | undefined
  readonly end: () => void
}

type Lead = { readonly name: string; readonly ended: Promise<void> }

/**
 * Signs in only once with credentials that the server refuses, so that monitors never lock an account: monitors with
 * the same server, account and secrets wait for the first of them, and after a refusal nobody repeats it for 5
 * minutes, doubling up to an hour. A corrected secret is another key and is tried at once.
 */
export class SignIns {
  readonly #processKey = randomBytes(32)
  readonly #refusals = new Map<string, Refusal>()
  readonly #leads = new Map<string, Lead>()
  readonly #file: RefusalFile | undefined

  constructor(store?: RefusalStore) {
    this.#file = store && new RefusalFile(store)
  }

  /** Rejects like `Secret.reveal`. */
  async keyOf({ host = '', port = 0 }: Target, { account, secrets }: SignIn): Promise<SignInKey> {
    const texts = await Promise.all(
      secrets.map(async (secret) => (typeof secret === 'object' ? await secret.reveal() : secret)),
    )
    // Directories compare account names without case.
    const place = JSON.stringify([hostAndPort(host, port), account.trim().toLowerCase()])
    const secret = JSON.stringify(texts)
    const id = createHmac('sha256', this.#processKey).update(`${place} ${secret}`).digest('base64')
    return { place, id, reveal: () => secret }
  }

  /**
   * Waits until no other monitor is about to sign in with this key. `accepted` holds the keys that a server has
   * accepted in this run: they need no turn. Rejects with `NoSlot` when the signal aborts first.
   */
  async turn({ id }: SignInKey, name: string, accepted: ReadonlySet<string>, signal: AbortSignal): Promise<SignInTurn> {
    let waitedFor: string | undefined
    for (;;) {
      if (accepted.has(id)) return { waitedFor, end: () => {} }
      const lead = this.#leads.get(id)
      if (!lead) break
      waitedFor = `the sign-in of ${lead.name}`
      try {
        await orAborted(lead.ended, signal)
      } catch (cause) {
        throw new NoSlot(waitedFor, { cause })
      }
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const own = { name, ended }
    this.#leads.set(id, own)
    const end = (): void => {
      if (this.#leads.get(id) === own) this.#leads.delete(id)
      resolve()
    }
    return { waitedFor, end }
  }

  /** The refusal that forbids this sign-in now. */
  async blocked(key: SignInKey, now: number): Promise<Blocked | undefined> {
    const refusal = this.#refusals.get(key.id) ?? (await this.#file?.find(key))
    if (!refusal) return undefined
    this.#refusals.set(key.id, refusal)
    const left = refusal.at + refusal.pause - now
    // A refusal in the future comes from a clock that has been set back.
    if (left <= 0 || refusal.at > now) return undefined
    return { by: refusal.by, ago: showDuration(now - refusal.at), next: showDuration(left) }
  }

  async refused(key: SignInKey, by: string, now: number): Promise<void> {
    const before = this.#refusals.get(key.id)
    const refusal = { by, at: now, pause: before ? Math.min(before.pause * 2, maxPauseMs) : firstPauseMs }
    this.#refusals.set(key.id, refusal)
    await this.#file?.add(key, refusal)
  }

  async accepted(key: SignInKey): Promise<void> {
    this.#refusals.delete(key.id)
    await this.#file?.remove(key)
  }
}

/** A refusal in the file. */
type Entry = Refusal & {
  /** A keyed hash of the server and the account. */
  readonly place: string
  readonly salt: string
  readonly check: string
}
type Content = { readonly version: 1; readonly salt: string; readonly refusals: readonly Entry[] }

/** The oldest are dropped. */
const maxEntries = 100
const maxCharacters = 64 * 1_024

/**
 * Refusals on disk. The file tells neither servers nor accounts, and its two bytes of scrypt for each secret recognize
 * a corrected secret (all but one in 65,536), but are too few to confirm a guess, however many guesses are tried.
 */
class RefusalFile {
  readonly #store: RefusalStore
  /** The places that the file mentioned when it was last read. */
  #places: ReadonlySet<string> = new Set()

  constructor(store: RefusalStore) {
    this.#store = store
  }

  async find(key: SignInKey): Promise<Refusal | undefined> {
    const content = await this.#read()
    const entry = await this.#entryOf(content, key)
    return entry && { by: entry.by, at: entry.at, pause: entry.pause }
  }

  async add(key: SignInKey, refusal: Refusal): Promise<void> {
    const content = await this.#read()
    const before = await this.#entryOf(content, key)
    const salt = randomBytes(16).toString('base64')
    const entry = { ...refusal, place: placeOf(content, key), salt, check: await checkOf(key, salt) }
    await this.#write({ ...content, refusals: [...content.refusals.filter((one) => one !== before), entry] })
  }

  /** A secret that the server accepts ends all refusals of its account there. */
  async remove(key: SignInKey): Promise<void> {
    if (!this.#places.has(key.place)) return
    const content = await this.#read()
    const place = placeOf(content, key)
    await this.#write({ ...content, refusals: content.refusals.filter((entry) => entry.place !== place) })
  }

  async #entryOf(content: Content, key: SignInKey): Promise<Entry | undefined> {
    const place = placeOf(content, key)
    const candidates = content.refusals.filter((entry) => entry.place === place)
    if (candidates.length > 0) this.#places = new Set([...this.#places, key.place])
    for (const entry of candidates) if ((await checkOf(key, entry.salt)) === entry.check) return entry
    return undefined
  }

  async #read(): Promise<Content> {
    const text = await this.#store.read().catch(() => undefined)
    return (
      (text === undefined || text.length > maxCharacters ? undefined : parsed(text)) ?? {
        version: 1,
        salt: randomBytes(16).toString('base64'),
        refusals: [],
      }
    )
  }

  async #write(content: Content): Promise<void> {
    const refusals = content.refusals.slice(-maxEntries)
    await this.#store.write(`${JSON.stringify({ ...content, refusals })}\n`).catch(() => {})
  }
}

const placeOf = ({ salt }: Content, { place }: SignInKey): string =>
  createHmac('sha256', salt).update(place).digest('base64')

/** Two bytes of scrypt: see `RefusalFile`. */
const checkOf = (key: SignInKey, salt: string): Promise<string> =>
  new Promise((resolve, reject) => {
    scrypt(key.reveal(), salt, 2, (error, hash) => (error ? reject(error) : resolve(hash.toString('hex'))))
  })

/** Undefined for anything but a file that svc has written. */
function parsed(text: string): Content | undefined {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return undefined
  }
  const { version, salt, refusals } = (json ?? {}) as Partial<Record<keyof Content, unknown>>
  if (version !== 1 || typeof salt !== 'string' || !Array.isArray(refusals)) return undefined
  return { version, salt, refusals: refusals.slice(-maxEntries).flatMap(entryIn) }
}

function entryIn(json: unknown): readonly Entry[] {
  const { place, salt, check, by, at, pause } = (json ?? {}) as Partial<Record<keyof Entry, unknown>>
  if (typeof place !== 'string' || typeof salt !== 'string' || typeof check !== 'string') return []
  if (typeof by !== 'string' || !isTime(at) || !isTime(pause) || pause > maxPauseMs) return []
  return [{ place, salt, check, by: sanitize(by, 200), at, pause }]
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0
