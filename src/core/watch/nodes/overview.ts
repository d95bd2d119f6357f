import type { NodeRow } from './types.ts'

/** A node as people see it. */
export type ViewedNode = {
  readonly row: NodeRow
  /** Whether it is live and has another configuration than most live nodes. */
  readonly differs: boolean
}

/** Nodes by name. */
export function overviewOf(rows: readonly NodeRow[]): readonly ViewedNode[] {
  const usual = usualDigest(rows)
  return rows
    .toSorted((one, other) => (one.node < other.node ? -1 : 1))
    .map((row) => ({ row, differs: row.isLive && row.facts !== undefined && row.facts.digest !== usual }))
}

/** The configuration that more live nodes have than any other. Undefined: two are equally frequent. */
export function usualDigest(rows: readonly NodeRow[]): string | undefined {
  const counts = new Map<string | undefined, number>()
  for (const { isLive, facts } of rows)
    if (isLive && facts) counts.set(facts.digest, (counts.get(facts.digest) ?? 0) + 1)
  const [first, second] = [...counts].toSorted(([, one], [, other]) => other - one)
  return first?.[1] === second?.[1] ? undefined : first?.[0]
}
