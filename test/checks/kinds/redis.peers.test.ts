import { chmodSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { limits, type Result } from '../../../src/core/checks/engine/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { peer, replies } from '../../support/faults/faults.ts'
import { proxy } from '../../support/faults/proxy.ts'
import { temporaryHome } from '../../support/program/temporary-home.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { type RedisServer, redisMissing, startRedis } from '../../support/servers/redis.ts'
import { sentinelMissing, startSentinel, startSentinelGroup } from '../../support/servers/sentinel.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

const word = 'correct-horse-7'
type Overrides = Partial<Values<typeof redis.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const quiet: Overrides = { restarted: {}, pings: {} }
const ask = (overrides: Overrides, mode: Mode = 'Basic', options: RunKindOptions = {}) =>
  runKind(redis, overrides, mode, options)
const one = async (check: string, ...args: Parameters<typeof ask>): Promise<Result> =>
  checked(await ask(...args), check)

peerSuite(redisMissing, 'redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis({ settings: ['--enable-debug-command', 'yes'] })
  })
  afterAll(() => server.remove())
  const run = (overrides: Overrides = {}, mode: Mode = 'Basic', options: RunKindOptions = {}) =>
    runKind(redis, { url: server.url, ...quiet, ...overrides }, mode, options)

  describe('a healthy server', () => {
    test('each mode runs its checks and those of the shallower ones, and all are ok', async () => {
      const names = async (mode: Mode): Promise<string[]> => {
        const results = await run({ allowWrites: true }, mode)
        expect(results.filter((result) => result.status !== 'ok')).toEqual([])
        expect(results.every((result) => result.address === server.address)).toBe(true)
        return results.map((result) => result.check)
      }
      const basic = ['connect', 'ping']
      const standard = [...basic, 'role', 'memory', 'clients', 'persistence', 'restarted']
      expect(await names('Basic')).toEqual(basic)
      expect(await names('Standard')).toEqual([...standard, 'rejected'])
      expect(await names('Advanced')).toEqual([...standard, 'fork', 'rejected', 'latency', 'round trip'])
      expect(await server.left()).toEqual([])
    })
    test('H70 a database that the server does not have is a failure, and one without the privilege to select it is not', async () => {
      const at = (database: number, user = '') => ({ url: `${server.url.replace('//', `//${user}`)}/${database}` })
      await finds(run(at(15), 'Standard'), 'role ok')
      await finds(run(at(16), 'Standard'), ['database failed', /DB index is out of range/])
      server.cli('ACL', 'SETUSER', 'watcher', 'on', 'nopass', '+ping', '+info')
      onTestFinished(() => void server.cli('ACL', 'DELUSER', 'watcher'))
      const watched = await run({ ...at(1, 'watcher@'), password: secret(word) }, 'Standard')
      expect(watched.filter(({ status }) => status !== 'ok')).toEqual([])
    })
    test('it reports what it observes', async () => {
      const results = await run({}, 'Standard')
      const textOf = (check: string): string => checked(results, check).message
      expect(textOf('connect')).toMatch(/^connected to 127\.0\.0\.1:\d+ in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/)
      expect(textOf('role')).toBe('primary with 0 replicas')
      expect(textOf('memory')).toMatch(/^[\d.]+ [KM]iB used, without a limit \(maxmemory 0\)$/)
      expect(textOf('clients')).toMatch(/^\d of 10000 clients: [\d.]+ % \(warn 80 %, fail 95 %\)$/)
    })
    test('the duration of the last fork is measured, and a long one warns', async () => {
      const forking = await startRedis()
      const result = (overrides: Overrides = {}) =>
        one('fork', { url: forking.url, ...quiet, ...overrides }, 'Advanced')
      onTestFinished(() => forking.remove())

      expect(await result()).toMatchObject({
        status: 'ok',
        message: 'the server has not forked since it started',
        measurement: { value: 0, unit: 'milliseconds', warn: 1_000, bound: 'atMost' },
      })
      forking.cli('SET', 'key', 'value')
      forking.cli('BGSAVE')
      await until(() => forking.cli('INFO', 'persistence').includes('rdb_bgsave_in_progress:0'))
      const us = Number(/latest_fork_usec:(\d+)/.exec(forking.cli('INFO', 'stats'))?.[1])
      expect(us).toBeGreaterThan(0)
      expectResult(await result({ fork: { warn: us / 1_000 } }), 'ok', { measurement: { value: us / 1_000 } })
      const slow = await result({ fork: { warn: us / 1_000 - 0.001, limit: us / 1_000 } })
      expect(slow.status).toBe('warning')
      expect(slow.message).toMatch(/^the last fork blocked the server for [\d.]+ .*\(warn /)
      expect(await result({ fork: { limit: us / 1_000 - 0.001 } })).toMatchObject({ fault: 'threshold' })
    })
    test('nothing is written without allowWrites, and with it the key of the probe is removed again', async () => {
      const writes = (): string => /cmdstat_set:calls=(\d+)/.exec(server.cli('INFO', 'commandstats'))?.[1] ?? '0'
      const before = writes()
      await run({}, 'Advanced')
      expect(writes()).toBe(before)
      await run({ allowWrites: true }, 'Advanced')
      expect(writes()).toBe(String(Number(before) + 1))
      expect(server.cli('DBSIZE')).toBe('0')
    })
    test('the key of the probe would expire on its own', async () => {
      await using watcher = await proxy(server.port, 0)
      await run({ url: `redis://127.0.0.1:${watcher.port}`, allowWrites: true }, 'Advanced')
      expect(watcher.input()).toMatch(/SET\r\n\$\d+\r\nsvc:probe:[\s\S]*NX\r\n\$2\r\nPX\r\n\$5\r\n60000\r\n/)
    })
    test('only commands that read are ever sent', async () => {
      await using watcher = await proxy(server.port, 0)
      const queues = [{ key: 'jobs', length: {} }]
      await run({ url: `redis://127.0.0.1:${watcher.port}/3`, queues }, 'Advanced')
      const commands = [...watcher.input().matchAll(/\*\d+\r\n\$\d+\r\n([A-Z]+)\r\n/g)].map(([, name]) => name)
      expect([...new Set(commands)]).toEqual(['PING', 'INFO', 'SELECT', 'TYPE'])
    })
  })

  describe('queues', () => {
    const queue = async (key: string, more: { length?: object; group?: string } = {}, url = server.url) =>
      one('queue', { url, queues: [{ key, length: { warn: 1, limit: 2 }, ...more }] }, 'Standard')
    beforeAll(() => {
      server.cli('RPUSH', 'list', 'a', 'b', 'c')
      server.cli('ZADD', 'later', '1', 'a', '2', 'b')
      server.cli('SET', 'text', 'x')
      for (let i = 0; i < 4; i += 1) server.cli('XADD', 'stream', '*', 'n', String(i))
      server.cli('XGROUP', 'CREATE', 'stream', 'workers', '0')
      server.cli('XREADGROUP', 'GROUP', 'workers', 'me', 'COUNT', '3', 'STREAMS', 'stream', '>')
      const [first = ''] = server.cli('XRANGE', 'stream', '-', '+', 'COUNT', '1').split('\n')
      server.cli('XACK', 'stream', 'workers', first)
      server.cli('-n', '5', 'RPUSH', 'list', 'a')
    })
    afterAll(() => server.cli('FLUSHALL'))

    test('lists, streams and sorted sets are counted and evaluated', async () => {
      expectResult(await queue('list'), 'failed (threshold): list "list", items waiting: 3 (warn 1, fail 2)', {
        measurement: { value: 3 },
      })
      expect(await queue('later')).toMatchObject({ status: 'warning', measurement: { value: 2 } })
      expect(await queue('stream')).toMatchObject({ status: 'failed', measurement: { value: 4 } })
    })
    test('unread and unacknowledged entries of a consumer group are counted', async () => {
      expect(await queue('stream', { group: 'workers' })).toMatchObject({ status: 'failed', measurement: { value: 3 } })
      const result = await queue('stream', { group: 'gone' })
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result.message).toBe('the stream "stream" has no consumer group "gone"')
    })
    test('a missing key is an empty queue; one of another type is reported', async () => {
      expect(await queue('none')).toMatchObject({ status: 'ok', measurement: { value: 0 } })
      expectResult(await queue('text'), '(data): "text" is not a queue: its type is "string"')
    })
    test('queues are in the database of the URL', async () => {
      expect(await queue('list', {}, `${server.url}/5`)).toMatchObject({ status: 'ok', measurement: { value: 1 } })
    })
    test('a queue that cannot be counted does not hide the next', async () => {
      const queues = ['text', 'list'].map((key) => ({ key, length: {} }))
      const results = await run({ queues }, 'Standard')
      expect(results.filter(({ check }) => check === 'queue').map(({ status }) => status)).toEqual(['failed', 'ok'])
    })
  })

  describe('a server that cannot be reached', () => {
    test('slow: answers that are each 150 ms late exceed the threshold, with the value', async () => {
      await using slow = await proxy(server.port, 150)
      const url = `redis://127.0.0.1:${slow.port}`
      const results = await run({ url, latency: { warn: 50, limit: 120 }, pings: { warn: 50 } }, 'Advanced')
      await finds(results, ['ping failed (threshold)', { measurement: { limit: 120 } }])
      expect(checked(results, 'ping').measurement?.value).toBeGreaterThan(145)
      await finds(results, 'latency warning')
    })
    test('a full server reports that', async () => {
      const small = await startRedis({ settings: ['--maxclients', '2'] })
      onTestFinished(() => small.remove())

      const sockets = [connect(small.port, '127.0.0.1'), connect(small.port, '127.0.0.1')]
      for (const socket of sockets) socket.on('error', () => {})
      await until(() => sockets.every((socket) => !socket.connecting))
      const match = (await runKind(redis, { url: small.url })).find(({ status }) => status === 'failed')
      // The refusal is unsolicited; where our PING comes first, the server resets.
      expect(match?.message).toMatch(/has reached its maximum number of clients|instead of answering PING/)
      for (const socket of sockets) socket.destroy()
    })
  })

  describe('sign-in', () => {
    let locked: RedisServer
    const auth: Overrides = { password: secret(word) }
    beforeAll(async () => {
      locked = await startRedis({ settings: ['--requirepass', word], password: word })
      locked.cli('ACL', 'SETUSER', 'monitor', 'on', `>${word}`, '~svc:probe:*', '+@all')
    })
    afterAll(() => locked.remove())
    const as = (user: string): string => `redis://${user}@127.0.0.1:${locked.port}`

    test('the password of the server, and a user of its own, sign in', async () => {
      expect((await runKind(redis, { url: locked.url, ...auth })).map(({ status }) => status)).toEqual(['ok', 'ok'])
      await finds(ask({ url: as('monitor'), ...auth }), ['connect', /^signed in to \S+ as monitor in/])
      expect(await locked.left()).toEqual([])
    })
    test('H11 a wrong password stays in the message of svc health, and the command that it offers ends the pause', async () => {
      const home = temporaryHome()
      const server = await startRedis({ settings: ['--requirepass', 'other'], password: 'other' })
      onTestFinished(() => server.remove())

      const password = join(home.folder, 'secret')
      writeFileSync(password, word, { mode: 0o600 })
      const entry = `{kind: redis, name: queue, url: "${server.url}", password: {file: ${password}}}`
      writeFileSync(join(home.folder, 'svc.yaml'), `types: {Batch: [${entry}]}\n`, { mode: 0o600 })
      const health = () => home.svc(['health', '-m', 'Basic', '-o', 'table'], { env: { COLUMNS: '200' } })
      expect((await health()).stdout).toContain('refused the sign-in of "default": wrong password')
      const paused = await health()
      expect(paused.code).toBe(3)
      expect(paused.stdout).toContain('refused: wrong password')
      const [, command = ''] = /try now: svc (.+)/.exec(paused.stdout) ?? []
      expect(command).toBe("monitors test 'redis queue'")
      server.cli('CONFIG', 'SET', 'requirepass', word)
      expect((await health()).code).toBe(3)
      expect((await home.svc(['monitors', 'test', 'redis queue', '--mode', 'Basic'])).code).toBe(0)
      expect((await health()).code).toBe(0)
    })
    test('a wrong password is auth, is not shown, and is not tried again soon', async () => {
      const shared = limits()
      const invalid = { url: as('monitor'), password: secret('hunter2-wrong') }
      const result = await one('connect', invalid, 'Basic', { limits: shared, retries: 3 })
      expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(result.message).toContain('refused the sign-in of "monitor"')
      expect(JSON.stringify(result)).not.toContain('hunter2')
      const stats = (): string => /cmdstat_auth:calls=(\d+)/.exec(locked.cli('INFO', 'commandstats'))?.[1] ?? ''
      const before = Number(stats())
      await finds(ask(invalid, 'Basic', { limits: shared }), ['sign-in', /^refused: wrong password, or /])
      // redis-cli signs in too, once for each command.
      expect(Number(stats())).toBe(before + 1)
    })
    test('a key that the account may not access is reported', () =>
      finds(ask({ url: as('monitor'), ...auth, queues: [{ key: 'jobs', length: {} }] }, 'Standard'), [
        'queue not checked (permission): …"monitor" lacks a permission for this check…',
        { details: ['ACL SETUSER monitor ~<key>', expect.stringContaining('NOPERM')] },
      ]))
    test('an account with access to its own keys only completes the round trip', () =>
      finds(ask({ url: as('monitor'), ...auth, allowWrites: true }, 'Advanced'), 'round trip ok'))
    test('an account with only the privileges that the checks declare is denied nothing', async () => {
      locked.cli('ACL', 'SETUSER', 'limited', 'reset', 'on', `>${word}`)
      const { host, pathname } = new URL(`${as('limited')}/2`)
      const jobs = (...command: readonly string[]): string => locked.cli('-n', pathname.slice(1), ...command)
      jobs('RPUSH', 'jobs:list', JSON.stringify({ at: Date.now() }))
      jobs('XADD', 'jobs:stream', '*', 'a', '1')
      jobs('XGROUP', 'CREATE', 'jobs:stream', 'workers', '0')
      jobs('ZADD', 'jobs:zset', String(Math.floor(Date.now() / 1_000)), 'a')
      const age = { limit: 3_600_000 }
      const overrides: Overrides = {
        ...{ url: `redis://limited@${host}${pathname}`, ...auth, restarted: {}, allowWrites: true },
        queues: [
          { key: 'jobs:list', length: {}, age, time: '$.at' },
          { key: 'jobs:stream', length: {}, age, group: 'workers' },
          { key: 'jobs:zset', length: {}, age, time: 'score' },
        ],
      }
      const unwell = async (): Promise<string[]> =>
        (await runKind(redis, overrides, 'Advanced')).filter(({ status }) => status !== 'ok').map(({ check }) => check)
      expect(await unwell()).toEqual(['ping'])
      // Only a Sentinel has the command of its checks, which are tested there.
      for (const { privilege } of redis.checks.filter(({ name }) => !name.startsWith('sentinel '))) {
        const words = privilege?.replace('<account>', 'limited').replace('<key>', 'jobs:*').split(' ')
        if (words) expect(locked.cli(...words)).toBe('OK')
      }
      expect(await unwell()).toEqual([])
    })
    test('a password does not leave this machine without TLS', async () => {
      const resolve = () => Promise.resolve(['192.0.2.1'])
      await finds(
        ask({ url: 'redis://cache.test', ...auth }, 'Basic', { resolve }),
        'connect failed (data): …the password is not sent to 192.0.2.1:6379 without TLS: use rediss://…',
      )
    })
  })

  describe('a server in trouble', () => {
    test('a server that loads its data reports its progress, and fails', async () => {
      const first = await startRedis({ settings: ['--enable-debug-command', 'yes'] })
      first.cli('DEBUG', 'POPULATE', '5000')
      first.cli('SAVE')
      await first.stop('SIGKILL')
      const slow = ['--key-load-delay', '2000', '--loading-process-events-interval-bytes', '1024']
      const loading = await startRedis({ folder: first.folder, settings: slow, ready: /Loading RDB|RDB age/ })
      onTestFinished(() => loading.remove())

      await until(() => loading.cli('PING').includes('LOADING'))
      await finds(ask({ url: loading.url }), [
        'ping failed (data)',
        /is still loading its data after a start .*; [\d.]+ % loaded, about \d+ s/,
      ])
    })
  })

  describe('a primary and its replica', () => {
    let replica: RedisServer
    beforeAll(async () => {
      const follow = ['--replicaof', '127.0.0.1', String(server.port), '--repl-diskless-sync-delay', '0']
      server.cli('CONFIG', 'SET', 'repl-diskless-sync-delay', '0')
      replica = await startRedis({ settings: follow })
      await until(() => replica.cli('INFO', 'replication').includes('master_link_status:up'))
      await until(() => server.cli('INFO', 'replication').includes('state=online'))
    }, 30_000)
    afterAll(() => replica.remove())

    test('each has its expected role, and they are connected', async () => {
      const primary = await run({ role: 'primary', replicas: 1 }, 'Advanced')
      expect(primary.filter(({ status }) => status !== 'ok')).toEqual([])
      await finds(primary, 'role: primary with 1 replica')
      expect(checked(primary, 'replicas').details).toEqual([`127.0.0.1:${replica.port} is online`])
      await finds(primary, ['replication lag', /^last heard from replica 127\.0\.0\.1:\d+ /], 'replication offset ok')
      const follows = await run({ url: replica.url, role: 'replica', allowWrites: true }, 'Advanced')
      expect(follows.filter(({ status }) => status !== 'ok')).toEqual([])
      await finds(
        follows,
        `replica link: up, to 127.0.0.1:${server.port}`,
        'round trip: skipped: a replica accepts no writes',
      )
    })
  })
})

