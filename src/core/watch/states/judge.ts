import type { ExecutionMode } from '../../protocol/index.ts'
import { covers, depths } from '../schedule/index.ts'
import {
  flapCalmMs,
  flapDownMs,
  flapWindowMs,
  isRetried,
  isUnreachable,
  lookAgainMs,
  rank,
  recoverMs,
  repeatMs,
  retryAfterMs,
  unobservedIntervals,
  unobservedMinMs,
  worse,
} from './policy.ts'
import type { CheckLevel, FaultInDoubt, Observed, RunOfStates, SubjectState, Verdict, WatchedMonitor } from './types.ts'

/** Another run, that begins at this time or later and is at least this deep. */
type Ask = {
  readonly type: 'ask'
  readonly depth: ExecutionMode
  readonly at: number
  readonly repeatsRefused?: boolean
}

/** An effect of a verdict, besides the new state. */
export type Judgement =
  | Ask
  /** The first bad verdict of a fault. */
  | { readonly type: 'doubt' }
  /** A fault is over that was never confirmed. */
  | { readonly type: 'blip'; readonly at: number; readonly level: CheckLevel; readonly doubt: FaultInDoubt }
  /** Whether a fault too many is that of the line, nobody knows yet. */
  | { readonly type: 'witness' }
  /** There is a verdict again. */
  | { readonly type: 'observed'; readonly message: string }

export type Judged = { readonly state: SubjectState; readonly effects: readonly Judgement[] }

/** The rules by which a verdict is judged. */
export type JudgeRules = Pick<WatchedMonitor, 'confirmMs' | 'flapping' | 'every' | 'fingerprint'> & {
  /** Whether the line of this machine was proved by a try that began after this time. */
  readonly isLineProved: (since: number) => boolean
  /** Whether no other node may still say that it reaches the peer. */
  readonly isAgreed: boolean
}

type Run = Pick<RunOfStates, 'depth' | 'beganAt' | 'endedAt'>

/** A check that no run has reported before. */
export const newSubject = ({ depth, message }: Verdict, at: number): SubjectState => ({
  level: 'ok',
  levelSince: at,
  confirmedAt: at,
  message,
  checkDepth: depth,
  depth,
  faults: [],
  isFlapping: false,
  blips: 0,
  observedAt: at,
  missing: 0,
})

/** Takes one verdict into account. Only time confirms, not count: callers may run a monitor as often as they like. */
export function judge(before: SubjectState, verdict: Verdict, run: Run, rules: JudgeRules): Judged {
  const { level, fault, message } = verdict
  if (level === undefined) return withoutVerdict(before, verdict, run, rules)
  const { beganAt } = run
  // The same observation once more, or one that is older than what is known.
  if (before.latest && beganAt <= before.latest.at) return { state: before, effects: [] }
  if (before.isRestored) return judge(goneOn(before, beganAt, rules), verdict, run, rules)
  if (isTooShallow(before, level, run.depth)) return lookAgain({ ...before, isReached: true }, run)
  if (isStillOk(before, level)) return { state: stillOk(before, verdict, beganAt), effects: noEffects }
  const state: SubjectState = {
    ...before,
    checkDepth: verdict.depth,
    missing: 0,
    reason: undefined,
    observedAt: beganAt,
    unobservedSince: undefined,
    isReached: remainsReached(before, level, run.depth),
    ...newsOf(before, level, beganAt),
    lastBad: level === 'ok' ? before.lastBad : { level, fault, message },
    latest: {
      level,
      at: beganAt,
      since: before.latest?.level === level ? before.latest.since : beganAt,
      fault,
    },
  }
  const observed: Judgement[] = before.unobservedSince === undefined ? [] : [{ type: 'observed', message }]
  const step =
    rank(level) > rank(before.level)
      ? worsened(state, { level, fault, message, isHeld: verdict.isHeld === true }, run, rules)
      : rank(level) < rank(before.level)
        ? improved(state, { level, fault, message }, run)
        : unchanged(state, { level, fault, message }, run, rules)
  const next = flapped(step.state, { at: beganAt, message }, rules)
  const witness: readonly Judgement[] = waitsForLine(next, rules) ? [{ type: 'witness' }] : []
  return { state: next, effects: [...observed, ...step.effects, ...witness] }
}

