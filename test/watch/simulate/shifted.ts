import { entryOf } from '../../../src/core/base/lazy.ts'
import { Outbox, type OutboxEffect, type StoredRow } from '../../../src/core/watch/outbox/index.ts'
import { shiftedRow } from '../../../src/core/watch/outbox/row.ts'
import { incidentId } from '../../../src/core/watch/states/incident.ts'
import { type Effect, States, type StoredSubject, type SubjectState } from '../../../src/core/watch/states/index.ts'
import { shiftedState } from '../../../src/core/watch/states/shifted.ts'
import { Chance } from './chance.ts'

const hour = 3_600_000
const jumps = [-2 * hour, 2 * hour, -960 * hour, 960 * hour, 11_000, -11_000]

/** The id of an incident of a receiver follows from its beginning as people read it then. */
export const withoutIds = (lines: readonly string[]): string =>
  lines.join('\n').replaceAll(/(\/svc\/receivers\S+) \S{12} /g, '$1 ')

/** A line that jumps by hours and days, and the truth behind it. */
class Jumps {
  readonly #chance: Chance
  readonly #everyCalls: number
  ahead = 0

  constructor(seed: number, everyCalls: number) {
    this.#everyCalls = everyCalls
    this.#chance = new Chance(seed)
  }

  /** The next jump, now and then. */
  next(): number | undefined {
    if (!this.#chance.is(1 / this.#everyCalls)) return undefined
    const ms = this.#chance.of(jumps)
    this.ahead += ms
    return ms
  }

  readonly toLine = (at: number): number => at + this.ahead
  readonly toTruth = (at: number): number => at - this.ahead
}

const by = (move: (at: number) => number) => ({ move, correct: move })
const all = (ms: number) => ({ ms, errorMs: ms, move: (at: number) => at + ms, correct: (at: number) => at + ms })

/**
 * States on a line that jumps while a fault stands, is in doubt or ends. Outside, all times are the truth: whoever uses them
 * notices the jumps only if an instant does not move with the others.
 */
export function jumpingStates(
  seed: number,
  Subject: typeof States = States,
): { readonly Subject: typeof States; readonly count: () => number } {
  let count = 0
  class JumpingStates {
    readonly #jumps = new Jumps(seed, 12)
    readonly #states: States
    /** The true ids of incidents, which follow from their beginning. */
    readonly #ids = new Map<string, string>()

    constructor(now: number, ...rest: readonly never[]) {
      this.#states = new Subject(now, ...rest)
    }

    get isIsolated() {
      return this.#states.isIsolated
    }

    get questions() {
      return this.#states.questions
    }

    restore(rows: Parameters<States['restore']>[0], now: number, until: number): void {
      const { toLine } = this.#jumps
      const moved = rows.map(({ row, state }) => ({ row, state: shiftedState(state, by(toLine)) }))
      this.#states.restore(moved, toLine(now), toLine(until))
    }

    #jump(): void {
      const ms = this.#jumps.next()
      if (ms === undefined) return
      count += 1
      this.#states.shift(all(ms))
    }

    configure(...[monitors, now, ...rest]: Parameters<States['configure']>) {
      this.#jump()
      return this.#true(this.#states.configure(monitors, this.#jumps.toLine(now), ...rest))
    }

    release(keys: Iterable<string>): void {
      this.#states.release(keys)
    }

    ran(run: Parameters<States['ran']>[0], now: number) {
      this.#jump()
      const { toLine } = this.#jumps
      const moved = { ...run, beganAt: toLine(run.beganAt), endedAt: toLine(run.endedAt) }
      return this.#true(this.#states.ran(moved, toLine(now)))
    }

    witnessed(witness: string, attempt: Parameters<States['witnessed']>[1], now: number) {
      this.#jump()
      const { toLine } = this.#jumps
      return this.#true(this.#states.witnessed(witness, { ...attempt, at: toLine(attempt.at) }, toLine(now)))
    }

    tick(now: number) {
      this.#jump()
      return this.#true(this.#states.tick(this.#jumps.toLine(now)))
    }

    stateOf(subject: Parameters<States['stateOf']>[0]) {
      const state = this.#states.stateOf(subject)
      return typeof state === 'object' ? this.#trueState(subject, state) : state
    }

    *views(...[now, ...rest]: Parameters<States['views']>) {
      for (const view of this.#states.views(this.#jumps.toLine(now), ...rest))
        yield { ...view, state: this.#trueState(view, view.state) }
    }

    *incidents() {
      yield* this.#states.incidents()
    }

    suspectOf(key: string) {
      return this.#states.suspectOf(key)
    }

    #idOf(subject: Pick<StoredSubject, 'key' | 'check' | 'item'>, { id, beganAt }: { id: string; beganAt: number }) {
      return entryOf(this.#ids, id, () => incidentId(subject, this.#jumps.toTruth(beganAt)))
    }

    #trueState(row: Pick<StoredSubject, 'key' | 'check' | 'item'>, state: SubjectState): SubjectState {
      const { incident, ...shifted } = shiftedState(state, by(this.#jumps.toTruth))
      if (!state.incident || !incident) return { ...shifted, incident }
      return { ...shifted, incident: { ...incident, id: this.#idOf(row, state.incident) } }
    }

    #true(effects: readonly Effect[]): readonly Effect[] {
      const { toTruth } = this.#jumps
      return effects.map((effect): Effect => {
        if (effect.type === 'ask') return { ...effect, at: toTruth(effect.at) }
        if (effect.type === 'store')
          return { ...effect, state: effect.state && this.#trueState(effect.row, effect.state) }
        if (effect.type !== 'transition') return effect
        const { transition, incident } = effect
        const at = toTruth(transition.at)
        const moved = { ...transition, at, confirmedAt: toTruth(transition.confirmedAt) }
        if (!incident) return { ...effect, transition: moved }
        const id = this.#idOf(transition, incident)
        const { beganAt, confirmedAt } = incident
        const own = { ...incident, id, beganAt: toTruth(beganAt), confirmedAt: toTruth(confirmedAt) }
        return { ...effect, transition: { ...moved, incident: id }, incident: own }
      })
    }
  }
  return { Subject: JumpingStates as unknown as typeof States, count: () => count }
}

/** An outbox on a line that jumps while messages wait, leave and are answered. Outside, all times are the truth. */
export function jumpingOutbox(
  seed: number,
  Subject: typeof Outbox = Outbox,
): { readonly Subject: typeof Outbox; readonly count: () => number } {
  let count = 0
  class JumpingOutbox {
    readonly #jumps = new Jumps(seed, 3)
    readonly #outbox: Outbox

    constructor(...[now, lookup, ownKey]: ConstructorParameters<typeof Outbox>) {
      this.#outbox = new Subject(
        now,
        (subject) => {
          const present = lookup(subject)
          if (typeof present !== 'object') return present
          const whole = { levelSince: 0, confirmedAt: 0, observedAt: 0, faults: [], ...present.state } as never
          return { ...present, state: shiftedState(whole, by(this.#jumps.toLine)) }
        },
        ownKey,
      )
    }

    #jump(): void {
      const ms = this.#jumps.next()
      if (ms === undefined) return
      count += 1
      this.#outbox.shift(all(ms))
    }

    restore(rows: readonly StoredRow[], now: number): void {
      const { toLine } = this.#jumps
      this.#outbox.restore(
        rows.map((one) => ({ ...one, row: one.row && shiftedRow(one.row, by(toLine)) })),
        toLine(now),
      )
    }

    configure(receivers: Parameters<Outbox['configure']>[0], now: number) {
      return this.#true(this.#outbox.configure(receivers, this.#jumps.toLine(now)))
    }

    transition(transition: Parameters<Outbox['transition']>[0], now: number) {
      this.#jump()
      const { toLine } = this.#jumps
      const moved = { ...transition, at: toLine(transition.at), confirmedAt: toLine(transition.confirmedAt) }
      return this.#true(this.#outbox.transition(moved, toLine(now)))
    }

    watch(subject: StoredSubject): void {
      this.#outbox.watch(subject)
    }

    tick(now: number) {
      this.#jump()
      const { effects, nextAt } = this.#outbox.tick(this.#jumps.toLine(now))
      return { effects: this.#true(effects), nextAt: this.#jumps.toTruth(nextAt) }
    }

    answered(...[receiver, attempt, delivery, now]: Parameters<Outbox['answered']>) {
      this.#jump()
      return this.#true(this.#outbox.answered(receiver, attempt, delivery, this.#jumps.toLine(now)))
    }

    withheld(receiver: string, attempt: number, now: number) {
      return this.#true(this.#outbox.withheld(receiver, attempt, this.#jumps.toLine(now)))
    }

    pendingFor(receiver: string) {
      const { count: waiting, since } = this.#outbox.pendingFor(receiver)
      return { count: waiting, since: since === undefined ? undefined : this.#jumps.toTruth(since) }
    }

    rows() {
      return this.#outbox.rows().map(this.#trueRow)
    }

    readonly #trueRow = (one: StoredRow): StoredRow => ({
      ...one,
      row: one.row && shiftedRow(one.row, by(this.#jumps.toTruth)),
    })

    #true(effects: readonly OutboxEffect[]): readonly OutboxEffect[] {
      const { toTruth } = this.#jumps
      return effects.map((effect): OutboxEffect => {
        if (effect.type === 'store') return { ...effect, rows: effect.rows.map(this.#trueRow) }
        if (effect.type !== 'send') return effect
        const items = effect.items.map(({ beganAt, endedAt, observedAt, ...item }) => ({
          ...item,
          beganAt: toTruth(beganAt),
          ...(endedAt === undefined ? {} : { endedAt: toTruth(endedAt) }),
          observedAt: toTruth(observedAt),
        }))
        return { ...effect, rows: effect.rows.map(this.#trueRow), items }
      })
    }
  }
  return { Subject: JumpingOutbox as unknown as typeof Outbox, count: () => count }
}
