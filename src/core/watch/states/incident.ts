import { hash } from '../schedule/index.ts'
import type { Blame } from './blame.ts'
import { rank, worse } from './policy.ts'
import type { Cause, CheckLevel, Incident, Subject, SubjectState, Transition, TransitionKind } from './types.ts'

/** A step of the incident of a subject, so that the incident follows the state. */
export type IncidentStep = {
  /** Undefined once it has ended. */
  readonly incident: Incident | undefined
  readonly what: TransitionKind
  readonly at: number
  readonly from: Transition['from']
  readonly to: Transition['to']
  readonly fault?: SubjectState['fault']
  readonly message: string
  /** The incident that the transition belongs to. */
  readonly of: Incident
}

export type Situation = {
  readonly subject: Subject
  /** Milliseconds that a worse level must last. */
  readonly confirmMs: number
  readonly blame: Blame
  readonly now: number
}

/** The same wherever the same fault of the same subject is seen. */
export function incidentId({ key, check, item = '' }: Subject, beganAt: number): string {
  const parts = [key, check, item, String(beganAt)]
  const text = [hash(...parts, 'a'), hash(...parts, 'b')].map((one) => one.toString(36).padStart(7, '0')).join('')
  return text.slice(0, 12)
}

/** Whether somebody has to look at the causes before the incident can follow the state. */
export const needsBlame = ({ level, isFlapping, incident }: SubjectState): boolean =>
  incident === undefined ? level !== 'ok' || isFlapping : incident.cause !== undefined

/**
 * The next step of the incident, or undefined if it follows the state already. It is derived from the state and not from
 * the moment of a verdict, so that nothing is lost by a restart.
 */
export function follow(state: SubjectState, situation: Situation): IncidentStep | undefined {
  const { incident } = state
  if (state.unobservedSince !== undefined || incident?.isUnobserved) return undefined
  if (state.isFlapping && incident?.cause === undefined) return followFlapping(state, situation)
  if (incident?.isFlapping) return settle(state, incident)
  if (incident === undefined) return begin(state, situation)
  if (state.level === 'ok') {
    const { levelSince: at, message } = state
    return { incident: undefined, what: 'end', at, from: incident.level, to: 'ok', message, of: incident }
  }
  const freed = incident.cause === undefined ? undefined : followCause(state, incident, situation)
  if (freed) return freed
  if (state.level === incident.level) return undefined
  return changed(state, { ...incident, level: state.level, fault: state.fault, message: state.message }, incident.level)
}

function changed(
  state: SubjectState,
  incident: Incident,
  from: CheckLevel,
  what: TransitionKind = 'change',
): IncidentStep {
  const { level, levelSince: at, fault, message } = state
  return { incident, what, at, from, to: level, fault, message, of: incident }
}

function begin(state: SubjectState, { subject, blame, now }: Situation): IncidentStep | undefined {
  const { level, levelSince, fault, message } = state
  if (level === 'ok' || blame.type === 'wait') return undefined
  const cause = blame.type === 'victim' ? blame.of : undefined
  const incident = opened(subject, state, { beganAt: levelSince, confirmedAt: now, level, fault, message, cause })
  return { incident, what: 'begin', at: levelSince, from: 'ok', to: level, fault, message, of: incident }
}

/**
 * The instant that the id of the next incident follows from: its beginning, unless the clock was set back since the one before,
 * which may have begun at the same time by it.
 */
const nameAfter = ({ namedAt = Number.NEGATIVE_INFINITY }: SubjectState, beganAt: number): number =>
  Math.max(beganAt, namedAt + 1)

/** The state with this incident. */
export const withIncident = (state: SubjectState, incident: Incident | undefined): SubjectState =>
  incident === undefined || incident.id === state.incident?.id
    ? { ...state, incident }
    : { ...state, incident, namedAt: nameAfter(state, incident.beganAt) }

