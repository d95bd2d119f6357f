import type { Verdict } from '../states/index.ts'
import { reportedOutMs } from './policy.ts'
import type { NodeRow } from './types.ts'

/** The key of what the nodes say of each other. It has an owner as any monitor of the network. */
export const nodesKey = '/svc/nodes'

/**
 * What the owner of `nodesKey` says of each node. `ageMs`: how long ago the store answered with these rows. A node that has
 * left in order is not missed.
 */
export function nodeVerdicts(rows: readonly NodeRow[], ageMs: number): readonly Verdict[] {
  return rows.map(({ node, silentMs, hasLeft, isLive }): Verdict => {
    const isOut = !isLive && !hasLeft && silentMs + ageMs >= reportedOutMs
    return {
      check: 'node',
      item: node,
      level: isOut ? 'failed' : 'ok',
      message: isOut ? `node ${node} is out` : hasLeft ? `node ${node} has left` : `node ${node} is there`,
      depth: 'Basic',
    }
  })
}
