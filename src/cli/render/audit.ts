import type { AuditFacts } from '../../core/service.ts'
import { aside, headline, listing, moment, names, type Screen, tabbed } from './listing.ts'

/**
 * What an entry changed, for people: `+Ops −Deploy` for lists before and after, else the facts
 * themselves. What is not of that shape stands as it was written.
 */
export function auditChange({ before, after, reason }: Pick<AuditFacts, 'before' | 'after' | 'reason'>): string {
  const [was, is] = [factsOf(before), factsOf(after)]
  const change =
    was && is && Object.keys(was).join() === Object.keys(is).join()
      ? Object.keys(is).flatMap((name) => difference(was[name], is[name]))
      : [before === undefined ? '' : `was ${shown(was, before)}`, after === undefined ? '' : shown(is, after)]
  return [...change, reason === undefined ? '' : `(${reason})`].filter((part) => part !== '').join(' ')
}

type Facts = Readonly<Record<string, unknown>>

function factsOf(text: string | undefined): Facts | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Facts) : undefined
  } catch {
    return undefined
  }
}

const textsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined

function difference(was: unknown, is: unknown): readonly string[] {
  const [old, now] = [textsOf(was), textsOf(is)]
  if (!old || !now) return was === is ? [] : [`${plain(was)} → ${plain(is)}`]
  const gained = now.filter((item) => !old.includes(item)).map((item) => `+${names([item])}`)
  const lost = old.filter((item) => !now.includes(item)).map((item) => `-${names([item])}`)
  return [...gained, ...lost]
}

/** `user deploy, roles Ops`: what is empty or null is left out. */
function shown(facts: Facts | undefined, written: string): string {
  if (!facts) return written
  const parts = Object.entries(facts).flatMap(([name, value]) => {
    const list = textsOf(value)
    if (value === null || value === '' || list?.length === 0) return []
    return [`${name} ${list ? names(list) : plain(value)}`]
  })
  return parts.length > 0 ? parts.join(', ') : 'nothing'
}

const plain = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** As `--json` shows an entry. */
export const auditJson = (entry: AuditFacts) => ({
  id: entry.id,
  at: entry.at.toISOString(),
  event: entry.event,
  who: entry.who,
  address: entry.address ?? null,
  target: entry.target ?? null,
  before: entry.before ?? null,
  after: entry.after ?? null,
  reason: entry.reason ?? null,
  correlationId: entry.correlationId,
})

/** In a pipe: Store, Id, At, Event, Who, Address, Target, Before, After, Reason, CorrelationId. */
export function renderAudit(entries: readonly AuditFacts[], store: string, screen: Screen): string {
  if (!screen.isTTY) {
    return entries
      .map((entry) =>
        tabbed([
          store,
          String(entry.id),
          entry.at.toISOString(),
          entry.event,
          entry.who,
          entry.address ?? '',
          entry.target ?? '',
          entry.before ?? '',
          entry.after ?? '',
          entry.reason ?? '',
          entry.correlationId,
        ]),
      )
      .join('\n')
  }
  if (entries.length === 0)
    return `${headline('warn', 'The audit holds no such entry', screen)}\n${aside(store, screen)}`
  const noAddress = entries.every((entry) => entry.address === undefined)
  const rows = entries.map((entry) => [
    String(entry.id),
    moment(entry.at).replace(' UTC', ''),
    entry.event,
    entry.who,
    ...(noAddress ? [] : [entry.address ?? '']),
    entry.target ?? '',
    auditChange(entry),
  ])
  const titles = ['ID', 'AT (UTC)', 'EVENT', 'WHO', ...(noAddress ? [] : ['FROM']), 'TARGET', 'CHANGE']
  const last = titles.length - 1
  return [
    headline('ok', `${entries.length === 1 ? '1 entry' : `${entries.length} entries`}, newest first`, screen),
    aside(store, screen),
    '',
    listing({ titles, yielding: [last, last - 1, 3] }, rows, screen),
  ].join('\n')
}
