import { pace } from '../../base/pace.ts'
import type {
  EndedIncident,
  HealthViews,
  Incidents,
  OpenFault,
  TroubledMonitor,
  Victim,
} from '../../protocol/service/service.ts'
import type { Cause, IncidentRecord, SubjectState, SubjectView, Transition } from '../../watch/states/index.ts'
import { victimsAmong } from './incident-answer.ts'

/** A subject with a fault, and the monitor on which the fault rests. */
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
    recoveringSince: healing?.worst.level === 'ok' ? healing.since : undefined,
  }
}

/** The view of a reader: names of the types that the reader may read, and counts of the rest. */
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

/** How many incidents are read, with those of victims, to list the ones that are over. */
export const mostRecords = 2_000
/** How many blips are kept. */
const mostBlips = 500

/** Faults that were over before they were confirmed. No store has them: they begin with the process. */
export class Blips {
  /** The latest last. */
  #ended: readonly EndedIncident[] = []

  add({ what, type, monitor, check, item, at, confirmedAt, to, fault, message }: Transition): void {
    if (what !== 'blip') return
    const level = to === 'failed' ? 'failed' : 'warning'
    const blip = { type, monitor, check, item, level, beganAt: at, endedAt: confirmedAt, fault, message } as const
    this.#ended = [...this.#ended.slice(1 - mostBlips), { ...blip, end: 'blip', victims: 0 }]
  }

  get ended(): readonly EndedIncident[] {
    return this.#ended
  }
}

/**
 * The incidents and blips that are over and that a reader with these views may read, the latest first, without those of
 * victims: at most `most`. `records`: the incidents of a time, the latest first. `now`: milliseconds since 1970.
 */
export function endedIncidents(
  { records, blips, now }: EndedFacts,
  views: HealthViews,
  most: number,
): readonly EndedIncident[] {
  const reads = ({ type }: Pick<EndedIncident, 'type'>): boolean => views(type) === 'full'
  const victims = victimsAmong(records, now)
  const incidents = records.flatMap((one): EndedIncident | [] => {
    const { endedAt, ending, cause, isUnobserved, type, monitor, check, item, level, beganAt, fault, message } = one
    if (endedAt === undefined || ending === undefined || cause !== undefined || !reads(one)) return []
    const end = ending === 'recovered' && isUnobserved ? 'observed' : ending
    const shared = { type, monitor, check, item, level, beganAt, endedAt, fault, message }
    return { ...shared, end, victims: victims(one).length }
  })
  return [...incidents, ...blips.filter(reads)].toSorted((one, other) => other.endedAt - one.endedAt).slice(0, most)
}

type EndedFacts = {
  readonly records: readonly IncidentRecord[]
  readonly blips: readonly EndedIncident[]
  readonly now: number
}
