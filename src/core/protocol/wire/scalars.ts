import type { Choice, Duration, Flag, Instant, Num, Schema, Text } from '../index.ts'
import { fold } from './fields.ts'

/** Dates as ServiceStack writes and reads them (N3). The milliseconds are the instant; an offset is never added. */

/**
 * A JSON string token with escaped slashes: the only suffixed form in which every .NET reader sees the correct
 * instant.
 */
export const jsonDate = (date: Date): string =>
  `"\\/Date(${date.getTime()}${date instanceof OffsetDate ? date.offset : '-0000'})\\/"`

/** A date that was written with an offset from UTC other than zero. Its time is an instant, as in any Date. */
export class OffsetDate extends Date {
  /** `-0500`: the clock of the sender, for display. */
  readonly offset: string

  constructor(ms: number, offset: string) {
    super(ms)
    this.offset = offset
  }

  /** The instant if the sender wrote its wall clock as if that were UTC, as ServiceStack does before 6.11. */
  readAsWallClock(): OffsetDate {
    const [, sign, hours, minutes] = /^([+-])(\d\d)(\d\d)$/.exec(this.offset) ?? []
    const ahead = (Number(hours) * 60 + Number(minutes)) * minuteMs
    return new OffsetDate(this.getTime() + (sign === '-' ? ahead : -ahead), this.offset)
  }
}

/**
 * ISO 8601 in UTC, with milliseconds only if they are not zero: `2026-11-20T12:00:00Z`.
 *
 * @example
 * ```ts
 * isoDate(new Date(1_700_000_000_500)) // '2023-11-14T22:13:20.500Z'
 * ```
 */
export const isoDate = (date: Date): string => date.toISOString().replace('.000Z', 'Z')

const epochDate = /^\\?\/Date\((-?\d{1,16})([+-]\d{4})?\)\\?\/$/
const isoText =
  /^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:(Z)|([+-])(\d\d):?(\d\d))?)?$/i
const minuteMs = 60_000

/**
 * Reads `/Date(ms)/` and `/Date(ms±hhmm)/`, with slashes escaped or not, and ISO 8601 (UTC without a zone; digits
 * finer than milliseconds are cut). Undefined for other text, or a day or time that does not exist.
 *
 * @example
 * ```ts
 * readDate('/Date(1000)/') // new Date(1000)
 * readDate('2026-02-31') // undefined
 * ```
 */
