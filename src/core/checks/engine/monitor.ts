import type { AddressFamily } from '../../base/net/addresses.ts'
import type { Every } from '../../base/settings/index.ts'
import type { ExecutionMode, ServerState, ServerType } from '../../protocol/index.ts'
import type { AnyKind, CheckContext, DeclaredResult, RunMemory } from './kind.ts'
import type { Observation, Observations, Slots, Waiter } from './limits.ts'
import type { DependencyGroup, MonitorOfType, NamedElsewhere, Result } from './result.ts'
import type { SignIns } from './sign-ins.ts'

/** One monitor of a plan: a kind on one target, with settings that its table has validated. */
export type PlannedMonitor = {
  /** MonitorName: kind and name, e.g. `postgres orders`. Unique in a plan. */
  readonly name: string
  readonly kind: AnyKind
  readonly settings: unknown
  /** The names of the settings that are given, not defaults. Absent: none is. */
  readonly configured?: ReadonlySet<string> | undefined
  /** The checks that it leaves out, by the names of their results. Absent: none. */
  readonly without?: readonly string[] | undefined
  /** The shallowest mode that runs it. */
  readonly depth: ExecutionMode
  /** Part of the host block, which does not count as a check of the server type. */
  readonly host: boolean
  /** The names of the monitors of the same type on which it depends. */
  readonly dependsOn: readonly string[]
  /** The monitors of other types on which it depends. */
  readonly dependsOnElsewhere?: readonly MonitorOfType[] | undefined
  /** The groups of monitors on which it depends, besides those. */
  readonly dependsOnGroups?: readonly DependencyGroup[] | undefined
  /** The monitors of other types that its own texts name. */
  readonly elsewhere?: readonly NamedElsewhere[] | undefined
  /** Milliseconds; overrides the mode's deadline. */
  readonly timeoutMs?: number | undefined
  /** Additional attempts after a failure; never after a refused sign-in. */
  readonly retries: number
  /** Its failures are deployment-related (H5). */
  readonly deployment: boolean
  /** Milliseconds that a threshold must stay exceeded before it counts. */
  readonly forMs?: number | undefined
  /** The part of svc that is checked because nothing is configured for the type. */
  readonly ownPart?: string | undefined
  /** How often `svc serve` runs it by itself. Absent: as its type, or all monitors. */
  readonly every?: Every | undefined
  /** Milliseconds that a worse result must last before it is confirmed. Absent: as its type, or all monitors. */
  readonly confirmMs?: number | undefined
  /** More faults than this in an hour are flapping. Absent: as its type, or all monitors. */
  readonly flapping?: number | 'off' | undefined
  /** Whether it may write when `svc serve` runs it by itself. */
  readonly scheduleWrites?: boolean | undefined
  /** Its server type. Absent for the host block, which every type has, and for what no type has. */
  readonly type?: ServerType | undefined
  /** The keys that it had before: what is stored under them continues under its own. */
  readonly formerly?: readonly string[] | undefined
  /** Its own tags and those of its type and profile, each once, in the order of the alphabet. Absent: none. */
  readonly tags?: readonly string[] | undefined
  /** It belongs to a rehearsal: its results are scripted, marked, and never ok. */
  readonly drill?: true | undefined
}

/** A result that a run of a monitor may have. `items`: those that the settings name; undefined is one without an item. */
export type PlannedResult = Pick<DeclaredResult, 'name' | 'elsewhere'> & {
  readonly items: readonly (string | undefined)[]
}

export type MonitorReport = {
  readonly name: string
  readonly kind: string
  readonly runsOn: AnyKind['runsOn']
  /** The shallowest mode that runs it. */
  readonly depth: ExecutionMode
  readonly host: boolean
  /** The results that its kind declares. */
  readonly checks: readonly DeclaredResult[]
  readonly results: readonly Result[]
  /** The results that its run may have. Absent in a rehearsal. */
  readonly planned?: readonly PlannedResult[] | undefined
  readonly durationMs: number
  readonly attempts: number
  /**
   * When the observation began and ended, in monotonic milliseconds: earlier than the run where it took the results of
   * another one. Absent where nothing was observed.
   */
  readonly observed?: { readonly beganAt: number; readonly endedAt: number } | undefined
  readonly ownPart?: PlannedMonitor['ownPart']
  readonly tags?: PlannedMonitor['tags']
  readonly drill?: PlannedMonitor['drill']
}

