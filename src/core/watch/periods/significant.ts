/**
 * A number with three significant digits as an integer, so that similar numbers have similar integers, in the same order.
 * History keeps figures in this form: it is exact to half a percent, and packs into two bytes.
 */

/** Mantissas from 100 to 999. */
const perDecade = 900
/** The smallest decade: numbers closer to zero become zero. */
const smallest = -12
/** The largest decade: larger numbers become the largest. */
const largest = 18
/** The code of the largest number. */
export const maxCode = (largest - smallest + 1) * perDecade

/** The code of a finite number. */
export function codeOf(value: number): number {
  const size = Math.abs(value)
  if (size < 10 ** smallest) return 0
  let decade = Math.floor(Math.log10(size))
  let mantissa = Math.round(scaled(size, 2 - decade))
  // The logarithm may be wrong by one beside a power of ten, and rounding may reach the next one.
  if (mantissa < 100) mantissa = Math.round(scaled(size, 2 - --decade))
  if (mantissa >= 1_000) {
    mantissa = Math.round(mantissa / 10)
    decade += 1
  }
  const code = Math.min(maxCode, (decade - smallest) * perDecade + mantissa - 99)
  return value < 0 ? -code : code
}

/** The number that a code stands for. */
export function valueOfCode(code: number): number {
  if (code === 0) return 0
  const index = Math.abs(code) - 1
  const mantissa = (index % perDecade) + 100
  const value = scaled(mantissa, Math.floor(index / perDecade) + smallest - 2)
  return code < 0 ? -value : value
}

/** `value` times a power of ten, without the error of a factor below one. */
const scaled = (value: number, power: number): number => (power < 0 ? value / 10 ** -power : value * 10 ** power)