const noEffects: readonly Judgement[] = []

/** Whether a check was ok, nothing is in doubt about it, and it is ok again: nearly all verdicts are such. */
const isStillOk = (
  { level: before, latest, doubt, unobservedSince, faults, isFlapping }: SubjectState,
  level: CheckLevel,
) =>
  level === 'ok' &&
  before === 'ok' &&
  latest?.level === 'ok' &&
  doubt === undefined &&
  unobservedSince === undefined &&
  faults.length === 0 &&
  !isFlapping

/** The same as `judge` says of such a verdict, in one step. */
const stillOk = (before: SubjectState, { depth, message, fault }: Verdict, beganAt: number): SubjectState => ({
  ...before,
  message,
  checkDepth: depth,
  depth,
  healing: undefined,
  latest: { level: 'ok', at: beganAt, since: before.latest?.since ?? beganAt, fault },
  observedAt: beganAt,
  reason: undefined,
  missing: 0,
  looked: undefined,
  isReached: undefined,
})

/** A run that could not look proves nothing. If it was to confirm a fault, another one does. */
function withoutVerdict(before: SubjectState, { reason }: Verdict, { depth, endedAt }: Run, rules: JudgeRules): Judged {
  const { doubt, level, observedAt } = before
  // While the sign-in pauses, the refusal is known.
  const isExplained = reason === 'remembered' && (level !== 'ok' || doubt !== undefined)
  const state = { ...before, reason, observedAt: isExplained ? Math.max(observedAt, endedAt) : observedAt }
  const isTransient = reason === 'starved' || reason === 'budget'
  if (!doubt || !isTransient || endedAt < (doubt.failed ?? doubt.warning) + rules.confirmMs)
    return { state, effects: [] }
  return repeated(state, doubt, depth, endedAt)
}

/** Asks for one more run, but for no second one before that has begun: callers may look many times a second. */
function repeated(state: SubjectState, doubt: FaultInDoubt, depth: ExecutionMode, endedAt: number): Judged {
  const at = endedAt + repeatMs
  if (endedAt < (doubt.repeatsAt ?? Number.NEGATIVE_INFINITY)) return { state: { ...state, doubt }, effects: [] }
  return { state: { ...state, doubt: { ...doubt, repeatsAt: at } }, effects: [{ type: 'ask', depth, at }] }
}

/**
 * A fault in doubt, or a recovery, goes on with the first run after a start. After a pause of three intervals it begins
 * anew, because svc did not look for too long for both runs to show one fault, and under other settings, because the first
 * run proves nothing of them.
 */
function goneOn(state: SubjectState, beganAt: number, { every, fingerprint }: JudgeRules): SubjectState {
  const { latest, depth, settings } = state
  const isLate = latest === undefined || beganAt - latest.at >= waitsForMs(every, depth)
  if (isLate || settings !== fingerprint)
    return { ...state, isRestored: undefined, doubt: undefined, healing: undefined }
  const { doubt } = state
  // Nobody looked since: the answer of the last run counts as one of just now.
  const answered =
    doubt?.answered && doubt.answered.at >= latest.at ? { ...doubt.answered, at: beganAt } : doubt?.answered
  return { ...state, isRestored: undefined, doubt: doubt && { ...doubt, answered } }
}

/** Milliseconds for which a first run waits for the second, over a restart. */
function waitsForMs(every: WatchedMonitor['every'], depth: ExecutionMode): number {
  const intervalMs = intervalAt(every, depth)
  return Math.min(unobservedMinMs, unobservedIntervals * intervalMs)
}

/** The milliseconds from one run of the schedule to the next that shows what a run at this depth shows. */
export function intervalAt(every: WatchedMonitor['every'], depth: ExecutionMode): number {
  const all = depths.flatMap((one) => (covers(one, depth) ? (every[one] ?? []) : []))
  return Math.min(Number.POSITIVE_INFINITY, ...all)
}

