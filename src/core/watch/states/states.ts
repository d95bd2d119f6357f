import type { ExecutionMode } from '../../protocol/index.ts'
import { covers, depths, type Shift } from '../schedule/index.ts'
import { type Blame, blame, type CauseView, isReachedOnly, suspect, viewOf } from './blame.ts'
import {
  afterUnreachable,
  answered,
  type CrossCheck,
  contestedMessage,
  isContested,
  isUnanswered,
  type NodeAnswer,
  type OtherNode,
  type Question,
  shiftedCheck,
} from './cross-check.ts'
import { follow, type IncidentStep, needsBlame, opened, parts, underCause, withIncident } from './incident.ts'
import { asksAfterStart, intervalAt, type Judgement, judge, newSubject } from './judge.ts'
import { afterTry, failsNow, isBlind, isProvedSince, lineWith, type NetworkLine, shiftedLine } from './line.ts'
import {
  causeWaitMs,
  isRetried,
  isUnreachable,
  missingRuns,
  rank,
  standstillMs,
  unobservedIntervals,
  unobservedMinMs,
  witnessEveryMs,
} from './policy.ts'
import { shiftedState } from './shifted.ts'
import type {
  Cause,
  Incident,
  KeyedMonitor,
  RunOfStates,
  StoredSubject,
  Subject,
  SubjectState,
  Transition,
  Verdict,
  WatchedMonitor,
} from './types.ts'

/** An action that a driver carries out. */
export type Effect =
  /** Run a monitor at this time or later, at least this deep. */
  | {
      readonly type: 'ask'
      readonly key: string
      readonly depth: ExecutionMode
      readonly at: number
      /** Repeats a sign-in that was refused, once. */
      readonly repeatsRefused: boolean
    }
  | {
      readonly type: 'transition'
      readonly transition: Transition
      /** The incident as it is from now on; of one that has ended, as it was. Absent for a blip. */
      readonly incident?: Incident | undefined
    }
  /** Try all witnesses now. */
  | { readonly type: 'witness' }
  /** Store what is known of a subject. Undefined: nothing is worth storing any more. */
  | { readonly type: 'store'; readonly row: StoredSubject; readonly state: SubjectState | undefined }

/** The state of a subject, for pages and metrics. */
export type SubjectView = StoredSubject & {
  readonly runsOn: WatchedMonitor['runsOn']
  readonly state: SubjectState
  /** Whether the latest verdict is young enough to count. */
  readonly isObserved: boolean
}

type Place = {
  readonly row: StoredSubject
  state: SubjectState
  /** Since when a confirmed fault waits for its causes. */
  waitingSince: number | undefined
  hasAskedCauses: boolean
  /** When the run began since which it is about to have an incident of its own, because its cause is gone. */
  partsAt: number | undefined
  /** The report of another node, while this one cannot reach it and no failure is confirmed. */
  crossCheck: CrossCheck | undefined
  isStored: boolean
}
type Watched = {
  monitor: WatchedMonitor
  readonly places: Map<string, Place>
  /** When its last run with a verdict began, at each depth. */
  readonly seenAt: Map<ExecutionMode, number>
  since: number
  /** For what was restored, until the monitor is known: up to when svc watched before. */
  watchedUntil?: number | undefined
  /** Since when it has its settings: runs that began under others prove nothing. */
  anewAt: number
}

/** The key of the line of this machine, a monitor that no schedule runs. */
export const lineKey = '/svc/'
const lineCheck = 'line'
/** The name of the check of a monitor that never ran. */
const notRun = 'not run'
/** Faults that keep the other checks of their monitor from running. */
const hidesOthers = ({ level, fault }: SubjectState): boolean =>
  // A warning has a class only if another node contests the failure.
  level !== 'ok' && (isRetried(fault) || fault === 'auth' || fault === 'internal')

/** An incident follows its state in fewer steps. */
const mostSteps = 4
/** How often svc looks for checks that nothing observes. */
const scanEveryMs = 30_000

/** No name of a check has a line break. */
const idOf = ({ check, item }: Pick<Subject, 'check' | 'item'>): string =>
  item === undefined ? check : `${check}\n${item}`

/**
 * Confirmed states and incidents of all monitors. Decides over time and has none of its own: no clock, no timer, no
 * randomness, so that the same calls give the same effects. Between calls it keeps its table; each call takes time in
 * proportion to the checks of the run, and a tick to the faults that stand.
 */
export class States {
  readonly #watched = new Map<string, Watched>()
  /** The places that need attention even if no run ends. */
  readonly #busy = new Set<Place>()
  #line: NetworkLine
  #now: number
  #scannedAt: number
  #witnessedAt = Number.NEGATIVE_INFINITY
  #effects: Effect[] = []
  readonly #lineKey: string
  readonly #otherNode: (key: string) => OtherNode | undefined
  /** The places with an open question to another node. */
  readonly #asking = new Set<Place>()
  #questions = 0

  /**
   * `ownKey`: the key of the line of this machine, where several machines store their states together. `otherNode`: who can be
   * asked now whether it reaches a monitor.
   */
  constructor(
    now: number,
    witnesses: readonly string[] = [],
    ownKey = lineKey,
    otherNode: (key: string) => OtherNode | undefined = () => undefined,
  ) {
    this.#now = now
    this.#scannedAt = now
    this.#line = lineWith(witnesses)
    this.#lineKey = ownKey
    this.#otherNode = otherNode
  }

  /** Whether no witness answers. Undefined without witnesses. */
  get isIsolated(): boolean | undefined {
    return this.#line.witnesses.length === 0 ? undefined : this.#line.isolatedSince !== undefined
  }

