import { describe, expect, test } from 'vitest'
import { StoreError } from '../../../src/core/base/errors.ts'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import {
  cluster,
  clusterNodes,
  clusterReplicas,
  openSlots,
  parseNodes,
} from '../../../src/core/checks/kinds/redis/cluster.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import * as info from '../../../src/core/checks/kinds/redis/info.ts'
import { queue } from '../../../src/core/checks/kinds/redis/queues.ts'
import { RespReader } from '../../../src/core/checks/kinds/redis/resp.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import {
  checked,
  evaluated,
  type RunKindOptions,
  runKind,
  secret,
  withDefaults,
} from '../../support/engine/run-kind.ts'
import { cutAfter, endless, escapeSequences, peer, replies, reset } from '../../support/faults/faults.ts'
import { storeOfTest } from '../../support/store/embedded.ts'
import { measureWork } from '../../support/suite/processor-time.ts'
import { hungUp } from '../../support/suite/until.ts'

const word = 'correct-horse-7'
type Overrides = Partial<Values<typeof redis.settings>>

describe('redis peers that misbehave', () => {
  const pinged = async (behave: Parameters<typeof peer>[0], overrides: Overrides = {}): Promise<Result> => {
    await using there = await peer(behave)
    const results = await runKind(redis, { url: `redis://127.0.0.1:${there.port}`, ...overrides }, 'Basic', {
      timeoutMs: 3_000,
    })
    await hungUp(there)
    const bad = results.find(({ status }) => status === 'failed')
    if (!bad) throw new Error(JSON.stringify(results))
    return bad
  }
  test('an endless answer is not buffered', async () => {
    const before = process.memoryUsage().rss
    const string = await pinged(endless('$900000000\r\n'))
    expect(string).toMatchObject({ fault: 'protocol', message: expect.stringContaining('a string of more than 1 MiB') })
    const line = await pinged(endless('+'))
    expect(line).toMatchObject({ fault: 'protocol', message: expect.stringContaining('a line without an end') })
    const list = await pinged(endless('*9999\r\n', '$4\r\nxxxx\r\n'.repeat(200)))
    expect(list.fault).toBe('protocol')
    const many = await pinged(endless('', '+x\r\n'.repeat(500)))
    expect(many).toMatchObject({ fault: 'protocol' })
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 ** 2)
  })
  test('a deep, a huge and an invalid answer are refused', async () => {
    expect((await pinged(replies('*1\r\n'.repeat(10_000)))).message).toContain('nested lists too deeply')
    expect((await pinged(replies('*1000000000\r\n'))).message).toContain('a list of more than 10000')
    expect((await pinged(replies('$NaN\r\n'))).message).toContain('does not speak the Redis protocol')
    expect((await pinged(replies('HTTP/1.1 400 Bad Request\r\n\r\n'))).message).toContain('HTTP/1.1 400')
  })
  test('an incomplete answer and a reset are protocol faults that name the command', async () => {
    expect(await pinged(cutAfter(3, '+PONG\r\n'))).toMatchObject({
      fault: 'protocol',
      message: expect.stringContaining('closed the connection instead of answering PING'),
    })
    expect((await pinged(reset)).message).toContain('reset the connection instead of answering PING')
  })
  test('escape sequences and the configured password are not repeated', async () => {
    const echoes = replies((request) => `-ERR ${escapeSequences} ${request.replaceAll('\r\n', ' ')}\r\n`)
    const result = await pinged(echoes, { password: secret(word) })
    expect(result.status).toBe('failed')
    expect(JSON.stringify(result)).not.toContain(word)
    expect(JSON.stringify(result)).not.toMatch(/\\u001b|\\u202e/)
    expect(result.message).toContain('[secret]')
  })
  test('values and names do not repeat them either', async () => {
    const info = `role:slave\r\nmaster_host:${escapeSequences}${word}\r\nmaster_link_status:${word}\r\nmaxmemory:1\r\nmaxmemory_policy:${word}`
    await using there = await peer((socket) => {
      socket.on('data', (chunk) => {
        const request = chunk.toString('latin1')
        if (request.includes('INFO')) socket.write(`$${Buffer.byteLength(info)}\r\n${info}\r\n`)
        else
          socket.write(request.includes('PING') ? '+PONG\r\n' : request.includes('TYPE') ? `+${word}\r\n` : '+OK\r\n')
      })
    })
    const url = `redis://127.0.0.1:${there.port}`
    const queues = [{ key: 'jobs', length: {} }]
    const results = await runKind(redis, { url, password: secret(word), queues }, 'Standard')
    expect(checked(results, 'replica link').message).toContain('[secret]')
    expect(checked(results, 'queue').message).toContain('[secret]')
    expect(JSON.stringify(results)).not.toContain(word)
    expect(JSON.stringify(results)).not.toMatch(/\\u001b|\\u202e/)
  })
  test('ten PINGs with another answer than PONG are not evaluated as quick answers (simulated)', async () => {
    let pings = 0
    const info = 'role:master\r\nredis_mode:standalone\r\ncluster_enabled:0'
    await using there = await peer((socket) => {
      socket.on('data', (chunk) => {
        if (chunk.toString('latin1').includes('INFO')) return void socket.write(`$${info.length}\r\n${info}\r\n`)
        pings += 1
        socket.write(pings === 1 ? '+PONG\r\n' : '-BUSY a script runs\r\n')
      })
    })
    const results = await runKind(redis, { url: `redis://127.0.0.1:${there.port}` }, 'Advanced')
    expect(checked(results, 'ping').status).toBe('ok')
    expect(checked(results, 'latency')).toMatchObject({ status: 'failed', fault: 'data' })
  })
  test.each([
    ['*2\r\n$10\r\nmaxclients\r\n$2\r\n20\r\n', { status: 'ok', message: /^5 of 20 clients: 25 % / }],
    [
      "-NOPERM this user has no permissions to run the 'config|get' command\r\n",
      { status: 'warning', notChecked: 'permission' },
    ],
  ])('maxclients is read from the configuration where INFO does not have it (simulated)', async (config, expected) => {
    const info = 'role:master\r\nconnected_clients:5'
    await using there = await peer((socket) => {
      socket.on('data', (chunk) => {
        const request = chunk.toString('latin1')
        if (request.includes('INFO')) socket.write(`$${info.length}\r\n${info}\r\n`)
        else socket.write(request.includes('CONFIG') ? config : '+PONG\r\n')
      })
    })
    const { message, ...more } = { message: /./, ...expected }
    const result = checked(await runKind(redis, { url: `redis://127.0.0.1:${there.port}` }, 'Standard'), 'clients')
    expect(result).toMatchObject(more)
    expect(result.message).toMatch(message)
  })
  test.each([
    ['MISCONF', 'PING', 'ping', 'accepts no writes: its last save to disk failed'],
    ['MISCONF', 'SET', 'round trip', 'accepts no writes: its last save to disk failed'],
    ['OOM', 'SET', 'round trip', 'accepts no writes: its memory is full (maxmemory)'],
    ['NOREPLICAS', 'SET', 'round trip', 'accepts no writes: it has too few healthy replicas (min-replicas-to-write)'],
    ['CLUSTERDOWN', 'SET', 'round trip', 'serves no requests: its cluster is down'],
    ['MASTERDOWN', 'TYPE', 'queue', 'is a replica that has lost its primary and serves no requests until it is back'],
    ['NOAUTH', 'PING', 'ping', 'requires a sign-in: set password (and the user in url)'],
  ])('the answer %s to %s fails the check %s, in words (simulated)', async (code, command, check, words) => {
    const info = 'role:master'
    await using there = await peer((socket) => {
      socket.on('data', (chunk) => {
        const request = chunk.toString('latin1')
        if (request.includes(`\r\n${command}\r\n`)) socket.write(`-${code} as it is\r\n`)
        else if (request.includes('INFO')) socket.write(`$${info.length}\r\n${info}\r\n`)
        else socket.write('+PONG\r\n')
      })
    })
    const settings = {
      url: `redis://127.0.0.1:${there.port}`,
      allowWrites: true,
      queues: [{ key: 'jobs', length: {} }],
    }
    await finds(runKind(redis, settings, 'Advanced'), [`${check} failed`, words])
  })
  test('a TLS alert names the scheme that is required', async () => {
    const result = await pinged(replies(Buffer.from([0x15, 3, 1, 0, 2, 2, 40])))
    expect(result).toMatchObject({ fault: 'protocol', details: [expect.stringContaining('rediss://')] })
  })
})