/** The runs that were still to come for what waits for its second run. */
export function asksAfterStart({ doubt, healing, depth }: SubjectState, confirmMs: number): readonly Ask[] {
  if (doubt) {
    return [lastAsk({ fault: doubt.fault, depth, at: (doubt.failed ?? doubt.warning) + confirmMs })]
  }
  return healing ? [{ type: 'ask', depth, at: healing.since + recoverMs }] : []
}

/** The level that a subject has or may have. */
const suspected = ({ level, doubt }: SubjectState): CheckLevel =>
  doubt === undefined ? level : worse(level, doubt.failed === undefined ? 'warning' : 'failed')

/** Whether a run is healthier than a fault that only deeper runs have shown. */
const isTooShallow = (state: SubjectState, level: CheckLevel, depth: ExecutionMode): boolean =>
  rank(level) < rank(suspected(state)) && !covers(depth, state.depth)

/** A fault that shallower runs do not show: one that they show again is another one. */
const remainsReached = (before: SubjectState, level: CheckLevel, run: ExecutionMode): true | undefined => {
  const isFaulty = before.level !== 'ok' || before.doubt !== undefined
  return before.isReached && isFaulty && (level === 'ok' || covers(run, before.depth)) ? true : undefined
}

/** The fault may be over: a run at its depth decides. The pauses grow while it stands. */
function lookAgain(state: SubjectState, { beganAt, endedAt }: Run): Judged {
  const { looked } = state
  const dueAt = looked === undefined ? beganAt : looked.at + lookAgainMs * 2 ** Math.min(looked.times, 6)
  if (beganAt < dueAt) return { state, effects: [] }
  return {
    state: { ...state, looked: { at: beganAt, times: (looked?.times ?? 0) + 1 } },
    effects: [{ type: 'ask', depth: state.depth, at: endedAt }],
  }
}

/** No limit of faults is higher. */
const mostFaults = 1_000

/** The faults of the last hour, with one that begins now. */
function newsOf({ latest, faults }: SubjectState, level: CheckLevel, at: number): Pick<SubjectState, 'faults'> {
  const recent = faults.filter((one) => one > at - flapWindowMs)
  const begins = level !== 'ok' && (latest === undefined || latest.level === 'ok')
  return { faults: begins ? [...recent, at].slice(-mostFaults) : recent }
}

type Worse = Observed & { readonly isHeld: boolean }

/** Where nobody looked for longer than a confirmation takes, the next bad run shows another fault. */
function worsened(state: SubjectState, observed: Worse, run: Run, rules: JudgeRules): Judged {
  const { doubt, blips } = state
  if (doubt?.hiddenAt === undefined) return doubted(state, observed, run, rules)
  const { state: next, effects } = doubted({ ...state, doubt: undefined, blips: blips + 1 }, observed, run, rules)
  const level: CheckLevel = doubt.failed === undefined ? 'warning' : 'failed'
  return { state: next, effects: [{ type: 'blip', at: run.beganAt, level, doubt }, ...effects] }
}

