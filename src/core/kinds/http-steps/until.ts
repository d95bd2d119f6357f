import { setTimeout as pause } from 'node:timers/promises'
import { deadlineSignal } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Answered } from './seen.ts'
import type { Step } from './settings.ts'

/** Milliseconds that the last request has at least: one that cannot be answered any more is not sent. */
const lastRequestMs = 100

type Waiting = {
  readonly until: NonNullable<Step['until']>
  readonly address: string
  readonly now: () => number
  /** Milliseconds that there are for all of it. */
  readonly ms: number
  /** Ends the run; nothing is told after it. */
  readonly parent: AbortSignal
  readonly ask: (signal: AbortSignal) => Promise<Answered>
  /** Called before each request with how many there were. */
  readonly count: (asked: number) => void
}

/**
 * Asks again and again until an answer is the last one: by its values, its status or its being a failure
 * of its own; the time is over, or `most` requests were sent. One that has no answer by then is left
 * behind, and the last answer speaks. Throws what the first request threw, or any that broke.
 */
export async function untilOver(waiting: Waiting): Promise<Answered> {
  const { until, now, parent } = waiting
  const started = now()
  const ms = Math.min(until.within ?? waiting.ms, waiting.ms)
  const ends = started + ms
  let last: Answered | undefined
  for (let asked = 1; ; asked += 1) {
    const told = (ended: 'over' | 'time' | 'most', seen: Answered): Answered => ({
      ...seen,
      waited: { asked, ms: now() - started, ended },
    })
    waiting.count(asked)
    const deadline = deadlineSignal(parent, Math.max(1, ends - now()))
    try {
      last = await waiting.ask(deadline.signal)
    } catch (error) {
      if (parent.aborted || !deadline.signal.aborted) throw error
      if (last === undefined) {
        throw new ProbeError('timeout', `${waiting.address} gave no answer within ${showDuration(ms)}`)
      }
      return told('time', last)
    } finally {
      deadline.clear()
    }
    if (last.outcome.is !== 'unfinished') return told('over', last)
    if (asked >= until.most) return told('most', last)
    const left = ends - now() - Math.max(lastRequestMs, last.ms * 2)
    if (left <= 0) return told('time', last)
    await pause(Math.min(until.every, left), undefined, { signal: parent })
  }
}