describe('redis counters since the start of the server (simulated)', () => {
  const hour = 3_600_000
  const start = Date.UTC(2026, 0, 1)
  /** A server that started `start`, and reports what the test sets. */
  async function countingPeer() {
    const counters: Record<string, number | undefined> = {
      rejected_connections: 500,
      total_connections_received: 1_000,
      evicted_keys: 70,
    }
    let now = start + 500 * hour
    const store = await storeOfTest()
    const there = await peer((socket) => {
      socket.on('data', (chunk) => {
        if (!chunk.toString('latin1').includes('INFO')) return void socket.write('+PONG\r\n')
        const all = { uptime_in_seconds: Math.floor((now - start) / 1_000), ...counters }
        const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}:${value}`]))
        const info = ['role:master', 'maxclients:100', ...lines].join('\r\n')
        socket.write(`$${info.length}\r\n${info}\r\n`)
      })
    })
    const url = `redis://127.0.0.1:${there.port}`
    return {
      counters,
      /** The result of a check this many milliseconds later. */
      after: async (ms: number, check: string, history: RunKindOptions['history'] = store.data.readings) => {
        now += ms
        const overrides = { url, evicted: { warn: 10 } }
        return checked(await runKind(redis, overrides, 'Standard', { history, date: () => new Date(now) }), check)
      },
      [Symbol.asyncDispose]: async () => {
        await there[Symbol.asyncDispose]()
        await store[Symbol.asyncDispose]()
      },
    }
  }
  test('one burst is a warning for an hour, and neither before an earlier run is known nor for weeks', async () => {
    await using server = await countingPeer()
    const total = 'since the server started; how many of them lately is known from the second run on, with a store'
    expectResult(await server.after(0, 'rejected'), `ok: 500 connections rejected ${total}`)
    expect(await server.after(60_000, 'rejected')).toMatchObject({
      status: 'ok',
      message: '0 connections of 0 rejected in the last 1 min: 0 % (warn 1 %)',
    })
    server.counters['rejected_connections'] = 550
    server.counters['total_connections_received'] = 1_150
    expect(await server.after(0.5 * hour, 'rejected')).toMatchObject({
      status: 'warning',
      message: '50 connections of 200 rejected in the last 31 min: 25 % (warn 1 %)',
      measurement: { value: 25, warn: 1 },
    })
    expect((await server.after(0.9 * hour, 'rejected')).status).toBe('warning')
    expect((await server.after(1.5 * hour, 'rejected')).status).toBe('ok')
  })
  test('evicted keys count over the last hour too, or since the last run before that', async () => {
    await using server = await countingPeer()
    expectResult(await server.after(0, 'evicted'), 'ok', /^70 keys evicted since/)
    server.counters['evicted_keys'] = 95
    expectResult(await server.after(24 * hour, 'evicted'), 'warning: keys evicted in the last 24 h: 25 (warn 10)')
    expect((await server.after(2 * hour, 'evicted')).status).toBe('ok')
  })
  test('counters that begin anew count from there', async () => {
    await using server = await countingPeer()
    await server.after(0, 'rejected')
    await server.after(0.5 * hour, 'rejected')
    server.counters['rejected_connections'] = 3
    server.counters['total_connections_received'] = 7
    expect(await server.after(0.4 * hour, 'rejected')).toMatchObject({
      status: 'warning',
      message: '3 connections of 10 rejected in the last 24 min: 30 % (warn 1 %)',
    })
  })
  test('without a store the total is reported, and it is not a warning; nothing rejected is ok', async () => {
    await using server = await countingPeer()
    const none = { keep: () => Promise.reject(new StoreError('no store')), exceededSince: async () => new Map() }
    await server.after(0, 'rejected', none)
    expectResult(await server.after(hour, 'rejected', none), 'ok', /^500 connections rejected since the server started/)
    server.counters['rejected_connections'] = 0
    expect(await server.after(hour, 'rejected', none)).toMatchObject({
      status: 'ok',
      message: '0 connections of 1000 rejected since the server started: 0 % (warn 1 %)',
    })
  })
  test('counters that the server does not report are not checked', async () => {
    await using server = await countingPeer()
    server.counters['total_connections_received'] = undefined
    server.counters['evicted_keys'] = undefined
    expect(await server.after(0, 'rejected')).toMatchObject({ status: 'failed', notChecked: 'missing' })
    expect(await server.after(0, 'evicted')).toMatchObject({ status: 'failed', notChecked: 'missing' })
  })
})

describe('redis evaluation', () => {
  const evaluate = (observation: info.Info, overrides: Overrides = {}): readonly Result[] => [
    ...evaluated(info.role, observation, overrides),
    ...evaluated(info.replicaLink, observation, overrides),
    ...evaluated(info.memory, observation, overrides),
    ...evaluated(info.clients, observation, overrides),
    ...evaluated(info.blocked, observation, overrides),
    ...evaluated(info.persistence, observation, overrides),
    ...evaluated(info.restarted, observation, overrides),
    ...evaluated(info.replicas, observation, overrides),
    ...evaluated(info.replicationLag, observation, overrides),
    ...evaluated(info.replicationOffset, observation, overrides),
    ...evaluated(info.lastSave, observation, overrides),
    ...evaluated(info.fork, observation, overrides),
  ]
  const row = {
    role: 'master',
    connected_slaves: '0',
    used_memory: '800',
    maxmemory: '1000',
    maxmemory_policy: 'noeviction',
    connected_clients: '80',
    maxclients: '100',
    blocked_clients: '3',
    rdb_changes_since_last_save: '7',
    rdb_last_bgsave_status: 'ok',
    rdb_last_save_time: '1000',
    uptime_in_seconds: '60',
    aof_enabled: '0',
    latest_fork_usec: '0',
  }
  const status = (check: string, fields: object, overrides: Overrides = {}): string => {
    const observation: info.Info = { row: { ...row, ...fields }, date: new Date(1_060_000) }
    return checked(evaluate(observation, overrides), check).status
  }
  test('values are ok at their boundaries', () => {
    expect([800, 801, 950, 951].map((used) => status('memory', { used_memory: used })).join(' ')).toBe(
      'ok warning warning failed',
    )
    expect([80, 81, 95, 96].map((n) => status('clients', { connected_clients: n })).join(' ')).toBe(
      'ok warning warning failed',
    )
    expect(status('restarted', {})).toBe('ok')
    expect(status('restarted', { uptime_in_seconds: '59' })).toBe('warning')
    expect(status('blocked', {}, { blocked: { limit: 3 } })).toBe('ok')
    expect(status('blocked', {}, { blocked: { limit: 2 } })).toBe('failed')
    expect(status('last save', {}, { lastSave: { limit: 60_000 } })).toBe('ok')
    expect(status('last save', {}, { lastSave: { limit: 59_999 } })).toBe('failed')
    expect(status('last save', { rdb_changes_since_last_save: '0' }, { lastSave: { limit: 1 } })).toBe('ok')
  })
  test('memory that does not count towards maxmemory is ignored', () => {
    expect(status('memory', { used_memory: 990, mem_not_counted_for_evict: 200 })).toBe('ok')
  })
  test('the append-only file: a failed write fails, a failed rewrite warns, and only where it is on', () => {
    expect(status('persistence', { aof_enabled: '1', aof_last_write_status: 'err' })).toBe('failed')
    expect(
      status('persistence', { aof_enabled: '1', aof_last_write_status: 'ok', aof_last_bgrewrite_status: 'err' }),
    ).toBe('warning')
    expect(status('persistence', { aof_enabled: '0', aof_last_write_status: 'err' })).toBe('ok')
  })
  test('the slowest and the farthest replica decide; one that is not online is reported', () => {
    const replicas = {
      connected_slaves: '3',
      master_repl_offset: '100000000',
      slave0: 'ip=10.0.0.1,port=6379,state=online,offset=100000000,lag=1',
      slave1: 'ip=10.0.0.2,port=6379,state=online,offset=1000,lag=61',
      slave2: 'ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0',
    }
    const results = evaluate({ row: { ...row, ...replicas }, date: new Date(0) })
    expect(checked(results, 'replicas')).toMatchObject({ status: 'warning', message: '1 of 3 replicas not online' })
    expect(checked(results, 'replication lag')).toMatchObject({ status: 'failed', measurement: { value: 61_000 } })
    expect(checked(results, 'replication lag').message).toContain('10.0.0.2:6379')
    expectResult(checked(results, 'replication offset'), 'warning', { measurement: { value: 99_999_000 } })
  })
  test('the duration of a fork that the server does not report is not checked', () => {
    expect(['1000000', '1000001'].map((us) => status('fork', { latest_fork_usec: us }))).toEqual(['ok', 'warning'])
    for (const latest_fork_usec of ['nan', '', undefined]) {
      const [result] = evaluated(info.fork, { row: { ...row, latest_fork_usec }, date: new Date(0) })
      expect(result).toMatchObject({ status: 'failed', notChecked: 'missing' })
      expect(result).not.toHaveProperty('measurement')
    }
  })
  const online = { slave0: 'ip=10.0.0.1,port=6379,state=online,offset=5,lag=0', master_repl_offset: '5' }
  test.each<[check: string, without: string, Overrides?, more?: object]>([
    ['memory', 'used_memory'],
    ['memory', 'maxmemory'],
    ['clients', 'connected_clients'],
    ['blocked', 'blocked_clients', { blocked: { warn: 1 } }],
    ['persistence', 'rdb_last_bgsave_status'],
    ['persistence', 'aof_enabled'],
    ['persistence', 'aof_last_write_status', {}, { aof_enabled: '1', aof_last_bgrewrite_status: 'ok' }],
    ['persistence', 'aof_last_bgrewrite_status', {}, { aof_enabled: '1', aof_last_write_status: 'ok' }],
    ['restarted', 'uptime_in_seconds'],
    ['replication lag', 'lag', {}, { ...online, slave0: 'ip=10.0.0.1,port=6379,state=online,offset=5' }],
    ['replication lag', 'master_last_io_seconds_ago', {}, { role: 'slave', master_link_status: 'up' }],
    ['replication offset', 'master_repl_offset', {}, online],
    ['replication offset', 'offset', {}, { ...online, slave0: 'ip=10.0.0.1,port=6379,state=online,lag=0' }],
    ['last save', 'rdb_last_save_time', { lastSave: { limit: 1 } }],
    ['last save', 'rdb_changes_since_last_save', { lastSave: { limit: 1 } }],
  ])('%s is not checked where the server does not report %s', (check, without, overrides = {}, more = {}) => {
    const fields = { ...row, ...more, [without]: undefined }
    const result = checked(evaluate({ row: fields, date: new Date(0) }, overrides), check)
    expect(result).toMatchObject({ status: 'failed', notChecked: 'missing' })
    expect(result.message).toMatch(/^not checked: /)
    expect(result).not.toHaveProperty('measurement')
  })
  test('a cluster is not checked where the server does not report its slots or whether there is a cluster', () => {
    const whole = {
      cluster_state: 'ok',
      cluster_slots_assigned: '16384',
      cluster_slots_fail: '0',
      cluster_slots_pfail: '0',
    }
    expect(evaluated(cluster, whole)[0]).toMatchObject({ status: 'ok' })
    expect(evaluated(cluster, { ...whole, cluster_slots_assigned: '8192' })[0]).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/8192 of 16384 slots assigned: the others are served by no node$/),
    })
    for (const name of ['cluster_slots_assigned', 'cluster_slots_fail', 'cluster_slots_pfail'])
      expect(evaluated(cluster, { ...whole, [name]: undefined })[0]).toMatchObject({ notChecked: 'missing' })
    expect(evaluated(cluster, 'unknown')[0]).toMatchObject({ status: 'failed', notChecked: 'missing' })
  })
  test('all replicas that the server lists are counted', () => {
    const many = Object.fromEntries(
      Array.from({ length: 150 }, (_, at) => [`slave${at}`, `ip=10.0.0.1,port=${at},state=online,offset=5,lag=0`]),
    )
    const results = evaluate(
      { row: { ...row, ...many, master_repl_offset: '5' }, date: new Date(0) },
      { replicas: 150 },
    )
    expect(checked(results, 'replicas')).toMatchObject({ status: 'ok', measurement: { value: 150 } })
  })
  test('a replica that receives a full copy warns', () => {
    const replica = { role: 'slave', master_link_status: 'up', master_sync_in_progress: '1' }
    expect(status('replica link', replica)).toBe('warning')
    expect(status('replication lag', { ...replica, master_last_io_seconds_ago: '15' })).toBe('ok')
    expect(status('replication lag', { ...replica, master_last_io_seconds_ago: '16' })).toBe('warning')
  })
  test('a group whose lag the server does not report is never ok', () => {
    const observation = { type: 'stream', length: undefined }
    expect(evaluated(queue, { key: 'k', threshold: {}, group: 'g', observation })[0]?.status).toBe('warning')
  })
})

