import { nodesOperations } from '../../../src/core/service/nodes/nodes-answer.ts'
import type { Actor, Data } from '../../../src/core/store/index.ts'
import { LeasesTable } from './leases-table.ts'
import { requestOf } from './nodes.ts'

/**
 * The operations about nodes over a store in memory, and its clock. `own`: the node that answers. `beforeForgetting` is called
 * when the store is about to forget one.
 */
export function nodesInMemory(at: number, own?: string, beforeForgetting?: () => void) {
  const table = new LeasesTable()
  const clock = { at }
  const forgotten: (readonly [node: string, by: Actor])[] = []
  const data = {
    clock: { now: () => clock.at },
    nodes: {
      list: async () => table.rows(clock.at),
      holder: async () => {
        const lease = table.lease('network', clock.at)
        return lease?.hasLeft === false ? lease.node : undefined
      },
      forget: async (node: string, by: Actor) => {
        beforeForgetting?.()
        forgotten.push([node, by])
        return table.forget(node, clock.at)
      },
    },
  } as unknown as Data
  const operations = nodesOperations({ data: async () => data, own: () => own })
  /** A beat of a node, which has the lease of its machine, and that of the network if it `holds` it. */
  const beats = (node: string, more: { readonly isIsolated?: boolean; readonly holds?: true } = {}): void => {
    const facts = {
      ...{ version: '1.2.3', url: `https://${node}.example.com`, startedAt: at - 60_000 },
      digest: '0123456789abcdef',
    }
    const take = (name: string) => {
      const expected = table.lease(name, clock.at)
      return { type: 'take', expected, epoch: (expected?.epoch ?? 0) + 1 } as const
    }
    const isIsolated = more.isIsolated ?? false
    table.beat(requestOf(node, { facts, isIsolated, asks: { machine: take(`@${node}`) } }), clock.at)
    if (more.holds) table.beat(requestOf(node, { facts, isIsolated, asks: { network: take('network') } }), clock.at)
  }
  return { table, clock, forgotten, operations, beats }
}
