/**
 * Times as people read them: on the clock of a time zone, always with its offset. What programs read is UTC and does not
 * come from here.
 */

/** The time zone of rules that name none: of cron expressions. */
export const usualZone = 'UTC'

const formats = new Map<string | undefined, Intl.DateTimeFormat>()

/** Made on first use: Intl takes milliseconds to load a zone. */
function formatOf(zone: string | undefined): Intl.DateTimeFormat {
  // The zone of the machine may change while the process runs.
  const key = zone ?? process.env['TZ']
  const before = formats.get(key)
  if (before) return before
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  })
  formats.set(key, made)
  return made
}

/** The parts of a time on the clock of a zone: `2026-11-24`, `11:42:54` and `UTC` or `+01:00`. */
export type ZonedTime = { readonly date: string; readonly time: string; readonly offset: string }

/**
 * An instant on the clock of a zone, by its IANA name. Without one, that of the machine.
 *
 * @example
 * ```ts
 * zonedTime(new Date('2026-11-24T10:42:54Z'), 'Europe/Berlin') // { date: '2026-11-24', time: '11:42:54', offset: '+01:00' }
 * ```
 */
export function zonedTime(at: Date, zone?: string): ZonedTime {
  if (zone === usualZone) {
    const [date = '', time = ''] = at.toISOString().split('T')
    return { date, time: time.slice(0, 8), offset: usualZone }
  }
  const parts = new Map(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  )
  const of = (part: Intl.DateTimeFormatPartTypes): string => parts.get(part) ?? ''
  const offset = of('timeZoneName').replace('GMT', '')
  return {
    date: `${of('year').padStart(4, '0')}-${of('month')}-${of('day')}`,
    time: `${of('hour')}:${of('minute')}:${of('second')}`,
    offset: offset === '' || offset === '+00:00' ? 'UTC' : offset,
  }
}

export type ShownTime = {
  /** The IANA name of the zone. Absent: that of the machine. */
  readonly zone?: string | undefined
  /** Absent: `second`. */
  readonly to?: 'minute' | 'second' | undefined
  /** The date is left out where it is that of this time. Milliseconds since 1970. */
  readonly now?: number | undefined
}

/**
 * An instant as people read it, always with the offset of its zone. All times for people come from here; documents have
 * ISO 8601 in UTC instead.
 *
 * @param at milliseconds since 1970
 * @example
 * ```ts
 * humanTime(Date.parse('2026-11-24T10:42:54Z'), { zone: 'Europe/Berlin' }) // '2026-11-24 11:42:54 +01:00'
 * humanTime(Date.parse('2026-11-24T10:42:54Z'), { zone: 'UTC', to: 'minute' }) // '2026-11-24 10:42 UTC'
 * ```
 */
export function humanTime(at: number, { zone, to = 'second', now }: ShownTime = {}): string {
  const instant = new Date(at)
  if (Number.isNaN(instant.getTime())) return 'an unknown time'
  const { date, time, offset } = zonedTime(instant, zone)
  const isToday = now !== undefined && zonedTime(new Date(now), zone).date === date
  return `${isToday ? '' : `${date} `}${to === 'minute' ? time.slice(0, 5) : time} ${offset}`
}

/** Why a text is no time zone, as the mistake of a setting continues it. Undefined if it is one. */
export function noZone(zone: string): string | undefined {
  const mistake = 'is not a time zone: use an IANA name such as Europe/Berlin, or UTC'
  // An offset has no rules for summer, and an abbreviation is ambiguous.
  if (zone !== 'UTC' && !zone.includes('/')) return mistake
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: zone })
    return undefined
  } catch {
    return mistake
  }
}
