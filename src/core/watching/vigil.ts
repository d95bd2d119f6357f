/** svc vouches for itself after it has been well for this time without a break. Milliseconds, as all times here. */
const wellMs = 60_000
/** Nothing may wait longer for a receiver. */
const mayWaitMs = 600_000
/** A longer time without a sample means that the process stood still, so that nobody knows how it was. */
const mayPauseMs = 5_000
/** How often a dead man's switch is told, and how soon again if it did not answer. */
const pingEveryMs = 60_000
const pingRetryMs = 10_000

/** How svc is at one time. */
export type Condition = {
  /** Whether the schedule runs any monitor. Without one, svc watches nothing. */
  readonly watches: boolean
  /** Whether runs begin in time. */
  readonly keepsUp: boolean
  /** Whether states and notifications are stored. True without a store, where nothing is to be stored. */
  readonly isStored: boolean
  /** Whether no witness answers. */
  readonly isIsolated: boolean
  /** Since when the oldest message waits for a receiver. Undefined: none does. */
  readonly waitingSince: number | undefined
}

/** What samples have shown. `now` everywhere: monotonic, as the schedule has it. */
export type Vigil = {
  /** Since when all samples are good. Undefined: the last one was not. */
  readonly wellSince: number | undefined
  readonly sampledAt: number
  /** Why the last sample was not good, or that there is none yet. */
  readonly reason: string | undefined
}

export const newVigil = (now: number): Vigil => ({
  wellSince: undefined,
  sampledAt: now,
  reason: 'svc has just started',
})

/** Why svc does not watch as it should. Undefined: it does. */
export function whyNot(condition: Condition, now: number): string | undefined {
  const { watches, keepsUp, isStored, isIsolated, waitingSince } = condition
  if (!watches) return 'no monitor is scheduled'
  if (!keepsUp) return 'the schedule does not keep up'
  if (isIsolated) return 'no witness answers'
  if (!isStored) return 'states or notifications are not stored'
  if (waitingSince !== undefined && now - waitingSince > mayWaitMs) return 'a message has waited for more than 10 min'
  return undefined
}

/** To be called once a second. */
export function afterSample(vigil: Vigil, condition: Condition, now: number): Vigil {
  const reason = whyNot(condition, now)
  if (reason !== undefined) return { wellSince: undefined, sampledAt: now, reason }
  const stoodStill = now - vigil.sampledAt > mayPauseMs
  return { wellSince: stoodStill ? now : (vigil.wellSince ?? now), sampledAt: now, reason: undefined }
}

/** Whether the last minute was good, all of it. */
export const vouches = ({ wellSince, sampledAt }: Vigil, now: number): boolean =>
  wellSince !== undefined && now - sampledAt <= mayPauseMs && sampledAt - wellSince >= wellMs

/** When a dead man's switch is told next, if svc vouches for itself then. */
export type Pinging = { readonly nextAt: number; readonly isUnderWay: boolean }

export const newPinging = (now: number): Pinging => ({ nextAt: now, isUnderWay: false })

export const pingDue = (pinging: Pinging, vigil: Vigil, now: number): boolean =>
  !pinging.isUnderWay && now >= pinging.nextAt && vouches(vigil, now)

/** `beganAt`: when the request began. */
export const afterPing = (beganAt: number, isAccepted: boolean): Pinging => ({
  nextAt: beganAt + (isAccepted ? pingEveryMs : pingRetryMs),
  isUnderWay: false,
})
