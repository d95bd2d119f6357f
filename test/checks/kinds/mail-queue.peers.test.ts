import { expect, test } from 'vitest'
import {
  parseExim,
  parsePostqueue,
  QueuePermissionError,
  queue,
} from '../../../src/core/checks/kinds/mail-queue/index.ts'
import { checked, evaluated } from '../../support/engine/run-kind.ts'
import { escapeSequences } from '../../support/faults/faults.ts'
import {
  eximQueueMissing,
  postfixQueueMissing,
  type QueueServer,
  queueResults,
} from '../../support/servers/mail-queue.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const servers: readonly (readonly [QueueServer, string | undefined])[] = [
  ['postfix', postfixQueueMissing],
  ['exim', eximQueueMissing],
]
for (const [server, missing] of servers) {
  peerSuite(missing, `mail-queue with ${server}`, () => {
    test('an empty queue is ok', () => {
      const results = queueResults(server, 'empty')
      expect(checked(results, 'queue')).toMatchObject({ status: 'ok', measurement: { value: 0, unit: 'count' } })
      expect(checked(results, 'oldest message')).toMatchObject({ status: 'ok' })
    }, 60_000)
    test('messages that cannot be delivered are counted, and the oldest has an age', () => {
      const results = queueResults(server, 'three', { settings: { messages: { warn: 1, limit: 2 } } })
      expect(checked(results, 'queue')).toMatchObject({ status: 'failed', measurement: { value: 3, limit: 2 } })
      expect(checked(results, 'oldest message')).toMatchObject({ status: 'ok', measurement: { unit: 'milliseconds' } })
      expect(checked(results, 'oldest message').message).toMatch(/^message \S+ has waited /)
    }, 60_000)
    test('H10 an account that may not read the queue checks nothing, and svc names the group to join', () => {
      const results = queueResults(server, 'empty', { asOther: true })
      expect(results).toMatchObject([{ check: 'queue', status: 'failed', notChecked: 'permission' }])
      expect(results[0]?.message).toContain('usermod -aG')
    }, 60_000)
  })
}

peerSuite(postfixQueueMissing, 'mail-queue with Postfix that has ended', () => {
  test('fails, and names the reason for which the oldest message waits', () => {
    const results = queueResults('postfix', 'down')
    expect(checked(results, 'queue')).toMatchObject({ status: 'failed', fault: 'refused', measurement: { value: 1 } })
    expect(checked(results, 'oldest message').details).toEqual([expect.stringContaining('Connection refused')])
  }, 60_000)
})

peerSuite(eximQueueMissing, 'mail-queue with Exim', () => {
  test('a message with a damaged envelope counts as waiting', () => {
    expect(checked(queueResults('exim', 'damaged'), 'queue')).toMatchObject({ status: 'ok', measurement: { value: 3 } })
  }, 60_000)
})

test('a queue that is old is a warning (simulated)', () => {
  const waiting = { messages: 1, oldest: { id: 'A', ageMs: 5 * 3_600_000 }, isDown: false }
  expect(evaluated(queue, waiting, { server: 'exim' })).toMatchObject([
    { check: 'queue', status: 'ok' },
    { check: 'oldest message', status: 'warning' },
  ])
  const refused = new QueuePermissionError('no')
  expect(evaluated(queue, refused, { server: 'postfix' })).toMatchObject([{ notChecked: 'permission' }])
})

test('the listing of Exim is read with its units, and frozen messages are named', () => {
  const listing = [
    '25m  2.9K 0t5C6f-0000c8-00 <alice@example.org>',
    '          bob@example.org',
    '',
    ' 4d  1.2K 1uXyZ0-0001ab-2c <> *** frozen ***',
    '        D gone@example.org',
    '',
  ].join('\n')
  const day = 86_400_000
  expect(parseExim(listing, new Date())).toEqual({
    messages: 2,
    oldest: { id: '1uXyZ0-0001ab-2c', ageMs: 4 * day, reason: 'the message is frozen' },
  })
  expect(parseExim('', new Date())).toEqual({ messages: 0, oldest: undefined })
})

test('the listing of Postfix is read line by line, and text of mail is bounded', () => {
  const line = (id: string, at: number, reason: string) =>
    `${JSON.stringify({ queue_name: 'deferred', queue_id: id, arrival_time: at, recipients: [{ delay_reason: reason }] })}\n`
  const answer = parsePostqueue(
    `${line('A', 900, 'x')}${line('B', 100, escapeSequences.repeat(500))}`,
    new Date(1_000_000),
  )
  expect(answer).toMatchObject({ messages: 2, oldest: { id: 'B', ageMs: 900_000 } })
  expect(answer.oldest?.reason?.length).toBeLessThan(400)
  expect(JSON.stringify(answer)).not.toMatch(/\\u001b|\\u0007/)
})

test('output other than a listing is an error and not an empty queue', () => {
  for (const output of ['mailq: command not found\n', '{"queue_id":"A"}\n', '{"queue_id":"A","arrival_time":"x"}\n'])
    expect(() => parsePostqueue(output, new Date())).toThrow('postqueue does not print a message')
  expect(() => parseExim('exim: something else\n', new Date())).toThrow('exim does not print a queue')
})
