import { sql } from 'kysely'
import type { StoreLink } from './link.ts'
import { compareSchema, postgresObjects, type SchemaReport, sqliteObjects } from './own-schema.ts'
import { migrations, ownSchema } from './schema.ts'

/**
 * Compares the schema of an open store with that of svc. A newer one, to which a server of the next version has upgraded the
 * store meanwhile, is not compared. Rejects with the store's errors.
 */
export async function inspectSchema(link: StoreLink, isShared: boolean): Promise<SchemaReport> {
  const version = isShared
    ? '(SELECT "version" FROM "meta" WHERE "id" = 1)'
    : '(SELECT user_version FROM pragma_user_version)'
  const query = sql<{ version: number; objects: string }>`${sql.raw(`
    SELECT ${version} AS "version", (${isShared ? postgresObjects : sqliteObjects}) AS "objects"`)}`
  const own = isShared ? (await import('./postgres/migrate.ts')).ownTables() : ownSchema('sqlite', migrations)
  const { rows } = await link.read((db) => query.execute(db))
  const [row] = rows
  if (!row || row.version > migrations.length) return { altering: [], foreign: [] }
  return compareSchema(row.objects, own)
}
