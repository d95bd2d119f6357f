import { setTimeout as pause } from 'node:timers/promises'

/**
 * Waits until something holds, and gives what that is. Throws after `ms`, which is no measure of what
 * is waited for: no machine, however busy, needs as long for what happens at all.
 */
export async function until<T>(holds: () => T | Promise<T>, ms = 15_000, everyMs = 20): Promise<Exclude<T, false>> {
  const end = performance.now() + ms
  for (;;) {
    const value = await holds()
    if (value) return value as Exclude<T, false>
    if (performance.now() > end) throw new Error(`it did not come to this in ${ms / 1_000} s: ${String(holds)}`)
    await pause(everyMs)
  }
}

/** Waits until a peer has no connection left. */
export const hungUp = (peer: { readonly open: () => number | Promise<number> }): Promise<boolean> =>
  until(async () => (await peer.open()) === 0)
