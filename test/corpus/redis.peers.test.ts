import { execFileSync } from 'node:child_process'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { runType } from '../support/engine/run-types.ts'
import { type RedisServer, redisMissing, startRedis } from '../support/servers/redis.ts'
import { type Sentinel, sentinelMissing, startSentinel, startSentinelGroup } from '../support/servers/sentinel.ts'
import { findProgram, freePort } from '../support/servers/server.ts'
import { memory } from '../support/store/readings.ts'
import { corpus } from './corpus.ts'
import { fails, notChecked, type Row, warns } from './row.ts'

const password = 'a long password'
const env = { REDIS: password, WRONG: 'another password' }

type Pair = { readonly primary: RedisServer; readonly replica: RedisServer }

const monitor =
  (more: object = {}) =>
  ({ primary }: Pair) => ({ kind: 'redis', url: primary.url, password: { env: 'REDIS' }, restarted: '0s', ...more })
const replicaMonitor =
  (more: object = {}) =>
  ({ replica }: Pair) => ({ kind: 'redis', url: replica.url, password: { env: 'REDIS' }, restarted: '0s', ...more })

const limited =
  (more: object) =>
  ({ primary }: Pair) => ({
    kind: 'redis',
    url: primary.url.replace('//', '//limited@'),
    password: { env: 'REDIS' },
    restarted: '0s',
    ...more,
  })
/** The account `limited` with these rules, until the fault is cured. */
const account =
  (...rules: readonly string[]) =>
  async ({ primary }: Pair) => {
    primary.cli('ACL', 'SETUSER', 'limited', 'on', `>${password}`, ...rules)
    return () => void primary.cli('ACL', 'DELUSER', 'limited')
  }

/** Sets parameters until the fault is cured. */
const configured =
  (before: Readonly<Record<string, string>>, during: Readonly<Record<string, string>>) =>
  async ({ primary }: Pair) => {
    for (const [name, value] of Object.entries(during)) primary.cli('CONFIG', 'SET', name, value)
    return () => {
      for (const [name, value] of Object.entries(before)) primary.cli('CONFIG', 'SET', name, value)
    }
  }

const { history: earlier } = memory()

/** Of 40 clients, some meet a server that accepts no more. All of them leave. */
async function rejectConnections({ primary }: Pair): Promise<void> {
  const rejected = (): number => Number(/rejected_connections:(\d+)/.exec(primary.cli('INFO', 'stats'))?.[1])
  const before = rejected()
  primary.cli('CONFIG', 'SET', 'maxclients', '20')
  const sockets = Array.from({ length: 40 }, () => connect(primary.port, '127.0.0.1'))
  for (const socket of sockets) socket.on('error', () => {}).resume()
  await wait(500)
  for (const socket of sockets) socket.destroy()
  await wait(200)
  primary.cli('CONFIG', 'SET', 'maxclients', '1000')
  if (rejected() <= before) throw new Error('no connection was rejected')
}