export const readDate = (text: string): Date | undefined => {
  const epoch = epochDate.exec(text)
  if (epoch) {
    const [, ms, offset = '-0000'] = epoch
    return valid(offset.endsWith('0000') ? new Date(Number(ms)) : new OffsetDate(Number(ms), offset))
  }
  const iso = isoText.exec(text)
  if (!iso) return undefined
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', , sign, zoneHour, zoneMinute] =
    iso
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0')
  const clock = valid(new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}.${milliseconds}Z`))
  // JavaScript reads 31 February as 3 March.
  if (clock?.getUTCDate() !== Number(day)) return undefined
  const offset = sign === undefined ? 0 : (Number(zoneHour) * 60 + Number(zoneMinute)) * (sign === '-' ? -1 : 1)
  return valid(new Date(clock.getTime() - offset * minuteMs))
}

const valid = (date: Date): Date | undefined => (Number.isNaN(date.getTime()) ? undefined : date)

/**
 * Durations (N4). In memory they are milliseconds with at most four decimals: the wire's unit is the tick of 100 ns.
 */

const ticksPerMs = 10_000
const ticksPerSecond = 1000 * ticksPerMs
const secondsPerDay = 86_400

/**
 * XSD: `P[nD][T[nH][nM][n[.fffffff]S]]`, without zero parts. Zero is `PT0S`; minus five seconds is `-PT5S`.
 *
 * @example
 * ```ts
 * writeDuration(1500) // 'PT1.5S'
 * ```
 */
export const writeDuration = (ms: number): string => {
  const ticks = Math.round(Math.abs(ms) * ticksPerMs)
  if (ticks === 0) return 'PT0S'
  const wholeSeconds = Math.floor(ticks / ticksPerSecond)
  const part = (count: number, unit: string) => (count === 0 ? '' : `${count}${unit}`)
  const fraction = String(ticks % ticksPerSecond)
    .padStart(7, '0')
    .replace(/0{1,7}$/, '')
  const seconds = wholeSeconds % 60
  const clock =
    part(Math.floor((wholeSeconds % secondsPerDay) / 3600), 'H') +
    part(Math.floor((wholeSeconds % 3600) / 60), 'M') +
    (fraction === '' ? part(seconds, 'S') : `${seconds}.${fraction}S`)
  const days = part(Math.floor(wholeSeconds / secondsPerDay), 'D')
  return `${ms < 0 ? '-' : ''}P${days}${clock === '' ? '' : `T${clock}`}`
}

const xsd =
  /^(-)?P(?=[\dT])(?:(\d{1,8})D)?(?:T(?=\d)(?:(\d{1,10})H)?(?:(\d{1,12})M)?(?:(\d{1,14})(?:\.(\d{1,9}))?S)?)?$/
const clock = /^(-)?(?:(\d{1,8})\.)?(\d{1,2}):(\d\d):(\d\d)(?:\.(\d{1,9}))?$/

/**
 * Milliseconds from XSD, `hh:mm:ss[.f]` or `d.hh:mm:ss[.f]`; digits finer than a tick are cut. Undefined for other
 * text, including years and months, which have no fixed length.
 *
 * @example
 * ```ts
 * readDuration('PT1M30S') // 90_000
 * readDuration('00:01:30') // 90_000
 * ```
 */
export const readDuration = (text: string): number | undefined => {
  const match = xsd.exec(text) ?? clock.exec(text)
  if (!match) return undefined
  const [, sign, days = 0, hours = 0, minutes = 0, seconds = 0, fraction = ''] = match
  const whole = Number(days) * secondsPerDay + Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)
  const ticks = whole * ticksPerSecond + Number(fraction.slice(0, 7).padEnd(7, '0'))
  // A single division of whole ticks. Adding fractions of a millisecond would not return the original number.
  const ms = ticks / ticksPerMs
  return sign === '-' && ms !== 0 ? -ms : ms
}

export type Scalar = Text | Flag | Num | Instant | Duration | Choice
export type ScalarValue = string | boolean | number | Date

export const isScalar = (schema: Schema): schema is Scalar =>
  schema.kind !== 'list' && schema.kind !== 'map' && schema.kind !== 'dto'

const trueTexts: ReadonlySet<string> = new Set(['true', 't', 'y', '1', 'on'])
const falseTexts: ReadonlySet<string> = new Set(['false', 'f', 'n', '0', 'off'])
const decimal = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/
const ordinal = /^[1-9]\d{0,3}$/

/** Reads a value from a query, form, CSV cell or JSV text. Undefined for an invalid text. */
export const readScalar = (schema: Scalar, text: string): ScalarValue | undefined => {
  switch (schema.kind) {
    case 'text':
      return text.isWellFormed() ? text : undefined
    case 'flag':
      return readFlag(text.toLowerCase())
    case 'number':
      return decimal.test(text) ? number(schema, Number(text)) : undefined
    case 'date':
      return readDate(text)
    case 'duration':
      return readDuration(text)
    case 'choice':
      return readChoice(schema, text)
  }
}

const readFlag = (text: string): boolean | undefined =>
  trueTexts.has(text) ? true : falseTexts.has(text) ? false : undefined

export const number = (schema: Num, value: number): number | undefined =>
  (schema.integer ? Number.isSafeInteger(value) : Number.isFinite(value)) ? value : undefined

/** By name in any letter case, or by number, counted from 1 (N1). */
const readChoice = (schema: Choice, text: string): string | undefined => {
  if (ordinal.test(text)) return schema.values[Number(text) - 1]
  const folded = fold(text)
  return schema.values.find((value) => fold(value) === folded)
}

/** The text of a value in CSV and JSV (F3). Undefined for a value without a text, e.g. NaN. */
export const writeScalar = (schema: Scalar, value: unknown): string | undefined => {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? undefined : isoDate(value)
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return undefined
    return schema.kind === 'duration' ? writeDuration(value) : String(value)
  }
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return typeof value === 'string' ? value : undefined
}
