import type { SettingsSpec, Target, Values } from '../settings/index.ts'
import { type Check, declaredResults, joinSettings, runChecks } from './check.ts'
import type { CheckContext } from './check-context.ts'
import type { Kind } from './kind.ts'
import type { JoinedSettings } from './network-kind.ts'

export type MachineKindDeclaration<C extends object, Own extends SettingsSpec, Checks extends readonly Check<C>[]> = {
  readonly name: string
  readonly title: string
  /** Settings of the kind itself; those of its checks are added. */
  readonly settings: Own
  /** `network` where it reaches out although it opens no connection itself; `machine` when absent. */
  readonly runsOn?: 'machine' | 'network'
  /** Given where it reaches out after all. */
  readonly target?: (settings: Values<NoInfer<Own>>) => Target
  readonly validate?: (settings: Values<JoinedSettings<NoInfer<Own>, NoInfer<Checks>>>) => string | undefined
  readonly internal?: true
  /** Loads what it reads with: `Kind.preload`. */
  readonly preload?: () => Promise<unknown>
  /** What the checks share: a process that was found, a first sample. */
  readonly open: (
    settings: Values<JoinedSettings<NoInfer<Own>, NoInfer<Checks>>>,
    context: CheckContext,
  ) => Promise<C> | C
  /** Ends what was opened. Called once, also after the deadline. */
  readonly close?: (connection: NoInfer<C>) => void
  readonly checks: Checks
}

/** Makes a kind that looks at the machine svc runs on: no connection, and no address. */
export function machineKind<C extends object, const Own extends SettingsSpec, const Checks extends readonly Check<C>[]>(
  declaration: MachineKindDeclaration<C, Own, Checks>,
): Kind<JoinedSettings<Own, Checks> & SettingsSpec> {
  const { name, title, settings: own, checks, target, open, close, internal, preload } = declaration
  const { runsOn = 'machine' } = declaration
  return {
    name,
    title,
    runsOn,
    internal,
    preload,
    settings: joinSettings([own, ...checks.map((check) => check.settings)]) as JoinedSettings<Own, Checks> &
      SettingsSpec,
    checks: declaredResults(checks),
    target: target as never,
    validate: declaration.validate as never,
    async *run(settings, context) {
      const connection = await open(settings as never, context)
      const { signal, step } = context
      try {
        yield* runChecks(checks, { connection, usable: () => true, signal, step }, settings, context)
      } finally {
        close?.(connection)
      }
    },
  }
}
