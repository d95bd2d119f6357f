/**
 * The figures that follow from the counts of the schedule bench: pure functions, in milliseconds unless a name says
 * otherwise.
 */
import { scheduleSlots } from '../../src/core/checks/engine/limits.ts'

/** A probe this long before a due time serves it, as svc has it: at most a quarter of the interval. */
const earlyMs = (intervalMs: number): number => Math.min(5_000, intervalMs / 4)
/** Due times this long before the end of a measurement count, so that who is late has as much time. */
export const tailMs = 2_000

export type Measured = { readonly intervalMs: number; readonly from: number; readonly to: number }

/**
 * How much later than each due time of one target, `phase + n × interval`, the probe came that serves it. Where none came, the
 * time until the end of the measurement. `at`: when its probes came, sorted.
 */
export function lateOf(at: readonly number[], phase: number, { intervalMs, from, to }: Measured): readonly number[] {
  const early = earlyMs(intervalMs)
  const late: number[] = []
  const first = phase + Math.ceil((from + early - phase) / intervalMs) * intervalMs
  let next = 0
  for (let due = first; due < to - tailMs; due += intervalMs) {
    while ((at[next] ?? Number.POSITIVE_INFINITY) < due - early) next += 1
    late.push(Math.max(0, (at[next] ?? to) - due))
  }
  return late
}

/** How many due times of the grid are in the measurement. */
export const dueTimes = (phase: number, { intervalMs, from, to }: Measured): number =>
  Math.ceil((to - phase) / intervalMs) - Math.ceil((from - phase) / intervalMs)

/**
 * The earliest place on the grid at which the probes of one target came, for a watcher whose due times nobody else knows: the
 * end of the longest gap among their places.
 */
export function bestTurn(at: readonly number[], intervalMs: number): number {
  const places = at.map((one) => ((one % intervalMs) + intervalMs) % intervalMs).sort((a, b) => a - b)
  let [best, widest] = [places[0] ?? 0, Number.NEGATIVE_INFINITY]
  for (const [index, place] of places.entries()) {
    const before = index === 0 ? (places.at(-1) ?? 0) - intervalMs : (places[index - 1] ?? 0)
    if (place - before > widest) [best, widest] = [place, place - before]
  }
  return best
}

/** The smallest value that this share of sorted values does not exceed. NaN without values. */
export const quantile = (sorted: Float64Array | readonly number[], share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN

/** The result of one measurement of `seconds`. */
export type Outcome = {
  readonly seconds: number
  /** Probes that were due and that the peers counted. */
  readonly due: number
  readonly counted: number
  /** Sorted. Of all due times of the targets that the peers tell apart. */
  readonly late: Float64Array
  /** svc: results without a verdict, and failed ones, in all scrapes. Prometheus: scrapes and probes that failed. */
  readonly notChecked: number
  readonly failed: number
  /** Of the event loop; undefined for Prometheus. */
  readonly loop:
    | { readonly utilization: number; readonly delayP99: number; readonly delayMax: number; readonly heapMb: number }
    | undefined
  /** Processor time ÷ time: of the watcher, of what it checks, of the bench with its callers, and of the whole machine. */
  readonly cores: { readonly watcher: number; readonly peers: number; readonly bench: number; readonly machine: number }
  readonly rssMb: number
  readonly descriptors: number
  readonly descriptorLimit: number
  readonly closedConnections: number
  readonly scrapes: readonly { readonly ms: number; readonly megabytes: number }[]
  /** Scrapes without an answer. */
  readonly failedScrapes: number
  readonly callers: Callers | undefined
  readonly loadBefore: number
  readonly loadAfter: number
}
export type Callers = {
  readonly answers: number
  /** Sorted. */
  readonly took: Float64Array
  /** Requests without an answer of 200, by what came instead. */
  readonly failures: Readonly<Record<string, number>>
  /** Mean size of an answer. */
  readonly kilobytes: number
}

/** Several measurements as one: counts are added, times pooled, the rest is the median, or the highest for bounds. */
export function pooled(outcomes: readonly Outcome[]): Outcome {
  const [first, ...others] = outcomes
  if (!first || others.length === 0) return first as Outcome
  const sum = (of: (one: Outcome) => number): number => outcomes.reduce((total, one) => total + of(one), 0)
  const max = (of: (one: Outcome) => number): number => Math.max(...outcomes.map(of))
  const mid = (of: (one: Outcome) => number): number => medianOf(outcomes.map(of))
  const callers = outcomes.flatMap((one) => one.callers ?? [])
  return {
    seconds: sum((one) => one.seconds),
    due: sum((one) => one.due),
    counted: sum((one) => one.counted),
    late: sortedOf(outcomes.map((one) => one.late)),
    notChecked: sum((one) => one.notChecked),
    failed: sum((one) => one.failed),
    loop: first.loop && {
      utilization: mid((one) => one.loop?.utilization ?? 0),
      delayP99: mid((one) => one.loop?.delayP99 ?? 0),
      delayMax: max((one) => one.loop?.delayMax ?? 0),
      heapMb: max((one) => one.loop?.heapMb ?? 0),
    },
    cores: {
      watcher: mid((one) => one.cores.watcher),
      peers: mid((one) => one.cores.peers),
      bench: mid((one) => one.cores.bench),
      machine: mid((one) => one.cores.machine),
    },
    rssMb: max((one) => one.rssMb),
    descriptors: max((one) => one.descriptors),
    descriptorLimit: first.descriptorLimit,
    closedConnections: max((one) => one.closedConnections),
    scrapes: outcomes.flatMap((one) => one.scrapes),
    failedScrapes: sum((one) => one.failedScrapes),
    callers:
      callers.length === 0
        ? undefined
        : {
            answers: callers.reduce((total, one) => total + one.answers, 0),
            took: sortedOf(callers.map((one) => one.took)),
            failures: addedUp(callers.map((one) => one.failures)),
            kilobytes: medianOf(callers.map((one) => one.kilobytes)),
          },
    loadBefore: mid((one) => one.loadBefore),
    loadAfter: mid((one) => one.loadAfter),
  }
}

const medianOf = (values: readonly number[]): number =>
  quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  )

