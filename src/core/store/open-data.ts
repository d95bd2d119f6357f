import type { Data } from './data.ts'
import { storeKind } from './path.ts'

export type DataOptions = {
  /** The whole path of a file, or a postgres:// URL. */
  readonly store: string
  /** Makes the store when there is none; else that is a Fault. */
  readonly create: boolean
  /** Milliseconds since 1970. */
  readonly now?: () => number
  /** Where SVC_STORE_PASSWORD_FILE is looked up. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * Opens the store that is named and brings its schema up to date. Throws Fault `Local` when that
 * cannot be (no such store, foreign, newer, damaged, wrong password), `Unavailable` within 2 s when a
 * database does not answer. Later, `Unavailable` is what every method throws while the store is away.
 */
export async function openData({ store, create, now = Date.now, env = process.env }: DataOptions): Promise<Data> {
  const { dataOver } = await import('./data-over.ts')
  if (storeKind(store) === 'postgres') {
    const { linkPostgres } = await import('./postgres-link.ts')
    return dataOver(await linkPostgres({ url: store, create, env }), now)
  }
  const { linkSqlite } = await import('./sqlite-link.ts')
  return dataOver(linkSqlite({ path: store, create }), now)
}
