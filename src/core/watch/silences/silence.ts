import { type KeyedMonitor, namesOf, type StoredSubject } from '../states/index.ts'
import { ackEnding, isAcknowledged, type StateOfSubject } from './acknowledge.ts'
import { coveringIn } from './covering.ts'
import type { SilenceRules } from './rules.ts'
import type { Acknowledgement, Silence, StoredSilence } from './types.ts'

/** A monitor by its names. */
type MonitorName = Pick<StoredSubject, 'type' | 'monitor'>

/**
 * Whether an entry is in force: not before it begins, nor after it ends. An acknowledgement counts at once: it begins in the
 * future only if the clock was set back.
 */
export const isInForce = ({ what, from, until, ended }: StoredSilence, now: number): boolean =>
  ended === undefined && (what === 'ack' || from <= now) && now < until

/**
 * Why notifications about one of these monitors wait, whatever its state: the longest silence of each source, the longest
 * first. `rules` must not change: what covers a monitor is remembered for them.
 */
export function silencesOfMonitors(
  monitors: readonly MonitorName[],
  rules: SilenceRules,
  now: number,
): readonly Silence[] {
  const covering = monitors.map(coveringIn(rules))
  let byClock: Silence | undefined
  for (const windows of covering.flatMap((one) => one.clock)) {
    const until = windows.at(now)?.until ?? 0
    if (until > (byClock?.until ?? 0)) byClock = { source: 'clock', until, reason: windows.rule.reason }
  }
  let byHand: Silence | undefined
  for (const entry of covering.flatMap((one) => one.byHand)) {
    if (!isInForce(entry, now) || entry.until <= (byHand?.until ?? 0)) continue
    const { id, until, by, reason } = entry
    byHand = { source: 'hand', id, until, by, reason }
  }
  return [byClock ?? [], byHand ?? []].flat().toSorted((one, other) => other.until - one.until)
}

/**
 * Why notifications about a subject wait at a time: the longest silence first. What fails because of a silenced monitor is
 * silenced as well. Says nothing about states: whoever requests them gets them as they are.
 */
export function silencesOf(
  subject: StoredSubject,
  state: StateOfSubject,
  rules: SilenceRules,
  now: number,
): readonly Silence[] {
  const incident = state === 'removed' ? undefined : state?.incident
  const names = namesOf(subject, incident)
  const silences = silencesOfMonitors(incident?.cause ? [...names, incident.cause] : names, rules, now)
  const acks = rules.entries.flatMap((entry): readonly Silence[] => {
    if (entry.what !== 'ack' || !isInForce(entry, now) || !isAbout(entry, subject, state)) return []
    if (ackEnding(entry, state) !== undefined) return []
    const { id, until, by, reason } = entry
    return [{ source: 'ack', id, until, by, reason }]
  })
  return acks.length === 0 ? silences : [...silences, ...acks].toSorted((one, other) => other.until - one.until)
}

/** Whether an acknowledgement is about a subject, also by a name that its monitor has had since it failed. */
export const isAbout = (
  { subject: { key, check, item } }: Acknowledgement,
  subject: StoredSubject,
  state: StateOfSubject,
): boolean =>
  check === subject.check &&
  item === subject.item &&
  namesOf(subject, typeof state === 'object' ? state.incident : undefined).some((name) => name.key === key)

/** A result of a run, whether it is confirmed or not. */
export type ResultOfRun = Pick<StoredSubject, 'type' | 'monitor' | 'check' | 'item'> & {
  readonly level: 'warning' | 'failed'
  readonly fault?: string | undefined
  /** The names that its monitor has had since its incident began. */
  readonly formerly?: readonly KeyedMonitor[] | undefined
  /** The one monitor because of which it did not run. */
  readonly cause?: MonitorName | undefined
}

/** Why notifications about what a run shows would wait: the longest silence first. */
export function silencesOfResult(result: ResultOfRun, rules: SilenceRules, now: number): readonly Silence[] {
  const { type, monitor, check, item, formerly = [], cause } = result
  const silences = silencesOfMonitors([result, ...formerly, ...(cause ? [cause] : [])], rules, now)
  const acks = rules.entries.flatMap((entry): readonly Silence[] => {
    if (entry.what !== 'ack' || !isInForce(entry, now) || !isAcknowledged(entry, result)) return []
    const { subject, id, until, by, reason } = entry
    const isOther =
      subject.type !== type ||
      subject.monitor !== monitor ||
      subject.check !== check ||
      (subject.item !== undefined && subject.item !== item)
    return isOther ? [] : [{ source: 'ack', id, until, by, reason }]
  })
  return [...silences, ...acks].toSorted((one, other) => other.until - one.until)
}

/** When a warning was acknowledged, by the clock of the store, if nothing but such acknowledgements silences a subject. */
export function warningAckedAt(silences: readonly Silence[], entries: readonly StoredSilence[]): number | undefined {
  if (silences.length === 0) return undefined
  const froms = silences.map(({ id }) => {
    const entry = entries.find((one) => one.id === id)
    return entry?.what === 'ack' && entry.level === 'warning' ? entry.from : Number.POSITIVE_INFINITY
  })
  const at = Math.max(...froms)
  return Number.isFinite(at) ? at : undefined
}

/** The acknowledgements in force that no longer apply, with the reason. */
export const acksThatEnd = (
  entries: readonly StoredSilence[],
  stateOf: (subject: StoredSubject, incident: string) => StateOfSubject,
  now: number,
): readonly { readonly entry: Acknowledgement; readonly why: NonNullable<ReturnType<typeof ackEnding>> }[] =>
  entries.flatMap((entry) => {
    if (entry.what !== 'ack' || !isInForce(entry, now)) return []
    const why = ackEnding(entry, stateOf(entry.subject, entry.incident))
    return why === undefined ? [] : [{ entry, why }]
  })
