import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import * as ShippedSchedule from '../../../src/core/watch/schedule/index.ts'
import * as ShippedStates from '../../../src/core/watch/states/index.ts'
import type { Queue } from './queue.ts'
import { second } from './trial.ts'

/** The subject of the simulation: the shipped schedule and states, or copies with a defect. */
export type Subject = Pick<typeof ShippedSchedule, 'Schedule' | 'ProcessLine'> &
  Pick<typeof ShippedStates, 'States' | 'Ledger' | 'StatesTable'>

const { Schedule, ProcessLine } = ShippedSchedule
type ProcessLine = InstanceType<typeof ProcessLine>
const { States, Ledger, StatesTable } = ShippedStates
export const shipped: Subject = { Schedule, ProcessLine, States, Ledger, StatesTable }

type RunOrder = { readonly key: string; readonly depth: ExecutionMode; readonly by: 'schedule' | 'caller' }
/** A run, and what it shows. `ms`: how long it takes. `frozen`: what it shows if the process stands still meanwhile. */
export type Look = {
  readonly verdicts: readonly ShippedStates.Verdict[]
  readonly ms: number
  readonly frozen?: readonly ShippedStates.Verdict[] | undefined
}
/** A run that has ended. `at`: when it began. */
export type Ended = RunOrder & {
  readonly at: number
  readonly endedAt: number
  readonly verdicts: readonly ShippedStates.Verdict[]
  readonly counts: boolean
}

/** The world of a process: its peers, its settings, its store, and those who look at what it does. */
export type Site = {
  readonly queue: Queue
  readonly subject: Subject
  readonly table: InstanceType<typeof StatesTable>
  /** The clock of the wall, which people set. */
  readonly wall: () => number
  readonly witnesses: readonly string[]
  readonly monitors: () => readonly ShippedStates.WatchedMonitor[]
  readonly look: (run: RunOrder & { readonly at: number; readonly repeatsRefused: boolean }) => Look
  readonly ended: (run: Ended) => void
  readonly transition: (transition: ShippedStates.Transition, incident: ShippedStates.Incident | undefined) => void
  readonly askWitnesses?: () => void
  readonly onAsk?: (key: string) => void
  /** There is something to store. */
  readonly changed?: () => void
  /** Whether the store takes something now. */
  readonly takes: () => boolean
  /** It has taken something. Returns whether its answer arrives. */
  readonly stored: () => boolean
}

/** One process of svc: its schedule, its states and its ledger, until it is killed. */
export class Process {
  readonly line: ProcessLine
  readonly schedule: InstanceType<typeof Schedule>
  readonly states: InstanceType<typeof States>
  readonly ledger: InstanceType<typeof Ledger>
  readonly running = new Set<string>()
  isDead = false
  frozenUntil = 0
  readonly #site: Site
  readonly #deferred: (() => void)[] = []
  #frozeAt = Number.NEGATIVE_INFINITY
  #thawedAt = Number.NEGATIVE_INFINITY
  #cancelTimer = (): void => {}

  constructor(site: Site) {
    const { subject, wall, witnesses, queue } = site
    this.#site = site
    this.line = new subject.ProcessLine({ wall, monotonic: () => queue.now })
    this.schedule = new subject.Schedule(this.line.steady())
    this.states = new subject.States(this.line.now(), witnesses)
    this.ledger = new subject.Ledger()
  }

  #enter(run: () => void): void {
    if (this.isDead) return
    if (this.#site.queue.now < this.frozenUntil) this.#deferred.push(run)
    else run()
  }

  after(ms: number, run: () => void): void {
    this.#site.queue.after(ms, () => this.#enter(run))
  }

  /** It stands still. `next`: which of so many deferred events happens next. */
  freeze(ms: number, next: (left: number) => number): void {
    const { queue } = this.#site
    this.#frozeAt = queue.now
    this.frozenUntil = queue.now + ms
    queue.after(ms, () => {
      if (this.isDead) return
      this.#thawedAt = queue.now
      const work = this.#deferred.splice(0)
      for (let left = work.length; left > 0; left -= 1) this.#enter(work.splice(next(left), 1)[0] ?? (() => {}))
    })
  }

