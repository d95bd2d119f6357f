import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../tables.ts'

/** A store with fewer names returns all of them. */
const maxNames = 1_000
/** Number of names before the typed one in sort order, and of names from it on. */
const maxNeighbours = 100
/** Characters. Longer words are not typing mistakes, and every additional letter adds eighty names to look up. */
const maxTyped = 32
/** Candidates for a wrong letter, besides the letters of the word itself. */
const letters = 'abcdefghijklmnopqrstuvwxyz0123456789-_.@ '

type Names = {
  readonly table: 'users' | 'apiKeys' | 'heartbeats'
  /** The column to compare. An index begins with it. */
  readonly key: string
  /** The column to show. */
  readonly name: string
  /** The condition of that index, if it is partial. */
  readonly only?: RawBuilder<unknown>
}

/**
 * Names similar to `typed`, which is not a name itself. It reads at most a few thousand rows by an index, however many
 * there are. While names are few, it returns all of them. Otherwise it returns those that differ by one typing mistake
 * (a letter missing, added, replaced or swapped with its neighbour), and the neighbours in sort order, which begin
 * alike. Among many names it thus misses a name with two mistakes of which one is near the beginning. It also misses
 * one that needs a letter beyond ASCII that the typed word does not contain.
 */
export async function namesNear(db: Db, typed: string, names: Names): Promise<readonly string[]> {
  const { table, key, name, only = sql`1 = 1` } = names
  const select = async (more: RawBuilder<unknown>): Promise<readonly string[]> => {
    const matches = await sql<{
      name: string
    }>`SELECT ${sql.ref(name)} AS "name" FROM ${sql.table(table)} ${more}`.execute(db)
    return matches.rows.map((row) => row.name)
  }
  const all = await select(sql`LIMIT ${sql.lit(maxNames)}`)
  if (all.length < maxNames) return all
  const column = sql.ref(key)
  const neighbours = sql.lit(maxNeighbours)
  const slips = oneSlipAway(typed)
  const near = [
    slips.length === 0
      ? []
      : await select(sql`WHERE ${only} AND ${column} IN (${sql.join(slips)}) LIMIT ${neighbours}`),
    await select(sql`WHERE ${only} AND ${column} >= ${typed} ORDER BY ${column} LIMIT ${neighbours}`),
    await select(sql`WHERE ${only} AND ${column} < ${typed} ORDER BY ${column} DESC LIMIT ${neighbours}`),
  ]
  return [...new Set(near.flat())]
}

/** All words that one typing mistake turns into `typed`. */
function oneSlipAway(typed: string): readonly string[] {
  const word = Array.from(typed)
  if (word.length > maxTyped) return []
  const alphabet = new Set([...Array.from(letters), ...word])
  const words = new Set<string>()
  for (let at = 0; at <= word.length; at += 1) {
    const [before, after] = [word.slice(0, at).join(''), word.slice(at).join('')]
    const [one = '', next = ''] = word.slice(at)
    const behind = after.slice(one.length)
    if (one !== '') words.add(before + behind)
    if (next !== '') words.add(before + next + one + behind.slice(next.length))
    for (const letter of alphabet) {
      words.add(before + letter + after)
      if (one !== '') words.add(before + letter + behind)
    }
  }
  words.delete(typed)
  words.delete('')
  return [...words]
}
