/** A text of any size: `lead`, then `unit` again and again, then `end`. */
export type Hostile = { readonly lead: string; readonly unit: string; readonly end: string }

/** The text with about that many characters. */
export const ofSize = ({ lead, unit, end }: Hostile, size: number): string =>
  `${lead}${unit.repeat(Math.max(1, Math.floor((size - lead.length - end.length) / unit.length)))}${end}`

/** Processor time may grow by this when the text grows tenfold: linear is 10, quadratic 100. */
export const maxGrowth = 15
/** Milliseconds of processor time below which nothing grows: less than a second for 10 MB. */
const harmlessMs = 8
/** Milliseconds that a measurement takes at least: some systems count by ticks of 16 ms. */
const enoughMs = 40
const rounds = 5

/** Milliseconds of processor time of this process. Everything else in it should rest meanwhile. */
function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Milliseconds that one of several calls takes. */
function msEach(run: () => void, times: number): number {
  const before = processorMs()
  for (let time = 0; time < times; time++) run()
  return (processorMs() - before) / times
}

/** Milliseconds that a call takes: the least of several rounds, each of enough calls to tell. */
function leastMs(run: () => void): number {
  let times = 1
  let least = msEach(run, times)
  while (least * times < enoughMs) {
    times = Math.ceil(Math.min(times * 10, (1.5 * enoughMs) / Math.max(least, 0.000_1)))
    least = msEach(run, times)
  }
  for (let round = 1; round < rounds; round++) least = Math.min(least, msEach(run, times))
  return least
}

/** Measured again where it is too much: others use the machine and its caches too. */
function leastGrowth(
  short: () => void,
  long: () => void,
  first: number,
): { readonly ms: number; readonly growth: number } {
  let least = { ms: Number.POSITIVE_INFINITY, growth: Number.POSITIVE_INFINITY }
  for (let attempt = 0; attempt < 3 && least.growth > maxGrowth; attempt++) {
    // What takes seconds is not measured again: an error of a tenth does not matter there.
    const ms = first > 2_000 ? first : leastMs(long)
    const growth = ms / leastMs(short)
    if (growth < least.growth) least = { ms, growth }
    if (growth > 3 * maxGrowth) break
  }
  return least
}

/**
 * How the processor time of `work` grows from one size of a text to ten times that, where it grows faster than the text
 * does; undefined when it does not. The texts get ten times as long until they have reached the last size.
 */
export function excessiveGrowth(
  work: (text: string) => void,
  textOf: (size: number) => string,
  sizes: readonly number[],
): string | undefined {
  let before: { readonly size: number; readonly run: () => void } | undefined
  for (const size of sizes) {
    const text = textOf(size)
    const run = (): void => work(text)
    const first = msEach(run, 1)
    if (before && first > harmlessMs) {
      const { ms, growth } = leastGrowth(before.run, run, first)
      if (ms > harmlessMs && growth > maxGrowth) {
        return `${before.size} -> ${size} characters: ${growth.toFixed(0)} times the processor time (${ms.toFixed(1)} ms)`
      }
    }
    before = { size, run }
  }
  return undefined
}
