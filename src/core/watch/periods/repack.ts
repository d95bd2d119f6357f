import { decodeBlock, type NameOf } from './block.ts'
import { type Pack, packed } from './pack.ts'
import { blockRow } from './recorder.ts'
import type { BlockRow, HistoryRows } from './rows.ts'
import { blocksOver, floorTo, tiers } from './tiers.ts'

/** Milliseconds after the end of a block in which shorter periods may still be stored. */
const waitMs = 600_000
/** Blocks that ended before these are not made any more: what they would be made of is deleted. */
const blocksBack = 2

/**
 * The blocks of longer periods that are complete and not stored yet, some at a time: at most those of `most` monitors.
 * Empty when nothing is left to do. The names that they contain have numbers already.
 */
export async function dueBlocks(
  rows: HistoryRows,
  { nameOf, numberOf }: { readonly nameOf: NameOf; readonly numberOf: (name: string) => number },
  now: number,
  most: number,
): Promise<readonly BlockRow[]> {
  for (const tier of [1, 2] as const) {
    const { span } = tiers[tier]
    const last = floorTo(now - waitMs, span)
    for (let at = last - span; at >= last - blocksBack * span; at -= span) {
      const monitors = await rows.unpacked(tier, at, at + span)
      if (monitors.length === 0) continue
      return await packedBlocks(rows, { tier, at, monitors: monitors.slice(0, most) }, { nameOf, numberOf })
    }
  }
  return []
}

async function packedBlocks(
  rows: HistoryRows,
  { tier, at, monitors }: { readonly tier: 1 | 2; readonly at: number; readonly monitors: readonly number[] },
  { nameOf, numberOf }: { readonly nameOf: NameOf; readonly numberOf: (name: string) => number },
): Promise<readonly BlockRow[]> {
  const finer = tiers[(tier - 1) as 0 | 1]
  const ats = blocksOver(finer, at, at + tiers[tier].span)
  const blocks = await rows.blocks({ tier: tier - 1, ats, monitors, figures: true })
  return monitors.map((monitor) => {
    const packs = new Map<number, Pack>()
    for (const block of blocks) {
      if (block.monitor !== monitor) continue
      // A block of the shorter periods is one of the longer ones.
      packs.set(block.at, packed(decodeBlock(block, finer.width, nameOf).flatMap((pack) => pack ?? [])))
    }
    return blockRow({ tier, at, monitor }, packs, numberOf)
  })
}
