import { Fault } from '../../core/base/errors.ts'
import { count, showDuration } from '../../core/base/format.ts'
import { read } from '../../core/checks/reports/index.ts'
import type { Io } from '../io/io.ts'
import type { ProgressText } from '../io/terminal.ts'
import { marks } from '../render/table.ts'
import {
  type AttemptOptions,
  entryOf,
  firstProblem,
  type HealthAnswers,
  isReport,
  type Output,
  type Presentation,
} from './health.ts'
import type { Outstanding } from './outstanding.ts'
import { type Next, type Plan, type Round, type Show, type WatchWishes, whatNext } from './watch-plan.ts'
import { changeLine } from './watch-screen.ts'
import { afterRound, changesOf, type Watched } from './watched.ts'

export { watchPlan } from './watch-plan.ts'

export type WatchOptions = Pick<Presentation, 'target' | 'mode' | 'atServer' | 'output'> & {
  readonly plan: Plan
  readonly ask: (attempt: AttemptOptions) => Promise<HealthAnswers>
  readonly io: Io
  readonly signal: AbortSignal
  readonly flags: { readonly failed: boolean; readonly quiet: boolean }
  /** Progress on standard error. */
  readonly display: { readonly live: boolean; readonly update: (text: ProgressText) => void }
  readonly outstanding: Outstanding | undefined
  readonly say: (line: string) => void
}

export type WatchEnd = {
  readonly answers: HealthAnswers
  /** The exit code, if it is not that of the answers. */
  readonly exit?: number | undefined
  readonly gaveUp?: string | undefined
}

/** Asks again and again, shows what changes, and ends when the plan says so, or at the wish of its reader. */
export async function watchHealth(options: WatchOptions): Promise<WatchEnd> {
  const { plan, ask, io, signal, target, mode, atServer, output } = options
  const { clock } = io
  let wake = new AbortController()
  const quit = new AbortController()
  let isDueNow = false
  const wishes: WatchWishes = {
    quit: () => quit.abort(new Fault('Interrupted', 'Ended before the first answer')),
    now: () => {
      isDueNow = true
      wake.abort()
    },
  }
  const timing: Timing = { dueAt: undefined, endsAt: plan.withinMs && clock.elapsed() + plan.withinMs }
  const show = await showFor(options, wishes, timing)
  const firstBegan = clock.elapsed()
  let last: HealthAnswers | undefined
  let watched: Watched | undefined
  let isLast = false
  try {
    for (let number = 1; ; number += 1) {
      const began = clock.elapsed()
      // A gate needs what is found after it began. Who watches reads what the schedule of the server finds, unless asked.
      const stored = atServer && plan.until === undefined && !isDueNow
      isDueNow = false
      timing.dueAt = undefined
      const repeatsRefused = number === 1 || isLast
      const cut = new AbortController()
      const timer =
        plan.withinMs && setTimeout(() => cut.abort(), cutMs(firstBegan + plan.withinMs - began, number === 1))
      try {
        last = await ask({ signal: AbortSignal.any([signal, quit.signal, cut.signal]), repeatsRefused, stored })
      } catch (error) {
        if (signal.aborted || quit.signal.aborted || !cut.signal.aborted) throw error
        return cutEnd(last, number, plan, output)
      } finally {
        clearTimeout(timer)
      }
      const { outcomes } = last
      const ranThere = atServer && outcomes.some((one) => one.response && (!one.run || (stored && !one.stored)))
      const round: Round = { ...last, number, firstBegan, began, ended: clock.elapsed(), isLast, ranThere }
      const entries = await Promise.all(outcomes.map((outcome) => entryOf(outcome, { target, mode })))
      const ages = outcomes.map(({ ageSeconds }) => ageSeconds)
      watched = afterRound(watched, { at: clock.now().getTime(), readings: entries.map(read), ages })
      const next = whatNext(plan, round)
      if (next.type === 'ask') timing.dueAt = next.at
      show.answered(watched, { ...round, entries }, next)
      if (next.type === 'end') return ended(last, next, output)
      isLast = next.isLast
      await pauseUntil(() => (isDueNow ? next.soonest : next.at))
    }
  } catch (error) {
    signal.throwIfAborted()
    if (!quit.signal.aborted || !last) throw error
    return { answers: last }
  } finally {
    show.close()
  }

  async function pauseUntil(due: () => number): Promise<void> {
    for (let left = due() - clock.elapsed(); left > 0; left = due() - clock.elapsed()) {
      // A wish for a round now changes when it is due, and is heard once.
      const any = [signal, quit.signal, ...(isDueNow ? [] : [wake.signal])]
      await clock.pause(left, AbortSignal.any(any)).catch(() => signal.throwIfAborted())
      quit.signal.throwIfAborted()
    }
    wake = new AbortController()
  }
}

/** Milliseconds after the end of the time in which an attempt may still end. One that begins at the end needs some. */
const lateMs = 1_000
/** The least time that the first attempt has, so that there is an answer. Milliseconds. */
const firstMs = 5_000
/** A timer can wait for no longer. */
const maxTimerMs = 2 ** 31 - 1

