/**
 * The history of a monitor in one period. Packs of consecutive periods add up to the pack of the whole period, whatever
 * the order in which they are added.
 */
export type Pack = {
  /** Milliseconds in which no check failed, by depth: of the checks that Basic, Standard and Advanced include. */
  readonly up: ByDepth
  /** Milliseconds in which a check failed, by depth. The rest of the period was not observed. */
  readonly down: ByDepth
  /** Whether a run found a warning in a check of this depth: a bit for each depth. */
  warned: number
  /** How many runs ended. */
  runs: number
  /** Milliseconds in which each check failed, by its name. Undefined: none failed, as in nearly all of many packs. */
  failing: Map<string, number> | undefined
  /** The measured values, by the name of the figure. */
  readonly figures: Map<string, FigureOfPeriod>
}

/** A value for each depth: Basic, Standard, Advanced. A deeper one includes what shallower ones do. */
export type ByDepth = [number, number, number]

/** The values of one figure in a period. The average is `sum / count`. */
export type FigureOfPeriod = { count: number; sum: number; min: number; max: number }

export const emptyPack = (): Pack => ({
  up: [0, 0, 0],
  down: [0, 0, 0],
  warned: 0,
  runs: 0,
  failing: undefined,
  figures: new Map(),
})

/** Adds time in which a check failed. Milliseconds. */
export function addFailing(pack: Pack, check: string, ms: number): void {
  pack.failing ??= new Map()
  pack.failing.set(check, (pack.failing.get(check) ?? 0) + ms)
}

/** Adds one more value. */
export function measure({ figures }: Pack, name: string, value: number): void {
  const before = figures.get(name)
  if (before === undefined) figures.set(name, { count: 1, sum: value, min: value, max: value })
  else {
    before.count += 1
    before.sum += value
    before.min = Math.min(before.min, value)
    before.max = Math.max(before.max, value)
  }
}

function addFigure(figures: Map<string, FigureOfPeriod>, name: string, { count, sum, min, max }: FigureOfPeriod): void {
  const before = figures.get(name)
  if (before === undefined) {
    figures.set(name, { count, sum, min, max })
    return
  }
  before.count += count
  before.sum += sum
  before.min = Math.min(before.min, min)
  before.max = Math.max(before.max, max)
}

/** Adds `other` to `pack`. */
export function addPack(pack: Pack, other: Pack): void {
  for (let depth = 0; depth < 3; depth += 1) {
    pack.up[depth] = (pack.up[depth] ?? 0) + (other.up[depth] ?? 0)
    pack.down[depth] = (pack.down[depth] ?? 0) + (other.down[depth] ?? 0)
  }
  pack.warned |= other.warned
  pack.runs += other.runs
  for (const [name, ms] of other.failing ?? []) addFailing(pack, name, ms)
  for (const [name, figure] of other.figures) addFigure(pack.figures, name, figure)
}

/** The pack of all of them together. */
export function packed(packs: Iterable<Pack>): Pack {
  const whole = emptyPack()
  for (const pack of packs) addPack(whole, pack)
  return whole
}
