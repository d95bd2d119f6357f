import type { Reading } from '../../engine/index.ts'

/** How fast a file system fills. */
export type Trend = {
  /** Bytes that are left. */
  readonly free: number
  /** Bytes a millisecond by which that changes; negative where it fills. */
  readonly slope: number
  /** Readings that tell so, and the milliseconds between the first and the last. */
  readonly readings: number
  readonly spanMs: number
}

/** A reading is kept so often. Milliseconds. */
export const trendEveryMs = 15 * 60_000
/** Less says nothing: one copied file is no trend. */
const fewest = 6
const shortestMs = 3 * 3_600_000
/** What is older is left out, where what is younger says enough: a log that runs away began a while ago. */
const recentMs = 6 * 3_600_000

/** The trend of what was free, the last reading being now's; undefined while too little is known. */
export function trendOf(readings: readonly Reading[] = []): Trend | undefined {
  const last = readings.at(-1)
  if (!last) return undefined
  const recent = trendTo(
    last,
    readings.filter(({ at }) => last.at - at <= recentMs),
  )
  return recent ?? trendTo(last, readings)
}

function trendTo(last: Reading, readings: readonly Reading[]): Trend | undefined {
  const spanMs = last.at - (readings[0] ?? last).at
  if (readings.length < fewest || spanMs < shortestMs) return undefined
  return { free: last.value, slope: steadySlope(readings), readings: readings.length, spanMs }
}

/** What both halves of the time agree on: one large file that comes or goes at once is no trend. */
function steadySlope(readings: readonly Reading[]): number {
  const middle = Math.floor(readings.length / 2)
  return Math.max(medianSlope(readings.slice(0, middle + 1)), medianSlope(readings.slice(middle)))
}

/** Theil and Sen's: the median of the slopes of all pairs. */
function medianSlope(readings: readonly Reading[]): number {
  const slopes = readings.flatMap((a, index) =>
    readings.slice(index + 1).flatMap((b) => (b.at > a.at ? [(b.value - a.value) / (b.at - a.at)] : [])),
  )
  slopes.sort((a, b) => a - b)
  const middle = slopes.length / 2
  return ((slopes[Math.ceil(middle) - 1] ?? 0) + (slopes[Math.floor(middle)] ?? 0)) / 2
}
