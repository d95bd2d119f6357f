import type { FaultClass } from '../../base/probe-error.ts'
import type { ExecutionMode, ServerType } from '../../protocol/index.ts'

/**
 * The state of checks over time. Instants are milliseconds of the time line of the schedule: since 1970 as the clock of
 * the wall showed at the start, and from then on by the monotonic clock.
 */

/** The level that a check reports. */
export type CheckLevel = 'ok' | 'warning' | 'failed'

/** A check of a monitor, or one of its items. Everything that lasts belongs to it. */
export type Subject = {
  /** The key of the monitor: `Sql/postgres/orders`. */
  readonly key: string
  /** The MonitoringName of the check. */
  readonly check: string
  /** Which of several: the name of a disk, a replica, a queue. */
  readonly item?: string | undefined
}

/** The result of one check in one run. */
export type Verdict = {
  readonly check: string
  readonly item?: string | undefined
  /** Undefined for a check that came to no verdict: it proves nothing and heals nothing. */
  readonly level: CheckLevel | undefined
  /** Why there is no verdict: `starved`, `refused`, `isolated`. */
  readonly reason?: string | undefined
  /** The class of a failure. */
  readonly fault?: FaultClass | undefined
  /** One line without secrets, as in the run document. */
  readonly message: string
  /** The shallowest mode that contains the check. */
  readonly depth: ExecutionMode
  /** A threshold with `for`, which every run of that time has exceeded. */
  readonly isHeld?: boolean | undefined
}

/** One run of a monitor, with what it says of each check that it contains. */
export type RunOfStates = {
  readonly key: string
  readonly depth: ExecutionMode
  /** When it began and ended. The time between two runs counts from beginning to beginning. */
  readonly beganAt: number
  readonly endedAt: number
  readonly verdicts: readonly Verdict[]
}

/** A subject with the names that outlive its monitor. */
export type StoredSubject = Subject & Pick<WatchedMonitor, 'type'> & { readonly monitor: string }

/** The properties of a monitor that the schedule runs, for confirmation and incidents. */
export type WatchedMonitor = {
  readonly key: string
  /** Absent for the machine itself, which belongs to no type. */
  readonly type?: ServerType | undefined
  /** The MonitorName: `postgres orders`. */
  readonly name: string
  readonly runsOn: 'network' | 'machine'
  readonly every: { readonly [D in ExecutionMode]?: number | undefined }
  readonly dependsOn: readonly Dependency[]
  /** Milliseconds that a worse level must last. */
  readonly confirmMs: number
  /** More faults in an hour than this are flapping. Infinity: never. */
  readonly flapping: number
  /** Keys that it had before. */
  readonly formerly: readonly string[]
  /** Changes with the settings: what was in doubt under others proves nothing. */
  readonly fingerprint: string
}

/** A dependent fails with a group when fewer than `atLeast` of its members are well. A single monitor is a group of one. */
export type Dependency = { readonly atLeast: number; readonly of: readonly string[] }

/** A monitor by its key, its type and its MonitorName. */
export type KeyedMonitor = {
  readonly key: string
  readonly type?: ServerType | undefined
  readonly monitor: string
}

/** The monitor on which the fault of another one rests. */
export type Cause = KeyedMonitor

/** A fault of a subject from its first bad run to its end. */
export type Incident = {
  /** The same wherever the same fault of the same subject is seen: it follows from the subject and the beginning. */
  readonly id: string
  /** When the first bad run began. */
  readonly beganAt: number
  /** When it was confirmed. */
  readonly confirmedAt: number
  readonly level: 'warning' | 'failed'
  readonly fault?: FaultClass | undefined
  readonly message: string
  /** It is a victim of this cause: messages are about the cause. */
  readonly cause?: Cause | undefined
  /** Since when the cause of a victim is gone. */
  readonly freedAt?: number | undefined
  /** The names that its monitor has had before since it began. Receivers know it by the first one until it ends. */
  readonly formerly?: readonly KeyedMonitor[] | undefined
  readonly isFlapping: boolean
  /** It began because nothing was observed. */
  readonly isUnobserved: boolean
}

/**
 * - `begin`, `change`, `end`: an incident, its level, its end.
 * - `removed`: its monitor or item no longer exists. It did not recover.
 * - `flapping`, `settled`: the level changes too often to report each change; it no longer does.
 * - `unobserved`, `observed`: there was no verdict for too long; there is one again.
 * - `freed`: the cause of a victim is gone, and the victim still fails, so that its incident is its own from now on.
 * - `blip`: a fault that was over before it was confirmed. It belongs to no incident.
 */
