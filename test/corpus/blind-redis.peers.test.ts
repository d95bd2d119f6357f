import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { type RedisServer, redisMissing, startRedis } from '../support/servers/redis.ts'
import { until } from '../support/suite/until.ts'
import { corpus } from './corpus.ts'
import { fails, type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const env = { APP: 'a long password' }

type Servers = {
  /** A cache: 4 MB, any key may be evicted. */
  readonly cache: RedisServer
  /** Keeps its keys: 4 MB, evicts none without an expiry. */
  readonly data: RedisServer
  /** Answers no reads while it has no primary. */
  readonly replica: RedisServer
  /** A node of a cluster of its own. */
  readonly node: RedisServer
  /** As providers offer it: without CONFIG. */
  readonly managed: RedisServer
  readonly fiveDays: RedisServer
  readonly expired: RedisServer
}

const ask =
  (name: keyof Servers, more: object = {}) =>
  (servers: Servers) => ({ kind: 'redis', url: servers[name].url, restarted: '0s', ...more })

const as = (user: string) => (servers: Servers) => ({
  kind: 'redis',
  url: servers.data.url.replace('//', `//${user}@`),
  password: { env: 'APP' },
  restarted: '0s',
})

/** Writes about 6 MB. */
const fill = (server: RedisServer): void => {
  const value = 'x'.repeat(100_000)
  for (let n = 0; n < 60; n += 1) {
    try {
      server.cli('SET', `filling:${n}`, value)
    } catch {
      return
    }
  }
}

const slots = (server: RedisServer, state: string): Promise<unknown> =>
  until(() => server.cli('CLUSTER', 'INFO').includes(`cluster_state:${state}`))

const rows: readonly Row<Servers>[] = [
  { fault: 'healthy', monitor: ask('data', { allowWrites: true }), expected: { state: 'healthy' } },
  {
    fault: 'a healthy replica',
    monitor: ask('replica'),
    plant: async ({ replica, cache }) => {
      replica.cli('REPLICAOF', '127.0.0.1', String(cache.port))
      await until(() => replica.cli('INFO', 'replication').includes('master_link_status:up'), 30_000)
      return () => void replica.cli('REPLICAOF', 'NO', 'ONE')
    },
    expected: { state: 'healthy' },
  },
  {
    fault: 'a full cache that evicts, which is its purpose',
    blind: 'held',
    monitor: ask('cache'),
    plant: async ({ cache }) => {
      fill(cache)
      return () => void cache.cli('FLUSHALL')
    },
    expected: { state: 'healthy' },
  },
  {
    fault: 'the cache is too small: it evicts what is needed',
    blind: 'held',
    monitor: ask('cache', { evicted: { limit: 5 } }),
    plant: async ({ cache }) => {
      fill(cache)
      return () => void cache.cli('FLUSHALL')
    },
    expected: fails('evicted', 'threshold', /evicted/),
  },
  {
    fault: 'memory is full, and nothing may be evicted',
    blind: 'held',
    monitor: ask('data'),
    plant: async ({ data }) => {
      fill(data)
      return () => void data.cli('FLUSHALL')
    },
    expected: fails('memory', 'threshold', /9\d(\.\d+)? ?%|100 ?%/),
  },
  {
    fault: 'a replica without its primary, which refuses to serve stale data',
    blind: 'held',
    monitor: ask('replica'),
    plant: async ({ replica }) => {
      replica.cli('REPLICAOF', '127.0.0.1', '1')
      return () => void replica.cli('REPLICAOF', 'NO', 'ONE')
    },
    expected: fails('ping', 'any', /primary/),
  },
  {
    fault: 'no replica is connected, and two are required',
    blind: 'held',
    monitor: ask('data', { replicas: 2 }),
    expected: fails('replicas', 'any', /\b0\b/),
  },
  {
    fault: 'a node of a cluster that serves every slot',
    blind: 'held',
    monitor: ask('node'),
    plant: async ({ node }) => {
      node.cli('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
      await slots(node, 'ok')
      return undefined
    },
    expected: { state: 'healthy' },
  },
  {
    fault: 'a slot of the cluster has no node',
    blind: 'held',
    monitor: ask('node'),
    plant: async ({ node }) => {
      node.cli('CLUSTER', 'DELSLOTSRANGE', '100', '199')
      await slots(node, 'fail')
      return async () => {
        node.cli('CLUSTER', 'ADDSLOTSRANGE', '100', '199')
        await slots(node, 'ok')
      }
    },
    expected: fails('cluster', 'any', /slot/),
  },
  {
    fault: 'a slot has no node, and the cluster goes on without it',
    blind: 'false green',
    monitor: ask('node'),
    plant: async ({ node }) => {
      node.cli('CONFIG', 'SET', 'cluster-require-full-coverage', 'no')
      node.cli('CLUSTER', 'DELSLOTSRANGE', '100', '199')
      await wait(500)
      return async () => {
        node.cli('CONFIG', 'SET', 'cluster-require-full-coverage', 'yes')
        node.cli('CLUSTER', 'ADDSLOTSRANGE', '100', '199')
        await slots(node, 'ok')
      }
    },
    expected: fails('cluster', 'any', /100.*slots|16[,]?284/),
  },
  {
    fault: 'healthy at a provider that has renamed CONFIG',
    blind: 'held',
    monitor: ask('managed'),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the account is switched off',
    blind: 'held',
    monitor: as('app'),
    plant: async ({ data }) => {
      data.cli('ACL', 'SETUSER', 'app', 'off', `>${env.APP}`, '+@all', '~*')
      return () => void data.cli('ACL', 'DELUSER', 'app')
    },
    expected: fails('connect', 'auth', /"app"/),
  },
  {
    fault: 'svc has a password, and the server was installed without one',
    blind: 'held',
    monitor: (servers) => ask('data', { password: { env: 'APP' } })(servers),
    expected: fails('connect', 'any', /without (?:any |a )?password|no password/i),
  },
  {
    fault: 'the server demands a password, and svc has none',
    blind: 'held',
    monitor: ask('data'),
    plant: async ({ data }) => {
      data.cli('CONFIG', 'SET', 'requirepass', 'secret')
      return () => void data.cli('-a', 'secret', '--no-auth-warning', 'CONFIG', 'SET', 'requirepass', '')
    },
    expected: fails('ping', 'auth', /password/),
  },
  {
    fault: 'another program uses the key of the queue',
    blind: 'held',
    monitor: ask('data', { queues: [{ key: 'jobs' }] }),
    plant: async ({ data }) => {
      data.cli('HSET', 'jobs', 'a', '1')
      return () => void data.cli('DEL', 'jobs')
    },
    expected: fails('queue', 'data', /hash/),
  },
  {
    fault: 'maxmemory was set far below what is stored',
    blind: 'held',
    monitor: ask('data', { allowWrites: true }),
    plant: async ({ data }) => {
      data.cli('CONFIG', 'SET', 'maxmemory', '1')
      return () => void data.cli('CONFIG', 'SET', 'maxmemory', '4mb')
    },
    expected: fails('memory', 'any', /%/),
  },
  {
    fault: 'the certificate ends in 5 days',
    blind: 'held',
    monitor: ask('fiveDays', { caFile: certificates?.caFile }),
    expected: warns('certificate', /in [45](?:\.\d)? d/),
  },
  {
    fault: 'the certificate has expired',
    blind: 'held',
    monitor: ask('expired', { caFile: certificates?.caFile }),
    expected: fails('connect', 'tls', /expired/),
  },
]

corpus<Servers>({
  server: 'Redis, blind rows',
  env,
  missing: redisMissing ?? opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const { caFile } = certificates
    // Redis reads it under its own account.
    chmodSync(caFile, 0o644)
    chmodSync(dirname(caFile), 0o755)
    const [cache, data, replica, node, managed, fiveDays, expired] = await Promise.all([
      startRedis({ settings: ['--maxmemory', '4mb', '--maxmemory-policy', 'allkeys-lru'] }),
      startRedis({
        settings: ['--maxmemory', '4mb', '--maxmemory-policy', 'volatile-ttl', '--enable-protected-configs', 'yes'],
      }),
      startRedis({ settings: ['--replica-serve-stale-data', 'no'] }),
      startRedis({ settings: ['--cluster-enabled', 'yes'] }),
      startRedis({ settings: ['--rename-command', 'CONFIG', ''] }),
      startRedis({ tls: { ...certificates.fiveDays, caFile } }),
      startRedis({ tls: { ...certificates.expired, caFile } }),
    ])
    return { cache, data, replica, node, managed, fiveDays, expired }
  },
  rows,
})
