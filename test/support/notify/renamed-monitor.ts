import { noticeSubject } from '../../../src/core/service/watch/notice-subject.ts'
import type { Delivery, Notice } from '../../../src/core/watch/notify/index.ts'
import {
  type NoticeItem,
  Outbox,
  type OutboxEffect,
  type ReceiverRules,
  type StoredRow,
} from '../../../src/core/watch/outbox/index.ts'
import {
  type Effect,
  States,
  type StoredState,
  subjectId,
  type WatchedMonitor,
} from '../../../src/core/watch/states/index.ts'

const second = 1_000
export const monitorOf = (name: string, formerly: readonly string[] = []): WatchedMonitor => ({
  key: `Sql/tcp/${name}`,
  type: 'Sql',
  name: `tcp ${name}`,
  runsOn: 'machine',
  every: { Basic: 10 * second },
  dependsOn: [],
  confirmMs: 20 * second,
  flapping: Number.POSITIVE_INFINITY,
  formerly: formerly.map((one) => `Sql/tcp/${one}`),
  fingerprint: 'same',
})

const rules: ReceiverRules = { name: 'r', folds: false, remindMs: 120 * second, accepts: () => true }

/** One monitor that gets other names, in processes with real states and a real outbox, and what its receiver is sent. */
export class RenamedMonitor {
  /** The messages in their order. */
  readonly sent: (readonly Notice[])[] = []
  /** The answer of the receiver. Undefined: none yet. */
  answer: Delivery | undefined = { what: 'accepted' }
  level: 'ok' | 'warning' | 'failed' = 'ok'
  /** The monitors of svc.yaml. */
  monitors: readonly WatchedMonitor[]
  now = 1_700_000_000_000
  states: States
  outbox: Outbox
  /** The stored states and rows, as text. */
  readonly #storedStates = new Map<string, string>()
  readonly #storedRows = new Map<string, string>()
  #sending: { readonly attempt: number } | undefined

  constructor(name: string) {
    this.monitors = [monitorOf(name)]
    this.states = new States(this.now)
    this.outbox = this.#newOutbox()
    this.#begin()
  }

  /** A reload of svc.yaml. */
  reload(...monitors: readonly WatchedMonitor[]): void {
    this.monitors = monitors
    this.#carryOut(this.states.configure(monitors, this.now))
    this.#watch()
  }

  /** A kill, and the next process; with `isTakeOver`, on another node. */
  restart(monitors = this.monitors, isTakeOver = false): void {
    this.monitors = monitors
    this.#sending = undefined
    this.now += 3 * second
    this.states = new States(this.now)
    this.outbox = this.#newOutbox()
    if (!isTakeOver) this.outbox.restore(this.rows, this.now)
    this.states.restore(this.stored, this.now, this.now)
    if (isTakeOver) {
      // The keys of a group, under all of their names.
      const keys = new Set(monitors.flatMap(({ key, formerly }) => [key, ...formerly]))
      this.#tell(this.outbox.configure([rules], this.now))
      this.outbox.takeOver(keys, this.rows, this.now)
    }
    this.#begin()
  }

  /** Time passes, with the runs that are due. */
  pass(seconds: number): void {
    for (let left = seconds; left > 0; left -= 1) {
      this.now += second
      if (this.now % (10 * second) === 0)
        for (const { key } of this.monitors) this.#carryOut(this.states.ran(this.#run(key), this.now))
      this.#carryOut(this.states.tick(this.now))
      this.tick()
    }
  }

  tick(): void {
    this.#tell(this.outbox.tick(this.now).effects)
  }

  /** The receiver answers the message that it has not answered yet. */
  reply(delivery: Delivery): void {
    this.answer = delivery
    const { attempt = 0 } = this.#sending ?? {}
    this.#sending = undefined
    this.#tell(this.outbox.answered('r', attempt, delivery, this.now))
  }

  /** Stores the states as a version does that knows no former names. */
  forgetNames(): void {
    for (const { row, state } of this.stored) {
      const incident = state.incident && { ...state.incident, formerly: undefined }
      this.#storedStates.set(subjectId(row), JSON.stringify({ row, state: { ...state, incident } }))
    }
  }

  get stored(): readonly StoredState[] {
    return [...this.#storedStates.values()].map((one) => JSON.parse(one) as StoredState)
  }

  get rows(): readonly StoredRow[] {
    return [...this.#storedRows.values()].map((one) => JSON.parse(one) as StoredRow)
  }

  #newOutbox(): Outbox {
    return new Outbox(this.now, (subject) => {
      const state = this.states.stateOf(subject)
      return typeof state === 'object' ? { subject, state, isSilenced: false } : (state ?? 'unknown')
    })
  }

  #begin(): void {
    this.#tell(this.outbox.configure([rules], this.now))
    this.#carryOut(this.states.configure(this.monitors, this.now))
    this.#watch()
  }

  #watch(): void {
    for (const view of this.states.views(this.now, ({ incident }) => incident !== undefined)) this.outbox.watch(view)
  }

  #run(key: string): Parameters<States['ran']>[0] {
    const verdict = { check: 'connect', level: this.level, message: `it is ${this.level}`, depth: 'Basic' } as const
    return { key, depth: 'Basic', beganAt: this.now - 1, endedAt: this.now, verdicts: [verdict] }
  }

  #carryOut(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.type === 'transition') this.#tell(this.outbox.transition(effect.transition, this.now))
      else if (effect.type === 'store') {
        const { row, state } = effect
        if (state) this.#storedStates.set(subjectId(row), JSON.stringify({ row, state }))
        else this.#storedStates.delete(subjectId(row))
      }
    }
  }

  #tell(effects: readonly OutboxEffect[]): void {
    for (const effect of effects) {
      if (effect.type === 'store' || effect.type === 'send')
        for (const one of effect.rows) {
          const name = `${one.receiver} ${subjectId(one.subject)}`
          if (one.row) this.#storedRows.set(name, JSON.stringify(one))
          else this.#storedRows.delete(name)
        }
      if (effect.type !== 'send') continue
      this.sent.push(effect.items.map(noticeOf))
      this.#sending = effect
      if (this.answer) this.reply(this.answer)
    }
  }
}

export const noticeOf = ({ subject, as, ...facts }: NoticeItem): Notice => ({
  ...facts,
  subject: noticeSubject('prod', subject, as),
  victims: { count: 0, names: [] },
  tags: [],
})
