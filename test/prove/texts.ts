import fc from 'fast-check'
import { codePoints } from '../support/suite/code-points.ts'

/** A text as the bytes of its UTF-8, one character each: what goes over the wire is built of such strings. */
export const utf8 = (text: string): string => Buffer.from(text).toString('latin1')

const odd = [
  ...['', ' ', '  ', ' a ', '"', '""', "'", ',', ':', ';', '=', '&', '+', '#', '?', '/', '\\', '..', '../..', '.', '%'],
  ...['{', '}', '[', ']', '{}', '[]', '[a', '[a,', '{a:b}', '{a:', '{:}', '["a,b"]', '[[a]]', '{a:{b:c}}', '""a""'],
  ...['null', 'undefined', 'true', 'False', 'on', 'NaN', 'Infinity', '-0', '007', '1e3', '1e400', '-1', '0x10'],
  ...['9007199254740993', '99999999999999999999', '1.5', '.5', '5.', '٣', '1 ', '+1'],
  ...[
    '/Date(0)/',
    '/Date(99999999999999999999)/',
    '/Date(8640000000000001)/',
    '/Date(-1+9999)/',
    '2026-02-30',
    '0000-00-00',
  ],
  ...['PT0S', 'P99999999999D', '-PT5S', 'P', 'PT', 'P1Y', '1.00:00:01', '99999999:99:99', 'PT0.00000001S'],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'then', 'length', '0'],
  ...[
    '\0',
    '\r\n',
    '\n',
    '\t',
    '\x1b[31m',
    '\x7f',
    '\u0085',
    '\u2028',
    '\u2029',
    '\ufeff',
    '\u202e',
    '\u200b',
    '\ufffe',
  ],
  ...['é', 'e\u0301', 'ß', 'ẞ', 'İ', 'ı', 'K', 'ﬀ', '😀', '\ud83d', '\ude00', '日本', 'ᄀ', '￿', '𝐀𝐧𝐧'],
  ...['=1+1', '<script>alert(1)</script>', "' OR 1=1 --", '#{7*7}', '%s%n', '`id`', '$(id)', 'javascript:0'],
]

/** Texts of all sorts, some longer than anything is allowed to be. */
export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...odd) },
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
  { weight: 2, arbitrary: fc.string({ unit: codePoints, maxLength: 12 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom('a', 'é', '😀', '"', '%41', '[', '{', ','),
        fc.constantFrom(51, 128, 129, 257, 1_025, 5_000),
      )
      .map(([unit, count]) => unit.repeat(count)),
  },
)

/** Unexpected JSON values. */
export const strange: fc.Arbitrary<unknown> = fc.oneof(
  text,
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e300, [], {}, [null], [[]], [{}], { a: null }, ['']),
  fc.jsonValue({ maxDepth: 3 }),
  fc.integer({ min: 1, max: 60 }).map((depth) => nested(depth)),
  fc.constantFrom(255, 256, 257, 2_000).map((count) => Array.from({ length: count }, (_, i) => `r${i % 20}`)),
  fc
    .constantFrom(63, 64, 65, 500)
    .map((count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))),
)

const nested = (depth: number): unknown =>
  depth === 0 ? 1 : depth % 2 === 0 ? [nested(depth - 1)] : { a: nested(depth - 1) }

/** The same letters, some of them in the other case. */
export const inOddCase = (text: string): fc.Arbitrary<string> =>
  fc
    .bigInt({ min: 0n, max: (1n << BigInt(text.length)) - 1n })
    .map((flips) => [...text].map((letter, i) => ((flips >> BigInt(i)) & 1n ? swapped(letter) : letter)).join(''))

const swapped = (letter: string): string =>
  letter === letter.toUpperCase() ? letter.toLowerCase() : letter.toUpperCase()

/** Now and then what is rare, else what is usual. */
export const mostly = <T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>, weight = 6): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: rare })
