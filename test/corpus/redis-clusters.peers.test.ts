import { type RedisServer, redisMissing, startRedis } from '../support/servers/redis.ts'
import { type RedisCluster, startRedisCluster } from '../support/servers/redis-cluster.ts'
import { findProgram } from '../support/servers/server.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { type Expected, fails, type Row, warns } from './row.ts'

const env = { MONITOR: 'a long password' }
/** As the reference documents it for the checks that run by default. */
const documented = ['+ping', '+info', '+config|get', '+cluster|info', '+cluster|nodes']

const healthy: Expected = { state: 'healthy' }
/** Basic only asks whether the server is there. */
const fromStandard = (expected: Expected): Pick<Row<never>, 'expected' | 'shallower'> => ({
  expected,
  shallower: { Basic: healthy, Standard: expected },
})
const everywhere = { expected: healthy, shallower: { Basic: healthy, Standard: healthy } }

/** Every server has just been started, which the check `restarted` reports rightly. */
const node =
  (index: number, more: object = {}) =>
  ({ nodes }: RedisCluster) => ({ kind: 'redis', url: nodes[index]?.url, restarted: '0s', ...more })
const account = ({ nodes }: RedisCluster) => ({
  kind: 'redis',
  url: nodes[0]?.url.replace('//', '//monitor@'),
  password: { env: 'MONITOR' },
  restarted: '0s',
})

/** The reply of the first node to a command, also where it is an error. */
const reply =
  (...command: readonly string[]) =>
  ({ nodes: [first] }: RedisCluster): string =>
    first?.cli(...command) ?? ''

const accountWith =
  (...rules: readonly string[]) =>
  async ({ nodes: [first] }: RedisCluster) => {
    first?.cli('ACL', 'SETUSER', 'monitor', 'reset', 'on', `>${env.MONITOR}`, ...rules)
    return () => void first?.cli('ACL', 'DELUSER', 'monitor')
  }

const coverage = ({ nodes }: RedisCluster, needed: 'yes' | 'no'): void => {
  for (const one of nodes) one.cli('CONFIG', 'SET', 'cluster-require-full-coverage', needed)
}

/** Two keys: of slot 0, which the first primary serves, and of slot 16,383, which the third one serves. */
const [firstKey, lastKey] = ['06S', 'apX']