  /**
   * Takes back what was stored. `watchedUntil`: when it was stored last, which may be long after it changed. To be called
   * before `configure`, which ends what no longer exists.
   */
  restore(
    rows: readonly { readonly row: StoredSubject; readonly state: SubjectState }[],
    now: number,
    watchedUntil: number,
  ): void {
    for (const { row, state } of rows) {
      const watched = this.#watched.get(row.key) ?? this.#take(unknownMonitor(row), now)
      watched.watchedUntil = Math.min(watchedUntil, now)
      this.#place(watched, { ...row }, restored(state, now), true)
    }
  }

  /**
   * The monitors that exist from now on. Those of before that are not among them, under any key, are removed; of those that
   * `isElsewhere` names, other nodes take care, and they are forgotten without a word.
   */
  configure(
    monitors: readonly WatchedMonitor[],
    now: number,
    witnesses = this.#line.witnesses,
    isElsewhere: (key: string) => boolean = () => false,
  ): readonly Effect[] {
    return this.#during(now, () => {
      if (witnesses.join(' ') !== this.#line.witnesses.join(' ')) this.#line = lineWith(witnesses)
      const line = monitorOfSvc(this.#lineKey)
      const all = this.#line.witnesses.length > 0 ? [...monitors, line] : monitors
      const keys = new Set(all.map(({ key }) => key))
      for (const monitor of all) {
        this.#watch(monitor)
        for (const former of monitor.formerly) {
          const renamed = keys.has(former) || isElsewhere(former) ? undefined : this.#watched.get(former)
          if (renamed) this.#rename(renamed, monitor.key)
        }
      }
      for (const [key, watched] of this.#watched) {
        if (keys.has(key)) continue
        // Stored by a node with a newer configuration.
        const former = formersOf(watched).find((one) => keys.has(one))
        if (former !== undefined) this.#rename(watched, former)
        else if (isElsewhere(key)) this.#release(key)
        else for (const place of watched.places.values()) this.#remove(watched, place)
        this.#watched.delete(key)
      }
      for (const watched of this.#watched.values()) this.#keepNames(watched, keys)
      for (const watched of this.#watched.values()) this.#wasAway(watched)
    })
  }

  /** Forgets monitors without a word: another node has them, or what is known of them is out of date. */
  release(keys: Iterable<string>): void {
    for (const key of keys) {
      this.#release(key)
      this.#watched.delete(key)
    }
  }

  /** The line that people read has shifted. Nothing begins or ends by that, and what is stored is stored again. */
  shift(shift: Shift): readonly Effect[] {
    const { move } = shift
    const moved = (at: number | undefined): number | undefined => (at === undefined ? undefined : move(at))
    this.#scannedAt = move(this.#scannedAt)
    this.#witnessedAt = move(this.#witnessedAt)
    this.#line = shiftedLine(this.#line, move)
    this.#now = move(this.#now)
    return this.#during(this.#now, () => {
      for (const watched of this.#watched.values()) {
        for (const [depth, at] of watched.seenAt) watched.seenAt.set(depth, move(at))
        watched.since = move(watched.since)
        watched.watchedUntil = moved(watched.watchedUntil)
        watched.anewAt = move(watched.anewAt)
        for (const place of watched.places.values()) {
          place.state = shiftedState(place.state, shift)
          place.waitingSince = moved(place.waitingSince)
          place.partsAt = moved(place.partsAt)
          place.crossCheck = shiftedCheck(place.crossCheck, move)
          if (place.isStored) this.#effects.push({ type: 'store', row: place.row, state: place.state })
        }
      }
    })
  }

