import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { patternMismatch } from '../../../src/core/checks/assert/expectation.ts'
import { isLinear, linearTest } from '../../../src/core/checks/assert/linear-pattern.ts'
import { excessiveGrowth, ofSize } from '../../support/hostile/growth.ts'

const isValid = (source: string, flags: string): boolean => {
  try {
    new RegExp(source, flags)
    return true
  } catch {
    return false
  }
}

describe('RE2 decides as JavaScript does', () => {
  // Characters that the two tell apart, or write differently.
  const char = fc.constantFrom(
    ...'abABkKsSzZäÄßÿµ\u212a\u017f0159_- .,:]}\r\n\t\v\f\u2028\u00a0\ufeff\b\0😀é',
    '\ud83d',
    '\ude00',
  )
  const simple = fc.constantFrom(
    ...String.raw`a b K s ä Ä ß é 😀 0 _ - , : ] } { z Q E ÿ µ \d \D \w \W \s \S \b \B \t \n \r \v \f \0 \cJ \x41`.split(
      ' ',
    ),
    ...String.raw`\u0041 \u{41} \ud83d \. \- \/ \_ \A \z \Q \C \a \e \pL \p{L} \X41 \CJ . ^ $ [[:alpha:]] [] [^]`.split(
      ' ',
    ),
    ...String.raw`[\b] \1 \k<n> \07 \ä \😀`.split(' '),
    ' ',
  )
  const member = fc.constantFrom(
    ...String.raw`a b-k A-Z a-z 0-9 _ - ä Ä-Ö \d \W \s \S \n \b \] ^ [ . \x00-\x7f À-þ 😀 \ud83d \u2028 [:alpha:`.split(
      ' ',
    ),
    ...String.raw`\w-z !-- +-\d \- &&`.split(' '),
    ' -~',
    '\0-\uffff',
  )
  const group = fc
    .tuple(fc.constantFrom('', '^'), fc.array(member, { maxLength: 4 }))
    .map(([negation, members]) => `[${negation}${members.join('')}]`)
  const { pattern } = fc.letrec<{ pattern: string; branch: string; atom: string }>((tie) => ({
    pattern: fc.array(tie('branch'), { minLength: 1, maxLength: 3 }).map((branches) => branches.join('|')),
    branch: fc
      .array(
        fc
          .tuple(
            tie('atom'),
            fc.constantFrom('', '', '', '', '*', '+', '?', '*?', '+?', '{2}', '{0,2}', '{1,}?', '{,2}'),
          )
          .map(([atom, repeat]) => atom + repeat),
        { maxLength: 4 },
      )
      .map((atoms) => atoms.join('')),
    atom: fc.oneof(
      { maxDepth: 3 },
      { weight: 5, arbitrary: simple },
      { weight: 2, arbitrary: group },
      {
        weight: 2,
        arbitrary: fc
          .tuple(fc.constantFrom('(', '(?:', '(?<n>', '(?=', '(?<!', '(?i:'), tie('pattern'))
          .map(([start, inner]) => `${start}${inner})`),
      },
    ),
  }))
  const flags = fc.subarray(['i', 'm', 's', 'u']).map((some) => some.join(''))

  test('about any pattern that it runs, and any text', () => {
    let judged = 0
    fc.assert(
      fc.property(
        pattern,
        flags,
        fc.array(fc.array(char, { maxLength: 6 }), { minLength: 8, maxLength: 8 }),
        (source, flag, texts) => {
          fc.pre(isValid(source, flag))
          const run = linearTest(source, flag)
          if (!run) return
          judged += 1
          for (const text of texts.map((chars) => chars.join(''))) {
            expect([source, flag, text, run(text)]).toEqual([source, flag, text, new RegExp(source, flag).test(text)])
          }
        },
      ),
      { numRuns: process.env.SVC_PROVE === '1' ? 100_000 : 3_000 },
    )
    expect(judged).toBeGreaterThan(500)
  })

  test.each([
    ['^OK$', 'm', 'HELO\r\nOK\r\n'],
    ['^a.b$', '', 'a\rb'],
    ['\\s', '', '\u00a0'],
    ['k', 'i', '\u212a'],
    ['GRÖSSE', 'i', 'größe grösse'],
    ['^..$', '', '😀'],
    ['^.$', 'u', '😀'],
    ['\\d{2,}', '', '٣٣'],
    ['^[^]{3}$', '', 'a😀'],
  ])('about /%s/%s in %j', (source, flag, text) => {
    expect(linearTest(source, flag)?.(text)).toBe(new RegExp(source, flag).test(text))
  })
})

test.each([
  ['a look-ahead', '(?=a)a', ''],
  ['a look-behind', '(?<!a)b', ''],
  ['a back-reference', '(a)\\1', ''],
  ['a named back-reference', '(?<n>a)\\k<n>', ''],
  ['flags within the pattern', '(?i:a)', ''],
  ['classes of Unicode', '\\p{L}', 'u'],
  ['a line within a group', '(^a)', 'm'],
  ['more repeats than RE2 takes', 'a{1001}', ''],
  ['repeats of repeats', '(?:[ab]{1,100}){1,100}', ''],
  ['a program that is too large', '(?:(?:a|b|c){0,30}a){0,30}', ''],
])('RE2 does not run %s', (_, source, flag) => {
  expect(isValid(source, flag)).toBe(true)
  expect(isLinear(source, flag)).toBe(false)
  expect(linearTest(source, flag)).toBeUndefined()
})

describe('a pattern on hostile text', () => {
  // A text holds all literals of its pattern, so that no search for them decides.
  const patterns = [
    ['(a+)+$', '', 'a', '!'],
    ['^(a|aa)+$', '', 'a', '!'],
    ['(x+x+)+y', 'y', 'x', 'z'],
    ['[\\s\\S]*ready[\\s\\S]*never', 'never', 'ready ', '!'],
    ['(.*)(.*)(.*)(.*)=[zy]', '', '= ', '!'],
    ['(\\w+\\s?)+!$', '', 'ab ', '? !?'],
    ['(?:a|b)*a(?:a|b){12}[cd]', '', 'abaab', '!'],
    ['\\s+$', '', ' ', 'x'],
  ] as const

  test.each(patterns)('%s is judged on 64 KiB', (pattern, lead, unit, end) => {
    const text = ofSize({ lead, unit, end }, 65_000)
    expect(patternMismatch(text, pattern)).toBe(`does not match ${pattern}`)
  })

  test.each(patterns)(
    '%s takes time that grows as the text does',
    async (pattern, lead, unit, end) => {
      const matches = linearTest(pattern, '')
      expect(matches).toBeDefined()
      const growth = await excessiveGrowth(
        (text) => matches?.(text),
        (size) => ofSize({ lead, unit, end }, size),
        [1e3, 1e4, 1e5],
      )
      expect(growth).toBeUndefined()
    },
    60_000,
  )

  test('a pattern sees what stands far beyond the first 2,000 characters', () => {
    expect(patternMismatch(`${'line\n'.repeat(10_000)}status: ready\n`, '/^status: ready$/m')).toBeUndefined()
  })
})
