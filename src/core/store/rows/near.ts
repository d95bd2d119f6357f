import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../tables.ts'

/** A store with fewer names than this gives all of them. */
const maxNames = 1_000
/** Names before the typed one in their order, and as many from it on. */
const maxNeighbours = 100
/** Characters. Longer words are not typing slips, and every letter more asks for eighty further names. */
const maxTyped = 32
/** What a wrong letter may have been meant to be, besides the letters of the word itself. */
const letters = 'abcdefghijklmnopqrstuvwxyz0123456789-_.@ '

type Names = {
  readonly table: 'users' | 'apiKeys' | 'heartbeats'
  /** The column that is compared; an index begins with it. */
  readonly key: string
  /** The column that is shown. */
  readonly name: string
  /** What that index is limited to. */
  readonly only?: RawBuilder<unknown>
}

/**
 * Names that may be meant by `typed`, which is none of them: at most some thousand rows are read, by an index, however
 * many there are. All names while they are few. Of many, those that are one slip away (a letter left out, added,
 * replaced or swapped with its neighbour) and those that stand beside it in the order of the names, which begin like
 * it. So of many names it does not find one with two slips of which one is near the beginning, nor one whose wrong
 * letter should be a letter beyond ASCII that the word does not hold.
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

/** All words that become `typed` by one slip. */
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
