import { type RawBuilder, sql } from 'kysely'
import { type Later, laterSql } from '../dialect.ts'
import type { Db, Tables } from '../tables.ts'

type Column = string | number | null | RawBuilder<unknown>

/**
 * Inserts a row if the user exists, is not disabled and has this epoch, without another statement that asks first. The
 * columns of `users` may be values.
 */
export function insertFor(
  tx: Db,
  { userId, epoch }: { readonly userId: string; readonly epoch: number },
  table: keyof Tables,
  row: Readonly<Record<string, Column>>,
): Promise<Later<unknown>> {
  const columns = sql.join(Object.keys(row).map((name) => sql.ref(name)))
  const values = sql.join(Object.values(row).map((value) => (isExpression(value) ? value : sql`${value}`)))
  return laterSql(
    tx,
    sql`INSERT INTO ${sql.table(table)} (${columns}) SELECT ${values} FROM "users"
      WHERE "users"."id" = ${userId} AND "users"."epoch" = ${epoch} AND "users"."disabled" = 0`,
  )
}

const isExpression = (value: Column): value is RawBuilder<unknown> => typeof value === 'object' && value !== null
