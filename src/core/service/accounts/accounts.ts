import { isStoreFailure } from '../../base/errors.ts'
import { lazy } from '../../base/lazy.ts'
import type { Services } from '../../checks/engine/index.ts'
import type { Heartbeat } from '../../protocol/index.ts'
import type { Administration } from '../../protocol/service/service.ts'
import type { Data } from '../../store/index.ts'
import type { Accounts } from '../local.ts'
import type { OpenOptions, Part } from '../part.ts'

export type AccountsPart = Required<Pick<Part, 'preload' | 'ready' | 'firstUse' | 'close'>> & {
  /** For a single request. */
  readonly accounts: () => Promise<Accounts>
  /** Administration for callers who have been authorized. */
  readonly administration: () => Promise<Administration>
  readonly ownSignIn: Services['ownSignIn']
  readonly heartbeats: Services['heartbeats']
}

/** Accounts, sessions, heartbeats and administration over a store. `data` opens it; with true, it also makes a missing store. */
export function accountsPart(
  { config: { serve, auth: ways }, hashCost, shared }: OpenOptions,
  data: (create: boolean) => Promise<Data>,
): AccountsPart {
  const auth = lazy(async () => {
    const auth = await import('../../accounts/auth/index.ts')
    // A cheap hash needs no process.
    const apart = shared && hashCost === undefined
    return { ...auth, passwords: auth.passwordsOfProcess(hashCost, apart), paces: new auth.Paces() }
  })
  const accounts = async (): Promise<Accounts> => {
    const [{ openAccess, passwords, paces }, store] = await Promise.all([auth.get(), data(false)])
    const own = store.forRequest()
    const { now } = store.clock
    return { data: own, access: openAccess({ data: own, passwords, paces, now, refresh: serve.refresh, ways }) }
  }
  const operations = lazy(async () => {
    const [{ passwords }, { administrationOver }] = await Promise.all([auth.get(), import('./administration.ts')])
    return administrationOver({ data, passwords, providers: ways?.openid ?? [] })
  })
  const ready = async (signal?: AbortSignal): Promise<void> => {
    await (await accounts()).data.ping(signal)
  }
  return {
    accounts,
    administration: operations.get,
    ready,
    preload: async () => {
      const { preloadProviders } = await import('../../accounts/auth/index.ts')
      await Promise.all([preloadProviders(ways), operations.get(), ready().catch(unlessStoreFails)])
    },
    close: async () => (await auth.get()).passwords.close(),
    firstUse: async ({ knownPrefixes }) => await knownPrefixes.loadRecent().catch(unlessStoreFails),
    heartbeats: async () => await heartbeatsByOwnClock(await data(false)),
    ownSignIn: {
      store: async (signal) => await (await data(true)).ping(signal),
      anyAdmin: async () => await (await data(true)).users.anyAdmin(),
      lookUp: async () => {
        const store = await data(true)
        await (await auth.get()).probeUserLookup(store.forRequest(), store.clock.now)
      },
      hash: async (signal) => {
        const { passwords, probePasswordHash } = await auth.get()
        return await probePasswordHash(passwords, signal)
      },
    },
  }
}

/** A store that fails now is used when it works again. */
function unlessStoreFails(error: unknown): void {
  if (!isStoreFailure(error)) throw error
}

/**
 * The heartbeats with the instants of this machine's clock, which everything else in a run goes by. They are stored with
 * those of the store's clock.
 */
async function heartbeatsByOwnClock(data: Data): Promise<readonly Heartbeat[]> {
  const rows = await data.heartbeats.list()
  if (!data.clock.isRemote) return rows
  const skewMs = data.clock.verdict()?.skewMs ?? 0
  return rows.map((row) => ({
    ...row,
    at: row.at + skewMs,
    history: row.history.map((report) => ({ ...report, at: report.at + skewMs })),
  }))
}
