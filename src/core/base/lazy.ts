import type * as Sqlite from 'node:sqlite'

/** A value that is made on first use. */
export type Lazy<T, A extends readonly unknown[] = []> = {
  /** Returns the value. Rejects with the error of a failed attempt; the next call makes a new attempt. */
  readonly get: (...args: A) => Promise<T>
  /** Returns the value or the attempt in progress, otherwise undefined. Never starts an attempt. */
  readonly peek: () => Promise<T> | undefined
}

/**
 * Makes a value on first use and keeps it. Concurrent callers share one attempt, made with the first caller's
 * arguments.
 *
 * Keeps successes but not failures. A file that could not be opened, a full disk or a database that did not answer are
 * temporary problems; a long-lived process that kept the rejection would need a restart. For this reason, every value
 * that this program makes once uses `lazy`, never `promise ??= make()`.
 *
 * It cannot undo what others cache: Node keeps the error of an ES module whose evaluation failed, and of a package
 * that `import()` wraps. `svc serve` loads its modules before it listens.
 *
 * @example
 * ```ts
 * let calls = 0
 * const load = lazy(async () => (calls += 1))
 * await load.get() // 1
 * await load.get() // 1
 * ```
 */
export function lazy<T, A extends readonly unknown[] = []>(make: (...args: A) => Promise<T>): Lazy<T, A> {
  let promise: Promise<T> | undefined
  return {
    get: (...args) => {
      if (promise) return promise
      // Async, so that a synchronous throw in `make` becomes a rejection too.
      const attempt = (async () => await make(...args))()
      promise = attempt
      // Registered before any other handler, so that a caller that sees the failure can retry at once.
      attempt.catch(() => {
        promise = undefined
      })
      return attempt
    },
    peek: () => promise,
  }
}

/**
 * Makes a value of each object once and keeps it as long as the object exists: for pure functions of objects that do not
 * change.
 */
export function oncePerObject<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const values = new WeakMap<K, V>()
  return (key) => {
    const existing = values.get(key)
    if (existing !== undefined || values.has(key)) return existing as V
    const value = make(key)
    values.set(key, value)
    return value
  }
}

/** The methods of an object that the first call makes, and each call after a failed attempt. All must be asynchronous. */
export const lazyMethods = <T extends object>(make: () => Promise<T>): T =>
  new Proxy<T>({} as T, {
    // `await` would call a method `then`.
    get: (_, name) => (name === 'then' ? undefined : lazyMethod(make, name)),
  })

const lazyMethod =
  (make: () => Promise<object>, name: string | symbol) =>
  async (...args: readonly unknown[]): Promise<unknown> => {
    const made = await make()
    return await Reflect.apply(Reflect.get(made, name) as (...args: unknown[]) => unknown, made, args)
  }

/** Makes objects whose members are made from `from` when they are first used. */
export function madeOnUse<From, T extends object>(makers: { readonly [M in keyof T]: (from: From) => T[M] }) {
  type Made = { readonly from: From; readonly members: Partial<T> }
  const getters = {}
  for (const name of Object.keys(makers) as (keyof T)[]) {
    Object.defineProperty(getters, name, {
      enumerable: true,
      get(this: { readonly made: Made }) {
        const { members, from } = this.made
        members[name] ??= makers[name](from)
        return members[name]
      },
    })
  }
  return (from: From): T => Object.assign(Object.create(getters) as T, { made: { from, members: {} } })
}

/**
 * Node's own SQLite, loaded on first use. Older releases of Node 24 then print an ExperimentalWarning, which no
 * operator can act on. Drops only that warning.
 */
export const sqlite = (): typeof Sqlite => withoutSqliteWarning(() => process.getBuiltinModule('node:sqlite'))

/** Runs `load` and drops the ExperimentalWarning of node:sqlite. */
export function withoutSqliteWarning<T>(load: () => T): T {
  const emit = Reflect.get(process, 'emitWarning') as (...args: unknown[]) => void
  const filtered = (...args: unknown[]): void => {
    if (!isSqliteWarning(args)) Reflect.apply(emit, process, args)
  }
  Reflect.set(process, 'emitWarning', filtered)
  try {
    return load()
  } finally {
    Reflect.set(process, 'emitWarning', emit)
  }
}

function isSqliteWarning([warning, type]: readonly unknown[]): boolean {
  const message = warning instanceof Error ? warning.message : warning
  const name = warning instanceof Error ? warning.name : type
  return name === 'ExperimentalWarning' && typeof message === 'string' && message.startsWith('SQLite ')
}

/**
 * The value of a key, which is made when the map has none.
 *
 * @example
 * ```ts
 * const counts = new Map<string, string[]>()
 * entryOf(counts, 'a', () => []).push('one')
 * entryOf(counts, 'a', () => []).length // 1
 * ```
 */
export function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const existing = map.get(key)
  if (existing !== undefined) return existing
  const made = make()
  map.set(key, made)
  return made
}
