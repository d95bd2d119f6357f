import { aloneMs, outMs } from './policy.ts'

/**
 * The other nodes as seen by a node that is too old for the schema of the store: it only reads their rows. Times are
 * those of its monotonic clock, in milliseconds.
 */
export type OtherNodes = {
  readonly lookedAt: number
  /** Since when no look has shown a live node. Undefined: the last one has. */
  readonly noneSince: number | undefined
}

export const unknownNodes: OtherNodes = { lookedAt: Number.NEGATIVE_INFINITY, noneSince: undefined }

/**
 * A look has ended. `hasLive`: whether it showed a live node; undefined if the rows cannot be read, which shows none. After a
 * longer time without a look, for example because the process stood still, what it knew no longer holds.
 */
export function afterLook({ lookedAt, noneSince }: OtherNodes, hasLive: boolean | undefined, now: number): OtherNodes {
  if (hasLive) return { lookedAt: now, noneSince: undefined }
  const isContinuous = now - lookedAt < outMs
  return { lookedAt: now, noneSince: (isContinuous ? noneSince : undefined) ?? now }
}

/** Whether it sends by itself: nobody else has for so long. */
export const sendsAlone = ({ lookedAt, noneSince }: OtherNodes, now: number): boolean =>
  noneSince !== undefined && now - lookedAt < outMs && now - noneSince >= aloneMs
