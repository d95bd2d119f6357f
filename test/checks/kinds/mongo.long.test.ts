import { X509Certificate } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Document } from 'bson'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { limits, type Result } from '../../../src/core/checks/engine/index.ts'
import * as checks from '../../../src/core/checks/kinds/mongo/checks.ts'
import { writeConcern } from '../../../src/core/checks/kinds/mongo/checks.ts'
import {
  clusterMonitor,
  connectSettings,
  mongoTarget,
  obstacleOf,
} from '../../../src/core/checks/kinds/mongo/connection.ts'
import { openMongo, UnavailableError } from '../../../src/core/checks/kinds/mongo/driver.ts'
import mongo from '../../../src/core/checks/kinds/mongo/index.ts'
import { files } from '../../support/engine/files.ts'
import { expectResult, finds } from '../../support/engine/finds.ts'
import {
  checked,
  checksOf,
  evaluated,
  ofRunner,
  type RunKindOptions,
  runKind,
  secret,
  withDefaults,
} from '../../support/engine/run-kind.ts'
import { blackHole, endless, escapeSequences, peer, replies, settled, speaks } from '../../support/faults/faults.ts'
import { proxy } from '../../support/faults/proxy.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import {
  deepBson,
  type MongoAnswer,
  type MongoPeer,
  type MongoPeerOptions,
  message,
  mongoPeer,
  opMessage,
} from '../../support/simulated/mongo.ts'
import { answers, GiB, hello, member, now, set } from '../../support/simulated/mongo-node.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { farMs, hungUp } from '../../support/suite/until.ts'

type Overrides = Partial<Values<typeof mongo.settings>>
type Mode = 'Basic' | 'Standard' | 'Advanced'
const word = 'correct horse'
const users = { monitor: word }
const healthy: MongoPeerOptions = { users, hello: hello.primary, answer: answers() }

const url = (port: number, user = 'monitor@'): string => `mongodb://${user}127.0.0.1:${port}/`
const run = (port: number, mode: Mode = 'Basic', overrides: Overrides = {}, options: RunKindOptions = {}) =>
  runKind(mongo, { url: url(port), password: secret(word), ...overrides }, mode, options)
async function using<T>(options: MongoPeerOptions, use: (server: MongoPeer) => Promise<T>): Promise<T> {
  await using server = await mongoPeer({ ...healthy, ...options })
  const result = await use(server)
  await hungUp(server)
  return result
}
const look = (options: MongoPeerOptions, mode: Mode = 'Basic', overrides: Overrides = {}) =>
  using(options, (server) => run(server.port, mode, overrides))
const one = async (check: string, ...args: Parameters<typeof look>): Promise<Result> =>
  checked(await look(...args), check)

