import { createHash } from 'node:crypto'
import { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { PostgresAdapter, PostgresQueryCompiler, sql } from 'kysely'
import pg from 'pg'
import { Fault } from '../../base/errors.ts'
import { isLoopback } from '../../base/loopback.ts'
import { type DriverConnection, kysely, laterSql, type QueryOutcome } from '../dialect.ts'
import { closed, type StoreLink, unavailable, WaitBudget } from '../link.ts'
import { type ConnectionConfig, ConnectionPool, type PoolConnection } from './connections.ts'
import {
  isAnswer,
  isConnectionLost,
  isRepeatable,
  isSettingRefused,
  NoConnection,
  NotCommitted,
  openingFault,
  runningFault,
} from './faults.ts'
import { migratePostgres } from './migrate.ts'
import { type PostgresTarget, postgresTarget } from './url.ts'

export type PostgresOptions = {
  readonly url: string
  readonly create: boolean
  readonly env: Readonly<Record<string, string | undefined>>
  /** Takes the tables as they are: neither looks for them nor changes them. */
  readonly asIs?: boolean | undefined
  /** Ends the attempt to connect, and the steps of the schema. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Milliseconds. Each is below the time that a caller waits, so that the error names the cause and not just a timeout.
 */
const openMs = 1_500
const statementMs = 1_500
const silenceMs = 1_650
/**
 * Milliseconds after which a node that hangs inside a transaction loses its locks: no transaction pauses between two
 * statements. Another connection of the same node may be next for a lock and hang as long, and a third one has given up by
 * then, so that nobody waits longer than twice this.
 */
const idleMs = 900
/** After this time since the last statement, the server may have ended the transaction. Milliseconds. */
const pausedMs = idleMs / 2
const maxAttempts = 5
/** The first connection to a distant server may take this long. Milliseconds. */
const distantOpenMs = 5_000
/** The same limits for one transaction, where the connection belongs to a pooler. */
const transactionLimits = `SET LOCAL statement_timeout = ${statementMs}; SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`

type SchemaOptions = Pick<PostgresOptions, 'create' | 'asIs' | 'signal'>

/** Connects and brings the schema up to date. Throws a Fault that says what is wrong and how to fix it. */
export async function linkPostgres({ url, env, ...schema }: PostgresOptions): Promise<StoreLink> {
  const target = await postgresTarget(url, env)
  const { connections, pooled } = await opened(target, schema)
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
  // A connection may have broken unnoticed, for example when the server restarted. Repeating a read is safe.
  const readAgain = (error: unknown, attempt: number): boolean =>
    attempt < maxAttempts && (error instanceof NotCommitted || (attempt === 1 && isConnectionLost(error)))
  const over = (budget: () => WaitBudget, together: ReadsTogether | undefined): StoreLink => ({
    read: (work) =>
      bounded(
        budget(),
        async (deadline) => {
          const reads = together?.join(deadline) ?? new SharedReads(connections, deadline)
          try {
            return await work(kysely(parts, async () => reads.connection()))
          } finally {
            await reads.leave()
          }
        },
        readAgain,
      ),
    write: (work) =>
      bounded(
        budget(),
        (deadline) =>
          kysely(parts, async () => transaction(connections, await connections.lease(deadline), { deadline, pooled }))
            .transaction()
            .execute(work),
        (error, attempt) => attempt < maxAttempts && (isRepeatable(error) || error instanceof NotCommitted),
      ),
    lock: async (tx, name) => {
      await laterSql(tx, sql`SELECT pg_advisory_xact_lock(${lockKey(name)}::bigint)`)
    },
    readClock: () => bounded(budget(), (deadline) => readClock(connections, deadline), readAgain),
    forRequest: () => {
      const shared = new WaitBudget()
      return over(() => shared, new ReadsTogether(connections))
    },
    close: async () => {
      open = false
      await connections.close()
    },
  })
  return over(() => new WaitBudget(), undefined)
}

/**
 * A pool whose connections work. `pooled`: PgBouncer or another pooler gives each transaction another connection, so that
 * settings apply to a transaction. It refuses those of a connection, or accepts and ignores them.
 */
async function opened(target: PostgresTarget, schema: SchemaOptions) {
  try {
    return await openedAs(target, schema, false)
  } catch (error) {
    if (!isSettingRefused(error)) throw openingFault(error, target)
  }
  try {
    return await openedAs(target, schema, true)
  } catch (error) {
    throw openingFault(error, target)
  }
}

async function openedAs(target: PostgresTarget, { signal, ...schema }: SchemaOptions, pooled: boolean) {
  const connections = new ConnectionPool(settings(target, pooled), target.connections)
  const abort = (): void => void connections.close()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    signal?.throwIfAborted()
    const hasLimits = await prepare(connections, target, { ...schema, pooled })
    return { connections, pooled: pooled || !hasLimits }
  } catch (error) {
    await connections.close()
    throw error
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}

const parts = {
  createAdapter: () => new PostgresAdapter(),
  createQueryCompiler: () => new PostgresQueryCompiler(),
}

const settings = (target: PostgresTarget, pooled: boolean): readonly ConnectionConfig[] =>
  target.hosts.map(({ host, port, ssl, loopbackOnly }) => ({
    host,
    port,
    ssl,
    user: target.user,
    database: target.database,
    writable: target.writable,
    ...(loopbackOnly ? { socket: () => loopbackSocket(target.label) } : {}),
    // With a function, the driver does not look for a password elsewhere.
    password: () => {
      if (target.password !== undefined) return target.password
      throw new Fault('Local', `The store ${target.label} requires a password, but none is set`, {
        hints: ['Put it into a file, and set SVC_STORE_PASSWORD_FILE to its path.'],
      })
    },
    application_name: 'svc',
    keepAlive: true,
    query_timeout: silenceMs,
    ...(pooled ? {} : { statement_timeout: statementMs, idle_in_transaction_session_timeout: idleMs }),
    types: { getTypeParser },
  }))

const { BOOL, BYTEA, INT2, INT4, INT8, FLOAT4, FLOAT8 } = pg.types.builtins
/** BIGINT too: times and counts, far below 2^53. */
const numbers: ReadonlySet<number> = new Set([INT2, INT4, INT8, FLOAT4, FLOAT8])
const isTrue = (text: string): boolean => text === 't'
/** `\x00ff`, as PostgreSQL writes bytes. */
const bytesOf = (text: string): Uint8Array => Buffer.from(text.slice(2), 'hex')
const unchanged = (text: string): string => text

/**
 * Converts the types of our tables; everything else stays text. The driver's date patterns can take hours on a few
 * megabytes, and the peer at the store's address may not be our server.
 */
const getTypeParser = (oid: number) => {
  if (oid === BYTEA) return bytesOf
  return oid === BOOL ? isTrue : numbers.has(oid) ? Number : unchanged
}

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

/** Returns whether the server has taken over the limits of the connection. */
async function prepare(
  connections: ConnectionPool,
  target: PostgresTarget,
  { create, asIs, pooled }: SchemaOptions & { readonly pooled: boolean },
): Promise<boolean> {
  const connection = await firstConnection(connections)
  try {
    const { rows } = await connection.ask(`SELECT current_setting('statement_timeout') AS "limit"`, [], silenceMs)
    const hasLimits = (rows[0] as { limit?: string }).limit === `${statementMs}ms`
    if (!asIs) {
      await migratePostgres(connection, {
        label: target.label,
        create,
        ownsSession: hasLimits,
        second: (work) => withSecond(settings(target, pooled), work),
      })
    }
    return hasLimits
  } catch (error) {
    if (!isAnswer(error)) connection.destroy()
    throw error
  } finally {
    connections.release(connection)
  }
}

/** A connection besides those of the store, for the time of `work`. */
async function withSecond(
  configs: readonly ConnectionConfig[],
  work: (client: PoolConnection) => Promise<void>,
): Promise<void> {
  const pool = new ConnectionPool(configs, 1)
  try {
    const client = await firstConnection(pool)
    try {
      await work(client)
    } finally {
      pool.release(client)
    }
  } finally {
    await pool.close()
  }
}

/** Waits longer for a distant server that has answered, because nobody waits for an answer of svc yet. */
async function firstConnection(connections: ConnectionPool): Promise<PoolConnection> {
  try {
    return await connections.take(performance.now() + openMs)
  } catch (error) {
    if (!(error instanceof NoConnection && connections.distant)) throw error
    return await connections.take(performance.now() + distantOpenMs)
  }
}

/** Sends one statement. Throws within the time that the caller has left. */
async function askBy(
  connection: PoolConnection,
  deadline: number,
  text: string,
  parameters: readonly unknown[],
): Promise<pg.QueryResult> {
  const leftMs = deadline - performance.now()
  if (leftMs <= 0) {
    connection.destroy()
    throw unavailable('does not answer in time')
  }
  return await connection.ask(text, parameters, Math.min(silenceMs, leftMs))
}

const outcomeOf = ({ rows, rowCount, command }: pg.QueryResult): QueryOutcome => ({
  rows,
  changed: command === 'SELECT' ? undefined : (rowCount ?? undefined),
})

/** Reads that share a connection: those that begin together are sent together, and cost one round trip. */
class SharedReads {
  readonly #connections: ConnectionPool
  readonly #deadline: number
  #taken: Promise<PoolConnection> | undefined
  /** The requests that have been sent and not yet answered. */
  readonly #sent = new Set<Promise<unknown>>()
  #users = 0

  constructor(connections: ConnectionPool, deadline: number) {
    this.#connections = connections
    this.#deadline = deadline
    this.join()
  }

  join(): void {
    this.#users += 1
  }

  connection(): DriverConnection {
    return {
      execute: async (text, parameters) => outcomeOf(await this.#ask(text, parameters)),
      begin: notHere,
      commit: notHere,
      rollback: notHere,
      release: () => {},
    }
  }

  /** Gives the connection back when nobody uses it any more. */
  async leave(): Promise<void> {
    this.#users -= 1
    if (this.#users > 0 || !this.#taken) return
    const connection = await this.#taken.catch(() => undefined)
    await Promise.allSettled(this.#sent)
    if (connection) this.#connections.release(connection)
  }

  async #ask(text: string, parameters: readonly unknown[]): Promise<pg.QueryResult> {
    this.#taken ??= this.#connections.lease(this.#deadline)
    const connection = await this.#taken
    const checked = connection.unproven ? this.#check(connection) : undefined
    const answer = this.#keep(askBy(connection, this.#deadline, text, parameters))
    return await lastOf([...(checked ? [checked] : []), answer])
  }

  /** The first read sends the check, and the others go with it. */
  #check(connection: PoolConnection): Promise<void> {
    connection.unproven = false
    const check = async (): Promise<void> => {
      if (await this.#connections.proved(connection, this.#deadline)) return
      connection.destroy()
      throw new NotCommitted()
    }
    return this.#keep(check())
  }

  #keep<T>(work: Promise<T>): Promise<T> {
    this.#sent.add(work)
    const forget = (): void => void this.#sent.delete(work)
    work.then(forget, forget)
    return work
  }
}

const notHere = async (): Promise<never> => {
  throw new Error('reads have no transaction')
}

/** The reads of one request. Those that it begins at the same time go together. */
class ReadsTogether {
  readonly #connections: ConnectionPool
  #gathering: SharedReads | undefined

  constructor(connections: ConnectionPool) {
    this.#connections = connections
  }

  join(deadline: number): SharedReads {
    if (this.#gathering) {
      this.#gathering.join()
      return this.#gathering
    }
    const reads = new SharedReads(this.#connections, deadline)
    this.#gathering = reads
    queueMicrotask(() => {
      this.#gathering = undefined
    })
    return reads
  }
}

/**
 * A transaction. BEGIN and deferred statements are sent together with the next statement that somebody waits for, or with
 * COMMIT. A connection that breaks throws NotCommitted, unless COMMIT was sent as well: the server may then have committed, and
 * a repetition would make the change twice.
 */
function transaction(
  connections: ConnectionPool,
  connection: PoolConnection,
  { deadline, pooled }: { readonly deadline: number; readonly pooled: boolean },
): DriverConnection {
  let waiting: { readonly send: () => Promise<void> }[] = []
  let began = false
  let committing = false
  const ask = async (text: string, parameters: readonly unknown[]): Promise<pg.QueryResult> => {
    try {
      return await askBy(connection, deadline, text, parameters)
    } catch (error) {
      if (committing || !isConnectionLost(error)) throw error
      connection.destroy()
      throw new NotCommitted()
    }
  }
  const begin = async (): Promise<void> => {
    if (!connection.unproven) await ask('BEGIN', [])
    else if (!(await connections.proved(connection, deadline, 'BEGIN'))) {
      connection.destroy()
      throw new NotCommitted()
    }
  }
  /** Whether the transaction still runs, as far as the server has said. Nothing has been read while this process stood still. */
  const goesOn = async (): Promise<boolean> => {
    if (performance.now() - connection.askedAt >= pausedMs) {
      await nextTurn()
      await nextTurn()
    }
    return !connection.lost
  }
  /** Whether the connection shows, before anything is sent on it, that it still works. */
  const works = async (): Promise<boolean> =>
    !connection.lost && (!connection.unproven || (await connections.proved(connection, deadline)))
  /** Sends what waits and then this, without waiting in between. */
  const flush = async <T>(last: () => Promise<T>): Promise<T> => {
    const statements = waiting
    waiting = []
    return await lastOf([...statements.map(({ send }) => send()), last()])
  }
  return {
    execute: (text, parameters) => flush(async () => outcomeOf(await ask(text, parameters))),
    defer: (text, parameters, done) => {
      waiting.push({ send: async () => done(outcomeOf(await ask(text, parameters))) })
    },
    begin: async () => {
      waiting.push({
        send: () => {
          began = true
          return begin()
        },
      })
      if (pooled) waiting.push({ send: async () => void (await ask(transactionLimits, [])) })
    },
    commit: async () => {
      // What has been sent with COMMIT cannot be repeated on another connection.
      if (!(await (began ? goesOn() : works()))) throw new NotCommitted()
      committing = true
      const { command } = await flush(() => ask('COMMIT', []))
      // When an earlier statement has failed, the server reports another command here instead of an error.
      if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`)
    },
    // A broken connection has ended its transaction.
    rollback: async () => {
      waiting = []
      if (began && !connection.lost) await ask('ROLLBACK', [])
    },
    release: () => connections.release(connection),
  }
}

/** The last of several answers. Throws the first error in their order: those after it are its consequences. */
async function lastOf<T>(answers: readonly [...Promise<unknown>[], Promise<T>]): Promise<T> {
  const outcomes = await Promise.allSettled(answers)
  const failure = outcomes.find(({ status }) => status === 'rejected')
  if (failure?.status === 'rejected') throw failure.reason
  return await (answers.at(-1) as Promise<T>)
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
export const lockKey = (name: string): string =>
  createHash('sha256').update(`svc ${name}`).digest().readBigInt64BE().toString()
