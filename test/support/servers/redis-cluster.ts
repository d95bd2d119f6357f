import { until } from '../suite/until.ts'
import { type RedisServer, startRedis } from './redis.ts'
import { freePort, serverFolder } from './server.ts'

/** Long enough that a busy machine does not take a node for failed, and short enough to wait for one that is. */
const nodeTimeoutMs = 3_000
const slots = 16_384
const primaries = 3

export type RedisCluster = {
  /** Three primaries, then the replica of each in the same order. A node that was started again has a new entry. */
  readonly nodes: RedisServer[]
  /** Ends nodes, and waits until the first node takes each for failed. Returns how to start them again. */
  readonly kill: (...indices: readonly number[]) => Promise<() => Promise<void>>
  /** Waits until every node sees six nodes that are up, each slot served, and each replica connected. */
  readonly whole: () => Promise<unknown>
  readonly remove: () => Promise<void>
}

/** A real cluster of six nodes on free ports of 127.0.0.1, of Redis or another server that speaks its protocol. */
export async function startRedisCluster(program?: string): Promise<RedisCluster> {
  const starts = await Promise.all(
    Array.from({ length: 2 * primaries }, async () => {
      const [folder, port, bus] = [serverFolder('redis'), await freePort(), await freePort()]
      const settings = [
        ...['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--repl-diskless-sync-delay', '0'],
        ...['--cluster-node-timeout', String(nodeTimeoutMs), '--cluster-allow-replica-migration', 'no'],
        // A replica that starts while most nodes still take its primary for failed would replace it.
        ...['--cluster-replica-no-failover', 'yes'],
      ]
      return { bus, start: () => startRedis({ settings, folder, port, ...(program === undefined ? {} : { program }) }) }
    }),
  )
  const nodes = await Promise.all(starts.map(({ start }) => start()))
  const node = (index: number): RedisServer => {
    const one = nodes[index]
    if (!one) throw new Error(`there is no node ${index}`)
    return one
  }
  const whole = (): Promise<unknown> =>
    until(
      () =>
        nodes.every((one, index) => {
          const info = one.cli('CLUSTER', 'INFO')
          const nodes = one.cli('CLUSTER', 'NODES')
          const linked = index < primaries || one.cli('INFO', 'replication').includes('master_link_status:up')
          return (
            info.includes('cluster_state:ok') &&
            info.includes('cluster_known_nodes:6') &&
            linked &&
            (nodes.match(/slave\S* [0-9a-f]{40}/g) ?? []).length === primaries &&
            !/\bfail\b|handshake|disconnected/.test(nodes)
          )
        }),
      60_000,
      200,
    )
  for (const [index, one] of nodes.entries()) one.cli('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
  for (const [index, { bus }] of starts.entries())
    if (index > 0) node(0).cli('CLUSTER', 'MEET', '127.0.0.1', String(node(index).port), String(bus))
  for (let index = 0; index < primaries; index += 1) {
    const [from, to] = [index, index + 1].map((share) => Math.ceil((share * slots) / primaries))
    node(index).cli('CLUSTER', 'ADDSLOTSRANGE', String(from), String((to ?? 0) - 1))
  }
  await until(() => nodes.every((one) => one.cli('CLUSTER', 'INFO').includes('cluster_known_nodes:6')), 60_000)
  for (let index = 0; index < primaries; index += 1) {
    const id = node(index).cli('CLUSTER', 'MYID')
    await until(() => node(primaries + index).cli('CLUSTER', 'REPLICATE', id) === 'OK', 60_000, 200)
  }
  await whole()
  return {
    nodes,
    whole,
    kill: async (...indices) => {
      const ids = indices.map((index) => node(index).cli('CLUSTER', 'MYID'))
      await Promise.all(indices.map((index) => node(index).stop('SIGKILL')))
      const isFailed = (id: string): boolean =>
        node(0)
          .cli('CLUSTER', 'NODES')
          .split('\n')
          .some((line) => line.startsWith(id) && /\bfail\b(?!\?)/.test(line))
      await until(() => ids.every(isFailed), 60_000, 200)
      return async () => {
        for (const index of indices) {
          const start = starts[index]?.start
          if (start) nodes[index] = await start()
        }
        await whole()
      }
    },
    remove: async () => {
      for (const one of nodes) await one.remove()
    },
  }
}
