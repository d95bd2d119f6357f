import type { LookupFunction } from 'node:net'
import { hostname } from 'node:os'
import { isStoreFailure } from '../../base/errors.ts'
import type { ConfiguredFiles } from '../../base/files/index.ts'
import type { AddressFamily } from '../../base/net/addresses.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { Secret, type SettingsSpec, type Target, type Values } from '../../base/settings/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import type { DriverName } from '../drivers/index.ts'
import type { Recognition } from '../recognition/index.ts'
import type { KindCost } from './cost.ts'
import type { ExceededHere } from './hold-duration.ts'
import { deadlineSignal, orAborted } from './limits.ts'
import type { IdentifiedMonitor } from './monitor-key.ts'
import type { Result } from './result.ts'

/** A result that a kind declares. Used by `svc monitors list`, the reference and completion. */
export type DeclaredResult = {
  /** The MonitoringName. `disk <mount>` declares a family. */
  readonly name: string
  /** The shallowest mode that runs it; deeper modes include it. */
  readonly depth: ExecutionMode
  /** The fact that the result proves, in a sentence. */
  readonly doc: string
  /** The result is left out unless one of these settings is given. Absent: always included. */
  readonly when?: readonly string[] | undefined
  /** In which case the result is rightly left out although one of those settings is given. */
  readonly emptyWhere?: string | undefined
  /** The privilege that the account needs, as typed on the server: a GRANT, an ACL, a group. */
  readonly privilege?: string | undefined
  /** The settings of svc.yaml that demand the check. Absent for a result that no check declares by itself. */
  readonly settings?: readonly string[] | undefined
  /** The same settings, for a check with a privilege: where one is given and the account lacks the privilege, it fails. */
  readonly demandedBy?: readonly string[] | undefined
  /** It shows that the server answers or accepts the sign-in, and not that the account can read anything. */
  readonly provesNoReading?: true | undefined
  /** The shallowest mode with these settings, when they decide it. */
  readonly depthWith?: ((settings: never) => ExecutionMode) | undefined
  /** Whether the settings alone tell that it never has a result. A plan then does not name it. */
  readonly impossibleWith?: ((settings: never) => boolean) | undefined
  /** The items of which each has a result, where the settings name them. */
  readonly items?: ((settings: never, mode: ExecutionMode) => readonly (string | undefined)[]) | undefined
  /** It does not describe the connection itself: several addresses of a name have one result. */
  readonly elsewhere?: true | undefined
  /** `without` may leave it out: it proves neither the connection nor the sign-in. */
  readonly canBeLeftOut?: true | undefined
}

/** A part of a protocol that servers may lack, and that svc sends. */
export type OptionalPart = {
  /** The part as it appears in the protocol: a command, a control. */
  readonly part: string
} & (
  | {
      /** The offer of the server without which it is not sent. */
      readonly after: string
    }
  | {
      /** The behaviour of a server without the part that the protocol demands: why it may be sent without an offer. */
      readonly unasked: string
    }
)

/** Why HTTP headers may be sent without an offer. */
export const ignoredHeaders = 'A server ignores headers that it does not know (RFC 9110, 5.1)'

/** How a monitor signs in. */
export type SignIn = {
  /** The name of the account, or what stands for it, such as `token`. */
  readonly account: string
  /** The secrets that prove the account. */
  readonly secrets: readonly (Secret | string | undefined)[]
  /**
   * The result that shows that the server accepted the sign-in: others with this account then need not wait any
   * longer. Absent: they wait for the end of the monitor.
   */
  readonly result?: string
  /** Where the account signs in, if that is not the target of the monitor. */
  readonly target?: Target
}

