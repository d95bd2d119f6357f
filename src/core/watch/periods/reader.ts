import { decodeBlock, type NameOf } from './block.ts'
import { addPack, emptyPack, type Pack } from './pack.ts'
import { type MonitorIdentity, Recorder } from './recorder.ts'
import type { HistoryRows, RunsId, RunsRow, StoredBlock } from './rows.ts'
import { decodeRuns } from './runs.ts'
import { blocksOver, floorTo, keptFrom, reachOf, tiers } from './tiers.ts'
import type { ObservedRun } from './timeline.ts'

/** A period of a monitor. Milliseconds since 1970. */
export type Period = { readonly from: number; readonly to: number; readonly pack: Pack }

/** The history of a monitor in a time: periods in their order, without gaps of its own making. */
export type MonitorPeriods = MonitorIdentity & {
  readonly firstAt: number
  /** Periods of which nothing is known are missing. */
  readonly periods: readonly Period[]
}

export type PeriodsQuery = {
  readonly from: number
  readonly to: number
  /** Which monitors. */
  readonly includes: (monitor: MonitorIdentity) => boolean
  /** Whether the figures are read, too. */
  readonly figures: boolean
  /** The shortest period that the answer needs, in milliseconds. Where older ones are longer, the answer has those. */
  readonly step: number
}

/** How many monitors are read between two turns of the event loop. */
const monitorsAtOnce = 50
/** How many rows of runs are read between two turns. */
const rowsAtOnce = 60

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * The history in the store, and a recorder that continues it: it has the runs that are stored one by one, which may not
 * be in blocks yet.
 */
export async function restored(rows: HistoryRows, now: number): Promise<HistorySource> {
  const numbered = await rows.numbered()
  const recorder = new Recorder()
  recorder.adopt(numbered)
  const names = new Map(numbered.names.map(({ number, text }) => [number, text]))
  const source = { rows, recorder, names }
  const keys = keysByNumber(recorder)
  const replayed: RunsId[] = []
  for (let skip = 0; ; skip += rowsAtOnce) {
    const some = await rows.runs(skip, rowsAtOnce)
    replay(source, keys, some, (run) => (run.at <= now ? run : undefined))
    replayed.push(...some.map(({ at, writer }) => ({ at, writer })))
    if (some.length < rowsAtOnce) return { ...source, replayed }
    await nextTurn()
  }
}

/** The keys of the monitors that have a number. */
export const keysByNumber = ({ monitors }: Recorder): ReadonlyMap<number | undefined, string> =>
  new Map(monitors.map(({ number, key }) => [number, key]))

/** Takes runs that are stored, as `adjust` returns them. Undefined: not at all. `keys`: `keysByNumber` of the recorder. */
export function replay(
  { recorder, names }: Pick<HistorySource, 'recorder' | 'names'>,
  keys: ReadonlyMap<number | undefined, string>,
  rows: readonly RunsRow[],
  adjust: (run: ObservedRun) => ObservedRun | undefined,
): void {
  for (const { at, body } of rows) {
    for (const { monitor, run } of decodeRuns(body, at, (number) => names.get(number))) {
      const key = keys.get(monitor)
      const counting = adjust(run)
      if (key !== undefined && counting) recorder.replay(key, counting)
    }
  }
}

/** Where the periods are: blocks in the store, and what the recorder has not stored yet. */
export type HistorySource = {
  readonly rows: HistoryRows
  readonly recorder: Recorder
  /** The names by their numbers. */
  readonly names: Map<number, string>
  /** The rows of runs that the recorder had from the store when it began. */
  readonly replayed?: readonly RunsId[] | undefined
}

/** The periods of monitors, in the order in which history first saw them. */
export const periodsOf = async (
  source: HistorySource,
  query: PeriodsQuery,
  now: number,
): Promise<readonly MonitorPeriods[]> => await Array.fromAsync(eachPeriods(source, query, now))

/** The same one by one: those of 10,000 monitors take more memory than what is said about them. */
export async function* eachPeriods(
  { rows, recorder, names }: HistorySource,
  query: PeriodsQuery,
  now: number,
): AsyncGenerator<MonitorPeriods> {
  const monitors = recorder.monitors.filter(query.includes)
  for (let at = 0; at < monitors.length; at += monitorsAtOnce) {
    const some = monitors.slice(at, at + monitorsAtOnce)
    const numbers = some.flatMap(({ number }) => number ?? [])
    const blocks = await blocksOf(rows, numbers, query, now)
    for (const { key, type, name, firstAt, number } of some) {
      const own = blocks.map((ofTier) => ofTier.filter(({ monitor }) => monitor === number))
      const nameOf = (number: number): string | undefined => names.get(number)
      const periods = assembled(own, recorder.recent(key, now), { ...query, nameOf }, now)
      // A clock that was ahead may have shown the first of them.
      const since = firstAt <= now ? firstAt : (periods[0]?.from ?? now)
      yield { key, type, name, firstAt: since, periods }
    }
    await nextTurn()
  }
}

const { width: hour } = tiers[1]
const { width: day } = tiers[2]

