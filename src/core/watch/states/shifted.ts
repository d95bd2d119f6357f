import type { Shift } from '../schedule/index.ts'
import type { FaultInDoubt, Incident, SubjectState } from './types.ts'

type Shifting = Pick<Shift, 'move' | 'correct'>

/** Receivers and the store have the beginning of an incident; the rest decides. An incident whose instants stay is the same object. */
function shiftedIncident(incident: Incident, { move, correct }: Shifting): Incident {
  const { beganAt, confirmedAt, freedAt } = incident
  const shifted = {
    ...incident,
    beganAt: correct(beganAt),
    confirmedAt: correct(confirmedAt),
    ...(freedAt === undefined ? {} : { freedAt: move(freedAt) }),
  }
  const isSame =
    shifted.beganAt === beganAt && shifted.confirmedAt === confirmedAt && (shifted.freedAt ?? freedAt) === freedAt
  return isSame ? incident : shifted
}

function shiftedDoubt(doubt: FaultInDoubt, { move }: Shifting): FaultInDoubt {
  const { warning, failed, answered, hiddenAt, repeatsAt } = doubt
  return {
    ...doubt,
    warning: move(warning),
    ...(failed === undefined ? {} : { failed: move(failed) }),
    ...(answered === undefined ? {} : { answered: { ...answered, at: move(answered.at) } }),
    ...(hiddenAt === undefined ? {} : { hiddenAt: move(hiddenAt) }),
    ...(repeatsAt === undefined ? {} : { repeatsAt: move(repeatsAt) }),
  }
}

/** The state of a subject after the line that people read has shifted. */
export function shiftedState(state: SubjectState, shift: Shifting): SubjectState {
  const { move } = shift
  const { levelSince, confirmedAt, doubt, healing, turning, latest, faults, observedAt } = state
  const { unobservedSince, looked, incident } = state
  return {
    ...state,
    levelSince: move(levelSince),
    confirmedAt: move(confirmedAt),
    doubt: doubt && shiftedDoubt(doubt, shift),
    healing: healing && { ...healing, since: move(healing.since) },
    turning: turning && { ...turning, since: move(turning.since) },
    latest: latest && { ...latest, at: move(latest.at), since: move(latest.since) },
    faults: faults.map(move),
    observedAt: move(observedAt),
    unobservedSince: unobservedSince === undefined ? undefined : move(unobservedSince),
    looked: looked && { ...looked, at: move(looked.at) },
    incident: incident && shiftedIncident(incident, shift),
  }
}
