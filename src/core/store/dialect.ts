import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  type RawBuilder,
  type TransactionSettings,
} from 'kysely'
import { type Db, flagColumns, type Tables } from './tables.ts'

/** A connection during one transaction or one query. */
export type DriverConnection = {
  readonly execute: (sql: string, parameters: readonly unknown[]) => Promise<QueryOutcome>
  /**
   * Sends a statement together with the next one, or with the COMMIT, and passes its outcome on then. Absent where a
   * statement costs no round trip.
   */
  readonly defer?: (sql: string, parameters: readonly unknown[], done: (outcome: QueryOutcome) => void) => void
  readonly begin: () => Promise<unknown>
  readonly commit: () => Promise<unknown>
  readonly rollback: () => Promise<unknown>
  readonly release: () => void
}
export type QueryOutcome = { readonly rows: readonly unknown[]; readonly changed: number | undefined }

/** The callbacks for the outcomes of statements that need not be sent at once. */
const deferred = new WeakMap<CompiledQuery, (outcome: QueryOutcome) => void>()

/** The outcome of a deferred statement, from the answer to the statement that was sent with it on. */
export type Later<R> = {
  /** How many rows it changed. */
  readonly changed: () => number
  /** The rows that it returned. */
  readonly rows: () => readonly R[]
}

/**
 * Inside a transaction: runs a statement whose result decides nothing before the end of the transaction. Statements run in
 * the order of the program all the same. A database server gets it together with the next statement or with the COMMIT, so
 * that it costs no round trip. An error of it ends the transaction there.
 */
export async function later<R>(tx: Db, statement: { readonly compile: () => CompiledQuery<R> }): Promise<Later<R>> {
  let outcome: QueryOutcome = { rows: [], changed: 0 }
  const query = statement.compile()
  deferred.set(query, (answer) => {
    outcome = answer
  })
  await tx.executeQuery(query)
  return { changed: () => outcome.changed ?? 0, rows: () => outcome.rows as readonly R[] }
}

/** The same for SQL text. */
export const laterSql = <R>(tx: Db, statement: RawBuilder<R>): Promise<Later<R>> =>
  later(tx, { compile: () => statement.compile(tx) })

/** A query that can be run. */
export type Rows<R> = { readonly execute: () => Promise<R[]> }

/**
 * A query whose text is the same whatever its parameters. It is built and compiled at its first use with each dialect: that takes
 * longer than the embedded store takes to run it. `build` passes its parameters on without looking at them.
 */
export function compiledOnce<P extends readonly (string | number)[], R>(
  build: (db: Db, ...parameters: P) => { readonly compile: () => CompiledQuery<R> },
): (db: Db, ...parameters: P) => Rows<R> {
  type Ready = { readonly query: CompiledQuery<R>; readonly parametersOf: (parameters: P) => readonly unknown[] }
  const compile = (db: Db, count: number): Ready => {
    const places = Array.from({ length: count }, (_, at) => ({ at }))
    const query = build(db, ...(places as readonly unknown[] as P))
    const ready = query.compile()
    const sources = ready.parameters.map((one) => places.indexOf(one as (typeof places)[number]))
    return {
      query: ready,
      parametersOf: (parameters) => sources.map((at, index) => (at < 0 ? ready.parameters[index] : parameters[at])),
    }
  }
  const byDialect = new Map<unknown, Ready>()
  return (db, ...parameters) => ({
    execute: async () => {
      const dialect = db.getExecutor().adapter.constructor
      const ready = byDialect.get(dialect) ?? compile(db, parameters.length)
      byDialect.set(dialect, ready)
      return (await db.executeQuery<R>({ ...ready.query, parameters: ready.parametersOf(parameters) })).rows
    },
  })
}

/** Kysely on our own connections: it builds the queries, and we decide how they run. */
export function kysely(
  parts: Pick<Dialect, 'createAdapter' | 'createQueryCompiler'>,
  take: () => Promise<DriverConnection>,
) {
  return new Kysely<Tables>({
    dialect: {
      ...parts,
      createDriver: () => new SingleConnectionDriver(take),
      createIntrospector: () => {
        throw new Error('the store reads its schema by itself')
      },
    },
  })
}

class SingleConnectionDriver implements Driver {
  readonly #take: () => Promise<DriverConnection>
  constructor(take: () => Promise<DriverConnection>) {
    this.#take = take
  }
  async init(): Promise<void> {}
  async acquireConnection(): Promise<SingleConnection> {
    return new SingleConnection(await this.#take())
  }
  async beginTransaction({ connection }: SingleConnection, _settings: TransactionSettings): Promise<void> {
    await connection.begin()
  }
  async commitTransaction({ connection }: SingleConnection): Promise<void> {
    await connection.commit()
  }
  async rollbackTransaction({ connection }: SingleConnection): Promise<void> {
    await connection.rollback()
  }
  async releaseConnection({ connection }: SingleConnection): Promise<void> {
    connection.release()
  }
  async destroy(): Promise<void> {}
}

class SingleConnection implements DatabaseConnection {
  readonly connection: DriverConnection
  constructor(connection: DriverConnection) {
    this.connection = connection
  }
  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { sql } = query
    const parameters = query.parameters.map(storable)
    const done = deferred.get(query)
    if (done && this.connection.defer) {
      this.connection.defer(sql, parameters, (outcome) => done(readable(outcome)))
      return { rows: [] }
    }
    const outcome = readable(await this.connection.execute(sql, parameters))
    done?.(outcome)
    const { rows, changed } = outcome
    return { rows: rows as R[], ...(changed === undefined ? {} : { numAffectedRows: BigInt(changed) }) }
  }
  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('nothing is streamed')
  }
}

/** A text as both databases return it once it is stored. */
export const storableText = (text: string): string => text.replaceAll('\0', '\u{fffd}').toWellFormed()

/** A value as both databases store it. PostgreSQL stores neither NUL nor lone surrogates in text, so SQLite does not either. */
function storable(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value)
  if (Array.isArray(value)) return value.map(storable)
  return typeof value === 'boolean' ? Number(value) : (value ?? null)
}

/** The outcome with its rows as `Tables` describes them: undefined for null, and flags. Changes the rows in place. */
function readable(outcome: QueryOutcome): QueryOutcome {
  for (const row of outcome.rows as Record<string, unknown>[]) {
    for (const name in row) if (row[name] === null) row[name] = undefined
    for (const name of flagColumns) if (name in row) row[name] = row[name] !== 0
  }
  return outcome
}
