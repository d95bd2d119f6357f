import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import * as ShippedSchedule from '../../../src/core/watch/schedule/index.ts'
import * as ShippedStates from '../../../src/core/watch/states/index.ts'
import type { Queue } from './queue.ts'
import { second } from './trial.ts'

/** The subject of the simulation: the shipped schedule and states, or copies with a defect. */
export type Subject = Pick<typeof ShippedSchedule, 'Schedule'> &
  Pick<typeof ShippedStates, 'States' | 'Ledger' | 'StatesTable'>

const { Schedule } = ShippedSchedule
const { States, Ledger, StatesTable } = ShippedStates
export const shipped: Subject = { Schedule, States, Ledger, StatesTable }

type Asked = { readonly key: string; readonly depth: ExecutionMode; readonly by: 'schedule' | 'caller' }
/** A run, and what it shows. `ms`: how long it takes. `frozen`: what it shows if the process stands still meanwhile. */
export type Look = {
  readonly verdicts: readonly ShippedStates.Verdict[]
  readonly ms: number
  readonly frozen?: readonly ShippedStates.Verdict[] | undefined
}
/** A run that has ended. `at` and `endedAt` are in the time of the simulation, `beganAt` is in that of the process. */
export type Ended = Asked & {
  readonly at: number
  readonly beganAt: number
  readonly endedAt: number
  readonly verdicts: readonly ShippedStates.Verdict[]
  readonly counts: boolean
}

/** What surrounds a process: its peers, its settings, its store, and those who look at what it does. */
export type Site = {
  readonly queue: Queue
  readonly subject: Subject
  readonly table: InstanceType<typeof StatesTable>
  readonly now: () => number
  readonly witnesses: readonly string[]
  readonly monitors: () => readonly ShippedStates.WatchedMonitor[]
  readonly look: (run: Asked & { readonly at: number; readonly repeatsRefused: boolean }) => Look
  readonly ended: (run: Ended) => void
  readonly transition: (transition: ShippedStates.Transition, incident: ShippedStates.Incident | undefined) => void
  readonly askWitnesses?: () => void
  readonly asked?: (key: string) => void
  /** There is something to store. */
  readonly changed?: () => void
  /** Whether the store takes something now. */
  readonly takes: () => boolean
  /** It has taken something. Returns whether its answer arrives. */
  readonly stored: () => boolean
}

/** One process of svc: its schedule, its states and its ledger, until it is killed. */
export class Process {
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
    const { subject, now, witnesses } = site
    this.#site = site
    this.schedule = new subject.Schedule(now())
    this.states = new subject.States(now(), witnesses)
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
    const { table, now } = this.#site
    const stored = JSON.parse(JSON.stringify(table.read(now()))) as ShippedStates.StoredStates
    this.ledger.adopt(stored)
    this.states.restore(stored.states, now(), now() - (stored.ageMs ?? 0))
    return stored
  }

  configure(): void {
    const { monitors, now } = this.#site
    for (const { key, every } of monitors()) this.schedule.watch({ key, every }, now())
    this.take(this.states.configure(monitors(), now()))
  }

  take(effects: readonly ShippedStates.Effect[]): void {
    const { asked, transition, askWitnesses, changed } = this.#site
    this.ledger.take(effects)
    for (const effect of effects) {
      if (this.isDead) return
      if (effect.type === 'ask') {
        asked?.(effect.key)
        this.ask(effect)
      } else if (effect.type === 'witness') askWitnesses?.()
      else {
        changed?.()
        if (effect.type === 'transition') transition(effect.transition, effect.incident)
      }
    }
  }

  ask({ key, depth, at, repeatsRefused }: Omit<Extract<ShippedStates.Effect, { type: 'ask' }>, 'type'>): void {
    this.schedule.ask(key, { depth, at, repeatsRefused }, this.#site.now())
  }

  run(asked: Asked, repeatsRefused = false): void {
    const { queue, now, look, ended } = this.#site
    const { key, depth, by } = asked
    const [at, beganAt] = [queue.now, now()]
    this.running.add(`${key} ${by}`)
    this.schedule.began({ key, depth, by, now: beganAt })
    const { verdicts, ms, frozen } = look({ ...asked, at, repeatsRefused })
    this.after(ms, () => {
      this.running.delete(`${key} ${by}`)
      const wasFrozen = this.#thawedAt > at && this.#thawedAt - this.#frozeAt > second
      const shown = (wasFrozen && frozen) || verdicts
      const failed = shown.some(({ level }) => level === 'failed')
      const counts = this.schedule.ended({ key, depth, by, now: now(), beganAt, failed, hadTime: true })
      ended({ ...asked, at, beganAt, endedAt: queue.now, verdicts: shown, counts })
      this.tick()
    })
  }

  /** Begins what is due. */
  tick(): void {
    this.#cancelTimer()
    const { orders, nextAt } = this.schedule.tick(this.#site.now())
    for (const { key, depth, repeatsRefused } of orders)
      this.run({ key, depth, by: 'schedule' }, repeatsRefused === true)
    if (nextAt === Number.POSITIVE_INFINITY) return
    let isCancelled = false
    this.#cancelTimer = () => {
      isCancelled = true
    }
    this.after(Math.max(1, Math.ceil(nextAt - this.#site.now())), () => {
      if (!isCancelled) this.tick()
    })
  }

  /** Stores what is new. The store may fail, and it may take something without an answer. */
  flush(): void {
    const { table, now, takes, stored } = this.#site
    const batch = this.ledger.batch(now())
    if (!batch || !takes()) return
    table.write(JSON.parse(JSON.stringify(batch)) as ShippedStates.StatesBatch, now())
    if (stored()) this.ledger.stored(batch, now())
  }

  beat(ms: () => number): void {
    this.take(this.states.tick(this.#site.now()))
    this.tick()
    this.flush()
    this.after(ms(), () => this.beat(ms))
  }
}
