import { createHash } from 'node:crypto'
import type { LookupFunction } from 'node:net'
import { hostname } from 'node:os'
import type { ExecutionMode } from '../protocol/index.ts'
import type { SettingsSpec, Target, Values } from '../settings/index.ts'
import { deadlineSignal, orAborted } from './limits.ts'
import type { Result } from './result.ts'

/** What a kind declares of one of its results: `svc monitors list`, the reference and completion read it. */
export type DeclaredResult = {
  /** MonitoringName; `disk <mount>` declares a family. */
  readonly name: string
  /** The shallowest mode that runs it; deeper modes include it. */
  readonly depth: ExecutionMode
  /** What it proves, in a sentence. */
  readonly doc: string
  /** Settings without any of which it is left out; without this it is always there. */
  readonly when?: readonly string[] | undefined
  /** What the account needs for it, as typed on the server: a GRANT, an ACL, a group. */
  readonly privilege?: string | undefined
}

type About<S extends SettingsSpec> = {
  /** What svc.yaml calls it. */
  readonly name: string
  readonly title: string
  /** What svc.yaml may say beside the settings common to all kinds. */
  readonly settings: S
  /** The results that a run can have, in their order. */
  readonly checks: readonly DeclaredResult[]
  /** Whether it looks at the machine that svc runs on or at something in the network: of several nodes, one asks the network. */
  readonly runsOn: 'machine' | 'network'
  /** Internal kinds cannot be configured. */
  readonly internal?: true | undefined
  /**
   * Loads what observing loads beside the kind's own module: its driver. `svc serve` calls it before it
   * listens, so that no run of it has to find a file. Rejects when that cannot be loaded.
   */
  readonly preload?: (() => Promise<unknown>) | undefined
  /** Whom it asks. The engine allows 4 at a time a host and 1 a database; a keychain secret is bound to host and port. */
  readonly target?: ((settings: Values<S>) => Target) | undefined
  /** True when it signs in at that mode: a refused sign-in is then not repeated for a while. */
  readonly signsIn?: ((settings: Values<S>, mode: ExecutionMode) => boolean) | undefined
  /** Why settings, each right by itself, cannot be used together: a sentence that begins after the monitor's name. */
  readonly validate?: ((settings: Values<S>) => string | undefined) | undefined
}

/** A monitor kind: what it can be told, what it tests, and how to run it. */
export type Kind<S extends SettingsSpec = SettingsSpec> = About<S> & {
  /**
   * Yields results as they are known: what was observed before a deadline is kept. Throws what its driver
   * throws; the engine turns that into a result of the step under way.
   */
  readonly run: (settings: Values<S>, context: CheckContext) => AsyncIterable<Result | readonly Result[]>
}

/**
 * A kind whose settings are not known here: what a registry holds. Each kind is checked where it is
 * defined; the engine only ever hands it settings that its own table has validated.
 */
export type AnyKind = Omit<About<SettingsSpec>, 'target' | 'signsIn' | 'validate'> & {
  readonly target?: ((settings: never) => Target) | undefined
  readonly signsIn?: ((settings: never, mode: ExecutionMode) => boolean) | undefined
  readonly validate?: ((settings: never) => string | undefined) | undefined
  readonly run: (settings: never, context: CheckContext) => AsyncIterable<Result | readonly Result[]>
}

/** What svc's own sign-in needs, as questions that write nothing; each rejects with what is in the way. */
export type OwnSignIn = {
  /** Opens the store of the accounts, and has it answer. */
  readonly store: (signal: AbortSignal) => Promise<void>
  /** Whether anybody who may sign in holds Admin. */
  readonly anyAdmin: () => Promise<boolean>
  /** Reads what a sign-in reads, for a name that nobody has. */
  readonly lookUp: () => Promise<void>
  /** Hashes a password made up for this; whether it is then told from another one. */
  readonly hash: (signal: AbortSignal) => Promise<boolean>
}

/** All of the world that a monitor may touch; tests hand in their own. */
export type CheckContext = {
  readonly mode: ExecutionMode
  /** Aborts at the deadline, or when the run is cancelled. Everything a monitor opens must end with it. */
  readonly signal: AbortSignal
  /** Milliseconds left until the deadline: for a server-side statement timeout. */
  readonly msLeft: () => number
  /** Monotonic milliseconds: for durations. */
  readonly now: () => number
  /** The wall clock: for dates. */
  readonly date: () => Date
  /** Names what is looked at from here on, so that a deadline can say what did not answer. */
  readonly step: (check: string, address?: string) => void
  /** Every address of a name: the hosts file, then DNS. Cancelled by the signal; never getaddrinfo. */
  readonly resolve: (host: string) => Promise<readonly string[]>
  /** The same for drivers that take a `lookup`. */
  readonly lookup: LookupFunction
  /** Runs a probe of `health/child` in a child process that is killed at the deadline. */
  readonly inChild: (probe: string, input: unknown) => Promise<unknown>
  /** Undefined where svc has no accounts of its own. */
  readonly ownSignIn?: OwnSignIn | undefined
  /** True when another svc asked for this run: then no monitor asks a further svc. */
  readonly calledByPeer: boolean
  /** The last heartbeat of every agent. Rejects with a Fault when the store cannot be read; absent: there is none. */
  readonly heartbeats?: (() => Promise<readonly Heartbeat[]>) | undefined
  /**
   * Adds a figure to a series of this monitor on this machine and gives what is kept of it, oldest first, this
   * one last; it is kept when the one before is `everyMs` old. Undefined where nothing is kept, or cannot be
   * now. Never rejects.
   */
  readonly history: (series: string, value: number, everyMs: number) => Promise<readonly HistoryReading[] | undefined>
  /** Which programs may be run; absent: none. */
  readonly exec?: ExecConfig | undefined
  /** Where this very process answers over HTTP, once it does. */
  readonly ownUrl?: (() => string | undefined) | undefined
}

