import { entryOf } from '../../base/lazy.ts'
import type { Shift } from '../schedule/index.ts'
import { encodeBlock } from './block.ts'
import { addPack, emptyPack, type Pack } from './pack.ts'
import type { BlockRow, HistoryBatch, HistoryMonitor, Numbered, Unnumbered } from './rows.ts'
import { encodeRuns, hasLayout, layoutOf, type WrittenLayout } from './runs.ts'
import { floorTo, keptFrom, runsKeptMs, slotsOf, tiers } from './tiers.ts'
import { type ObservedRun, Timeline } from './timeline.ts'

/** A monitor by its key, with the names that people know it by. */
export type MonitorIdentity = Pick<HistoryMonitor, 'key' | 'type' | 'name'>

type Watched = { -readonly [Name in keyof MonitorIdentity]: MonitorIdentity[Name] } & {
  firstAt: number
  number: number | undefined
  /** Of its latest run. Mostly the next one has the same. */
  layout: WrittenLayout | undefined
  readonly timeline: Timeline
}

/** A block that is complete and not yet stored. */
type Closed = {
  readonly monitor: Watched
  readonly at: number
  readonly packs: ReadonlyMap<number, Pack>
  /** Since when it is complete. */
  readonly since: number
}

type WaitingRun = { readonly monitor: Watched; readonly run: ObservedRun; readonly layout: string }

/** Runs that wait for the store. More of them are not stored one by one, but count in the periods. */
const maxWaitingRuns = 20_000
/** Milliseconds for which complete blocks wait for the store. */
const blocksWaitMs = 3 * 3_600_000
/** How many monitors complete their blocks, and how many are encoded, in one batch: some tens of milliseconds of work. */
const monitorsAtOnce = 20
/** Milliseconds after the end of an hour in which runs of that hour may still arrive. */
const lateMs = 5_000
/** How often the store learns which names and monitors are still used, in milliseconds. */
const usedEveryMs = 6 * 3_600_000
/** Names that history has room for. What has other names is not kept. */
export const maxNames = 50_000

const [finest] = tiers

/**
 * Takes the runs of all monitors, and says what is to be written. It has neither clock nor store, and the same calls give
 * the same batches. The time between two calls may be of any length.
 */
export class Recorder {
  readonly #watched = new Map<string, Watched>()
  readonly #numbers = new Map<string, number>()
  readonly #newNames = new Set<string>()
  /** By their texts, so that monitors with the same layout share it. */
  readonly #layouts = new Map<string, WrittenLayout>()
  #newMonitors: Watched[] = []
  #waiting: WaitingRun[] = []
  /** How many of the runs that wait, and of the complete blocks, are part of the batch that was made last. */
  #offered = { runs: 0, blocks: 0 }
  /** The numbers that were used since the store was last told so. */
  #used = { names: new Set<number>(), monitors: new Set<number>() }
  #usedSaidAt: number | undefined
  #closed: Closed[] = []
  #closing: Watched[] = []
  /** The end of the last hour whose blocks are being completed. */
  #closedUntil = Number.NEGATIVE_INFINITY
  /** Blocks that the store did not take in time. */
  #lostBlocks = 0

