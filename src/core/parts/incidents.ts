import { pace } from '../pace.ts'
import type { EndedIncident, HealthViews, Incidents, OpenFault, TroubledMonitor, Victim } from '../service.ts'
import type { Cause, SubjectState, SubjectView, Transition } from '../states/index.ts'

/** What is wrong with a subject, and on which monitor it rests. */
export type TroubledSubject = SubjectView & {
  /** The monitor on which a fault without an incident seems to rest. */
  readonly suspect?: Cause | undefined
}

/** Whether anything is wrong with a subject, or may be. */
export const isTroubled = ({ level, incident, doubt }: SubjectState): boolean =>
  level !== 'ok' || incident !== undefined || doubt !== undefined

/** All of a monitor, before a reader sees a part of it. */
type Trouble = Omit<Cause, 'key'> & { readonly faults: OpenFault[]; readonly victims: Map<string, Victim> }

/**
 * The open incidents by the monitors at fault, for a reader with these views. A victim is listed under the monitor that
 * does not rest on another one itself. Lets other work have its turn.
 */
export async function openIncidents(
  subjects: Iterable<TroubledSubject>,
  views: HealthViews,
): Promise<Pick<Incidents, 'open' | 'hidden'>> {
  const breathe = pace()
  const causes = new Map<string, Cause>()
  const own = new Map<string, Trouble>()
  const victims = new Map<string, Victim>()
  for (const { key, type, monitor, check, item, state, suspect } of subjects) {
    const cause = state.incident ? state.incident.cause : suspect
    const fault = faultOf(state)
    if (cause) {
      causes.set(key, cause)
      const since = Math.min(victims.get(key)?.since ?? fault.since, fault.since)
      victims.set(key, { type, monitor, since })
    } else {
      const trouble: Trouble = own.get(key) ?? { type, monitor, faults: [], victims: new Map() }
      own.set(key, trouble)
      trouble.faults.push({ check, item, ...fault })
    }
    await breathe()
  }
  for (const [key, victim] of victims) {
    const root = rootOf(key, causes)
    const trouble: Trouble = own.get(root.key) ?? {
      type: root.type,
      monitor: root.monitor,
      faults: [],
      victims: new Map(),
    }
    own.set(root.key, trouble)
    trouble.victims.set(key, victim)
    await breathe()
  }
  return readable([...own.values()], views)
}

/** The monitor on which all of it rests. A cycle ends where it began. */
function rootOf(key: string, causes: ReadonlyMap<string, Cause>): Cause {
  const passed = new Set([key])
  let root = causes.get(key)
  while (root) {
    const next = causes.get(root.key)
    if (!next || passed.has(root.key)) return root
    passed.add(root.key)
    root = next
  }
  throw new TypeError(`${key} has no cause`)
}

function faultOf(state: SubjectState): Omit<OpenFault, 'check' | 'item'> {
  const { incident, doubt, level, levelSince, healing, isFlapping } = state
  const worsens = doubt?.failed !== undefined && incident?.level !== 'failed'
  if (doubt && (worsens || !incident)) {
    return {
      level: doubt.failed === undefined ? 'warning' : 'failed',
      certainty: 'in doubt',
      since: doubt.failed ?? doubt.warning,
      fault: doubt.fault,
      message: doubt.message,
      isFlapping,
      isUnobserved: false,
    }
  }
  const { fault, message } = incident ?? state
  return {
    level: incident?.level ?? (level === 'failed' ? 'failed' : 'warning'),
    certainty: incident ? 'confirmed' : 'deciding',
    since: incident?.beganAt ?? levelSince,
    fault,
    message,
    isFlapping: incident?.isFlapping ?? isFlapping,
    isUnobserved: incident?.isUnobserved ?? false,
    recoveringSince: healing?.worst === 'ok' ? healing.since : undefined,
  }
}

/** What a reader sees: names of the types that the reader may read, and counts of the rest. */
function readable(all: readonly Trouble[], views: HealthViews): Pick<Incidents, 'open' | 'hidden'> {
  const reads = ({ type }: Pick<Cause, 'type'>): boolean => views(type) === 'full'
  let hidden = 0
  const open = all.flatMap((trouble): readonly TroubledMonitor[] => {
    const every = [...trouble.victims.values()]
    const victims = every.filter(reads).toSorted((one, other) => one.since - other.since)
    const hiddenVictims = every.length - victims.length
    const { type, monitor, faults } = trouble
    if (reads(trouble)) return [{ type, monitor, faults: faults.toSorted(byUrgency), victims, hiddenVictims }]
    if (victims.length > 0) return [{ faults: [], victims, hiddenVictims }]
    hidden += hiddenVictims + (faults.length > 0 ? 1 : 0)
    return []
  })
  return { open: open.toSorted(byWeight), hidden }
}

