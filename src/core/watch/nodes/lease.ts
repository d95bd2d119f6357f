import { aloneMs, outMs } from './policy.ts'
import type { RenewalAnswer } from './table.ts'
import type { NodeRow } from './types.ts'

/** The local state of a node's own row. Times are those of the monotonic clock of the node, in milliseconds. */
export type Lease = {
  readonly epoch: number | undefined
  /** When the last renewal was sent that succeeded. The store's time of it is later. */
  readonly sentAt: number
  /** The rows of all nodes as of then. */
  readonly rows: readonly NodeRow[]
  /** Since when attempts have failed. Silence alone proves nothing: the process may have stood still. */
  readonly failingSince: number | undefined
  /** Another process renews the row of this name. */
  readonly isTaken: boolean
}

/**
 * - `member`: runs its share, stores and sends.
 * - `joining`: has just started or gone on after a standstill, and asks the store before it does anything.
 * - `cut off`: does not reach the store. It runs everything, because nobody can say who else does, and stores nothing.
 * - `alone`: has been cut off for so long that it also sends.
 * - `displaced`: another process has its name. It runs nothing that others could run.
 */
export type Mode = 'member' | 'joining' | 'cut off' | 'alone' | 'displaced'

export const noLease: Lease = {
  epoch: undefined,
  sentAt: Number.NEGATIVE_INFINITY,
  rows: [],
  failingSince: undefined,
  isTaken: false,
}

/**
 * The store has answered a renewal that was sent at `sentAt`. With another epoch than before, everything that the node knows
 * of monitors of the network may be out of date.
 */
export function afterRenewal(lease: Lease, answer: RenewalAnswer, sentAt: number): Lease {
  if (answer.what === 'taken') return { ...noLease, rows: answer.rows, isTaken: true }
  // An earlier renewal that is answered late.
  if (sentAt < lease.sentAt) return lease
  return { epoch: answer.epoch, sentAt, rows: answer.rows, failingSince: undefined, isTaken: false }
}

/** A renewal failed, or had no answer in time: the store may have it or not. */
export const afterFailure = (lease: Lease, now: number): Lease => ({
  ...lease,
  failingSince: lease.failingSince ?? now,
})

/** The process stood still: its view of the time no longer holds. */
export const afterStandstill = (lease: Lease): Lease => ({
  ...lease,
  sentAt: Number.NEGATIVE_INFINITY,
  failingSince: undefined,
})

export function modeOf({ epoch, sentAt, failingSince, isTaken }: Lease, now: number): Mode {
  if (epoch !== undefined && now - sentAt < outMs) return 'member'
  if (failingSince === undefined) return isTaken ? 'displaced' : 'joining'
  return now - failingSince < aloneMs ? 'cut off' : 'alone'
}
