import { causeFreshMs, isUnreachable } from './policy.ts'
import type { Cause, Dependency, SubjectState } from './types.ts'

/** The state of a monitor on which others depend. */
export type CauseView = {
  /** The key of the monitor. */
  readonly key: string
  /** Who takes the blame: the monitor, or the one of which it is a victim itself. */
  readonly blamed: Cause
  /** It cannot be reached, so that the faults of its dependents follow from that. */
  readonly isDown: boolean
  /** Its last run reached it, and its recovery is not confirmed yet. */
  readonly isHealing: boolean
  /** It may be. */
  readonly isDoubtful: boolean
  /** Its fault has an incident, and no cause of it that is gone, so that it is known whether it is a victim. */
  readonly isSettled: boolean
  /** When its last run with a verdict began that shows whether it can be reached. */
  readonly seenAt: number
  /** Nobody can wait for what it shows. */
  readonly isUnobserved: boolean
}

/** On whom the fault of a subject rests. */
export type Blame =
  | { readonly type: 'own' }
  | { readonly type: 'victim'; readonly of: Cause }
  /** Nobody knows yet: these causes have to run again, if any are listed. */
  | { readonly type: 'wait'; readonly rerun: readonly string[] }

/**
 * While a cause flaps, what it shows now counts: its silence must not cover the faults of others. What shallower runs reach
 * can be reached, whatever deeper ones show. One that nothing observes explains nothing.
 */
const isDown = (state: SubjectState): boolean => {
  const { isFlapping, latest, level, fault, isReached, unobservedSince } = state
  return isReached || unobservedSince !== undefined || isUnseenVictim(state)
    ? false
    : isFlapping
      ? latest?.level === 'failed' && isUnreachable(latest.fault)
      : level === 'failed' && isUnreachable(fault)
}

/** A victim of which no run has seen anything since its cause was gone. */
const isUnseenVictim = ({ incident, latest }: SubjectState): boolean =>
  incident?.freedAt !== undefined && (latest === undefined || latest.at < incident.freedAt)

const isDoubtful = ({ doubt, isReached }: SubjectState): boolean =>
  !isReached && doubt?.failed !== undefined && isUnreachable(doubt.fault)

/** Whether it would be down, or perhaps, if shallower runs did not reach it. */
export const isReachedOnly = (state: SubjectState): boolean => {
  const unreached = { ...state, isReached: undefined }
  return state.isReached === true && (isDown(unreached) || isDoubtful(unreached))
}

export const viewOf = (cause: Cause, subjects: Iterable<SubjectState>, seenAt: number): CauseView => {
  const all = [...subjects]
  const down = all.filter(isDown)
  const incidents = down.flatMap(({ incident }) => incident ?? [])
  const settled = incidents.filter(({ freedAt }) => freedAt === undefined)
  const first = settled.find((one) => one.cause !== undefined)?.cause
  return {
    key: cause.key,
    blamed: first ?? cause,
    isDown: down.length > 0,
    isHealing: down.length > 0 && down.every(({ latest }) => latest?.level === 'ok'),
    isDoubtful: all.some(isDoubtful),
    isSettled: settled.length > 0,
    seenAt,
    isUnobserved: all.some(({ unobservedSince }) => unobservedSince !== undefined),
  }
}

/**
 * On whom the fault of a subject rests, that was confirmed at `confirmedAt` and began at `levelSince`. Only a cause that
 * cannot be reached explains it: a slow backup must not hide an outage. A cause of which nothing is known explains nothing,
 * and neither does one that was down earlier and of which nothing has been seen since. While one heals, nobody knows.
 */
export function blame(
  dependsOn: readonly Dependency[],
  viewsOf: (key: string) => CauseView | undefined,
  { levelSince, confirmedAt }: Pick<SubjectState, 'levelSince' | 'confirmedAt'>,
  mayWait: boolean,
): Blame {
  const since = Math.max(levelSince, confirmedAt - causeFreshMs)
  const stale = new Set<string>()
  let waits = false
  for (const { of, atLeast } of dependsOn) {
    const views = of.flatMap((key) => viewsOf(key) ?? [])
    const down = views.filter((view) => view.isDown && !view.isHealing && view.seenAt >= since)
    const doubtful = views.filter((view) => !down.includes(view) && (view.isDown || view.isDoubtful))
    const [first] = down
    if (first && of.length - down.length < atLeast) {
      if (first.isSettled || !mayWait) return { type: 'victim', of: first.blamed }
      waits = true
    }
    if (of.length - down.length - doubtful.length < atLeast) waits = true
    for (const { key, seenAt, isUnobserved } of views) if (seenAt < since && !isUnobserved) stale.add(key)
  }
  return mayWait && (waits || stale.size > 0) ? { type: 'wait', rerun: [...stale] } : { type: 'own' }
}

/** The monitor on which a fault that is in doubt seems to rest: one that cannot be reached, or may be one of these. */
export function suspect(
  dependsOn: readonly Dependency[],
  viewsOf: (key: string) => CauseView | undefined,
): Cause | undefined {
  for (const { of, atLeast } of dependsOn) {
    const suspects = of.flatMap((key) => viewsOf(key) ?? []).filter((view) => view.isDown || view.isDoubtful)
    const [first] = suspects
    if (first && of.length - suspects.length < atLeast) return first.blamed
  }
  return undefined
}
