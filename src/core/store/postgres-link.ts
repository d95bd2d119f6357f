import { createHash } from 'node:crypto'
import { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { PostgresAdapter, PostgresQueryCompiler, sql } from 'kysely'
import type { ClientBase } from 'pg'
import pg from 'pg'
import { Fault } from '../errors.ts'
import { isLoopback } from '../loopback.ts'
import { type DriverConnection, kysely } from './dialect.ts'
import { closed, type StoreLink, unavailable, WaitBudget } from './link.ts'
import { type ConnectionConfig, ConnectionPool, type PoolConnection } from './postgres-connections.ts'
import { isAnswer, isConnectionLost, isRepeatable, openingFault, runningFault } from './postgres-faults.ts'
import { type PostgresTarget, postgresTarget } from './postgres-url.ts'
import {
  accountTables,
  applicationId,
  digestTables,
  guessTables,
  heartbeatTables,
  jobRuns,
  lookupIndexes,
  openIdTables,
  postgresWords,
  readingTables,
  sessionFacts,
} from './schema.ts'

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
  jobRuns(postgresWords),
  guessTables(postgresWords),
  sessionFacts(postgresWords),
  digestTables(postgresWords),
  openIdTables(postgresWords),
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
    throw refuse(
      `was written by a newer svc (schema ${version}; this svc supports schema ${steps.length})`,
      'Update svc, or set SVC_STORE to another store.',
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

export type PostgresOptions = {
  readonly url: string
  readonly create: boolean
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * Milliseconds. Each is below the time that a caller waits, so that the error names the cause and not just a timeout.
 */
const openMs = 1_500
const statementMs = 1_500
const silenceMs = 1_650
/**
 * Milliseconds after which a node that hangs inside a transaction loses its locks. No caller waits longer for an
 * answer, and no transaction pauses between two statements.
 */
const idleMs = 1_500
const maxConnections = 10
const maxAttempts = 5

/** Connects and brings the schema up to date. Throws a Fault that says what is wrong and how to fix it. */
export async function linkPostgres({ url, create, env }: PostgresOptions): Promise<StoreLink> {
  const target = await postgresTarget(url, env)
  const connections = new ConnectionPool(settings(target), maxConnections)
  try {
    await prepare(connections, target, create)
  } catch (error) {
    await connections.close()
    throw openingFault(error, target)
  }
  let open = true
  const bounded = async <T>(
    budget: WaitBudget,
    run: (deadline: number) => Promise<T>,
    again: (error: unknown, attempt: number) => boolean,
  ): Promise<T> => {
    if (!open) throw closed()
    const deadline = budget.begin()
    try {
      return await repeated(
        () => run(deadline),
        (error, attempt) => again(error, attempt) && performance.now() < deadline,
      )
    } catch (error) {
      throw runningFault(error)
    } finally {
      budget.end()
    }
  }
  const over = (budget: () => WaitBudget): StoreLink => ({
    // A connection may have broken unnoticed, for example when the server restarted. Repeating a read is safe.
    read: (work) =>
      bounded(
        budget(),
        (deadline) => work(kysely(parts, async () => hold(connections, await connections.take(deadline), deadline))),
        (error, attempt) => attempt === 1 && isConnectionLost(error),
      ),
    write: (work) =>
      bounded(
        budget(),
        (deadline) =>
          kysely(parts, async () => hold(connections, await takeBegun(connections, deadline), deadline))
            .transaction()
            .execute(work),
        (error, attempt) => attempt < maxAttempts && isRepeatable(error),
      ),
    lock: async (tx, name) => {
      await sql`SELECT pg_advisory_xact_lock(${lockKey(name)}::bigint)`.execute(tx)
    },
    readClock: () =>
      bounded(
        budget(),
        (deadline) => readClock(connections, deadline),
        (error, attempt) => attempt === 1 && isConnectionLost(error),
      ),
    forRequest: () => {
      const shared = new WaitBudget()
      return over(() => shared)
    },
    close: async () => {
      open = false
      await connections.close()
    },
  })
  return over(() => new WaitBudget())
}

const parts = {
  createAdapter: () => new PostgresAdapter(),
  createQueryCompiler: () => new PostgresQueryCompiler(),
}

const settings = ({
  password,
  host,
  port,
  user,
  database,
  ssl,
  loopbackOnly,
  label,
}: PostgresTarget): ConnectionConfig => ({
  host,
  port,
  user,
  database,
  ssl,
  ...(loopbackOnly ? { socket: () => loopbackSocket(label) } : {}),
  // With a function, the driver does not look for a password elsewhere.
  password: () => {
    if (password !== undefined) return password
    throw new Fault('Local', `The store ${label} requires a password, but none is set`, {
      hints: ['Put it into a file, and set SVC_STORE_PASSWORD_FILE to its path.'],
    })
  },
  application_name: 'svc',
  keepAlive: true,
  statement_timeout: statementMs,
  query_timeout: silenceMs,
  idle_in_transaction_session_timeout: idleMs,
  types: { getTypeParser },
})

const { BOOL, INT2, INT4, INT8, FLOAT4, FLOAT8 } = pg.types.builtins
/** BIGINT too: times and counts, far below 2^53. */
const numbers: ReadonlySet<number> = new Set([INT2, INT4, INT8, FLOAT4, FLOAT8])
const isTrue = (text: string): boolean => text === 't'
const unchanged = (text: string): string => text

/**
 * Converts the types of our tables; everything else stays text. The driver's date patterns can take hours on a few
 * megabytes, and the peer at the store's address may not be our server.
 */
const getTypeParser = (oid: number) => (oid === BOOL ? isTrue : numbers.has(oid) ? Number : unchanged)

/** A socket that closes before it sends anything if it has connected to another machine. */
function loopbackSocket(label: string): Socket {
  const socket = new Socket()
  socket.once('connect', () => {
    const remote = socket.remoteAddress ?? ''
    if (isLoopback(remote)) return
    socket.destroy(
      new Fault(
        'Local',
        `The store ${label} resolves to another machine (${remote}): svc sends nothing to it without TLS`,
        {
          hints: ['To encrypt, use ?sslmode=verify-full. On a trusted network, ?sslmode=disable turns TLS off.'],
        },
      ),
    )
  })
  return socket
}

async function prepare(connections: ConnectionPool, target: PostgresTarget, create: boolean): Promise<void> {
  const connection = await connections.take(performance.now() + openMs)
  try {
    await migratePostgres(connection, { label: target.label, create })
  } catch (error) {
    if (!isAnswer(error)) connection.destroy()
    throw error
  } finally {
    connections.release(connection)
  }
}

/**
 * Takes a connection and begins a transaction. A broken connection is replaced once, which is safe only before the
 * first statement.
 */
async function takeBegun(connections: ConnectionPool, deadline: number): Promise<PoolConnection> {
  for (let attempt = 1; ; attempt += 1) {
    const connection = await connections.take(deadline)
    try {
      await connection.ask('BEGIN', [], Math.min(silenceMs, deadline - performance.now()))
      return connection
    } catch (error) {
      connections.release(connection)
      if (attempt === 2 || !isConnectionLost(error)) throw error
    }
  }
}

function hold(connections: ConnectionPool, connection: PoolConnection, deadline: number): DriverConnection {
  const ask = async (text: string, parameters: readonly unknown[]): Promise<pg.QueryResult> => {
    const leftMs = deadline - performance.now()
    if (leftMs <= 0) {
      connection.destroy()
      throw unavailable('does not answer in time')
    }
    return await connection.ask(text, parameters, Math.min(silenceMs, leftMs))
  }
  return {
    execute: async (text, parameters) => {
      const { rows, rowCount, command } = await ask(text, parameters)
      return { rows, changed: command === 'SELECT' ? undefined : (rowCount ?? undefined) }
    },
    // The connection already has an open transaction.
    begin: async () => {},
    commit: async () => {
      const { command } = await ask('COMMIT', [])
      // When an earlier statement has failed, the server reports another command here instead of an error.
      if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`)
    },
    // A broken connection has ended its transaction.
    rollback: async () => {
      if (!connection.lost) await ask('ROLLBACK', [])
    },
    release: () => connections.release(connection),
  }
}

async function repeated<T>(run: () => Promise<T>, again: (error: unknown, attempt: number) => boolean): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run()
    } catch (error) {
      if (!again(error, attempt)) throw error
    }
    await wait(Math.random() * 20 * attempt)
  }
}

/** Milliseconds since 1970 by the server's clock. The connection is taken first, so that the wait for it does not count. */
async function readClock(connections: ConnectionPool, deadline: number): Promise<number> {
  const connection = await connections.take(deadline)
  try {
    const text = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "at"'
    const { rows } = await connection.ask(text, [], Math.min(silenceMs, deadline - performance.now()))
    return Number((rows[0] as { at: number }).at)
  } finally {
    connections.release(connection)
  }
}

/** Advisory locks have numbers for names. 64 bits of a hash do not collide by chance. */
const lockKey = (name: string): string =>
  createHash('sha256').update(`svc ${name}`).digest().readBigInt64BE().toString()
