import type { AuditEvent } from '../audit-events.ts'
import type { Actor, Data } from '../data.ts'
import { later } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'

export type AuditEntry = {
  readonly event: AuditEvent
  /** The name of the person or object that it is about. */
  readonly target: string | undefined
  /** JSON. */
  readonly before?: string | undefined
  readonly after?: string | undefined
}

/** Writes an entry in the transaction of its change (S10). */
export async function note(tx: Db, at: number, actor: Actor, entry: AuditEntry): Promise<void> {
  await later(tx, tx.insertInto('audit').values(auditValues(at, actor, entry)))
}

export const auditValues = (at: number, actor: Actor, { event, target, before, after }: AuditEntry) => ({
  at,
  event,
  who: actor.who,
  actorId: actor.userId,
  address: actor.address,
  target,
  correlationId: actor.correlationId,
  before,
  after,
  reason: actor.reason,
})

/** How somebody signed in, for the audit. By password goes without saying. */
export const providerText = (provider: string | undefined): string | undefined =>
  provider === undefined || provider === 'credentials' ? undefined : JSON.stringify({ provider })

const columns = ['id', 'at', 'event', 'who', 'address', 'target', 'correlationId', 'before', 'after', 'reason'] as const

export function auditOver(link: StoreLink, now: () => number): Data['audit'] {
  return {
    write: (event, target, actor, provider) =>
      link.write((tx) => note(tx, now(), actor, { event, target, after: providerText(provider) })),
    list: ({ limit, before }) =>
      link.read(async (db) => {
        const all = db.selectFrom('audit').select(columns).orderBy('id', 'desc').limit(limit)
        return await (before === undefined ? all : all.where('id', '<', before)).execute()
      }),
  }
}
