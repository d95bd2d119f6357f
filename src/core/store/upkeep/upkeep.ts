import type { ClockVerdict } from '../clock.ts'

/**
 * The work of a server for its store beside the answers to requests: it deletes expired rows, compares the clocks, and
 * reports what is wrong. `next` decides, and `keeper.ts` does it. `at` is elapsed time in milliseconds of a clock that
 * nobody sets.
 */
export type Upkeep = {
  readonly sweepDueAt: number
  /** Undefined before the first comparison. */
  readonly clock: ClockVerdict | undefined
  /** The reason of the last failure, until a sweep succeeds. */
  readonly sweepFault: { readonly reason: string; readonly loggedAt: number } | undefined
  readonly sweepFailures: number
  /** Undefined while writes succeed. */
  readonly writeFault: WriteFault | undefined
  /** The number of the newest audit entry at the last look. */
  readonly newestEntry: number
}

type WriteFault = {
  readonly reason: string
  /** When a write failed last. */
  readonly failedAt: number
  readonly proofDueAt: number
  /** Whether a proof has failed since writes fail: then another write that succeeds is too small to prove anything. */
  readonly hasFailedProof: boolean
}

export type UpkeepEvent =
  | { readonly type: 'tick'; readonly at: number }
  | { readonly type: 'clock compared'; readonly verdict: ClockVerdict }
  | { readonly type: 'sweep ended'; readonly at: number; readonly reason?: string | undefined }
  /**
   * `newest`: the number of the newest audit entry, 0 when there is none. It only grows, except in a store that was set back.
   * `lost`: the numbers of entries that this server has written and the store no longer has.
   */
  | { readonly type: 'audit read'; readonly newest: number; readonly lost: readonly number[] }
  | { readonly type: 'write failed'; readonly at: number; readonly reason: string }
  /** A write has succeeded, or somebody asks whether the server is ready. */
  | { readonly type: 'proof wanted' }
  | {
      readonly type: 'proof ended'
      readonly beganAt: number
      readonly at: number
      readonly reason?: string | undefined
    }

export type UpkeepEffect =
  | { readonly type: 'sweep' }
  /** Commit as much as a sign-in writes. */
  | { readonly type: 'prove writes' }
  | { readonly type: 'log'; readonly level: 'info' | 'warn'; readonly msg: string }

export type UpkeepStep = { readonly state: Upkeep; readonly effects: readonly UpkeepEffect[] }

/** Milliseconds. Sealed values live for only ten seconds (T4). */
export const sweepEveryMs = 10_000
/** The same failure is logged again after this time. Milliseconds. */
export const logAgainMs = 600_000

/** A write may have failed because the store was busy for a moment. Milliseconds. */
export const firstProofMs = 1_000
export const proveEveryMs = 5_000

export const initialUpkeep = (at: number): Upkeep => ({
  sweepDueAt: at + sweepEveryMs,
  clock: undefined,
  sweepFault: undefined,
  sweepFailures: 0,
  writeFault: undefined,
  newestEntry: 0,
})

export function next(state: Upkeep, event: UpkeepEvent): UpkeepStep {
  switch (event.type) {
    case 'tick':
      return due(state, event.at)
    case 'clock compared':
      return { state: { ...state, clock: event.verdict }, effects: clockLines(state.clock, event.verdict) }
    case 'sweep ended':
      return swept({ ...state, sweepDueAt: event.at + sweepEveryMs }, event.at, event.reason)
    case 'audit read':
      return { state: { ...state, newestEntry: event.newest }, effects: setBack(state.newestEntry, event) }
    case 'write failed':
      return writeFailed(state, event.at, event.reason)
    case 'proof wanted':
      // The store may be sound again: no need to wait for the next attempt.
      if (state.writeFault === undefined || state.writeFault.hasFailedProof) return { state, effects: [] }
      if (state.writeFault.proofDueAt === never) return { state, effects: [] }
      return {
        state: { ...state, writeFault: { ...state.writeFault, proofDueAt: never } },
        effects: [{ type: 'prove writes' }],
      }
    case 'proof ended':
      return proved(state, event)
  }
}

/** The work that begins now. Its end sets the time of the next one. */
function due(state: Upkeep, at: number): UpkeepStep {
  const { writeFault } = state
  const sweeps = at >= state.sweepDueAt
  const proves = writeFault !== undefined && at >= writeFault.proofDueAt
  return {
    state: {
      ...state,
      sweepDueAt: sweeps ? never : state.sweepDueAt,
      writeFault: proves ? { ...writeFault, proofDueAt: never } : writeFault,
    },
    effects: [...(sweeps ? [{ type: 'sweep' } as const] : []), ...(proves ? [{ type: 'prove writes' } as const] : [])],
  }
}

