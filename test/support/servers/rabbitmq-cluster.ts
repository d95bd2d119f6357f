import { until } from '../suite/until.ts'
import { type RabbitmqServer, startRabbitmq } from './rabbitmq.ts'

export type RabbitmqCluster = {
  readonly nodes: readonly [RabbitmqServer, RabbitmqServer, RabbitmqServer]
  /** Declares a durable queue: of type quorum with a member on each node, or classic with its home on the third node. */
  readonly declare: (name: string, type: 'quorum' | 'classic') => Promise<void>
  /** Ends the member of a quorum queue on a node that goes on running. Returns how to start it again. */
  readonly stopMember: (queue: string, on: RabbitmqServer) => () => void
  readonly remove: () => Promise<void>
}

/** How often nodes collect figures where nobody has set it, in milliseconds. */
const usualIntervalMs = 5_000

/** A real cluster of three nodes that have just started. Takes 20 to 60 s. */
export async function startRabbitmqCluster(): Promise<RabbitmqCluster> {
  const first = await startRabbitmq({ intervalMs: usualIntervalMs })
  const join = { names: first.names, joins: first.node, intervalMs: usualIntervalMs }
  const [second, third] = await Promise.all([startRabbitmq(join), startRabbitmq(join)])
  const nodes = [first, second, third] as const
  await until(async () => ((await first.api('GET', 'nodes')) as readonly unknown[]).length === nodes.length, 60_000)
  return {
    nodes,
    declare: async (name, type) => {
      await third.api('PUT', `queues/%2f/${name}`, { durable: true, arguments: { 'x-queue-type': type } })
    },
    stopMember: (queue, on) => {
      const member = (change: string): string =>
        first.ctl('eval', `ra:${change}(quorum_queues, {'%2F_${queue}', '${on.node}'}).`)
      member('stop_server')
      return () => void member('restart_server')
    },
    remove: async () => {
      for (const one of [third, second, first]) await one.remove()
    },
  }
}
