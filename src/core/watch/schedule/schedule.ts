import { Heap } from '../../checks/engine/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import {
  type Asker,
  begin,
  covers,
  depths,
  dueOrder,
  earlyMs,
  end,
  type MonitorRow,
  nextAt,
  type Order,
  orderFor,
  type RunRequest,
  type Scheduled,
  watchFrom,
  withRequest,
} from './due.ts'
import { RecentHighest } from './lateness.ts'
import { aliveAt, type Stillness, showsLife, stoodStillSince } from './stillness.ts'

/** A row in its table. */
type Place = { row: MonitorRow; nextAt: number; readonly number: number }

/** The result of a tick: the runs to begin, the deepest first, and when to tick again. */
export type Tick = {
  readonly orders: readonly Order[]
  /** Infinity if nothing is due before something else happens. */
  readonly nextAt: number
}

/** A run that began or ended. */
export type RunOfMonitor = {
  readonly key: string
  readonly depth: ExecutionMode
  readonly by: Asker
  readonly now: number
}

/** How late the schedule is, in milliseconds, and whether it keeps up. */
export type Lateness = {
  readonly byDepth: ReadonlyMap<ExecutionMode, number>
  readonly keepsUp: boolean
}

/**
 * The table of all rows, with those first that are due first. It decides over time and has none of its own: no clock, no
 * timer, no randomness. The same calls give the same answers. A tick takes O(log n) for each due row, and every other call
 * O(log n).
 */
export class Schedule {
  readonly #places = new Map<string, Place>()
  readonly #soonest = new Heap<Place>((a, b) => a.nextAt < b.nextAt || (a.nextAt === b.nextAt && a.number < b.number))
  /** Orders that have not begun, by depth, the earliest first. */
  readonly #waiting = new Map<ExecutionMode, Map<string, Order>>(depths.map((depth) => [depth, new Map()]))
  readonly #late = new Map(depths.map((depth) => [depth, new RecentHighest()]))
  /** How much later runs began than they may, as a share of that. */
  readonly #excess = new RecentHighest()
  #stillness: Stillness
  #numbers = 0

  constructor(now: number) {
    this.#stillness = aliveAt(now)
  }

  /** How many monitors there are. */
  get size(): number {
    return this.#places.size
  }

  /** When the next tick is due. Infinity if none is before something else happens. */
  get nextAt(): number {
    return this.#soonest.first?.nextAt ?? Number.POSITIVE_INFINITY
  }

  /**
   * Takes a monitor on. One with a key that is here already gets the new intervals, and keeps what it did. `spread`: over
   * how many milliseconds first runs are spread; default: 30 s.
   */
  watch({ key, every }: Scheduled, now: number, spread?: number): void {
    const place = this.#places.get(key)
    const row = place ? { ...place.row, every } : watchFrom({ key, every }, now, spread)
    this.#put(place ?? { row, nextAt: 0, number: this.#numbers++ }, row)
  }

