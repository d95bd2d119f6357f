import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../core/base/errors.ts'
import type { Log, RunningServer } from '../../core/server/index.ts'
import { loadClaims, type StoreUser, type UsedStores } from '../../core/store/index.ts'

export type SoleServer = {
  /** Begins to try again where the store could not be locked. */
  readonly watch: () => void
  /** Lets the next server have the store. */
  readonly [Symbol.dispose]: () => void
}

type StandIn = Partial<Pick<RunningServer, 'port'>> & Pick<RunningServer, 'stop'>

/**
 * Makes this process the only `svc serve` of an embedded store (W30). While another one has it, this waits; `standIn`
 * answers callers after the time of a hand-over. Resolves to undefined once `signal` aborts. Throws Fault `Local` on a
 * terminal. A store that cannot be locked is used all the same, and the log has the reason: nothing ends a watch because
 * of its lock.
 */
export async function soleServer(
  store: string,
  {
    used,
    isOnTerminal,
    signal,
    log,
    standIn,
  }: {
    /** The stores that are not made again. */
    readonly used: UsedStores | undefined
    readonly isOnTerminal: boolean
    readonly signal: AbortSignal
    readonly log: Log
    /** Listens in place of the server, which is not ready for this reason. */
    readonly standIn: (reason: string) => Promise<StandIn>
  },
): Promise<(SoleServer & { readonly standIn: StandIn | undefined }) | undefined> {
  const { claim, nextClaim } = await loadClaims()
  let before: Parameters<typeof nextClaim>[0]
  let inPlace: StandIn | undefined
  try {
    while (!signal.aborted) {
      const step = nextClaim(before, await claim(store, used), performance.now(), isOnTerminal)
      if (step.do === 'end') throw inUse(store, step.by)
      if (step.do === 'use the store') {
        const { unlocked, release = () => {} } = step
        if (before) log({ level: 'info', msg: `the store ${store} is free: this server uses it from now on` })
        const locked = { watch: () => {}, [Symbol.dispose]: release }
        return { ...(unlocked === undefined ? locked : later(store, used, unlocked, log)), standIn: inPlace }
      }
      const { wait, ms, by, says } = step
      const reason = `${whoUses(by)} uses the store`
      if (says)
        log({ level: wait.isLong ? 'warn' : 'info', msg: `${whoUses(by)} uses the store ${store}: ${effect(wait)}` })
      if (wait.isLong) inPlace ??= await standIn(reason).catch((error: unknown) => notListening(error, log))
      before = wait
      await pause(ms, undefined, { signal }).catch(() => {})
    }
  } catch (error) {
    await inPlace?.stop()
    throw error
  }
  await inPlace?.stop()
  return undefined
}

const effect = ({ isLong }: { readonly isLong: boolean }): string =>
  isLong
    ? 'this server is not ready and watches nothing until that one has ended'
    : 'this server waits 15 s for its end'

function notListening(error: unknown, log: Log): StandIn {
  if (!(error instanceof Fault)) throw error
  log({ level: 'warn', msg: `${error.message}: this server listens once it has the store` })
  return { stop: async () => {} }
}

/**
 * Tries again to lock a store that is used without its lock. Nothing takes a store away from a server that uses it: if
 * another one has locked it meanwhile, the log says so once.
 */
function later(store: string, used: UsedStores | undefined, why: string, log: Log): SoleServer {
  const ended = new AbortController()
  const { signal } = ended
  let release = (): void => {}
  const tryAgain = async (): Promise<void> => {
    const { claim, lookLongMs } = await loadClaims()
    for (let isTold = false; ; ) {
      await pause(lookLongMs, undefined, { signal, ref: false })
      const claimed = await claim(store, used)
      if (claimed.is === 'held') {
        release = claimed.release
        return
      }
      if (claimed.is === 'impossible' || isTold) continue
      isTold = true
      const msg = `${whoUses(claimed.by)} uses the store ${store} too: every fault is told twice; stop one of them`
      log({ level: 'warn', msg })
    }
  }
  return {
    watch: () => {
      log({ level: 'warn', msg: `the store ${store} ${why}: a second svc serve would not notice this one` })
      tryAgain().catch((error: unknown) => {
        if (!signal.aborted) throw error
      })
    },
    [Symbol.dispose]: () => {
      ended.abort()
      release()
    },
  }
}

/** As the subject of a sentence. */
function whoUses({ pid, account, since, url }: StoreUser): string {
  const facts = [
    pid === undefined ? [] : [`process ${pid}`],
    account === undefined ? [] : [`account ${account}`],
    since === undefined ? [] : [`since ${since}`],
    url === undefined ? [] : [`at ${url}`],
  ].flat()
  return ['another svc serve', facts.length === 0 ? [] : [`(${facts.join(', ')})`]].flat().join(' ')
}

const inUse = (store: string, by: StoreUser): Fault =>
  new Fault('Local', `${whoUses(by)} uses the store ${store}`, {
    hints: [
      'Two of them would tell every fault twice. A second one beside it: svc serve --only health',
      'Or with a store of its own: --store FILE',
      by.pid === undefined ? 'To replace it, stop it first.' : `To replace it, stop it first: kill ${by.pid}`,
    ],
  })
