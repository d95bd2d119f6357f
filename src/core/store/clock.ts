import { uptime } from 'node:os'
import { performance } from 'node:perf_hooks'

/**
 * The estimate of the store's clock. Everything that ends (sessions, tokens, keys, locks) is stored as an instant, and
 * several machines may use the store: all of them go by the store's clock, so that the wrong clock of one machine ends
 * nothing early on the others (W12). The functions of this file only compute; `store-clock.ts` reads the clocks.
 *
 * Instants are milliseconds since 1970. Elapsed times are milliseconds of a clock that nobody sets.
 */

/** One query of the store's clock. */
export type StoreClockReading = {
  /** Elapsed time when the query was sent and when its answer arrived. */
  readonly sentAt: number
  readonly receivedAt: number
  readonly storeAt: number
  /** Elapsed time since the machine started. Unlike the other two, it includes the time that the machine slept. */
  readonly uptime: number
}

export type StoreClockState = {
  /** The store's clock showed `storeAt` when this much time had elapsed, at most `errorMs` earlier or later. */
  readonly elapsedAt: number
  readonly storeAt: number
  readonly errorMs: number
  /** The store's clock minus the uptime, when svc started. */
  readonly offset: number
  /** By how much that difference has changed since then. Positive: somebody set the clock forward. */
  readonly jumpMs: number
}

/** Milliseconds of a difference between this machine and the store. */
export const warnsAboveMs = 30_000
/** The life of an access token (T3): beyond it, no token would be worth what its answer says. */
export const unreadyAboveMs = 15 * 60_000
/** A clock that was set by more than this deletes nothing. */
export const sweepsBelowMs = 3_600_000
/**
 * The error of an old reading grows by this share of the time since then, because two clocks never run at the same speed.
 */
const drift = 0.0005

/** The state after another reading. A reading with a long round trip does not replace a better one that it confirms. */
export function afterReading(state: StoreClockState | undefined, reading: StoreClockReading): StoreClockState {
  const { sentAt, receivedAt, storeAt, uptime } = reading
  const errorMs = (receivedAt - sentAt) / 2
  const elapsedAt = sentAt + errorMs
  const offset = state?.offset ?? storeAt - uptime
  const jumpMs = storeAt - uptime - offset
  if (state) {
    const expected = storeTime(state, elapsedAt)
    const expectedErrorMs = state.errorMs + drift * Math.abs(elapsedAt - state.elapsedAt)
    const confirms = Math.abs(expected - storeAt) <= errorMs + expectedErrorMs
    if (confirms && expectedErrorMs <= errorMs) return { ...state, jumpMs }
  }
  return { elapsedAt, storeAt, errorMs, offset, jumpMs }
}

/** The time on the store's clock when this much time has elapsed. */
export const storeTime = ({ storeAt, elapsedAt }: StoreClockState, elapsed: number): number =>
  Math.round(storeAt + (elapsed - elapsedAt))

export type ClockVerdict = {
  /** Positive: this machine is ahead. Milliseconds. */
  readonly skewMs: number
  /** For the log and for whoever asks why the server is not ready. Undefined: the clocks agree. */
  readonly warning: string | undefined
  readonly ready: boolean
  /** Whether expired rows may be deleted. */
  readonly sweeps: boolean
}

/** `wallAt`: what this machine's clock shows when this much time has elapsed. */
export function judgeClock(state: StoreClockState, wallAt: number, elapsed: number): ClockVerdict {
  const skewMs = wallAt - storeTime(state, elapsed)
  const sweeps = Math.abs(state.jumpMs) <= sweepsBelowMs
  const differs = Math.abs(skewMs) > warnsAboveMs
  const warning = differs
    ? `the clock of this machine is ${difference(skewMs)} the clock of the store`
    : sweeps
      ? undefined
      : `the clock of the store was set ${state.jumpMs > 0 ? 'forward' : 'back'} by ${span(state.jumpMs)}: no expired row is deleted until it is set back or svc serve restarts`
  return { skewMs, warning, ready: Math.abs(skewMs) <= unreadyAboveMs, sweeps }
}

const difference = (ms: number): string => `${span(ms)} ${ms > 0 ? 'ahead of' : 'behind'}`

const units = [
  [86_400_000, 'days'],
  [3_600_000, 'hours'],
  [60_000, 'minutes'],
  [1_000, 'seconds'],
] as const

/** In the largest unit that gives at least two. */
function span(ms: number): string {
  const length = Math.abs(ms)
  const [unit, name] = units.find(([one]) => Math.round(length / one) >= 2) ?? [1_000, 'seconds']
  return `${Math.round(length / unit)} ${name}`
}

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