const rows: readonly Row<Pair>[] = [
  { fault: 'a healthy primary', monitor: monitor({ allowWrites: true }), expected: { state: 'healthy' } },
  { fault: 'a healthy replica', monitor: replicaMonitor({ role: 'replica' }), expected: { state: 'healthy' } },
  {
    fault: 'the password was changed',
    monitor: monitor({ password: { env: 'WRONG' } }),
    expected: fails('connect', 'auth', /WRONGPASS|password|refused/),
  },
  {
    fault: 'the account has no permission for INFO',
    monitor: limited({}),
    plant: account('+ping'),
    expected: notChecked('info', /permission .*, which ACL SETUSER limited \+info grants/),
    before: 'warning, exit code 0',
  },
  {
    fault: 'the account may not read the configuration',
    monitor: limited({}),
    plant: async (pair) => {
      const cures = [
        await account('+ping', '+info')(pair),
        await configured({ 'min-replicas-to-write': '0' }, { 'min-replicas-to-write': '1' })(pair),
      ]
      return () => {
        for (const cure of cures) cure()
      }
    },
    expected: warns('min replicas', /1 healthy replica, but this account may not read/),
  },
  {
    fault: 'the account has no permission for a queue that svc.yaml names',
    monitor: limited({ queues: [{ key: 'jobs' }] }),
    plant: account('+ping', '+info', '+config|get'),
    expected: notChecked('queue', /which ACL SETUSER limited \+type grants/),
    before: 'warning, exit code 0',
  },
  {
    fault: 'memory is full',
    monitor: monitor(),
    plant: async ({ primary }) => {
      primary.cli('CONFIG', 'SET', 'maxmemory', '1')
      return () => void primary.cli('CONFIG', 'SET', 'maxmemory', '0')
    },
    expected: fails('memory', 'threshold', /\(noeviction\): .* fail 95 %\)$/),
  },
  {
    fault: 'nearly all client connections are in use',
    monitor: monitor({ clients: { warn: '1%', limit: '2%' } }),
    plant: configured({ maxclients: '1000' }, { maxclients: '20' }),
    expected: fails('clients', 'threshold', /of 20/),
  },
  {
    fault: 'too few replicas for writes',
    monitor: monitor(),
    plant: configured({ 'min-replicas-to-write': '0' }, { 'min-replicas-to-write': '3' }),
    expected: fails('min replicas', 'data', /\(fail below 3\): .* refuses writes/),
    before: 'ok without allowWrites',
  },
  {
    fault: 'the replica has lost its primary',
    monitor: replicaMonitor({ role: 'replica' }),
    plant: async ({ primary, replica }) => {
      replica.cli('REPLICAOF', '127.0.0.1', String(await freePort()))
      return async () => {
        replica.cli('REPLICAOF', '127.0.0.1', String(primary.port))
        await linkUp(replica)
      }
    },
    expected: fails('replica link', 'data', /is down.*: its data is out of date$/),
  },
  {
    fault: 'a replica where a primary is expected',
    monitor: replicaMonitor({ role: 'primary' }),
    expected: fails('role', 'data', /expected a primary/),
  },
  {
    fault: 'the last save failed',
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
    expected: fails('persistence', 'data', /^the last save to disk failed, \d+ /),
  },
  {
    fault: 'a queue has too many items',
    monitor: monitor({ queues: [{ key: 'jobs', length: { warn: 2, limit: 4 } }] }),
    plant: async ({ primary }) => {
      primary.cli('RPUSH', 'jobs', 'a', 'b', 'c', 'd', 'e')
      return () => void primary.cli('DEL', 'jobs')
    },
    expected: fails('queue', 'threshold', /^list "jobs", items waiting: 5/),
  },
  {
    fault: 'an item waits in a queue for too long',
    monitor: monitor({ queues: [{ key: 'jobs', length: { warn: 100 }, time: '$.at', age: { limit: '10m' } }] }),
    plant: async ({ primary }) => {
      primary.cli('RPUSH', 'jobs', JSON.stringify({ at: new Date(Date.now() - 3_600_000).toISOString() }))
      return () => void primary.cli('DEL', 'jobs')
    },
    expected: fails('oldest item', 'threshold', /oldest item has waited 1 h/),
  },
  {
    fault: 'connections are being rejected',
    monitor: monitor(),
    plant: async (pair) => {
      await rejectConnections(pair)
      return undefined
    },
    expected: warns('rejected', /connections of \d+ rejected in the last/),
  },
  {
    fault: 'connections were rejected before the last run',
    monitor: monitor(),
    history: earlier,
    plant: async (pair) => {
      await rejectConnections(pair)
      await runType(JSON.stringify({ types: { App: [monitor()(pair)] } }), 'App', 'Advanced', { env, history: earlier })
      return undefined
    },
    expected: { state: 'healthy' },
    before: 'a warning until the server restarted',
  },
  {
    fault: 'changes have not been saved for long',
    monitor: monitor({ lastSave: { limit: '500ms' } }),
    plant: async ({ primary }) => {
      primary.cli('SAVE')
      primary.cli('SET', 'unsaved', '1')
      await wait(1_600)
      return () => void primary.cli('DEL', 'unsaved')
    },
    expected: fails('last save', 'threshold', /^1 unsaved change, the last save was/),
  },
  {
    fault: 'many clients are blocked',
    monitor: monitor({ blocked: { limit: 1 } }),
    plant: async ({ primary }) => {
      const ends = [1, 2].map(() => primary.cliAside('BLPOP', 'nothing', '0'))
      await until(() => /blocked_clients:2/.test(primary.cli('INFO', 'clients')))
      return () => {
        for (const end of ends) end()
      }
    },
    expected: fails('blocked', 'threshold', /^blocked clients: 2/),
  },
  {
    fault: 'a script blocks the server',
    monitor: monitor({ timeout: '5s' }),
    plant: async ({ primary }) => {
      primary.cli('CONFIG', 'SET', 'busy-reply-threshold', '100')
      const end = primary.cliAside('EVAL', 'while true do end', '0')
      await until(() => /BUSY/.test(primary.cli('PING')))
      return async () => {
        primary.cli('SCRIPT', 'KILL')
        end()
        await until(() => primary.cli('PING') === 'PONG')
      }
    },
    expected: fails('ping', 'data', /is busy with a script/),
  },
  {
    fault: 'the server is frozen',
    monitor: monitor({ timeout: '2s' }),
    plant: async ({ primary }) => {
      primary.freeze()
      return primary.thaw
    },
    expected: fails('connect', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
  },
  {
    fault: 'nothing listens on the port',
    monitor: () => ({ kind: 'redis', url: 'redis://127.0.0.1:1' }),
    expected: fails('connect', 'refused', /refused/),
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
  env,
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
  rows,
})

