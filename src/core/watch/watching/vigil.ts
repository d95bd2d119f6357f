/**
 * svc confirms its own health after all has been well for this time without a break. Milliseconds, like all times here.
 */
const steadyMs = 60_000
/** No message may wait longer for a receiver. */
const mayWaitMs = 600_000
/** After a longer time without a sample, the process was suspended, and its condition meanwhile is unknown. */
const mayPauseMs = 5_000
/** How often svc pings a dead man's switch, and how soon it tries again if the ping was not accepted. */
const pingEveryMs = 60_000
const pingRetryMs = 10_000

/** The condition of svc at one time. */
export type Condition = {
  /** Whether the schedule runs any monitor. If not, svc monitors nothing. */
  readonly watches: boolean
  /** Whether runs begin in time. */
  readonly keepsUp: boolean
  /** Whether states and notifications are stored. True without a store, where nothing has to be stored. */
  readonly isStored: boolean
  /** Whether no witness answers. */
  readonly isIsolated: boolean
  /** Since when the oldest message has waited for a receiver. Undefined: none waits. */
  readonly waitingSince: number | undefined
}

/** The result of the samples. `now` everywhere: monotonic, as in the schedule. */
export type Vigil = {
  /** Since when all samples have been good. Undefined: the last one was not. */
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

/** Why svc does not monitor as it should. Undefined: it does. */
export function problemOf(condition: Condition, now: number): string | undefined {
  const { watches, keepsUp, isStored, isIsolated, waitingSince } = condition
  if (!watches) return 'no monitor is scheduled'
  if (!keepsUp) return 'the schedule does not keep up'
  if (isIsolated) return 'no witness answers'
  if (!isStored) return 'states or notifications are not stored'
  if (waitingSince !== undefined && now - waitingSince > mayWaitMs) return 'a message has waited for more than 10 min'
  return undefined
}

/** Adds a sample. Call it once a second. */
export function afterSample(vigil: Vigil, condition: Condition, now: number): Vigil {
  const reason = problemOf(condition, now)
  if (reason !== undefined) return { wellSince: undefined, sampledAt: now, reason }
  const stoodStill = now - vigil.sampledAt > mayPauseMs
  return { wellSince: stoodStill ? now : (vigil.wellSince ?? now), sampledAt: now, reason: undefined }
}

/** Whether the last minute was good without a break. */
export const isSteady = ({ wellSince, sampledAt }: Vigil, now: number): boolean =>
  wellSince !== undefined && now - sampledAt <= mayPauseMs && sampledAt - wellSince >= steadyMs

/** When svc pings a dead man's switch next, if it confirms its own health then. */
export type Pinging = { readonly nextAt: number; readonly isUnderWay: boolean }

export const newPinging = (now: number): Pinging => ({ nextAt: now, isUnderWay: false })

export const pingDue = (pinging: Pinging, vigil: Vigil, now: number): boolean =>
  !pinging.isUnderWay && now >= pinging.nextAt && isSteady(vigil, now)

/** `beganAt`: when the request began. */
export const afterPing = (beganAt: number, isAccepted: boolean): Pinging => ({
  nextAt: beganAt + (isAccepted ? pingEveryMs : pingRetryMs),
  isUnderWay: false,
})
