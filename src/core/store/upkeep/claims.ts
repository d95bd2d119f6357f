import type { Claim, StoreUser } from '../serve-lock.ts'

/**
 * The wait of a `svc serve` for a store that another one uses (W30). `nextClaim` decides, and the driver tries and waits.
 * Times are milliseconds of a clock that nobody sets.
 */
export type ClaimWait = {
  readonly beganAt: number
  /** When the log was told last. */
  readonly saidAt: number
  readonly isLong: boolean
}

export type ClaimStep =
  /** `unlocked`: why another server would not notice this one. */
  | {
      readonly do: 'use the store'
      readonly release?: (() => void) | undefined
      readonly unlocked?: string | undefined
    }
  | { readonly do: 'end'; readonly by: StoreUser }
  | {
      readonly do: 'wait'
      readonly ms: number
      readonly wait: ClaimWait
      readonly by: StoreUser
      /** Whether the log is told. */
      readonly says: boolean
    }

/** A server that was told to stop needs up to 10 s (S9). */
export const handOverMs = 15_000
const lookMs = 250
export const lookLongMs = 5_000
export const sayAgainMs = 60_000

/**
 * The step of a server after an attempt to claim its store. Somebody at a terminal learns that another one has it, and
 * decides; a service goes on trying, because its manager does not start it again after exit code 12.
 */
export function nextClaim(before: ClaimWait | undefined, claim: Claim, at: number, isOnTerminal: boolean): ClaimStep {
  if (claim.is === 'held') return { do: 'use the store', release: claim.release }
  if (claim.is === 'impossible') return { do: 'use the store', unlocked: claim.why }
  const { by } = claim
  const wait = before ?? { beganAt: at, saidAt: at, isLong: false }
  if (at - wait.beganAt < handOverMs) return { do: 'wait', ms: lookMs, wait, by, says: before === undefined }
  if (isOnTerminal) return { do: 'end', by }
  const says = !wait.isLong || at - wait.saidAt >= sayAgainMs
  return { do: 'wait', ms: lookLongMs, wait: { ...wait, saidAt: says ? at : wait.saidAt, isLong: true }, by, says }
}