peerSuite(redisMissing ?? opensslMissing(), 'redis over TLS', () => {
  let made: Certificates
  let server: RedisServer
  const tls = (overrides: Overrides = {}): Overrides => ({
    url: server.url,
    servername: 'svc.test',
    caFile: made.caFile,
    ...overrides,
  })
  const start = (output: 'good' | 'fiveDays' | 'expired', ...settings: string[]): Promise<RedisServer> =>
    startRedis({ tls: { ...made[output], caFile: made.caFile }, settings })
  beforeAll(async () => {
    made = makeCertificates()
    // Redis runs as the account nobody, and reads its CA itself.
    chmodSync(made.caFile, 0o644)
    chmodSync(new URL('.', `file://${made.caFile}`).pathname, 0o755)
    server = await start('good')
  })
  afterAll(async () => {
    await server.remove()
    made.remove()
  })

  test('a valid certificate is ok, and its remaining days are evaluated', async () => {
    const results = await runKind(redis, tls(quiet), 'Advanced')
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    await finds(results, ['connect', /^connected to \S+ over TLSv1\.3 in/], ['certificate', /in 89\.9 d/])
    expect(await server.left()).toEqual([])
  })
  test('redis:// to a port that requires TLS, and rediss:// to one without, are reported as such', async () => {
    await finds(ask({ url: server.url.replace('rediss', 'redis') }), 'ping failed (protocol)')
    await using clear = await peer(replies('-ERR unknown command\r\n'))
    const url = `rediss://127.0.0.1:${clear.port}`
    await finds(ask(tls({ url })), 'connect (tls): …does not speak TLS…')
  })
  test('a server that requires client certificates is reported as such', async () => {
    const strict = await start('good', '--tls-auth-clients', 'yes')
    const match = (await runKind(redis, tls({ url: strict.url }))).find(({ status }) => status === 'failed')
    expect(match).toMatchObject({ fault: 'tls' })
    expect(match?.message).toContain('requires a client certificate, which svc does not have')
    await strict.remove()
  })
})

