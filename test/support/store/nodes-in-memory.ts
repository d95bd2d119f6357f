import { nodesOperations } from '../../../src/core/service/nodes/nodes-answer.ts'
import type { Actor, Data } from '../../../src/core/store/index.ts'
import { NodesTable, type RenewalRequest } from '../../../src/core/watch/nodes/index.ts'
import { requestOf } from './nodes.ts'

/**
 * The operations about nodes over the table of the simulation, and its clock. `own`: the node that answers.
 * `beforeForgetting` is called when the store is about to forget one.
 */
export function nodesInMemory(at: number, own?: string, beforeForgetting?: () => void) {
  const table = new NodesTable()
  const clock = { at }
  const forgotten: (readonly [node: string, by: Actor])[] = []
  const data = {
    clock: { now: () => clock.at },
    nodes: {
      list: async () => table.rows(clock.at),
      configurations: async (digests: readonly string[]) => table.configurations(digests),
      forget: async (node: string, by: Actor) => {
        beforeForgetting?.()
        forgotten.push([node, by])
        return table.forget(node, clock.at)
      },
    },
  } as unknown as Data
  const operations = nodesOperations({ data: async () => data, own: () => own })
  const request = (node: string, more: Partial<RenewalRequest> = {}): RenewalRequest =>
    requestOf(node, {
      config: '0123456789abcdef',
      facts: { version: '1.2.3', url: `https://${node}.example.com`, startedAt: at - 60_000 },
      ...more,
    })
  return { table, clock, forgotten, operations, request }
}