describe('redis replies', () => {
  const reader = () => new RespReader('h:1', String)
  const wire = '+OK\r\n:-7\r\n$5\r\na\r\nbc\r\n$-1\r\n*3\r\n*2\r\n$1\r\nx\r\n:1\r\n*0\r\n-ERR no\r\n$0\r\n\r\n'
  const meant = ['OK', -7, 'a\r\nbc', null, [['x', 1], [], { error: 'ERR no' }], '']
  test('are the same in one piece and byte by byte', () => {
    expect(reader().push(Buffer.from(wire))).toEqual(meant)
    const slow = reader()
    expect([...Buffer.from(wire)].flatMap((byte) => slow.push(Buffer.from([byte])))).toEqual(meant)
  })
  test('cost no more than their size when a megabyte arrives in small pieces', () => {
    const drops = reader()
    const spent = measureWork()
    drops.push(Buffer.from('$1000000\r\n'))
    for (let i = 0; i < 100_000; i += 1) drops.push(Buffer.from('0123456789'))
    expect(drops.push(Buffer.from('\r\n'))).toHaveLength(1)
    expect(spent()).toBeLessThan(3_000)
  })
})

describe('redis settings', () => {
  const invalid = (overrides: Overrides): string | undefined =>
    redis.validate?.(withDefaults(redis.settings, overrides))
  test('that exclude each other are reported', () => {
    expect(invalid({ url: 'redis://h/0' })).toBeUndefined()
    expect(invalid({ url: 'rediss://h', caFile: '/ca' })).toBeUndefined()
    expect(invalid({ url: 'redis://h/orders' })).toContain('must end with the number of a database')
    expect(invalid({ url: 'redis://h?tls=true' })).toContain('parameters')
    expect(invalid({ url: 'redis://me@h' })).toContain('no password is set')
    expect(invalid({ url: 'redis://h', caFile: '/ca' })).toContain('rediss')
    expect(invalid({ url: 'redis://%zz@h', password: secret('x') })).toContain('%')
  })
  test('have host and port as the target of a keychain secret', () => {
    const target = (url: string) => redis.target?.(withDefaults(redis.settings, { url }))
    expect(target('redis://h')).toEqual({ host: 'h', port: 6379, database: 'h:6379' })
    expect(target('rediss://[::1]:7000/2')).toEqual({ host: '::1', port: 7000, database: '::1:7000' })
  })
})