  /** Takes back what an earlier process stored. */
  restore(): ShippedStates.StoredStates {
    const now = this.line.now()
    const stored = JSON.parse(JSON.stringify(this.#site.table.read(now))) as ShippedStates.StoredStates
    this.ledger.adopt(stored)
    this.states.restore(stored.states, now, now - (stored.ageMs ?? 0))
    return stored
  }

  configure(): void {
    const { monitors } = this.#site
    for (const { key, every } of monitors()) this.schedule.watch({ key, every }, this.line.steady())
    this.take(this.states.configure(monitors(), this.line.now()))
  }

  take(effects: readonly ShippedStates.Effect[]): void {
    const { onAsk, transition, askWitnesses, changed } = this.#site
    this.ledger.take(effects)
    for (const effect of effects) {
      if (this.isDead) return
      if (effect.type === 'ask') {
        onAsk?.(effect.key)
        this.ask(effect)
      } else if (effect.type === 'witness') askWitnesses?.()
      else {
        changed?.()
        if (effect.type === 'transition') transition(effect.transition, effect.incident)
      }
    }
  }

  ask({ key, depth, at, repeatsRefused }: Omit<Extract<ShippedStates.Effect, { type: 'ask' }>, 'type'>): void {
    const { line } = this
    this.schedule.ask(key, { depth, at: line.steadyAt(at), repeatsRefused }, line.steady())
  }

  run(order: RunOrder, repeatsRefused = false): void {
    const { queue, look, ended } = this.#site
    const { key, depth, by } = order
    const at = queue.now
    const beganAt = this.line.steady()
    this.running.add(`${key} ${by}`)
    this.schedule.began({ key, depth, by, now: beganAt })
    const { verdicts, ms, frozen } = look({ ...order, at, repeatsRefused })
    this.after(ms, () => {
      this.running.delete(`${key} ${by}`)
      const wasFrozen = this.#thawedAt > at && this.#thawedAt - this.#frozeAt > second
      const results = (wasFrozen && frozen) || verdicts
      const failed = results.some(({ level }) => level === 'failed')
      const counts = this.schedule.ended({ key, depth, by, now: this.line.steady(), beganAt, failed, hadTime: true })
      ended({ ...order, at, endedAt: queue.now, verdicts: results, counts })
      this.tick()
    })
  }

  /** Reports a run to the states. */
  report({ key, depth, verdicts, at, endedAt }: Omit<Ended, 'by' | 'counts'>): void {
    const { line } = this
    const civil = (time: number): number => line.civilAt(line.steady() - this.#site.queue.now + time)
    this.take(this.states.ran({ key, depth, verdicts, beganAt: civil(at), endedAt: civil(endedAt) }, line.now()))
  }

  /** Follows the clock of the wall. */
  look(): ShippedSchedule.Shift | undefined {
    const shift = this.line.look()
    if (!shift) return undefined
    this.ledger.shift(shift)
    this.take(this.states.shift(shift))
    return shift
  }

  /** Begins what is due. */
  tick(): void {
    this.#cancelTimer()
    const { orders, nextAt } = this.schedule.tick(this.line.steady())
    for (const { key, depth, repeatsRefused } of orders)
      this.run({ key, depth, by: 'schedule' }, repeatsRefused === true)
    if (nextAt === Number.POSITIVE_INFINITY) return
    let isCancelled = false
    this.#cancelTimer = () => {
      isCancelled = true
    }
    this.after(Math.max(1, Math.ceil(nextAt - this.line.steady())), () => {
      if (!isCancelled) this.tick()
    })
  }

  /** Stores what is new. The store may fail, and it may take something without an answer. */
  flush(): void {
    const { table, takes, stored } = this.#site
    const now = this.line.now()
    const batch = this.ledger.batch(now)
    if (!batch || !takes()) return
    table.write(JSON.parse(JSON.stringify(batch)) as ShippedStates.StatesBatch, now)
    if (stored()) this.ledger.stored(batch, now)
  }

  /** To be called at least once a second while anything is in doubt. */
  beat(): void {
    this.take(this.states.tick(this.line.now()))
    this.tick()
    this.flush()
  }
}