  /** Forgets a monitor. Nothing of what is in progress counts for it. */
  forget(key: string): void {
    const place = this.#places.get(key)
    if (!place) return
    this.#places.delete(key)
    this.#soonest.delete(place)
    for (const waiting of this.#waiting.values()) waiting.delete(key)
  }

  /** Somebody needs a run besides those that are due. It takes its turn like any other. */
  ask(key: string, needed: RunRequest, now: number): void {
    const place = this.#places.get(key)
    if (place) this.#put(place, withRequest(place.row, needed, now))
  }

  /** Whether the process stood still at any time since then, so that a failure of a run that began then does not count. */
  stoodStillSince(from: number, now: number): boolean {
    this.beat(now)
    return stoodStillSince(this.#stillness, from)
  }

  /** The process works: to be called at least every `beatMs`. */
  beat(now: number): void {
    this.#stillness = showsLife(this.#stillness, now)
  }

  /** At most `most` runs that are due. If more are, the next tick is due at once. */
  tick(now: number, most = Number.POSITIVE_INFINITY): Tick {
    this.beat(now)
    const orders: Order[] = []
    for (
      let place = this.#soonest.first;
      place && place.nextAt <= now && orders.length < most;
      place = this.#soonest.first
    ) {
      const order = dueOrder(place.row, now)
      this.#put(place, order ? orderFor(place.row, order) : place.row)
      if (order) orders.push(order)
    }
    const deepestFirst = orders.toSorted(
      (a, b) => depths.indexOf(b.depth) - depths.indexOf(a.depth) || a.dueAt - b.dueAt,
    )
    for (const order of deepestFirst) {
      for (const waiting of this.#waiting.values()) waiting.delete(order.key)
      this.#waiting.get(order.depth)?.set(order.key, order)
    }
    return { orders: deepestFirst, nextAt: this.nextAt }
  }

  /** Whether a run of this monitor that serves this depth is about to begin. */
  owes(key: string, depth: ExecutionMode, now: number): boolean {
    const place = this.#places.get(key)
    if (!place) return false
    const { order } = place.row
    if (order && order.beganAt === undefined && covers(order.depth, depth)) return true
    const due = place.nextAt <= now ? dueOrder(place.row, now) : undefined
    return due !== undefined && covers(due.depth, depth)
  }

  /** A run began. Returns how many milliseconds late, for a run of the schedule that was waiting. */
  began({ key, depth, by, now }: RunOfMonitor): number | undefined {
    this.beat(now)
    const place = this.#places.get(key)
    if (!place) return undefined
    const waiting = by === 'schedule' ? this.#noLongerWaiting(place.row) : undefined
    this.#put(place, begin(place.row, by, depth, now))
    return waiting && this.#wasLate(place.row, waiting, now)
  }

  /**
   * A run ended. `failed`: whether it found a failure. `beganAt`: when it began. `hadTime`: false for a run that did not get
   * what it needed to come to a verdict. Returns whether its verdict counts: one that found a failure while the process
   * stood still does not, nor does one without a verdict. Such a run of a monitor is due again at once.
   */
  ended({
    key,
    depth,
    by,
    now,
    beganAt,
    failed,
    hadTime = true,
  }: RunOfMonitor & { readonly beganAt: number; readonly failed: boolean; readonly hadTime?: boolean }): boolean {
    this.beat(now)
    const counts = hadTime && !(failed && stoodStillSince(this.#stillness, beganAt))
    const place = this.#places.get(key)
    if (!place) return counts
    const waiting = by === 'schedule' ? this.#noLongerWaiting(place.row) : undefined
    if (waiting) this.#wasLate(place.row, waiting, now)
    this.#put(place, end(place.row, by, depth, now, counts))
    return counts
  }

  /** How late runs are now and were in the last minute, for each depth that any monitor has. */
  lateness(now: number): Lateness {
    const overdue = this.#soonest.first ? Math.max(0, now - this.#soonest.first.nextAt) : 0
    const byDepth = new Map<ExecutionMode, number>()
    for (const depth of depths) {
      const [oldest] = this.#waiting.get(depth)?.values() ?? []
      const waits = oldest ? now - oldest.readyAt : 0
      byDepth.set(depth, Math.max(this.#late.get(depth)?.at(now) ?? 0, waits, overdue))
    }
    const mayBeLate = earlyMs(Number.POSITIVE_INFINITY)
    const waitsTooLong = [...this.#waiting.values()].some((orders) => {
      const [oldest] = orders.values()
      return oldest !== undefined && now - oldest.readyAt > mayBeLate
    })
    return { byDepth, keepsUp: this.#excess.at(now) <= 1 && !waitsTooLong && overdue <= mayBeLate }
  }

  #noLongerWaiting({ key, order }: MonitorRow): Order | undefined {
    if (!order || order.beganAt !== undefined) return undefined
    this.#waiting.get(order.depth)?.delete(key)
    return order
  }

  #wasLate({ every }: MonitorRow, { depth, readyAt }: Order, now: number): number {
    const lateMs = Math.max(0, now - readyAt)
    this.#late.get(depth)?.add(lateMs, now)
    this.#excess.add(lateMs / earlyMs(every[depth] ?? Number.POSITIVE_INFINITY), now)
    return lateMs
  }

  #put(place: Place, row: MonitorRow): void {
    place.row = row
    place.nextAt = nextAt(row)
    this.#places.set(row.key, place)
    if (place.nextAt === Number.POSITIVE_INFINITY) this.#soonest.delete(place)
    else this.#soonest.put(place)
  }
}
