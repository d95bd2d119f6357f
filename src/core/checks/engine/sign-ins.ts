import { createHmac, randomBytes } from 'node:crypto'
import type { ConfiguredFiles } from '../../base/files/index.ts'
import { showDuration } from '../../base/format.ts'
import { hostAndPort, type Target } from '../../base/settings/index.ts'
import type { SignIn } from './kind.ts'
import { NoSlot, orAborted } from './limits.ts'
import { maxPauseMs, RefusalFile, type RefusalStore, type RefusedSignIn, type SignInKey } from './refusal-file.ts'

export type { RefusalStore, SignInKey } from './refusal-file.ts'

const firstPauseMs = 5 * 60_000

export type Blocked = {
  /** The monitor whose sign-in was refused. */
  readonly by: string
  /** Why the server refused it. Undefined for a refusal that another version of svc stored. */
  readonly cause: string | undefined
  /** Durations as text: since the refusal, and until the next attempt. */
  readonly ago: string
  readonly next: string
}

/** The right to sign in first. Siblings wait until it ends. */
export type SignInTurn = {
  /** The sign-in that the turn had to wait for. */
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
  readonly #refusals = new Map<string, RefusedSignIn>()
  readonly #leads = new Map<string, Lead>()
  readonly #file: RefusalFile | undefined

  constructor(store?: RefusalStore) {
    this.#file = store && new RefusalFile(store)
  }

  /** Rejects like `Secret.reveal`. */
  async keyOf(
    { host = '', port = 0 }: Target,
    { account, secrets }: SignIn,
    files: ConfiguredFiles,
  ): Promise<SignInKey> {
    const texts = await Promise.all(
      secrets.map(async (secret) => (typeof secret === 'object' ? await secret.reveal(files) : secret)),
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

  /**
   * The refusal that forbids this sign-in now. Refusals until `repeatsUntil` (milliseconds since 1970) do not count:
   * somebody wants to know now.
   */
  async blocked(key: SignInKey, now: number, repeatsUntil = Number.NEGATIVE_INFINITY): Promise<Blocked | undefined> {
    const refusal = await this.#current(key)
    if (!refusal || refusal.at <= repeatsUntil) return undefined
    const left = refusal.at + refusal.pause - now
    // A refusal in the future comes from a clock that has been set back.
    if (left <= 0 || refusal.at > now) return undefined
    const { by, cause, at } = refusal
    return { by, cause, ago: showDuration(now - at), next: showDuration(left) }
  }

  /** The latest refusal of this process or another. */
  async #current(key: SignInKey): Promise<RefusedSignIn | undefined> {
    const own = this.#refusals.get(key.id)
    const filed = await this.#file?.find(key, own?.at)
    if (filed === 'accepted') {
      this.#refusals.delete(key.id)
      return undefined
    }
    if (filed === undefined || (own && own.at >= filed.at)) return own
    this.#refusals.set(key.id, filed)
    return filed
  }

  async refused(key: SignInKey, { by, cause }: Pick<RefusedSignIn, 'by' | 'cause'>, now: number): Promise<void> {
    const before = this.#refusals.get(key.id)
    const refusal = { by, cause, at: now, pause: before ? Math.min(before.pause * 2, maxPauseMs) : firstPauseMs }
    this.#refusals.set(key.id, refusal)
    await this.#file?.add(key, refusal)
  }

  async accepted(key: SignInKey, now: number): Promise<void> {
    this.#refusals.delete(key.id)
    await this.#file?.remove(key, now)
  }
}
