/** Milliseconds of two clocks: that of the wall, which people set, and one that only ever moves on. */
export type Clocks = { readonly wall: () => number; readonly monotonic: () => number }

/**
 * The time line of a schedule: milliseconds since 1970 as the wall clock says at the start, and from then on by the
 * monotonic clock. So the due times are the same after a restart, and a wall clock that is set changes none of them.
 *
 * @example
 * ```ts
 * let [wall, monotonic] = [1_700_000_000_000, 5_000]
 * const now = timelineOf({ wall: () => wall, monotonic: () => monotonic })
 * wall += 3_600_000
 * monotonic += 1_000
 * now() // 1_700_000_001_000
 * ```
 */
export function timelineOf({ wall, monotonic }: Clocks): () => number {
  const origin = wall() - monotonic()
  return () => origin + monotonic()
}
