import type { Target } from '../settings/index.ts'

/** One request for a slot. */
export type SlotRequest = {
  readonly target: Target
  /** The monitor's name, for those who wait for it. */
  readonly name: string
  /** The lowest comes first among those that wait: healthy servers do not wait behind silent ones. */
  readonly priority?: number
}

export type Slot = {
  /** What the request had to wait for; undefined when the slot was free at once. */
  readonly waitedFor: string | undefined
  readonly release: () => void
  /**
   * Frees the slot for others although its monitor continues: its peer is silent, which does not load this machine.
   * Keeps the slot of the database with `keepDatabase`. Returns false, and keeps everything, when too many others continue
   * so.
   */
  readonly detach: (options: { readonly keepDatabase: boolean }) => boolean
}

/** Why a request never got its slot: the signal aborted first. The message says what it waited for. */
export class NoSlot extends Error {
  override readonly name = 'NoSlot'
}

type Scope = 'all' | 'host' | 'database'
const units: Record<Scope, string> = {
  all: 'at a time',
  host: 'at a time per host',
  database: 'at a time per database',
}
/** How many monitors may run at once. */
const usual: Record<Scope, number> = { all: 200, host: 4, database: 1 }
/** How many detached monitors may wait for silent peers besides them. */
const maxDetached: Record<Scope, number> = { all: 200, host: 32, database: 32 }

type Key = { readonly key: string; readonly scope: Scope }
type Waiting = { readonly keys: readonly Key[]; readonly priority: number; readonly start: () => void }
type Holders = { readonly attached: Set<object>; readonly detached: Set<object> }

/** Bounds how many monitors run at once: 200, 4 per host, 1 per database. */
export class Slots {
  readonly #max: Record<Scope, number>
  readonly #holders = new Map<string, Holders>()
  /** The names of the monitors that hold slots. */
  readonly #names = new Map<object, string>()
  #waiting: readonly Waiting[] = []

  constructor(max = usual) {
    this.#max = max
  }

  /** Resolves when the slot is free. Rejects with `NoSlot` when the signal aborts first. */
  take({ target, name, priority = 0 }: SlotRequest, signal: AbortSignal): Promise<Slot> {
    const keys: Key[] = [{ key: 'all', scope: 'all' }]
    if (target.host) keys.push({ key: `host ${target.host.toLowerCase()}`, scope: 'host' })
    if (target.database) keys.push({ key: `database ${target.database}`, scope: 'database' })
    if (signal.aborted) return Promise.reject(new NoSlot('its turn', { cause: signal.reason }))
    if (this.#free(keys)) return Promise.resolve(this.#occupy(keys, name))
    return new Promise((resolve, reject) => {
      const waitedFor = this.#taken(keys)
      const abort = (): void => {
        const now = this.#taken(keys) ?? waitedFor
        this.#waiting = this.#waiting.filter((other) => other !== entry)
        reject(new NoSlot(now, { cause: signal.reason }))
      }
      const entry: Waiting = {
        keys,
        priority,
        start: (): void => {
          signal.removeEventListener('abort', abort)
          resolve(this.#occupy(keys, name, waitedFor))
        },
      }
      this.#waiting = [...this.#waiting, entry].toSorted((a, b) => a.priority - b.priority)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  #of({ key }: Key): Holders {
    const existing = this.#holders.get(key)
    if (existing) return existing
    const made: Holders = { attached: new Set(), detached: new Set() }
    this.#holders.set(key, made)
    return made
  }

  #isFull({ key, scope }: Key): boolean {
    return (this.#holders.get(key)?.attached.size ?? 0) >= this.#max[scope]
  }

  #free(keys: readonly Key[]): boolean {
    return !keys.some((key) => this.#isFull(key))
  }

  /** Who holds the slots of the first full key: `http a, http b and 2 more (4 monitors at a time per host)`. */
  #taken(keys: readonly Key[]): string | undefined {
    const full = keys.findLast((key) => this.#isFull(key))
    if (!full) return undefined
    const names = [...this.#of(full).attached].map((holder) => this.#names.get(holder) ?? '')
    const more = names.length > 3 ? ` and ${names.length - 3} more` : ''
    const most = this.#max[full.scope]
    return `${names.slice(0, 3).join(', ')}${more} (${most} ${most === 1 ? 'monitor' : 'monitors'} ${units[full.scope]})`
  }

  #occupy(keys: readonly Key[], name: string, waitedFor?: string): Slot {
    const holder = {}
    this.#names.set(holder, name)
    for (const key of keys) this.#of(key).attached.add(holder)
    return {
      waitedFor,
      release: () => {
        this.#names.delete(holder)
        for (const key of keys) {
          const { attached, detached } = this.#of(key)
          attached.delete(holder)
          detached.delete(holder)
          if (attached.size + detached.size === 0) this.#holders.delete(key.key)
        }
        this.#next()
      },
      detach: ({ keepDatabase }) => {
        const freed = keepDatabase ? keys.filter(({ scope }) => scope !== 'database') : keys
        if (freed.some((key) => this.#of(key).detached.size >= maxDetached[key.scope])) return false
        for (const key of freed) {
          const { attached, detached } = this.#of(key)
          if (attached.delete(holder)) detached.add(holder)
        }
        this.#next()
        return true
      },
    }
  }

  /** By priority, then first come, first served, among those whose slots are free. */
  #next(): void {
    for (const entry of this.#waiting) {
      if (!this.#free(entry.keys)) continue
      this.#waiting = this.#waiting.filter((other) => other !== entry)
      entry.start()
    }
  }
}

/** Rejects as soon as the signal aborts, even if the promise ignores the signal. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {})
    return Promise.reject(signal.reason as Error)
  }
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** A signal that aborts with its parent or after `ms`. `clear` removes the timer and the listener. */
export function deadlineSignal(
  parent: AbortSignal,
  ms: number,
): { readonly signal: AbortSignal; readonly clear: () => void } {
  const controller = new AbortController()
  const abort = (): void => controller.abort(parent.reason)
  if (parent.aborted) abort()
  else parent.addEventListener('abort', abort, { once: true })
  const timer = setTimeout(() => controller.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError')), ms)
  return {
    signal: controller.signal,
    clear: () => {
      clearTimeout(timer)
      parent.removeEventListener('abort', abort)
    },
  }
}
