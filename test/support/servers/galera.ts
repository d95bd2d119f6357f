import { existsSync } from 'node:fs'
import { until } from '../suite/until.ts'
import { type MariadbServer, mariadbMissing, startMariadb } from './mariadb.ts'
import { findProgram, freePort } from './server.ts'

const library = '/usr/lib/galera/libgalera_smm.so'
export const galeraMissing =
  mariadbMissing ??
  (existsSync(library) ? undefined : 'Galera (libgalera_smm.so) is not installed') ??
  (findProgram('rsync') === undefined ? 'rsync, which transfers the state of a node, is not installed' : undefined)

/**
 * Seconds after which the others give up a silent node. Shorter times than those of the messages between them make a busy
 * machine lose nodes.
 */
const timeouts =
  'evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT4S;evs.inactive_timeout=PT8S;evs.inactive_check_period=PT0.5S'

export type GaleraCluster = {
  readonly nodes: readonly [MariadbServer, MariadbServer, MariadbServer]
  /** Waits until the node reports so. */
  readonly status: (node: MariadbServer, name: string, value: string) => Promise<unknown>
  readonly remove: () => Promise<void>
}

/** A real Galera cluster of three nodes; the second and third get their state from the first by rsync. */
export async function startGalera(): Promise<GaleraCluster> {
  const status = (node: MariadbServer, name: string, value: string): Promise<unknown> =>
    until(
      async () => (await node.query(`SHOW GLOBAL STATUS LIKE '${name}'`).catch(() => []))[0]?.['Value'] === value,
      60_000,
      100,
    )
  const first = await freePort()
  const start = async (cluster: string, port: number): Promise<MariadbServer> =>
    startMariadb([
      '--wsrep-on=ON',
      `--wsrep-provider=${library}`,
      `--wsrep-cluster-address=${cluster}`,
      '--wsrep-node-address=127.0.0.1',
      '--wsrep-sst-method=rsync',
      `--wsrep-sst-receive-address=127.0.0.1:${await freePort()}`,
      `--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:${port};ist.recv_addr=127.0.0.1:${await freePort()};${timeouts}`,
      '--binlog-format=ROW',
      '--innodb-autoinc-lock-mode=2',
      '--innodb-buffer-pool-size=32M',
    ])
  const started: MariadbServer[] = []
  const remove = async (): Promise<void> => {
    for (const node of started.toReversed()) await node.remove()
  }
  try {
    const a = await start('gcomm://', first)
    started.push(a)
    const b = await start(`gcomm://127.0.0.1:${first}`, await freePort())
    started.push(b)
    const c = await start(`gcomm://127.0.0.1:${first}`, await freePort())
    started.push(c)
    for (const node of started) {
      await status(node, 'wsrep_cluster_size', '3')
      await status(node, 'wsrep_local_state_comment', 'Synced')
    }
    return { nodes: [a, b, c], status, remove }
  } catch (error) {
    await remove()
    throw error
  }
}
