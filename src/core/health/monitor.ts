import type { LookupFunction } from 'node:net'
import type { ExecutionMode } from '../protocol/index.ts'
import type { SettingsSpec, Values } from './settings.ts'

/** What kind of thing went wrong: an operator's first question. */
export type FaultClass =
  | 'dns'
  | 'refused'
  | 'timeout'
  | 'tls'
  | 'auth'
  | 'protocol'
  | 'threshold'
  | 'data'
  | 'dependency'
  | 'internal'

/**
 * One thing that a monitor looked at, judged. A warning is Success on the wire; the interface has
 * two states.
 */
export type Finding = {
  /** MonitoringName, e.g. `round trip`. */
  readonly check: string
  readonly level: 'ok' | 'warn' | 'fail'
  /** One line that a pager can hold: what was observed, against what limit. Never a secret. */
  readonly message: string
  /** More lines for ErrorMessages. */
  readonly details?: readonly string[] | undefined
  /** Given with every `fail`. */
  readonly fault?: FaultClass | undefined
  readonly observed?: number | undefined
  /** `ms`, `%`, `B`, `s`, `days` or nothing for a count. */
  readonly unit?: string | undefined
  readonly limit?: number | undefined
  /** The address that was probed, e.g. `10.0.0.5:5432`. */
  readonly address?: string | undefined
  /** What it is about, where a check looks at several things: the name of a query, a queue. */
  readonly subject?: string | undefined
  /** Version skew, a deployment in progress: what SuppressDeploymentErrors lets pass (H5). */
  readonly deployment?: boolean | undefined
}

/** One check of a kind, for `svc monitors list` and the docs. */
export type Check = {
  readonly name: string
  /** The shallowest mode that runs it; deeper modes include it. */
  readonly depth: ExecutionMode
  readonly doc: string
  /** Settings without any of which it is left out; without this it is always there. */
  readonly when?: readonly string[]
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
export type World = {
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
  readonly history: (series: string, value: number, everyMs: number) => Promise<readonly Reading[] | undefined>
  /** Which programs may be run; absent: none. */
  readonly exec?: ExecConfig | undefined
  /** Where this very process answers over HTTP, once it does. */
  readonly ownUrl?: (() => string | undefined) | undefined
}

/** A figure that an earlier run measured. `at` is milliseconds since 1970. */
export type Reading = { readonly at: number; readonly value: number }

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

/** Where a monitor connects to, as configured. */
export type Target = {
  readonly host?: string | undefined
  readonly port?: number | undefined
  /** What tells one database of a server from another. */
  readonly database?: string | undefined
}

/**
 * A monitor kind. `observe` reads the world and judges nothing; `judge` judges and reads nothing,
 * so that thresholds are tested without a network.
 */
export type MonitorKind<S extends SettingsSpec, O> = {
  readonly kind: string
  readonly title: string
  /** What svc.yaml may say beside the settings common to all kinds. */
  readonly settings: S
  readonly checks: readonly Check[]
  /** Whom it asks. The engine allows 4 at a time a host and 1 a database; a keychain secret is bound to host and port. */
  readonly target?: (settings: Values<S>) => Target
  /** True when it signs in at that mode: a refused sign-in is then not repeated for a while. */
  readonly signsIn?: (settings: Values<S>, mode: ExecutionMode) => boolean
  /** Why settings, each right by itself, cannot be used together: a sentence that begins after the monitor's name. */
  readonly contradiction?: (settings: Values<S>) => string | undefined
  /**
   * Loads what observing loads beside the kind's own module: its driver. `svc serve` calls it before it
   * listens, so that no run of it has to find a file. Rejects when that cannot be loaded.
   */
  readonly preload?: () => Promise<unknown>
  /**
   * Yields what it saw, bit by bit: what was seen before a deadline is kept. Throws what its driver
   * throws; the engine turns that into a finding on the step under way.
   */
  readonly observe: (settings: Values<S>, world: World) => AsyncIterable<O>
  readonly judge: (observation: O, settings: Values<S>) => Finding | readonly Finding[]
  /** Internal kinds cannot be configured. */
  readonly internal?: true
}

/**
 * A kind whose settings are not known here: what a registry holds. Each kind is checked where it is
 * defined; the engine only ever hands it settings that its own table has validated.
 */
export type AnyMonitorKind = {
  readonly kind: string
  readonly title: string
  readonly settings: SettingsSpec
  readonly checks: readonly Check[]
  readonly target?: (settings: never) => Target
  readonly signsIn?: (settings: never, mode: ExecutionMode) => boolean
  readonly contradiction?: (settings: never) => string | undefined
  readonly preload?: () => Promise<unknown>
  readonly observe: (settings: never, world: World) => AsyncIterable<unknown>
  readonly judge: (observation: never, settings: never) => Finding | readonly Finding[]
  readonly internal?: true
}

/** Gives a kind its types: `export default monitorKind({…})`. */
export const monitorKind = <const S extends SettingsSpec, O>(kind: MonitorKind<S, O>): MonitorKind<S, O> => kind

/** Thrown by `observe` when it knows better than an error code what went wrong. */
export class ProbeError extends Error {
  override readonly name = 'ProbeError'
  readonly fault: FaultClass
  readonly details: readonly string[]
  constructor(fault: FaultClass, message: string, details: readonly string[] = []) {
    super(message)
    this.fault = fault
    this.details = details
  }
}
