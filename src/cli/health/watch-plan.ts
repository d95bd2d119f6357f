import { exits, Fault } from '../../core/base/errors.ts'
import { count, showDuration } from '../../core/base/format.ts'
import type { Entry } from '../../core/checks/reports/index.ts'
import type { Io } from '../io/io.ts'
import {
  combinedExit,
  firstProblem,
  type HealthAnswers,
  type HealthOutcome,
  isPlugin,
  isReport,
  type Output,
} from './health.ts'
import type { Watched } from './watched.ts'

export const untilStates = ['healthy', 'unhealthy'] as const
export type Until = (typeof untilStates)[number]

export type WatchFlags = {
  readonly watch: boolean
  readonly interval?: number | undefined
  readonly until?: Until | undefined
  readonly within?: number | undefined
  readonly wait?: number | undefined
  readonly quiet: boolean
}

/** What a command line asks for. Times are milliseconds. */
export type Plan = {
  /** From the beginning of a round to that of the next, which begins at least a second after its end. */
  readonly everyMs: number
  readonly until: Until | undefined
  /** When the last round may begin. Undefined: whenever. */
  readonly withinMs: number | undefined
  /** The exit code when the time is over. Undefined: that of the last answer. */
  readonly overExit: number | undefined
  /** `progress`: only how it goes on, beside an answer at the end. */
  readonly shows: 'screen' | 'lines' | 'progress'
}

const usualMs = 10_000
const leastMs = 2_000
const mostMs = 3_600_000

/** Reads the flags. Undefined: the command line asks for one answer. Throws Usage for flags that contradict each other. */
export function watchPlan(flags: WatchFlags, output: Output, { stdout, env }: Io): Plan | undefined {
  const { interval, wait, quiet } = flags
  if (wait !== undefined && (flags.until ?? flags.within) !== undefined) {
    throw new Fault('Usage', `--wait and --${flags.until === undefined ? 'within' : 'until'} cannot be combined`, {
      hints: ['--wait 5m is the short form of --until healthy --within 5m.'],
    })
  }
  const until = wait === undefined ? flags.until : 'healthy'
  const withinMs = wait ?? flags.within
  const watches = flags.watch || until !== undefined
  for (const [flag, value, needs] of [
    ['within', flags.within, until],
    ['interval', interval, watches || undefined],
  ] as const) {
    if (value === undefined || needs !== undefined) continue
    const other = flag === 'within' ? '--until healthy' : '--watch'
    throw new Fault('Usage', `--${flag} has an effect only with ${other}`, {
      hints: [`Add ${other}, or omit --${flag}.`],
    })
  }
  if (!watches) return undefined
  if (interval !== undefined && (interval < leastMs || interval > mostMs)) {
    throw new Fault('Usage', '--interval must be between 2s and 1h', { hints: ['For example: --interval 10s'] })
  }
  if (until !== undefined && withinMs === undefined && !stdout.isTTY) {
    throw new Fault('Usage', '--until needs --within where standard output is not a terminal', {
      hints: [`Say how long to wait at most, for example --until ${until} --within 10m`],
    })
  }
  if (until === undefined && output !== 'table') {
    throw new Fault('Usage', `--watch shows a table: omit --output ${output}, or add --until`, {
      hints: [`With --until healthy --within 10m, --output ${output} prints the last answer.`],
    })
  }
  const moves = stdout.isTTY && !env['CI'] && env['TERM'] !== 'dumb' && !env['ACCESSIBLE']
  return {
    everyMs: interval ?? (until === undefined ? usualMs : 0),
    until,
    withinMs,
    overExit: wait === undefined && !(isReport(output) && isPlugin(output)) ? exits.timeout.code : undefined,
    shows: output !== 'table' || (wait !== undefined && !flags.watch) ? 'progress' : moves && !quiet ? 'screen' : 'lines',
  }
}

/** Exit codes that no waiting changes. */
const permanent: ReadonlySet<number> = new Set([
  exits.usage.code,
  exits.unauthenticated.code,
  exits.forbidden.code,
  exits.rejected.code,
  exits.local.code,
])

/** Milliseconds from the end of a round to the next one, at least. */
const betweenRounds = 1_000
/** Milliseconds from the beginning of a round to the next one at a server that runs its checks for each request. */
const betweenRuns = 10_000

/** A round that has ended. Times are monotonic milliseconds. */
export type Round = Pick<HealthAnswers, 'outcomes' | 'signInPaused'> & {
  /** Counted from 1. */
  readonly number: number
  /** When the first round began. */
  readonly firstBegan: number
  readonly began: number
  readonly ended: number
  /** Whether it began when the time was over. */
  readonly isLast: boolean
  /** Whether the server ran its checks for this round and says nothing of results that it keeps. */
  readonly ranThere: boolean
}

export type Next =
  | { readonly type: 'end'; readonly exit?: number | undefined; readonly gaveUp?: string }
  /** `soonest`: when a reader who asks for it gets another round. */
  | {
      readonly type: 'ask'
      readonly at: number
      readonly soonest: number
      readonly isLast: boolean
      readonly leftMs: number
    }

/** Decides after each round what comes next. */
export function whatNext({ until, withinMs = Number.POSITIVE_INFINITY, everyMs, overExit }: Plan, round: Round): Next {
  const { outcomes, number, firstBegan, began, ended, isLast } = round
  const code = combinedExit(outcomes.map(({ exitCode }) => exitCode))
  if (until === 'healthy' && code === exits.ok.code) return { type: 'end' }
  if (until === 'unhealthy' && code === exits.unhealthy.code) return { type: 'end', exit: exits.ok.code }
  // Without a goal, what there is to see is shown.
  const isOver = ({ exitCode, response }: HealthOutcome): boolean =>
    permanent.has(exitCode) && !(until === undefined && response)
  if (until === undefined ? outcomes.every(isOver) : outcomes.some(isOver)) return { type: 'end' }
  const ends = firstBegan + withinMs
  // Timers may end a little early.
  const leftMs = isLast ? 0 : Math.max(0, ends - ended)
  // The time ended during an attempt that did not sign in: one more finds out.
  if (leftMs === 0 && !isLast && number > 1 && round.signInPaused) {
    return { type: 'ask', at: ended, soonest: ended, isLast: true, leftMs }
  }
  const soonest = Math.max(ended + betweenRounds, round.ranThere ? began + betweenRuns : 0)
  const at = Math.max(soonest, began + everyMs)
  if (leftMs === 0 || (round.ranThere && soonest > ends)) {
    const times = `${count(number, 'attempt')} in ${showDuration(ended - firstBegan)}`
    const why = leftMs === 0 ? '' : '; this server is asked once in 10 s at most'
    return { type: 'end', exit: overExit, gaveUp: `Gave up after ${times}: ${firstProblem(outcomes)}${why}` }
  }
  return { type: 'ask', at: Math.min(at, ends), soonest: Math.min(soonest, ends), isLast: at >= ends, leftMs }
}

/** What a reader wishes: the end of the watch, or another round now. */
export type Wishes = { readonly quit: () => void; readonly now: () => void }

/** How a watch is shown. */
export type Show = {
  readonly answered: (watched: Watched, round: Round & { readonly entries: readonly Entry[] }, next: Next) => void
  readonly close: () => void
}
