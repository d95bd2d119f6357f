import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../base/errors.ts'
import { lazy } from '../base/lazy.ts'
import type { Data } from './data.ts'
import type { StoreLink } from './link.ts'
import { openingFault, refuseGone, refuseUnopenable, type UsedStores } from './open.ts'
import { storeKind } from './path.ts'
import { isBusy } from './sqlite-codes.ts'

export type DataOptions = {
  /** The absolute path of a file, or a postgres:// URL. */
  readonly store: string
  /** Creates the store when there is none. If false, a missing store is a Fault. */
  readonly create: boolean
  /** For tests: milliseconds since 1970. Absent: the store's clock. */
  readonly now?: () => number
  /**
   * How long to wait for the lock of an embedded store, in milliseconds. Absent: as long as a request of a server may,
   * which is answered within 2 s.
   */
  readonly patienceMs?: number | undefined
  /** The environment that may contain SVC_STORE_PASSWORD_FILE. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Ends an attempt to open a database, which rejects then. */
  readonly signal?: AbortSignal | undefined
  /** How long opening an embedded store may block this process, in milliseconds. */
  readonly busyMs?: number | undefined
  /** A store in a file that it remembers is not created again. Absent: any store is. */
  readonly usedStores?: UsedStores | undefined
}

/**
 * Opens the named store and brings its schema up to date. Throws Fault `Local` when that is impossible (no such store,
 * foreign, newer, damaged, wrong password), and StoreOutage within 2 s when a database does not respond. Later, every
 * method throws StoreOutage while the store is unreachable.
 */
export async function openData(options: DataOptions): Promise<Data> {
  const { store, now, env = process.env, patienceMs } = options
  // Before the database answers: a server that has to wait for it may be unable to load anything later.
  const [{ dataOver }, { fixedClock, storeClock }] = await Promise.all([import('./data-over.ts'), import('./clock.ts')])
  const link = await linkStore({ ...options, env })
  try {
    const history = lazy(async () => {
      const { historyInFile, historyInTables } = await import('./results-link.ts')
      return storeKind(store) === 'sqlite' ? historyInFile(store, patienceMs) : historyInTables(link)
    })
    return dataOver(link, now ? fixedClock(now) : await storeClock(link.readClock), {
      isShared: storeKind(store) === 'postgres',
      link: async (mayCreate) => await (await history.get()).link(mayCreate),
      close: async () => await (await history.peek()?.catch(() => undefined))?.close(),
    })
  } catch (error) {
    await link.close()
    throw error
  }
}

async function linkStore({
  store,
  create,
  env,
  patienceMs,
  signal,
  busyMs,
  usedStores,
}: DataOptions & {
  readonly env: NonNullable<DataOptions['env']>
}): Promise<StoreLink> {
  if (storeKind(store) === 'postgres') {
    const { linkPostgres } = await import('./postgres/link.ts')
    return await linkPostgres({ url: store, create, env, signal })
  }
  try {
    await refuseUnopenable(store)
    if (create) await refuseGone(store, usedStores)
  } catch (error) {
    throw openingFault(store, error)
  }
  const { backOffMs, linkSqlite } = await import('./sqlite-link.ts')
  const deadline = performance.now() + (patienceMs ?? 0)
  for (let attempt = 0; ; attempt++) {
    try {
      return linkSqlite({ path: store, create, patienceMs, busyMs })
    } catch (error) {
      if (!(error instanceof Fault) || !isBusy(error.cause) || performance.now() > deadline) throw error
    }
    await wait(backOffMs(attempt))
  }
}
