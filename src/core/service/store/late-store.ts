import { setTimeout as wait } from 'node:timers/promises'
import { type AlteredStore, Fault, isStoreFailure, StoreOutage } from '../../base/errors.ts'
import type { KeeperLog } from '../../store/index.ts'

/** Milliseconds between two attempts. */
const tryAgainMs = 2_000

/**
 * Opens the store of `svc serve` that did not answer at the start (W16): tries again until `attempt` resolves or `signal`
 * aborts. `outage`: the reason at the start, which the log has. `refuse` gets what callers are answered until then, which does
 * not say where the store is. The log gets each new reason: a wrong password, for example, is known only when the server
 * answers, and may be corrected meanwhile.
 */
export async function openLater({
  outage,
  attempt,
  refuse,
  signal,
  log,
}: {
  readonly outage: StoreOutage | AlteredStore
  readonly attempt: () => Promise<void>
  readonly refuse: (fault: Fault) => void
  readonly signal: AbortSignal
  readonly log: KeeperLog
}): Promise<void> {
  let lastReason = reasonOf(outage)
  for (let isOpen = false; !isOpen; ) {
    try {
      await wait(tryAgainMs, undefined, { signal })
      await attempt()
      isOpen = true
    } catch (error) {
      if (signal.aborted) return
      refuse(error instanceof StoreOutage ? new StoreOutage(error.why, {}) : notUsed())
      const reason = reasonOf(error)
      if (reason !== lastReason) log({ level: 'warn', msg: `The store is still not used: ${reason}` })
      lastReason = reason
    }
  }
}

export const notUsed = (): Fault => new StoreOutage('is not used: the log of svc serve has the reason', {})

function reasonOf(error: unknown): string {
  if (error instanceof Fault) return [error.message, ...(error.details.hints ?? [])].join('. ')
  if (isStoreFailure(error)) return (error as Error).message
  return `svc failed unexpectedly: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}