describe('a cluster as CLUSTER NODES describes it', () => {
  const id = (digit: string): string => digit.repeat(40)
  const line = (digit: string, flags: string, primary: string, ...ranges: readonly string[]): string =>
    [id(digit), `10.0.0.${digit}:6379@16379,host${digit}`, flags, primary, '0', '1', '1', 'connected', ...ranges].join(
      ' ',
    )
  const nodes = (...lines: readonly string[]) => parseNodes(`${lines.join('\n')}\n`, (text) => String(text))
  const pair = [line('1', 'myself,master', '-', '0-16383'), line('2', 'slave', id('1'))]

  test('nodes with a replica each are ok, and the fewest replicas are the figure', () => {
    expect(evaluated(clusterNodes, nodes(...pair))[0]).toMatchObject({ status: 'ok', message: '2 nodes are up' })
    expect(evaluated(openSlots, nodes(...pair))[0]).toMatchObject({ status: 'ok', message: 'no open slots' })
    expect(evaluated(clusterReplicas, nodes(...pair))[0]).toMatchObject({ status: 'ok', measurement: { value: 1 } })
  })
  test.each([
    ['slave,fail', 'has failed'],
    ['slave,fail?', 'does not answer'],
    ['slave,noaddr', 'has no known address'],
  ])('a node with the flags %s warns, and does not count as a replica', (flags, why) => {
    const all = nodes(pair[0] ?? '', line('2', flags, id('1')))
    expectResult(evaluated(clusterNodes, all)[0], `warning: 1 of 2 nodes down: 10.0.0.2:6379 ${why}`)
    expect(evaluated(clusterReplicas, all)[0]).toMatchObject({ status: 'warning', measurement: { value: 0, warn: 1 } })
  })
  test('replicas sets how many each primary needs, and 0 accepts none', () => {
    const [alone] = [nodes(line('1', 'myself,master', '-', '0-1'), line('2', 'master', '-', '2-16383'))]
    expect(evaluated(clusterReplicas, alone)[0]?.message).toMatch(/^2 of 2 primaries without replica that is up/)
    expect(evaluated(clusterReplicas, alone, { replicas: 0 })[0]).toMatchObject({ status: 'ok' })
    expect(evaluated(clusterReplicas, nodes(...pair), { replicas: 2 })[0]).toMatchObject({ status: 'warning' })
  })
  test('a primary without slots, one that has failed and a cluster of one node need no replica', () => {
    const failed = line('3', 'master,fail', '-', '5-6')
    expectResult(evaluated(clusterReplicas, nodes(...pair, line('4', 'master', '-'), failed))[0], 'ok')
    expect(evaluated(clusterReplicas, nodes(pair[0] ?? ''))).toEqual([])
  })
  test('open slots are named, and those beyond the third are counted', () => {
    const open = ['[1->-x]', '[2-<-y]', '[3->-x]', '[4->-x]']
    expectResult(
      evaluated(openSlots, nodes(line('1', 'myself,master', '-', '0-9', ...open)))[0],
      'warning',
      /^4 slots are open \(slot 1 is migrating, slot 2 is being imported, slot 3 is migrating and 1 more\)/,
      { measurement: { value: 4 } },
    )
  })
  test('a list without a node is not checked, and a server without a cluster has no result', () => {
    expect(evaluated(clusterNodes, [])[0]).toMatchObject({ notChecked: 'missing' })
    for (const check of [clusterNodes, openSlots, clusterReplicas]) expect(evaluated(check, undefined)).toEqual([])
  })
})