const rows: readonly Row<RedisCluster>[] = [
  {
    fault: 'a healthy cluster of six, seen by a primary',
    monitor: node(0, { allowWrites: true }),
    client: { asks: reply('SET', firstKey, '1'), gets: /^OK$/ },
    ...everywhere,
  },
  {
    fault: 'a healthy cluster of six, seen by a replica',
    monitor: node(3, { role: 'replica' }),
    client: { asks: ({ nodes }) => nodes[3]?.cli('GET', firstKey) ?? '', gets: /^MOVED 0 / },
    ...everywhere,
  },
  {
    fault: 'a healthy cluster, with the documented account',
    env,
    monitor: account,
    plant: accountWith(...documented),
    ...everywhere,
  },
  {
    fault: 'the account may not list the nodes of the cluster',
    env,
    monitor: account,
    plant: accountWith('+ping', '+info', '+cluster|info'),
    ...fromStandard(warns('cluster nodes', /ACL SETUSER monitor \+cluster\|nodes grants/)),
  },
  {
    fault: 'a slot is being moved, and nobody finishes that',
    monitor: node(0),
    plant: async ({ nodes: [first, , third] }) => {
      const [from, to] = [first?.cli('CLUSTER', 'MYID') ?? '', third?.cli('CLUSTER', 'MYID') ?? '']
      third?.cli('CLUSTER', 'SETSLOT', '0', 'IMPORTING', from)
      first?.cli('CLUSTER', 'SETSLOT', '0', 'MIGRATING', to)
      first?.cli('DEL', firstKey)
      return () => {
        for (const one of [first, third]) one?.cli('CLUSTER', 'SETSLOT', '0', 'STABLE')
      }
    },
    client: { asks: reply('GET', firstKey), gets: /^ASK 0 / },
    ...fromStandard(warns('open slots', /1 slot is open.*slot 0 .*migrat/)),
  },
  {
    fault: 'a slot is being imported, and nobody finishes that',
    monitor: node(2),
    plant: async ({ nodes: [first, , third] }) => {
      third?.cli('CLUSTER', 'SETSLOT', '0', 'IMPORTING', first?.cli('CLUSTER', 'MYID') ?? '')
      return () => void third?.cli('CLUSTER', 'SETSLOT', '0', 'STABLE')
    },
    client: { asks: ({ nodes }) => nodes[2]?.cli('GET', firstKey) ?? '', gets: /^MOVED 0 / },
    ...fromStandard(warns('open slots', /1 slot is open.*slot 0 .*import/)),
  },
  {
    fault: 'a primary has no replica, because it went to another primary',
    monitor: node(0),
    plant: async ({ nodes: [first, , third, , , last], whole }) => {
      last?.cli('CLUSTER', 'REPLICATE', first?.cli('CLUSTER', 'MYID') ?? '')
      const id = third?.cli('CLUSTER', 'MYID') ?? ''
      const hasReplica = (): boolean =>
        first
          ?.cli('CLUSTER', 'NODES')
          .split('\n')
          .some((line) => line.includes('slave') && line.includes(` ${id} `)) === true
      await until(() => !hasReplica(), 60_000)
      return async () => {
        last?.cli('CLUSTER', 'REPLICATE', id)
        await until(hasReplica, 60_000)
        await whole()
      }
    },
    client: { asks: reply('SET', firstKey, '1'), gets: /^OK$/ },
    ...fromStandard(warns('cluster replicas', /1 of 3 primaries .*127\.0\.0\.1:\d+/)),
  },
  {
    fault: 'a replica has failed',
    monitor: node(0),
    plant: ({ kill }) => kill(5),
    client: { asks: reply('SET', firstKey, '1'), gets: /^OK$/ },
    ...fromStandard(warns('cluster nodes', /1 of 6 nodes .*127\.0\.0\.1:\d+/)),
  },
  {
    fault: 'a primary and its replica have failed',
    monitor: node(0),
    plant: ({ kill }) => kill(2, 5),
    client: { asks: reply('SET', firstKey, '1'), gets: /^CLUSTERDOWN The cluster is down/ },
    ...fromStandard(fails('cluster', 'data', /"fail".*5461 failed/)),
  },
  {
    fault: 'a primary and its replica have failed, and the cluster goes on without their slots',
    monitor: node(0),
    plant: async (cluster) => {
      coverage(cluster, 'no')
      const revive = await cluster.kill(2, 5)
      return async () => {
        await revive()
        coverage(cluster, 'yes')
      }
    },
    client: {
      asks: ({ nodes: [first] }) => {
        try {
          // Follows the first node's redirection to the third one.
          return first?.cli('-c', 'SET', lastKey, '1') ?? ''
        } catch (error) {
          return String(error)
        }
      },
      gets: /Connection refused/,
    },
    ...fromStandard(fails('cluster', 'data', /5461 on nodes that have failed/)),
  },
  {
    fault: 'the majority of the primaries has failed',
    monitor: node(0),
    plant: async ({ nodes: [first], nodes, whole }) => {
      // Their replicas cannot be elected without that majority.
      for (const index of [1, 2]) nodes[index]?.freeze()
      await until(() => first?.cli('CLUSTER', 'INFO').includes('cluster_state:fail') === true, 60_000, 200)
      return async () => {
        for (const index of [1, 2]) nodes[index]?.thaw()
        await whole()
      }
    },
    client: { asks: reply('SET', firstKey, '1'), gets: /^CLUSTERDOWN The cluster is down/ },
    ...fromStandard(fails('cluster', 'data', /cluster state is "fail"/)),
  },
]

