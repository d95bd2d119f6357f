import { sqlite } from '../../base/lazy.ts'
import type { UserRecord, UserRecords } from '../audit/index.ts'
import { nameKey } from '../tables.ts'

/** One who held the role. `endsAt`: when it was to end by itself, in milliseconds since 1970. */
export type TableHolder = {
  readonly userName: string
  readonly disabled: boolean
  readonly endsAt: number | undefined
}

/**
 * The state of each user at a time, and who held the role, in a file of SQLite without a name: a million users need
 * little more memory than a thousand. SQLite puts the file into the temporary folder when its cache is full, and the
 * operating system removes it with the process.
 */
export class PastTable implements UserRecords {
  readonly #database = new (sqlite().DatabaseSync)('')
  readonly #one
  readonly #all
  readonly #set
  readonly #hold
  readonly #page

  constructor() {
    // A commit would write what only this process reads.
    this.#database.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000; BEGIN;
      CREATE TABLE users (name TEXT PRIMARY KEY, holding TEXT, disabled INTEGER NOT NULL, exist INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE holders (key TEXT, name TEXT, disabled INTEGER NOT NULL, endsAt INTEGER, PRIMARY KEY (key, name)) WITHOUT ROWID`)
    const columns = 'holding, disabled, exist AS "exists"'
    this.#one = this.#database.prepare(`SELECT ${columns} FROM users WHERE name = ?`)
    this.#all = this.#database.prepare(`SELECT name, ${columns} FROM users`)
    this.#set = this.#database.prepare('INSERT OR REPLACE INTO users VALUES (?, ?, ?, ?)')
    this.#hold = this.#database.prepare('INSERT OR REPLACE INTO holders VALUES (?, ?, ?, ?)')
    this.#page = this.#database.prepare(
      'SELECT name AS userName, disabled, endsAt FROM holders WHERE (key, name) > (?, ?) ORDER BY key, name LIMIT ?',
    )
  }

  get(name: string): UserRecord | undefined {
    const row = this.#one.get(name)
    return row && recordOf(row)
  }

  set(name: string, { holding, disabled, exists }: UserRecord): void {
    this.#set.run(name, holding ?? null, Number(disabled), Number(exists))
  }

  *entries(): Iterable<readonly [name: string, user: UserRecord]> {
    for (const row of this.#all.iterate()) yield [String(row['name']), recordOf(row)]
  }

  addHolder({ userName, disabled, endsAt }: TableHolder): void {
    this.#hold.run(nameKey(userName), userName, Number(disabled), endsAt ?? null)
  }

  /** The next holders after a name, sorted by name. */
  holders(after: string | undefined, take: number): readonly TableHolder[] {
    const rows = this.#page.all(after === undefined ? '' : nameKey(after), after ?? '', take)
    return rows.map(({ userName, disabled, endsAt }) => ({
      userName: String(userName),
      disabled: disabled === 1,
      endsAt: endsAt === null ? undefined : Number(endsAt),
    }))
  }

  [Symbol.dispose](): void {
    this.#database.close()
  }
}

const recordOf = ({ holding, disabled, exists }: Readonly<Record<string, unknown>>): UserRecord => ({
  holding: typeof holding === 'string' ? holding : undefined,
  disabled: disabled === 1,
  exists: exists === 1,
})