export const opened = (
  subject: Subject,
  state: SubjectState,
  facts: Pick<Incident, 'beganAt' | 'confirmedAt' | 'level' | 'fault' | 'message'> & {
    readonly cause?: Cause | undefined
    readonly isFlapping?: boolean
    readonly isUnobserved?: boolean
  },
): Incident => ({
  isFlapping: false,
  isUnobserved: false,
  ...facts,
  id: incidentId(subject, nameAfter(state, facts.beganAt)),
})

/** A subject that flaps because of its cause says nothing by itself, and is a victim while it fails. */
function followFlapping(state: SubjectState, situation: Situation): IncidentStep | undefined {
  const { subject, blame, now } = situation
  const { incident, latest, lastBad, level, faults } = state
  if (incident?.isFlapping) {
    const rises = incident.level === 'warning' && level === 'failed'
    return rises
      ? changed(state, { ...incident, level, fault: state.fault, message: state.message }, 'warning')
      : undefined
  }
  if (incident === undefined && blame.type !== 'own') return begin(state, situation)
  // The run that makes it certain may be healthy: its faults say how bad it is.
  const worst = worse(worse(lastBad?.level ?? 'warning', level), incident?.level ?? 'warning')
  const worstBad = worst === 'failed' ? 'failed' : 'warning'
  const message = `${faults.length} faults within an hour: ${lastBad?.message ?? state.message}`
  const fault = lastBad?.fault ?? state.fault
  // Of an incident that is over, an earlier fault may have been the beginning, and the last one if it was a victim.
  const isOver = level === 'ok' && latest?.level === 'ok'
  const beganAt = isOver ? latest.since : (faults.at(-1) ?? now)
  const next: Incident = incident
    ? { ...incident, isFlapping: true, level: worstBad, message }
    : opened(subject, state, { beganAt, confirmedAt: now, level: worstBad, fault, message, isFlapping: true })
  const from = incident?.level ?? 'ok'
  return { incident: next, what: 'flapping', at: latest?.at ?? now, from, to: worstBad, fault, message, of: next }
}

function settle(state: SubjectState, incident: Incident): IncidentStep {
  const { level, levelSince, latest, message, fault } = state
  // The level may never have changed while it flapped: the end is the first of the runs that stayed healthy.
  const at = level === 'ok' && latest?.level === 'ok' ? Math.max(levelSince, latest.since) : levelSince
  if (level === 'ok')
    return { incident: undefined, what: 'end', at, from: incident.level, to: 'ok', message, of: incident }
  return changed(state, { ...incident, isFlapping: false, level, fault, message }, incident.level, 'settled')
}

/** Whether a victim has failed for the time of a confirmation since its cause was gone. */
export const parts = ({ incident, latest }: SubjectState, confirmMs: number): boolean =>
  incident?.freedAt !== undefined &&
  latest !== undefined &&
  rank(latest.level) > 0 &&
  latest.at >= Math.max(incident.freedAt, latest.since) + confirmMs

/** A victim whose cause is gone gets the time of a confirmation. If it fails after that, its fault is its own. */
function followCause(
  state: SubjectState,
  incident: Incident,
  { blame, now, confirmMs }: Situation,
): IncidentStep | undefined {
  if (blame.type === 'wait' || incident.freedAt === undefined) return undefined
  const { latest } = state
  if (blame.type === 'victim' || latest === undefined || !parts(state, confirmMs)) return undefined
  const { level, fault, message } = state
  const own: Incident = {
    ...incident,
    cause: undefined,
    freedAt: undefined,
    confirmedAt: now,
    level: level === 'failed' ? 'failed' : 'warning',
    fault,
    message,
  }
  return { incident: own, what: 'freed', at: latest.at, from: incident.level, to: level, fault, message, of: own }
}

/** The incident of a victim as its cause shows itself now. `freedAt` is when the cause was gone. */
export function underCause(incident: Incident, blame: Blame, now: number): Incident {
  if (blame.type === 'wait') return incident
  if (blame.type === 'own') return incident.freedAt === undefined ? { ...incident, freedAt: now } : incident
  if (incident.freedAt === undefined && incident.cause?.key === blame.of.key) return incident
  return { ...incident, cause: blame.of, freedAt: undefined }
}
