import type { ThresholdUnit } from './settings/index.ts'

/**
 * A duration for people: `14 ms`, `1.28 s`, `53 h`, `3 d`.
 *
 * @example
 * ```ts
 * showDuration(14) // '14 ms'
 * showDuration(1_280) // '1.28 s'
 * showDuration(3 * 86_400_000) // '3 d'
 * ```
 */
export function showDuration(ms: number): string {
  const abs = Math.abs(ms)
  if (abs < 1) return `${round(ms, 1)} ms`
  if (abs < 1_000) return `${Math.round(ms)} ms`
  if (abs < 60_000) return `${round(ms / 1_000, 2)} s`
  if (abs < 3_600_000) return `${round(ms / 60_000, 1)} min`
  if (abs < 72 * 3_600_000) return `${round(ms / 3_600_000, 1)} h`
  return `${round(ms / 86_400_000, 1)} d`
}

/**
 * Bytes for people, in powers of 1024.
 *
 * @example
 * ```ts
 * showBytes(1_536) // '1.5 KiB'
 * ```
 */
export function showBytes(bytes: number): string {
  const steps = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let value = bytes
  let step = 0
  // Rounds as the output will, so that it never shows 1024 MiB.
  while (Math.round(Math.abs(value)) >= 1024 && step < steps.length - 1) {
    value /= 1024
    step += 1
  }
  return `${round(value, value < 10 ? 1 : 0)} ${steps[step]}`
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits))

/**
 * A value in the unit of its threshold, for people.
 *
 * @example
 * ```ts
 * show(93.24, 'percent') // '93.2 %'
 * show(1_048_576, 'bytes') // '1 MiB'
 * ```
 */
export function show(value: number, unit: ThresholdUnit): string {
  if (unit === 'duration') return showDuration(value)
  if (unit === 'bytes') return showBytes(value)
  if (unit === 'percent') return `${decimals(value, 1)} %`
  if (unit === 'days')
    return Math.abs(value) < 1 && value !== 0 ? showDuration(value * 86_400_000) : `${round(value, 1)} d`
  return decimals(value, 2)
}

/** A number with at most so many decimals; a smaller one keeps two significant digits, and never becomes 0. */
function decimals(value: number, digits: number): string {
  if (value === 0 || Math.abs(value) >= 10 ** -digits) return plainNumber(round(value, digits))
  return plainNumber(Number(value.toPrecision(2)))
}

/**
 * A number without an exponent, in the shortest form that reads back as the same number.
 *
 * @example
 * ```ts
 * plainNumber(5e-7) // '0.0000005'
 * plainNumber(3e22) // '30000000000000000000000'
 * ```
 */
export function plainNumber(value: number): string {
  const [digits = '', exponent] = String(value).split('e')
  if (exponent === undefined) return digits
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(digits) ?? []
  const point = whole.length + Number(exponent)
  const all = whole + fraction
  return point > 0 ? `${sign}${all.padEnd(point, '0')}` : `${sign}0.${'0'.repeat(-point)}${all}`
}

/**
 * An availability as people compare it: 99.98 %, 100 %. Rounded down, so that a minute of failure is never 100 %.
 *
 * @example
 * ```ts
 * showAvailability(99.9999) // '99.999 %'
 * ```
 */
export const showAvailability = (percent: number | undefined): string =>
  percent === undefined ? 'unknown' : `${Math.floor(percent * 1_000) / 1_000} %`

/**
 * A figure of the history in its unit, for people.
 *
 * @example
 * ```ts
 * showFigure(1_280, 'milliseconds') // '1.28 s'
 * ```
 */
export const showFigure = (value: number, unit: string | undefined): string =>
  show(
    value,
    unit === 'bytes' || unit === 'percent' || unit === 'days' || unit === 'ratio' || unit === 'count'
      ? unit
      : 'duration',
  )

/**
 * A count with its noun: `1 address`, `3 addresses`.
 *
 * @example
 * ```ts
 * count(1, 'key') // '1 key'
 * count(2, 'query', 'queries') // '2 queries'
 * ```
 */
export const count = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`

/**
 * A new id in the form of a UUID, for calls and runs: it must be unique but need not be secret. Loading node:crypto would
 * cost every command 7 ms.
 */
export function uniqueId(): string {
  const digits = (count: number): string =>
    Math.floor(Math.random() * 16 ** count)
      .toString(16)
      .padStart(count, '0')
  return `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(12)}`
}
