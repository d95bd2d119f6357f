import type { DatabaseSync } from 'node:sqlite'
import { refusalsInSql } from '../audit-events.ts'
import { countOf } from './copy.ts'

/**
 * An object that a restore changes for people, compared with the previous store. `lost`: the backup lacks it. `back`:
 * only the backup has it, or has it in force. `earlier`: it is as it was at the time of the backup.
 */
export type RolledBack = {
  readonly what: 'user' | 'role' | 'permission' | 'key' | 'password' | 'e-mail' | 'identity' | 'digest secret'
  readonly change: 'lost' | 'back' | 'earlier'
  readonly userName: string
  /** The role, the permission, the key, or the issuer and subject of the identity. */
  readonly name: string | undefined
  /** The action of the restore, so that nothing that was withdrawn works again. */
  readonly action: 'disabled' | 'revoked' | undefined
}

/** How the previous store relates to the backup. */
export type StoreComparison = {
  readonly changes: readonly RolledBack[]
  /** Whether the previous store is a later state of the backup, so that what it lacks was removed. */
  readonly isLater: boolean
  /** Entries of the audit that the backup lacks. Undefined if the previous store is not a later state. */
  readonly auditEntries: number | undefined
}

type Query = Pick<RolledBack, 'what' | 'change'> & {
  /** The tables that both stores need. */
  readonly tables: readonly string[]
  /** The columns that the previous store needs. */
  readonly columns?: readonly (readonly [table: string, column: string])[]
  /** Selects userName and name. `main` is the previous store. */
  readonly sql: string
}

/** Rows of the one that the other lacks, with the user of the one. */
const lacking = (one: string, other: string, rows: string, same: string, name: string): string =>
  `SELECT u."userName" AS "userName", ${name} AS "name" FROM ${one}.${rows} x JOIN ${one}."users" u ON u."id" = x."userId"
   WHERE NOT EXISTS (SELECT 1 FROM ${other}.${rows} y WHERE ${same}) ORDER BY u."nameKey", 2`

const [before, after] = ['main', 'restored']
const grantsOf = (kind: string): string => `(SELECT * FROM SCHEMA."grants" WHERE "kind" = '${kind}')`
/** The present name of a grant: the schema of the previous store may be older (step 14). */
const nameOf = (grant: string): string =>
  `CASE WHEN ${grant}."kind" = 'permission' AND ${grant}."name" = 'quiet' THEN 'silence' ELSE ${grant}."name" END`

/** In the restored store, whose schema is the newest: a grant that has not ended. */
const isHeld = (grant: string): string => `(${grant}."endsAt" IS NULL OR ${grant}."endsAt" > unixepoch() * 1000)`

/** Whether anybody who is enabled holds Admin in the restored store. */
export const enabledAdmin = `SELECT 1 FROM restored."users" u JOIN restored."grants" g ON g."userId" = u."id"
  WHERE g."kind" = 'role' AND g."name" = 'Admin' AND u."disabled" = 0 AND ${isHeld('g')} LIMIT 1`

/** Grants of one kind that the one has and the other lacks. */
const grants = (one: string, other: string, kind: 'role' | 'permission'): string =>
  `SELECT u."userName" AS "userName", ${nameOf('x')} AS "name" FROM ${grantsOf(kind).replace('SCHEMA', one)} x
   JOIN ${one}."users" u ON u."id" = x."userId"
   WHERE NOT EXISTS (SELECT 1 FROM ${other}."grants" y
     WHERE y."userId" = x."userId" AND y."kind" = x."kind" AND ${nameOf('y')} = ${nameOf('x')})
     ${one === after ? `AND ${isHeld('x')}` : ''}
   ORDER BY u."nameKey", x."seq"`

/** Grants of one kind in both stores whose ends differ. */
const otherEnds = (kind: 'role' | 'permission'): string =>
  `SELECT u."userName" AS "userName", x."name" AS "name" FROM ${after}."grants" x
   JOIN ${before}."grants" y ON y."userId" = x."userId" AND y."kind" = x."kind" AND ${nameOf('y')} = ${nameOf('x')}
   JOIN ${after}."users" u ON u."id" = x."userId"
   WHERE x."kind" = '${kind}' AND y."endsAt" IS NOT x."endsAt" ORDER BY u."nameKey", x."seq"`

