import { Fault } from '../../core/errors.ts'

const dayMs = 86_400_000

/**
 * A time in the future. `04:00` is the next one on this machine's clock, `2026-11-29 04:00` is in its time zone, too;
 * `2026-11-29T04:00Z` and `2026-11-29T04:00+01:00` say theirs. Throws Usage for any other text, and for a time that is over.
 *
 * @example
 * ```ts
 * parseUntil('2026-11-29T04:00Z', new Date(0)).getUTCHours() // 4
 * ```
 */
export function parseUntil(input: string, now: Date): Date {
  const text = input.trim()
  const until = timeOfDay(text, now) ?? dateTime(text)
  if (!until || Number.isNaN(until.getTime())) {
    throw new Fault('Usage', `--until "${input}" is not a time`, {
      hints: [
        'Write a time of day, or a date and a time: --until 04:00, --until "2026-11-29 04:00", --until 2026-11-29T04:00Z.',
      ],
    })
  }
  if (until > now) return until
  throw new Fault('Usage', `--until "${input}" is over`, {
    hints: ['Give a time in the future, or a duration with --for.'],
  })
}

function timeOfDay(text: string, now: Date): Date | undefined {
  const [, hours, minutes] = /^(\d{1,2}):(\d{2})$/.exec(text) ?? []
  if (hours === undefined || minutes === undefined || Number(hours) > 23 || Number(minutes) > 59) return undefined
  const today = new Date(now)
  today.setHours(Number(hours), Number(minutes), 0, 0)
  if (today > now) return today
  // A day may have 23 or 25 hours.
  const tomorrow = new Date(today.getTime() + dayMs)
  tomorrow.setHours(Number(hours), Number(minutes), 0, 0)
  return tomorrow
}

function dateTime(text: string): Date | undefined {
  const [, date, time = '00:00', zone = ''] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?))?(Z|[+-]\d{2}:\d{2})?$/.exec(text) ?? []
  return date === undefined ? undefined : new Date(`${date}T${time}${zone}`)
}
