import type { Verdict } from '../states/index.ts'
import { reportedOutMs } from './policy.ts'
import type { NodeRow } from './types.ts'

/** The key of the reports of nodes on each other. They are those of the holder, as with any monitor of the network. */
export const nodesKey = '/svc/nodes'

/**
 * The verdicts of the holder on each node. `ageMs`: how long ago the store answered with these rows.
 * `memberMs`: for how long this node has reached the store without a break: before, no node may have reached it. A node
 * that has left in order is not missed.
 */
export function nodeVerdicts(rows: readonly NodeRow[], ageMs: number, memberMs: number): readonly Verdict[] {
  return rows.map(({ node, silentMs, hasLeft, isLive, facts }): Verdict => {
    const isOut = !isLive && !hasLeft && silentMs + ageMs >= reportedOutMs
    const verdict = { check: 'node', item: node, depth: 'Basic' as const }
    if (isOut && memberMs >= reportedOutMs)
      return { ...verdict, level: 'failed', message: 'out: it no longer renews its row in the store' }
    if (isOut) return { ...verdict, level: undefined, message: 'this node does not know yet whether it is there' }
    if (!facts) return { ...verdict, level: 'warning', message: 'its row in the store is unreadable (column facts)' }
    return { ...verdict, level: 'ok', message: hasLeft ? 'it has left in order' : 'it is there' }
  })
}