/** Users of both stores who differ in this. */
const differing = (how: string): string =>
  `SELECT r."userName" AS "userName", NULL AS "name" FROM ${after}."users" r JOIN ${before}."users" o ON o."id" = r."id"
   WHERE ${how} ORDER BY r."nameKey"`

const usersLacking = (one: string, other: string): string =>
  `SELECT u."userName" AS "userName", NULL AS "name" FROM ${one}."users" u
   WHERE NOT EXISTS (SELECT 1 FROM ${other}."users" x WHERE x."id" = u."id") ORDER BY u."nameKey"`

const usableKeys = (one: string, other: string): string =>
  `SELECT u."userName" AS "userName", k."name" AS "name" FROM ${one}."apiKeys" k
   JOIN ${one}."users" u ON u."id" = k."userId"
   WHERE k."revokedAt" IS NULL
     AND NOT EXISTS (SELECT 1 FROM ${other}."apiKeys" x WHERE x."id" = k."id" AND x."revokedAt" IS NULL)
   ORDER BY u."nameKey", k."name"`

const identities = (one: string, other: string): string =>
  lacking(
    one,
    other,
    '"identities"',
    'y."issuer" = x."issuer" AND y."subject" = x."subject" AND y."userId" = x."userId"',
    `x."issuer" || ' ' || x."subject"`,
  )

const digests = (one: string, other: string): string =>
  lacking(one, other, '"digestSecrets"', 'y."userId" = x."userId"', 'NULL')

const accounts = ['users', 'grants', 'apiKeys']
const ends = [['grants', 'endsAt']] as const
const queries: readonly Query[] = [
  { what: 'user', change: 'lost', tables: accounts, sql: usersLacking(before, after) },
  { what: 'user', change: 'back', tables: accounts, sql: usersLacking(after, before) },
  {
    what: 'user',
    change: 'back',
    tables: accounts,
    sql: differing('o."disabled" = 1 AND r."disabled" = 0'),
  },
  { what: 'user', change: 'earlier', tables: accounts, sql: differing('o."disabled" = 0 AND r."disabled" = 1') },
  { what: 'role', change: 'lost', tables: accounts, sql: grants(before, after, 'role') },
  { what: 'role', change: 'back', tables: accounts, sql: grants(after, before, 'role') },
  { what: 'permission', change: 'lost', tables: accounts, sql: grants(before, after, 'permission') },
  { what: 'permission', change: 'back', tables: accounts, sql: grants(after, before, 'permission') },
  { what: 'role', change: 'earlier', tables: accounts, columns: ends, sql: otherEnds('role') },
  { what: 'permission', change: 'earlier', tables: accounts, columns: ends, sql: otherEnds('permission') },
  { what: 'key', change: 'lost', tables: accounts, sql: usableKeys(before, after) },
  { what: 'key', change: 'back', tables: accounts, sql: usableKeys(after, before) },
  {
    what: 'password',
    change: 'earlier',
    tables: accounts,
    sql: differing('o."passwordHash" IS NOT r."passwordHash"'),
  },
  { what: 'e-mail', change: 'earlier', tables: accounts, sql: differing('o."email" IS NOT r."email"') },
  { what: 'identity', change: 'lost', tables: ['users', 'identities'], sql: identities(before, after) },
  { what: 'identity', change: 'back', tables: ['users', 'identities'], sql: identities(after, before) },
  { what: 'digest secret', change: 'lost', tables: ['users', 'digestSecrets'], sql: digests(before, after) },
  { what: 'digest secret', change: 'back', tables: ['users', 'digestSecrets'], sql: digests(after, before) },
]

/**
 * Compares the store before a restore (`main`) with the restored one (attached as `restored`), and takes from the restored
 * one what was withdrawn after the backup: users that were removed or disabled are disabled, and keys revoked, unless
 * `keep` says otherwise. Roles and permissions stay as the backup has them. Throws SQLite's errors.
 */