/** One run of a plan. Every document and report is built from it. */
export type Run = {
  readonly id: string
  readonly mode: ExecutionMode
  readonly startedAt: Date
  readonly endedAt: Date
  /** From the monotonic clock: the wall clock may change during a run. */
  readonly durationMs: number
  readonly monitors: readonly MonitorReport[]
  readonly serverState: ServerState
  /** Of the results from before the run. Absent: it observed everything itself, or together with another run. */
  readonly reused?: Reused | undefined
}

/** Milliseconds, at the start of a run: the age of the oldest result that it reuses, and what is left of the first to expire. */
export type Reused = { readonly ageMs: number; readonly leftMs: number }

/** When an observation took place, in monotonic milliseconds. */
export type ObservationTimes = { readonly beganAt: number; readonly endedAt: number }

/** State that lasts from run to run. Made once and passed down. */
export type Limits = {
  readonly slots: Slots
  /** The sign-ins and their refusals. Loaded by the first monitor that signs in. */
  readonly signIns: () => Promise<SignIns>
  /** The outcome of the last run of each monitor, by its fingerprint: true when nothing failed. */
  readonly lastPassed: Map<string, boolean>
  /** The observations for all runs. */
  readonly observations: Observations<WaitingMonitor>
}

/** The engine's external dependencies. */
export type EngineContext = Pick<CheckContext, 'now'> &
  RunMemory & {
    readonly resolve: (host: string, signal: AbortSignal, family?: AddressFamily) => Promise<readonly string[]>
    readonly inChild: (probe: string, input: unknown, signal: AbortSignal) => Promise<unknown>
    /** Starts to measure this machine. The returned function gives the state for the time since. */
    readonly measureState: () => () => ServerState
    readonly limits: Limits
    /** How long svc has waited for a processor, in milliseconds. Absent: as the system says. */
    readonly processorWaitMs?: (() => number | undefined) | undefined
    /** The services that svc provides to kinds. Absent: none. */
    readonly services?: CheckContext['services'] | undefined
    /** Called when an observation begins, once it has its slot. Calls the returned function when it has ended. */
    readonly onObservation?: ((observation: BegunObservation) => ObservationEnd | undefined) | undefined
    /** The functions that serve callers from deeper observations. Absent in a command. */
    readonly serving?: Serving | undefined
    /** The command that tries a monitor at once, also one that must not sign in now: `try now: svc monitors test …`. */
    readonly tryNow?: ((monitor: PlannedMonitor) => Promise<string | undefined>) | undefined
  }

/** An observation that serves a monitor, and the depth of its run. */
export type ServingObservation = { readonly depth: ExecutionMode; readonly observation: Observation<WaitingMonitor> }

export type ServingChoice = {
  readonly chosen: ReadonlyMap<PlannedMonitor, ServingObservation>
  readonly missing: readonly PlannedMonitor[]
}

