import type { Shift } from '../schedule/index.ts'
import type { Effect } from './states.ts'
import { subjectId, subjectOf } from './subject.ts'
import type { Incident, StoredSubject, SubjectState, Transition } from './types.ts'

/** The stored state of a subject, from which a process that starts again goes on. */
export type StoredState = { readonly row: StoredSubject; readonly state: SubjectState }

/** How an incident ended. `unknown`: nobody observed it, because its states were lost. */
export type Ending = 'recovered' | 'removed' | 'unknown'

/** An incident as the history keeps it. Times are milliseconds since 1970. */
export type IncidentRecord = StoredSubject & {
  readonly id: string
  readonly beganAt: number
  readonly confirmedAt: number
  /** Absent while it is open. */
  readonly endedAt?: number | undefined
  readonly ending?: Ending | undefined
  /** The worst level that it had. */
  readonly level: Incident['level']
  readonly fault?: Incident['fault']
  readonly message: string
  readonly cause?: Incident['cause']
  readonly isFlapping: boolean
  readonly isUnobserved: boolean
}

/** The contents of one transaction. */
export type StatesBatch = {
  readonly states: readonly StoredState[]
  /** Of these subjects nothing is worth storing any more. */
  readonly gone: readonly StoredSubject[]
  /** Incidents that are new or have changed. */
  readonly incidents: readonly IncidentRecord[]
  /** `states` are all of them, and open incidents that are not among `incidents` are lost. */
  readonly isWhole: boolean
  /** Whether this process becomes the one that stores states: at once, or once the one before it no longer does. */
  readonly claims?: 'now' | 'when free' | undefined
  /** Deletes incidents that ended before this time. */
  readonly deleteBefore?: number | undefined
}

/** Where states and incidents are stored. Every method may throw the faults of a store. */
export type StatesRows = {
  /** `ageMs`: how long ago they were last stored, also if nothing had changed. Undefined: never. */
  readonly read: () => Promise<StoredStates>
  /** In one transaction. False, and nothing is stored, if another process stores its states. */
  readonly write: (batch: StatesBatch) => Promise<boolean>
  /** Those that were open at some time from `from` to `to`, the latest first. */
  readonly incidents: (query: IncidentsQuery) => Promise<readonly IncidentRecord[]>
}
export type StoredStates = {
  readonly ageMs: number | undefined
  readonly states: readonly StoredState[]
  /** The open ones. */
  readonly incidents: readonly IncidentRecord[]
}
export type IncidentsQuery = { readonly from: number; readonly to: number; readonly most: number }

/** How often something is written although nothing has changed, in milliseconds: it shows until when svc watched. */
const touchEveryMs = 10_000
/** For how long incidents are kept. Milliseconds. */
export const incidentsKeptMs = 400 * 86_400_000
const deleteEveryMs = 3_600_000
/** Incidents that have ended and wait for a store that fails. */
const mostWaiting = 10_000

type Pending = { readonly row: StoredSubject; readonly incidents: Map<string, IncidentRecord> }

/**
 * Collects from the effects of `States` what is to be stored. It has neither clock nor store. A batch is made again until
 * `stored` or `refused` is called for it, so that a write whose outcome is unknown is repeated; a repetition changes nothing.
 */
export class Ledger {
  readonly #states = new Map<string, StoredState>()
  readonly #open = new Map<string, IncidentRecord>()
  readonly #pending = new Map<string, Pending>()
  #offered: readonly (readonly [name: string, state: StoredState | undefined, incidents: readonly IncidentRecord[]])[] =
    []
  #claims: StatesBatch['claims']
  #touchedAt = Number.NEGATIVE_INFINITY
  #deletedAt = Number.NEGATIVE_INFINITY
  #lost = 0
  readonly #isShared: boolean

  /**
   * `isShared`: other nodes store their states beside these, so that nothing is ever written as a whole, and the store knows
   * from elsewhere until when each node watched.
   */
  constructor({ isShared = false }: { readonly isShared?: boolean } = {}) {
    this.#isShared = isShared
    this.#claims = isShared ? undefined : 'now'
  }