type About<S extends SettingsSpec> = {
  /** The kind's name in svc.yaml. */
  readonly name: string
  readonly title: string
  /** Settings in svc.yaml besides those common to all kinds. */
  readonly settings: S
  /** The possible results of a run, in order. */
  readonly checks: readonly DeclaredResult[]
  /**
   * Whether it monitors the machine svc runs on or something in the network. Of several nodes, only one checks the
   * network.
   */
  readonly runsOn: 'machine' | 'network'
  /**
   * How discovery recognizes the servers of the kind on this machine, and what it proposes for them. Their standard ports
   * are in the kind's line in `kinds/index.ts`. `none`: discovery cannot recognize them.
   */
  readonly recognition?: readonly Recognition[] | 'none' | undefined
  /** The cost of a run for the watched server. Absent: svc cannot state it. */
  readonly cost?: KindCost | undefined
  /**
   * The access that its account gives to somebody who has stolen it, with no more privileges than the checks declare,
   * in sentences. For kinds with secrets.
   */
  readonly exposure?: string | undefined
  /** All that a run sees without any of these settings, although the server may be frozen. */
  readonly seesOnly?: { readonly what: string; readonly without: readonly string[] } | undefined
  /** All that svc sends although a server of the kind may not know it. For kinds that access the network. */
  readonly optionalParts?: readonly OptionalPart[] | undefined
  /** Thresholds of these checks count in `svc serve` only after every run has exceeded them for this time. */
  readonly hold?: HeldChecks | undefined
  /** Internal kinds cannot be configured. */
  readonly internal?: true | undefined
  /** Its monitors run programs, which only the system's svc.yaml may allow. */
  readonly runsPrograms?: true | undefined
  /** The driver that it loads, if that may be missing: its monitors are then not checked. */
  readonly driver?: DriverName | undefined
  /**
   * Loads what observing needs besides the kind's own module, i.e. its driver. `svc serve` calls it before it listens,
   * so that no run has to load files. Rejects when the driver cannot be loaded.
   */
  readonly preload?: (() => Promise<unknown>) | undefined
  /**
   * The target of the requests. The engine allows 4 at a time per host and 1 per database. A keychain secret is bound
   * to its host and port.
   */
  readonly target?: ((settings: Values<S>) => Target) | undefined
  /**
   * The account that the mode signs in with; undefined when it does not sign in. A refused sign-in is not repeated for
   * a while, by no monitor with the same server, account and secrets.
   */
  readonly signsIn?: ((settings: Values<S>, mode: ExecutionMode) => SignIn | undefined) | undefined
  /**
   * Why settings that are valid by themselves cannot be combined: a sentence that continues after the monitor's name, or
   * begins with `the setting NAME` and is reported there. What a run reads of its settings before it asks anybody may be called
   * here: a ProbeError is the sentence, too.
   */
  readonly validate?: ((settings: Values<S>) => string | undefined) | undefined
  /** The same for what is read by a library that has to be loaded first. Called after `validate`. Rejects with ProbeError. */
  readonly parse?: ((settings: never) => Promise<void>) | undefined
}

/** The checks of a kind that need a time, whether or not `for` is written, and the setting with the milliseconds. */
export type HeldChecks = { readonly checks: readonly string[]; readonly setting: string }

/** A monitor kind: its settings, its checks and how to run it. */
export type Kind<S extends SettingsSpec = SettingsSpec> = About<S> & {
  /**
   * Yields results as soon as they are known, so that those from before a deadline are kept. Throws what its driver
   * throws; the engine turns that into a failed result of the current step.
   */
  readonly run: (settings: Values<S>, context: CheckContext) => AsyncIterable<Result | readonly Result[]>
}

/**
 * A kind whose settings are unknown here, as a registry holds it. TypeScript checks each kind where it is defined, and
 * the engine passes it only settings that its own table has validated.
 */
export type AnyKind = Omit<About<SettingsSpec>, 'target' | 'signsIn' | 'validate'> & {
  readonly target?: ((settings: never) => Target) | undefined
  readonly signsIn?: ((settings: never, mode: ExecutionMode) => SignIn | undefined) | undefined
  readonly validate?: ((settings: never) => string | undefined) | undefined
  readonly run: (settings: never, context: CheckContext) => AsyncIterable<Result | readonly Result[]>
}

/**
 * Why a kind refuses settings that are valid by themselves, or undefined. Includes the errors of the functions with which a
 * run reads them.
 */
export function ownProblem(kind: Pick<AnyKind, 'validate'>, settings: unknown): string | undefined {
  try {
    return kind.validate?.(settings as never)
  } catch (error) {
    if (error instanceof ProbeError) return error.message
    throw error
  }
}

/** The facts in the declaration of a kind, whichever function makes the kind of it. */
export type KindFacts = Pick<
  AnyKind,
  | 'name'
  | 'title'
  | 'cost'
  | 'exposure'
  | 'recognition'
  | 'internal'
  | 'preload'
  | 'driver'
  | 'seesOnly'
  | 'optionalParts'
  | 'hold'
  | 'parse'
>

