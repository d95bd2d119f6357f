import { sanitize } from '../../base/net/text.ts'
import type { KeeperLog } from '../../store/index.ts'
import type { Cause, Transition, TransitionKind } from '../../watch/states/index.ts'

type Line = Parameters<KeeperLog>[0]

/** Characters of the message of a check that a line contains. */
const maxMessage = 300

const bare: Partial<Record<TransitionKind, { readonly level: Line['level']; readonly text: string }>> = {
  end: { level: 'info', text: 'recovered' },
  removed: { level: 'info', text: 'is not checked any more' },
  settled: { level: 'info', text: 'flaps no more' },
  unobserved: { level: 'warn', text: 'is not observed any more' },
  observed: { level: 'info', text: 'is observed again' },
}

/**
 * The line of the log about an incident, for example `Sql/postgres orders: connect failed: connection refused`. Undefined for
 * a blip, which is no incident.
 */
export function incidentLine(transition: Transition): Line | undefined {
  const { what, check, item, to, message, cause } = transition
  if (what === 'blip') return undefined
  const subject = `${nameOf(transition)}: ${check}${item === undefined ? '' : ` (${item})`}`
  const plain = bare[what]
  if (plain) return { level: plain.level, msg: sanitize(`${subject} ${plain.text}`, maxMessage) }
  const state = what === 'flapping' ? 'flaps' : to === 'failed' ? 'failed' : 'is a warning'
  const because = cause ? ` (a consequence of ${nameOf(cause)})` : ''
  return {
    level: cause ? 'info' : 'warn',
    msg: `${sanitize(`${subject} ${state}${because}`, maxMessage)}: ${sanitize(message, maxMessage)}`,
  }
}

const nameOf = ({ type, monitor }: Pick<Cause, 'type' | 'monitor'>): string =>
  type === undefined ? monitor : `${type}/${monitor}`
