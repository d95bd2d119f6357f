import type { Shift } from '../schedule/index.ts'
import { addFailing, addPack, type ByDepth, emptyPack, measure, type Pack } from './pack.ts'

/** Basic, Standard, Advanced. */
export type Rank = 0 | 1 | 2

/** The result of one check in one run. */
export type ObservedCheck = {
  /** The MonitoringName. */
  readonly check: string
  /** The shallowest depth that includes the check. */
  readonly rank: Rank
  /** Undefined: the check came to no verdict, so the one before stands. */
  readonly level: 'ok' | 'warning' | 'failed' | undefined
  /** The measured value, with the name of the figure. */
  readonly figure?: { readonly name: string; readonly value: number } | undefined
}

/** One run of a monitor. */
export type ObservedRun = {
  /** When it ended. Milliseconds since 1970. */
  readonly at: number
  /** How deep it was. It says something of the checks of this depth and of shallower ones. */
  readonly rank: Rank
  readonly checks: readonly ObservedCheck[]
  /** For how many milliseconds its verdicts stand, by the depth of the check: two intervals. */
  readonly validMs: Readonly<ByDepth>
}

/** Milliseconds of the shortest period that history keeps. */
export const slotMs = 300_000

/** A failed verdict that has neither been followed by a healthy one nor become too old. */
type Failing = { readonly rank: Rank; readonly until: number }

/**
 * When a monitor was up, down and not observed, from its runs. Down is from the first failed verdict of a check to its
 * first healthy one; a warning is healthy. A verdict stands until the next one of the check, and for two intervals at
 * most. The monitor is up where at least one verdict stands and none of them is a failure.
 *
 * Computes, and has no clock: the same runs give the same packs.
 */
export class Timeline {
  /** Up to when the packs say everything. */
  #at: number
  readonly #failing = new Map<string, Failing>()
  /** Until when the last healthy verdict of the checks of each depth stands. */
  readonly #healthyUntil: ByDepth = [0, 0, 0]
  readonly #packs = new Map<number, Pack>()

  /** `at`: when it begins. Milliseconds since 1970. */
  constructor(at: number) {
    this.#at = at
  }

  /** The packs of periods of five minutes, by their beginning, since they were last taken. */
  get packs(): ReadonlyMap<number, Pack> {
    return this.#packs
  }

  /** Takes a run that has ended. One that ended earlier than what is known counts from now on. */
  observe(run: ObservedRun): void {
    const { checks, validMs } = run
    this.advance(run.at)
    const now = this.#at
    const pack = this.#packAt(now)
    pack.runs += 1
    for (const { check, rank, level, figure } of checks) {
      if (figure !== undefined) measure(pack, figure.name, figure.value)
      if (level === undefined) continue
      const until = now + validMs[rank]
      if (level === 'failed') this.#failing.set(check, { rank, until })
      else {
        this.#failing.delete(check)
        this.#healthyUntil[rank] = Math.max(this.#healthyUntil[rank], until)
        if (level === 'warning') pack.warned |= 1 << rank
      }
    }
    if (isHealthy(checks)) this.#forgetUnmentioned(run)
  }

  /**
   * Removes failed checks that are no longer part of a healthy run: they do not exist any more, such as that of a queue
   * that was deleted.
   */
  #forgetUnmentioned({ rank, checks }: ObservedRun): void {
    for (const [name, failing] of this.#failing) {
      if (failing.rank <= rank && !checks.some(({ check }) => check === name)) this.#failing.delete(name)
    }
  }

  /** Adds the time up to `to` to the packs. A time before what is known changes nothing. */
  advance(to: number): void {
    while (this.#at < to) {
      if (this.#hasExpired()) {
        this.#at = to
        return
      }
      const next = this.#nextChange(to)
      this.#add(next - this.#at)
      this.#at = next
      for (const [check, { until }] of this.#failing) if (until <= next) this.#failing.delete(check)
    }
  }

  /**
   * The line that people read has shifted: what is not complete moves with it, to the nearest period. After a sleep of the
   * machine nothing moves, and verdicts become too old.
   */
  shift({ errorMs, correct }: Pick<Shift, 'errorMs' | 'correct'>): void {
    const packs = [...this.#packs]
    this.#packs.clear()
    for (const [slot, pack] of packs) {
      const at = Math.min(slot + slotMs - 1, this.#at)
      addPack(this.#packAt(slot + correct(at) - at + slotMs / 2), pack)
    }
    this.#at += errorMs
    for (const [check, { rank, until }] of this.#failing) this.#failing.set(check, { rank, until: until + errorMs })
    for (const rank of ranks) this.#healthyUntil[rank] += errorMs
  }

  /** Removes and returns the packs of the periods that begin before this time. */
  take(before: number): ReadonlyMap<number, Pack> {
    const taken = new Map<number, Pack>()
    for (const [slot, pack] of this.#packs) {
      if (slot >= before) continue
      taken.set(slot, pack)
      this.#packs.delete(slot)
    }
    return taken
  }

  #hasExpired(): boolean {
    return this.#failing.size === 0 && this.#healthyUntil.every((until) => until <= this.#at)
  }

  /** The next time at which anything changes by itself, at most `to`. */
  #nextChange(to: number): number {
    let next = Math.min(to, slotOf(this.#at) + slotMs)
    for (const until of this.#healthyUntil) if (until > this.#at && until < next) next = until
    for (const { until } of this.#failing.values()) if (until < next) next = until
    return next
  }

  #add(ms: number): void {
    let isUp = false
    let isDown = false
    let pack: Pack | undefined
    for (const rank of ranks) {
      isUp ||= this.#healthyUntil[rank] > this.#at
      for (const failing of this.#failing.values()) isDown ||= failing.rank === rank
      if (!isUp && !isDown) continue
      pack ??= this.#packAt(this.#at)
      if (isDown) pack.down[rank] += ms
      else pack.up[rank] += ms
    }
    if (!pack) return
    for (const check of this.#failing.keys()) addFailing(pack, check, ms)
  }

  #packAt(at: number): Pack {
    const slot = slotOf(at)
    const existing = this.#packs.get(slot)
    if (existing) return existing
    const made = emptyPack()
    this.#packs.set(slot, made)
    return made
  }
}

const isHealthy = (checks: readonly ObservedCheck[]): boolean =>
  checks.some(({ level }) => level !== undefined) && !checks.some(({ level }) => level === 'failed')

const ranks: readonly Rank[] = [0, 1, 2]

export const slotOf = (at: number): number => Math.floor(at / slotMs) * slotMs
