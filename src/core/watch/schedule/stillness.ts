/**
 * Whether this process stood still, because it was stopped, because its machine was, or because a long task kept its loop.
 * Deadlines pass meanwhile although no peer was slow.
 */
export type Stillness = {
  /** The latest sign of life. */
  readonly signAt: number
  /** When the process last began to work again after it had stood still. */
  readonly untilAt: number
}

/** How often the process must show that it works. */
export const beatMs = 250
/** It stood still if it showed nothing for longer than this. */
export const stillMs = 1_000

export const aliveAt = (now: number): Stillness => ({ signAt: now, untilAt: Number.NEGATIVE_INFINITY })

/** The process works now. */
export const showsLife = ({ signAt, untilAt }: Stillness, now: number): Stillness => ({
  signAt: now,
  untilAt: now - signAt > stillMs ? now : untilAt,
})

/** Whether the process stood still at any time since `from`. */
export const stoodStillSince = ({ untilAt }: Stillness, from: number): boolean => untilAt > from
