import { sql } from 'kysely'
import type { ChainEntry } from '../audit/index.ts'
import type { AuditGate } from './data.ts'
import type { Later } from './dialect.ts'
import type { StoreLink } from './link.ts'
import type { Db } from './tables.ts'

/** The audit entries of the transactions that wait for a gate. */
const entriesOf = new WeakMap<Db, Later<ChainEntry>[]>()

/** Whether the inserted entries of this transaction must be returned. */
export const isGated = (tx: Db): boolean => entriesOf.has(tx)

export function passToGate(tx: Db, inserted: Later<unknown>): void {
  entriesOf.get(tx)?.push(inserted as Later<ChainEntry>)
}

/** The link, whose transactions with audit entries wait for the gate that `current` returns, if there is one. */
export function gated(link: StoreLink, current: () => AuditGate | undefined): StoreLink {
  return {
    ...link,
    write: (work) => {
      const gate = current()
      if (gate === undefined) return link.write(work)
      return link.write(async (tx) => {
        const inserted: Later<ChainEntry>[] = []
        entriesOf.set(tx, inserted)
        const result = await work(tx)
        if (inserted.length === 0) return result
        // Sends the deferred statements: only then are the entries known.
        await sql`SELECT 1`.execute(tx)
        const entries = inserted.flatMap((each) => each.rows())
        if (entries.length > 0) await gate(entries)
        return result
      })
    },
    forRequest: () => gated(link.forRequest(), current),
  }
}
