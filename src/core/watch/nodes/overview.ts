import { ownersOf } from './owner.ts'
import { nodesKey } from './report.ts'
import type { Configurations, NodeRow } from './types.ts'

/** Nodes as people see them, and which monitors of the network nobody runs as they should be. */
export type NodesOverview = {
  /** By name. */
  readonly nodes: readonly ViewedNode[]
  /** Keys that only nodes have that are out. Those of nodes that left in order count while no node is live. Sorted. */
  readonly unowned: readonly string[]
  /** Keys whose owner is isolated: no other live node has them. Sorted. */
  readonly onIsolated: readonly string[]
}
export type ViewedNode = {
  readonly row: NodeRow
  /** How many monitors it owns. Undefined: its configuration is not among those given. */
  readonly monitors: number | undefined
  /** Whether it is live and has another configuration than most live nodes. */
  readonly differs: boolean
}

/** `configurations`: those of all rows. */
export function overviewOf(rows: readonly NodeRow[], configurations: Configurations): NodesOverview {
  const live = rows.filter(({ isLive }) => isLive)
  const liveKeys = keysOf(live, configurations)
  const renamed = new Set(live.flatMap(({ config }) => [...(configurations.get(config)?.formerly.keys() ?? [])]))
  const isolated = new Set(live.filter(({ isIsolated }) => isIsolated).map(({ node }) => node))
  const ownerOf = ownersOf(rows, configurations)
  const owned = new Map<string, number>()
  const onIsolated: string[] = []
  for (const key of liveKeys) {
    const owner = ownerOf(key)
    if (owner === undefined) continue
    owned.set(owner, (owned.get(owner) ?? 0) + 1)
    if (isolated.has(owner)) onIsolated.push(key)
  }
  const away = rows.filter(({ isLive, hasLeft }) => !isLive && (!hasLeft || live.length === 0))
  const unowned = [...keysOf(away, configurations)].filter((key) => !liveKeys.has(key) && !renamed.has(key))
  const usual = usualConfiguration(live)
  return {
    nodes: rows
      .toSorted((one, other) => (one.node < other.node ? -1 : 1))
      .map((row) => ({
        row,
        monitors: row.isLive && !configurations.has(row.config) ? undefined : (owned.get(row.node) ?? 0),
        differs: row.isLive && row.config !== usual,
      })),
    unowned: unowned.toSorted(),
    onIsolated: onIsolated.toSorted(),
  }
}

const keysOf = (rows: readonly NodeRow[], configurations: Configurations): ReadonlySet<string> =>
  new Set(
    rows
      .flatMap(({ config }) => [...(configurations.get(config)?.groups.keys() ?? [])])
      .filter((key) => key !== nodesKey),
  )

/** The configuration that more nodes have than any other. Undefined: two are equally frequent. */
function usualConfiguration(rows: readonly NodeRow[]): string | undefined {
  const counts = new Map<string, number>()
  for (const { config } of rows) counts.set(config, (counts.get(config) ?? 0) + 1)
  const [first, second] = [...counts].toSorted(([, one], [, other]) => other - one)
  return first?.[1] === second?.[1] ? undefined : first?.[0]
}
