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

type Until = 'healthy' | 'unhealthy'

export type WatchFlags = { readonly watch: boolean; readonly quiet: boolean; readonly until?: Until | undefined } & {
  readonly [flag in 'interval' | 'within' | 'wait']?: number | undefined
}

/** The watch that a command line asks for. Times are milliseconds. */
export type Plan = {
  /** From the beginning of a round to that of the next, which begins at least a second after its end. */
  readonly everyMs: number
  readonly until: Until | undefined
  /** When the last round may begin. One that has begun is cut off a second later (`cutMs`). Undefined: whenever. */
  readonly withinMs: number | undefined
  /** The exit code when the time is over. Undefined: that of the last answer. */
  readonly overExit: number | undefined
  /** `progress`: only how it goes on, beside an answer at the end. */
  readonly shows: 'screen' | 'lines' | 'progress'
}

/** `--interval`, in milliseconds. */
const [usualMs, leastMs, mostMs] = [10_000, 2_000, 3_600_000]

/** Reads the flags. Undefined: the command line asks for one answer. Throws Usage for flags that contradict each other. */
export function watchPlan(flags: WatchFlags, output: Output, { stdout, env }: Io): Plan | undefined {
  const { interval, wait, quiet } = flags
  const refuse = (isRefused: unknown, message: string, hint: string): void => {
    if (isRefused) throw new Fault('Usage', message, { hints: [hint] })
  }
  const isLong = wait !== undefined && (flags.until ?? flags.within) !== undefined
  const other = flags.until === undefined ? 'within' : 'until'
  refuse(
    isLong,
    `--wait and --${other} cannot be combined`,
    '--wait 5m is the short form of --until healthy --within 5m.',
  )
  const until = wait === undefined ? flags.until : 'healthy'
  const withinMs = wait ?? flags.within
  const watches = flags.watch || until !== undefined
  const only = (flag: string, goal: string): [string, string] => [
    `--${flag} has an effect only with ${goal}`,
    `Add ${goal}, or omit --${flag}.`,
  ]
  refuse(flags.within !== undefined && until === undefined, ...only('within', '--until healthy'))
  refuse(interval !== undefined && !watches, ...only('interval', '--watch'))
  if (!watches) return undefined
  const isOutside = interval !== undefined && (interval < leastMs || interval > mostMs)
  refuse(isOutside, '--interval must be between 2s and 1h', 'For example: --interval 10s')
  refuse(
    until !== undefined && withinMs === undefined && !stdout.isTTY,
    '--until needs --within where standard output is not a terminal',
    `Say how long to wait at most, for example --until ${until} --within 10m`,
  )
  refuse(
    until === undefined && output !== 'table',
    `--watch shows a table: omit --output ${output}, or add --until`,
    `With --until healthy --within 10m, --output ${output} prints the last answer.`,
  )
  const moves = stdout.isTTY && !env['CI'] && env['TERM'] !== 'dumb' && !env['ACCESSIBLE']
  return {
    everyMs: interval ?? (until === undefined ? usualMs : 0),
    until,
    withinMs,
    overExit: wait === undefined && !(isReport(output) && isPlugin(output)) ? exits.timeout.code : undefined,
    shows:
      output !== 'table' || (wait !== undefined && !flags.watch) ? 'progress' : moves && !quiet ? 'screen' : 'lines',
  }
}

/** Exit codes that no waiting changes. */
const permanent: ReadonlySet<number> = new Set(
  (['usage', 'unauthenticated', 'forbidden', 'rejected', 'local'] as const).map((name) => exits[name].code),
)

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
  | ({ readonly type: 'ask'; readonly isLast: boolean } & Readonly<Record<'at' | 'soonest' | 'leftMs', number>>)

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

/** The wishes of a reader: the end of the watch, or another round now. */
export type WatchWishes = { readonly quit: () => void; readonly now: () => void }

/** How a watch is shown. */
export type Show = {
  readonly answered: (watched: Watched, round: Round & { readonly entries: readonly Entry[] }, next: Next) => void
  readonly close: () => void
}