describe('a healthy simulated node', () => {
  test('each mode runs its checks and those of the shallower ones, and all are ok', async () => {
    await using({}, async (server) => {
      const at = async (mode: Mode, overrides: Overrides = {}): Promise<readonly string[]> => {
        const results = await run(server.port, mode, overrides)
        expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
        expect(results.every(({ address }) => address === `127.0.0.1:${server.port}`)).toBe(true)
        return checksOf(results)
      }
      expect(await at('Basic')).toEqual(['connect', 'hello', 'ping'])
      const standard = ['connect', 'hello', 'ping', 'role', 'primary', 'members', 'connections']
      expect(await at('Standard')).toEqual(standard)
      const all = mongo.checks.map(({ name }) => name).filter((name) => !ofRunner.includes(name))
      expect(await at('Advanced')).toEqual(all.filter((name) => name !== 'write concern'))
      expect(await at('Advanced', { allowWrites: true })).toEqual(all)
    })
  })
  test('the description of a simulated primary is reported', async () => {
    await using({}, async (server) => {
      const results = await run(server.port, 'Advanced')
      const reply = (check: string): string => checked(results, check).message
      expect(reply('connect')).toMatch(
        /^signed in to 127\.0\.0\.1:\d+ as monitor in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
      )
      expect(reply('hello')).toMatch(/^hello answered by a primary of rs0 in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/)
      expect(reply('primary')).toBe('this node is the primary of rs0')
      expect(reply('members')).toBe('3 members of rs0 healthy')
      expect(reply('connections')).toBe('40 of 800 connections: 5 % (warn 80 %, fail 95 %)')
      expect(reply('replication lag')).toBe('db2:27017 is behind by 2 s (warn 10 s, fail 30 s)')
      expect(reply('oplog window')).toBe('reaches back 30 h (warn below 24 h, fail below 4 h)')
      expect(reply('cache')).toBe('use of the cache of 10 GiB: 80 % (warn 95 %)')
    })
  })
  test('a run signs in once to a simulated node, and limits its queries there', async () => {
    await using({}, async (server) => {
      await run(server.port, 'Advanced', { allowWrites: true })
      expect(server.signIns()).toEqual({ attempts: 1, right: 1 })
      expect(server.connections()).toBe(2)
      expect(server.commands().length).toBeGreaterThan(10)
      expect(server.commands().every(({ maxTimeMS }) => maxTimeMS > 0 && maxTimeMS <= farMs)).toBe(true)
    })
  })
  test('without a user a simulated node is checked without a sign-in', async () => {
    await using({}, async (server) => {
      const results = await run(server.port, 'Standard', { url: url(server.port, '') })
      await finds(results, ['connect', /^connected to 127\.0\.0\.1:\d+ without a sign-in in/])
      expect(results.filter(({ status }) => status !== 'ok').map(({ check }) => check)).toEqual([
        'members',
        'connections',
      ])
      const hidden = checked(results, 'members')
      expect(hidden).toMatchObject({ status: 'warning', details: ['next: add a user to the url, and set password:'] })
      expect(server.signIns().attempts).toBe(0)
    })
  })
  test('only allowed writes reach a simulated node, and they are removed again', async () => {
    const writes = (server: MongoPeer): readonly string[] =>
      server
        .commands()
        .map((command) => Object.keys(command)[0] ?? '')
        .filter((name) => !/^(hello|ping|find|collStats|serverStatus|replSetGet(Status|Config))$/.test(name))
    await using({}, async (server) => {
      await run(server.port, 'Advanced')
      expect(writes(server)).toEqual([])
      await run(server.port, 'Advanced', { allowWrites: true, probeDatabase: 'probes' })
      expect(writes(server)).toEqual(['insert', 'delete', 'delete'])
      const [insert, remove, sweep] = server
        .commands()
        .filter(({ $db }) => $db === 'probes')
        .filter((command) => !command.find)
      expect(insert).toMatchObject({ insert: 'probe', writeConcern: { w: 'majority', wtimeout: 5_000 } })
      expect(remove?.deletes).toEqual([{ q: { _id: insert?.documents[0]._id }, limit: 1 }])
      expect(sweep?.deletes[0].q).toMatchObject({ _id: { $regex: '^svc-probe-' } })
      const age = insert?.documents[0].at.getTime() - sweep?.deletes[0].q.at.$lt.getTime()
      expect(age).toBe(3_600_000)
    })
  })
  test('the kind names host and port, and signs in only with a user', () => {
    const settingsOf = (text: string) => withDefaults(mongo.settings, { url: text })
    expect(mongo.target?.(settingsOf('mongodb://m@db1/'))).toEqual({ host: 'db1', port: 27_017, database: 'db1:27017' })
    expect(mongo.signsIn?.(settingsOf('mongodb://m@db1/'), 'Basic')).toBeDefined()
    expect(mongo.signsIn?.(settingsOf('mongodb://db1/'), 'Advanced')).toBeUndefined()
  })
  test('mongodb+srv is refused with a remedy, and nothing is resolved', async () => {
    const resolve = () => Promise.reject(new Error('looked up'))
    const [result] = await runKind(mongo, { url: 'mongodb+srv://m@cluster.example/' }, 'Basic', { resolve })
    expect(result).toMatchObject({ check: 'settings', status: 'failed' })
    expect(result?.message).toContain('add a monitor for each node, with url: mongodb://host:port')
  })
})

