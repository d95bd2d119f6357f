/** A text of any size: `lead`, then `unit` again and again, then `end`. */
export type Hostile = { readonly lead: string; readonly unit: string; readonly end: string }

/** The text with about that many characters. */
export const ofSize = ({ lead, unit, end }: Hostile, size: number): string =>
  `${lead}${unit.repeat(Math.max(1, Math.floor((size - lead.length - end.length) / unit.length)))}${end}`

/** The text in words, for messages. */
export const describeHostile = ({ lead, unit, end }: Hostile): string =>
  `${quote(lead)} + ${quote(unit)} again and again + ${quote(end)}`
const quote = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)

/** Processor time may grow by this when the text grows tenfold: linear is 10, quadratic 100. */
const maxGrowth = 15
/** Milliseconds of processor time, altogether and for 1,000 characters, below which it does not matter how they grow. */
const harmlessMs = { altogether: 4, forThousand: 0.08 }
const harmlessAt = (size: number): number => Math.max(harmlessMs.altogether, (size / 1_000) * harmlessMs.forThousand)
/** Milliseconds that a measurement takes at least: some systems count by ticks of 16 ms. */
const enoughMs = 40
/** Measurements of each size before a growth that stays too large counts. */
const rounds = 12
/** As many suffice where the growth is like that of a square, which no garbage collection explains. */
const clearRounds = 3

/** With SVC_PROVE=1 the longest texts too, and every size of every text. */
const proving = process.env.SVC_PROVE === '1'
/** Characters of the longest text that `npm test` reads. */
const usualMaxSize = 100_000

/** The sizes of texts to try, from 1,000 characters on, each tenfold the last: `npm test` ends at 100,000. */
export const sizesUpTo = (most: number): readonly number[] =>
  [1e3, 1e4, 1e5, 1e6].filter((size) => size <= most && (proving || size <= usualMaxSize))

type Work = () => unknown

/** Milliseconds of processor time of this process. Everything else in it should rest meanwhile. */
function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Milliseconds that one of several calls takes. */
async function msEach(work: Work, times: number): Promise<number> {
  const before = processorMs()
  for (let time = 0; time < times; time++) await work()
  return (processorMs() - before) / times
}

/** Measures a call of which one took about `first` milliseconds: enough calls at a time to tell. */
async function measurer(work: Work, first: number): Promise<() => Promise<number>> {
  let times = 1
  let ms = first
  while (ms * times < enoughMs) {
    times = Math.ceil(Math.min(times * 10, (1.5 * enoughMs) / Math.max(ms, 0.000_1)))
    ms = await msEach(work, times)
  }
  return () => msEach(work, times)
}

/** Whether the least of three calls takes too long; `first` is the milliseconds of one. Most that seem so compile or collect garbage. */
async function seemsExcessive(short: Work, long: Work, first: number): Promise<boolean> {
  const enough = maxGrowth * (await msEach(short, Math.ceil(enoughMs / first)))
  for (let least = first, call = 1; ; call++) {
    if (least <= enough) return false
    if (call === 3 || least > 2_000) return true
    least = Math.min(least, await msEach(long, 1))
  }
}

/**
 * The growth by the least of several measurements of each size: others use the machine and its caches too, and garbage
 * is collected in some of them. Ends as soon as the growth is not too large.
 */
async function leastGrowth(
  short: Work,
  long: Work,
  first: number,
): Promise<{ readonly ms: number; readonly growth: number }> {
  const measureShort = await measurer(short, first / maxGrowth)
  // What takes seconds is not measured again: an error of a tenth does not matter there.
  const measureLong = first > 2_000 ? async () => first : await measurer(long, first)
  const least = { short: Number.POSITIVE_INFINITY, long: Number.POSITIVE_INFINITY }
  for (let round = 1; ; round++) {
    least.long = Math.min(least.long, await measureLong())
    least.short = Math.min(least.short, await measureShort())
    const growth = least.long / least.short
    const isSettled = growth <= maxGrowth || (round >= clearRounds && growth > 3 * maxGrowth)
    if (isSettled || round === rounds) return { ms: least.long, growth }
  }
}

export type GrowthOptions = {
  /**
   * For work whose garbage is cleared away at some sizes and not at others: a growth that is a little too much must
   * show once more, from that size to ten times that.
   */
  readonly allocates?: boolean
  /**
   * `npm test` leaves out the sizes up to which the time would be harmless even if it grew with the square of the text.
   * For work that goes the same way whatever the size.
   */
  readonly screened?: boolean
}

/**
 * How the processor time of `work` grows from one size of a text to ten times that, where it grows faster than the text
 * does; undefined when it does not. The sizes are tried in their order, up to the first that shows it.
 */
export async function excessiveGrowth(
  work: (text: string) => unknown,
  textOf: (size: number) => string,
  sizes: readonly number[],
  { allocates = false, screened = false }: GrowthOptions = {},
): Promise<string | undefined> {
  let before: Work | undefined
  const largest = sizes.at(-1) ?? 0
  for (const size of sizes) {
    const text = textOf(size)
    const now: Work = () => work(text)
    const start = performance.now()
    const first = await msEach(now, 1)
    // On the wall, which is never less than the processor time, and counts in finer steps on every system.
    const wallMs = performance.now() - start
    const harmless = harmlessAt(size)
    if (before && first > harmless && (await seemsExcessive(before, now, first))) {
      const { ms, growth } = await leastGrowth(before, now, first)
      if (
        ms > harmless &&
        growth > maxGrowth &&
        (!allocates || (await isLasting(now, textOf(10 * size), ms, growth)))
      ) {
        return `${size / 10} -> ${size} characters: ${growth.toFixed(0)} times the processor time (${ms.toFixed(1)} ms)`
      }
    }
    if (screened && !proving && wallMs * (largest / size) ** 2 <= harmlessAt(largest)) return undefined
    before = now
  }
  return undefined

  /** Whether the next tenfold text shows it too. What is quadratic shows it at once. */
  async function isLasting(short: Work, longer: string, ms: number, growth: number): Promise<boolean> {
    if (growth > 3 * maxGrowth || ms > 2_000) return true
    const long: Work = () => work(longer)
    const first = await msEach(long, 1)
    if (first / ms <= maxGrowth) return false
    return (await leastGrowth(short, long, first)).growth > maxGrowth
  }
}