const valkey = findProgram('valkey-server')
/** Runs where it is installed. Debian 12 has no package of it. */
const unpackaged = (name: string, program: string): string =>
  `${name} (${program}) is not installed: it is in no package index of Debian 12`

corpus<RedisCluster>({
  server: 'Redis 7.0.15, a cluster of six',
  missing: redisMissing,
  start: () => startRedisCluster(),
  rows,
})
corpus<RedisCluster>({
  server: 'Valkey, a cluster of six',
  missing: valkey === undefined ? unpackaged('Valkey', 'valkey-server') : redisMissing,
  start: () => startRedisCluster(valkey),
  rows,
})

type Pair = { readonly one: RedisServer; readonly other: RedisServer }
const linked = (server: RedisServer): Promise<unknown> =>
  until(() => server.cli('INFO', 'replication').includes('master_link_status:up'), 60_000)
const second = ({ other }: Pair) => ({ kind: 'redis', url: other.url, restarted: '0s' })

corpus<Pair>({
  server: 'Redis 7.0.15, a primary and a replica that accepts writes',
  missing: redisMissing,
  start: async () => {
    const fast = ['--repl-diskless-sync-delay', '0']
    const one = await startRedis({ settings: fast })
    const other = await startRedis({ settings: [...fast, '--replicaof', `127.0.0.1 ${one.port}`] })
    await linked(other)
    return { one, other }
  },
  rows: [
    {
      fault: 'healthy: a replica that refuses writes',
      monitor: second,
      client: { asks: ({ other }) => other.cli('SET', 'key', '1'), gets: /^READONLY / },
      ...everywhere,
    },
    {
      fault: 'the replica accepts writes',
      monitor: second,
      plant: async ({ other }) => {
        other.cli('CONFIG', 'SET', 'replica-read-only', 'no')
        return () => void other.cli('CONFIG', 'SET', 'replica-read-only', 'yes')
      },
      client: {
        asks: ({ one, other }) => `${other.cli('SET', 'key', '1')}, at the primary: "${one.cli('GET', 'key')}"`,
        gets: /^OK, at the primary: ""$/,
      },
      ...fromStandard(warns('read-only', /accepts writes.*replica-read-only/)),
    },
    {
      fault: 'the replica accepts writes, and a replica is expected',
      monitor: (pair) => ({ ...second(pair), role: 'replica' }),
      plant: async ({ other }) => {
        other.cli('CONFIG', 'SET', 'replica-read-only', 'no')
        return () => void other.cli('CONFIG', 'SET', 'replica-read-only', 'yes')
      },
      ...fromStandard(warns('read-only', /accepts writes.*replica-read-only/)),
    },
  ],
})

const keydb = findProgram('keydb-server')
corpus<Pair>({
  server: 'KeyDB, two active replicas of each other',
  missing: keydb === undefined ? unpackaged('KeyDB', 'keydb-server') : redisMissing,
  start: async () => {
    const settings = ['--active-replica', 'yes']
    const start = () => startRedis({ settings, program: keydb ?? '' })
    const [one, other] = [await start(), await start()]
    other.cli('REPLICAOF', '127.0.0.1', String(one.port))
    await linked(other)
    one.cli('REPLICAOF', '127.0.0.1', String(other.port))
    await linked(one)
    return { one, other }
  },
  rows: [
    {
      fault: 'healthy: an active replica where a primary is expected',
      monitor: (pair) => ({ ...second(pair), role: 'primary', allowWrites: true }),
      client: { asks: ({ other }) => other.cli('SET', 'key', '1'), gets: /^OK$/ },
      ...everywhere,
    },
    {
      fault: 'the other active replica has ended',
      monitor: second,
      plant: async ({ one, other }) => {
        await one.stop('SIGKILL')
        await until(() => other.cli('INFO', 'replication').includes('master_link_status:down'), 60_000)
        return undefined
      },
      client: { asks: ({ other }) => other.cli('SET', 'key', '1'), gets: /^OK$/ },
      ...fromStandard(fails('replica link', 'data', /is down/)),
    },
  ],
})