describe('INFO of Valkey 9.1.2, as its Sentinel and its server send it', () => {
  const rowOf = (...lines: readonly string[]) => info.parseInfo(lines.join('\r\n'), (text) => String(text))
  const common = ['redis_version:7.2.4', 'server_name:valkey', 'valkey_version:9.1.2']

  test('H49 a Sentinel of Valkey is one, and a server has its own version', () => {
    const sentinel = rowOf(...common, 'server_mode:sentinel', 'sentinel_masters:1', 'sentinel_tilt:0')
    expect(info.isSentinel(sentinel)).toBe(true)
    const server = rowOf(...common, 'server_mode:standalone', 'role:master', 'connected_slaves:0')
    expect(info.isSentinel(server)).toBe(false)
    expectResult(evaluated(info.role, { row: server, date: new Date(0) })[0], 'ok', { facts: { version: '9.1.2' } })
  })
  test('H49 a server that has both names keeps its own', () => {
    expect(rowOf('redis_mode:cluster', 'server_mode:standalone')).toMatchObject({ redis_mode: 'cluster' })
  })
})

describe('active replicas of KeyDB (simulated)', () => {
  const common = ['role:active-replica', 'slave_read_only:0', 'connected_slaves:1', 'master_repl_offset:100']
  const [up, down] = ['link_status:up', 'link_status:down']
  const link = (prefix: string, host: string, status: string): readonly string[] => [
    ...[`${prefix}host:${host}`, `${prefix}port:6379`, `${prefix}${status}`],
    ...[`${prefix}last_io_seconds_ago:${status === up ? 1 : -1}`, `${prefix}sync_in_progress:0`],
    ...(status === up ? [] : [`${prefix}link_down_since_seconds:5`]),
  ]
  const observed = (...lines: readonly string[]): info.Info => ({
    row: info.parseInfo([...common, ...lines].join('\r\n'), (text) => String(text)),
    date: new Date(0),
  })
  const pair = observed(...link('master_', 'a', up), 'slave0:ip=10.0.0.1,port=6379,state=online,offset=100,lag=1')

  test.each(['any', 'primary', 'replica'] as const)('an active replica is what role: %s expects', (role) => {
    expect(evaluated(info.role, pair, { role })[0]).toMatchObject({
      status: 'ok',
      message: 'active replica of a:6379 with 1 replica',
      facts: { role: 'active replica' },
    })
  })
  test('it accepts writes on purpose', () => {
    expect(evaluated(info.readOnly, pair)).toEqual([])
  })
  test('its own replicas are checked, and its links', () => {
    expect(evaluated(info.replicas, pair, { replicas: 2 })[0]).toMatchObject({ status: 'failed' })
    expect(evaluated(info.replicaLink, pair)[0]).toMatchObject({ status: 'ok', message: 'up, to a:6379' })
    const late = observed(...link('master_', 'a', up), 'slave0:ip=10.0.0.1,port=1,state=online,offset=100,lag=61')
    expect(evaluated(info.replicationLag, late)[0]).toMatchObject({ status: 'failed', measurement: { value: 61_000 } })
    const silent = observed(...link('master_', 'a', up).map((one) => one.replace('ago:1', 'ago:62')))
    expectResult(evaluated(info.replicationLag, silent)[0], 'failed', { measurement: { value: 62_000 } })
  })
  test.each([
    ['the names of later versions', 'master_1_'],
    ['repeated names of older versions', 'master_'],
  ])('each of several links must be up: %s', (_, second) => {
    const healthy = observed(...link('master_', 'a', up), ...link(second, 'b', up))
    expect(evaluated(info.replicaLink, healthy)[0]).toMatchObject({ status: 'ok', message: 'up, to a:6379 and b:6379' })
    for (const [one, other, lost] of [
      [up, down, 'b'],
      [down, up, 'a'],
    ] as const)
      expectResult(
        evaluated(info.replicaLink, observed(...link('master_', 'a', one), ...link(second, 'b', other)))[0],
        `failed: the link to its primary ${lost}:6379 is down for 5 s: its data is out of date`,
      )
  })
})
