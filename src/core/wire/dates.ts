/** N3: dates as ServiceStack writes and reads them. The milliseconds are the instant; an offset is never added. */

/** A JSON string token, slashes escaped: the one suffixed form that every .NET reader takes for the right instant. */
export const jsonDate = (date: Date): string => `"\\/Date(${date.getTime()}-0000)\\/"`

/** ISO 8601 in UTC, milliseconds only when there are any: `2026-11-20T12:00:00Z`. */
export const isoDate = (date: Date): string => date.toISOString().replace('.000Z', 'Z')

const epochDate = /^\\?\/Date\((-?\d{1,16})(?:[+-]\d{4})?\)\\?\/$/
const isoText =
  /^(\d{4}|[+-]\d{6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:(Z)|([+-])(\d\d):?(\d\d))?)?$/i
const minuteMs = 60_000

/**
 * Reads `/Date(ms)/`, `/Date(ms±hhmm)/`, their slashes escaped or not, and ISO 8601 (without a zone: UTC; finer
 * than milliseconds: cut). Undefined when it is none of these, or no such day or time exists.
 */
export const readDate = (text: string): Date | undefined => {
  const epoch = epochDate.exec(text)
  if (epoch) return valid(new Date(Number(epoch[1])))
  const iso = isoText.exec(text)
  if (!iso) return undefined
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', , sign, zoneHour, zoneMinute] =
    iso
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0')
  const clock = valid(new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}.${milliseconds}Z`))
  // The engine reads 31 February as 3 March.
  if (clock?.getUTCDate() !== Number(day)) return undefined
  const offset = sign === undefined ? 0 : (Number(zoneHour) * 60 + Number(zoneMinute)) * (sign === '-' ? -1 : 1)
  return valid(new Date(clock.getTime() - offset * minuteMs))
}

const valid = (date: Date): Date | undefined => (Number.isNaN(date.getTime()) ? undefined : date)
