import type { LookupFunction } from 'node:net'
import type { ExecutionMode } from '../protocol/index.ts'

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

const order: Record<ExecutionMode, number> = { Basic: 0, Standard: 1, Advanced: 2 }

/** True when a run at `mode` includes what belongs to `depth`: each mode includes the shallower. */
export const includes = (mode: ExecutionMode, depth: ExecutionMode): boolean => order[mode] >= order[depth]