/** Milliseconds after which an attempt is cut off. `leftMs`: of the time, below 0 after its end. */
const cutMs = (leftMs: number, isFirst: boolean): number =>
  Math.min(Math.max(isFirst ? firstMs : 0, Math.max(0, leftMs) + lateMs), maxTimerMs)

/** The end of a watch whose attempt was cut off. What the attempts before it have found is the answer. */
function cutEnd(last: HealthAnswers | undefined, number: number, { overExit: exit }: Plan, output: Output): WatchEnd {
  if (!last) {
    throw new Fault('RequestTimeout', 'Gave up: the first attempt did not end in time', {
      hints: ['Allow more time, or less for each request with --timeout.'],
    })
  }
  const times = `${count(number - 1, 'attempt')} and 1 that was cut off`
  return ended(last, { type: 'end', exit, gaveUp: `Gave up after ${times}: ${firstProblem(last.outcomes)}` }, output)
}

/** The end of the watch. Throws Fault `RequestTimeout` if the time is over and there is no answer to show. */
function ended(answers: HealthAnswers, { exit, gaveUp }: Extract<Next, { type: 'end' }>, output: Output): WatchEnd {
  const [only, other] = answers.outcomes
  if (gaveUp !== undefined && exit !== undefined && only?.fault && !other && !isReport(output)) {
    throw new Fault('RequestTimeout', gaveUp, { hints: only.fault.details.hints })
  }
  return { answers, exit, ...(gaveUp === undefined ? {} : { gaveUp }) }
}

/** Monotonic milliseconds. `dueAt`: undefined during a round. */
type Timing = { dueAt: number | undefined; readonly endsAt: number | undefined }

async function showFor(options: WatchOptions, wishes: WatchWishes, timing: Timing): Promise<Show> {
  const { plan, io, target, mode, atServer, flags, display, outstanding, say } = options
  if (plan.shows === 'screen') {
    const { liveScreen } = await import('./live.ts')
    const seconds = (until: number): string => upToSeconds(until - io.clock.elapsed())
    const every = plan.everyMs === 0 ? '' : `, every ${showDuration(plan.everyMs)}`
    const checking = outstanding?.textOf('checking')
    const next = (columns: number): string => {
      const left = timing.endsAt === undefined ? '' : `${seconds(timing.endsAt)} left, `
      if (timing.dueAt !== undefined) return `${left}next in ${seconds(timing.dueAt)}`
      return left + (typeof checking === 'function' ? checking(columns - left.length) : 'checking')
    }
    const goal = plan.until === undefined ? '' : `, until ${plan.until}`
    const title = ['svc health', target, `${mode}${every}${goal}`].join(` ${marks(io.stdout.unicode).dot} `)
    return liveScreen({ io, title, failuresOnly: flags.failed, atServer, wishes, next })
  }
  const report = plan.until === undefined ? undefined : attemptReports(display, say, outstanding)
  // Beside an answer at the end, standard output has nothing else.
  const print = (line: string): void => {
    if (plan.until !== undefined) say(line)
    // Only the write after the one that failed says that nobody reads any more.
    else if (!io.stdout.write(`${line}\n`) || !io.stdout.write('')) wishes.quit()
  }
  let newsAt = Number.NEGATIVE_INFINITY
  return {
    answered: (watched, round, next) => {
      if (next.type === 'ask') report?.(round, next.leftMs)
      // The first state of a gate is in its first report, and the last one in its answer.
      const isTold = plan.until !== undefined && (round.number === 1 || next.type === 'end')
      if (plan.shows !== 'lines' || display.live || isTold) return
      const look = { marks: marks(plan.until === undefined ? io.stdout.unicode : io.stderr.unicode) }
      const changes = changesOf(watched).filter(({ key }) => !flags.quiet || key === 'verdict')
      // A log shows that the watch goes on, and a pipe that nobody reads ends it.
      const isSilent = plan.until === undefined && round.ended - newsAt >= reportEveryMs
      const news = changes.length === 0 && isSilent ? [{ ...watched.verdict, before: undefined }] : changes
      for (const change of news) print(changeLine(change, watched, look))
      if (news.length > 0) newsAt = round.ended
    },
    close: () => {},
  }
}

const upToSeconds = (ms: number): string => showDuration(Math.ceil(Math.max(0, ms) / 1_000) * 1_000)

const reportEveryMs = 60_000

/** Reports the rounds: in the line that a terminal shows, and elsewhere (a CI log) as one line a minute. */
function attemptReports(
  display: WatchOptions['display'],
  say: (line: string) => void,
  outstanding?: Pick<Outstanding, 'textOf'>,
): (round: Round, leftMs: number) => void {
  let nextMs = 0
  return ({ outcomes, number, firstBegan, ended }, leftMs) => {
    const elapsedMs = ended - firstBegan
    const problem = firstProblem(outcomes)
    const left = Number.isFinite(leftMs) ? `, ${upToSeconds(leftMs)} left` : ''
    const text = `Attempt ${number}${left}: ${problem}`
    // What is out belongs to the attempt that follows.
    if (display.live) display.update(outstanding?.textOf(text, `Attempt ${number + 1}: `) ?? text)
    if (display.live || elapsedMs < nextMs) return
    nextMs = elapsedMs + reportEveryMs
    say(`Attempt ${number} after ${showDuration(elapsedMs)}${left}: ${problem}`)
  }
}
