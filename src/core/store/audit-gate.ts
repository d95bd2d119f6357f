import { sql } from 'kysely'
import type { ChainEntry } from './audit/index.ts'
import type { AuditGate } from './data.ts'
import type { Later } from './dialect.ts'
import type { StoreLink } from './link.ts'
import type { Db } from './tables.ts'

/** The part of an entry that its insert returns if nobody waits for it. */
export type InsertedEntry = Pick<ChainEntry, 'id' | 'correlationId'>

/** How much of an entry its insert returns: all of it where a gate waits for it. */
type Returned = 'all' | 'number' | 'nothing'
/** The audit entries that a transaction has inserted. */
type Inserted = { readonly returned: Returned; readonly entries: Later<InsertedEntry>[] }

const insertedBy = new WeakMap<Db, Inserted>()

/** The part of each entry that its insert in this transaction must return. */
export const returned = (tx: Db): Returned => insertedBy.get(tx)?.returned ?? 'nothing'

export function passInserted(tx: Db, inserted: Later<unknown>): void {
  insertedBy.get(tx)?.entries.push(inserted as Later<InsertedEntry>)
}

/**
 * The link, whose transactions with audit entries wait for the gate that `current` returns, if there is one. `written` gets
 * the entries that have been committed. Undefined: nobody wants them.
 */
export function gated(
  link: StoreLink,
  current: () => AuditGate | undefined,
  written: ((entries: readonly InsertedEntry[]) => void) | undefined,
): StoreLink {
  return {
    ...link,
    write: async (work) => {
      const gate = current()
      if (gate === undefined && written === undefined) return await link.write(work)
      let entries: Later<InsertedEntry>[] = []
      const rows = (): readonly InsertedEntry[] => entries.flatMap((each) => each.rows())
      let passed: readonly ChainEntry[] = []
      const withdraw = (): void => {
        if (passed.length > 0) gate?.withdraw(passed)
        passed = []
      }
      const result = await link
        .write(async (tx) => {
          withdraw()
          entries = []
          insertedBy.set(tx, { returned: gate === undefined ? 'number' : 'all', entries })
          const done = await work(tx)
          if (gate === undefined || entries.length === 0) return done
          // Sends the deferred statements: only then are the entries known.
          await sql`SELECT 1`.execute(tx)
          passed = rows() as readonly ChainEntry[]
          if (passed.length > 0) await gate.pass(passed)
          return done
        })
        .catch((error: unknown) => {
          withdraw()
          throw error
        })
      written?.(rows())
      return result
    },
    forRequest: () => gated(link.forRequest(), current, written),
  }
}
