import { expect, test } from 'vitest'
import {
  parseExim,
  parsePostqueue,
  QueuePermissionError,
  queue,
} from '../../../src/core/checks/kinds/mail-queue/index.ts'
import { evaluated } from '../../support/engine/run-kind.ts'
import { escapeSequences } from '../../support/faults/faults.ts'

test('a queue that is old is a warning (simulated)', () => {
  const waiting = { messages: 1, oldest: { id: 'A', ageMs: 5 * 3_600_000 }, isDown: false }
  expect(evaluated(queue, { ...waiting, isDown: true }, { server: 'postfix' })[0]).toMatchObject({ fault: 'refused' })
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