const urgency = ({ level, certainty, isUnobserved }: OpenFault): number =>
  (level === 'failed' ? 0 : 2) + (certainty === 'in doubt' ? 1 : 0) + (isUnobserved ? 2 : 0)
const byUrgency = (one: OpenFault, other: OpenFault): number => urgency(one) - urgency(other) || one.since - other.since

const reach = ({ victims, hiddenVictims }: TroubledMonitor): number => victims.length + hiddenVictims
const beginOf = ({ faults, victims }: TroubledMonitor): number => faults[0]?.since ?? victims[0]?.since ?? 0
/** Failures before warnings, then those with the most victims, then the latest. */
const byWeight = (one: TroubledMonitor, other: TroubledMonitor): number => {
  const urgencyOf = ({ faults: [worst] }: TroubledMonitor): number => (worst ? urgency(worst) : 0)
  return urgencyOf(one) - urgencyOf(other) || reach(other) - reach(one) || beginOf(other) - beginOf(one)
}

/** How many incidents that are over are kept. */
const mostEnded = 500

type Recorded = Omit<EndedIncident, 'end' | 'endedAt' | 'victims'> & {
  readonly key: string
  readonly isVictim: boolean
  readonly isUnobserved: boolean
  /** The keys of the monitors that failed because of it. */
  readonly victims: Set<string>
}
type Ended = Recorded & Pick<EndedIncident, 'end' | 'endedAt'>

/** The incidents that are over, from the transitions since svc started. */
export class EndedIncidents {
  readonly #open = new Map<string, Recorded>()
  /** The latest last. */
  #ended: readonly Ended[] = []

  /** Takes the incidents that were open before the first transition. */
  adopt(subjects: Iterable<SubjectView>): void {
    for (const { state, ...subject } of subjects) {
      const { incident } = state
      if (incident) this.#begin(incident.id, { ...subject, ...incident, at: incident.beganAt }, incident.isUnobserved)
    }
  }

  add(transition: Transition): void {
    const { what, incident: id, at, confirmedAt, to, cause } = transition
    if (what === 'blip') this.#end(recorded(transition, false), 'blip', confirmedAt)
    const before = id === undefined ? undefined : this.#open.get(id)
    if (id === undefined) return
    if (!before) {
      if (to === 'warning' || to === 'failed' || to === 'unobserved') {
        this.#begin(id, transition, what === 'unobserved')
      }
      return
    }
    if (what === 'end' || what === 'removed' || (what === 'observed' && before.isUnobserved)) {
      this.#open.delete(id)
      this.#end(before, what === 'end' ? 'recovered' : what, at)
    } else if (to === 'failed' || what === 'freed') {
      this.#open.set(id, {
        ...before,
        level: to === 'failed' ? 'failed' : before.level,
        isVictim: cause !== undefined,
      })
    }
  }

  /** Those that a reader with these views may read, the latest first, without victims: at most `most`. */
  of(views: HealthViews, most: number): readonly EndedIncident[] {
    return this.#ended
      .filter(({ type, isVictim }) => !isVictim && views(type) === 'full')
      .slice(-most)
      .toReversed()
      .map(({ key: _, isVictim: __, isUnobserved: ___, victims, ...rest }) => ({ ...rest, victims: victims.size }))
  }

  #begin(id: string, facts: Facts, isUnobserved: boolean): void {
    this.#open.set(id, recorded(facts, isUnobserved))
    const { cause, key } = facts
    if (!cause) return
    for (const other of this.#open.values()) if (other.key === cause.key) other.victims.add(key)
  }

  #end(incident: Recorded, end: EndedIncident['end'], endedAt: number): void {
    this.#ended = [...this.#ended.slice(1 - mostEnded), { ...incident, end, endedAt }]
  }
}

type Facts = Pick<Transition, 'key' | 'type' | 'monitor' | 'check' | 'item' | 'at' | 'fault' | 'message' | 'cause'> & {
  readonly to?: Transition['to'] | undefined
  readonly level?: 'warning' | 'failed' | undefined
}

function recorded(
  { key, type, monitor, check, item, at, fault, message, cause, to, level }: Facts,
  isUnobserved: boolean,
): Recorded {
  return {
    key,
    type,
    monitor,
    check,
    item,
    fault,
    message,
    isUnobserved,
    level: level ?? (to === 'failed' ? 'failed' : 'warning'),
    beganAt: at,
    isVictim: cause !== undefined,
    victims: new Set(),
  }
}
