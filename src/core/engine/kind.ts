import type { ExecutionMode } from '../protocol/index.ts'
import type { SettingsSpec, Target, Values } from '../settings/index.ts'
import type { CheckContext } from './check-context.ts'
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
