import { type Period, startOf } from './reader.ts'
import { type Rank, slotMs } from './timeline.ts'

/** How a monitor was in a time. Milliseconds. */
export type Availability = {
  readonly from: number
  readonly to: number
  readonly upMs: number
  readonly downMs: number
  /** No verdict stood: svc did not run, or the monitor did not. */
  readonly unobservedMs: number
  /** The share of the time observed in which it was up, in percent. Undefined: nothing was observed. */
  readonly percent: number | undefined
}

/** The availability between two times, for the checks that a depth includes. */
export function availability(periods: readonly Period[], rank: Rank, from: number, to: number): Availability {
  let [upMs, downMs] = [0, 0]
  for (const { pack } of periods) {
    upMs += pack.up[rank]
    downMs += pack.down[rank]
  }
  const observedMs = upMs + downMs
  return {
    from,
    to,
    upMs,
    downMs,
    unobservedMs: Math.max(0, to - from - observedMs),
    percent: observedMs === 0 ? undefined : (upMs / observedMs) * 100,
  }
}

/**
 * The time of which the periods of a monitor can say something: from the first run, or from where history still has
 * periods, up to now, or to the last observation of a monitor that exists no more.
 */
export function timeKnown(
  { firstAt, periods }: { readonly firstAt: number; readonly periods: readonly Period[] },
  { from, now, exists }: { readonly from: number; readonly now: number; readonly exists: boolean },
): { readonly from: number; readonly to: number } {
  const begin = Math.max(startOf(from, now), firstAt)
  const last = periods.at(-1)
  const end = exists ? now : Math.min(now, last?.to ?? begin)
  return { from: begin, to: Math.max(begin, end) }
}

/** A time in which a monitor was down: a period, or several without a break. */
export type Outage = {
  /** The periods begin and end at fixed times: the fault itself began and ended within the first and the last. */
  readonly from: number
  readonly to: number
  readonly downMs: number
  /** The checks that failed, the one that failed longest first. */
  readonly checks: readonly string[]
}

type OutageSoFar = {
  from: number
  to: number
  downMs: number
  /** Whether it was down throughout the last period. */
  isThroughout: boolean
  readonly failing: Map<string, number>
}

/** When a monitor was down for longest, the longest first. At most `most`. */
export function worstMoments(periods: readonly Period[], rank: Rank, most: number): readonly Outage[] {
  const outages: OutageSoFar[] = []
  for (const { from, to, pack } of periods) {
    const downMs = pack.down[rank]
    if (downMs === 0) continue
    const before = outages.at(-1)
    // Of two days with a failure each, nothing says that it was one, unless one of them was down throughout.
    const isOne = to - from <= slotMs || pack.up[rank] === 0 || before?.isThroughout === true
    const goesOn = before?.to === from && isOne
    const outage = goesOn ? before : { from, to, downMs: 0, isThroughout: false, failing: new Map<string, number>() }
    if (!goesOn) outages.push(outage)
    outage.isThroughout = pack.up[rank] === 0
    outage.to = to
    outage.downMs += downMs
    for (const [check, ms] of pack.failing ?? []) outage.failing.set(check, (outage.failing.get(check) ?? 0) + ms)
  }
  return outages
    .sort((one, other) => other.downMs - one.downMs || other.from - one.from)
    .slice(0, most)
    .map(({ failing, isThroughout: _, ...outage }) => ({ ...outage, checks: byDuration(failing) }))
}

const byDuration = (failing: ReadonlyMap<string, number>): readonly string[] =>
  [...failing].sort(([, one], [, other]) => other - one).map(([check]) => check)

/** The length of the periods to show of a time: some ten to a hundred of them. Milliseconds. */
export function stepFor(ms: number): number {
  const hour = 3_600_000
  if (ms <= 4 * hour) return 300_000
  return ms <= 4 * 24 * hour ? hour : 24 * hour
}
