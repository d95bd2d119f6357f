import type { Range } from '../protocol/index.ts'

/**
 * Patterns of the dates and durations that requests may hold. They need no lookahead, so that every regular expression
 * engine reads them.
 */

const leapYear = '(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)'
const dayOfYear = [
  '\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])',
  '\\d{4}-(?:0[13-9]|1[0-2])-(?:29|30)',
  '\\d{4}-(?:0[13578]|1[02])-31',
  `${leapYear}-02-29`,
].join('|')
const timeOfDay = '[T ](?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:[.,]\\d{1,9})?)?(?:Z|[+-]\\d\\d:?\\d\\d)?'
/** Milliseconds up to the last date of ECMAScript, 8.64e15. */
const instant = '-?(?:\\d{1,15}|[0-7]\\d{15}|8[0-5]\\d{14}|86[0-3]\\d{13}|8640{13})'

/** `/Date(ms)/` with or without an offset, or ISO 8601 with a year of four digits (N3). */
export const anyDate = `^(?:/Date\\(${instant}(?:[+-]\\d{4})?\\)/|(?:${dayOfYear})(?:${timeOfDay})?)$`

const hours = '(?:1\\d|2[0-3]|[1-9])H'
const minutes = '(?:[1-5]\\d|[1-9])M'
const seconds = '(?:[1-5]\\d|[1-9])(?:\\.\\d{1,9})?S'
const clock = `(?:${hours}(?:${minutes})?(?:${seconds})?|${minutes}(?:${seconds})?|${seconds})`

const dayMs = 86_400_000
const units = [
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1_000],
] as const

/**
 * Durations as in ISO 8601, within the bounds: with their parts carried over (`P1DT2H`), or in one unit (`PT300S`).
 * Without bounds, any whose parts are carried over. Other spellings that svc reads, such as `01:30:00`, are not
 * described.
 */
export function anyDuration({ min = 0, max = 10_000_000 * dayMs }: Range): string {
  const days = max / dayMs
  const below = `P(?:(?:${upTo(days - 1)})D(?:T${clock})?|T${clock}|(?:${upTo(days)})D)`
  const single = units.map(([unit, ms]) => `PT(?:${upTo(max / ms)})${unit}`)
  return `^(?:${[below, ...single, ...(min === 0 ? ['PT0S', 'PT0\\.\\d{1,9}S'] : [])].join('|')})$`
}

/** A pattern for the whole numbers from 1 to `most`, without leading zeros. */
export function upTo(most: number): string {
  const digits = String(most)
  const shorter = digits.length === 1 ? [] : [digits.length === 2 ? '[1-9]' : `[1-9]\\d{0,${digits.length - 2}}`]
  const sameLength = Array.from(digits).flatMap((digit, at) => {
    const lowest = at === 0 ? 1 : 0
    const rest = digits.length - at - 1
    const lower = Number(digit) - 1
    if (lower < lowest) return []
    const choice = lower === lowest ? String(lowest) : `[${lowest}-${lower}]`
    return [`${digits.slice(0, at)}${choice}${rest === 0 ? '' : rest === 1 ? '\\d' : `\\d{${rest}}`}`]
  })
  return [...shorter, ...sameLength, digits].join('|')
}

/** The characters of the Unicode categories that patterns name, as ranges. Cs is missing: JSON text has no lone surrogates. */
const categories: Readonly<Record<string, string>> = {
  Cc: '\\u0000-\\u001f\\u007f-\\u009f',
  Cf: [
    '\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f',
    '\\ufeff\\ufff9-\\ufffb\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0001}\u{e0020}-\u{e007f}',
  ].join(''),
  Cs: '',
  Default_Ignorable_Code_Point: [
    '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff',
    '\\uffa0\\ufff0-\\ufff8\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}',
  ].join(''),
  Zl: '\\u2028',
  Zp: '\\u2029',
}

/** A pattern without the names of categories, which regular expressions of Python do not know. */
export const portable = ({ source }: RegExp): string =>
  source
    .replace(/\\p\{(\w+)\}/g, (written, name: string) => categories[name] ?? written)
    // U+FEFF is a space in JavaScript only.
    .replaceAll('\\S', '[^\\s\\ufeff]')
