import { uptime } from 'node:os'
import { performance } from 'node:perf_hooks'
import { afterReading, type ClockVerdict, judgeClock, type StoreClockState, storeTime } from './clock.ts'

/** The clock that decides when something in the store ends. */
export type StoreClock = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Reads the store's clock again. Throws the store's errors. */
  readonly read: () => Promise<void>
  /** Undefined where no clock was compared: a test set the time. */
  readonly verdict: () => ClockVerdict | undefined
  /** Whether the store has a clock of its own, which may differ from that of this machine. */
  readonly isRemote: boolean
}

/** Reads the store's clock. Milliseconds since 1970. */
export type ReadClock = () => Promise<number>

/**
 * The clock of a store. `readRemote`: for a database server, whose clock is read once before this returns. Without it,
 * the store's clock is that of this machine.
 */
export async function storeClock(readRemote: ReadClock | undefined): Promise<StoreClock> {
  let state: StoreClockState | undefined
  const readClock = readRemote ?? (async () => Date.now())
  const read = async (): Promise<void> => {
    const sentAt = performance.now()
    const storeAt = await readClock()
    state = afterReading(state, { sentAt, receivedAt: performance.now(), storeAt, uptime: uptime() * 1_000 })
  }
  await read()
  const elapsed = (): number => performance.now()
  return {
    now: () => (readRemote && state ? storeTime(state, elapsed()) : Date.now()),
    read,
    // The embedded store and this machine have one clock: only a jump can be wrong with it.
    verdict: () => state && judgeClock(state, readRemote ? Date.now() : storeTime(state, elapsed()), elapsed()),
    isRemote: readRemote !== undefined,
  }
}

/** A clock that a test sets. */
export const fixedClock = (now: () => number): StoreClock => ({
  now,
  read: async () => {},
  verdict: () => undefined,
  isRemote: false,
})
