import { isUnreachable, rank } from './policy.ts'
import type { SubjectView } from './states.ts'
import { subjectId } from './subject.ts'
import type { Incident } from './types.ts'

/**
 * Of the incidents of one monitor, the one that explains its victims: it keeps the monitor from being reached. Of several,
 * the one that began first, so that each victim is listed once. Without any, the worst: the fault may have changed since.
 */
export function explaining<T extends Pick<Incident, 'level' | 'fault' | 'beganAt'>>(
  incidents: readonly T[],
): T | undefined {
  const explains = ({ level, fault }: T): number => (level === 'failed' && isUnreachable(fault) ? 1 : 0)
  const [first] = incidents.toSorted(
    (a, b) => explains(b) - explains(a) || rank(b.level) - rank(a.level) || a.beganAt - b.beganAt,
  )
  return first
}

/** The monitors that fail because of another one, by the id of the subject that explains them: one view of each. */
export function victimsBySubject(views: Iterable<SubjectView>): ReadonlyMap<string, readonly SubjectView[]> {
  const open = Map.groupBy(views, ({ key }) => key)
  const victims = new Map<string, Map<string, SubjectView>>()
  for (const view of [...open.values()].flat()) {
    const cause = view.state.incident?.cause?.key
    if (cause === undefined) continue
    victims.set(cause, (victims.get(cause) ?? new Map()).set(view.key, view))
  }
  const bySubject = new Map<string, readonly SubjectView[]>()
  for (const [cause, of] of victims) {
    const faults = (open.get(cause) ?? []).flatMap((view) => {
      const { incident, fault } = view.state
      return incident ? [{ ...incident, fault: fault ?? incident.fault, view }] : []
    })
    const subject = explaining(faults)?.view
    if (subject) bySubject.set(subjectId(subject), [...of.values()])
  }
  return bySubject
}