  /** A run of a monitor has ended, whoever asked for it. */
  ran(run: RunOfStates, now: number): readonly Effect[] {
    const watched = this.#watched.get(run.key)
    if (!watched || run.beganAt < watched.anewAt) return []
    return this.#during(now, () => {
      const verdicts = run.verdicts.map((verdict) => this.#onLine(watched, verdict, run))
      const isOvertaken = depths.some(
        (depth) => covers(depth, run.depth) && (watched.seenAt.get(depth) ?? run.beganAt) > run.beganAt,
      )
      if (verdicts.some(({ level }) => level !== undefined))
        watched.seenAt.set(run.depth, Math.max(watched.seenAt.get(run.depth) ?? run.beganAt, run.beganAt))
      const reported = new Set(verdicts.map(idOf))
      const each = reported.size === verdicts.length ? verdicts : worstOf(verdicts)
      const notReported = this.#notReported(watched, verdicts, reported, run)
      // What only an earlier run than the latest one shows may have been removed since.
      const judge = (verdict: Verdict): void => {
        if (!isOvertaken || watched.places.has(idOf(verdict))) this.#judge(watched, verdict, run)
      }
      each.forEach(judge)
      notReported.forEach(judge)
    })
  }

  /** A witness was tried. `at`: when the try began. */
  witnessed(
    witness: string,
    { at, isUp }: { readonly at: number; readonly isUp: boolean },
    now: number,
  ): readonly Effect[] {
    const before = this.#line
    if (!before.witnesses.includes(witness)) return []
    return this.#during(now, () => {
      this.#line = afterTry(before, witness, at, isUp)
      const { isolatedSince } = this.#line
      if (before.isolatedSince === undefined && isolatedSince !== undefined) this.#leftLine()
      if (isolatedSince === undefined && [...this.#line.tries.values()].some((one) => one.isUp))
        this.#onLineAgain(before)
    })
  }

  /** The open questions to other nodes. */
  get questions(): readonly Question[] {
    return [...this.#asking].flatMap((place) => {
      const { row, crossCheck } = place
      if (!crossCheck?.question || !this.#has(place)) {
        this.#asking.delete(place)
        return []
      }
      const { key, check, item } = row
      const { id, node, depth } = crossCheck.question
      return [{ id, node, depth, key, check, ...(item === undefined ? {} : { item }) }]
    })
  }

  /** Another node has answered. Answers to questions that are no longer open are ignored. */
  takeAnswers(answers: readonly NodeAnswer[], now: number): readonly Effect[] {
    return this.#during(now, () => {
      for (const place of this.#asking) {
        const answer = answers.find(({ id }) => id === place.crossCheck?.question?.id)
        if (answer) this.#takeAnswer(place, answer.reaches)
      }
    })
  }

  /** To be called at least once a second. */
  tick(now: number): readonly Effect[] {
    return this.#during(now, () => {
      const busy = [...this.#busy]
      for (const place of busy) {
        const watched = this.#watched.get(place.row.key)
        if (watched) this.#advance(watched, place)
      }
      for (const place of this.#asking)
        if (this.#now >= (place.crossCheck?.question?.until ?? Number.POSITIVE_INFINITY)) this.#takeAnswer(place, false)
      if (failsNow(this.#line, this.#now)) this.#lineFailed()
      if (this.#needsWitness() && this.#now - this.#witnessedAt >= witnessEveryMs) this.#askWitnesses()
      if (this.#now - this.#scannedAt < scanEveryMs) return
      this.#scannedAt = this.#now
      for (const watched of this.#watched.values()) this.#scan(watched)
      // Another node takes over from one without a network. Without a doubt, this one would not notice that it is such a node
      // while a peer is down anyway.
      if (this.#lineKey !== lineKey && [...this.#watched.values()].some(isDown)) this.#askWitnesses()
    })
  }

  /**
   * A subject. Undefined: nothing is known of it. `removed`: nor does its monitor exist. `incident`: the id of one that may
   * have gone on under another name.
   */
  stateOf(subject: Subject, incident?: string): SubjectState | 'removed' | undefined {
    const watched = this.#watched.get(subject.key)
    if (watched) return watched.places.get(idOf(subject))?.state
    const views = incident === undefined ? [] : this.views(this.#now, (state) => state.incident?.id === incident)
    return [...views][0]?.state ?? 'removed'
  }

  /** The subjects of which `includes` holds, in the order of their monitors. */
  *views(now: number, includes: (state: SubjectState) => boolean = () => true): Generator<SubjectView> {
    for (const { monitor, places } of this.#watched.values()) {
      for (const { row, state } of places.values()) {
        if (!includes(state)) continue
        const limit = unobservedAfter(monitor, state)
        const isObserved =
          state.latest !== undefined && state.unobservedSince === undefined && now - state.latest.at <= limit
        yield { ...row, runsOn: monitor.runsOn, state, isObserved }
      }
    }
  }

  /** The open incidents, with the keys of their monitors. */
  *incidents(): Generator<{ readonly key: string; readonly incident: Incident }> {
    for (const [key, { places }] of this.#watched)
      for (const { state } of places.values()) if (state.incident) yield { key, incident: state.incident }
  }

  /** The monitor on which the faults of another one seem to rest, while nothing is certain. */
  suspectOf(key: string): Cause | undefined {
    const dependsOn = this.#watched.get(key)?.monitor.dependsOn ?? []
    return dependsOn.length === 0 ? undefined : suspect(dependsOn, (cause) => this.#viewOf(cause))
  }

  // Each call of the table collects its effects.

  #during(now: number, work: () => void): readonly Effect[] {
    if (now - this.#now > standstillMs) this.#stoodStill()
    this.#now = Math.max(this.#now, now)
    this.#effects = []
    work()
    return this.#effects
  }

  /** While this process stood still, no cause could show anything: what waits for its causes waits anew. */
  #stoodStill(): void {
    for (const place of this.#busy) {
      place.waitingSince = undefined
      place.hasAskedCauses = false
    }
  }

  #take(monitor: WatchedMonitor, now: number): Watched {
    const made: Watched = {
      monitor,
      places: new Map(),
      seenAt: new Map(),
      since: now,
      anewAt: Number.NEGATIVE_INFINITY,
    }
    this.#watched.set(monitor.key, made)
    return made
  }

  #watch(monitor: WatchedMonitor): void {
    const watched = this.#watched.get(monitor.key)
    if (!watched) {
      this.#take(monitor, this.#now)
      return
    }
    const before = watched.monitor
    watched.monitor = monitor
    if (before.fingerprint === monitor.fingerprint) return
    // Under other settings, earlier runs prove nothing. What is restored knows its settings, and its first run compares them.
    watched.anewAt = this.#now
    for (const place of watched.places.values()) {
      if (place.state.isRestored) continue
      place.crossCheck = undefined
      this.#put(watched, place, anew(place.state, this.#now))
    }
  }

  #rename(renamed: Watched, key: string): void {
    const watched = this.#watched.get(key)
    if (!watched) return
    const { type, name } = watched.monitor
    watched.watchedUntil = renamed.watchedUntil
    for (const place of renamed.places.values()) {
      const row: StoredSubject = { ...place.row, key, type, monitor: name }
      const other = watched.places.get(idOf(row))
      // Another node has watched it under that name already.
      if (other && (other.state.incident || !place.state.incident)) {
        this.#remove(renamed, place, row)
        continue
      }
      this.#busy.delete(place)
      if (other) this.#busy.delete(other)
      const state = withFormerName(place.state, place.row, key)
      if (place.isStored) this.#effects.push({ type: 'store', row: place.row, state: undefined })
      this.#put(watched, this.#place(watched, row, state, false), state)
    }
    this.#watched.delete(renamed.monitor.key)
  }

  /** Once another monitor has a former name, receivers must not take the incident for one of that monitor. */
  #keepNames(watched: Watched, keys: ReadonlySet<string>): void {
    const isTaken = ({ key }: KeyedMonitor): boolean => key !== watched.monitor.key && keys.has(key)
    for (const place of watched.places.values()) {
      const { incident } = place.state
      if (incident?.formerly?.some(isTaken))
        this.#put(watched, place, { ...place.state, incident: { ...incident, formerly: undefined } })
    }
  }

  #release(key: string): void {
    for (const place of this.#watched.get(key)?.places.values() ?? []) this.#busy.delete(place)
  }

  #newPlace(watched: Watched, verdict: Verdict, { beganAt }: RunOfStates): Place {
    const { key, type, name: monitor } = watched.monitor
    const { check, item } = verdict
    const row: StoredSubject = { key, type, monitor, check, ...(item === undefined ? {} : { item }) }
    return this.#place(watched, row, newSubject(verdict, beganAt), false)
  }

  #place(watched: Watched, row: StoredSubject, state: SubjectState, isStored: boolean): Place {
    const place: Place = {
      row,
      state,
      waitingSince: undefined,
      hasAskedCauses: false,
      partsAt: undefined,
      crossCheck: undefined,
      isStored,
    }
    watched.places.set(idOf(row), place)
    this.#attend(place)
    return place
  }

  /** An unreachable peer is the fault of the line while that is down. */
  #onLine({ monitor }: Watched, verdict: Verdict, run: RunOfStates): Verdict {
    const isAway = monitor.runsOn === 'network' && isBlind(this.#line, run)
    return isAway && verdict.level === 'failed' && isRetried(verdict.fault)
      ? { ...verdict, level: undefined, reason: 'isolated' }
      : verdict
  }

  /**
   * The verdicts of a whole run on checks that it does not report: a fault that has no other name is over, and an item
   * that two whole runs do not report no longer exists.
   */
  #notReported(
    watched: Watched,
    verdicts: readonly Verdict[],
    reported: ReadonlySet<string>,
    run: RunOfStates,
  ): readonly Verdict[] {
    const unreported = [...watched.places.values()].filter(({ row }) => !reported.has(idOf(row)))
    if (unreported.length === 0) return []
    const isWhole = verdicts.length > 0 && verdicts.every((one) => one.level !== undefined && !stopsRun(one))
    const ranAtAll = verdicts.some(({ level }) => level !== undefined)
    const isPaused = verdicts.some(({ level, reason }) => level === undefined && reason === 'remembered')
    return unreported.flatMap((place) => {
      const { row, state } = place
      if (run.beganAt <= (state.latest?.at ?? Number.NEGATIVE_INFINITY)) return []
      if (row.check === notRun && ranAtAll) return [fineAgain(place)]
      if (isPaused) place.state = hidden(state, run, watched.monitor)
      if (!isWhole || !covers(run.depth, state.checkDepth)) return []
      const isBad = state.level !== 'ok' || state.doubt !== undefined || state.unobservedSince !== undefined
      if (row.item === undefined && isBad) return [fineAgain(place)]
      if (!covers(run.depth, state.depth)) return []
      if (state.missing + 1 >= missingRuns) this.#remove(watched, place)
      else this.#put(watched, place, { ...state, missing: state.missing + 1 })
      return []
    })
  }

  #judge(watched: Watched, verdict: Verdict, run: RunOfStates): void {
    const { monitor, places } = watched
    const place = places.get(idOf(verdict)) ?? this.#newPlace(watched, verdict, run)
    const isLineProved = (since: number): boolean => monitor.runsOn === 'machine' || isProvedSince(this.#line, since)
    const before = place.state
    this.#askOther(watched, place, verdict, run)
    const { crossCheck } = place
    const isAgreed = !isUnanswered(crossCheck)
    const present = inDoubtSince(before, verdict, crossCheck)
    const { confirmMs, flapping, every, fingerprint } = monitor
    const rules = { confirmMs, flapping, every, fingerprint, isLineProved, isAgreed }
    const { state, effects } = judge(present, asContested(verdict, crossCheck), run, rules)
    const settings = state.doubt || state.healing ? monitor.fingerprint : undefined
    this.#put(watched, place, state.settings === settings ? state : { ...state, settings })
    for (const effect of effects) this.#judged(watched, place, before, effect, run)
    this.#advance(watched, place)
  }

  // The reports of other nodes.

  #has(place: Place): boolean {
    return this.#watched.get(place.row.key)?.places.get(idOf(place.row)) === place
  }

  /** Asks another node about a peer that this one cannot reach, until its failure is confirmed. */
  #askOther(
    { monitor }: Watched,
    place: Place,
    { level, reason, fault }: Verdict,
    { beganAt, depth }: RunOfStates,
  ): void {
    const { state } = place
    if (monitor.runsOn !== 'network' || beganAt <= (state.latest?.at ?? Number.NEGATIVE_INFINITY)) return
    // A run that could not look proves nothing.
    if (level === undefined && reason !== 'isolated') return
    if (level !== 'failed' || !isUnreachable(fault) || state.level === 'failed') place.crossCheck = undefined
    else {
      const nodes = this.#otherNode(monitor.key)
      const run = { beganAt, depth, now: this.#now, confirmMs: monitor.confirmMs, nodes, id: this.#questions + 1 }
      place.crossCheck = afterUnreachable(place.crossCheck, run)
    }
    if (place.crossCheck?.question) {
      this.#questions = Math.max(this.#questions, place.crossCheck.question.id)
      this.#asking.add(place)
    } else this.#asking.delete(place)
  }

  /** If the answer is news and the time of the confirmation is over, the next run need not wait for its turn. */
  #takeAnswer(place: Place, reaches: boolean): void {
    this.#asking.delete(place)
    const { crossCheck, row } = place
    const confirmMs = this.#watched.get(row.key)?.monitor.confirmMs
    if (!crossCheck?.question || confirmMs === undefined || !this.#has(place)) return
    const { node, depth } = crossCheck.question
    const isNews = crossCheck.answer?.reaches !== reaches
    place.crossCheck = answered(crossCheck, { node, reaches, at: this.#now })
    if (isNews && this.#now - crossCheck.since >= confirmMs) this.#ask(row.key, depth, this.#now, false)
  }

  #judged(watched: Watched, place: Place, before: SubjectState, effect: Judgement, run: RunOfStates): void {
    const { monitor } = watched
    switch (effect.type) {
      case 'ask':
        this.#ask(monitor.key, effect.depth, effect.at, effect.repeatsRefused === true)
        return
      case 'doubt':
        if (
          monitor.runsOn === 'network' &&
          isRetried(place.state.doubt?.fault) &&
          !isProvedSince(this.#line, run.beganAt)
        ) {
          this.#askWitnesses()
        }
        this.#askCauses(monitor, run.beganAt)
        return
      case 'blip': {
        const { doubt, level } = effect
        const { fault, message } = doubt
        const at = doubt.failed ?? doubt.warning
        this.#report(place, { what: 'blip', at, from: place.state.level, to: level, fault, message }, undefined)
        return
      }
      case 'witness':
        this.#askWitnesses()
        return
      case 'observed':
        this.#observed(watched, place, before, effect.message)
    }
  }

  /** `text`: the message of the run that observed it. */
  #observed(watched: Watched, place: Place, { unobservedSince = this.#now }: SubjectState, text: string): void {
    const { state } = place
    const { incident, level, latest } = state
    // The message of the state may be older than the time in which nothing observed it.
    const message = latest?.level === level ? text : 'it is checked again'
    this.#report(place, { what: 'observed', at: state.observedAt, from: 'unobserved', to: level, message }, incident)
    // Where no run was healthy yet, that of a run without a verdict is no text of it.
    const next = level === 'ok' ? { ...state, message } : state
    if (next !== state) this.#put(watched, place, next)
    if (incident?.isUnobserved)
      this.#put(watched, place, {
        ...next,
        incident: undefined,
        levelSince: Math.max(state.levelSince, unobservedSince),
      })
  }

  /** Lets the incident of a subject follow its state. */
  #advance(watched: Watched, place: Place): void {
    const { monitor } = watched
    let blamed: Blame = { type: 'own' }
    if (needsBlame(place.state)) {
      const isParting = parts(place.state, monitor.confirmMs)
      if (isParting && place.partsAt === undefined) {
        place.waitingSince = undefined
        place.hasAskedCauses = false
      }
      place.partsAt = isParting ? (place.partsAt ?? place.state.latest?.at) : undefined
      place.waitingSince ??= this.#now
      const isVictim = place.state.incident !== undefined && !isParting
      const mayWait = isVictim || this.#now - place.waitingSince < causeWaitMs
      blamed = blame(monitor.dependsOn, (key) => this.#viewOf(key), seenFor(place.state, place.partsAt), mayWait)
      // What it shows may be the line.
      if (blamed.type === 'own' && this.#waitsForWitness(place)) blamed = { type: 'wait', rerun: [] }
      if (blamed.type === 'wait' && !place.hasAskedCauses) {
        place.hasAskedCauses = true
        for (const key of blamed.rerun) this.#askCause(key)
      }
      this.#followCause(watched, place, blamed)
    } else {
      place.waitingSince = undefined
      place.hasAskedCauses = false
      place.partsAt = undefined
      // It is ok: there is nothing to follow.
      if (place.state.incident === undefined) {
        this.#attend(place)
        return
      }
    }
    const situation = { subject: place.row, confirmMs: monitor.confirmMs, blame: blamed, now: this.#now }
    for (let left = mostSteps; left > 0; left -= 1) {
      const step = follow(place.state, situation)
      if (!step) break
      this.#put(watched, place, withIncident(place.state, step.incident))
      this.#report(place, step, step.of)
    }
    this.#attend(place)
  }

  #followCause(watched: Watched, place: Place, blamed: Blame): void {
    const { incident } = place.state
    if (incident?.cause === undefined) return
    const next = underCause(incident, blamed, this.#now)
    if (next === incident) return
    this.#put(watched, place, { ...place.state, incident: next })
    // A run after that time decides whether the fault is its own.
    if (next.freedAt !== undefined) {
      this.#ask(watched.monitor.key, place.state.depth, next.freedAt + watched.monitor.confirmMs, false)
    }
  }

  #viewOf(key: string): CauseView | undefined {
    const watched = this.#watched.get(key)
    if (!watched) return undefined
    const { monitor, places } = watched
    const states = [...places.values()].map(({ state }) => state)
    return viewOf({ key, type: monitor.type, monitor: monitor.name }, states, seenAtOf(watched))
  }

  #askCauses({ dependsOn }: WatchedMonitor, since: number): void {
    for (const key of new Set(dependsOn.flatMap(({ of }) => of))) {
      const cause = this.#watched.get(key)
      if (cause && seenAtOf(cause) < since) this.#askCause(key)
    }
  }

  /** A cause shows at its shallowest depth whether it can be reached. */
  #askCause(key: string): void {
    const monitor = this.#watched.get(key)?.monitor
    const depth = monitor && depths.find((one) => monitor.every[one] !== undefined)
    if (depth !== undefined) this.#ask(key, depth, this.#now, false)
  }

  #ask(key: string, depth: ExecutionMode, at: number, repeatsRefused: boolean): void {
    this.#effects.push({ type: 'ask', key, depth, at, repeatsRefused })
  }

  #report(
    { row, state }: Place,
    {
      what,
      at,
      from,
      to,
      fault,
      message,
      goesOnAs,
    }: Pick<IncidentStep, 'what' | 'at' | 'from' | 'to' | 'message'> & {
      readonly fault?: IncidentStep['fault']
      readonly goesOnAs?: StoredSubject | undefined
    },
    incident: SubjectState['incident'],
  ): void {
    const { depth } = state
    const transition: Transition = {
      what,
      at,
      confirmedAt: this.#now,
      ...row,
      from,
      to,
      ...(fault === undefined ? {} : { fault }),
      message,
      ...(incident?.cause === undefined ? {} : { cause: incident.cause }),
      ...(incident === undefined ? {} : { incident: incident.id }),
      ...(goesOnAs === undefined ? {} : { goesOnAs }),
      depth,
    }
    this.#effects.push({ type: 'transition', transition, ...(incident === undefined ? {} : { incident }) })
  }

  #put(watched: Watched, place: Place, state: SubjectState): void {
    const before = place.state
    place.state = state
    this.#attend(place)
    const isWorth = isWorthStoring(state)
    if (!isWorth && !place.isStored) return
    if (place.isStored && isWorth && isSameStored(before, state)) return
    place.isStored = isWorth
    if (watched.places.get(idOf(place.row)) === place) {
      this.#effects.push({ type: 'store', row: place.row, state: isWorth ? state : undefined })
    }
  }

  #attend(place: Place): void {
    const { state } = place
    const { doubt, incident } = state
    const waits = incident === undefined && (state.level !== 'ok' || state.isFlapping)
    if (doubt !== undefined || waits || incident?.cause !== undefined) this.#busy.add(place)
    else this.#busy.delete(place)
  }

  #remove(watched: Watched, place: Place, goesOnAs?: StoredSubject): void {
    const { row, state } = place
    const { incident } = state
    watched.places.delete(idOf(row))
    this.#busy.delete(place)
    if (place.isStored) this.#effects.push({ type: 'store', row, state: undefined })
    if (!incident) return
    const from = state.unobservedSince === undefined ? incident.level : 'unobserved'
    this.#report(
      place,
      { what: 'removed', at: this.#now, from, to: 'removed', message: 'it no longer exists', goesOnAs },
      incident,
    )
  }

  // Checks that nothing observes.

  #scan(watched: Watched): void {
    const { monitor, places } = watched
    if (monitor.key === this.#lineKey) return
    const isBlind = this.#line.isolatedSince !== undefined && monitor.runsOn === 'network'
    const all = [...places.values()]
    const isLate = ({ state }: Place): boolean => this.#now - state.observedAt > unobservedAfter(monitor, state)
    const explaining = all.filter(
      (place) => place.state.unobservedSince !== undefined || (hidesOthers(place.state) && !isLate(place)),
    )
    if (isBlind || explaining.length > 0) {
      // They are behind what is known: their time begins when that is over.
      for (const place of all) if (!explaining.includes(place)) place.state = { ...place.state, observedAt: this.#now }
      return
    }
    const late = all.filter(isLate)
    if (all.length === 0 && this.#now - watched.since > unobservedAfter(monitor, undefined)) {
      const depth = depths.find((one) => monitor.every[one] !== undefined) ?? 'Basic'
      const verdict: Verdict = { check: notRun, level: undefined, message: 'it has not run', depth }
      const row: StoredSubject = { key: monitor.key, type: monitor.type, monitor: monitor.name, check: notRun }
      late.push(this.#place(watched, row, newSubject(verdict, watched.since), false))
    }
    // One that runs mention says why.
    const first = late.find(({ state }) => state.reason !== undefined) ?? late[0]
    if (first) this.#unobserved(watched, first)
  }

  /** After a start: what stood when svc last watched is unobserved if that was too long ago. It did not recover. */
  #wasAway(watched: Watched): void {
    const { monitor, places, watchedUntil } = watched
    watched.watchedUntil = undefined
    if (watchedUntil === undefined) return
    for (const place of places.values()) {
      const { state } = place
      if (this.#now - watchedUntil <= unobservedAfter(monitor, state)) {
        if (state.isRestored) this.#goOn(monitor, state)
        continue
      }
      // What was seen then did not go on without a break, and the fault may be another one, which only deeper runs show.
      const deepest = depths.findLast((depth) => monitor.every[depth] !== undefined && covers(depth, state.depth))
      place.state = { ...anew(state, state.observedAt), latest: undefined, depth: deepest ?? state.depth }
      if (state.incident === undefined || state.unobservedSince !== undefined) continue
      place.state = { ...place.state, observedAt: watchedUntil, reason: 'svc did not run' }
      this.#unobserved(watched, place)
    }
  }

  /** Asks for the second run that svc ended before. */
  #goOn({ key, confirmMs }: WatchedMonitor, state: SubjectState): void {
    for (const { depth, at, repeatsRefused } of asksAfterStart(state, confirmMs))
      this.#ask(key, depth, Math.max(at, this.#now), repeatsRefused === true)
  }

  #unobserved(watched: Watched, place: Place): void {
    const { state, row } = place
    const { observedAt, level, reason } = state
    const message = reason === undefined ? 'no run reports it' : `not checked: ${reason}`
    const facts = {
      beganAt: observedAt,
      confirmedAt: this.#now,
      level: 'warning' as const,
      fault: undefined,
      message,
      isUnobserved: true,
    }
    const incident = state.incident ?? opened(row, state, facts)
    const next = withIncident(state, incident)
    this.#put(watched, place, { ...next, unobservedSince: this.#now, doubt: undefined, healing: undefined })
    this.#report(place, { what: 'unobserved', at: observedAt, from: level, to: 'unobserved', message }, incident)
  }

  // The line of this machine.

  #needsWitness(): boolean {
    const { witnesses, isolatedSince } = this.#line
    if (witnesses.length === 0) return false
    if (isolatedSince !== undefined || this.#linePlace()?.place.state.level === 'failed') return true
    return [...this.#busy].some((place) => {
      const { row, state } = place
      if (this.#waitsForWitness(place)) return true
      if (state.doubt === undefined || !isRetried(state.doubt.fault)) return false
      return this.#watched.get(row.key)?.monitor.runsOn === 'network'
    })
  }

  /** Whether it may have an incident of its own as soon as a witness has answered. */
  #waitsForWitness({ row, state, partsAt }: Place): boolean {
    if (partsAt === undefined || !isRetried(state.latest?.fault) || isProvedSince(this.#line, partsAt)) return false
    return this.#watched.get(row.key)?.monitor.runsOn === 'network'
  }

  #askWitnesses(): void {
    if (this.#line.witnesses.length === 0 || this.#witnessedAt === this.#now) return
    this.#witnessedAt = this.#now
    this.#effects.push({ type: 'witness' })
  }

  /** Ends the doubts that were about the line only. */
  #leftLine(): void {
    const busy = [...this.#busy]
    for (const place of busy) {
      const watched = this.#watched.get(place.row.key)
      if (watched?.monitor.runsOn !== 'network') continue
      const { doubt, faults, incident } = place.state
      // A victim whose cause is gone gets its time again.
      if (incident?.freedAt !== undefined)
        this.#put(watched, place, { ...place.state, incident: { ...incident, freedAt: this.#now } })
      if (!doubt || !isRetried(doubt.fault)) continue
      this.#put(watched, place, { ...place.state, doubt: undefined, faults: faults.filter((at) => at < doubt.warning) })
    }
  }

  #linePlace(): { readonly watched: Watched; readonly place: Place } | undefined {
    const watched = this.#watched.get(this.#lineKey)
    const place = watched?.places.get(idOf({ check: lineCheck }))
    return watched && place && { watched, place }
  }

  #lineFailed(): void {
    const watched = this.#watched.get(this.#lineKey)
    const since = this.#line.isolatedSince
    if (!watched || since === undefined) return
    this.#line = { ...this.#line, hasFailed: true }
    const message = `no witness answers: ${this.#line.witnesses.join(', ')}`
    const row: StoredSubject = { key: this.#lineKey, monitor: 'svc', check: lineCheck }
    const verdict: Verdict = { check: lineCheck, level: 'failed', message, depth: 'Basic' }
    const place = this.#linePlace()?.place ?? this.#place(watched, row, newSubject(verdict, since), false)
    const isNew = place.state.level !== 'failed'
    if (isNew)
      this.#put(watched, place, { ...place.state, level: 'failed', levelSince: since, confirmedAt: this.#now, message })
    this.#advance(watched, place)
  }

  #onLineAgain({ isolatedSince }: NetworkLine): void {
    const line = this.#linePlace()
    const watched = this.#watched.get(this.#lineKey)
    if (line?.place.state.level === 'failed') {
      const message = 'a witness answers again: nothing was known of other machines until now'
      this.#put(line.watched, line.place, { ...line.place.state, level: 'ok', levelSince: this.#now, message })
      this.#advance(line.watched, line.place)
    } else if (isolatedSince !== undefined && watched) {
      const row: StoredSubject = { key: this.#lineKey, monitor: 'svc', check: lineCheck }
      const message = 'no witness answered, so that nothing was known of other machines'
      const verdict: Verdict = { check: lineCheck, level: 'failed', message, depth: 'Basic' }
      const place = line?.place ?? this.#place(watched, row, newSubject(verdict, isolatedSince), false)
      this.#report(place, { what: 'blip', at: isolatedSince, from: 'ok', to: 'failed', message }, undefined)
    }
    if (isolatedSince === undefined) return
    for (const { monitor, places } of this.#watched.values()) {
      if (monitor.runsOn !== 'network') continue
      for (const place of places.values())
        place.state = { ...place.state, observedAt: Math.max(place.state.observedAt, this.#now) }
    }
  }
}

/** The former names of the incidents of a monitor. */
const formersOf = ({ places }: Watched): readonly string[] =>
  [...places.values()].flatMap(({ state: { incident } }) => incident?.formerly ?? []).map(({ key }) => key)

/** The state with an incident that goes on under the name `to`, perhaps one that it had before. */
function withFormerName(state: SubjectState, { key, type, monitor }: KeyedMonitor, to: string): SubjectState {
  const { incident } = state
  if (!incident) return state
  const before = incident.formerly ?? []
  const at = before.findIndex((one) => one.key === to)
  const names = at < 0 ? [...before.filter((one) => one.key !== key), { key, type, monitor }] : before.slice(0, at)
  return { ...state, incident: { ...incident, formerly: names.length === 0 ? undefined : names } }
}

/** The monitor for reports of svc about itself, which no schedule runs. Its incidents begin without a delay. */
export const monitorOfSvc = (key: string): WatchedMonitor => ({
  key,
  name: 'svc',
  runsOn: 'machine',
  every: {},
  dependsOn: [],
  confirmMs: 0,
  flapping: Number.POSITIVE_INFINITY,
  formerly: [],
  fingerprint: '',
})

/** A monitor of which only stored states are known. */
const unknownMonitor = ({ key, type, monitor: name }: StoredSubject): WatchedMonitor => ({
  ...monitorOfSvc(key),
  type,
  name,
})

/** Whether it is on the network and cannot be reached, as everybody knows. */
const isDown = ({ monitor, places }: Watched): boolean =>
  monitor.runsOn === 'network' &&
  [...places.values()].some(({ state }) => state.incident !== undefined && isRetried(state.latest?.fault))

/** When a run last showed whether a monitor can be reached: where shallower runs alone decide that, one of these. */
function seenAtOf({ monitor, places, seenAt }: Watched): number {
  const unclear = [...places.values()].map(({ state }) => state).filter(isReachedOnly)
  const shows = (run: ExecutionMode): boolean => unclear.every(({ depth }) => !covers(run, depth))
  const deciding = depths.filter(shows)
  const isAnyDue = deciding.some((depth) => monitor.every[depth] !== undefined)
  return Math.max(...(isAnyDue ? deciding : depths).map((depth) => seenAt.get(depth) ?? Number.NEGATIVE_INFINITY))
}

/** As of when causes have to be seen: what a victim shows after its cause was gone may follow from a new fault of that. */
const seenFor = (state: SubjectState, partsAt: number | undefined): Pick<SubjectState, 'levelSince' | 'confirmedAt'> =>
  partsAt !== undefined && state.latest ? { levelSince: state.latest.since, confirmedAt: partsAt } : state

/** A fault in doubt at which a run did not look when it could have been confirmed. */
const hidden = (state: SubjectState, { beganAt }: RunOfStates, { confirmMs }: WatchedMonitor): SubjectState =>
  state.doubt !== undefined && beganAt - (state.doubt.failed ?? state.doubt.warning) >= confirmMs
    ? { ...state, doubt: { ...state.doubt, hiddenAt: beganAt } }
    : state

/** While another node reaches it, the failure is a warning. */
const asContested = (verdict: Verdict, crossCheck: CrossCheck | undefined): Verdict =>
  crossCheck && isContested(crossCheck) && verdict.level === 'failed'
    ? { ...verdict, level: 'warning', message: contestedMessage(crossCheck, verdict.message) }
    : verdict

/** Once the other node does not reach it either, the failure counts from its first bad run. */
function inDoubtSince(
  state: SubjectState,
  { level, fault, message }: Verdict,
  crossCheck: CrossCheck | undefined,
): SubjectState {
  const { doubt } = state
  if (level !== 'failed' || crossCheck?.answer?.reaches !== false || state.level === 'failed') return state
  const since = crossCheck.since
  if (doubt?.failed !== undefined && doubt.failed <= since) return state
  return { ...state, doubt: { fault, message, ...doubt, warning: doubt?.warning ?? since, failed: since } }
}

/** A fault that leaves the rest of a run undone. */
const stopsRun = ({ level, fault }: Verdict): boolean =>
  level === 'failed' && (isRetried(fault) || fault === 'auth' || fault === 'internal' || fault === 'dependency')

const fineAgain = ({ row: { check, item }, state }: Place): Verdict => ({
  check,
  item,
  level: 'ok',
  message: 'no longer reported',
  depth: state.checkDepth,
})

/** Of several verdicts about one subject, the worst. One that was not reached is no better than the others. */
function worstOf(verdicts: readonly Verdict[]): readonly Verdict[] {
  const byId = new Map<string, Verdict>()
  for (const verdict of verdicts) {
    const before = byId.get(idOf(verdict))
    if (!before || weight(verdict) > weight(before)) byId.set(idOf(verdict), verdict)
  }
  return [...byId.values()]
}
const weight = ({ level }: Verdict): number => (level === undefined ? 0.5 : rank(level))

/** Milliseconds without a verdict after which a subject is unobserved. Infinity if no schedule observes it. */
const unobservedAfter = ({ every }: WatchedMonitor, state: SubjectState | undefined): number =>
  Math.max(unobservedMinMs, unobservedIntervals * intervalAt(every, state?.depth ?? 'Basic'))

/** Whether a restart would lose anything that matters. */
const isWorthStoring = ({ level, incident, isFlapping, faults, unobservedSince, doubt }: SubjectState): boolean =>
  level !== 'ok' ||
  incident !== undefined ||
  isFlapping ||
  faults.length > 0 ||
  unobservedSince !== undefined ||
  doubt !== undefined

/** Whether what is stored of two states is the same. Each verdict changes what is not. */
const isSameStored = (a: SubjectState, b: SubjectState): boolean =>
  a.level === b.level &&
  a.incident === b.incident &&
  a.isFlapping === b.isFlapping &&
  a.faults.length === b.faults.length &&
  a.unobservedSince === b.unobservedSince &&
  a.blips === b.blips &&
  a.fault === b.fault &&
  a.depth === b.depth &&
  a.latest?.level === b.latest?.level &&
  waitsAlike(a, b)

/** Whether both wait for the same second run, since the same run. */
const waitsAlike = (a: SubjectState, b: SubjectState): boolean =>
  waits(a) === waits(b) && (!waits(a) || a.latest?.at === b.latest?.at)
const waits = ({ doubt, healing }: SubjectState): boolean => doubt !== undefined || healing !== undefined

/** The state without its doubts: a run under other settings does not continue them. */
const anew = (state: SubjectState, now: number): SubjectState => ({
  ...state,
  doubt: undefined,
  healing: undefined,
  turning: undefined,
  looked: undefined,
  missing: 0,
  observedAt: now,
  isRestored: undefined,
})

/** After a restart no instant may lie in the future: the clock of the wall may have been set back meanwhile. */
function restored(stored: SubjectState, now: number): SubjectState {
  // The id and the beginning of an incident stay as they were reported.
  const state = shiftedState(stored, { move: (at) => Math.min(at, now), correct: (at) => at })
  const { doubt, healing } = state
  return {
    ...anew(state, now),
    // The run that was asked for is lost.
    doubt: doubt && { ...doubt, repeatsAt: undefined },
    healing,
    isRestored: doubt || healing ? true : undefined,
    faults: stored.faults.filter((at) => at <= now),
  }
}
