import { setTimeout as pause } from 'node:timers/promises'
import { count } from '../../../base/format.ts'
import { type DatabaseConnection, figure, onDatabase, text } from '../../database/index.ts'
import { atMost, fail, notChecked, ok, type Result, warn, withThreshold } from '../../engine/index.ts'
import { byName } from './checks.ts'
import { isReachable, mayReadGroup, readGroup } from './group-replication.ts'

export const galera = onDatabase({
  // In Standard, because SELECT 1 passes on a node that refuses every other statement.
  depth: 'Standard',
  results: { galera: 'A Galera node accepts queries, replicates and is synced; left out elsewhere' },
  observe: async ({ ask }) => {
    const variables = byName(
      await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN
        ('wsrep_on', 'wsrep_provider', 'wsrep_reject_queries', 'max_connections')`),
    )
    const status = byName(
      await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN
        ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_cluster_size', 'wsrep_local_state_comment')`),
    )
    return {
      /** Whether the server answered at all: every server has max_connections. */
      answered: figure(variables, 'max_connections') !== undefined,
      /** The library that makes a server a Galera node; `none` or empty elsewhere. */
      provider: text(variables, 'wsrep_provider', 200),
      on: text(variables, 'wsrep_on'),
      rejects: text(variables, 'wsrep_reject_queries'),
      ready: text(status, 'wsrep_ready') === 'ON',
      cluster: text(status, 'wsrep_cluster_status'),
      state: text(status, 'wsrep_local_state_comment'),
      size: figure(status, 'wsrep_cluster_size'),
    }
  },
  evaluate: ({ answered, provider, on, rejects, ready, cluster, state, size }): Result<'galera'> | [] => {
    const isNode = provider !== '' && provider !== 'none'
    if (!answered || (isNode && on === '')) {
      return notChecked('galera', 'missing', 'the server does not report whether it is a Galera node')
    }
    if (isNode && on !== 'ON') {
      return fail('galera', 'data', `wsrep_on is ${on}: this node of a Galera cluster does not replicate its writes`)
    }
    if (on !== 'ON') return []
    const nodes = size === undefined ? 'an unknown number of nodes' : count(size, 'node')
    const summary = `${state || 'unknown state'}, ${cluster || 'unknown'} component of ${nodes}`
    if (/^ALL/i.test(rejects)) {
      return fail('galera', 'data', `refuses all queries of clients (wsrep_reject_queries is ${rejects}): ${summary}`)
    }
    if (/^inconsistent$/i.test(state)) {
      const message = 'refuses all queries of clients: the other nodes have excluded it, because its data differ'
      return fail('galera', 'data', message, { details: [summary, 'next: remove grastate.dat and start it again'] })
    }
    if (!ready) return fail('galera', 'data', `not ready for queries: ${summary}`)
    if (cluster !== 'Primary') return fail('galera', 'data', `not in the primary component: ${summary}`)
    return state === 'Synced' ? ok('galera', summary) : warn('galera', summary)
  },
})

/** Milliseconds between the two reads of `flowControl`. */
const secondReadMs = 1_000

async function readFlow({ ask }: DatabaseConnection) {
  const status = byName(
    await ask(`SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_flow_control_paused_ns', 'wsrep_local_recv_queue',
      'wsrep_connected', 'wsrep_cluster_status')`),
  )
  return {
    /** Nanoseconds, since the start of the server or since FLUSH STATUS, in which the cluster let no write through. */
    pausedNs: figure(status, 'wsrep_flow_control_paused_ns'),
    /** Write sets that wait to be applied. */
    queue: figure(status, 'wsrep_local_recv_queue'),
    /** Whether the server is a node in the primary component. */
    isConnected: text(status, 'wsrep_connected') === 'ON' && text(status, 'wsrep_cluster_status') === 'Primary',
  }
}

