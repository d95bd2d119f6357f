/** How long history keeps periods of one length, and how many of them are one block. Milliseconds. */
export type Tier = {
  /** The length of a period. */
  readonly width: number
  /** The length of a block, which is the width of the next tier. Blocks begin at multiples of it since 1970, in UTC. */
  readonly span: number
  readonly keptMs: number
}

const hour = 3_600_000
const day = 24 * hour

/** From the finest to the coarsest. */
export const tiers: readonly [Tier, Tier, Tier] = [
  { width: 300_000, span: hour, keptMs: 2 * day },
  { width: hour, span: day, keptMs: 90 * day },
  { width: day, span: 30 * day, keptMs: 400 * day },
]
/** How long history keeps single runs: from them, a process that starts again continues. Milliseconds. */
export const runsKeptMs = 2 * hour
/** How long history goes back. Milliseconds. */
export const keptMs = tiers[2].keptMs

/** The largest multiple of `step` up to this time. */
export const floorTo = (at: number, step: number): number => Math.floor(at / step) * step

/** How many periods a block has. */
export const slotsOf = ({ width, span }: Tier): number => span / width

/** The beginnings of the blocks that have something of the time from `from` to `to`. */
export function blocksOver({ span }: Tier, from: number, to: number): readonly number[] {
  const starts: number[] = []
  for (let at = floorTo(from, span); at < to; at += span) starts.push(at)
  return starts
}

/** Blocks that begin before this are no longer kept. */
export const keptFrom = ({ span, keptMs: lifeMs }: Tier, now: number): number => now - lifeMs - span

/** The time from which on history still has periods as short as those of this tier. */
export const reachOf = ({ width, keptMs: lifeMs }: Tier, now: number): number => floorTo(now - lifeMs, width) + width