/** How observations of other runs serve callers (W2). */
export type Serving = {
  /** The depth of the check of a result. Undefined where no check declares it, or checks of several depths do. */
  readonly depthOf: (result: Result, monitor: PlannedMonitor) => ExecutionMode | undefined
  /** A deeper observation that may serve this monitor. Undefined where one at the mode of the run does, or a new one must. */
  readonly deeperFor: (
    monitor: PlannedMonitor,
    options: Pick<RunOptions, 'mode' | 'cause'>,
    when: { readonly notBefore: number; readonly now: number },
  ) => ServingObservation | undefined
  /**
   * The observations that serve these monitors without a new one, and the monitors whose observation is about to begin: the
   * schedule owes it, or it waits for its slot. Undefined if any of them needs a new one.
   */
  readonly allFor: (
    monitors: readonly PlannedMonitor[],
    mode: ExecutionMode,
    now: number,
    isOwed?: IsOwed,
  ) => ServingChoice | undefined
  /**
   * The run that these observations make, which have ended: what `runMonitors` makes of them, without its work for each monitor.
   * `began`: when they were chosen, in monotonic milliseconds. Undefined where a run does more with any of them, as with all
   * that failed.
   */
  readonly runOfEnded: (
    plan: readonly PlannedMonitor[],
    options: Pick<RunOptions, 'mode' | 'elsewhere'> & Required<Pick<RunOptions, 'pinned'>>,
    began: number,
  ) => Run | undefined
}

/** Whether the schedule is about to run a monitor at a depth that serves this mode. */
export type IsOwed = (monitor: PlannedMonitor, mode: ExecutionMode) => boolean

/** An observation that begins. `at`: monotonic milliseconds. */
export type BegunObservation = {
  readonly monitor: PlannedMonitor
  readonly mode: ExecutionMode
  readonly cause: RunCause
  readonly at: number
}
/** Called with the results of an observation that has ended. */
export type ObservationEnd = (results: readonly Result[]) => void

/**
 * Why a run takes place: a caller asks for it, it is due, or another svc asks for it. The monitors of a run for a peer
 * query no further svc.
 */
export type RunCause = 'caller' | 'schedule' | 'peer'

export type RunOptions = {
  readonly mode: ExecutionMode
  readonly signal: AbortSignal
  /** Milliseconds for the whole run. Defaults to the mode's deadline. */
  readonly timeoutMs?: number | undefined
  /** Default: `caller`. */
  readonly cause?: RunCause | undefined
  /**
   * Observations that began before this time, in monotonic milliseconds, do not serve. Default: the start of the run.
   */
  readonly notBefore?: number | undefined
  /**
   * Repeats, once, sign-ins that were refused until this time, in milliseconds since 1970: somebody wants to know now.
   */
  readonly repeatsRefusedUntil?: number | undefined
  /**
   * The monitors of other types on which those of the plan depend, and those on which these depend. They run, within the
   * deadline of this run, and are not part of its result.
   */
  readonly elsewhere?: readonly PlannedMonitor[] | undefined
  /** The observations that serve these monitors, chosen before the run. */
  readonly pinned?: ReadonlyMap<PlannedMonitor, ServingObservation> | undefined
  /** Called when the run begins. `pending` shrinks as its monitors end. */
  readonly onBegin?:
    | ((run: { readonly monitors: readonly PlannedMonitor[]; readonly pending: ReadonlySet<PlannedMonitor> }) => void)
    | undefined
  /**
   * Called with the report of each monitor of the plan as soon as that monitor ends, whatever the others wait for.
   * `times`: when another run observed it, if this one did not.
   */
  readonly onReport?: ((report: MonitorReport, times?: ObservationTimes) => void) | undefined
}

/** The time of a run, in monotonic milliseconds, and its order. */
export type RunClock = {
  /** Aborts at the deadline of the run. */
  readonly signal: AbortSignal
  readonly began: number
  readonly ends: number
  readonly ms: number
  /** The order in which monitors get slots, the lowest first. */
  readonly priorities: ReadonlyMap<PlannedMonitor, number>
  /** The keys of the sign-ins that servers have accepted in this run. */
  readonly acceptedSignIns: Set<string>
  /** Observations that began earlier do not serve. */
  readonly notBefore: number
  /** Grows by each result that is older than the run. */
  readonly reused: Reused[]
  /** When other runs observed the monitors that this one did not. */
  readonly times: Map<PlannedMonitor, ObservationTimes>
}

/** A monitor that waits for an observation. */
export type WaitingMonitor = Waiter & {
  readonly options: RunOptions
  readonly run: RunClock
  readonly waits: readonly string[]
}