/** The blocks of each tier that the answer needs. */
async function blocksOf(
  rows: HistoryRows,
  monitors: readonly number[],
  { from, to, figures, step }: PeriodsQuery,
  now: number,
): Promise<readonly (readonly StoredBlock[])[]> {
  const blocks: (readonly StoredBlock[])[] = [[], [], []]
  if (monitors.length === 0) return blocks
  for (const tier of [2, 1, 0] as const) {
    const finer = tier === 0 ? undefined : tiers[(tier - 1) as 0 | 1]
    if (finer && step < tiers[tier].width && from >= reachOf(finer, now)) continue
    const isCovered = coveredBy(blocks[tier + 1] ?? [], monitors, tier, { from, to, step })
    const ats = blocksOver(tiers[tier], from, to).filter((at) => at >= keptFrom(tiers[tier], now) && !isCovered(at))
    blocks[tier] = ats.length === 0 ? [] : await rows.blocks({ tier, ats, monitors, figures })
  }
  return blocks
}

/** Whether a block is one longer period of each monitor, and the answer needs no shorter ones. */
function coveredBy(
  coarser: readonly StoredBlock[],
  monitors: readonly number[],
  tier: 0 | 1 | 2,
  { from, to, step }: Pick<PeriodsQuery, 'from' | 'to' | 'step'>,
): (at: number) => boolean {
  if (tier === 2 || step < tiers[tier].span) return () => false
  const { span } = tiers[tier]
  const { span: coarserSpan } = tiers[(tier + 1) as 1 | 2]
  const holders = new Map<number, number>()
  for (const { at } of coarser) holders.set(at, (holders.get(at) ?? 0) + 1)
  return (at) => at >= from && at + span <= to && holders.get(floorTo(at, coarserSpan)) === monitors.length
}

/** The periods between two times: the longest up to `step`, and longer ones where history has no others. */
function assembled(
  blocks: readonly (readonly StoredBlock[])[],
  recent: ReadonlyMap<number, Pack>,
  { from, to, step, nameOf }: PeriodsQuery & { readonly nameOf: NameOf },
  now: number,
): readonly Period[] {
  const [fives, hours, days] = [0, 1, 2].map((tier) =>
    packsIn(blocks[tier] ?? [], tiers[tier as 0 | 1 | 2].width, nameOf),
  ) as [Map<number, Pack>, Map<number, Pack>, Map<number, Pack>]
  const stored = new Set((blocks[0] ?? []).map(({ at }) => at))
  for (const [slot, pack] of recent) if (!stored.has(floorTo(slot, hour))) fives.set(slot, pack)
  const start = startOf(from, now)
  const finerHours = new Set([...fives.keys()].map((at) => floorTo(at, hour)))
  const finerDays = new Set([...hours.keys(), ...fives.keys()].map((at) => floorTo(at, day)))
  const fits = (at: number, width: number): boolean => at >= start && at + width <= to && step >= width
  const usedDays = chosen(days, (at) => fits(at, day) || (at >= start && !finerDays.has(at)))
  const usedHours = chosen(
    hours,
    (at) => !usedDays.has(floorTo(at, day)) && (fits(at, hour) || (at >= start && !finerHours.has(at))),
  )
  const usedFives = chosen(
    fives,
    (at) => at >= start && at < to && !usedDays.has(floorTo(at, day)) && !usedHours.has(floorTo(at, hour)),
  )
  return [...usedDays, ...usedHours, ...usedFives]
    .map(([at, { width, pack }]) => ({ from: at, to: at + width, pack }))
    .sort((one, other) => one.from - other.from)

  function chosen(packs: ReadonlyMap<number, Pack>, isChosen: (at: number) => boolean) {
    const width = packs === days ? day : packs === hours ? hour : tiers[0].width
    const some = new Map<number, { readonly width: number; readonly pack: Pack }>()
    for (const [at, pack] of packs) if (isChosen(at)) some.set(at, { width, pack })
    return some
  }
}

/** Where periods begin that history still has at this age. */
export function startOf(from: number, now: number): number {
  const tier = tiers.find((one) => reachOf(one, now) <= from) ?? tiers[2]
  return floorTo(from, tier.width)
}

function packsIn(blocks: readonly StoredBlock[], width: number, nameOf: NameOf): Map<number, Pack> {
  const packs = new Map<number, Pack>()
  for (const block of blocks) {
    for (const [index, pack] of decodeBlock(block, width, nameOf).entries()) {
      if (pack) packs.set(block.at + index * width, pack)
    }
  }
  return packs
}

/** The packs of a time that begins and ends anywhere, in periods of `step` that begin at multiples of it. */
export function inSteps(periods: readonly Period[], step: number): readonly Period[] {
  const sums = new Map<number, { from: number; to: number; pack: Pack }>()
  for (const { from, to, pack } of periods) {
    const start = floorTo(from, step)
    const sum = sums.get(start) ?? { from: start, to: Math.max(start + step, to), pack: emptyPack() }
    addPack(sum.pack, pack)
    sums.set(start, sum)
  }
  return [...sums.values()]
}
