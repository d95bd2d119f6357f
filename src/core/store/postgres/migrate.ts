import { setTimeout as wait } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { Fault, NewerStore } from '../../base/errors.ts'
import { alteredStore, compareSchema, postgresObjects } from '../own-schema.ts'
import { historySteps } from '../results-schema.ts'
import {
  accountTables,
  applicationId,
  auditSeals,
  digestTables,
  grantEnds,
  guessTables,
  heartbeatTables,
  jobRuns,
  leaseTables,
  lookupIndexes,
  type OwnSchema,
  openIdTables,
  ownSchema,
  postgresWords,
  readingTables,
  sessionFacts,
  silencePermission,
  silenceTables,
  temporaryPasswords,
} from '../schema.ts'
import { codeOf } from './faults.ts'

/**
 * A step on tables that may be large and that other nodes write to meanwhile. Each of its parts may be made again, so that a
 * step that was killed anywhere goes on at the next start.
 */
export type OnlineStep = {
  /** The step as a whole, for a store that is just being made. */
  readonly text: string
  /** Columns and tables. Each is added in a moment. */
  readonly columns: readonly string[]
  readonly indexes: readonly { readonly name: string; readonly table: string; readonly text: string }[]
  /**
   * Changes of rows. `$1` is the key after which the next rows follow in order; each call changes some and returns their
   * last key as `last`, or null after the last row.
   */
  readonly batches: readonly string[]
}
/** A text only makes new tables, or changes tables in a moment. */
type Step = string | OnlineStep

const rowsPerBatch = 1_000

/** Fills the column that step 8 adds (schema.ts). */
const sessionFactsOfRows = `
  WITH "batch" AS (SELECT "hash" FROM "refreshTokens" WHERE "hash" > $1 ORDER BY "hash" LIMIT ${rowsPerBatch}),
    "filled" AS (UPDATE "refreshTokens" SET "createdAt" =
      (SELECT "createdAt" FROM "sessions" WHERE "sessions"."familyId" = "refreshTokens"."familyId" LIMIT 1)
      WHERE "hash" IN (SELECT "hash" FROM "batch") AND "createdAt" IS NULL)
  SELECT max("hash") AS "last" FROM "batch"`

/** The rows that step 14 renames (schema.ts). */
const silencePermissionOfRows = [
  `WITH "batch" AS (SELECT DISTINCT "userId" FROM "grants" WHERE "userId" > $1 AND "kind" = 'permission'
      AND "name" = 'quiet' ORDER BY "userId" LIMIT ${rowsPerBatch}),
    "renamed" AS (${silencePermission.users} AND "userId" IN (SELECT "userId" FROM "batch"))
  SELECT max("userId") AS "last" FROM "batch"`,
  `WITH "batch" AS (SELECT "id" FROM "apiKeys" WHERE "id" > $1 AND "permissions" LIKE '%"quiet"%'
      ORDER BY "id" LIMIT ${rowsPerBatch}),
    "renamed" AS (${silencePermission.keys} AND "id" IN (SELECT "id" FROM "batch"))
  SELECT max("id") AS "last" FROM "batch"`,
]

/** The parts of a step by its statements: columns, tables and indexes. Its UPDATE statements are made in `batches` instead. */
function online(text: string, batches: readonly string[] = []): OnlineStep {
  const statements = text.split(';').map((statement) => statement.trim())
  const starting = (words: string): readonly string[] => statements.filter((statement) => statement.startsWith(words))
  return {
    text,
    columns: [...starting('ALTER TABLE'), ...starting('CREATE TABLE')].map((added) =>
      added.replace(/ADD COLUMN|CREATE TABLE/, '$& IF NOT EXISTS'),
    ),
    indexes: starting('CREATE INDEX').map((index) => {
      const [, name = '', table = ''] = /^CREATE INDEX "(\w+)" ON "(\w+)"/.exec(index) ?? []
      return { name, table, text: index.replace('CREATE INDEX', 'CREATE INDEX CONCURRENTLY') }
    }),
    batches,
  }
}

/** The same versions as SQLite's steps (schema.ts). Forwards only; what a released step leads to never changes. */
export const postgresMigrations: readonly Step[] = [
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
  online(lookupIndexes),
  jobRuns(postgresWords),
  guessTables(postgresWords),
  online(sessionFacts(postgresWords), [sessionFactsOfRows]),
  digestTables(postgresWords),
  openIdTables(postgresWords),
  silenceTables(postgresWords),
  online(grantEnds(postgresWords)),
  online(auditSeals(postgresWords)),
  online(`${silencePermission.users};\n${silencePermission.keys};`, silencePermissionOfRows),
  leaseTables(postgresWords),
  online(temporaryPasswords(postgresWords)),
]

