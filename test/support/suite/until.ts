import { setTimeout as pause } from 'node:timers/promises'

/**
 * Waits until a condition holds, and returns its value. Throws after `ms`, which does not measure what
 * the test waits for: even a busy machine needs less time for anything that happens at all.
 */
export async function until<T>(holds: () => T | Promise<T>, ms = 15_000, everyMs = 20): Promise<Exclude<T, false>> {
  const end = performance.now() + ms
  for (;;) {
    const value = await holds()
    if (value) return value as Exclude<T, false>
    if (performance.now() > end) throw new Error(`the condition did not hold within ${ms / 1_000} s: ${String(holds)}`)
    await pause(everyMs)
  }
}

/** Waits until a peer has no connection left. */
export const hungUp = (peer: { readonly open: () => number | Promise<number> }): Promise<boolean> =>
  until(async () => (await peer.open()) === 0)
