import type { AuditEvent } from '../audit-events.ts'
import { passInserted, returned } from '../audit-gate.ts'
import type { Actor, Data } from '../data.ts'
import { later } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import type { WrittenEntries } from '../written-entries.ts'
import type { SealMemory } from './seals.ts'

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
  const inserted = tx.insertInto('audit').values(auditValues(at, actor, entry))
  const what = returned(tx)
  if (what === 'nothing') await later(tx, inserted)
  else if (what === 'all') passInserted(tx, await later(tx, inserted.returningAll()))
  else passInserted(tx, await later(tx, inserted.returning(['id', 'correlationId'])))
}

/** The entry waits for its seal (S13). */
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
  seal: 0,
})

/** How somebody signed in, for the audit. By password goes without saying. */
export const providerText = (provider: string | undefined): string | undefined =>
  provider === undefined || provider === 'credentials' ? undefined : JSON.stringify({ provider })

const columns = ['id', 'at', 'event', 'who', 'address', 'target', 'correlationId', 'before', 'after', 'reason'] as const

/** `forSeals`: a link whose failures say nothing of the store. */
export function auditOver(
  link: StoreLink,
  now: () => number,
  {
    forSeals,
    memory,
    written,
  }: { readonly forSeals: StoreLink; readonly memory: SealMemory; readonly written: WrittenEntries },
): Data['audit'] {
  // Only the commands of the audit and `svc serve` need the rest.
  const seals = async () => (await import('./seals.ts')).sealsOver(forSeals, now, memory)
  const past = async () => (await import('./audit-past.ts')).auditPastOver(link)
  return {
    write: (event, target, actor, provider) =>
      link.write((tx) => note(tx, now(), actor, { event, target, after: providerText(provider) })),
    list: async ({ limit, before, ...filter }) => {
      if (Object.values(filter).some((value) => value !== undefined)) {
        return await (await past()).list({ limit, before, ...filter })
      }
      return await link.read(async (db) => {
        const all = db.selectFrom('audit').select(columns).orderBy('id', 'desc').limit(limit)
        return await (before === undefined ? all : all.where('id', '<', before)).execute()
      })
    },
    lost: async () => {
      const entries = written.remembered()
      if (entries.length === 0) return []
      const ids = entries.map(({ id }) => id)
      const present = await link.read((db) =>
        db.selectFrom('audit').select(['id', 'correlationId']).where('id', 'in', ids).execute(),
      )
      return written.lost(entries, present)
    },
    ofRoles: async (after, user) => await (await past()).ofRoles(after, user),
    lastOfRoles: async (time) => await (await past()).lastOfRoles(time),
    beginning: async () => await (await past()).beginning(),
    lastHead: () => memory.head,
    head: async () => await (await seals()).head(),
    seal: async (limits) => await (await seals()).seal(limits),
    seals: async (after) => await (await seals()).seals(after),
    entries: async (ids) => await (await seals()).entries(ids),
    ids: async (after) => await (await seals()).ids(after),
  }
}
