import { execFileSync } from 'node:child_process'
import { type RedisServer, redisMissing, startRedis } from '../support/redis.ts'
import { findProgram, freePort } from '../support/server.ts'
import { corpus } from './corpus.ts'
import type { Row } from './row.ts'

const password = 'a long password'
const env = { REDIS: password, WRONG: 'another password' }

type Pair = { readonly primary: RedisServer; readonly replica: RedisServer }

const monitor =
  (more: object = {}) =>
  ({ primary }: Pair) => ({ kind: 'redis', url: primary.url, password: { env: 'REDIS' }, restarted: '0s', ...more })
const replicaMonitor =
  (more: object = {}) =>
  ({ replica }: Pair) => ({ kind: 'redis', url: replica.url, password: { env: 'REDIS' }, restarted: '0s', ...more })

/** Sets parameters until the fault is cured. */
const configured =
  (before: Readonly<Record<string, string>>, during: Readonly<Record<string, string>>) =>
  async ({ primary }: Pair) => {
    for (const [name, value] of Object.entries(during)) primary.cli('CONFIG', 'SET', name, value)
    return () => {
      for (const [name, value] of Object.entries(before)) primary.cli('CONFIG', 'SET', name, value)
    }
  }

const rows: readonly Row<Pair>[] = [
  { fault: 'a healthy primary', env, monitor: monitor({ allowWrites: true }), expected: { state: 'healthy' } },
  { fault: 'a healthy replica', env, monitor: replicaMonitor({ role: 'replica' }), expected: { state: 'healthy' } },
  {
    fault: 'the password was changed',
    env,
    monitor: monitor({ password: { env: 'WRONG' } }),
    expected: { state: 'unhealthy', check: 'connect', fault: 'auth', says: /WRONGPASS|password|refused/ },
  },
  {
    fault: 'the account has no permission for INFO',
    env,
    monitor: ({ primary }) => ({
      kind: 'redis',
      url: primary.url.replace('//', '//limited@'),
      password: { env: 'REDIS' },
    }),
    plant: async ({ primary }) => {
      primary.cli('ACL', 'SETUSER', 'limited', 'on', `>${password}`, '+ping')
      return () => void primary.cli('ACL', 'DELUSER', 'limited')
    },
    expected: { state: 'warning', check: 'info', says: /\+info/ },
  },
  {
    fault: 'memory is full',
    env,
    monitor: monitor(),
    plant: async ({ primary }) => {
      primary.cli('CONFIG', 'SET', 'maxmemory', '1')
      return () => void primary.cli('CONFIG', 'SET', 'maxmemory', '0')
    },
    expected: { state: 'unhealthy', check: 'memory', fault: 'threshold', says: /memory|%/ },
  },
  {
    fault: 'nearly all client connections are in use',
    env,
    monitor: monitor({ clients: { warn: '1%', limit: '2%' } }),
    plant: configured({ maxclients: '1000' }, { maxclients: '20' }),
    expected: { state: 'unhealthy', check: 'clients', fault: 'threshold', says: /of 20/ },
  },
  {
    fault: 'too few replicas for writes',
    env,
    monitor: monitor(),
    plant: configured({ 'min-replicas-to-write': '0' }, { 'min-replicas-to-write': '3' }),
    expected: { state: 'unhealthy', check: 'min replicas', says: /3/ },
    before: 'ok without allowWrites',
  },
  {
    fault: 'the replica has lost its primary',
    env,
    monitor: replicaMonitor({ role: 'replica' }),
    plant: async ({ primary, replica }) => {
      replica.cli('REPLICAOF', '127.0.0.1', String(await freePort()))
      return async () => {
        replica.cli('REPLICAOF', '127.0.0.1', String(primary.port))
        await linkUp(replica)
      }
    },
    expected: { state: 'unhealthy', check: 'replica link', says: /down|not connected|no link/ },
  },
  {
    fault: 'a replica where a primary is expected',
    env,
    monitor: replicaMonitor({ role: 'primary' }),
    expected: { state: 'unhealthy', check: 'role', fault: 'data', says: /expected a primary/ },
  },
  {
    fault: 'the last save failed',
    env,
    monitor: monitor(),
    plant: async ({ primary }) => {
      primary.cli('CONFIG', 'SET', 'dbfilename', 'missing')
      primary.cli('CONFIG', 'SET', 'dir', '/proc')
      try {
        primary.cli('BGSAVE')
        await saved(primary)
      } catch {
        // Refused at once: the status of the last save is an error too.
      }
      return async () => {
        primary.cli('CONFIG', 'SET', 'dir', primary.folder)
        primary.cli('CONFIG', 'SET', 'dbfilename', 'dump.rdb')
        primary.cli('SAVE')
      }
    },
    expected: { state: 'unhealthy', check: 'persistence', says: /save/ },
  },
  {
    fault: 'a queue has too many items',
    env,
    monitor: monitor({ queues: [{ key: 'jobs', length: { warn: 2, limit: 4 } }] }),
    plant: async ({ primary }) => {
      primary.cli('RPUSH', 'jobs', 'a', 'b', 'c', 'd', 'e')
      return () => void primary.cli('DEL', 'jobs')
    },
    expected: { state: 'unhealthy', check: 'queue jobs', fault: 'threshold', says: /\b5\b/ },
  },
  {
    fault: 'the server is frozen',
    env,
    monitor: monitor({ timeout: '2s' }),
    plant: async ({ primary }) => {
      primary.freeze()
      return primary.thaw
    },
    expected: { state: 'unhealthy', check: 'connect', fault: 'timeout', says: /did not answer within 2 s/ },
  },
  {
    fault: 'nothing listens on the port',
    env,
    monitor: () => ({ kind: 'redis', url: 'redis://127.0.0.1:1' }),
    expected: { state: 'unhealthy', check: 'connect', fault: 'refused', says: /refused/ },
  },
]

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 100 && !holds(); tries += 1) await new Promise((resolve) => setTimeout(resolve, 100))
}
const linkUp = (replica: RedisServer): Promise<void> =>
  until(() => /master_link_status:up/.test(replica.cli('INFO', 'replication')))
const saved = (server: RedisServer): Promise<void> =>
  until(() => /rdb_last_bgsave_status:err/.test(server.cli('INFO', 'persistence')))

const version = (): string =>
  / v=([\d.]+)/.exec(
    execFileSync(findProgram('redis-server') ?? 'redis-server', ['--version'], { encoding: 'utf8' }),
  )?.[1] ?? ''

corpus<Pair>({
  server: redisMissing === undefined ? `Redis ${version()}` : 'Redis',
  missing: redisMissing,
  start: async () => {
    const settings = ['--requirepass', password, '--masterauth', password, '--enable-protected-configs', 'yes']
    const primary = await startRedis({ password, settings })
    const replica = await startRedis({
      password,
      settings: [...settings, '--replicaof', `127.0.0.1 ${primary.port}`, '--repl-diskless-sync-delay', '0'],
    })
    await linkUp(replica)
    return { primary, replica }
  },
  stop: async ({ primary, replica }) => {
    await replica.remove()
    await primary.remove()
  },
  rows,
})
