import type { Data } from './data.ts'
import type { StoreLink } from './link.ts'
import { refuseUnopenable } from './open.ts'
import { storeKind } from './path.ts'

export type DataOptions = {
  /** The absolute path of a file, or a postgres:// URL. */
  readonly store: string
  /** Creates the store when there is none. If false, a missing store is a Fault. */
  readonly create: boolean
  /** For tests: milliseconds since 1970. Absent: the store's clock. */
  readonly now?: () => number
  /** The environment that may contain SVC_STORE_PASSWORD_FILE. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/**
 * Opens the named store and brings its schema up to date. Throws Fault `Local` when that is impossible (no such store,
 * foreign, newer, damaged, wrong password), and `Unavailable` within 2 s when a database does not respond. Later, every
 * method throws `Unavailable` while the store is unreachable.
 */
export async function openData({ store, create, now, env = process.env }: DataOptions): Promise<Data> {
  const link = await linkStore(store, create, env)
  try {
    const [{ dataOver }, { fixedClock, storeClock }] = await Promise.all([
      import('./data-over.ts'),
      import('./store-clock.ts'),
    ])
    return dataOver(link, now ? fixedClock(now) : await storeClock(link.readClock))
  } catch (error) {
    await link.close()
    throw error
  }
}

async function linkStore(store: string, create: boolean, env: NonNullable<DataOptions['env']>): Promise<StoreLink> {
  if (storeKind(store) === 'postgres') {
    const { linkPostgres } = await import('./postgres-link.ts')
    return await linkPostgres({ url: store, create, env })
  }
  await refuseUnopenable(store)
  const { linkSqlite } = await import('./sqlite-link.ts')
  return linkSqlite({ path: store, create })
}
