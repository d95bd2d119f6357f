import { expect, test } from 'vitest'
import type { Threshold, Values } from '../../../src/core/base/settings/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import { oldestItem } from '../../../src/core/checks/kinds/redis/queues.ts'
import { checked, evaluated, runKind, secret, withDefaults } from '../../support/engine/run-kind.ts'
import { peer } from '../../support/faults/faults.ts'

const minute = 60_000
const now = Date.UTC(2026, 0, 14, 2)
const check = 'oldest item'
const age = { warn: minute, limit: 5 * minute }
type QueueSettings = NonNullable<Values<typeof oldestItem.settings>['queues']>[number]
type Queue = Partial<QueueSettings> & { readonly key: string }
const asQueues = (queues: readonly Queue[]): readonly QueueSettings[] =>
  queues.map((queue) => ({ length: {}, age, ...queue }))
const date = () => new Date(now)

test('an item does not bring the configured password into a message (simulated)', async () => {
  const word = 'correct-horse-7'
  await using there = await peer((socket) => {
    const answers: readonly (readonly [string, string])[] = [
      ['TYPE', '+list\r\n'],
      ['LINDEX', `$${word.length + 9}\r\n{"at":"${word}"}\r\n`],
      ['LLEN', ':1\r\n'],
      ['INFO', '$11\r\nrole:master\r\n'],
      ['PING', '+PONG\r\n'],
    ]
    socket.on('data', (chunk) => {
      const request = chunk.toString('latin1')
      socket.write(answers.find(([name]) => request.includes(name))?.[1] ?? '+OK\r\n')
    })
  })
  const url = `redis://127.0.0.1:${there.port}`
  const queues = asQueues([{ key: 'jobs', time: '$.at' }])
  const result = await runKind(redis, { url, password: secret(word), queues }, 'Advanced', { date })
  expect(checked(result, check).message).toContain('no date at $.at: "[secret]"')
  expect(JSON.stringify(result)).not.toContain(word)
})

test('a value at the boundary is ok, also where there is only one value', () => {
  const status = (ms: number, threshold: Threshold): string | undefined => {
    const observation = { type: 'list', at: now - ms, now }
    return evaluated(oldestItem, { key: 'k', group: undefined, threshold, observation })[0]?.status
  }
  expect([status(5, { limit: 5 }), status(6, { limit: 5 })]).toEqual(['ok', 'failed'])
  expect([status(5, { warn: 5 }), status(6, { warn: 5 })]).toEqual(['ok', 'warning'])
})

test('settings of a queue that exclude each other are reported', () => {
  const invalid = (queue: Partial<Queue>): string | undefined =>
    redis.validate?.(withDefaults(redis.settings, { url: 'redis://h', queues: [{ key: 'q', length: {}, ...queue }] }))
  expect(invalid({ age })).toBeUndefined()
  expect(invalid({ age, group: 'g' })).toBeUndefined()
  expect(invalid({ age, time: '$.at', oldest: 'left' })).toBeUndefined()
  expect(invalid({ age, time: 'score', scoreUnit: 'milliseconds' })).toBeUndefined()
  expect(invalid({ time: '$.at' })).toBe('the queue "q" has time without age: set the maximum age, such as age: 5m')
  expect(invalid({ age, group: 'g', time: '$.at' })).toContain('has both group and time')
  expect(invalid({ age, oldest: 'left' })).toContain('has oldest without time')
  expect(invalid({ age, time: 'score', oldest: 'left' })).toContain('has both time: score and oldest')
  expect(invalid({ age, time: '$.at', scoreUnit: 'seconds' })).toContain('scoreUnit, which requires time: score')
  expect(invalid({ age, time: 'enqueued_at' })).toBe(
    'the queue "q": time "enqueued_at" must be score or a JSON path such as $.enqueued_at',
  )
})