/**
 * The services of svc itself that kinds use besides the network and the machine. Empty here: a kind that needs
 * something declares it in its folder by adding a member to this interface, and `open.ts` does not compile until it
 * provides that member.
 *
 *     declare module '../engine/index.ts' {
 *       interface Services {
 *         readonly heartbeats: () => Promise<readonly Heartbeat[]>
 *       }
 *     }
 */
// biome-ignore lint/suspicious/noEmptyInterface: kinds add its members
export interface Services {}

/** The services that this svc provides: undefined where it has none, for example without a store. */
export type ProvidedServices = { readonly [S in keyof Services]: Services[S] | undefined }

/** Everything outside that a monitor may use. Tests pass their own. */
export type CheckContext = {
  readonly mode: ExecutionMode
  /** Aborts at the deadline, or when the run is cancelled. Everything that a monitor opens must end with it. */
  readonly signal: AbortSignal
  /** Milliseconds until the deadline, e.g. for a server-side statement timeout. */
  readonly msLeft: () => number
  /** Monotonic milliseconds, for durations. */
  readonly now: () => number
  /** The wall clock, for dates. */
  readonly date: () => Date
  /** Names the current step, so that a timeout can say what did not answer. */
  readonly step: (check: string, address?: string) => void
  /**
   * All addresses of a name that the settings of the monitor allow, or those of one family, from the hosts file, then
   * DNS. Cancelled by the signal; never uses getaddrinfo. Behind a proxy the name itself, which the proxy resolves.
   */
  readonly resolve: (host: string, family?: AddressFamily) => Promise<readonly string[]>
  /** Whether each family of addresses has to serve. */
  readonly bothFamilies?: boolean | undefined
  /** The same, for drivers that accept a `lookup`. */
  readonly lookup: LookupFunction
  /** The operations on a path of the settings. They never block this process, whatever the path leads to (H30). */
  readonly files: ConfiguredFiles
  /** Runs a probe of `health/child` in a child process, which is killed at the deadline. */
  readonly inChild: (probe: string, input: unknown) => Promise<unknown>
  /** The services that svc itself provides to kinds that declare them. */
  readonly services: Partial<ProvidedServices>
  /** True when another svc requested this run: its monitors then query no further svc. */
  readonly calledByPeer: boolean
  /**
   * Adds a value to a series of this monitor on this machine. Resolves with the stored values, oldest first, this one
   * last. The value is stored if the previous one is at least `everyMs` old. Undefined without a history, or when the
   * store fails. Never rejects.
   */
  readonly history: (series: string, value: number, everyMs: number) => Promise<readonly HistoryReading[] | undefined>
  /** True where the schedule leaves `samples` to the runs in Advanced. */
  readonly sparesSamples?: boolean | undefined
  /** The checks that the monitor leaves out, by the names of their results. Absent: none. */
  readonly without?: readonly string[] | undefined
  /** Whether svc.yaml gives a setting of this monitor. A default is not given: nobody asked for it. */
  readonly isConfigured: (setting: string) => boolean
}

/** A value that an earlier run measured. `at` is milliseconds since 1970. */
export type HistoryReading = { readonly at: number; readonly value: number }

const order: Record<ExecutionMode, number> = { Basic: 0, Standard: 1, Advanced: 2 }

/** True when a run at `mode` includes checks of `depth`. Each mode includes the shallower ones. */
export const includes = (mode: ExecutionMode, depth: ExecutionMode): boolean => order[mode] >= order[depth]

/**
 * Which part of the mode a kind has used beside the depths of its checks. Where a shallower run would have used the same, its
 * checks would have had the same results.
 */
export class ModeUse {
  readonly #mode: ExecutionMode
  readonly #depths: ExecutionMode[] = []
  #isRead = false

  constructor(mode: ExecutionMode) {
    this.#mode = mode
  }

  /** Something depends on the mode itself. */
  read(): ExecutionMode {
    this.#isRead = true
    return this.#mode
  }

