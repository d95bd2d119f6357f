import { type Cron, cronOf, readCronOnce, zoneProblem } from '../../base/cron.ts'
import { showDuration } from '../../base/format.ts'
import type { ClockSilence } from './types.ts'

/** From `beganAt` until before `until`, in milliseconds since 1970. */
export type Window = { readonly beganAt: number; readonly until: number }

/** A fixed date, so that the validity of a file does not depend on when it is read. */
const firstLook = Date.UTC(2026, 0, 1)
const maxSteps = 100

/**
 * Why a silence by the clock cannot be used, or undefined. Two of its windows may not touch each other: together they could
 * last for ever.
 */
export function clockProblem({ when, timezone, forMs }: ClockSilence): string | undefined {
  const zone = zoneProblem(timezone)
  if (zone !== undefined) return zone
  const cron = cronOf('when', when, timezone, readCronOnce)
  if ('problem' in cron) return cron.problem
  const gap = shortestGap(cron)
  if (gap === undefined) return `when "${when}" matches no date`
  if (gap > forMs) return undefined
  return `for ${showDuration(forMs)} does not end before it begins again, ${showDuration(gap)} later: shorten it`
}

/** Between two of the next times. Infinite for a single one; undefined for none. */
function shortestGap(cron: Cron): number | undefined {
  let at = cron.after(firstLook)
  if (at === undefined) return undefined
  let shortest = Number.POSITIVE_INFINITY
  for (let steps = 0; steps < maxSteps; steps += 1) {
    const next = cron.after(at)
    if (next === undefined) return shortest
    shortest = Math.min(shortest, next - at)
    at = next
  }
  return shortest
}

/**
 * The windows of a silence by the clock, which must have passed `clockProblem`. Remembers the present and the next one: croner
 * takes milliseconds to count back.
 */
export class ClockWindows {
  readonly rule: ClockSilence
  readonly #cron: Cron
  #from = Number.POSITIVE_INFINITY
  #last: number | undefined
  #next = Number.NEGATIVE_INFINITY

  constructor(rule: ClockSilence) {
    this.rule = rule
    this.#cron = readCronOnce(rule.when, rule.timezone)
  }

  /** The window that an instant is in. */
  at(now: number): Window | undefined {
    this.#look(now)
    const last = this.#last
    if (last === undefined || now >= last + this.rule.forMs) return undefined
    return { beganAt: last, until: last + this.rule.forMs }
  }

  /** The first window that begins after an instant. */
  after(now: number): Window | undefined {
    this.#look(now)
    return Number.isFinite(this.#next) ? { beganAt: this.#next, until: this.#next + this.rule.forMs } : undefined
  }

  #look(now: number): void {
    if (now >= this.#from && now < this.#next) return
    this.#last = this.#cron.before(now + 1, 1)[0]
    this.#next = this.#cron.after(now) ?? Number.POSITIVE_INFINITY
    this.#from = this.#last ?? now
  }
}
