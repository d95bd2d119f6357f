import { setTimeout as pause } from 'node:timers/promises'
import { deadlineSignal } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Polling, StepAnswer } from './exchange.ts'
import type { Step } from './settings.ts'

/** Milliseconds that the last request has at least: one that cannot be answered any more is not sent. */
const lastRequestMs = 100

type Waiting = {
  readonly until: NonNullable<Step['until']>
  readonly address: string
  readonly now: () => number
  /** Milliseconds that there are for all of it. */
  readonly ms: number
  /** Ends the run; there is no answer after it. */
  readonly parent: AbortSignal
  readonly send: (signal: AbortSignal) => Promise<StepAnswer>
  /** Called before each request with how many there were. */
  readonly count: (requests: number) => void
}

/**
 * Asks again and again until an answer is the last one: by its values, its status or its being a failure
 * of its own; the time is over, or `most` requests were sent. One that has no answer by then is left
 * behind, and the last answer speaks. Throws what the first request threw, or any that broke.
 */
export async function untilOver(waiting: Waiting): Promise<StepAnswer> {
  const { until, now, parent } = waiting
  const started = now()
  const ms = Math.min(until.within ?? waiting.ms, waiting.ms)
  const ends = started + ms
  let last: StepAnswer | undefined
  for (let requests = 1; ; requests += 1) {
    const ending = (reason: Polling['reason'], answer: StepAnswer): StepAnswer => ({
      ...answer,
      polling: { requests, ms: now() - started, reason },
    })
    waiting.count(requests)
    const deadline = deadlineSignal(parent, Math.max(1, ends - now()))
    try {
      last = await waiting.send(deadline.signal)
    } catch (error) {
      if (parent.aborted || !deadline.signal.aborted) throw error
      if (last === undefined) {
        throw new ProbeError('timeout', `${waiting.address} gave no answer within ${showDuration(ms)}`)
      }
      return ending('time', last)
    } finally {
      deadline.clear()
    }
    if (last.outcome.type !== 'unfinished') return ending('over', last)
    if (requests >= until.most) return ending('most', last)
    const left = ends - now() - Math.max(lastRequestMs, last.ms * 2)
    if (left <= 0) return ending('time', last)
    await pause(Math.min(until.every, left), undefined, { signal: parent })
  }
}
