import { atMost, fail, ok, type Result } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { quoted } from '../../net/text.ts'
import type { Oldest } from './look.ts'

const check = 'oldest item'
export const typeNames: Readonly<Record<string, string>> = { zset: 'sorted set' }
/** Clocks differ; what is dated further ahead was not. Milliseconds. */
const mostAhead = 60_000

/** How long the oldest item has waited. What cannot be dated is never well. */
export function evaluateOldest({ key, group, type, threshold, at, now }: Oldest): Result {
  const name = `${typeNames[type] ?? type} ${quoted(key, 80)}`
  const of = group === undefined ? name : `${name} for the group ${quoted(group, 64)}`
  if (at === 'too large') {
    return fail(check, 'data', `the oldest item of ${of} is larger than 1 MiB: it is not read, and its age is unknown`)
  }
  if (at === undefined) {
    const none = type === 'none' ? `no such key as ${quoted(key, 80)}, so nothing waits` : `nothing waits in ${of}`
    return ok(check, none, {
      measurement: { value: 0, unit: 'milliseconds', limit: threshold.limit ?? threshold.warn },
    })
  }
  const ahead = at - now
  if (ahead > mostAhead && type === 'zset') {
    const more: Partial<Result> = {
      measurement: { value: 0, unit: 'milliseconds', limit: threshold.limit ?? threshold.warn },
    }
    return ok(check, `${of}: nothing is due yet, the first in ${showDuration(ahead)}`, more)
  }
  if (ahead > mostAhead) {
    const cause = 'a clock is wrong, or the time is written without its zone'
    return fail(check, 'data', `the oldest item of ${of} is dated ${showDuration(ahead)} ahead of our clock: ${cause}`)
  }
  const what = `${of}: oldest item has waited`
  return atMost({ check, what, value: Math.max(0, -ahead), unit: 'duration', threshold })
}
