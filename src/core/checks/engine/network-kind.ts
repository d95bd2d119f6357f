import type { SettingsSpec, Target, Values } from '../../base/settings/index.ts'
import { ExecutionMode } from '../../protocol/index.ts'
import { type AddressChoice, type AddressTurn, eachAddress, evaluateUnreached } from './addresses.ts'
import {
  type Check,
  declaredResults,
  type JoinedSettings,
  joinSettings,
  type Located,
  type ResultsOf,
  runChecks,
} from './check.ts'
import { type CheckContext, type Kind, type KindFacts, runIncludes, type SignIn } from './kind.ts'
import type { Result } from './result.ts'

/** The choice for the mode of a run. It counts as depending on the depths from which on another choice applies. */
function choiceIn<Choice>(context: CheckContext, choose: (mode: ExecutionMode) => Choice): Choice | undefined {
  let choice: Choice | undefined
  for (const mode of ExecutionMode.values) {
    const next = choose(mode)
    if (mode === 'Basic' || (next !== choice && runIncludes(context, mode))) choice = next
  }
  return choice
}

/** The connection that a kind opens at an address for its checks. */
export type Connection = {
  /** False once it is broken, or when the server turns out to be of another kind. */
  readonly usable: boolean
  /** Closes the connection. Called once, even after the deadline. */
  readonly close: () => void | Promise<void>
}

/** Declares the runner's own result for a name with more addresses than are probed. */
export const addressesResult = (
  depth: ExecutionMode,
  doc = 'Reported when a name has more addresses than svc probes',
): Check<unknown, Readonly<Record<never, never>>> => ({
  depth,
  results: { addresses: doc },
  settings: {},
  applies: () => false,
  observe: () => Promise.resolve(),
  evaluate: () => [],
})

/** How a connection is opened. This is the first check of every address. */
export type Connect<C, Own extends SettingsSpec, Name extends string, Prepared> = {
  /**
   * Result name → what it proves. An error from `open` becomes a failure of the current step, initially the first of
   * these.
   */
  readonly results: Readonly<Record<Name, string>>
  /** The name of a run's first step, when the settings decide it, or when a check reports what opening observed. */
  readonly firstStep?: (settings: Values<NoInfer<Own>>) => string
  /**
   * Opens the connection. `at.commit()` says that no other address may replace this one any more: a refused sign-in is
   * not repeated elsewhere. Throws what its driver throws.
   */
  readonly open: (
    at: AddressTurn,
    settings: Values<NoInfer<Own>>,
    context: CheckContext,
    prepared: NoInfer<Prepared>,
  ) => Promise<C>
  /** `ms` is how long opening took. */
  readonly evaluate?: (
    opened: { readonly connection: NoInfer<C>; readonly ms: number },
    settings: Values<NoInfer<Own>>,
  ) => ResultsOf<NoInfer<Name>>
}

export type NetworkKindDeclaration<
  C extends Connection,
  Own extends SettingsSpec,
  Name extends string,
  Checks extends readonly Check<C>[],
  Prepared,
> = KindFacts & {
  /** Settings of the kind itself. Those of its checks are added. */
  readonly settings: Own
  /** The target of the requests. The engine allows 4 at a time per host and 1 per database. */
  readonly target: (settings: Values<NoInfer<Own>>) => Target
  /** Which of a name's addresses are tried. Default: `any`, in order until one accepts. */
  readonly addresses?: (settings: Values<NoInfer<Own>>, mode: ExecutionMode) => AddressChoice
  readonly signsIn?: (
    settings: Values<JoinedSettings<NoInfer<Own>, NoInfer<Checks>>>,
    mode: ExecutionMode,
  ) => SignIn | undefined
  readonly validate?: (settings: Values<JoinedSettings<NoInfer<Own>, NoInfer<Checks>>>) => string | undefined
  /** Returns a result to skip the whole run, before any lookup, read or request. Undefined: the run proceeds. */
  readonly declineRun?: (settings: Values<NoInfer<Own>>, context: CheckContext) => Result | undefined
  /** Returns a result to skip an address. Undefined: it connects. */
  readonly declineAddress?: (
    at: AddressTurn,
    settings: Values<NoInfer<Own>>,
    context: CheckContext,
  ) => Result | undefined
  /** Reads secrets and CA files once, before any address is tried. */
  readonly prepare?: (settings: Values<NoInfer<Own>>, context: CheckContext) => Promise<Prepared>
  readonly connect: Connect<C, Own, Name, Prepared>
  readonly checks: Checks
}

/**
 * Makes a kind that connects to a server and runs checks on the connection. It tries the addresses, names the current
 * step, measures, isolates failing checks from the others, and closes the connection.
 */
export function networkKind<
  C extends Connection,
  const Own extends SettingsSpec,
  const Name extends string,
  const Checks extends readonly Check<C>[],
  Prepared = undefined,
>(
  declaration: NetworkKindDeclaration<C, Own, Name, Checks, Prepared>,
): Kind<JoinedSettings<Own, Checks> & SettingsSpec> {
  const { settings: own, connect, checks, target, addresses, signsIn, validate, prepare, ...others } = declaration
  const { declineRun, declineAddress, ...facts } = others
  const steps = Object.keys(connect.results)
  const connecting: Check<C> = {
    depth: 'Basic',
    results: connect.results,
    provesNoReading: true,
    settings: {},
    observe: () => Promise.resolve(undefined),
    evaluate: () => [],
  }
  type SettingsOf = Values<Own>
  return {
    ...facts,
    runsOn: 'network',
    settings: joinSettings([own, ...checks.map((check) => check.settings)]) as JoinedSettings<Own, Checks> &
      SettingsSpec,
    checks: declaredResults([connecting, ...checks]),
    target: (settings) => target(settings as unknown as SettingsOf),
    signsIn: signsIn as never,
    validate: validate as never,
    async *run(joined, context) {
      const settings = joined as unknown as SettingsOf
      const { host = '', port = 0 } = target(settings)
      const declined = declineRun?.(settings, context)
      if (declined) return yield declined
      const prepared = (await prepare?.(settings, context)) as Prepared
      const observations = new Map<Check<C>, Located<unknown>[]>()
      const which = (addresses && choiceIn(context, (mode) => addresses(settings, mode))) ?? 'any'
      const check = connect.firstStep?.(settings) ?? steps[0] ?? 'connect'
      const results = eachAddress<readonly Result[]>(context, { host, port, which, check }, async function* (at) {
        const instead = declineAddress?.(at, settings, context)
        if (instead) return yield [instead]
        const start = context.now()
        const connection = await connect.open(at, settings, context, prepared)
        try {
          at.commit()
          const ms = context.now() - start
          const opened = [connect.evaluate?.({ connection, ms }, settings) ?? []]
            .flat()
            .map((result) => ({ ...result, address: at.address }))
          yield opened
          // The failed result already explains why nothing further runs.
          if (!connection.usable && opened.some(({ status }) => status === 'failed')) return
          const running = {
            connection,
            usable: () => connection.usable,
            address: at.address,
            signal: at.signal,
            step: at.step,
            keep: (of: Check<C>, observation: unknown): void => {
              if (!of.compare) return
              const existing = observations.get(of) ?? []
              observations.set(of, existing)
              existing.push({ address: at.address, observation })
            },
          }
          yield* runChecks(checks, running, joined, context)
        } finally {
          await connection.close()
        }
      })
      for await (const result of results) yield 'see' in result ? evaluateUnreached(result) : result
      for (const [of, all] of observations) {
        if (all.length > 1) yield of.compare?.(all as never, joined as never) ?? []
      }
    },
  }
}