function doubted(
  state: SubjectState,
  { level, fault, message, isHeld }: Worse,
  { depth, beganAt, endedAt }: Run,
  { confirmMs, isLineProved, isAgreed }: JudgeRules,
): Judged {
  const { doubt: before } = state
  const isFirst = (level === 'failed' ? before?.failed : before?.warning) === undefined
  const doubt: FaultInDoubt = {
    warning: before?.warning ?? beganAt,
    failed: level === 'failed' ? (before?.failed ?? beganAt) : undefined,
    fault,
    message,
    mild: level === 'warning' ? message : before?.mild,
    answered: level === 'failed' && !isUnreachable(fault) ? { at: beganAt, fault, message } : before?.answered,
    repeatsAt: before?.repeatsAt,
  }
  const isNew = before === undefined && state.level === 'ok'
  const next: SubjectState = {
    ...state,
    depth: isNew || before === undefined ? depth : shownAt(state, depth),
    looked: isNew ? undefined : lookedAfter(state, depth),
    doubt,
    healing: undefined,
    turning: undefined,
  }
  const holdMs = isHeld ? 0 : confirmMs
  const lasts = (since: number | undefined): since is number => since !== undefined && beganAt - since >= holdMs
  const reached = lasts(doubt.failed) ? 'failed' : lasts(doubt.warning) ? 'warning' : undefined
  if (reached !== undefined && rank(reached) > rank(state.level)) {
    const since = (reached === 'failed' ? doubt.failed : doubt.warning) ?? beganAt
    const isHeldBack = reached === 'failed' && !isAgreed
    if (!isHeldBack && (!isRetried(fault) || isLineProved(since))) {
      const isWhole = reached === level
      const verdict = shownBy(doubt, beganAt, confirmMs)
      return {
        state: {
          ...next,
          level: reached,
          levelSince: since,
          confirmedAt: beganAt,
          fault: isWhole ? verdict.fault : undefined,
          message: isWhole ? verdict.message : (doubt.mild ?? verdict.message),
          doubt: isWhole ? undefined : doubt,
        },
        effects: !isFirst
          ? []
          : isWhole
            ? [{ type: 'doubt' }]
            : asksFor({ fault, depth, from: beganAt, holdMs, isFirst }),
      }
    }
    return repeated(next, doubt, depth, endedAt)
  }
  const from = (level === 'failed' ? doubt.failed : doubt.warning) ?? beganAt
  const isRefused = fault === 'auth' && before?.fault !== 'auth'
  if (!isFirst && !isRefused) return { state: next, effects: [] }
  return { state: next, effects: asksFor({ fault, depth, from, holdMs, isFirst }) }
}

/**
 * The class and the message with which a fault is shown. A peer that answered just now is not unreachable because one
 * run got no answer.
 */
const shownBy = (
  { fault, message, answered }: FaultInDoubt,
  at: number,
  confirmMs: number,
): Pick<FaultInDoubt, 'fault' | 'message'> =>
  isUnreachable(fault) && answered !== undefined && at - answered.at < confirmMs ? answered : { fault, message }

/**
 * The depth at which runs can heal a fault: that of the shallowest run that has shown it. Where a shallower run was
 * healthy meanwhile, the fault lies deeper, whatever else that run shows later.
 */
const shownAt = ({ depth, looked }: SubjectState, run: ExecutionMode): ExecutionMode =>
  looked !== undefined || covers(run, depth) ? depth : run

/** After a shallower run that was bad, a healthy one is news: the pauses between deeper runs begin anew. */
const lookedAfter = ({ depth, looked }: SubjectState, run: ExecutionMode): SubjectState['looked'] =>
  looked === undefined || covers(run, depth) ? looked : { ...looked, times: 0 }

/** The runs that confirm a fault or find that it is over. */
function asksFor({
  fault,
  depth,
  from,
  holdMs,
  isFirst,
}: {
  readonly fault: Verdict['fault']
  readonly depth: ExecutionMode
  readonly from: number
  readonly holdMs: number
  readonly isFirst: boolean
}): readonly Judgement[] {
  const tries = isFirst && isRetried(fault) ? retryAfterMs.filter((after) => after < holdMs) : []
  return [
    ...(isFirst ? [{ type: 'doubt' } as const] : []),
    ...tries.map((after): Judgement => ({ type: 'ask', depth, at: from + after })),
    lastAsk({ fault, depth, at: from + holdMs }),
  ]
}

/** The run that confirms a fault. A sign-in that was refused is repeated for it. */
const lastAsk = ({ fault, ...ask }: Pick<Ask, 'depth' | 'at'> & Pick<Verdict, 'fault'>): Ask => ({
  type: 'ask',
  ...ask,
  ...(fault === 'auth' ? { repeatsRefused: true } : {}),
})

