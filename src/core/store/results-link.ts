import { sql } from 'kysely'
import { Fault, NewerStore } from '../base/errors.ts'
import { lazy } from '../base/lazy.ts'
import type { HistoryLink } from './data-over.ts'
import { laterSql } from './dialect.ts'
import type { StoreLink } from './link.ts'
import { refuseUnopenable } from './open.ts'
import { statOf } from './path.ts'
import { historyForm, historyPathOf, historySteps } from './results-schema.ts'
import { postgresWords, sqliteWords } from './schema.ts'
import { linkSqlite } from './sqlite-link.ts'

/** The history beside an embedded store, in a file of its own. */
export function historyInFile(store: string, patienceMs: number | undefined): HistoryLink {
  const path = historyPathOf(store)
  let closed = false
  const opened = lazy(async () => {
    await refuseUnopenable(path)
    return linkSqlite({ path, create: true, patienceMs }, historyForm(sqliteWords))
  })
  return {
    link: async (create) => {
      if (closed) throw new Fault('Unavailable', 'The store is closed')
      return create || statOf(path) ? await opened.get() : undefined
    },
    close: async () => {
      closed = true
      await (await opened.peek()?.catch(() => undefined))?.close()
    },
  }
}

/** A lock for the steps of the history, so that of several nodes one takes them. */
const stepsLock = 'history steps'
/**
 * Milliseconds that a step waits for the lock of a table, for example while pg_dump reads it. Everybody else waits behind it for
 * this long; then the next caller tries again.
 */
const tableLockMs = 300

/** The history in a database server. Its tables have a version of their own, and are made when they are first used. */
export function historyInTables(link: StoreLink): HistoryLink {
  const prepared = lazy(async () => {
    const steps = historySteps(postgresWords)
    await link.write(async (tx) => {
      await link.lock(tx, stepsLock)
      await sql`CREATE TABLE IF NOT EXISTS "historyMeta" ("version" INTEGER NOT NULL)`.execute(tx)
      const { rows } = await sql<{ version: number }>`SELECT "version" FROM "historyMeta"`.execute(tx)
      const version = rows[0]?.version
      if (version === undefined) await sql`INSERT INTO "historyMeta" VALUES (0)`.execute(tx)
      if ((version ?? 0) > steps.length)
        throw new NewerStore(
          'The history in the store',
          { schema: version ?? 0, supports: steps.length },
          'Update svc.',
        )
      await laterSql(tx, sql`SET LOCAL lock_timeout = ${sql.lit(tableLockMs)}`)
      for (const step of steps.slice(version ?? 0)) {
        for (const statement of step.split(';')) if (statement.trim() !== '') await sql.raw(statement).execute(tx)
      }
      await sql`UPDATE "historyMeta" SET "version" = ${steps.length}`.execute(tx)
    })
    return link
  })
  return { link: () => prepared.get(), close: async () => {} }
}
