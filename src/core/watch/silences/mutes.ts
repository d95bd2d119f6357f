import { createHash } from 'node:crypto'
import type { Mute, NoticeSubject } from '../notify/index.ts'
import {
  type Incident,
  type KeyedMonitor,
  namesOf,
  type StoredSubject,
  type SubjectState,
  toldAs,
} from '../states/index.ts'
import type { ClockWindows } from './clock.ts'
import { coveringIn } from './covering.ts'
import type { SilenceRules } from './rules.ts'
import { isInForce } from './silence.ts'
import type { Acknowledgement, HandSilence } from './types.ts'

/** Milliseconds by which silences of receivers precede a window: receivers that repeat alerts need them in time. */
const aheadMs = 300_000

/** A subject of which the monitor was renamed since its incident began: receivers know it by the former name. */
export type RenamedSubject = { readonly subject: StoredSubject; readonly incident: Incident }

/** The renamed ones of subjects. */
export const renamedAmong = (
  subjects: readonly { readonly subject: StoredSubject; readonly state: Pick<SubjectState, 'incident'> }[],
): readonly RenamedSubject[] =>
  subjects.flatMap(({ subject, state: { incident } }) => (incident?.formerly ? [{ subject, incident }] : []))

/** The mutes for receivers that have their own silences. `subjectOf`: how messages name a subject. */
export function mutesOf(
  rules: SilenceRules,
  subjectOf: (subject: StoredSubject) => NoticeSubject,
  now: number,
  renamed: readonly RenamedSubject[],
): readonly Mute[] {
  const covering = coveringIn(rules)
  const targetsOf = (patterns: readonly string[], rule: ClockWindows | HandSilence): Mute['targets'] => {
    const isCovered = (name: KeyedMonitor): boolean => {
      const { clock, byHand } = covering(name)
      return [...clock, ...byHand].includes(rule)
    }
    const exact = renamed.flatMap(({ subject, incident }) => {
      const one = toldAs(subject, incident)
      return !isCovered(one) && namesOf(subject, incident).some(isCovered) ? [{ subject: subjectOf(one) }] : []
    })
    return [...patterns.map((pattern) => ({ pattern })), ...exact]
  }
  const acknowledged = ({ subject, incident: id }: Acknowledgement): StoredSubject => {
    const one = renamed.find(({ incident }) => incident.id === id)
    return one ? toldAs(subject, one.incident) : subject
  }
  const byClock = rules.clock.flatMap((windows): readonly Mute[] => {
    const { monitors, when, reason } = windows.rule
    const next = windows.after(now)
    const coming = next && next.beganAt - now <= aheadMs ? [next] : []
    return [...[windows.at(now)].flatMap((window) => window ?? []), ...coming].map(({ beganAt, until }) => ({
      id: createHash('sha256')
        .update(JSON.stringify([monitors, when, beganAt]))
        .digest('hex')
        .slice(0, 8),
      what: 'silence',
      targets: targetsOf(monitors, windows),
      from: beganAt,
      until,
      by: 'svc.yaml',
      reason,
    }))
  })
  const byHand = rules.entries.flatMap((entry): readonly Mute[] => {
    if (!isInForce(entry, now)) return []
    const { id, what, from, until, by, reason } = entry
    const targets =
      entry.what === 'silence' ? targetsOf(entry.monitors, entry) : [{ subject: subjectOf(acknowledged(entry)) }]
    return [{ id, what, targets, from, until, by, reason }]
  })
  return [...byClock, ...byHand]
}