peerSuite(redisMissing ?? sentinelMissing, 'redis: a Sentinel', () => {
  let group: Awaited<ReturnType<typeof startSentinelGroup>>
  const at = (sentinel: { readonly url: string }, overrides: Overrides = {}, mode: Mode = 'Standard') =>
    runKind(redis, { url: sentinel.url, ...quiet, ...overrides }, mode)
  beforeAll(async () => {
    group = await startSentinelGroup()
  }, 60_000)
  afterAll(() => group.remove())

  test('is recognized, and each primary that it monitors is up', async () => {
    const results = await at(
      group.sentinels[0],
      { allowWrites: true, queues: [{ key: 'jobs', length: {} }] },
      'Advanced',
    )
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    expect(results.map(({ check }) => check)).toEqual([
      'connect',
      'ping',
      'sentinel master',
      'sentinel quorum',
      'sentinel replicas',
    ])
    await finds(
      results,
      [
        `sentinel master: orders (127.0.0.1:${group.primary.port}) is up, monitored with 1 other Sentinel`,
        { subject: 'orders' },
      ],
      ['sentinel quorum: orders: 2 Sentinels can agree on a failover', { subject: 'orders' }],
      'sentinel replicas: orders: 1 of 1 replica can take over',
    )
  })
  test('an account with only the privileges that the checks declare is denied nothing, and without them a Sentinel is not checked', async () => {
    const locked = await startSentinel(group.primary, 1, [`user limited on >${word} -@all +ping`])
    const overrides: Overrides = { url: locked.url.replace('//', '//limited@'), password: secret(word) }
    await finds(at(locked, overrides), 'info not checked (permission)')
    for (const { name, privilege = '' } of redis.checks.filter(({ name }) => name.startsWith('sentinel '))) {
      expect(locked.cli(...privilege.replace('<account>', 'limited').split(' ')), name).toBe('OK')
    }
    expect((await at(locked, overrides)).filter(({ notChecked }) => notChecked)).toEqual([])
    await locked.remove()
  })
  test('whose primary has no replica warns', async () => {
    const alone = await startRedis()
    const sentinel = await startSentinel(alone, 1)
    await finds(at(sentinel), 'sentinel replicas warning: orders has no replica: no failover is possible')
    await sentinel.remove()
    await alone.remove()
  })
})