export function sortedOf(parts: readonly (Float64Array | readonly number[])[]): Float64Array {
  const all = new Float64Array(parts.reduce((total, { length }) => total + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all.sort()
}

function addedUp(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const one of all) for (const [name, count] of Object.entries(one)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

/** Whether a watcher keeps up: p99 at most 1 s late, nothing without a verdict, and 99 % of what was due came. */
export const keepsUp = ({ late, notChecked, counted, due }: Outcome): boolean =>
  quantile(late, 0.99) <= 1_000 && notChecked === 0 && counted >= 0.99 * due

/** Milliseconds for which svc counts a run when it makes slots for its schedule. */
const slotMs = 1_000
/** From this share on, a resource counts as used up. */
const usedUp = 0.95

/**
 * Which resource ran out first for svc, with the figures that show it. A share of the processors that others took is named,
 * because the machine may be shared.
 */
export function limitOf(outcome: Outcome, perMinute: number, processors: number): string {
  const { loop, cores, descriptors, descriptorLimit, closedConnections } = outcome
  const slots = scheduleSlots({ runsPerMinute: perMinute, runMs: slotMs })
  const others = Math.max(0, cores.machine - cores.watcher - cores.peers - cores.bench)
  const facts = [
    `event loop busy ${percent(loop?.utilization ?? 0)}`,
    `processors ${cores.machine.toFixed(2)} of ${processors} used: svc ${cores.watcher.toFixed(2)}, its peers ${cores.peers.toFixed(2)}, the bench ${cores.bench.toFixed(2)}, other programs ${others.toFixed(2)}`,
    `at most ${descriptors} descriptors open of ${descriptorLimit}, for ${slots} slots`,
    `at most ${closedConnections.toLocaleString('en')} closed connections that still had a port`,
  ].join('; ')
  const says = (what: string): string => `${what} (${facts})`
  if (keepsUp(outcome)) return says('nothing ran out')
  if ((loop?.utilization ?? 0) >= usedUp) {
    return says(
      cores.watcher < usedUp && cores.machine >= usedUp * processors
        ? 'the processors of the machine: the event loop always had work, and the processor was not always its own'
        : 'the one thread of the event loop',
    )
  }
  if (descriptors >= usedUp * descriptorLimit) return says('descriptors')
  if (descriptors >= usedUp * slots) return says('slots of the schedule')
  if (cores.machine >= usedUp * processors) return says('the processors of the machine')
  return says('none of the resources that are measured')
}

const percent = (share: number): string => `${Math.round(share * 100)} %`
