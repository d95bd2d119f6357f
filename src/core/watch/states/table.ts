import {
  type IncidentRecord,
  type IncidentsQuery,
  incidentsKeptMs,
  type StatesBatch,
  type StoredState,
  type StoredStates,
} from './ledger.ts'
import { subjectId } from './subject.ts'

/** Incidents that memory has room for. */
const mostIncidents = 1_000

/**
 * States and incidents as a store has them, in memory: for servers without a store, and for the simulation. It has no clock:
 * `now` is milliseconds since 1970.
 */
export class StatesTable {
  readonly #states = new Map<string, StoredState>()
  readonly #incidents = new Map<string, IncidentRecord>()
  #writtenAt: number | undefined

  read(now: number): StoredStates {
    return {
      ageMs: this.#writtenAt === undefined ? undefined : Math.max(0, now - this.#writtenAt),
      states: [...this.#states.values()],
      incidents: [...this.#incidents.values()].filter(({ endedAt }) => endedAt === undefined),
    }
  }

  write({ states, gone, incidents, isWhole }: StatesBatch, now: number): void {
    if (isWhole) {
      this.#states.clear()
      const own = new Set(incidents.map(({ id }) => id))
      const lostAt = this.#writtenAt ?? now
      for (const one of this.#incidents.values()) {
        if (one.endedAt !== undefined || own.has(one.id)) continue
        this.#incidents.set(one.id, { ...one, endedAt: Math.max(one.beganAt, lostAt), ending: 'unknown' })
      }
    }
    for (const one of states) this.#states.set(subjectId(one.row), one)
    for (const row of gone) this.#states.delete(subjectId(row))
    for (const one of incidents) this.#incidents.set(one.id, one)
    this.#writtenAt = now
    for (const { id, endedAt } of this.#incidents.values()) {
      const isOver = endedAt !== undefined && (endedAt < now - incidentsKeptMs || this.#incidents.size > mostIncidents)
      if (isOver) this.#incidents.delete(id)
    }
  }

  incidents({ from, to, most }: IncidentsQuery): readonly IncidentRecord[] {
    return [...this.#incidents.values()]
      .filter(({ beganAt, endedAt }) => beganAt <= to && (endedAt === undefined || endedAt >= from))
      .sort((one, other) => other.beganAt - one.beganAt)
      .slice(0, most)
  }
}