type SentinelGroup = Awaited<ReturnType<typeof startSentinelGroup>> & { readonly idle: Sentinel }

const sentinel =
  (more: object = {}) =>
  ({ sentinels: [first] }: SentinelGroup) => ({ kind: 'redis', url: first.url, ...more })

/** Waits until the report of this Sentinel about the primary, its replicas or the quorum contains `text`. */
const says = (one: Sentinel, command: string, text: string): Promise<void> =>
  until(() => one.cli('SENTINEL', command, ...(command === 'MASTERS' ? [] : ['orders'])).includes(text))

const sentinelRows: readonly Row<SentinelGroup>[] = [
  { fault: 'a healthy Sentinel', monitor: sentinel({ replicas: 1 }), expected: { state: 'healthy' } },
  {
    fault: 'the account may not list the primaries of a Sentinel',
    monitor: ({ sentinels: [first] }) => ({
      kind: 'redis',
      url: first.url.replace('//', '//limited@'),
      password: { env: 'REDIS' },
    }),
    plant: async ({ sentinels: [first] }) => {
      first.cli('ACL', 'SETUSER', 'limited', 'on', `>${password}`, '+ping', '+info')
      return () => void first.cli('ACL', 'DELUSER', 'limited')
    },
    expected: notChecked('sentinel masters', /sentinel\|masters/),
  },
  {
    fault: 'the quorum is lost',
    monitor: sentinel(),
    plant: async ({ sentinels: [first, second] }) => {
      second.freeze()
      await until(() => noQuorum(first))
      return async () => {
        second.thaw()
        await until(() => !noQuorum(first))
      }
    },
    expected: fails('sentinel quorum', 'data', /^orders: too few Sentinels can be reached: no failover is possible/),
  },
  {
    fault: 'the only replica is down',
    monitor: sentinel(),
    plant: async ({ replica, sentinels: [first] }) => {
      replica.freeze()
      await says(first, 'REPLICAS', 's_down')
      return async () => {
        replica.thaw()
        await until(() => !first.cli('SENTINEL', 'REPLICAS', 'orders').includes('s_down'))
      }
    },
    expected: fails('sentinel replicas', 'data', /^orders: 0 of 1 replica can take over/),
  },
  {
    fault: 'too few replicas for a failover',
    monitor: sentinel({ replicas: 2 }),
    expected: fails('sentinel replicas', 'data', /^orders: 1 of 1 /),
  },
  {
    fault: 'the Sentinel monitors no primary',
    monitor: ({ idle }) => ({ kind: 'redis', url: idle.url }),
    expected: fails('sentinel master', 'data', /^this Sentinel monitors no/),
  },
  {
    fault: 'the primary is down',
    monitor: sentinel(),
    plant: async ({ primary, replica, sentinels: [first] }) => {
      replica.freeze()
      primary.freeze()
      await says(first, 'MASTERS', 's_down')
      return async () => {
        primary.thaw()
        replica.thaw()
        await until(() => !first.cli('SENTINEL', 'MASTERS').includes('s_down'))
      }
    },
    expected: fails('sentinel master', 'data', /^(orders .* is down|this Sentinel does not reach orders)/),
  },
  {
    fault: 'the Sentinel is frozen',
    monitor: sentinel({ timeout: '2s' }),
    plant: async ({ sentinels: [first] }) => {
      first.freeze()
      return first.thaw
    },
    expected: fails('ping', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
  },
  // The last row: this mode lasts for 30 s.
  {
    fault: 'the Sentinel is in TILT mode',
    monitor: sentinel(),
    plant: async ({ sentinels: [first] }) => {
      first.freeze()
      await wait(2_500)
      first.thaw()
      await until(() => first.cli('INFO', 'sentinel').includes('sentinel_tilt:1'))
      return undefined
    },
    expected: warns('sentinel master', /is in TILT mode/),
  },
]

const noQuorum = (one: Sentinel): boolean => one.cli('SENTINEL', 'CKQUORUM', 'orders').includes('NOQUORUM')

const valkey = findProgram('valkey-server')
for (const [name, program, missing] of [
  [redisMissing === undefined ? `Redis Sentinel ${version()}` : 'Redis Sentinel', undefined, undefined],
  [
    'Valkey Sentinel beside one of Redis',
    valkey,
    valkey === undefined
      ? 'Valkey (valkey-server) is not installed: it is in no package index of Debian 12'
      : undefined,
  ],
] as const) {
  corpus<SentinelGroup>({
    server: name,
    env,
    missing: missing ?? redisMissing ?? sentinelMissing,
    start: async () => {
      const group = await startSentinelGroup(program)
      const idle = await startSentinel(group.primary, 1, [], program)
      idle.cli('SENTINEL', 'REMOVE', 'orders')
      return { ...group, idle }
    },
    stop: async ({ idle, remove }) => {
      await idle.remove()
      await remove()
    },
    rows: sentinelRows,
  })
}