function improved(state: SubjectState, observed: Observed, { beganAt }: Run): Judged {
  const since = state.healing?.since ?? beganAt
  const before = state.healing?.worst
  // Of two that are as bad, the later one says how it is now.
  const worst = before && rank(before.level) > rank(observed.level) ? before : observed
  const blips = blipOf(state, beganAt)
  const next: SubjectState = { ...state, ...blips.changes, turning: undefined, healing: { since, worst } }
  if (beganAt - since < recoverMs) {
    const ask: readonly Judgement[] =
      state.healing === undefined ? [{ type: 'ask', depth: state.depth, at: beganAt + recoverMs }] : []
    return { state: next, effects: [...blips.effects, ...ask] }
  }
  const isSettled = worst === observed
  const better: SubjectState = {
    ...next,
    level: worst.level,
    levelSince: since,
    confirmedAt: beganAt,
    fault: worst.level === 'failed' ? worst.fault : undefined,
    message: worst.message,
    depth: worst.level === 'ok' ? state.checkDepth : state.depth,
    looked: worst.level === 'ok' ? undefined : state.looked,
    healing: isSettled ? undefined : { since: beganAt, worst: observed },
  }
  const ask: readonly Judgement[] = isSettled ? [] : [{ type: 'ask', depth: state.depth, at: beganAt + recoverMs }]
  return { state: better, effects: [...blips.effects, ...ask] }
}

function unchanged(
  state: SubjectState,
  { level, fault, message }: Observed,
  { depth, beganAt }: Run,
  { confirmMs }: JudgeRules,
): Judged {
  const blips = blipOf(state, beganAt)
  const next: SubjectState = { ...state, ...blips.changes, healing: undefined }
  if (level === 'ok')
    return { state: { ...next, message, depth: state.checkDepth, looked: undefined }, effects: blips.effects }
  const bad: SubjectState = { ...next, depth: shownAt(state, depth), looked: lookedAfter(state, depth) }
  if (isUnreachable(fault) === isUnreachable(state.fault))
    return { state: { ...bad, fault, message, turning: undefined }, effects: blips.effects }
  // One verdict must not make the cause of others of what answers, nor the reverse.
  const turning =
    state.turning?.isUnreachable === isUnreachable(fault)
      ? state.turning
      : { isUnreachable: isUnreachable(fault), since: beganAt }
  if (beganAt - turning.since < confirmMs) return { state: { ...bad, turning }, effects: blips.effects }
  return { state: { ...bad, fault, message, turning: undefined }, effects: blips.effects }
}

/** A fault in doubt is over, or a worse one is. */
function blipOf(
  { doubt, blips, level }: SubjectState,
  at: number,
): { readonly changes: Pick<SubjectState, 'doubt' | 'blips'>; readonly effects: readonly Judgement[] } {
  if (doubt === undefined) return { changes: { doubt, blips }, effects: [] }
  const was: CheckLevel = doubt.failed === undefined ? 'warning' : 'failed'
  if (rank(was) <= rank(level)) return { changes: { doubt: undefined, blips }, effects: [] }
  return { changes: { doubt: undefined, blips: blips + 1 }, effects: [{ type: 'blip', at, level: was, doubt }] }
}

/** Whether only the line keeps a fault too many from being flapping. It may be in no doubt, because its level stands. */
const waitsForLine = ({ isFlapping, faults, latest }: SubjectState, { flapping: most, isLineProved }: JudgeRules) =>
  !isFlapping && faults.length > most && isRetried(latest?.fault) && !isLineProved(faults.at(-1) ?? 0)

/** Flapping begins with one fault too many that is not that of the line, and ends once it stays healthy, or bad, for long enough. */
function flapped(
  state: SubjectState,
  { at, message }: { readonly at: number; readonly message: string },
  { flapping: most, isLineProved, isAgreed }: JudgeRules,
): SubjectState {
  const { isFlapping, faults, latest } = state
  if (!isFlapping) {
    const isPeer = isAgreed && (!isRetried(latest?.fault) || isLineProved(faults.at(-1) ?? at))
    return faults.length > most && isPeer ? { ...state, isFlapping: true } : state
  }
  if (!latest || at - latest.since < (latest.level === 'ok' ? flapCalmMs : flapDownMs)) return state
  const isSame = latest.level === state.level
  return {
    ...state,
    isFlapping: false,
    faults: [],
    level: latest.level,
    // Faults have come and gone since the level was confirmed.
    levelSince: latest.since,
    confirmedAt: isSame ? state.confirmedAt : at,
    fault: latest.level === 'failed' ? latest.fault : undefined,
    message,
    doubt: undefined,
    healing: undefined,
  }
}
