import { Fault } from '../../core/errors.ts'
import { type GrantFacts, neverExpires } from '../../core/protocol/index.ts'
import { boolean, custom } from '../command/flags.ts'
import { moment } from '../render/table.ts'

/** How the flags of a command say when a role ends, and how svc shows that (O8). */

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
 * `2026-11-28T18:00Z`, `2026-11-28 18:00`, `18:00` → milliseconds since 1970. Without a zone, the time of this machine
 * counts; without a date, the next such time. Throws Fault `Usage`.
 */
export function parseUntil(what: string, input: string, now: number): number {
  const text = input.trim()
  const at = zoned.test(text) ? Date.parse(text.replace(' ', 'T')) : localTime(text, now)
  if (at !== undefined && !Number.isNaN(at)) return at
  throw new Fault('Usage', `--${what} "${input}" is not a valid time`, {
    hints: [`Write --${what} 18:00, --${what} "2026-11-28 18:00" (the time of this machine) or 2026-11-28T18:00Z.`],
  })
}

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
  const first = date(0)
  // JavaScript reads 31 February as 3 March, and 25:00 as 1:00.
  const exists = first.getHours() === Number(hour) && first.getMinutes() === Number(minute)
  if (!exists || (day !== undefined && first.getDate() !== Number(day))) return undefined
  return year === undefined && first.getTime() <= now ? date(1).getTime() : first.getTime()
}

/** `--for`, which excludes other flags. */
export const spanFlag = (description: string, ...exclusive: readonly string[]) =>
  custom<number>({ helpValue: '<2h|3d|…>', parse: async (input) => parseSpan('for', input) })({
    description,
    exclusive: [...exclusive],
  })
const instant = custom<string>({
  helpValue: '<18:00|2026-11-28T18:00Z|…>',
  parse: async (input) => {
    parseUntil('until', input, Date.now())
    return input
  },
})

/** The flags of an end. */
export const endFlags = {
  for: spanFlag('How long until it ends by itself', 'until', 'permanent'),
  until: instant({ description: 'When it ends by itself', exclusive: ['for'] }),
} as const

export const permanentFlag = boolean({
  description: 'Remove the end of a role that the user has for a time',
  exclusive: ['for', 'until'],
})

export type EndFlags = {
  readonly for?: number | undefined
  readonly until?: string | undefined
  readonly permanent?: boolean | undefined
}

/**
 * The end as an assignment carries it. A time span is sent as one, so that the clock of the server counts, not that of
 * this machine. Throws Fault `Usage` for a time that has passed.
 */
export function expiresOf(flags: EndFlags, clock: Date): string | undefined {
  if (flags.permanent) return neverExpires
  if (flags.for !== undefined) return `PT${flags.for / 1_000}S`
  if (flags.until === undefined) return undefined
  const now = clock.getTime()
  const at = parseUntil('until', flags.until, now)
  if (at > now) return new Date(at).toISOString()
  throw new Fault('Usage', `--until ${flags.until} has passed`, { hints: [`It is ${moment(clock)} now.`] })
}

const spans = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

/** `in 2 h`, in the largest unit of which two fit. A moment after `--for 2h`, it is still that. */
function fromNow(left: number): string {
  const ms = left + Math.min(30_000, left / 100)
  const [unit, name] = spans.find(([one]) => ms >= 2 * one) ?? [1_000, 's']
  return `in ${Math.floor(ms / unit)} ${name}`
}

/** `until 2026-11-28 18:00 UTC (in 2 h)` */
function endText(endsAt: number, now: Date): string {
  const ms = endsAt - now.getTime()
  const left = ms > 0 ? ` (${fromNow(ms)})` : ''
  return `until ${moment(new Date(endsAt))}${left}`
}

/** Until when, by whom and why: `until 2026-11-28 18:00 UTC (in 2 h), by ann: INC-1`. Empty where nothing is known. */
export function grantText({ endsAt, grantedBy, grantedAt, reason }: GrantFacts, now: Date): string {
  const end = endsAt === undefined ? [] : [endText(endsAt, now)]
  const on = grantedAt === undefined ? '' : ` on ${new Date(grantedAt).toISOString().slice(0, 10)}`
  const by = grantedBy === undefined ? [] : [`by ${grantedBy}${on}`]
  const facts = [...end, ...by].join(', ')
  return reason === undefined || reason === '' ? facts : facts === '' ? reason : `${facts}: ${reason}`
}
