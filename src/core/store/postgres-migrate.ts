import type { ClientBase } from 'pg'
import { Fault } from '../errors.ts'
import { accountTables, applicationId, heartbeatTables, lookupIndexes, postgresWords, readingTables } from './schema.ts'

/** The same versions as SQLite's steps (schema.ts). Forwards only; a released step never changes. */
export const postgresMigrations: readonly string[] = [
  `CREATE TABLE "meta" (
     "id" INTEGER PRIMARY KEY CHECK ("id" = 1),
     "application" BIGINT NOT NULL,
     "createdAt" TEXT NOT NULL,
     "version" INTEGER NOT NULL
   );
   INSERT INTO "meta" VALUES (1, ${applicationId},
     to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 0);`,
  accountTables(postgresWords),
  heartbeatTables(postgresWords),
  readingTables(postgresWords),
  lookupIndexes,
]

/** Maximum milliseconds of one step, and of the wait for another process's step. */
const maxStepMs = 600_000

type Options = {
  /** The store as shown to people. */
  readonly label: string
  /** Creates the tables when there are none. If false, their absence is a Fault. */
  readonly create: boolean
}

/**
 * Brings a database to the newest schema, with all missing steps in one transaction under a lock. A killed process
 * leaves the old schema; of two that start at once, one works and the other waits. Throws Fault `Local` for a database
 * that is not ours, newer or empty, and the driver's errors.
 */
export async function migratePostgres(
  client: ClientBase,
  options: Options,
  steps: readonly string[] = postgresMigrations,
): Promise<void> {
  if ((await versionIn(client, options, steps)) === steps.length) return
  // The store's connections limit statements to what a caller waits for; an index of a large table takes longer.
  const step = async (text: string): Promise<void> => {
    const question = { text, query_timeout: maxStepMs }
    await client.query(question)
  }
  await client.query('BEGIN')
  try {
    await client.query(`SET LOCAL statement_timeout = ${maxStepMs}`)
    await step(`SELECT pg_advisory_xact_lock(${applicationId})`)
    // Check again: another process may have migrated meanwhile.
    const version = await versionIn(client, options, steps)
    for (const missing of steps.slice(version)) await step(missing)
    await client.query('UPDATE "meta" SET "version" = $1 WHERE "id" = 1', [steps.length])
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

async function versionIn(client: ClientBase, options: Options, steps: readonly string[]): Promise<number> {
  const current = await look(client)
  const refuse = (what: string, hint: string): Fault =>
    new Fault('Local', `The store ${options.label} ${what}`, { hints: [hint] })
  const foreign = (): Fault =>
    refuse('holds tables of something else, and no store of svc', 'Give svc a database of its own with SVC_STORE.')
  if (current.encoding !== 'UTF8') {
    const encoding = /^\w{1,32}$/.test(current.encoding) ? current.encoding : 'something without a name'
    throw refuse(`keeps text as ${encoding}, and not as UTF8`, 'createdb -E UTF8 -T template0 makes one that does.')
  }
  if (current.tables === 0) {
    if (!options.create) throw refuse('is empty: there is no store in it', '`svc serve` makes it.')
    return 0
  }
  if (!current.ours) throw foreign()
  const { rows } = await client.query<{ application: string; version: string }>(
    // As text: a foreign table may have other types.
    `SELECT "application"::text, "version"::text FROM "meta" WHERE "id"::text = '1'`,
  )
  const meta = rows[0]
  if (meta?.application !== String(applicationId)) throw foreign()
  const version = Number(meta.version)
  if (version > steps.length) {
    throw refuse(
      `was written by a newer svc (schema ${version}; known here: ${steps.length})`,
      'Update svc, or name another store with SVC_STORE.',
    )
  }
  return version
}

type Look = { readonly encoding: string; readonly tables: number; readonly ours: boolean }

/** The contents of the schema in which new tables would be created. */
async function look(client: ClientBase): Promise<Look> {
  const { rows } = await client.query<Look>(
    `SELECT current_setting('server_encoding') AS "encoding",
       (SELECT count(*)::int FROM pg_catalog.pg_class c
        WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
       ) AS "tables",
       (SELECT count(*) = 4 FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = to_regclass(quote_ident(current_schema()) || '.meta') AND a.attname IN ('id', 'application', 'createdAt', 'version')
       ) AS "ours"`,
  )
  const row = rows[0]
  if (!row) throw new Error('a SELECT without FROM gave no row')
  return row
}
