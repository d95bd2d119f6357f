import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  type TransactionSettings,
} from 'kysely'
import type { Tables } from './tables.ts'

/** A connection during one transaction or one query. */
export type DriverConnection = {
  readonly execute: (sql: string, parameters: readonly unknown[]) => Promise<QueryOutcome>
  readonly begin: () => Promise<unknown>
  readonly commit: () => Promise<unknown>
  readonly rollback: () => Promise<unknown>
  readonly release: () => void
}
export type QueryOutcome = { readonly rows: readonly unknown[]; readonly changed: number | undefined }

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
  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changed } = await this.connection.execute(sql, parameters.map(storable))
    return { rows: rows as R[], ...(changed === undefined ? {} : { numAffectedRows: BigInt(changed) }) }
  }
  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('nothing is streamed')
  }
}

/** PostgreSQL stores neither NUL nor lone surrogates in text, so SQLite does not either. */
const storable = (value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll('\0', '\u{fffd}').toWellFormed() : value
