import { createHash } from 'node:crypto'
import { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { PostgresAdapter, PostgresQueryCompiler, sql } from 'kysely'
import pg from 'pg'
import { Fault } from '../errors.ts'
import { isLoopback } from '../loopback.ts'
import { type DriverConnection, kysely } from './dialect.ts'
import { closed, type StoreLink, unavailable, WaitBudget } from './link.ts'
import { type ConnectionConfig, ConnectionPool, type PoolConnection } from './postgres-connections.ts'
import { isAnswer, isConnectionLost, isRepeatable, openingFault, runningFault } from './postgres-faults.ts'
import { migratePostgres } from './postgres-migrate.ts'
import { type PostgresTarget, postgresTarget } from './postgres-url.ts'

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
  const target = postgresTarget(url, env)
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
    throw new Fault('Local', `The store ${label} wants a password, and none is given`, {
      hints: ['Put it into a file, and name that with SVC_STORE_PASSWORD_FILE.'],
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
      new Fault('Local', `The store ${label} leads to another machine here (${remote}): nothing is sent without TLS`, {
        hints: ['?sslmode=verify-full encrypts. Where the network is trusted, ?sslmode=disable goes without.'],
      }),
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

/** Advisory locks have numbers for names. 64 bits of a hash do not collide by chance. */
const lockKey = (name: string): string =>
  createHash('sha256').update(`svc ${name}`).digest().readBigInt64BE().toString()
