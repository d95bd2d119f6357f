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

/** A connection for as long as one transaction or one query has it. */
export type Held = {
  readonly execute: (sql: string, parameters: readonly unknown[]) => Promise<Answered>
  readonly begin: () => Promise<unknown>
  readonly commit: () => Promise<unknown>
  readonly rollback: () => Promise<unknown>
  readonly release: () => void
}
export type Answered = { readonly rows: readonly unknown[]; readonly changed: number | undefined }

/** Kysely over connections of ours: it builds the queries, and we decide how they run. */
export function kysely(parts: Pick<Dialect, 'createAdapter' | 'createQueryCompiler'>, take: () => Promise<Held>) {
  return new Kysely<Tables>({
    dialect: {
      ...parts,
      createDriver: () => new HeldDriver(take),
      createIntrospector: () => {
        throw new Error('the store reads its schema by itself')
      },
    },
  })
}

class HeldDriver implements Driver {
  readonly #take: () => Promise<Held>
  constructor(take: () => Promise<Held>) {
    this.#take = take
  }
  async init(): Promise<void> {}
  async acquireConnection(): Promise<HeldConnection> {
    return new HeldConnection(await this.#take())
  }
  async beginTransaction({ held }: HeldConnection, _settings: TransactionSettings): Promise<void> {
    await held.begin()
  }
  async commitTransaction({ held }: HeldConnection): Promise<void> {
    await held.commit()
  }
  async rollbackTransaction({ held }: HeldConnection): Promise<void> {
    await held.rollback()
  }
  async releaseConnection({ held }: HeldConnection): Promise<void> {
    held.release()
  }
  async destroy(): Promise<void> {}
}

class HeldConnection implements DatabaseConnection {
  readonly held: Held
  constructor(held: Held) {
    this.held = held
  }
  async executeQuery<R>({ sql, parameters }: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, changed } = await this.held.execute(sql, parameters.map(storable))
    return { rows: rows as R[], ...(changed === undefined ? {} : { numAffectedRows: BigInt(changed) }) }
  }
  streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('nothing is streamed')
  }
}

/** PostgreSQL keeps neither NUL nor halves of characters in text: then SQLite does not either. */
const storable = (value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll('\0', '\u{fffd}').toWellFormed() : value
