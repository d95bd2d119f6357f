import type { AuditFacts } from '../../core/service.ts'
import { auditChange } from './audit-change.ts'
import { aside, headline, listing, moment, type Screen, tabbed } from './listing.ts'

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
