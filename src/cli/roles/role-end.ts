import { Fault } from '../../core/base/errors.ts'
import { type GrantFacts, neverExpires } from '../../core/protocol/index.ts'
import { boolean, custom } from '../command/flags.ts'
import { parseUntil, spanFlag } from '../command/instant.ts'
import { moment } from '../render/table.ts'

/** How the flags of a command say when a role ends, and how svc shows that (O8). */

const instant = custom<string>({
  helpValue: '<18:00|2026-11-28T18:00Z|…>',
  parse: async (input) => {
    parseUntil('until', input, Date.now())
    return input
  },
})

/** The flags that set an end. */
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
 * The end as an assignment carries it. A time span remains a time span, so that the clock of the server counts, not
 * that of this machine. Throws Fault `Usage` for a time that has passed.
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

/** `in 2 h`, in the largest unit of which at least two fit. A moment after `--for 2h`, it is still `in 2 h`. */
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

/** Until when, by whom and why: `until 2026-11-28 18:00 UTC (in 2 h), by ann: INC-1`. Empty if nothing is known. */
export function grantText({ endsAt, grantedBy, grantedAt, reason }: GrantFacts, now: Date): string {
  const end = endsAt === undefined ? [] : [endText(endsAt, now)]
  const on = grantedAt === undefined ? '' : ` on ${new Date(grantedAt).toISOString().slice(0, 10)}`
  const by = grantedBy === undefined ? [] : [`by ${grantedBy}${on}`]
  const facts = [...end, ...by].join(', ')
  return reason === undefined || reason === '' ? facts : facts === '' ? reason : `${facts}: ${reason}`
}
