/**
 * Runs several generators at once and yields what they yield, as it comes. When it ends early, each
 * of them is ended too, so that their `finally` blocks close what they opened.
 */
export async function* merged<T>(sources: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
  const pending = new Map<number, Promise<{ readonly index: number; readonly result: IteratorResult<T> }>>()
  const ask = (source: AsyncGenerator<T>, index: number): void => {
    const next = source.next().then((result) => ({ index, result }))
    // A promise that nobody awaits any more must not be an unhandled rejection.
    next.catch(() => {})
    pending.set(index, next)
  }
  sources.forEach(ask)
  try {
    while (pending.size > 0) {
      const { index, result } = await Promise.race(pending.values())
      const source = sources[index]
      if (result.done || source === undefined) {
        pending.delete(index)
        continue
      }
      ask(source, index)
      yield result.value
    }
  } finally {
    await Promise.allSettled(sources.map((source) => source.return(undefined)))
  }
}
