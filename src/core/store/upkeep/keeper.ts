import { performance } from 'node:perf_hooks'
import type { StoreState } from '../../protocol/service/service.ts'
import type { Data } from '../data.ts'
import { namesOf, waysToRemove } from '../own-schema.ts'
import { initialUpkeep, next, type Upkeep, type UpkeepEvent, unreadyReason } from './upkeep.ts'

export type KeeperLog = (entry: { readonly level: 'info' | 'warn'; readonly msg: string }) => void

export type Keeper = {
  /** Why the server must not get requests although the store answers. Waits for a proof that is under way. */
  readonly unready: () => Promise<string | undefined>
  readonly state: () => StoreState
  readonly stop: () => void
}

const tickMs = 1_000

/**
 * Looks after the store of a running server until `stop`: see `upkeep.ts`, which decides everything. `data` rejects
 * once the store is closed.
 */
export function keepStore(store: Data, log: KeeperLog): Keeper {
  let state: Upkeep = initialUpkeep(performance.now())
  let stopped = false
  let proof = Promise.resolve()
  const happened = (event: UpkeepEvent): void => {
    if (stopped) return
    const step = next(state, event)
    state = step.state
    for (const effect of step.effects) {
      if (effect.type === 'log') log(effect)
      else if (effect.type === 'sweep') void sweep()
      else proof = prove()
    }
  }
  const compare = (): void => {
    const verdict = store.clock.verdict()
    if (verdict) happened({ type: 'clock compared', verdict })
  }
  let lastNames = ''
  const inspect = async (): Promise<void> => {
    const { altering } = await store.inspect()
    const names = namesOf(altering)
    if (names !== lastNames && names !== '') {
      const hints = waysToRemove(altering).join(' ')
      const msg = `the store has what svc did not make: ${names}: this server goes on without the store until that is removed. ${hints}`
      log({ level: 'warn', msg })
    } else if (names !== lastNames) log({ level: 'info', msg: 'the store has only what svc made: it is used again' })
    lastNames = names
  }
  const sweep = async (): Promise<void> => {
    let reason: string | undefined
    try {
      await inspect()
      await store.clock.read()
      compare()
      const [newest] = await store.audit.list({ limit: 1 })
      happened({ type: 'audit read', newest: newest?.id ?? 0, lost: await store.audit.lost() })
      if (state.clock?.sweeps !== false) await store.sweep(store.clock.now())
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error)
    }
    happened({ type: 'sweep ended', at: performance.now(), reason })
  }
  const prove = async (): Promise<void> => {
    const beganAt = performance.now()
    let reason: string | undefined
    try {
      await store.proveWrites()
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error)
    }
    happened({ type: 'proof ended', beganAt, at: performance.now(), reason })
  }
  store.onWrite((reason) => {
    happened(reason === undefined ? { type: 'proof wanted' } : { type: 'write failed', at: performance.now(), reason })
  })
  compare()
  const timer = setInterval(() => {
    compare()
    happened({ type: 'tick', at: performance.now() })
  }, tickMs)
  timer.unref()
  return {
    unready: async () => {
      happened({ type: 'proof wanted' })
      await proof
      compare()
      return unreadyReason(state)
    },
    state: () => ({
      clockSkewMs: store.clock.isRemote ? store.clock.verdict()?.skewMs : undefined,
      sweepFailures: state.sweepFailures,
      writable: state.writeFault === undefined,
    }),
    stop: () => {
      stopped = true
      clearInterval(timer)
    },
  }
}