export const flowControl = onDatabase({
  depth: 'Standard',
  results: {
    'flow control': 'The nodes of a Galera cluster keep up, so that its writes do not wait; omitted elsewhere',
    'receive queue': 'This node of a Galera cluster applies the writes of the others in time; omitted elsewhere',
  },
  settings: {
    flowControl: {
      type: 'threshold',
      unit: 'percent',
      default: { warn: 20, limit: 90 },
      doc: 'Maximum share of a second in which flow control pauses the writes of the whole Galera cluster',
    },
    receiveQueue: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 16 },
      doc: 'Maximum number of write sets that a Galera node has received and not applied, in both of two readings. With 16 or more, it slows down the cluster by default',
    },
  },
  observe: async (connection, _, { now }) => {
    const since = now()
    const first = await readFlow(connection)
    // The check `galera` reports a node outside its cluster.
    if (!first.isConnected) return { ...first, share: undefined, smallest: undefined }
    // A server that has never paused and has nothing to apply shows all that there is to see.
    const isIdle = first.pausedNs === 0 && first.queue === 0
    if (isIdle) return { ...first, share: 0, smallest: 0 }
    await pause(secondReadMs)
    const second = await readFlow(connection)
    const elapsedNs = (now() - since) * 1e6
    return {
      ...second,
      share: shareOf(first.pausedNs, second.pausedNs, elapsedNs),
      smallest:
        first.queue === undefined || second.queue === undefined ? undefined : Math.min(first.queue, second.queue),
    }
  },
  evaluate: ({ isConnected, share, smallest }, { flowControl: paused, receiveQueue }) => {
    if (!isConnected) return []
    const details = [
      "inspect: on each node, SHOW GLOBAL STATUS LIKE 'wsrep_local_recv_queue': the largest slows down the others",
    ]
    return [
      atMost({
        check: 'flow control',
        what: 'writes of the cluster paused for',
        figure: 'wsrep_flow_control_paused_ns',
        after: 'of the time',
        value: share,
        unit: 'percent',
        threshold: paused,
        details,
      }),
      atMost({
        check: 'receive queue',
        what: 'write sets that wait to be applied here:',
        figure: 'wsrep_local_recv_queue',
        value: smallest,
        unit: 'count',
        threshold: receiveQueue,
      }),
    ]
  },
})

/** Percent of the time between two reads. A pause is counted in full when it ends, so that the share is limited to 100. */
function shareOf(before: number | undefined, after: number | undefined, elapsedNs: number): number | undefined {
  if (before === undefined || after === undefined) return
  return Math.min(100, (Math.max(0, after - before) / elapsedNs) * 100)
}

export const nodes = onDatabase({
  depth: 'Standard',
  results: { nodes: 'With `nodes`: so many nodes of the cluster (Galera, group replication) are connected' },
  settings: {
    nodes: {
      type: 'integer',
      min: 1,
      doc: 'Minimum number of connected nodes of the cluster that the server belongs to: Galera or group replication',
    },
  },
  when: ['nodes'],
  privilege: mayReadGroup,
  observe: async (connection) => {
    const variables = byName(await connection.ask("SHOW GLOBAL VARIABLES WHERE Variable_name = 'wsrep_provider'"))
    if (!/^(?:none)?$/.test(text(variables, 'wsrep_provider', 200))) {
      const status = byName(await connection.ask("SHOW GLOBAL STATUS WHERE Variable_name = 'wsrep_cluster_size'"))
      return { connected: figure(status, 'wsrep_cluster_size'), isSetUp: true }
    }
    const { isSetUp, members } = await readGroup(connection)
    return { connected: members.filter(isReachable).length, isSetUp }
  },
  evaluate: ({ connected, isSetUp }, { nodes: min = 1 }): Result<'nodes'> => {
    const check = 'nodes'
    if (!isSetUp) {
      return fail(check, 'data', 'expected a node of a cluster, but neither Galera nor group replication is set up')
    }
    if (connected === undefined)
      return notChecked(check, 'missing', 'the server does not report the size of its cluster')
    const message = withThreshold(
      `${count(connected, 'node of the cluster is', 'nodes of the cluster are')} connected`,
      { limit: min },
      'count',
      'atLeast',
    )
    const measurement = { value: connected, unit: 'count', limit: min, bound: 'atLeast' } as const
    return connected < min ? fail(check, 'data', message, { measurement }) : ok(check, message, { measurement })
  },
})
