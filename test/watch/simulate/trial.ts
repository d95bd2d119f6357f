import type { Queue } from './queue.ts'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

export type Outcome = {
  /** A digest of the trace. */
  readonly digest: string
  /** The trace itself, if it was asked for. */
  readonly lines: readonly string[]
  /** The broken rules, at most 20: the name of the rule, then what happened. */
  readonly violations: readonly string[]
  readonly counts: Readonly<Record<string, number>>
}

export type Span = { readonly from: number; readonly to: number }
export const isWithin = (spans: readonly Span[], at: number): boolean =>
  spans.some(({ from, to }) => from <= at && at < to)

/** The course of a scenario, and the rules that it breaks. It ends as soon as `lastRule` is broken. */
export class Trial {
  readonly lines: string[] = []
  readonly violations: string[] = []
  readonly counts: Record<string, number> = {}
  readonly #reported = new Set<string>()
  #hash = 0x811c9dc5

  readonly #queue: Queue
  readonly #keepLines: boolean
  readonly #lastRule: string | undefined

  constructor(queue: Queue, keepLines = false, lastRule?: string) {
    this.#queue = queue
    this.#keepLines = keepLines
    this.#lastRule = lastRule
  }

  readonly trace = (line: string): void => {
    const text = `${this.#queue.now} ${line}`
    for (let at = 0; at < text.length; at += 1) this.#hash = Math.imul(this.#hash ^ text.charCodeAt(at), 0x01000193)
    if (this.#keepLines) this.lines.push(text)
  }

  /** `once`: what the rule reports once only. */
  readonly broken = (rule: string, text: string, once = text): void => {
    if (this.#reported.has(`${rule} ${once}`)) return
    this.#reported.add(`${rule} ${once}`)
    this.trace(`BROKEN ${rule}: ${text}`)
    const at = (this.#queue.now / minute).toFixed(2)
    if (this.violations.length < 20) this.violations.push(`${rule}: ${text} (${at} min)`)
    if (rule === this.#lastRule) this.#queue.stop()
  }

  readonly count = (what: string, by = 1): void => {
    this.counts[what] = (this.counts[what] ?? 0) + by
  }

  outcome(): Outcome {
    const { lines, violations, counts } = this
    return { digest: (this.#hash >>> 0).toString(16).padStart(8, '0'), lines, violations, counts }
  }
}
