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
/** Milliseconds that a measurement takes at least: some systems count by ticks of 16 ms. */
const enoughMs = 40
const rounds = 5

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

/** Milliseconds that a call takes: the least of several rounds, each of enough calls to tell. */
async function leastMs(work: Work): Promise<number> {
  let times = 1
  let least = await msEach(work, times)
  while (least * times < enoughMs) {
    times = Math.ceil(Math.min(times * 10, (1.5 * enoughMs) / Math.max(least, 0.000_1)))
    least = await msEach(work, times)
  }
  for (let round = 1; round < rounds; round++) least = Math.min(least, await msEach(work, times))
  return least
}

/** Measured again where it is too much: others use the machine and its caches too. */
async function leastGrowth(
  short: Work,
  long: Work,
  first: number,
): Promise<{ readonly ms: number; readonly growth: number }> {
  let least = { ms: Number.POSITIVE_INFINITY, growth: Number.POSITIVE_INFINITY }
  for (let attempt = 0; attempt < 3 && least.growth > maxGrowth; attempt++) {
    // What takes seconds is not measured again: an error of a tenth does not matter there.
    const ms = first > 2_000 ? first : await leastMs(long)
    const growth = ms / (await leastMs(short))
    if (growth < least.growth) least = { ms, growth }
    if (growth > 3 * maxGrowth) break
  }
  return least
}

/**
 * How the processor time of `work` grows from one size of a text to ten times that, where it grows faster than the text
 * does; undefined when it does not. The sizes are tried in their order, up to the first that shows it. `allocates`: for
 * work whose garbage is cleared away at some sizes and not at others; there a growth that is a little too much must show
 * once more, from that size to ten times that.
 */
export async function excessiveGrowth(
  work: (text: string) => unknown,
  textOf: (size: number) => string,
  sizes: readonly number[],
  allocates = false,
): Promise<string | undefined> {
  let before: Work | undefined
  for (const size of sizes) {
    const text = textOf(size)
    const now: Work = () => work(text)
    const first = await msEach(now, 1)
    const harmless = Math.max(harmlessMs.altogether, (size / 1_000) * harmlessMs.forThousand)
    if (before && first > harmless && first / (await msEach(before, Math.ceil(enoughMs / first))) > maxGrowth) {
      const { ms, growth } = await leastGrowth(before, now, first)
      if (
        ms > harmless &&
        growth > maxGrowth &&
        (!allocates || (await isLasting(now, textOf(10 * size), ms, growth)))
      ) {
        return `${size / 10} -> ${size} characters: ${growth.toFixed(0)} times the processor time (${ms.toFixed(1)} ms)`
      }
    }
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
