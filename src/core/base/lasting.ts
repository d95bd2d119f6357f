/** The keys that hold now, and which of those that held before hold on although nothing shows it. */
export type Lasting = {
  readonly at: number
  readonly keys: readonly string[]
  readonly holds: (key: string) => boolean
}

/**
 * Since when each key holds: since now, or since it held before. The other keys are forgotten.
 *
 * @example
 * ```ts
 * const before = new Map([['cpu', 1], ['swap', 2]])
 * const now = { at: 9, keys: ['cpu', 'load'], holds: () => false }
 * Array.from(lastingSince(before, now)) // [['cpu', 1], ['load', 9]]
 * ```
 */
export function lastingSince(
  before: ReadonlyMap<string, number>,
  { at, keys, holds }: Lasting,
): ReadonlyMap<string, number> {
  const others = [...before.keys()].filter(holds)
  return new Map([...keys, ...others].map((key) => [key, Math.min(before.get(key) ?? at, at)]))
}