  /** Takes the names and monitors that another process has stored. */
  adopt({ names, monitors }: Numbered): void {
    this.numbered({ names, monitors: [] })
    for (const row of monitors)
      if (!this.#watched.has(row.key))
        this.#watched.set(row.key, { ...row, layout: undefined, timeline: new Timeline(0) })
  }

  /** Continues the history under a key as that of another monitor, unless that monitor is known already. */
  rename(from: string, to: MonitorIdentity): void {
    const monitor = this.#watched.get(from)
    if (!monitor || this.#watched.has(to.key)) return
    this.#watched.delete(from)
    this.#watched.set(to.key, Object.assign(monitor, to))
  }

  get monitors(): readonly (MonitorIdentity & { readonly firstAt: number; readonly number: number | undefined })[] {
    return [...this.#watched.values()]
  }

  /** How many complete blocks were dropped because the store took none for too long. */
  get lostBlocks(): number {
    return this.#lostBlocks
  }

  /** Takes a run that ended now. */
  add(identity: MonitorIdentity, run: ObservedRun): void {
    const monitor = this.#watch(identity, run.at)
    monitor.timeline.observe(run)
    if (this.#waiting.length >= maxWaitingRuns) {
      this.#waiting.shift()
      this.#offered.runs = Math.max(0, this.#offered.runs - 1)
    }
    const layout = this.#layoutOf(monitor, run)
    this.#waiting.push({ monitor, run, layout })
    if (monitor.number !== undefined) this.#used.monitors.add(monitor.number)
    this.#name(layout)
    for (const { check, figure, level } of run.checks) {
      if (figure) this.#name(figure.name)
      if (level === 'failed') this.#name(check)
    }
  }

  /** The line that people read has shifted. What is stored, and the blocks that are complete, stay as they are. */
  shift(shift: Shift): void {
    const { errorMs, correct } = shift
    for (const { timeline } of this.#watched.values()) timeline.shift(shift)
    this.#waiting = this.#waiting.map((one) => ({ ...one, run: { ...one.run, at: correct(one.run.at) } }))
    this.#newMonitors.forEach((monitor) => {
      monitor.firstAt = correct(monitor.firstAt)
    })
    this.#closed = this.#closed.map((one) => ({ ...one, since: one.since + errorMs }))
    if (this.#usedSaidAt !== undefined) this.#usedSaidAt += errorMs
    if (errorMs < 0) this.#closedUntil = Number.NEGATIVE_INFINITY
  }

  /** Takes a run that is stored already. */
  replay(key: string, run: ObservedRun): void {
    this.#watched.get(key)?.timeline.observe(run)
  }

  /** The names and monitors that need a number before the next batch. */
  get unnumbered(): Unnumbered {
    const monitors = this.#newMonitors.map(({ key, type, name, firstAt }) => ({ key, type, name, firstAt }))
    return { names: [...this.#newNames], monitors }
  }

  numbered({ names, monitors }: Numbered): void {
    for (const { text, number } of names) {
      this.#numbers.set(text, number)
      this.#newNames.delete(text)
    }
    const numbers = new Map(monitors.map(({ key, number }) => [key, number]))
    for (const monitor of this.#newMonitors) monitor.number = numbers.get(monitor.key)
    this.#newMonitors = this.#newMonitors.filter(({ number }) => number === undefined)
  }

  /**
   * The batch to write now. Undefined: there is nothing to write. `packed`: whether all periods that are complete are
   * packed into longer ones, so that old blocks may be deleted. The batch is made again until `stored` is called for
   * it.
   */
  batch(now: number, isPacked: boolean): HistoryBatch | undefined {
    this.#close(now)
    const runs = this.#runsRow()
    const closed = this.#closed.slice(0, monitorsAtOnce)
    this.#offered = { runs: this.#waiting.length, blocks: closed.length }
    const blocks = closed.flatMap((one) => this.#blockRow(one) ?? [])
    if (runs === undefined && blocks.length === 0) return undefined
    return {
      runs,
      blocks,
      used: this.#usedNow(now),
      deleteRunsBefore: Math.min(now - runsKeptMs, this.#neededFrom()),
      deleteBlocksBefore: isPacked ? tiers.map((tier) => keptFrom(tier, now)) : undefined,
    }
  }

  /** The store has the batch that was made last. */
  stored({ used }: HistoryBatch): void {
    this.#waiting.splice(0, this.#offered.runs)
    this.#closed.splice(0, this.#offered.blocks)
    this.#offered = { runs: 0, blocks: 0 }
    if (!used) return
    this.#usedSaidAt = used.at
    for (const number of used.names) this.#used.names.delete(number)
    for (const number of used.monitors) this.#used.monitors.delete(number)
  }

  /** Whether blocks of past hours are not stored yet. */
  get isBehind(): boolean {
    return this.#closed.length > 0 || this.#closing.length > 0
  }

  /** The periods of a monitor that are not in blocks of the store, by their beginning, up to now. */
  recent(key: string, now: number): ReadonlyMap<number, Pack> {
    const watched = this.#watched.get(key)
    if (!watched) return new Map()
    watched.timeline.advance(now)
    const packs = new Map<number, Pack>()
    const add = (slot: number, pack: Pack): void => {
      const sum = packs.get(slot) ?? emptyPack()
      addPack(sum, pack)
      packs.set(slot, sum)
    }
    for (const { monitor, packs: own } of this.#closed)
      if (monitor === watched) for (const [slot, pack] of own) add(slot, pack)
    for (const [slot, pack] of watched.timeline.packs) add(slot, pack)
    return packs
  }

  #watch({ key, type, name }: MonitorIdentity, at: number): Watched {
    const existing = this.#watched.get(key)
    if (existing) return existing
    const made: Watched = {
      key,
      type,
      name,
      firstAt: at,
      number: undefined,
      layout: undefined,
      timeline: new Timeline(at),
    }
    this.#watched.set(key, made)
    this.#newMonitors.push(made)
    return made
  }

  #layoutOf(monitor: Watched, run: ObservedRun): string {
    if (!monitor.layout || !hasLayout(run, monitor.layout)) {
      const made = layoutOf(run)
      if (this.#layouts.size >= maxNames) this.#layouts.clear()
      monitor.layout = entryOf(this.#layouts, made.text, () => made)
    }
    return monitor.layout.text
  }

  #name(text: string): void {
    const number = this.#numbers.get(text)
    if (number !== undefined) this.#used.names.add(number)
    else if (this.#numbers.size + this.#newNames.size < maxNames) this.#newNames.add(text)
  }

  /** The number of a name. 0: it has none. */
  readonly numberOf = (name: string): number => this.#numbers.get(name) ?? 0

  #runsRow(): HistoryBatch['runs'] {
    const ready: Parameters<typeof encodeRuns>[0][number][] = []
    let at = Number.POSITIVE_INFINITY
    for (const { monitor, run, layout: text } of this.#waiting) {
      const layout = this.#numbers.get(text)
      if (monitor.number === undefined || layout === undefined) continue
      ready.push({ monitor: monitor.number, run, layout })
      at = Math.min(at, run.at)
    }
    return ready.length === 0 ? undefined : { at, body: encodeRuns(ready, at) }
  }

  /** Of the runs since then, a process that starts again makes the blocks that are not stored yet. */
  #neededFrom(): number {
    if (this.#closing.length > 0) return 0
    return this.#closed.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY)
  }

  #usedNow(at: number): HistoryBatch['used'] {
    this.#usedSaidAt ??= at
    if (at - this.#usedSaidAt < usedEveryMs) return undefined
    return { at, names: [...this.#used.names], monitors: [...this.#used.monitors] }
  }

  /** Completes the blocks of the hours that have ended, those of some monitors at a time. */
  #close(now: number): void {
    const until = floorTo(now - lateMs, finest.span)
    if (until > this.#closedUntil) {
      this.#closedUntil = until
      this.#closing = [...this.#watched.values()]
    }
    for (const monitor of this.#closing.splice(0, monitorsAtOnce)) {
      monitor.timeline.advance(this.#closedUntil)
      const byHour = Map.groupBy(monitor.timeline.take(this.#closedUntil), ([slot]) => floorTo(slot, finest.span))
      for (const [at, packs] of byHour) this.#closed.push({ monitor, at, packs: new Map(packs), since: now })
    }
    const stale = this.#closed.findIndex(({ since }) => since >= now - blocksWaitMs)
    const dropped = stale < 0 ? this.#closed.length : stale
    this.#lostBlocks += dropped
    this.#closed.splice(0, dropped)
  }

  #blockRow({ monitor, at, packs }: Closed): BlockRow | undefined {
    if (monitor.number === undefined) return undefined
    return blockRow({ tier: 0, at, monitor: monitor.number }, packs, this.numberOf)
  }
}

/** The block of a tier from its packs, by the beginning of each. */
export function blockRow(
  { tier, at, monitor }: Pick<BlockRow, 'tier' | 'at' | 'monitor'>,
  packs: ReadonlyMap<number, Pack>,
  numberOf: (name: string) => number,
): BlockRow {
  const { width } = tiers[tier as 0 | 1 | 2]
  const slots = Array.from({ length: slotsOf(tiers[tier as 0 | 1 | 2]) }, (_, index) => packs.get(at + index * width))
  const runs = slots.reduce((sum, pack) => sum + (pack?.runs ?? 0), 0)
  return { tier, at, monitor, runs, ...encodeBlock(slots, width, numberOf) }
}
