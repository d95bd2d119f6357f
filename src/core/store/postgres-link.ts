import { createHash } from 'node:crypto'
import { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { PostgresAdapter, PostgresQueryCompiler, sql } from 'kysely'
import pg from 'pg'
import { Fault } from '../errors.ts'
import { isLoopback } from '../loopback.ts'
import { type Held, kysely } from './dialect.ts'
import { closed, type Link, patience, unavailable } from './link.ts'
import { isAnswer, isConnectionLost, isRepeatable, openingFault, runningFault } from './postgres-faults.ts'
import { migratePostgres } from './postgres-migrate.ts'
import { type PostgresTarget, postgresTarget } from './postgres-url.ts'

export type PostgresOptions = {
  readonly url: string
  readonly create: boolean
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Milliseconds, each below the store's patience, so that what failed is told and not that it was late. */
const connectMs = 1_500
const statementMs = 1_500
const silenceMs = 1_700
/** A node that stops inside a transaction lets go of its locks after this. */
const idleMs = 5_000
const connections = 10
const attempts = 5

/** Connects, brings the schema up to date, and throws a Fault that says what is wrong and how to mend it. */
export async function linkPostgres({ url, create, env }: PostgresOptions): Promise<Link> {
  const target = postgresTarget(url, env)
  const pool = new pg.Pool(settings(target))
  // A connection that breaks while nobody uses it is not an event; the next use makes another.
  pool.on('error', () => {})
  try {
    await inTime(prepare(pool, target, create))
  } catch (error) {
    await ended(pool)
    throw openingFault(error, target)
  }
  const db = kysely(
    { createAdapter: () => new PostgresAdapter(), createQueryCompiler: () => new PostgresQueryCompiler() },
    async () => hold(await pool.connect()),
  )
  let open = true
  const bounded = async <T>(run: () => Promise<T>, again: (error: unknown, attempt: number) => boolean): Promise<T> => {
    if (!open) throw closed()
    const until = performance.now() + patience
    try {
      return await inTime(repeated(run, (error, n) => again(error, n) && performance.now() < until))
    } catch (error) {
      throw runningFault(error)
    }
  }
  return {
    // A connection may have died unnoticed, when the server was restarted: reading once more is safe.
    read: (work) =>
      bounded(
        () => work(db),
        (error, attempt) => attempt === 1 && isConnectionLost(error),
      ),
    write: (work) =>
      bounded(
        () => db.transaction().execute(work),
        (error, attempt) => attempt < attempts && isRepeatable(error),
      ),
    lock: async (tx, name) => {
      await sql`SELECT pg_advisory_xact_lock(${lockKey(name)}::bigint)`.execute(tx)
    },
    close: async () => {
      if (!open) return
      open = false
      await ended(pool)
    },
  }
}

const settings = ({
  password,
  host,
  port,
  user,
  database,
  ssl,
  loopbackOnly,
  shown,
}: PostgresTarget): pg.PoolConfig => ({
  host,
  port,
  user,
  database,
  ssl,
  ...(loopbackOnly ? { stream: () => loopbackSocket(shown) } : {}),
  // A function keeps the driver from looking for a password in places of its own.
  password: () => {
    if (password !== undefined) return password
    throw new Fault('Local', `The store ${shown} wants a password, and none is given`, {
      hints: ['Put it into a file, and name that with SVC_STORE_PASSWORD_FILE.'],
    })
  },
  application_name: 'svc',
  max: connections,
  keepAlive: true,
  connectionTimeoutMillis: connectMs,
  statement_timeout: statementMs,
  query_timeout: silenceMs,
  idle_in_transaction_session_timeout: idleMs,
  types: {
    // BIGINT: times and counts, far below 2^53.
    getTypeParser: ((oid: number, format: 'text') =>
      oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
  },
})

/** A socket that closes before anything is written to it when it has connected to another machine. */
function loopbackSocket(shown: string): Socket {
  const socket = new Socket()
  socket.once('connect', () => {
    const remote = socket.remoteAddress ?? ''
    if (isLoopback(remote)) return
    socket.destroy(
      new Fault('Local', `The store ${shown} leads to another machine here (${remote}): nothing is sent without TLS`, {
        hints: ['?sslmode=verify-full encrypts. Where the network is trusted, ?sslmode=disable goes without.'],
      }),
    )
  })
  return socket
}

async function prepare(pool: pg.Pool, target: PostgresTarget, create: boolean): Promise<void> {
  const client = await pool.connect()
  try {
    await migratePostgres(client, { shown: target.shown, create })
    client.release()
  } catch (error) {
    client.release(true)
    throw error
  }
}

function hold(client: pg.PoolClient): Held {
  let broken = false
  const execute: Held['execute'] = async (text, parameters) => {
    try {
      const { rows, rowCount, command } = await client.query(text, [...parameters])
      return { rows, changed: command === 'SELECT' ? undefined : (rowCount ?? undefined) }
    } catch (error) {
      // What has not answered in time may answer the next one who uses this connection.
      if (!isAnswer(error)) broken = true
      throw error
    }
  }
  return {
    execute,
    begin: () => execute('BEGIN', []),
    rollback: async () => {
      if (!broken) await execute('ROLLBACK', [])
    },
    release: () => client.release(broken),
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

/** What comes too late still ends by itself: each of its statements has a limit. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  const stop = new AbortController()
  const late = wait(patience, undefined, { signal: stop.signal, ref: false }).then(() => {
    throw unavailable('does not answer in time')
  })
  late.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    stop.abort()
    work.catch(() => {})
  }
}

/** Says goodbye to the server; one that does not listen is left after a second. */
const ended = (pool: pg.Pool): Promise<unknown> =>
  Promise.race([pool.end(), wait(1_000, undefined, { ref: false })]).catch(() => {})

/** Advisory locks have numbers for names; 64 bits of a hash do not meet by chance. */
const lockKey = (name: string): string =>
  createHash('sha256').update(`svc ${name}`).digest().readBigInt64BE().toString()
