/** Rows evicted at once when a table has too many, so that counting is rare. */
const swath = 2_000
/** Maximum number of nodes that can share a store without exceeding the limit together. */
const nodes = 16

/** How many new rows this process may still add to a table before it has to count again. */
export type Room = { left: number }

/**
 * The room after one more row. Counts the rows when none was left, and evicts some when there are too many. Call it in
 * the transaction that adds the row.
 */
export async function roomAfter(
  { left }: Room,
  maxRows: number,
  rows: { readonly count: () => Promise<number>; readonly evict: (n: number) => Promise<void> },
): Promise<number> {
  if (left > 0) return left - 1
  const n = await rows.count()
  const most = maxRows - swath
  if (n <= most) return Math.floor((maxRows - n) / nodes) - 1
  await rows.evict(n - most)
  return Math.floor(swath / nodes) - 1
}
