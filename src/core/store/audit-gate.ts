import { sql } from 'kysely'
import type { ChainEntry } from '../audit/index.ts'
import type { AuditGate } from './data.ts'
import type { Later } from './dialect.ts'
import type { StoreLink } from './link.ts'
import type { Db } from './tables.ts'

/** What every inserted entry returns. Where a gate waits for it, it returns all of itself. */
export type InsertedEntry = Pick<ChainEntry, 'id' | 'correlationId'>

/** The audit entries that a transaction has inserted. */
type Inserted = { readonly isWhole: boolean; readonly entries: Later<InsertedEntry>[] }

const insertedBy = new WeakMap<Db, Inserted>()

/** Whether the entries of this transaction must be returned as a whole. */
export const returnsWhole = (tx: Db): boolean => insertedBy.get(tx)?.isWhole ?? false

export function passInserted(tx: Db, inserted: Later<unknown>): void {
  insertedBy.get(tx)?.entries.push(inserted as Later<InsertedEntry>)
}

/**
 * The link, whose transactions with audit entries wait for the gate that `current` returns, if there is one. `written` gets
 * the entries that have been committed.
 */
export function gated(
  link: StoreLink,
  current: () => AuditGate | undefined,
  written: (entries: readonly InsertedEntry[]) => void,
): StoreLink {
  return {
    ...link,
    write: async (work) => {
      const gate = current()
      let entries: Later<InsertedEntry>[] = []
      const rows = (): readonly InsertedEntry[] => entries.flatMap((each) => each.rows())
      const result = await link.write(async (tx) => {
        entries = []
        insertedBy.set(tx, { isWhole: gate !== undefined, entries })
        const done = await work(tx)
        if (gate === undefined || entries.length === 0) return done
        // Sends the deferred statements: only then are the entries known.
        await sql`SELECT 1`.execute(tx)
        if (rows().length > 0) await gate(rows() as readonly ChainEntry[])
        return done
      })
      written(rows())
      return result
    },
    forRequest: () => gated(link.forRequest(), current, written),
  }
}