  /** Takes the states and incidents that an earlier process has stored. To be called before any effect is taken. */
  adopt({ states, incidents }: Pick<StoredStates, 'states' | 'incidents'>): void {
    for (const one of states) this.#states.set(subjectId(one.row), one)
    for (const one of incidents) this.#open.set(one.id, one)
  }

  /**
   * Replaces what it has of these monitors by what is stored: by nothing, if another node has them. An open incident that no state
   * contains has ended, and nobody observed when: at `lostAt` at the latest.
   */
  takeOver(keys: ReadonlySet<string>, stored: Pick<StoredStates, 'states' | 'incidents'>, lostAt: number): void {
    for (const [name, { row }] of this.#states) if (keys.has(row.key)) this.#states.delete(name)
    for (const [id, { key }] of this.#open) if (keys.has(key)) this.#open.delete(id)
    for (const [name, { row }] of this.#pending) if (keys.has(row.key)) this.#pending.delete(name)
    this.adopt(stored)
    const ids = new Set(stored.states.flatMap(({ state }) => state.incident?.id ?? []))
    this.#endLost(
      stored.incidents.filter(({ id }) => !ids.has(id)),
      lostAt,
    )
  }

  /** Nobody knows when these ended. */
  #endLost(incidents: readonly IncidentRecord[], lostAt: number): void {
    for (const one of incidents) {
      this.#keep(this.#pendingOf(subjectOf(one)), { ...one, endedAt: Math.max(lostAt, one.beganAt), ending: 'unknown' })
    }
  }

  /**
   * The store has lost writes that it had acknowledged: everything that stands is to be written once more. `stored`: what it
   * has now; what is over by now is removed from it.
   */
  again(stored: Pick<StoredStates, 'states' | 'incidents'> = { states: [], incidents: [] }, lostAt = 0): void {
    for (const { row } of stored.states) this.#pendingOf(row)
    for (const { row } of this.#states.values()) this.#pendingOf(row)
    for (const one of this.#open.values()) this.#keep(this.#pendingOf(subjectOf(one)), one)
    this.#endLost(
      stored.incidents.filter(({ id }) => !this.#open.has(id)),
      lostAt,
    )
  }

  /**
   * The line that people read has shifted: open incidents, and those that have ended and are not stored yet, are stored
   * with their new times. To be called before the effects of the states are taken.
   */
  shift(shift: Shift): void {
    this.#touchedAt = shift.move(this.#touchedAt)
    this.#deletedAt = shift.move(this.#deletedAt)
    for (const { incidents } of this.#pending.values())
      for (const [id, record] of incidents) incidents.set(id, shiftedRecord(record, shift))
    for (const record of this.#open.values())
      this.#keep(this.#pendingOf(subjectOf(record)), shiftedRecord(record, shift))
  }

  /** Takes effects of the states, in their order. */
  take(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.type === 'store') this.#store(effect.row, effect.state)
      else if (effect.type === 'transition') this.#happened(effect.transition, effect.incident)
    }
  }

  /** Incidents that are open, and those that have ended and are not stored yet. */
  get incidents(): readonly IncidentRecord[] {
    const waiting = [...this.#pending.values()].flatMap(({ incidents }) => [...incidents.values()])
    return [...new Map([...this.#open.values(), ...waiting].map((one) => [one.id, one])).values()]
  }

  /** How many incidents that had ended were dropped because the store took nothing for too long. */
  get lostIncidents(): number {
    return this.#lost
  }

  /** The batch to write now. Undefined: there is nothing to write. */
  batch(now: number): StatesBatch | undefined {
    const isWhole = this.#claims !== undefined
    const isDue = !this.#isShared && now - this.#touchedAt >= touchEveryMs
    if (!isWhole && this.#pending.size === 0 && !isDue) return undefined
    const names = new Set([...this.#pending.keys(), ...(isWhole ? this.#states.keys() : [])])
    this.#offered = [...names].map((name) => [
      name,
      this.#states.get(name),
      [...(this.#pending.get(name)?.incidents.values() ?? [])],
    ])
    const changed = this.#offered.flatMap(([, , incidents]) => incidents)
    const gone = this.#offered.flatMap(([name, state]) => (state ? [] : (this.#pending.get(name)?.row ?? [])))
    return {
      states: this.#offered.flatMap(([, state]) => state ?? []),
      gone,
      incidents: isWhole
        ? [...new Map([...this.#open.values(), ...changed].map((one) => [one.id, one])).values()]
        : changed,
      isWhole,
      claims: this.#claims,
      deleteBefore: now - this.#deletedAt >= deleteEveryMs ? now - incidentsKeptMs : undefined,
    }
  }

  /** The store has the batch that was made last. */
  stored({ deleteBefore }: StatesBatch, now: number): void {
    this.#claims = undefined
    this.#touchedAt = now
    if (deleteBefore !== undefined) this.#deletedAt = now
    for (const [name, state, incidents] of this.#offered) {
      const pending = this.#pending.get(name)
      if (!pending) continue
      for (const one of incidents) if (pending.incidents.get(one.id) === one) pending.incidents.delete(one.id)
      if (this.#states.get(name) === state && pending.incidents.size === 0) this.#pending.delete(name)
    }
    this.#offered = []
  }

  /** Another process stores its states. Once it no longer does, all are to be written. */
  refused(): void {
    if (!this.#isShared) this.#claims = 'when free'
    this.#offered = []
  }

  #store(row: StoredSubject, state: SubjectState | undefined): void {
    const name = subjectId(row)
    if (state) this.#states.set(name, { row, state })
    else this.#states.delete(name)
    const pending = this.#pendingOf(row)
    const before = state?.incident && this.#open.get(state.incident.id)
    if (state?.incident && before) this.#keep(pending, recordOf(row, state.incident, before))
  }

  #happened({ what, at, key, type, monitor, check, item }: Transition, incident: Incident | undefined): void {
    if (!incident) return
    const row: StoredSubject = { key, type, monitor, check, ...(item === undefined ? {} : { item }) }
    const pending = this.#pendingOf(row)
    const record = recordOf(row, incident, this.#open.get(incident.id))
    const isOver = what === 'end' || what === 'removed' || (what === 'observed' && incident.isUnobserved)
    this.#keep(
      pending,
      isOver
        ? { ...record, endedAt: Math.max(at, incident.beganAt), ending: what === 'removed' ? what : 'recovered' }
        : record,
    )
  }

  #keep({ incidents }: Pending, record: IncidentRecord): void {
    incidents.set(record.id, record)
    if (record.endedAt === undefined) {
      this.#open.set(record.id, record)
      return
    }
    this.#open.delete(record.id)
    this.#limit()
  }

  /** While the store fails, the incidents that ended first are dropped. */
  #limit(): void {
    if (this.#pending.size < mostWaiting) return
    const waiting = [...this.#pending.values()]
    const sum = waiting.reduce((count, { incidents }) => count + incidents.size, 0)
    for (const { incidents } of sum <= mostWaiting ? [] : waiting) {
      const ended = [...incidents.values()].find(({ endedAt }) => endedAt !== undefined)
      if (!ended) continue
      incidents.delete(ended.id)
      this.#lost += 1
      return
    }
  }

  #pendingOf(row: StoredSubject): Pending {
    const name = subjectId(row)
    const pending = this.#pending.get(name) ?? { row, incidents: new Map() }
    this.#pending.set(name, pending)
    return pending
  }
}

function recordOf(row: StoredSubject, incident: Incident, before: IncidentRecord | undefined): IncidentRecord {
  const { id, beganAt, confirmedAt, level, fault, message, cause, isFlapping, isUnobserved } = incident
  const { key, type, monitor, check, item } = row
  return {
    key,
    type,
    monitor,
    check,
    ...(item === undefined ? {} : { item }),
    id,
    beganAt,
    confirmedAt,
    level: before?.level === 'failed' ? 'failed' : level,
    fault: fault ?? before?.fault,
    message,
    cause,
    isFlapping: isFlapping || before?.isFlapping === true,
    isUnobserved,
  }
}

/** The record of an incident of this process after the line that people read has shifted. */
function shiftedRecord(record: IncidentRecord, { correct }: Shift): IncidentRecord {
  const { endedAt } = record
  const beganAt = correct(record.beganAt)
  return {
    ...record,
    beganAt,
    confirmedAt: correct(record.confirmedAt),
    // Of one that began before this process, the beginning stays.
    ...(endedAt === undefined ? {} : { endedAt: Math.max(beganAt, correct(endedAt)) }),
  }
}
