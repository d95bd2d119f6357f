import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GaleraCluster, galeraMissing, startGalera } from '../support/servers/galera.ts'
import type { MariadbServer } from '../support/servers/mariadb.ts'
import { plainPassword, plainReply } from '../support/servers/plain-mysql.ts'
import { findProgram, freePort, remove, run, serverFolder } from '../support/servers/server.ts'
import { haproxy } from '../support/servers/web-servers.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { type Expected, fails, type PlainClient, type Row } from './row.ts'

/** The cluster, and a balancer before it. */
type Pool = GaleraCluster & { readonly pool: { readonly port: number; readonly stop: () => Promise<void> } }

const password = plainPassword
const env = { PASSWORD: password }
const account = "monitor@'127.0.0.1'"
const healthy: Expected = { state: 'healthy' }

/** The first node runs the monitor of most rows; the third one gets the fault. */
const node =
  (which: 0 | 1 | 2, more: object = {}) =>
  ({ nodes }: GaleraCluster) => ({
    kind: 'mysql',
    url: nodes[which].url('monitor', 'orders'),
    password: { env: 'PASSWORD' },
    restarted: '0s',
    ...more,
  })

const client = (which: 0 | 1 | 2, sql: string, gets: RegExp): PlainClient<GaleraCluster> => ({
  asks: ({ nodes }) => plainReply(nodes[which].port, sql),
  gets,
})

const read = 'SELECT COUNT(*) FROM orders.jobs'
const write = 'INSERT INTO orders.jobs (n) VALUES (1)'

/** A session of the third node locks the table that the first one writes to, until flow control pauses the cluster. */
async function locksOut({ nodes: [writer, , slow], status }: GaleraCluster) {
  const holder = await slow.client()
  await holder.query('LOCK TABLES orders.jobs WRITE')
  const sessions = await writer.client()
  let isOver = false
  const writing = (async () => {
    while (!isOver) await sessions.query(write)
  })().catch(() => {})
  await status(writer, 'wsrep_flow_control_active', 'true')
  return async () => {
    isOver = true
    await holder.query('UNLOCK TABLES')
    await holder.end()
    await writing
    await sessions.end()
    await status(slow, 'wsrep_local_recv_queue', '0')
    await status(writer, 'wsrep_flow_control_active', 'false')
  }
}

/** HAProxy, whose TCP checks find all nodes well, in their turn. */
const balanced =
  (more: object = {}) =>
  ({ pool }: Pool) => ({
    kind: 'mysql',
    url: `mysql://monitor@127.0.0.1:${pool.port}/orders`,
    password: { env: 'PASSWORD' },
    restarted: '0s',
    ...more,
  })

const refuses = async ({ nodes: [, , third] }: GaleraCluster) => {
  await third.query('SET GLOBAL wsrep_reject_queries = ALL')
  return async () => void (await third.query('SET GLOBAL wsrep_reject_queries = NONE'))
}

