import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import type { oldestItem } from '../../../src/core/checks/kinds/redis/queues.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'
import { escapeSequences } from '../../support/faults/faults.ts'
import { proxy } from '../../support/faults/proxy.ts'
import { type RedisServer, redisMissing, startRedis } from '../../support/servers/redis.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const minute = 60_000
const now = Date.UTC(2026, 0, 14, 2)
const check = 'oldest item'
const age = { warn: minute, limit: 5 * minute }
type QueueSettings = NonNullable<Values<typeof oldestItem.settings>['queues']>[number]
type Queue = Partial<QueueSettings> & { readonly key: string }
const asQueues = (queues: readonly Queue[]): readonly QueueSettings[] =>
  queues.map((queue) => ({ length: {}, age, ...queue }))
const date = () => new Date(now)
const iso = (ago: number): string => new Date(now - ago).toISOString()

peerSuite(redisMissing, 'age of the oldest item in redis', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.remove())
  beforeEach(() => void server.cli('FLUSHALL'))
  const run = (queues: readonly Queue[], mode: 'Standard' | 'Advanced' = 'Advanced', url = server.url) =>
    runKind(redis, { url, restarted: {}, pings: {}, queues: asQueues(queues) }, mode, { date })
  const oldest = async (queue: Queue): Promise<Result> => checked(await run([queue]), check)

  describe('a list', () => {
    const path = '$.enqueued_at'
    const jobs = (more: Partial<Queue> = {}): Queue => ({ key: 'jobs', time: path, ...more })
    const push = (...items: readonly unknown[]): void => {
      server.cli('LPUSH', 'jobs', ...items.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))))
    }
    const at = (value: unknown): object => ({ class: 'Mail', enqueued_at: value })

    test('is as old as the date of its next item, and is ok at the boundary', async () => {
      const status = async (ago: number) => {
        server.cli('DEL', 'jobs')
        push(at(now - ago), at(now))
        return (await oldest(jobs())).status
      }
      expect([await status(minute), await status(minute + 1)]).toEqual(['ok', 'warning'])
      expect([await status(5 * minute), await status(5 * minute + 1)]).toEqual(['warning', 'failed'])
      expectResult(
        await oldest(jobs()),
        '(threshold): list "jobs": oldest item has waited 5 min (warn 1 min, fail 5 min)',
        { measurement: { value: 5 * minute + 1, unit: 'milliseconds' }, address: server.address },
      )
    })
    test('is read at the end from which workers take items', async () => {
      push(at(iso(3 * minute)), at(iso(0)))
      expect(await oldest(jobs())).toMatchObject({ status: 'warning', measurement: { value: 3 * minute } })
      expect(await oldest(jobs({ oldest: 'right' }))).toMatchObject({ measurement: { value: 3 * minute } })
      expect(await oldest(jobs({ oldest: 'left' }))).toMatchObject({ status: 'ok', measurement: { value: 0 } })
    })
    test.each([
      ['ISO 8601', iso(2 * minute)],
      ['ISO 8601 of another zone', new Date(now - 2 * minute + 7_200_000).toISOString().replace('Z', '+02:00')],
      ['seconds', (now - 2 * minute) / 1_000],
      ['seconds with a fraction', (now - 2 * minute) / 1_000 + 0.25],
      ['milliseconds', now - 2 * minute],
      ['seconds in a text', `${(now - 2 * minute) / 1_000}`],
    ])('dates are read as %s', async (_, value) => {
      push(at(value))
      const { status, measurement } = await oldest(jobs())
      expect(status).toBe('warning')
      expect(Math.abs((measurement?.value ?? 0) - 2 * minute)).toBeLessThan(300)
    })
    test('a date deep within an item, and an item that is a date, are found', async () => {
      push({ meta: [{ 'queued at': iso(2 * minute) }] })
      expect(await oldest(jobs({ time: "$.meta[0]['queued at']" }))).toMatchObject({
        measurement: { value: 2 * minute },
      })
      push(String(now))
      expect(await oldest(jobs({ time: '$', oldest: 'left' }))).toMatchObject({ measurement: { value: 0 } })
    })
    test.each([
      ['not JSON', 'Mail 7', 'the oldest item of "jobs" is not JSON, so it has no $.enqueued_at'],
      ['an id, as BullMQ and RQ keep', '5f1c', 'is not JSON'],
      ['nested where the date should be', at([[{ a: 1 }]]), 'has no date at $.enqueued_at: "{…}"'],
      ['without a date', { class: 'Mail' }, 'the oldest item of "jobs" has no $.enqueued_at'],
      ['a date of null', at(null), 'has no date at $.enqueued_at: "null"'],
      [
        'no date',
        at('yesterday'),
        'has no date at $.enqueued_at: "yesterday". Expected ISO 8601, seconds or milliseconds',
      ],
      ['a small number', at(7), 'no date at $.enqueued_at: "7"'],
      ['hostile', at(`${escapeSequences}x\n`), 'no date at $.enqueued_at: '],
      [
        'of the future',
        at(now + 2 * 3_600_000),
        'the oldest item of list "jobs" is dated 2 h ahead of our clock: a clock is wrong, or the time lacks its time zone',
      ],
    ])('an item that is %s is a failure that reports that', async (_, item, message) => {
      push(item)
      const result = await oldest(jobs())
      expect(result).toMatchObject({ status: 'failed', fault: 'data', message: expect.stringContaining(message) })
      expect(JSON.stringify(result)).not.toMatch(/\\u001b|\\u202e/)
    })
    test('a clock that is ahead by up to a minute dates a new item', async () => {
      push(at(now + minute))
      expect(await oldest(jobs())).toMatchObject({ status: 'ok', measurement: { value: 0 } })
      push(at(now + minute + 1))
      expect(await oldest(jobs({ oldest: 'left' }))).toMatchObject({ status: 'failed', fault: 'data' })
    })
    test('an empty queue is ok, and one without configured dates is reported with the setting to add', async () => {
      expect(await oldest(jobs())).toMatchObject({
        status: 'ok',
        message: '"jobs" does not exist, so nothing is waiting',
        measurement: { value: 0 },
      })
      push(at(now))
      expect((await oldest({ key: 'jobs' })).message).toContain(
        '"jobs" is a list: time must be the path of the date in an item',
      )
      expect((await oldest({ key: 'jobs', time: 'score' })).message).toContain(
        '"jobs" is a list: time must be the path',
      )
      server.cli('SET', 'text', 'x')
      expect((await oldest({ key: 'text' })).message).toBe('"text" is not a queue: its type is "string"')
    })
    test('an item that nests too deep is read, and has no date', async () => {
      const [deep, open] = [`'{"enqueued_at":'..string.rep('[',9e4)..string.rep(']',9e4)..'}'`, `string.rep('[',9e5)`]
      // redis-cli takes no such argument.
      server.cli('EVAL', `redis.call('RPUSH', KEYS[1], ${open}, ${deep})`, '1', 'jobs')
      expect((await oldest(jobs())).message).toContain('no date at $.enqueued_at: "{…}"')
      expect((await oldest(jobs({ oldest: 'left' }))).message).toContain('is not JSON')
    })
    test('an item that is too large is reported, and the queues after it are still checked', async () => {
      // redis-cli takes no such argument.
      server.cli('EVAL', "redis.call('LPUSH', KEYS[1], string.rep('x', 2097152))", '1', 'jobs')
      server.cli('LPUSH', 'next', '1')
      const results = await run([jobs(), { key: 'next', time: '$' }])
      expect(results.filter((one) => one.check === check)).toMatchObject([
        {
          status: 'failed',
          fault: 'data',
          message: 'the oldest item of list "jobs" is larger than 1 MiB and was not read, so its age is unknown',
        },
        { status: 'failed', message: '"next" not checked: the previous item ended the connection' },
      ])
      // Earlier commands have been answered.
      expect(checked(results, 'latency').status).toBe('ok')
      expect(await server.left()).toEqual([])
    })
    test('a queue that cannot be dated does not hide the next', async () => {
      push('Mail 7')
      server.cli('LPUSH', 'next', String(now - 2 * minute))
      const results = await run([jobs(), { key: 'next', time: '$' }])
      expect(results.filter((one) => one.check === check).map(({ status }) => status)).toEqual(['failed', 'warning'])
    })
    test('is checked only at Advanced, where age is set, and in the database of the URL', async () => {
      server.cli('-n', '4', 'LPUSH', 'jobs', JSON.stringify(at(now - 2 * minute)))
      const checks = async (...args: Parameters<typeof run>) => (await run(...args)).map((one) => one.check)
      expect(await checks([jobs()], 'Standard')).not.toContain(check)
      expect(await checks([{ key: 'jobs', age: {} }])).not.toContain(check)
      expect(checked(await run([jobs()], 'Advanced', `${server.url}/4`), check).measurement?.value).toBe(2 * minute)
    })
  })

  describe('a stream', () => {
    const add = (ago: number, sequence = 0): string =>
      server.cli('XADD', 'events', `${now - ago}-${sequence}`, 'n', '1')
    const events = { key: 'events' }
    const group = { key: 'events', group: 'workers' }
    const read = (count: number): void => {
      server.cli('XREADGROUP', 'GROUP', 'workers', 'me', 'COUNT', String(count), 'STREAMS', 'events', '>')
    }

    test('is as old as the id of its first entry', async () => {
      add(5 * minute)
      add(minute)
      expect(await oldest(events)).toMatchObject({
        status: 'warning',
        message: 'stream "events": oldest item has waited 5 min (warn 1 min, fail 5 min)',
        measurement: { value: 5 * minute },
      })
      server.cli('XTRIM', 'events', 'MAXLEN', '1')
      expect(await oldest(events)).toMatchObject({ status: 'ok', measurement: { value: minute } })
      server.cli('XTRIM', 'events', 'MAXLEN', '0')
      expect(await oldest(events)).toMatchObject({ status: 'ok', message: 'nothing is waiting in stream "events"' })
    })
    test('is for a group as old as what it has not acknowledged, else as what it has not read', async () => {
      for (const ago of [9, 8, 7, 6]) add(ago * minute)
      server.cli('XGROUP', 'CREATE', 'events', 'workers', '0')
      const waited = async () => (await oldest(group)).measurement?.value
      expect(await waited()).toBe(9 * minute)
      read(2)
      expect(await waited()).toBe(9 * minute)
      server.cli('XACK', 'events', 'workers', `${now - 9 * minute}-0`)
      expect(await waited()).toBe(8 * minute)
      server.cli('XACK', 'events', 'workers', `${now - 8 * minute}-0`)
      expect(await oldest(group)).toMatchObject({
        status: 'failed',
        message: 'stream "events" for the group "workers": oldest item has waited 7 min (warn 1 min, fail 5 min)',
      })
      read(2)
      for (const ago of [7, 6]) server.cli('XACK', 'events', 'workers', `${now - ago * minute}-0`)
      expectResult(await oldest(group), 'ok: nothing is waiting in stream "events" for the group "workers"')
    })
    test('counts what a group has not acknowledged even when the stream has dropped it', async () => {
      add(9 * minute)
      server.cli('XGROUP', 'CREATE', 'events', 'workers', '0')
      read(1)
      server.cli('XTRIM', 'events', 'MAXLEN', '0')
      expect(await oldest(group)).toMatchObject({ status: 'failed', measurement: { value: 9 * minute } })
    })
    test('has ids whose successor is exact, also at the end of a sequence', async () => {
      server.cli('XADD', 'events', `${now - 9 * minute}-18446744073709551615`, 'n', '1')
      server.cli('XGROUP', 'CREATE', 'events', 'workers', '$')
      add(2 * minute, 7)
      expect(await oldest(group)).toMatchObject({ measurement: { value: 2 * minute } })
      server.cli('XGROUP', 'SETID', 'events', 'workers', `${now - 2 * minute}-6`)
      expect(await oldest(group)).toMatchObject({ measurement: { value: 2 * minute } })
      server.cli('XGROUP', 'SETID', 'events', 'workers', `${now - 2 * minute}-7`)
      expect(await oldest(group)).toMatchObject({ message: expect.stringContaining('nothing is waiting') })
    })
    test('whose ids are not times, or without that group, is reported', async () => {
      server.cli('XADD', 'events', '7-1', 'n', '1')
      expectResult(
        await oldest(events),
        'failed (data): the ID "7-1" in the stream "events" is not a time: its writer assigns custom IDs',
      )
      expect((await oldest(group)).message).toBe('the stream "events" has no consumer group "workers"')
      expect((await oldest({ ...events, time: '$.at' })).message).toContain('is a stream, whose IDs contain the times')
    })
    test('of the future is reported', async () => {
      add(-3 * minute)
      expect(await oldest(events)).toMatchObject({ status: 'failed', fault: 'data' })
    })
  })

  describe('a sorted set', () => {
    const later = (more: Partial<Queue> = {}): Queue => ({ key: 'later', time: 'score', ...more })
    const add = (score: number): string => server.cli('ZADD', 'later', String(score), `job ${score}`)

    test('is as old as its lowest score, in seconds or in the configured unit', async () => {
      add(now / 1_000)
      add((now - 2 * minute) / 1_000 + 0.5)
      expect(await oldest(later())).toMatchObject({
        status: 'warning',
        message: 'sorted set "later": oldest item has waited 2 min (warn 1 min, fail 5 min)',
        measurement: { value: 2 * minute - 500 },
      })
      server.cli('DEL', 'later')
      add(now - 6 * minute)
      expectResult(await oldest(later({ scoreUnit: 'milliseconds' })), 'failed', { measurement: { value: 6 * minute } })
    })
    test('whose first item is not due yet is ok', async () => {
      add((now + 2 * minute) / 1_000)
      expect(await oldest(later())).toMatchObject({
        status: 'ok',
        message: 'sorted set "later": nothing is due yet, the first in 2 min',
        measurement: { value: 0 },
      })
    })
    test('whose scores are not times, or times of another unit, is reported', async () => {
      add(7)
      expectResult(await oldest(later()), 'failed (data): …the lowest score of "later", "7", is not a time in seconds…')
      server.cli('DEL', 'later')
      add(now)
      expect((await oldest(later())).message).toContain('are the scores milliseconds (scoreUnit)')
      server.cli('DEL', 'later')
      server.cli('ZADD', 'later', '-inf', 'a')
      expect((await oldest(later())).message).toContain('"-inf", is not a time')
      expect((await oldest(later({ time: '$.at' }))).message).toContain('is a sorted set, whose times are its scores')
    })
  })

  test('only commands that read are ever sent', async () => {
    server.cli('LPUSH', 'list', String(now))
    server.cli('XADD', 'stream', `${now}-0`, 'n', '1')
    server.cli('XGROUP', 'CREATE', 'stream', 'g', '0')
    server.cli('XREADGROUP', 'GROUP', 'g', 'me', 'STREAMS', 'stream', '>')
    server.cli('ZADD', 'zset', String(now / 1_000), 'a')
    await using watcher = await proxy(server.port, 0)
    const queues: readonly Queue[] = [
      { key: 'list', time: '$' },
      { key: 'stream' },
      { key: 'stream', group: 'g' },
      { key: 'zset', time: 'score' },
    ]
    const results = await run(queues, 'Advanced', `redis://127.0.0.1:${watcher.port}`)
    expect(results.filter((one) => one.check === check).map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok'])
    const commands = [...watcher.input().matchAll(/\*\d+\r\n\$\d+\r\n([A-Z]+)\r\n/g)].map(([, name]) => name)
    const reads = ['PING', 'INFO', 'TYPE', 'LLEN', 'XLEN', 'XINFO', 'ZCARD', 'LINDEX', 'XRANGE', 'XPENDING', 'ZRANGE']
    expect(new Set(commands)).toEqual(new Set(reads))
  })
})