const never = Number.POSITIVE_INFINITY

function writeFailed(state: Upkeep, at: number, reason: string): UpkeepStep {
  const { writeFault: before } = state
  const proofDueAt = before?.proofDueAt ?? at + firstProofMs
  const effects =
    before?.reason === reason
      ? []
      : [{ type: 'log', level: 'warn', msg: `${reason}; this server is not ready until a write succeeds` } as const]
  const hasFailedProof = before?.hasFailedProof ?? false
  return { state: { ...state, writeFault: { reason, failedAt: at, proofDueAt, hasFailedProof } }, effects }
}

/** A success proves nothing if another write has failed since the proof began. */
function proved(
  state: Upkeep,
  { beganAt, at, reason }: Extract<UpkeepEvent, { readonly type: 'proof ended' }>,
): UpkeepStep {
  if (reason !== undefined) return postponed(writeFailed(state, at, reason), at)
  if (state.writeFault === undefined) return { state, effects: [] }
  if (state.writeFault.failedAt >= beganAt) return postponed({ state, effects: [] }, at)
  return {
    state: { ...state, writeFault: undefined },
    effects: [{ type: 'log', level: 'info', msg: 'the store can be written again' }],
  }
}

const postponed = ({ state, effects }: UpkeepStep, at: number): UpkeepStep => ({
  state: {
    ...state,
    writeFault: state.writeFault && { ...state.writeFault, proofDueAt: at + proveEveryMs, hasFailedProof: true },
  },
  effects,
})

/** A line when a difference begins or ends, and when it comes to matter for readiness or for sweeps. */
function clockLines(before: ClockVerdict | undefined, now: ClockVerdict): readonly UpkeepEffect[] {
  if (now.warning === undefined) {
    return before?.warning === undefined
      ? []
      : [{ type: 'log', level: 'info', msg: 'the clocks of this machine and of the store agree again' }]
  }
  const same = before?.warning !== undefined && before.ready === now.ready && before.sweeps === now.sweeps
  if (same) return []
  const effect = now.ready ? '' : '; this server is not ready'
  return [{ type: 'log', level: 'warn', msg: `${now.warning}${effect}` }]
}

/**
 * A database restored to an earlier moment, or a standby that had not received everything, answers like a sound store. The
 * newest number alone does not show a loss: the store may have written other entries since, with higher numbers. Nor does it
 * show what this server has written since the last look.
 */
function setBack(
  before: number,
  { newest, lost }: Extract<UpkeepEvent, { readonly type: 'audit read' }>,
): readonly UpkeepEffect[] {
  const isBehind = newest < before
  const own = isBehind ? lost.filter((id) => id <= newest || id > before) : lost
  const [first, last] = [own[0], own.at(-1)]
  const numbers = first === last ? `${first}` : `${first} to ${last}`
  const whose = isBehind ? 'those' : 'the audit entries'
  const gone = [
    ...(isBehind ? [`audit entries ${newest + 1} to ${before}`] : []),
    ...(own.length > 0 ? [`${own.length} of ${whose} that this server has written (${numbers})`] : []),
  ]
  if (gone.length === 0) return []
  const msg = `the store is an earlier state of itself, as after a restore or a failover: ${gone.join(' and ')}, and the changes that they name, are gone`
  return [{ type: 'log', level: 'warn', msg }]
}

function swept(state: Upkeep, at: number, reason: string | undefined): UpkeepStep {
  const { sweepFault: before } = state
  if (reason === undefined) {
    const msg = 'expired rows are deleted again'
    return { state: { ...state, sweepFault: undefined }, effects: before ? [{ type: 'log', level: 'info', msg }] : [] }
  }
  const sweepFailures = state.sweepFailures + 1
  if (before?.reason === reason && at - before.loggedAt < logAgainMs)
    return { state: { ...state, sweepFailures }, effects: [] }
  const msg = `expired rows cannot be deleted: ${reason}`
  return {
    state: { ...state, sweepFailures, sweepFault: { reason, loggedAt: at } },
    effects: [{ type: 'log', level: 'warn', msg }],
  }
}

/** Why the server must not get requests although the store answers. Undefined if it may. */
export function unreadyReason({ clock, writeFault }: Upkeep): string | undefined {
  return writeFault?.reason ?? (clock?.ready === false ? clock.warning : undefined)
}
