import { sqlite } from '../../base/lazy.ts'
import type { KnownUser, KnownUsers } from '../audit/index.ts'
import { nameKey } from '../tables.ts'

/** One who held the role. `endsAt`: when it was to end by itself, in milliseconds since 1970. */
export type TableHolder = {
  readonly userName: string
  readonly disabled: boolean
  readonly endsAt: number | undefined
}

/**
 * What is known of each user at a time, and who held the role, in a file of SQLite without a name: a million users need
 * little more memory than a thousand. It is the temporary folder of this account that has the file, which the operating
 * system removes with the process.
 */
export class PastTable implements KnownUsers {
  readonly #database = new (sqlite().DatabaseSync)('')
  readonly #one
  readonly #all
  readonly #set
  readonly #hold
  readonly #page

  constructor() {
    // A commit would write what only this process reads.
    this.#database.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8000; BEGIN;
      CREATE TABLE known (name TEXT PRIMARY KEY, holding TEXT, disabled INTEGER NOT NULL, exist INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE holders (key TEXT, name TEXT, disabled INTEGER NOT NULL, endsAt INTEGER, PRIMARY KEY (key, name)) WITHOUT ROWID`)
    const columns = 'holding, disabled, exist AS "exists"'
    this.#one = this.#database.prepare(`SELECT ${columns} FROM known WHERE name = ?`)
    this.#all = this.#database.prepare(`SELECT name, ${columns} FROM known`)
    this.#set = this.#database.prepare('INSERT OR REPLACE INTO known VALUES (?, ?, ?, ?)')
    this.#hold = this.#database.prepare('INSERT OR REPLACE INTO holders VALUES (?, ?, ?, ?)')
    this.#page = this.#database.prepare(
      'SELECT name AS userName, disabled, endsAt FROM holders WHERE (key, name) > (?, ?) ORDER BY key, name LIMIT ?',
    )
  }

  get(name: string): KnownUser | undefined {
    const row = this.#one.get(name)
    return row && knownUser(row)
  }

  set(name: string, { holding, disabled, exists }: KnownUser): void {
    this.#set.run(name, holding ?? null, Number(disabled), Number(exists))
  }

  *entries(): Iterable<readonly [name: string, user: KnownUser]> {
    for (const row of this.#all.iterate()) yield [String(row['name']), knownUser(row)]
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

const knownUser = ({ holding, disabled, exists }: Readonly<Record<string, unknown>>): KnownUser => ({
  holding: holding === null ? undefined : String(holding),
  disabled: disabled === 1,
  exists: exists === 1,
})