/** A figure that an earlier run measured. `at` is milliseconds since 1970. */
export type HistoryReading = { readonly at: number; readonly value: number }

/** The last sign of life of an agent, as the store keeps it. Times are milliseconds since 1970. */
export type Heartbeat = {
  readonly name: string
  readonly at: number
  readonly status: 'Ok' | 'Warn' | 'Fail'
  readonly message: string | undefined
  readonly version: string | undefined
  /** Milliseconds: how often it means to report. */
  readonly intervalMs: number | undefined
  readonly backlog: number | undefined
  readonly diskFreePercent: number | undefined
  /** Milliseconds by which the agent's clock was ahead of ours. */
  readonly skewMs: number | undefined
  /** The last ones, this one included, oldest first. */
  readonly history: readonly { readonly at: number; readonly status: Heartbeat['status'] }[]
}

/** What the system's svc.yaml says of running programs. */
export type ExecConfig = {
  /** Folders whose programs may be run; none: it is off. */
  readonly allow: readonly string[]
  /** Why it is off, a sentence without its full stop. */
  readonly off?: string | undefined
}

const order: Record<ExecutionMode, number> = { Basic: 0, Standard: 1, Advanced: 2 }

/** True when a run at `mode` includes what belongs to `depth`: each mode includes the shallower. */
export const includes = (mode: ExecutionMode, depth: ExecutionMode): boolean => order[mode] >= order[depth]

/** What is kept from run to run. `at` is milliseconds since 1970. */
export type History = {
  readonly keep: (
    reading: HistoryReading & { readonly series: string; readonly everyMs: number },
  ) => Promise<readonly HistoryReading[]>
  /** Since when each of the keys holds; the others of the series are forgotten, unless `hold`. */
  readonly exceededSince: (state: {
    readonly series: string
    readonly at: number
    readonly keys: readonly string[]
    readonly hold: boolean
  }) => Promise<ReadonlyMap<string, number>>
}

/** What is remembered, by whom, and when it is now. */
export type RunMemory = Pick<CheckContext, 'date'> & {
  /** Keeps what runs saw from run to run; absent: nothing is kept. Rejects when the store is in trouble. */
  readonly history?: History | undefined
  /** The name of this machine: several may share what is kept. Its host name when left out. */
  readonly machine?: string | undefined
}

type Remembered = { readonly kind: AnyKind; readonly settings: unknown }

/** The kind and all that its settings say. Names are unique in one type only; a Secret shows itself nowhere. */
export const fingerprint = ({ kind, settings }: Remembered): string => `${kind.name} ${JSON.stringify(settings)}`

/** What a history may cost a run. Milliseconds. */
const historyMs = 1_000

/** A series of a monitor on this machine: another one with the same settings may see something else. */
function seriesOf(monitor: Remembered, { machine = hostname() }: RunMemory, name: string): string {
  const whole = createHash('sha256').update(fingerprint(monitor)).digest('hex').slice(0, 32)
  return `${monitor.kind.name} ${whole} ${machine} ${name}`
}

/** A trouble of the store is told by who looks at the store; here it is a history that is not there. */
async function orUndefined<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const deadline = deadlineSignal(signal, historyMs)
  try {
    return await orAborted(work, deadline.signal)
  } catch {
    return undefined
  } finally {
    deadline.clear()
  }
}

/** What a monitor may keep of its own. */
export const historyOf =
  (monitor: Remembered, context: RunMemory, signal: AbortSignal): CheckContext['history'] =>
  async (name, value, everyMs) => {
    const { history, date } = context
    const series = seriesOf(monitor, context, name)
    return history && (await orUndefined(history.keep({ series, value, at: date().getTime(), everyMs }), signal))
  }

export const loadHoldDuration = () => import('./hold-duration.ts')

/** Findings of a monitor with `for`: see sustained.ts, which is loaded where somebody says so. */
export async function applyHoldDuration(
  results: readonly Result[],
  forMs: number,
  monitor: Remembered,
  context: RunMemory,
  signal: AbortSignal,
): Promise<readonly Result[]> {
  const { holdDuration: sustained } = await loadHoldDuration()
  const { history } = context
  const at = context.date().getTime()
  const series = seriesOf(monitor, context, 'for')
  return await sustained(
    results,
    { forMs, at },
    async (keys, hold) => history && (await orUndefined(history.exceededSince({ series, at, keys, hold }), signal)),
  )
}
