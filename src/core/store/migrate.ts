import type { DatabaseSync } from 'node:sqlite'
import { accountTables, heartbeatTables, lookupIndexes, readingTables, sqliteWords } from './schema.ts'

/** `svc1`: what makes a SQLite file ours, in its header. */
export const applicationId = 0x73766331

/**
 * The schema, forwards only: step n takes a store from version n to n + 1. A released step is never
 * changed; a new need is a new step. PostgreSQL's steps (postgres-migrate.ts) have the same versions.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE meta (
     id INTEGER PRIMARY KEY CHECK (id = 1),
     createdAt TEXT NOT NULL,
     version INTEGER NOT NULL
   ) STRICT;
   INSERT INTO meta (id, createdAt, version) VALUES (1, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), 0);`,
  accountTables(sqliteWords),
  heartbeatTables(sqliteWords),
  readingTables(sqliteWords),
  lookupIndexes,
]

/** The schema version, from the file's header. */
export const versionOf = (database: DatabaseSync): number => pragma(database, 'user_version')

/** An integer PRAGMA. */
export function pragma(database: DatabaseSync, name: string): number {
  const row = database.prepare(`PRAGMA ${name}`).get()
  return Number(row ? Object.values(row)[0] : 0)
}

/**
 * Takes a database from its version to the newest. Each step is one transaction that also writes
 * the version, so a kill leaves whole steps; the version is read again under the write lock, so a
 * second process does not repeat a step. Throws what SQLite throws.
 */
export function migrate(database: DatabaseSync, steps: readonly string[]): void {
  for (let version = versionOf(database); version < steps.length; version = versionOf(database)) {
    database.exec('BEGIN IMMEDIATE')
    try {
      if (versionOf(database) === version) {
        database.exec(steps[version] ?? '')
        database.exec(`UPDATE meta SET version = ${version + 1}; PRAGMA user_version = ${version + 1}`)
      }
      database.exec('COMMIT')
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }
}
