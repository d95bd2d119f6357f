import { exits } from '../../core/base/errors.ts'
import { count } from '../../core/base/format.ts'
import {
  bySeverity,
  type EntryReading,
  isConsequence,
  type MonitorReading,
  messageIn,
} from '../../core/checks/reports/index.ts'
import type { Mark } from '../render/table.ts'
import { worstHost } from './overview.ts'
import { verdictOf } from './screen.ts'
import { ownCauses } from './text.ts'

/**
 * Sign, word and verdict of each state, the worst first. `idle`: skipped because of another failure. `lost`: the server did
 * not answer, which blames no monitor.
 */
export const faces = {
  fail: { mark: 'fail', word: 'failed', verdict: 'UNHEALTHY' },
  lost: { mark: 'not checked', word: 'not reached', verdict: 'NOT REACHED' },
  'not checked': { mark: 'not checked', word: 'not checked', verdict: 'NOT CHECKED' },
  warn: { mark: 'warn', word: 'warning', verdict: 'HEALTHY' },
  idle: { mark: 'dot', word: 'skipped', verdict: 'UNHEALTHY' },
  ok: { mark: 'ok', word: 'ok', verdict: 'HEALTHY' },
} as const satisfies Record<string, { readonly mark: Mark | 'dot'; readonly word: string; readonly verdict: string }>
export type State = keyof typeof faces
export const states = Object.keys(faces) as readonly State[]

type Finding = {
  readonly key: string
  readonly type: string
  /** Empty for the answer of a type. */
  readonly name: string
  readonly state: State
  readonly text: string
}

/** A monitor, the answer of a type, or the verdict, as the rounds have found it. Instants are milliseconds since 1970. */
export type WatchSubject = Finding & {
  /** When this watch saw the state begin. Undefined: it was there in the first round. */
  readonly since: number | undefined
  /** The number of the round that saw it begin. */
  readonly round: number
  readonly before: Pick<WatchSubject, 'state' | 'since'> | undefined
}

export type Watched = {
  /** The number of the latest round, from 1. */
  readonly round: number
  /** When the first round and the latest one ended. */
  readonly beganAt: number
  readonly at: number
  /** When the oldest result of the last answer was found. Undefined: there was none yet. */
  readonly answeredAt: number | undefined
  readonly verdict: WatchSubject
  /** By key. Those of types without an answer are as they were last. */
  readonly subjects: ReadonlyMap<string, WatchSubject>
  /** The types without an answer, `all` where nobody said which types there are. */
  readonly unanswered: ReadonlySet<string>
}

/** The subjects that the latest round has an answer about. */
export const knownIn = ({ subjects, unanswered }: Pick<Watched, 'subjects' | 'unanswered'>): readonly WatchSubject[] =>
  [...subjects.values()].filter((one) => one.name === '' || !isUnanswered(one, unanswered))

const isUnanswered = ({ type }: WatchSubject, unanswered: ReadonlySet<string>): boolean =>
  unanswered.has('all') || unanswered.has(type)

/** Exit codes of a server that did not answer. */
const notReached: ReadonlySet<number> = new Set([exits.unreachable.code, exits.timeout.code, exits.serverError.code])

/** The state after another round, which ended at `at`. `ages`: of each reading, the seconds since its run. */
export function afterRound(
  before: Watched | undefined,
  {
    at,
    readings,
    ages,
  }: { readonly at: number; readonly readings: readonly EntryReading[]; readonly ages: readonly number[] },
): Watched {
  const round = (before?.round ?? 0) + 1
  const turned = (finding: Finding, earlier: WatchSubject | undefined): WatchSubject => {
    if (earlier?.state === finding.state) return { ...earlier, ...finding }
    // Not all of it: the subject from before knows one from before itself.
    const { state, since } = earlier ?? {}
    return { ...finding, since: before && at, round, before: state && { state, since } }
  }
  const unanswered = new Set(readings.filter(({ error }) => error).map(({ type }) => type))
  // The machine has no type: any answer has its checks.
  if (unanswered.size === readings.length) unanswered.add('')
  const host = worstHost(readings)
  const findings = [
    ...readings.map(typeFinding),
    ...(host ? [monitorFinding('', host)] : []),
    ...readings.flatMap(({ type, monitors }) =>
      monitors.filter((one) => !one.host).map((one) => monitorFinding(type, one)),
    ),
  ]
  const subjects = new Map(findings.map((one) => [one.key, turned(one, before?.subjects.get(one.key))]))
  // The whole server was not reached, or is again: what is known of each type is what there was before.
  for (const [key, subject] of before?.subjects ?? []) {
    if (!subjects.has(key) && subject.name !== '' && isUnanswered(subject, unanswered)) subjects.set(key, subject)
  }
  const answered = ages.filter((_, index) => !readings[index]?.error)
  return {
    round,
    at,
    beganAt: before?.beganAt ?? at,
    answeredAt: answered.length > 0 ? at - Math.max(...answered) * 1_000 : before?.answeredAt,
    verdict: turned(verdictFinding(readings, knownIn({ subjects, unanswered })), before?.verdict),
    subjects,
    unanswered,
  }
}

function stateOf(reading: EntryReading): State {
  if (reading.error && notReached.has(reading.exitCode)) return 'lost'
  const level = verdictOf(reading)
  return level === 'unknown' ? 'not checked' : level
}

function typeFinding(reading: EntryReading): Finding {
  const { type } = reading
  const [text = ''] = ownCauses(reading)
  return { key: `type ${type}`, type, name: '', state: text === '' ? 'ok' : stateOf(reading), text }
}

function monitorFinding(type: string, { name, level, results }: MonitorReading): Finding {
  const ran = results.filter((result) => !isConsequence(result))
  const [worst] = (ran.length > 0 ? ran : results).toSorted(bySeverity)
  const state = level === 'fail' && ran.length === 0 ? 'idle' : level
  const text = state === 'ok' || !worst ? '' : [worst.check, messageIn(worst)].filter(Boolean).join(': ')
  return { key: `${type}/${name}`, type, name, state, text }
}

/** The worst of the answers. What was not reached is never healthy. */
function verdictFinding(readings: readonly EntryReading[], subjects: readonly WatchSubject[]): Finding {
  const worst = new Set(readings.map(stateOf))
  const monitors = subjects.filter(({ name }) => name !== '')
  const failed = monitors.filter(({ state }) => state === 'fail' || state === 'idle').length
  const warnings = monitors.filter(({ state }) => state === 'warn').length
  const all = count(monitors.length, 'monitor')
  const texts = [
    ...(monitors.length === 0 ? [] : [failed > 0 ? `${failed} of ${all} failed` : all]),
    ...(warnings > 0 ? [count(warnings, 'monitor with a warning', 'monitors with a warning')] : []),
    ...readings.flatMap(({ error }) => error?.message ?? []).slice(0, 1),
  ]
  // Warnings alone are healthy.
  const state = readings.length === 0 ? 'not checked' : (states.find((one) => one !== 'warn' && worst.has(one)) ?? 'ok')
  return { key: 'verdict', type: '', name: '', state, text: texts.join(', ') }
}

/** The changes of the latest round, the verdict last. Of the first round: what is not ok. */
export function changesOf(watched: Watched): readonly WatchSubject[] {
  const { verdict, round } = watched
  const changed = knownIn(watched).filter((one) => one.round === round && (one.state !== 'ok' || one.before))
  return verdict.round === round ? [...changed, verdict] : changed
}
