import { fail, ok, type Result, warn } from '../../engine/index.ts'
import { show, showDuration } from '../../format.ts'
import { count, said } from '../../net/text.ts'
import type { Agent } from './agents.ts'
import { type Due, mostRuns, type Standing, standingOf } from './due.ts'

/** The newest heartbeat of all, against what is due. */
export function evaluateDue(agent: Agent, due: Due): Result {
  const { grace, runs, now } = due
  const standing = standingOf(agent.at, due)
  const { status, since, many } = standing
  const name = said(agent.name, 64)
  // Of what is too far back only the heartbeat itself is known.
  const lateMs = since === undefined ? (many ? agent.ageMs : 0) : now - since
  const more: Partial<Result> = {
    measurement: { value: lateMs, unit: 'milliseconds', limit: grace.limit ?? grace.warn },
  }
  if (status === 'failed') {
    return fail('newest', 'threshold', `${name} ${notSince(agent, due, standing, bound('limit', grace.limit))}`, more)
  }
  if (status === 'warning') {
    return warn('newest', `${name} ${notSince(agent, due, standing, bound('warns above', grace.warn))}`, more)
  }
  const against = bound('limit', grace.limit) ?? bound('warns above', grace.warn)
  const limit = against === undefined ? '' : ` (${against})`
  if (since !== undefined) {
    return ok('newest', `${name} is due since ${clock(since, due)}, ${showDuration(lateMs)} ago${limit}`, more)
  }
  const [last] = runs
  const asked = many || last === undefined ? '' : `; it was due at ${clock(last.at, due)}`
  return ok('newest', `last heartbeat, of ${name}, came ${showDuration(agent.ageMs)} ago${asked}${limit}`, more)
}

const bound = (word: string, ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : `${word} ${show(ms, 'duration')}`

/** Of an agent that is overdue, for the details: `has not reported since …`. */
export const overdue = (agent: Agent, due: Due): string => notSince(agent, due, standingOf(agent.at, due))

function notSince(agent: Agent, due: Due, { since, missed, many, status }: Standing, against?: string): string {
  const [from, why] = since === undefined ? [agent.at, 'its heartbeat of '] : [since, '']
  const runs = many
    ? `more than ${mostRuns} runs missed`
    : // A single one that is not over its limit may still come.
      missed === undefined || (status !== 'failed' && missed < 2)
      ? undefined
      : `${count(missed, 'run')} missed`
  const ago = [`${showDuration(due.now - from)} ago`, runs].filter(Boolean).join(', ')
  const when = since === undefined ? '' : ', when it was due'
  return `has not reported since ${why}${clock(from, due)}${when} (${[ago, against].filter(Boolean).join('; ')})`
}

/** `02:00 UTC`, and of another day than today the date too. */
function clock(at: number, { now, timezone }: Due): string {
  const zoned = new Intl.DateTimeFormat('en', {
    timeZone: timezone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  const read = (time: number): { readonly date: string; readonly time: string } => {
    const parts = Object.fromEntries(zoned.formatToParts(time).map(({ type, value }) => [type, value]))
    return { date: `${parts['year']}-${parts['month']}-${parts['day']}`, time: `${parts['hour']}:${parts['minute']}` }
  }
  const then = read(at)
  return `${then.date === read(now).date ? '' : `${then.date} `}${then.time} ${timezone}`
}
