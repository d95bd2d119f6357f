import { isThere } from '../base/files/index.ts'
import { sqlite } from '../base/lazy.ts'
import { refuseUnsafe, storeKind } from './path.ts'

/** The kind of object that the names identify. */
export type StoredNames = 'users' | 'roles' | 'permissions' | 'keys' | 'agents'

const queries: Readonly<Record<StoredNames, string>> = {
  users: 'SELECT "userName" AS "name" FROM "users" ORDER BY "nameKey" LIMIT 500',
  roles: `SELECT DISTINCT "name" FROM "grants" WHERE "kind" = 'role' ORDER BY "name" LIMIT 500`,
  permissions: `SELECT DISTINCT "name" FROM "grants" WHERE "kind" = 'permission' ORDER BY "name" LIMIT 500`,
  keys: 'SELECT "name" FROM "apiKeys" WHERE "revokedAt" IS NULL ORDER BY "name" LIMIT 500',
  agents: 'SELECT "name" FROM "heartbeats" ORDER BY "name" LIMIT 500',
}

/**
 * The first names of the embedded store, to complete a command line. Opens the file for reading only and changes
 * nothing, not even an old schema. Empty for a database and for a store that does not exist. Throws for one that cannot
 * be read, and for one on a share that does not answer.
 */
export async function storedNames(store: string, names: StoredNames): Promise<readonly string[]> {
  if (storeKind(store) !== 'sqlite' || !(await isThere(store))) return []
  refuseUnsafe(store)
  using database = new (sqlite().DatabaseSync)(store, { readOnly: true, timeout: 200 })
  return database
    .prepare(queries[names])
    .all()
    .map(({ name }) => String(name))
}