const textOf = (step: Step): string => (typeof step === 'string' ? step : step.text)

/** The objects of a store, with the tables of the history, which have a version of their own. */
export const ownTables = (steps: readonly Step[] = postgresMigrations): OwnSchema =>
  ownSchema('postgres', steps.map(textOf), [...historySteps(postgresWords), 'CREATE TABLE "historyMeta"'])

/** Maximum milliseconds of one statement, and of the wait for another process's step. */
const maxStepMs = 600_000
/**
 * How long a statement that locks a table may wait for the lock, in milliseconds. Everybody else who wants the table waits
 * behind it meanwhile, so it gives up and tries again.
 */
const lockWaitMs = 300

type Options = {
  /** The store as shown to people. */
  readonly label: string
  /** Creates the tables when there are none. If false, their absence is a Fault. */
  readonly create: boolean
  /** Whether settings of the connection last: not behind a pooler. */
  readonly ownsSession?: boolean
  /** Another connection, which holds the lock of the steps that cannot run in one transaction. */
  readonly second?: (work: (client: ClientBase) => Promise<void>) => Promise<void>
}

/**
 * Brings a database to the newest schema. A new store gets all steps in one transaction. A store that exists gets one step
 * after the other while other nodes work on it: no step keeps a writer waiting for more than a moment (W6). A process that
 * is killed leaves complete steps or a step that goes on at the next start; of two that start at once, one works and the
 * other waits. Throws Fault `Local` for a database that is not ours, newer or empty, and the driver's errors.
 */
export async function migratePostgres(
  client: ClientBase,
  options: Options,
  steps: readonly Step[] = postgresMigrations,
): Promise<void> {
  let version = await versionIn(client, options, steps)
  if (version === 0) {
    await locked(client, async () => {
      // Check again: another process may have made the store meanwhile.
      if ((await versionIn(client, options, steps)) > 0) return
      for (const step of steps) await long(client, textOf(step))
      await setVersion(client, steps.length)
    })
    version = await versionIn(client, options, steps)
  }
  for (; version < steps.length; version = await versionIn(client, options, steps)) {
    const step = steps[version]
    if (typeof step === 'object') await makeOnline(client, options, { step, version, steps })
    else await makeAtOnce(client, options, { step: step ?? '', version, steps })
  }
}

type Made<S> = { readonly step: S; readonly version: number; readonly steps: readonly Step[] }

const makeAtOnce = (client: ClientBase, options: Options, { step, version, steps }: Made<string>): Promise<void> =>
  locked(client, async () => {
    if ((await versionIn(client, options, steps)) !== version) return
    await long(client, step)
    await setVersion(client, version + 1)
  })

/** The transaction with the lock is open on the other connection, and sets the version at its end. */
async function makeOnline(
  client: ClientBase,
  options: Options,
  { step, version, steps }: Made<OnlineStep>,
): Promise<void> {
  if (!options.second) throw new Error('a step on large tables needs a second connection')
  await options.second((holder) =>
    locked(holder, async () => {
      if ((await versionIn(client, options, steps)) !== version) return
      for (const column of step.columns) await atOnce(client, () => long(client, column))
      for (const index of step.indexes) await makeIndex(client, index, options.ownsSession ?? true)
      for (const batch of step.batches) await inBatches(client, batch)
      await setVersion(holder, version + 1)
    }),
  )
}

/** The store's connections limit statements to what a caller waits for; a step may take longer. */
async function long(client: ClientBase, text: string): Promise<Record<string, unknown>[]> {
  const question = { text, query_timeout: maxStepMs }
  return (await client.query(question)).rows
}

const setVersion = (client: ClientBase, version: number) =>
  client.query('UPDATE "meta" SET "version" = $1 WHERE "id" = 1', [version])

/** A short transaction. Waits for no lock for long, and tries again. */
async function atOnce(client: ClientBase, work: () => Promise<unknown>): Promise<void> {
  const end = performance.now() + maxStepMs
  for (;;) {
    await client.query('BEGIN')
    try {
      await client.query(`SET LOCAL statement_timeout = ${maxStepMs}; SET LOCAL lock_timeout = ${lockWaitMs};
        SET LOCAL idle_in_transaction_session_timeout = 0`)
      await work()
      await client.query('COMMIT')
      return
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {})
      if (!isPassing(error) || performance.now() > end) throw error
    }
    await wait(lockWaitMs * (1 + Math.random()))
  }
}

/** A lock that others hold: a deadlock, or no lock in time. */
const isPassing = (error: unknown): boolean => ['40P01', '55P03', '57014'].includes(codeOf(error))