describe('the clock of a simulated node', () => {
  const off = (ms: number): Promise<Result> => {
    const reply = { ...hello.primary }
    Object.defineProperty(reply, 'localTime', { enumerable: true, get: () => new Date(Date.now() + ms) })
    return one('clock', { hello: reply }, 'Advanced')
  }
  test('is compared with the local one, as far as a difference is certain', async () => {
    expect(await off(0)).toMatchObject({ status: 'ok', measurement: { value: 0, limit: 30_000 } })
    const behind = await off(-600_000)
    expect(behind).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(behind.message).toMatch(/^the server's clock is behind ours by (?:9\.\d|10) min \(warn 2 s, fail 30 s\)$/)
    const ahead = await off(12_000)
    expect(ahead.status).toBe('warning')
    expect(ahead.message).toMatch(/^the server's clock is ahead of ours by [\d.]+ s \(warn 2 s, fail 30 s\)$/)
  })
  test('is not checked where the node does not report it, and that is reported', async () => {
    const reply = { ...hello.primary, localTime: undefined }
    await finds(look({ hello: reply }, 'Advanced'), 'clock warning: not checked: this server does not report its time')
  })
})

describe('the role that a simulated node reports', () => {
  const kinds = ['standalone', 'mongos', 'secondary', 'recovering', 'uninitiated', 'arbiter'] as const
  test.each(kinds)(
    'a simulated %s is distinguished from the others, and gets only queries that it supports',
    async (kind) => {
      const reply = kind === 'standalone' ? {} : hello[kind]
      const results = await using({ hello: { setName: undefined, ...reply } }, (server) =>
        run(server.port, 'Advanced', { allowWrites: true }),
      )
      const role = checked(results, 'role')
      const basic = ['connect', 'hello', 'ping', 'role']
      const load = ['queues', 'cache', 'cache dirty']
      const expected: Record<
        (typeof kinds)[number],
        readonly [status: string, message: string, checks: readonly string[]]
      > = {
        standalone: ['ok', 'is a standalone', [...basic, 'connections', ...load, 'clock', 'write concern']],
        mongos: ['ok', 'is a mongos', [...basic, 'connections', ...load, 'clock', 'write concern']],
        secondary: [
          'ok',
          'is a secondary of rs0',
          [...basic, 'primary', 'members', 'connections', 'replication lag', 'oplog window', ...load, 'clock'],
        ],
        recovering: ['failed', 'is a node of rs0 that serves no clients', [...basic, 'primary', 'clock']],
        uninitiated: ['failed', 'is a node whose replica set is not initiated', [...basic, 'clock']],
        arbiter: ['ok', 'is an arbiter of rs0', [...basic, 'primary', 'clock']],
      }
      const [status, message_, checks] = expected[kind]
      expect(role).toMatchObject({ status, message: message_ })
      expect(checksOf(results)).toEqual(checks)
    },
  )
  test('a simulated secondary evaluates its own lag only', async () => {
    const members = [
      member('db1:27017', 1, 'PRIMARY'),
      member('db2:27017', 2, 'SECONDARY', { self: true, optimeDate: new Date(now - 31_000) }),
      member('db3:27017', 2, 'SECONDARY', { optimeDate: new Date(now - 900_000) }),
    ]
    const answer = answers({ replSetGetStatus: { set: 'rs0', members, ok: 1 } })
    await finds(
      look({ hello: hello.secondary, answer }, 'Advanced'),
      'replication lag failed: db2:27017 is behind by 31 s (warn 10 s, fail 30 s)',
    )
  })
  test('the configured delay of a simulated secondary is not lag', async () => {
    const members = [
      member('db1:27017', 1, 'PRIMARY', { self: true }),
      member('db2:27017', 2, 'SECONDARY', { optimeDate: new Date(now - 3_605_000) }),
    ]
    const config = { config: { members: [{ host: 'db2:27017', secondaryDelaySecs: 3_600 }] }, ok: 1 }
    const answer = answers({ replSetGetStatus: { set: 'rs0', members, ok: 1 }, replSetGetConfig: config })
    await finds(
      look({ answer }, 'Advanced'),
      'replication lag ok: db2:27017 is behind beyond its delay of 1 h by 5 s (warn 10 s, fail 30 s)',
    )
  })
})

describe('a simulated node that cannot be reached or refuses the sign-in', () => {
  test('black hole: the deadline precedes the timeout of the driver, in whatever order the timers fire', async () => {
    await using hole = await peer(blackHole)
    const connectResult = async (): Promise<Result> =>
      checked(await run(hole.port, 'Basic', {}, { timeoutMs: 200 }), 'connect')
    const results = await Promise.all(Array.from({ length: 60 }, connectResult))
    const reply = `127.0.0.1:${hole.port} accepted the connection but sent nothing for N ms`
    expect([...new Set(results.map(({ message }) => message.replace(/[\d.]+ m?s$/, 'N ms')))]).toEqual([reply])
    await hungUp(hole)
  })
  test('slow: a simulated node late by 80 ms at each step exceeds the threshold, with the value', async () => {
    const result = await one('ping', { delayMs: 80 }, 'Basic', { latency: { warn: 20, limit: 60 } })
    expect(result).toMatchObject({ status: 'failed', fault: 'threshold', measurement: { limit: 60 } })
    expect(result.measurement?.value).toBeGreaterThan(70)
  })
  test('a wrong password is auth at a simulated node, is never shown, and is not tried again, nor elsewhere', async () => {
    await using({}, async (server) => {
      const shared = limits()
      const options = { limits: shared, retries: 3, resolve: async () => ['127.0.0.1', '127.0.0.2'] }
      const overrides = { url: `mongodb://monitor@db.test:${server.port}/`, password: secret('hunter2-wrong') }
      const result = checked(await run(server.port, 'Basic', overrides, options), 'connect')
      expect(result).toMatchObject({ status: 'failed', fault: 'auth' })
      expect(result.message).toBe(`127.0.0.1:${server.port} refused the sign-in of "monitor": Authentication failed.`)
      expect(JSON.stringify(result)).not.toContain('hunter2')
      const again = await run(server.port, 'Basic', overrides, options)
      await finds(
        again.filter(({ check }) => check !== 'connect'),
        ['sign-in', /^refused: (?!\S+ refused)/],
      )
      expect(server.signIns()).toEqual({ attempts: 1, right: 0 })
    })
  })
  test('a user without a configured password is auth, and nothing is sent to a simulated node', async () => {
    await using({}, async (server) => {
      await finds(runKind(mongo, { url: url(server.port) }), 'connect (auth): …no password is configured…')
      expect(server.connections()).toBe(0)
    })
  })
  test('a simulated server that is too old for the driver is reported as such', () =>
    finds(look({ hello: { maxWireVersion: 5 } }), 'connect (protocol): …speaks no version that the driver supports…'))
  test('a simulated impostor that does not know the password is not trusted', async () => {
    await using server = await mongoPeer({
      ...healthy,
      answer: (command) => command.saslContinue && { ok: 1 },
      users: { monitor: 'something else' },
    })
    await finds(run(server.port), 'connect failed')
    expect(server.signIns().right).toBe(0)
  })
  test.each([
    ['an SSH server', speaks('SSH-2.0-OpenSSH_9.2\r\n')],
    ['an HTTP server', replies('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')],
    ['a message of no length', replies(Buffer.alloc(64))],
    ['a message of a negative length', replies(Buffer.alloc(64, 0xff))],
    ['a message of 2 GiB', replies(Buffer.from('ffffff7f01000000010000000dd07000', 'hex'))],
    ['a message that is cut', replies(Buffer.from('ff00000001000000010000000100000000', 'hex'))],
    ['a compressed message', replies(message(undefined, 2_012, Buffer.alloc(64)))],
    ['a document that is longer than its message', replies(opMessage(Buffer.from('ffffff0010610001000000', 'hex')))],
    ['a reply without a document', replies(message(undefined, 1, Buffer.alloc(20)))],
    ['a message that never ends', endless('', '\x00\x00\x70\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00')],
    ['messages without an end', endless('', message(undefined, 2_013, Buffer.alloc(10)).toString('latin1'))],
    ['a connection that is closed at once', (socket) => void socket.end()],
    ['a connection that is reset', (socket) => void socket.resetAndDestroy()],
  ] satisfies [string, Parameters<typeof peer>[0]][])('%s is a failure, and nothing breaks', async (_, behave) => {
    await using other = await peer(behave)
    const result = checked(await run(other.port, 'Basic', {}, { timeoutMs: 800 }), 'connect')
    expect(result.status).toBe('failed')
    expect(['protocol', 'timeout']).toContain(result.fault)
    await hungUp(other)
  })
  test.each([
    ['of no length', Buffer.from('000000000100000001000000dd07000000', 'hex'), 'does not answer as MongoDB does'],
    ['of 9 MiB', Buffer.from('000090000100000001000000dd07000000', 'hex'), 'does not answer as MongoDB does'],
    ['that is compressed', message(undefined, 2_012, Buffer.alloc(64)), 'in a form that svc did not request'],
  ])('a message %s ends the connection to a simulated node at once', async (_, bytes, words) => {
    await using server = await mongoPeer({ ...healthy, first: bytes })
    const result = checked(await run(server.port), 'connect')
    expect(result).toMatchObject({ status: 'failed', fault: 'protocol' })
    expect(result.message).toContain(words)
  })
  test('100 answers of random bytes from a simulated node are 100 failures, and nothing breaks', async () => {
    for (let round = 0; round < 100; round += 1) {
      const bytes = Buffer.from(Array.from({ length: 80 }, (_, i) => (round * 31 + i * i * 17 + (round >> 2)) & 0xff))
      // A document whose length is right takes the rest to its own parser.
      bytes.writeInt32LE(80)
      bytes[79] = 0
      await using server = await mongoPeer({ ...healthy, first: opMessage(bytes) })
      await finds(run(server.port, 'Basic', {}, { timeoutMs: 300 }), 'connect failed')
    }
  })
})

describe('a simulated node that answers badly', () => {
  test('a document 200,000 levels deep fails that check of a simulated node, and nothing breaks', async () => {
    const answer = answers({ ping: opMessage(deepBson(200_000)) })
    await finds(look({ answer }), 'ping failed (protocol)')
  })
  test('a document of 200 levels is cut, and read, from a simulated node', async () => {
    const deep = (levels: number): Document => (levels === 0 ? { end: 1 } : { a: deep(levels - 1) })
    const answer = answers({ serverStatus: { ...set.serverStatus, deep: deep(200) } })
    await finds(look({ answer }, 'Standard'), 'connections ok')
  })
  test.each([
    ['too many rounds of hashing', 2_000_000_000],
    ['such rounds, written otherwise', ' +2000000000'],
  ])('a simulated node that asks for %s is abandoned', async (_, rounds) => {
    await finds(look({ rounds }), 'connect failed (protocol): …too many rounds of hashing…')
  })
  test('text of a simulated node is shown without escapes, truncated, and never contains the password', async () => {
    const errmsg = `${escapeSequences} you sent ${word} ${'x'.repeat(3_000)}`
    const refused = { ok: 0, code: 18, codeName: 'AuthenticationFailed', errmsg }
    const failing = { ok: 0, code: 9_999, codeName: 'Odd', errmsg }
    const members = [member(`${escapeSequences}${word}`, 8, word, { health: 0, lastHeartbeatMessage: errmsg })]
    const results = [
      await one('ping', { answer: answers({ ping: failing }) }),
      await one('ping', { answer: answers({ ping: refused }) }),
      await one('members', { answer: answers({ replSetGetStatus: { set: word, members, ok: 1 } }) }, 'Standard'),
    ]
    for (const result of results) {
      const text = JSON.stringify(result)
      expect(result.status).toBe('failed')
      expect(text).not.toContain(word)
      expect(text).not.toMatch(/\\u001b|\\u0007|\\u009b|\\u202e/)
      expect(text.length).toBeLessThan(2_000)
      expect(text).toContain('[secret]')
    }
  })
  test('one query that fails does not hide the others, at a simulated node', async () => {
    const broken = { ok: 0, code: 1, codeName: 'InternalError', errmsg: 'oh' }
    const results = await using({ answer: answers({ replSetGetStatus: broken }) }, (server) =>
      run(server.port, 'Standard'),
    )
    expect(results.filter(({ status }) => status !== 'ok').map(({ check }) => check)).toEqual(['members'])
    await finds(results, 'members (protocol): the command failed: oh', 'connections ok')
  })
  test('H10 a denied query is reported with the missing role, and an account without any fails, at a simulated node', async () => {
    const denied = { ok: 0, code: 13, codeName: 'Unauthorized', errmsg: 'not authorized on admin to execute command' }
    const answer = answers({
      replSetGetStatus: denied,
      serverStatus: denied,
      collStats: denied,
      find: denied,
      insert: denied,
    })
    const results = await using({ answer }, (server) => run(server.port, 'Advanced', { allowWrites: true }))
    const grant = (role: string, db: string): string[] => [
      `db.grantRolesToUser("monitor", [{role: "${role}", db: "${db}"}])`,
    ]
    expect(
      Object.fromEntries(results.filter(({ status }) => status !== 'ok').map((f) => [f.check, f.details])),
    ).toEqual({
      members: grant('clusterMonitor', 'admin'),
      connections: grant('clusterMonitor', 'admin'),
      'replication lag': grant('clusterMonitor', 'admin'),
      'oplog window': grant('read', 'local'),
      queues: grant('clusterMonitor', 'admin'),
      'write concern': grant('readWrite', 'svc_health'),
    })
    const denials = results.filter(({ notChecked }) => notChecked === 'permission')
    expect(denials).toHaveLength(6)
    expect(results.filter(({ status }) => status !== 'ok')).toEqual(denials)
    expect(new Set(denials.map(({ status }) => status))).toEqual(new Set(['failed']))
    // The checks declare the same commands for any account.
    for (const { check, details = [] } of denials) {
      const { privilege } = mongo.checks.find(({ name }) => name === check) ?? {}
      const [command] = details
      expect(privilege?.replace('<account>', 'monitor').replace('<probeDatabase>', 'svc_health')).toBe(command)
    }
  })
  test('a command that a simulated server does not support is not a failure', async () => {
    const absent = { ok: 0, code: 59, codeName: 'CommandNotFound', errmsg: 'no such command' }
    const result = await one('members', { answer: answers({ replSetGetStatus: absent }) }, 'Standard')
    expectResult(result, 'warning: not checked: this server does not report this: no such command')
    expect(result.details).toBeUndefined()
  })
  test.each([
    [
      'a write concern that fails',
      { n: 1, ok: 1, writeConcernError: { code: 64, errmsg: 'waiting for replication timed out' } },
      'timeout',
    ],
    [
      'a refused document',
      { n: 0, ok: 1, writeErrors: [{ index: 0, code: 121, errmsg: 'Document failed validation' }] },
      'data',
    ],
    ['a node that is not a primary any more', { ok: 0, code: 10_107, errmsg: 'not primary' }, 'data'],
    ['a set that has too few members for it', { ok: 0, code: 100, errmsg: 'Not enough data-bearing nodes' }, 'timeout'],
    ['a disk that is full', { ok: 0, code: 14_031, errmsg: 'No space left' }, 'protocol'],
  ])(
    '%s fails the round trip at a simulated node, and its document is deleted nevertheless',
    async (_, insert, fault) => {
      await using({ answer: answers({ insert }) }, async (server) => {
        await finds(run(server.port, 'Advanced', { allowWrites: true }), ['write concern failed', { fault }])
        const written = server.commands().find(({ insert: into }) => into)
        expect(server.commands().find(({ delete: from }) => from)?.deletes).toEqual([
          { q: { _id: written?.documents[0]._id }, limit: 1 },
        ])
      })
    },
  )
})

describe('a run at a simulated node closes what it opened', () => {
  test('a command that hangs ends at the deadline, with every socket of the driver', async () => {
    await using server = await mongoPeer({ ...healthy, answer: answers({ serverStatus: 'hang' }) })
    await finds(
      endsByDeadline(800, run(server.port, 'Standard', {}, { timeoutMs: 800 })),
      'members ok',
      `connections (timeout): 127.0.0.1:${server.port} did not answer within 0.8 s`,
    )
    await hungUp(server)
    await server.close()
    expect(await settled('')).toBe('')
  })
  test('a run that is cancelled at any moment leaves no connection', async () => {
    await using server = await mongoPeer({ ...healthy, answer: answers({ serverStatus: 'hang' }) })
    for (let ms = 0; ms < 80; ms += 4) {
      const control = new AbortController()
      const result = run(server.port, 'Standard', {}, { signal: control.signal }).catch(() => [])
      await wait(ms)
      control.abort()
      await result
    }
    await hungUp(server)
  })
  test('a node that hangs during the sign-in leaves no connection', async () => {
    await using server = await mongoPeer({ ...healthy, rounds: 4_096 })
    await using slow = await proxy(server.port, 250)
    await finds(run(slow.port, 'Basic', {}, { timeoutMs: 600 }), 'connect (timeout)')
    await hungUp(server)
  })
  test('a cancellation while the driver loads takes effect', async () => {
    await using server = await mongoPeer(healthy)
    const control = new AbortController()
    const settings = withDefaults(connectSettings, { url: url(server.port), password: secret(word) })
    const way = { ip: '127.0.0.1', address: '', signal: control.signal, msLeft: () => 60_000, files }
    const opening = openMongo(mongoTarget(settings), way)
    control.abort(new Error('too late'))
    await expect(opening).rejects.toThrow('too late')
    expect(server.connections()).toBe(0)
  })
  test('other sockets of the process are unaffected', async () => {
    await using other = await peer(blackHole)
    const { connect } = await import('node:net')
    await using server = await mongoPeer({ ...healthy, answer: answers({ serverStatus: 'hang' }) })
    const running = run(server.port, 'Standard', {}, { timeoutMs: 500 })
    const bystander = connect(other.port, '127.0.0.1')
    await running
    expect(bystander.destroyed).toBe(false)
    bystander.destroy()
    await hungUp(server)
  })
})

suiteWith(opensslMissing(), 'TLS with a simulated node', () => {
  let certificates: Certificates
  beforeAll(() => {
    certificates = makeCertificates()
  })
  afterAll(() => certificates.remove())
  type Tls = NonNullable<Values<typeof connectSettings>['tls']>
  const tlsChecks = (
    certificate: Certificates['good'] | undefined,
    tls: Tls,
    host = 'svc.test',
  ): Promise<readonly [found: Result, server: MongoPeer]> =>
    using(certificate ? { tls: certificate } : {}, async (server) => {
      // TLS and a sign-in take more than a second on a machine that does much else.
      const latency = { warn: 60_000, limit: 60_000 }
      const overrides = { url: `mongodb://monitor@${host}:${server.port}/`, password: secret(word), tls, latency }
      const options = { resolve: async () => ['127.0.0.1'], timeoutMs: 2_000 }
      return [checked(await runKind(mongo, overrides, 'Basic', options), 'connect'), server] as const
    })
  const verify = (): Tls => ({ mode: 'verify', caFile: certificates.caFile })

  test('a trusted certificate is accepted, for a name and for an address', async () => {
    expect((await tlsChecks(certificates.good, verify()))[0].message).toContain('as monitor over TLS in')
    expect((await tlsChecks(certificates.good, verify(), '127.0.0.1'))[0].status).toBe('ok')
    expect(
      (await tlsChecks(certificates.good, { ...verify(), servername: 'svc.test' }, 'db1.internal'))[0].status,
    ).toBe('ok')
  })
  test('a pinned certificate is accepted, even if it has expired, and another is refused before the sign-in', async () => {
    for (const name of ['selfSigned', 'expired', 'otherHost'] as const) {
      const { fingerprint256 } = new X509Certificate(certificates[name].cert)
      const [result] = await tlsChecks(certificates[name], { mode: 'auto', fingerprint: [fingerprint256] })
      expect(result).toMatchObject({ status: 'ok', message: expect.stringContaining('as monitor over TLS in') })
    }
    const [refused, server] = await tlsChecks(certificates.good, { ...verify(), fingerprint: ['00'.repeat(32)] })
    expect(refused).toMatchObject({ status: 'failed', fault: 'tls' })
    expect(refused.message).toContain('does not match the pinned fingerprint')
    expect(server.signIns()).toEqual({ attempts: 0, right: 0 })
  })
  test('a node without TLS, or with nothing else, is a failure that reports that', async () => {
    const [without] = await tlsChecks(undefined, verify())
    expect(without.status).toBe('failed')
    const [only, server] = await tlsChecks(certificates.good, { mode: 'off' })
    expect(only).toMatchObject({ fault: 'protocol', message: expect.stringContaining('closed the connection') })
    expect(only.details?.join()).toContain('tls: {mode: verify}')
    expect(server.signIns().attempts).toBe(0)
  })
})

describe('evaluation', () => {
  const status = (results: readonly Result[]): string | undefined => results[0]?.status
  const text = (results: readonly Result[]): string | undefined => results[0]?.message

  test('role and replica set as configured', () => {
    const node = { role: 'secondary', set: 'rs0', primary: 'db1:27017' } as const
    const role = (overrides: Overrides) => evaluated(checks.role, node, overrides)
    expect(status(role({ role: 'secondary', replicaSet: 'rs0' }))).toBe('ok')
    expect(text(role({ role: 'primary' }))).toBe('is a secondary of rs0, expected a primary')
    expect(text(role({ replicaSet: 'rs1' }))).toBe('expected in the replica set rs1, but it belongs to rs0')
    const leaderless = evaluated(checks.primary, { ...node, primary: '' })
    expect(leaderless[0]).toMatchObject({ check: 'primary', status: 'failed', fault: 'data' })
    expect(text(evaluated(checks.primary, node))).toBe('db1:27017 is the primary of rs0')
  })
  test('members: unreachable is a failure, in transition a warning', () => {
    const members = (state: number, stateName: string, healthy = true) =>
      evaluated(checks.members, {
        set: 'rs0',
        members: [
          { name: 'db1', state: 1, stateName: 'PRIMARY', healthy: true, reason: '' },
          { name: 'db2', state, stateName, healthy, reason: 'because' },
        ],
      })
    expect([1, 2, 7].map((state) => status(members(state, 'X')))).toEqual(['ok', 'ok', 'ok'])
    expect([0, 3, 5].map((state) => status(members(state, 'X')))).toEqual(['warning', 'warning', 'warning'])
    expect([6, 8, 9, 10].map((state) => status(members(state, 'X')))).toEqual(['failed', 'failed', 'failed', 'failed'])
    expect(status(members(2, 'SECONDARY', false))).toBe('failed')
    expect(text(members(8, '(not reachable/healthy)', false))).toBe(
      '1 of 2 members of rs0 not healthy: db2 is not reachable ((not reachable/healthy)): because',
    )
  })
  test('connections: 80 % and 95 % are ok at the boundary', () => {
    const connections = (current: number) =>
      status(evaluated(checks.connections, { current, available: 100 - current }))
    expect([80, 81, 95, 96].map(connections)).toEqual(['ok', 'warning', 'warning', 'failed'])
  })
  test('lag: 10 s and 30 s are ok at the boundary; without a primary it is unknown', () => {
    const lag = (ms: number) =>
      status(evaluated(checks.replicationLag, { isPrimary: true, followers: [{ name: 'db2', ms, delayMs: 0 }] }))
    expect([10_000, 10_001, 30_000, 30_001].map(lag)).toEqual(['ok', 'warning', 'warning', 'failed'])
    expect(status(evaluated(checks.replicationLag, { followers: undefined, isPrimary: false }))).toBe('warning')
    expect(status(evaluated(checks.replicationLag, { followers: [], isPrimary: true }))).toBe('ok')
  })
  test('oplog window: 24 h and 4 h, once it is full', () => {
    const hour = 3_600_000
    const oplog = (hours: number, full: number | undefined) =>
      evaluated(checks.oplogWindow, { windowMs: hours * hour, full })
    expect([24, 23, 4, 3].map((n) => status(oplog(n, 95)))).toEqual(['ok', 'warning', 'warning', 'failed'])
    expect(status(oplog(1, 89))).toBe('ok')
    expect(status(oplog(1, undefined))).toBe('failed')
    expect(text(oplog(1, 12))).toBe('reaches back 1 h, but is only 12 % full')
  })
  test('queues: 10 and 30; the cache 95 %, what is dirty 20 %', () => {
    const queue = (queued: number) => status(evaluated(checks.queues, { queued, hasQueue: true, cache: undefined }))
    expect([10, 11, 30, 31].map(queue)).toEqual(['ok', 'warning', 'warning', 'failed'])
    const cache = (used: number, dirty: number) => {
      const load = { queued: undefined, hasQueue: false, cache: { used, dirty, max: 100 } }
      const results = [
        ...evaluated(checks.queues, load),
        ...evaluated(checks.cache, load),
        ...evaluated(checks.cacheDirty, load),
      ]
      return results.map((result) => result.status)
    }
    expect(cache(95, 20)).toEqual(['ok', 'ok'])
    expect(cache(96, 21)).toEqual(['warning', 'warning'])
  })
  test('what a node does not report is not checked', () => {
    const missing = { status: 'failed', notChecked: 'missing' }
    expect(evaluated(checks.members, { set: 'rs0', members: [] })[0]).toMatchObject(missing)
    expect(evaluated(checks.connections, { current: 0, available: 0 })[0]).toMatchObject(missing)
    const followers = [
      { name: 'db2', ms: undefined, delayMs: 0 },
      { name: 'db3', ms: 60_000, delayMs: 0 },
    ]
    expect(evaluated(checks.replicationLag, { followers, isPrimary: true })[0]).toMatchObject(missing)
    expect(evaluated(checks.replicationLag, { followers: [], isPrimary: false })[0]).toMatchObject(missing)
    expect(evaluated(checks.oplogWindow, { windowMs: undefined, full: 12 })[0]).toMatchObject(missing)
    const cache = { used: undefined, dirty: undefined, max: 100 }
    const load = { queued: undefined, hasQueue: true, cache }
    expect(evaluated(checks.queues, load)[0]).toMatchObject(missing)
    expect(evaluated(checks.cache, load)[0]).toMatchObject(missing)
    expect(evaluated(checks.cacheDirty, load)[0]).toMatchObject(missing)
    const unlimited = { queued: 0, hasQueue: true, cache: { used: 5, dirty: 5, max: undefined } }
    expect(evaluated(checks.cache, unlimited)[0]).toMatchObject(missing)
    expect(evaluated(checks.cacheDirty, unlimited)[0]).toMatchObject(missing)
  })
  test.each<[check: string, over: Readonly<Record<string, MongoAnswer>>]>([
    ['members', { replSetGetStatus: { set: 'rs0', ok: 1 } }],
    [
      'oplog window',
      { collStats: { maxSize: 10 * GiB, ok: 1 }, find: { cursor: { id: 0, ns: 'x.y', firstBatch: [] }, ok: 1 } },
    ],
    ['queues', { serverStatus: { connections: { current: 1, available: 9 }, ok: 1 } }],
    ['cache', { serverStatus: { storageEngine: { name: 'wiredTiger' }, ok: 1 } }],
    ['cache dirty', { serverStatus: { wiredTiger: { cache: { 'maximum bytes configured': GiB } }, ok: 1 } }],
  ])('%s is not checked where a simulated node answers without the figure', async (check, over) => {
    const result = await one(check, { answer: answers(over) }, 'Advanced')
    expect(result).toMatchObject({ status: 'failed', notChecked: 'missing' })
  })
  test('an oplog whose size is unknown is not taken for one that is not full (simulated)', () =>
    finds(look({ answer: answers({ collStats: { maxSize: 10 * GiB, ok: 1 } }) }, 'Advanced'), [
      'oplog window ok',
      { measurement: { value: 30 * 3_600_000 } },
    ]))
  test('clock: 2 s and 30 s are ok at the boundary, in both directions', () => {
    const off = (aheadMs: number) => status(evaluated(checks.clock, { aheadMs, tripMs: 4 }))
    expect([2_000, -2_000, 2_001, -2_001, 30_000, 30_001, -30_001].map(off).join(' ')).toBe(
      'ok ok warning warning warning failed failed',
    )
  })
  test('a majority has 1 s and 5 s', () => {
    const majority = (ms: number) => status(evaluated(writeConcern, { ms, swept: 0 }))
    expect([1_000, 1_001, 5_000, 5_001].map(majority)).toEqual(['ok', 'warning', 'warning', 'failed'])
  })
  test('the name of the user cannot end the command in the message', () => {
    const { user } = mongoTarget(withDefaults(connectSettings, { url: 'mongodb://a%22b@h/' }))
    const observation = obstacleOf(new UnavailableError('permission', 'x', []), user, clusterMonitor)
    expect(evaluated(checks.members, observation)[0]?.details).toEqual([
      'db.grantRolesToUser("a\\"b", [{role: "clusterMonitor", db: "admin"}])',
    ])
  })
})
