import { Fault } from '../../core/errors.ts'
import { custom } from './flags.ts'

const units: Readonly<Record<string, number>> = {
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/**
 * A moment in the past: so long ago (`30m`, `6h`, `7d`), a day in UTC, or a time with its zone.
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
  if (figure !== undefined) return new Date(now - Number(figure) * (units[unit] ?? 0))
  const [, day, time] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)))?$/i.exec(text) ?? []
  if (day === undefined) return undefined
  // JavaScript reads 31 February as 3 March.
  const [start, date] = [new Date(`${day}T00:00:00Z`), new Date(`${day}T${time ?? '00:00:00Z'}`)]
  return Number.isNaN(date.getTime()) || !isoDay(start).startsWith(day) ? undefined : date
}

const isoDay = (date: Date): string => (Number.isNaN(date.getTime()) ? '' : date.toISOString())

/** A flag with such a moment. `now`: for what is counted from it. */
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
