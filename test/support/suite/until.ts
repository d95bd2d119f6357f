import { setTimeout as pause } from 'node:timers/promises'

/**
 * The bound of a wait for something that is to happen, in milliseconds. It only ends a hang: even a busy machine needs
 * less time for anything that happens at all.
 */
export const farMs = 120_000

/** Milliseconds as they pass, for tests of a latency. */
export const wallClock = (): number => performance.now()

/** A clock on which a hundredth of the time passes: by it no healthy server is slow, however busy the machine is. */
export const unhurried = (): number => performance.now() / 100

/** Waits until a condition holds, and returns its value. Throws after `ms`, which does not measure what the test awaits. */
export async function until<T>(holds: () => T | Promise<T>, ms = farMs, everyMs = 20): Promise<Exclude<T, false>> {
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
