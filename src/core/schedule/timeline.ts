/** Milliseconds of two clocks: that of the wall, which people set, and one that only ever moves on. */
export type Clocks = { readonly wall: () => number; readonly monotonic: () => number }

/**
 * The time line of a schedule: milliseconds since 1970 as the wall clock says at the start, and from then on by the
 * monotonic clock. So the due times are the same after a restart, and a wall clock that is set changes none of them.
 */
export function timelineOf({ wall, monotonic }: Clocks): () => number {
  const origin = wall() - monotonic()
  return () => origin + monotonic()
}