async function startPool(nodes: readonly MariadbServer[]): Promise<Pool['pool']> {
  const folder = serverFolder('haproxy')
  const port = await freePort()
  const lines = nodes.map(({ port: to }, at) => `  server n${at} 127.0.0.1:${to} check`)
  writeFileSync(
    join(folder, 'haproxy.cfg'),
    `global
  log stderr format raw local0 notice
defaults
  mode tcp
  timeout client 30s
  timeout server 30s
  timeout connect 5s
listen galera
  bind 127.0.0.1:${port}
  balance roundrobin
${lines.join('\n')}
`,
  )
  const running = await run(findProgram('haproxy') ?? '', ['-W', '-f', join(folder, 'haproxy.cfg')], /Loading success/)
  return {
    port,
    stop: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}

const refusesAll: Expected = fails('galera', 'data', /^refuses all queries/)
const paused: Expected = fails(
  'flow control',
  'threshold',
  /^writes of the cluster paused for \d+(?:\.\d+)? % of the time/,
)

const rows: readonly Row<Pool>[] = [
  {
    fault: 'a healthy node of three',
    monitor: node(0, { nodes: 3, allowWrites: true }),
    expected: healthy,
    shallower: { Basic: healthy, Standard: healthy },
    client: client(0, write, /^ok$/),
  },
  {
    fault: 'a healthy node of three that nothing was written to',
    monitor: node(2, { role: 'source' }),
    expected: healthy,
    shallower: { Basic: healthy, Standard: healthy },
    client: client(2, read, /^ok$/),
  },
  {
    fault: 'a healthy pool of three nodes behind HAProxy',
    monitor: balanced({ samples: 6 }),
    expected: healthy,
    shallower: { Basic: healthy, Standard: healthy },
  },
  {
    fault: 'one of three nodes behind HAProxy refuses queries, asked with six samples',
    monitor: balanced({ samples: 6 }),
    plant: refuses,
    expected: fails('samples', 'data', /^(?:2 of 6 refused: )?refuses all/, { orCheck: 'galera' }),
    shallower: {
      Basic: healthy,
      Standard: fails('samples', 'data', /^(?:2 of 6 refused: )?refuses all/, { orCheck: 'galera' }),
    },
    before: 'healthy, or failed once in three runs',
  },
  {
    fault: 'a node refuses the queries of clients',
    monitor: node(2),
    plant: refuses,
    expected: refusesAll,
    shallower: { Basic: healthy, Standard: refusesAll },
    client: client(2, read, /WSREP has not yet prepared node/),
    before: 'healthy in Standard',
  },
  {
    fault: 'a node does not keep up, and flow control pauses the writes of the cluster',
    monitor: node(0),
    plant: locksOut,
    expected: paused,
    shallower: { Basic: healthy, Standard: paused },
    client: client(0, write, /^no reply within 2 s$/),
    before: 'healthy',
  },
  {
    fault: 'the node that does not keep up itself',
    monitor: node(2, { flowControl: { warn: 100, limit: 100 }, receiveQueue: { limit: 10 } }),
    plant: locksOut,
    expected: fails('receive queue', 'threshold', /^write sets that wait to be applied here: \d+ /),
    client: client(0, write, /^no reply within 2 s$/),
    before: 'healthy',
  },
  {
    fault: 'a commit waits for the certification of the cluster',
    monitor: node(0, { flowControl: { warn: 100, limit: 100 }, lockWait: { limit: '500ms' } }),
    plant: async (cluster) => {
      const cure = await locksOut(cluster)
      await until(
        async () =>
          (
            await cluster.nodes[0].query(
              "SELECT id FROM information_schema.processlist WHERE state = 'Waiting for certification' AND time >= 1",
            )
          ).length > 0,
      )
      return cure
    },
    expected: fails('lock wait', 'threshold', /waiting for certification/),
    client: client(0, write, /^no reply within 2 s$/),
    before: 'healthy',
  },
  {
    fault: 'the other nodes have voted a node out, because its data differ',
    monitor: node(2),
    plant: async ({ nodes: [first, , third], status }) => {
      await first.query('INSERT INTO orders.jobs (id, n) VALUES (1000000, 1)')
      await until(async () => (await third.query('SELECT id FROM orders.jobs WHERE id = 1000000')).length > 0)
      await third.query('SET SESSION wsrep_on = OFF; DELETE FROM orders.jobs WHERE id = 1000000')
      await first.query('UPDATE orders.jobs SET n = 2 WHERE id = 1000000')
      await status(third, 'wsrep_ready', 'OFF')
      return undefined
    },
    expected: refusesAll,
    shallower: { Basic: healthy, Standard: refusesAll },
    client: client(2, read, /WSREP has not yet prepared node/),
    before: 'healthy in Standard',
  },
  {
    fault: 'one of three nodes is missing, and svc.yaml expects 3',
    monitor: node(0, { nodes: 3 }),
    expected: fails('nodes', 'data', /^2 nodes of the cluster are connected \(fail below 3\)/),
    shallower: { Basic: healthy, Standard: fails('nodes', 'data', /^2 nodes of the cluster are connected/) },
    client: client(0, write, /^ok$/),
    before: 'healthy',
  },
  {
    fault: 'the last other node has died, and the quorum is lost',
    monitor: node(0),
    plant: async ({ nodes: [first, second], status }) => {
      process.kill(second.pid, 'SIGKILL')
      await status(first, 'wsrep_cluster_status', 'non-Primary')
      return undefined
    },
    expected: fails('galera', 'data', /^not ready for queries: .*non-Primary/),
    shallower: { Basic: healthy, Standard: fails('galera', 'data', /^not ready for queries/) },
    client: client(0, read, /WSREP has not yet prepared node/),
    before: 'healthy in Standard',
  },
]

corpus<Pool>({
  server: 'MariaDB, a Galera cluster of three nodes',
  env,
  missing: galeraMissing ?? haproxy.missing,
  start: async () => {
    const cluster = await startGalera()
    const [first, , third] = cluster.nodes
    await first.query(`CREATE DATABASE orders; CREATE TABLE orders.jobs (id int AUTO_INCREMENT PRIMARY KEY, n int);
      CREATE USER shop@'127.0.0.1' IDENTIFIED BY '${password}'; GRANT ALL ON orders.* TO shop@'127.0.0.1';
      CREATE USER ${account} IDENTIFIED BY '${password}'; GRANT PROCESS, SLAVE MONITOR ON *.* TO ${account};
      GRANT SELECT ON orders.* TO ${account};
      GRANT CREATE, DROP, SELECT, INSERT, DELETE ON orders.svc_probe TO ${account}`)
    await until(async () => (await third.query(`SHOW GRANTS FOR ${account}`).catch(() => [])).length >= 3)
    return { ...cluster, pool: await startPool(cluster.nodes) }
  },
  stop: async ({ pool, remove: removeNodes }) => {
    await pool.stop()
    await removeNodes()
  },
  rows,
})
