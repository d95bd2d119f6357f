import { createHash } from 'node:crypto'
import type { Mute, NoticeSubject } from '../notify/index.ts'
import type { StoredSubject } from '../states/index.ts'
import type { SilenceRules } from './rules.ts'
import { isInForce } from './silence.ts'

/** Milliseconds by which silences of receivers precede a window: receivers that repeat alerts need them in time. */
const aheadMs = 300_000

/** The mutes for receivers that have their own silences. `subjectOf`: how messages name a subject. */
export function mutesOf(
  { clock, entries }: SilenceRules,
  subjectOf: (subject: StoredSubject) => NoticeSubject,
  now: number,
): readonly Mute[] {
  const byClock = clock.flatMap((windows): readonly Mute[] => {
    const { monitors, when, reason } = windows.rule
    const next = windows.after(now)
    const coming = next && next.beganAt - now <= aheadMs ? [next] : []
    return [...[windows.at(now)].flatMap((window) => window ?? []), ...coming].map(({ beganAt, until }) => ({
      id: createHash('sha256')
        .update(JSON.stringify([monitors, when, beganAt]))
        .digest('hex')
        .slice(0, 8),
      what: 'silence',
      targets: monitors.map((pattern) => ({ pattern })),
      from: beganAt,
      until,
      by: 'svc.yaml',
      reason,
    }))
  })
  const byHand = entries.flatMap((entry): readonly Mute[] => {
    if (!isInForce(entry, now)) return []
    const { id, what, from, until, by, reason } = entry
    const targets =
      entry.what === 'silence'
        ? entry.monitors.map((pattern) => ({ pattern }))
        : [{ subject: subjectOf(entry.subject) }]
    return [{ id, what, targets, from, until, by, reason }]
  })
  return [...byClock, ...byHand]
}
