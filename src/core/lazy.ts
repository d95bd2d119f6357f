import type * as Sqlite from 'node:sqlite'

/** A value that is made when it is first needed. */
export type Lazy<T, A extends readonly unknown[] = []> = {
  /** The value. Rejects with what the attempt throws; the next call then makes a new one. */
  readonly get: (...args: A) => Promise<T>
  /** The value, or the attempt under way; undefined when there is neither. Makes nothing. */
  readonly peek: () => Promise<T> | undefined
}

/**
 * Makes a value when it is first needed and keeps it. Whoever asks during an attempt shares it, and
 * with it the arguments of the call that began it.
 *
 * A success is kept and a failure is not: the file that could not be opened, the disk that was full and
 * the database that did not answer are the trouble of a moment, and a long-lived process that kept
 * their rejection would have to be restarted to get rid of it. Whatever is made once in this program is
 * therefore made here, never with `promise ??= make()`.
 *
 * It cannot undo what others keep: Node keeps the error of an ES module, and of a package that
 * `import()` wraps, whose evaluation has failed. `svc serve` loads its modules before it listens.
 */
export function lazy<T, A extends readonly unknown[] = []>(make: (...args: A) => Promise<T>): Lazy<T, A> {
  let promise: Promise<T> | undefined
  return {
    get: (...args) => {
      if (promise) return promise
      // Async, so that what `make` throws before it gives a promise is a rejection too.
      const attempt = (async () => await make(...args))()
      promise = attempt
      // Attached before anybody else's handler, so whoever hears of the failure can ask again at once.
      attempt.catch(() => {
        promise = undefined
      })
      return attempt
    },
    peek: () => promise,
  }
}

/**
 * Node's own SQLite, loaded when it is first asked for. Older lines of Node 24 print an
 * ExperimentalWarning then, which no operator can act on: that one is dropped, any other is not.
 */
export const sqlite = (): typeof Sqlite => withoutSqliteWarning(() => process.getBuiltinModule('node:sqlite'))

/** Runs `load` and drops the one warning that loading node:sqlite may give. */
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