  /** Something depends on whether the run includes this depth. */
  includes(depth: ExecutionMode): boolean {
    if (!this.#depths.includes(depth)) this.#depths.push(depth)
    return includes(this.#mode, depth)
  }

  /** Which checks are due depends on the mode in every kind, so that it is not counted. */
  isDue(depth: ExecutionMode): boolean {
    return includes(this.#mode, depth)
  }

  isSameIn(mode: ExecutionMode): boolean {
    return !this.#isRead && this.#depths.every((depth) => includes(mode, depth) === includes(this.#mode, depth))
  }
}

type Members = Omit<CheckContext, 'mode'>

/**
 * A context whose mode counts as used once somebody reads it. A copy by `...` reads it. Each run makes several: all have the
 * same members in the same order and share one getter, because V8 turns others into hash tables, of which each costs a
 * hundredth of a run.
 */
class CountingContext implements Members {
  readonly signal: AbortSignal
  readonly msLeft: Members['msLeft']
  readonly now: Members['now']
  readonly date: Members['date']
  readonly step: Members['step']
  readonly resolve: Members['resolve']
  readonly bothFamilies: boolean | undefined
  readonly lookup: Members['lookup']
  readonly files: Members['files']
  readonly inChild: Members['inChild']
  readonly services: Members['services']
  readonly calledByPeer: boolean
  readonly history: Members['history']
  readonly sparesSamples: boolean | undefined
  readonly without: Members['without']
  readonly isConfigured: Members['isConfigured']
  readonly #use: ModeUse

  constructor(use: ModeUse, all: Required<Members> | CountingContext, more: Partial<Members> = {}) {
    this.#use = use
    this.signal = more.signal ?? all.signal
    this.msLeft = more.msLeft ?? all.msLeft
    this.now = more.now ?? all.now
    this.date = more.date ?? all.date
    this.step = more.step ?? all.step
    this.resolve = more.resolve ?? all.resolve
    this.bothFamilies = more.bothFamilies ?? all.bothFamilies
    this.lookup = more.lookup ?? all.lookup
    this.files = more.files ?? all.files
    this.inChild = more.inChild ?? all.inChild
    this.services = more.services ?? all.services
    this.calledByPeer = more.calledByPeer ?? all.calledByPeer
    this.history = more.history ?? all.history
    this.sparesSamples = more.sparesSamples ?? all.sparesSamples
    this.without = more.without ?? all.without
    this.isConfigured = more.isConfigured ?? all.isConfigured
    Object.defineProperty(this, 'mode', CountingContext.#mode)
  }

  static readonly #mode = {
    enumerable: true,
    get(this: CountingContext): ExecutionMode {
      return this.#use.read()
    },
  }

  static useOf(context: object): ModeUse | undefined {
    return #use in context ? context.#use : undefined
  }
}

/** A context of these members, with the mode of `use`. */
export const countingMode = (use: ModeUse, members: { [M in keyof Required<Members>]: Members[M] }): CheckContext =>
  new CountingContext(use, members as Required<Members>) as unknown as CheckContext

/** A copy of the context with other members. Making it does not count as reading the mode. */
export function contextWith(context: CheckContext, more: Partial<Members>): CheckContext {
  const use = CountingContext.useOf(context)
  if (!use) return { ...context, ...more }
  return new CountingContext(use, context as Required<Members>, more) as unknown as CheckContext
}

/**
 * Whether the run includes what runs from this depth on. Results of checks that ask so, and do not read `mode`, can serve
 * callers of a shallower mode to whom the answer would be the same (W2).
 */
export const runIncludes = (context: CheckContext, depth: ExecutionMode): boolean =>
  CountingContext.useOf(context)?.includes(depth) ?? includes(context.mode, depth)

/** Whether the run includes checks of this depth. */
export const runsChecksOf = (context: CheckContext, depth: ExecutionMode): boolean =>
  CountingContext.useOf(context)?.isDue(depth) ?? includes(context.mode, depth)

/** Values and states kept from run to run. `at` is milliseconds since 1970. */
export type History = {
  readonly keep: (
    reading: HistoryReading & { readonly series: string; readonly everyMs: number },
  ) => Promise<readonly HistoryReading[]>
  /** The time since which each key holds. Forgets the other keys of the series, except those that `holds` accepts. */
  readonly exceededSince: (state: {
    readonly series: string
    readonly at: number
    readonly keys: readonly string[]
    readonly holds: (key: string) => boolean
  }) => Promise<ReadonlyMap<string, number>>
}

/** The dependencies of a monitor's history: the store, the machine and the clock. */
export type RunMemory = Pick<CheckContext, 'date'> & {
  /** Stores values between runs. Absent: nothing is stored. Rejects when the store fails. */
  readonly history?: History | undefined
  /** The state that `svc serve` knows itself of the thresholds that its runs have exceeded. Absent in a command. */
  readonly exceeded?: ExceededHere | undefined
  /** The name of this machine, because several may share a store. Defaults to the host name. */
  readonly machine?: string | undefined
}

type ObservedMonitor = Pick<IdentifiedMonitor, 'kind' | 'settings' | 'configured'> & {
  readonly without?: readonly string[] | undefined
}

/**
 * Equal for two monitors that make the same observation: same kind, same settings with the same secrets, and the same
 * settings given, same checks left out. It says nothing about deadline, depth, retries or `for`, and it does not name a monitor: two monitors
 * of different types may have the same one.
 */
export function fingerprint(monitor: ObservedMonitor): string {
  const before = fingerprints.get(monitor)
  if (before !== undefined) return before
  const { kind, settings, configured = new Set(), without = [] } = monitor
  const parts = [settings, [...configured].toSorted(), ...(without.length === 0 ? [] : [without.toSorted()])]
  const made = `${kind.name} ${JSON.stringify(parts, withOrigins)}`
  fingerprints.set(monitor, made)
  return made
}

/** A schedule runs the same monitors again and again, and each run reads it several times. */
const fingerprints = new WeakMap<ObservedMonitor, string>()

/** A secret serializes without its origin, which tells two secrets apart. `this` holds the value as it was before. */
function withOrigins(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const before = this[key]
  return before instanceof Secret ? `secret ${before.origin}` : value
}

/** The time that a history access may cost a run. Milliseconds. */
const historyMs = 1_000

/** Only a run that keeps values needs it. */
export const loadSeries = () => import('./series.ts')

/** The name of a series in the store. */
async function seriesOf(
  monitor: IdentifiedMonitor,
  { machine = hostname() }: RunMemory,
  name: string,
): Promise<string> {
  const { seriesOf: nameOf } = await loadSeries()
  return nameOf(monitor, machine, name)
}

/** Store failures are reported elsewhere; here they count as a missing history, as does one that comes too late. */
async function orUndefined<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const deadline = deadlineSignal(signal, historyMs)
  try {
    return await orAborted(work, deadline.signal)
  } catch (error) {
    if (deadline.signal.aborted || isStoreFailure(error)) return undefined
    throw error
  } finally {
    deadline.clear()
  }
}

/** The history of one monitor. */
export const historyOf =
  (monitor: IdentifiedMonitor, context: RunMemory, signal: AbortSignal): CheckContext['history'] =>
  async (name, value, everyMs) => {
    const { history, date } = context
    if (!history) return undefined
    const series = await seriesOf(monitor, context, name)
    return await orUndefined(history.keep({ series, value, at: date().getTime(), everyMs }), signal)
  }

export const loadHoldDuration = () => import('./hold-duration.ts')

type HoldMonitor = IdentifiedMonitor & {
  readonly kind: Pick<AnyKind, 'checks' | 'hold'>
  readonly forMs?: number | undefined
}

/**
 * Applies the `for` setting of a monitor, and in `svc serve` that of its kind: a command has a single sample. Loads
 * hold-duration.ts only when there is one.
 */
export async function applyHoldDuration(
  results: readonly Result[],
  monitor: HoldMonitor,
  mode: ExecutionMode,
  context: RunMemory,
  signal: AbortSignal,
): Promise<readonly Result[]> {
  const { hold } = monitor.kind
  const { exceeded } = context
  const ofKind = hold && exceeded && (monitor.settings as Readonly<Record<string, unknown>>)[hold.setting]
  const forMs = monitor.forMs ?? (typeof ofKind === 'number' ? ofKind : undefined)
  if (forMs === undefined) return results
  const { holdDuration: sustained } = await loadHoldDuration()
  const deeper = monitor.kind.checks.filter(({ depth }) => !includes(mode, depth)).map(({ name }) => name)
  const { history } = context
  const at = context.date().getTime()
  const series = history ? await seriesOf(monitor, context, 'for') : ''
  return await sustained(
    results,
    { forMs, at, deeper, only: monitor.forMs === undefined ? hold?.checks : undefined },
    async (keys, holds, endings) => {
      const stored = history && (await orUndefined(history.exceededSince({ series, at, keys, holds }), signal))
      if (monitor.forMs !== undefined || !exceeded) return stored
      return exceeded({ series: fingerprint(monitor), at, keys, holds, endings }, stored)
    },
  )
}
