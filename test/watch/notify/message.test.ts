import { expect, test } from 'vitest'
import { boundedText } from '../../../src/core/watch/notify/receivers/message.ts'

test('M5 a text has at most 1 KiB, cut between characters', () => {
  for (const character of ['a', 'é', '語', '😀', '\uFFFD']) {
    const text = boundedText(character.repeat(1_500))
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_024)
    expect(Buffer.byteLength(text)).toBeGreaterThan(990)
    expect(text.replaceAll(character, '')).toBe('…')
  }
  expect(boundedText('short')).toBe('short')
})