class NotMine extends Error {
  readonly code = '55P03'
}

/**
 * A transaction that holds the lock of all steps. It asks for the lock again and again instead of waiting for it: whoever
 * waits in a statement has a snapshot, and CREATE INDEX CONCURRENTLY waits for the end of that.
 */
const locked = (client: ClientBase, work: () => Promise<void>): Promise<void> =>
  atOnce(client, async () => {
    const { rows } = await client.query(`SELECT pg_try_advisory_xact_lock(${applicationId}) AS "mine"`)
    if (rows[0]?.mine !== true) throw new NotMine('another process changes the schema')
    await work()
  })

/** Makes an index while others write. One that a killed attempt has left unfinished is removed first. */
async function makeIndex(
  client: ClientBase,
  { name, table, text }: OnlineStep['indexes'][number],
  ownsSession: boolean,
): Promise<void> {
  const state = await stateOf(client, name, table)
  if (state === 'valid') return
  // Neither statement can be in a transaction, where the limit of time could be set.
  if (ownsSession) await client.query(`SET statement_timeout = ${maxStepMs}`)
  try {
    if (state === 'invalid') await long(client, `DROP INDEX CONCURRENTLY "${name}"`)
    await long(client, text)
  } finally {
    if (ownsSession) await client.query('RESET statement_timeout').catch(() => {})
  }
}

async function stateOf(client: ClientBase, name: string, table: string): Promise<'absent' | 'invalid' | 'valid'> {
  let state: 'absent' | 'invalid' | 'valid' = 'absent'
  await atOnce(client, async () => {
    // The server may still be at work on the index of an attempt whose process has been killed. No writer waits meanwhile.
    await client.query('SET LOCAL lock_timeout = 0')
    await long(client, `LOCK TABLE "${table}" IN SHARE UPDATE EXCLUSIVE MODE`)
    const [row] = await long(
      client,
      `SELECT "indisvalid" AS "valid" FROM pg_catalog.pg_index
       WHERE indexrelid = to_regclass(quote_ident(current_schema()) || '."${name}"')`,
    )
    state = row === undefined ? 'absent' : row['valid'] === true ? 'valid' : 'invalid'
  })
  return state
}

/** Changes rows in transactions that others hardly notice. Rows that have been changed before are left as they are. */
async function inBatches(client: ClientBase, text: string): Promise<void> {
  for (let after: unknown = ''; after !== null; ) {
    let last: unknown = null
    await atOnce(client, async () => {
      const { rows } = await client.query(text, [after])
      last = rows[0]?.last ?? null
    })
    after = last
  }
}

async function versionIn(client: ClientBase, options: Options, steps: readonly Step[]): Promise<number> {
  const current = await look(client)
  const refuse = (what: string, hint: string): Fault =>
    new Fault('Local', `The store ${options.label} ${what}`, { hints: [hint] })
  const foreign = (): Fault =>
    refuse('contains tables of another application and no svc store', 'Give svc a database of its own with SVC_STORE.')
  if (current.encoding !== 'UTF8') {
    const encoding = /^\w{1,32}$/.test(current.encoding) ? current.encoding : 'an unknown encoding'
    throw refuse(`stores text as ${encoding}, not as UTF8`, 'Create a UTF8 database: createdb -E UTF8 -T template0')
  }
  if (current.tables === 0) {
    if (!options.create) throw refuse('is empty: no store exists in it', '`svc serve` creates it.')
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
    throw new NewerStore(`The store ${options.label}`, { schema: version, supports: steps.length })
  }
  const { altering } = compareSchema(current.objects, ownTables(steps))
  const altered = alteredStore(`The store ${options.label}`, altering)
  if (altered) throw altered
  return version
}

type Look = { readonly encoding: string; readonly tables: number; readonly ours: boolean; readonly objects: string }

/** The contents of the schema in which new tables would be created. */
async function look(client: ClientBase): Promise<Look> {
  const { rows } = await client.query<Look>(
    `SELECT current_setting('server_encoding') AS "encoding",
       (SELECT count(*)::int FROM pg_catalog.pg_class c
        WHERE c.relnamespace = to_regnamespace(quote_ident(current_schema())) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
       ) AS "tables",
       (SELECT count(*) = 4 FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = to_regclass(quote_ident(current_schema()) || '.meta') AND a.attname IN ('id', 'application', 'createdAt', 'version')
       ) AS "ours",
       (${postgresObjects}) AS "objects"`,
  )
  const row = rows[0]
  if (!row) throw new Error('a SELECT without FROM gave no row')
  return row
}
