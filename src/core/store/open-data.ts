import type { Data } from './data.ts'
import { refuseSilentShare, storeKind } from './path.ts'

export type DataOptions = {
  /** The absolute path of a file, or a postgres:// URL. */
  readonly store: string
  /** Creates the store when there is none. If false, a missing store is a Fault. */
  readonly create: boolean
  /** Milliseconds since 1970. */
  readonly now?: () => number
  /** The environment that may contain SVC_STORE_PASSWORD_FILE. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * Opens the named store and brings its schema up to date. Throws Fault `Local` when that is impossible (no such store,
 * foreign, newer, damaged, wrong password), and `Unavailable` within 2 s when a database does not respond. Later, every
 * method throws `Unavailable` while the store is unreachable.
 */
export async function openData({ store, create, now = Date.now, env = process.env }: DataOptions): Promise<Data> {
  const { dataOver } = await import('./data-over.ts')
  if (storeKind(store) === 'postgres') {
    const { linkPostgres } = await import('./postgres-link.ts')
    return dataOver(await linkPostgres({ url: store, create, env }), now)
  }
  await refuseSilentShare(store)
  const { linkSqlite } = await import('./sqlite-link.ts')
  return dataOver(linkSqlite({ path: store, create }), now)
}
