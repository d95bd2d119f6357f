import { expect, test } from 'vitest'
import { boundedText, headlineOf, worstFirst } from '../../../src/core/watch/notify/receivers/message.ts'
import { notice } from '../../support/notify/notice.ts'

test('M5 a text has at most 1 KiB, cut between characters', () => {
  for (const character of ['a', 'é', '語', '😀', '\uFFFD']) {
    const text = boundedText(character.repeat(1_500))
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_024)
    expect(Buffer.byteLength(text)).toBeGreaterThan(990)
    expect(text.replaceAll(character, '')).toBe('…')
  }
  expect(boundedText('short')).toBe('short')
})

test('M19 failures precede warnings, and warnings what is over, each in their order', () => {
  const all = [
    notice({ id: 'over', what: 'end' }),
    notice({ id: 'warning 1', level: 'warning' }),
    notice({ id: 'failed 1' }),
    notice({ id: 'warning 2', level: 'warning' }),
    notice({ id: 'removed', what: 'removed' }),
    notice({ id: 'failed 2' }),
  ]
  const order = ['failed 1', 'failed 2', 'warning 1', 'warning 2', 'over', 'removed']
  expect(worstFirst(all).map(({ id }) => id)).toEqual(order)
  expect(headlineOf(worstFirst(all), 'full')).toBe(
    'FAILED: Sql/postgres orders: connect: 10.0.0.7:5432 refused the connection (+1 failed, 2 warnings, 1 recovered, 1 removed)',
  )
})

test('M19 the first 60 characters name the monitor and what is wrong, and the counts are seen however long that is', () => {
  const long = notice({ text: 'x'.repeat(900) })
  expect(headlineOf([long, notice()], 'full')).toMatch(/^FAILED: Sql\/postgres orders: connect: x{79}… \(\+1 failed\)$/)
  expect(headlineOf([notice()], 'classes')).toBe('FAILED: Sql/postgres orders: connect: refused')
})