export type TransitionKind =
  | 'begin'
  | 'change'
  | 'end'
  | 'removed'
  | 'flapping'
  | 'settled'
  | 'unobserved'
  | 'observed'
  | 'freed'
  | 'blip'

/** Something that happened to a subject. All that follows from checks reads the one ordered stream of these. */
export type Transition = {
  readonly what: TransitionKind
  /** When the first run began that showed it: for `begin` the first bad run, for `end` the first healthy one. */
  readonly at: number
  /** When it was certain. Transitions are in this order. */
  readonly confirmedAt: number
  readonly key: string
  /** Absent for the machine itself. */
  readonly type?: ServerType | undefined
  /** The MonitorName. */
  readonly monitor: string
  readonly check: string
  readonly item?: string | undefined
  readonly from: CheckLevel | 'unobserved'
  readonly to: CheckLevel | 'unobserved' | 'removed'
  readonly fault?: FaultClass | undefined
  readonly message: string
  readonly cause?: Cause | undefined
  /** The id of the incident. Absent for a blip. */
  readonly incident?: string | undefined
  /** The depth at which it was observed. */
  readonly depth: ExecutionMode
  /** The subject under another name of its monitor, whose incident is about the same fault. This one ends with it. */
  readonly goesOnAs?: StoredSubject | undefined
}

/** The outcome of a check in one run: the level, the class and the message belong together. */
export type Observed = Pick<Verdict, 'fault' | 'message'> & { readonly level: CheckLevel }

/** The confirmed state of a subject, with the doubts about it. */
export type SubjectState = {
  /** The confirmed level. */
  readonly level: CheckLevel
  /** When the first run began that showed it. */
  readonly levelSince: number
  /** When the run began that confirmed it. */
  readonly confirmedAt: number
  readonly fault?: FaultClass | undefined
  readonly message: string
  /** The shallowest mode that contains the check. */
  readonly checkDepth: ExecutionMode
  /** The shallowest run that showed the fault: a healthy one that is shallower heals nothing. */
  readonly depth: ExecutionMode
  /** The beginning of the first of consecutive runs that were at least this bad. */
  readonly doubt?: FaultInDoubt | undefined
  /** The beginning of the first of consecutive runs that were better, and the worst verdict among them. */
  readonly healing?: { readonly since: number; readonly worst: Observed } | undefined
  /** Another kind of fault at the same level, from its first run until it is confirmed. */
  readonly turning?: { readonly isUnreachable: boolean; readonly since: number } | undefined
  /** The last verdict: its level, when its run began, and since when this level has been seen without a break. */
  readonly latest?:
    | {
        readonly level: CheckLevel
        readonly at: number
        readonly since: number
        readonly fault?: FaultClass | undefined
      }
    | undefined
  /** The last verdict that was not healthy. */
  readonly lastBad?:
    | { readonly level: 'warning' | 'failed'; readonly fault?: FaultClass | undefined; readonly message: string }
    | undefined
  /** When the faults of the last hour began, whether they were confirmed or not. */
  readonly faults: readonly number[]
  readonly isFlapping: boolean
  /** Faults that were over before they were confirmed, since it is watched. */
  readonly blips: number
  /** From when on it counts as unobserved if nothing comes: the last verdict, or the first run without one. */
  readonly observedAt: number
  readonly unobservedSince?: number | undefined
  /** Why the latest run came to no verdict. */
  readonly reason?: string | undefined
  /** How many whole runs in a row have not reported it. */
  readonly missing: number
  /** When shallower healthy runs last made svc look again at the depth of the fault, and how often. */
  readonly looked?: { readonly at: number; readonly times: number } | undefined
  /** The latest run that was shallower than the fault was better. */
  readonly isReached?: true | undefined
  readonly incident?: Incident | undefined
  /** The instant that the id of its latest incident follows from. */
  readonly namedAt?: number | undefined
  /** The fingerprint of the settings under which something began to wait for a second run. */
  readonly settings?: string | undefined
  /** It comes from the store, and no run has shown yet whether what waits for a second run goes on. */
  readonly isRestored?: true | undefined
}

export type FaultInDoubt = {
  readonly warning: number
  readonly failed?: number | undefined
  /** The class of the latest bad verdict. */
  readonly fault?: FaultClass | undefined
  readonly message: string
  /** The message of the latest run that was only a warning. */
  readonly mild?: string | undefined
  /** The latest failure that the peer answered with. */
  readonly answered?:
    | { readonly at: number; readonly fault?: FaultClass | undefined; readonly message: string }
    | undefined
  /** When a run began after the time of a confirmation that did not look, because the sign-in paused. */
  readonly hiddenAt?: number | undefined
  /** When the run begins that svc has asked for because an earlier one proved nothing. */
  readonly repeatsAt?: number | undefined
}
