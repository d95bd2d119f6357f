import { Fault } from '../../core/base/errors.ts'
import { custom } from './flags.ts'

const units: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400, w: 604_800 }
/** A hundred years. */
const maxSeconds = 36_525 * 86_400

/** `90m`, `2h`, `3d` → milliseconds. Throws Fault `Usage`. */
export function parseSpan(what: string, input: string): number {
  const [, figure, unit] = /^(\d{1,9})(s|m|min|h|d|w)$/.exec(input.trim()) ?? []
  const seconds = Number(figure) * (units[unit ?? ''] ?? Number.NaN)
  if (seconds > 0 && seconds <= maxSeconds) return seconds * 1_000
  throw new Fault('Usage', `--${what} "${input}" is not a valid time span`, {
    hints: [`Write a whole number and its unit, for example --${what} 90m, 2h or 3d.`],
  })
}

const zoned = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)$/i
const local = /^(?:(\d{4})-(\d\d)-(\d\d)[T ])?(\d\d):(\d\d)(?::(\d\d))?$/

/**
 * `2026-11-28T18:00Z`, `2026-11-28 18:00`, `18:00` → milliseconds since 1970. Without a zone, in the time of this
 * machine; without a date, the next such time, also where the clock shows it twice. Throws Fault `Usage`.
 */
export function parseUntil(what: string, input: string, now: number): number {
  const text = input.trim()
  const at = zoned.test(text) ? zonedTime(text) : localTime(text, now)
  if (at !== undefined && !Number.isNaN(at)) return at
  throw new Fault('Usage', `--${what} "${input}" is not a valid time`, {
    hints: [`Write --${what} 18:00, --${what} "2026-11-28 18:00" (the time of this machine) or 2026-11-28T18:00Z.`],
  })
}

function zonedTime(text: string): number | undefined {
  const day = text.slice(0, 10)
  return isoDay(new Date(`${day}T00:00:00Z`)).startsWith(day) ? Date.parse(text.replace(' ', 'T')) : undefined
}

/** By how much later the same time of the clock may come again. */
const repeatsMs = [30 * 60_000, 60 * 60_000]

function localTime(text: string, now: number): number | undefined {
  const [, year, month, day, hour, minute, second = '0'] = local.exec(text) ?? []
  if (hour === undefined) return undefined
  const today = new Date(now)
  const date = (days: number): Date =>
    year === undefined
      ? new Date(
          today.getFullYear(),
          today.getMonth(),
          today.getDate() + days,
          Number(hour),
          Number(minute),
          Number(second),
        )
      : new Date(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second))
  // JavaScript reads 25:00 as 1:00, and moves a time that the change of the clock skips.
  const exists = (one: Date): boolean => one.getHours() === Number(hour) && one.getMinutes() === Number(minute)
  const first = date(0)
  const isThatDay = day === undefined || (first.getDate() === Number(day) && first.getMonth() === Number(month) - 1)
  if (!isThatDay) return undefined
  // Nobody knows which time is meant by one that does not come.
  if (!exists(first) && (year !== undefined || first.getTime() > now)) return undefined
  // When the clock is set back, a time comes twice: half an hour later on Lord Howe Island, an hour elsewhere.
  const again = repeatsMs.map((ms) => new Date(first.getTime() + ms)).find(exists)
  const next = [first, again].find((one) => one !== undefined && exists(one) && one.getTime() > now)
  if (next) return next.getTime()
  if (year !== undefined) return first.getTime()
  return exists(date(1)) ? date(1).getTime() : undefined
}

/** `--for`, which excludes other flags. */
export const spanFlag = (description: string, ...exclusive: readonly string[]) =>
  custom<number>({ helpValue: '<2h|3d|…>', parse: async (input) => parseSpan('for', input) })({
    description,
    exclusive: [...exclusive],
  })

/** Empty for an invalid date. JavaScript reads 31 February as 3 March, whose text begins with another day. */
const isoDay = (date: Date): string => (Number.isNaN(date.getTime()) ? '' : date.toISOString())

/**
 * A moment in the past: a time span ago (`30m`, `6h`, `7d`), a day in UTC, or a time with its zone.
 *
 * @example
 * ```ts
 * readInstant('2h', 10_000_000) // new Date(2_800_000)
 * readInstant('2026-11-28', 0) // new Date('2026-11-28T00:00:00Z')
 * readInstant('2026-11-28T18:00', 0) // undefined
 * ```
 */
export function readInstant(text: string, now: number): Date | undefined {
  const [, figure, unit = ''] = /^(\d{1,6}(?:\.\d{1,3})?)(m|min|h|d|w)$/.exec(text) ?? []
  if (figure !== undefined) return new Date(now - Number(figure) * (units[unit] ?? 0) * 1_000)
  const [, day, time] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)))?$/i.exec(text) ?? []
  if (day === undefined) return undefined
  const [start, date] = [new Date(`${day}T00:00:00Z`), new Date(`${day}T${time ?? '00:00:00Z'}`)]
  return Number.isNaN(date.getTime()) || !isoDay(start).startsWith(day) ? undefined : date
}

/** A flag with such a moment. `now`: the instant from which time spans count. */
export const instantFlag = (what: string) =>
  custom<Date>({
    helpValue: '<7d|2026-11-28|2026-11-28T18:00Z>',
    parse: async (input) => {
      const instant = readInstant(input.trim(), Date.now())
      if (instant !== undefined) return instant
      throw new Fault('Usage', `--${what} "${input}" is not a time`, {
        hints: [
          `Write how long ago (--${what} 30m, 6h, 7d), a day in UTC (2026-11-28), or a time with its zone (2026-11-28T18:00Z).`,
        ],
      })
    },
  })
