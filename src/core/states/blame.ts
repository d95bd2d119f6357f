import { causeFreshMs, isUnreachable } from './policy.ts'
import type { Cause, Dependency, SubjectState } from './types.ts'

/** What is known of a monitor on which others depend. */
export type CauseView = Cause & {
  /** It cannot be reached, so that the faults of its dependents follow from that. */
  readonly isDown: boolean
  /** It may be. */
  readonly isDoubtful: boolean
  /** When its last run with a verdict began. */
  readonly seenAt: number
}

/** On whom the fault of a subject rests. */
export type Blame =
  | { readonly type: 'own' }
  | { readonly type: 'victim'; readonly of: Cause }
  /** Nobody knows yet: these causes have to run again, if any are listed. */
  | { readonly type: 'wait'; readonly rerun: readonly string[] }

/** While a cause flaps, what it shows now counts: its silence must not cover the faults of others. */
const isDown = ({ isFlapping, latest, level, fault }: SubjectState): boolean =>
  isFlapping ? latest?.level === 'failed' && isUnreachable(latest.fault) : level === 'failed' && isUnreachable(fault)

const isDoubtful = ({ doubt }: SubjectState): boolean => doubt?.failed !== undefined && isUnreachable(doubt.fault)

export const viewOf = (cause: Cause, subjects: Iterable<SubjectState>, seenAt: number): CauseView => {
  const all = [...subjects]
  return { ...cause, isDown: all.some(isDown), isDoubtful: all.some(isDoubtful), seenAt }
}

/**
 * On whom the fault of a subject rests, that was confirmed at `confirmedAt` and began at `levelSince`. Only a cause that
 * cannot be reached explains it: a slow backup must not hide an outage. A cause of which nothing is known explains nothing.
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
    const down = views.filter((view) => view.isDown)
    const doubtful = views.filter((view) => !view.isDown && view.isDoubtful)
    const [first] = down
    if (first && of.length - down.length < atLeast) return { type: 'victim', of: causeOf(first) }
    if (of.length - down.length - doubtful.length < atLeast) waits = true
    for (const { key, seenAt } of views) if (seenAt < since) stale.add(key)
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
    if (first && of.length - suspects.length < atLeast) return causeOf(first)
  }
  return undefined
}

const causeOf = ({ key, type, monitor }: CauseView): Cause => ({ key, type, monitor })
