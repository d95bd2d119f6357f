/** A value that is made when it is first needed. */
export type Lazy<T, A extends readonly unknown[] = []> = {
  /** The value. Rejects with what the attempt throws; the next call then makes a new one. */
  readonly get: (...given: A) => Promise<T>
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
export function lazy<T, A extends readonly unknown[] = []>(make: (...given: A) => Promise<T>): Lazy<T, A> {
  let kept: Promise<T> | undefined
  return {
    get: (...given) => {
      if (kept) return kept
      // Async, so that what `make` throws before it gives a promise is a rejection too.
      const attempt = (async () => await make(...given))()
      kept = attempt
      // Attached before anybody else's handler, so whoever hears of the failure can ask again at once.
      attempt.catch(() => {
        kept = undefined
      })
      return attempt
    },
    peek: () => kept,
  }
}