export function rollBack(
  database: DatabaseSync,
  { keep, at }: { readonly keep: boolean; readonly at: number },
): StoreComparison {
  const isLater = isLaterState(database)
  const withdraws = isLater && !keep
  const changes = queries.flatMap(({ tables, columns = [], sql, ...change }): readonly RolledBack[] =>
    tables.some((table) => !hasTable(database, table)) || columns.some((column) => !hasColumn(database, ...column))
      ? []
      : database
          .prepare(sql)
          .all()
          .map(({ userName, name }) => ({
            ...change,
            userName: String(userName),
            name: name === null ? undefined : String(name),
            action: withdraws ? actionFor(change) : undefined,
          })),
  )
  const auditEntries = isLater
    ? countOf(database, 'main."audit" WHERE "id" > (SELECT coalesce(max("id"), 0) FROM restored."audit")')
    : undefined
  if (withdraws && hasTable(database, 'users')) withdraw(database, at)
  return { changes, isLater, auditEntries }
}

const actionFor = ({ what, change }: Pick<RolledBack, 'what' | 'change'>): RolledBack['action'] => {
  if (change !== 'back') return undefined
  return what === 'user' ? 'disabled' : what === 'key' ? 'revoked' : undefined
}

/**
 * Whether the previous store has the newest lasting entry of the backup's audit: then it has gone on from there. Two stores
 * with empty audits are the same if they were created at the same moment.
 */
function isLaterState(database: DatabaseSync): boolean {
  if (!hasTable(database, 'audit')) return false
  const [sameStore] = database
    .prepare('SELECT 1 FROM main."meta" o JOIN restored."meta" r ON o."createdAt" = r."createdAt"')
    .all()
  if (sameStore === undefined) return false
  const newest = database
    .prepare(
      // Refused sign-ins are deleted after a while.
      `SELECT "id", "correlationId", "at" FROM restored."audit"
       WHERE "event" NOT IN ${refusalsInSql} ORDER BY "id" DESC LIMIT 1`,
    )
    .get()
  if (newest === undefined) return true
  const { id = null, correlationId = null, at = null } = newest
  const same = database.prepare('SELECT 1 FROM main."audit" WHERE "id" = ? AND "correlationId" = ? AND "at" = ?')
  return same.get(id, correlationId, at) !== undefined
}

function withdraw(database: DatabaseSync, at: number): void {
  database.exec(`
    UPDATE restored."users" SET "disabled" = 1, "epoch" = "epoch" + 1 WHERE "disabled" = 0
      AND NOT EXISTS (SELECT 1 FROM main."users" o WHERE o."id" = restored."users"."id" AND o."disabled" = 0);
    UPDATE restored."apiKeys" SET "revokedAt" = ${Math.trunc(at)} WHERE "revokedAt" IS NULL
      AND NOT EXISTS (SELECT 1 FROM main."apiKeys" o WHERE o."id" = restored."apiKeys"."id" AND o."revokedAt" IS NULL);`)
}

const hasColumn = (database: DatabaseSync, table: string, column: string): boolean =>
  database.prepare('SELECT 1 FROM pragma_table_info(?, ?) WHERE name = ?').get(table, before, column) !== undefined

/** Whether both stores have a table. An older one lacks those of later versions. */
const hasTable = (database: DatabaseSync, table: string): boolean =>
  database
    .prepare(
      `SELECT 1 FROM main.sqlite_schema o JOIN restored.sqlite_schema r ON o.name = r.name
       WHERE o.type = 'table' AND r.type = 'table' AND o.name = ?`,
    )
    .get(table) !== undefined

/** Tables of sign-ins, all of which a restore ends. */
const signInTables = ['sessions', 'accessTokens', 'refreshTokens', 'claimedRoles', 'digestNonces', 'usedStates']
/** Keys with which the store seals what may be used once. What was used after the backup is no longer known. */
const sealingKeys = ['digest nonces', 'browser sign-ins']

/**
 * Ends every session and refresh family of the restored store: those that were signed out or revoked after the backup
 * would work again. Returns how many sign-ins ended. New keys seal nonces and browser sign-ins from now on.
 */
export function endSignIns(database: DatabaseSync): number {
  const families = `(SELECT "familyId" FROM restored."sessions" UNION SELECT "familyId" FROM restored."refreshTokens")`
  const ended = countOf(database, families)
  for (const table of signInTables) database.exec(`DELETE FROM restored."${table}"`)
  const names = sealingKeys.map((name) => `'${name}'`).join(', ')
  database.exec(`DELETE FROM restored."storeKeys" WHERE "name" IN (${names})`)
  return ended
}
