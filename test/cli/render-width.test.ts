import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { table } from '../../src/cli/render/table.ts'
import { cut, padEnd, width, wrap } from '../../src/cli/render/width.ts'

describe('the width of text', () => {
  // The second figure is where tmux 3.3a puts its cursor after printing the text.
  test.each([
    ['abc', 3],
    ['日本語', 6],
    ['한국어', 6],
    ['ﾊﾝｶｸ', 4],
    ['e\u0301', 1],
    ['👩\u200d👩\u200d👧', 2],
    ['🇩🇪', 2],
    ['✓✗…·', 4],
    ['ไทย', 3],
    ['ที่', 1],
    ['हिन्दी', 5],
    ['தமிழ்', 4],
    ['العربية', 7],
    ['שָׁלוֹם', 4],
    ['\u1112\u1161\u11ab', 2],
    ['①⚠', 2],
  ])('%s takes %i columns', (text, columns) => {
    expect(width(text)).toBe(columns)
  })
})

const segmenter = new Intl.Segmenter()
const signs = (text: string): number => Array.from(segmenter.segment(text)).length

describe('wrapping', () => {
  test.each([
    ['between words', 'one two three', 8, ['one two', 'three']],
    [
      'a long word after a sign',
      'postgres orders-replica-eu-central',
      16,
      ['postgres', 'orders-replica-', 'eu-central'],
    ],
    ['a long word where it must', 'x abcdefghij', 4, ['x', 'abcd', 'efgh', 'ij']],
    ['text without spaces', 'サービスが応答しません', 10, ['サービスが', '応答しませ', 'ん']],
    ['nothing that fits', 'a  b', 10, ['a  b']],
    ['never between a figure and its unit', 'free disk 95 % of', 13, ['free disk', '95 % of']],
    ['nor where a bracket follows', 'it took (over 3 s), so', 16, ['it took (over', '3 s), so']],
    [
      'nor between a threshold and its value',
      'in 2 ms (warn 1 s, fail 5 s)',
      15,
      ['in 2 ms', '(warn 1 s,', 'fail 5 s)'],
    ],
    ['nor within a lower threshold', '9 % (warn below 20 %)', 17, ['9 %', '(warn below 20 %)']],
    ['nor of large ones', 'has 10.2 GiB free', 8, ['has', '10.2 GiB', 'free']],
    ['between them where no line holds both', '10.2 GiB', 5, ['10.2', 'GiB']],
    ['before a word that only begins like a unit', 'all 3 servers', 6, ['all 3', 'server', 's']],
    ['to a width that no sign fits', '日本', 1, ['日', '本']],
  ])('breaks %s', (_, text, columns, lines) => {
    expect(wrap(text, columns)).toEqual(lines)
  })

  test('loses nothing but spaces, and no line is too wide', () => {
    const text = fc.oneof(fc.string({ unit: 'grapheme' }), fc.string()).map((any) => any.replace(/\s+/g, ' ').trim())
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 30 }), (line, columns) => {
        const lines = wrap(line, columns)
        expect(lines.join('').replaceAll(' ', '')).toBe(line.replaceAll(' ', ''))
        // Some single signs are wider than two columns, and nothing splits them.
        for (const each of lines) if (signs(each) > 1) expect(width(each)).toBeLessThanOrEqual(columns)
      }),
    )
  })
})

test('truncation ends in the mark, keeps to the width and never splits a character', () => {
  expect(cut('abcdef', 6, '…')).toBe('abcdef')
  expect(cut('abcdef', 5, '…')).toBe('abcd…')
  expect(cut('日本語', 5, '…')).toBe('日本…')
  expect(cut('日本語', 4, '…')).toBe('日…')
  expect(cut('a👩\u200d👩\u200d👧b', 3, '…')).toBe('a…')
})

test('padding counts columns, not characters', () => {
  expect(padEnd('日本', 6)).toBe('日本  ')
  expect(padEnd('too long', 3)).toBe('too long')
})

describe('a table', () => {
  const columns = [{ title: 'A' }, { title: 'B' }]
  const rows = [
    [[{ text: '日本' }], [{ text: 'one two three four' }]],
    [[{ text: 'x' }], [{ text: 'y' }, { text: 'z', inset: 2 }]],
  ]
  const draw = (available: number) =>
    table(columns, rows, { width: available, shrink: [{ columns: [1], least: 8 }], paint: (_, text) => text })

  test('is as wide as its text when there is room', () => {
    expect(draw(80)).toEqual({
      lines: ['  A      B', '  日本   one two three four', '  x      y', '           z'],
      width: 27,
    })
  })

  test('wraps the columns that may shrink, then narrows its gaps, then becomes blocks', () => {
    expect(draw(20)?.lines).toEqual([
      '  A      B',
      '  日本   one two',
      '         three four',
      '  x      y',
      '           z',
    ])
    expect(draw(16)?.lines[0]).toBe('  A     B')
    expect(draw(15)).toBeUndefined()
  })
})
