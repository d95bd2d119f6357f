import { isIP } from 'node:net'
import { oncePerObject } from '../../base/lazy.ts'
import type { SettingsSpec, Target, Values } from '../../base/settings/index.ts'
import { ExecutionMode } from '../../protocol/index.ts'
import {
  type AddressTurn,
  addressesIn,
  addressesSettings,
  type EachAddressFrom,
  eachAddress,
  evaluateUnreached,
  reachSettings,
} from './addresses.ts'
import {
  type Check,
  declaredResults,
  isNameIn,
  type JoinedSettings,
  joinSettings,
  type Located,
  type ResultsOf,
  runChecks,
} from './check.ts'
import { clientExpiry, runClientExpiry } from './client-expiry.ts'
import { type CheckContext, contextWith, type Kind, type KindFacts, runIncludes, type SignIn } from './kind.ts'
import { asLast, isSignInRefusal, type Result } from './result.ts'
import { oneOfSamples, samplesProblem, samplesResult, samplesSetting, takeSamples } from './samples.ts'

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

/** A check whose results the runner itself makes. */
const ofRunner = (
  depth: ExecutionMode,
  results: Check<unknown>['results'],
  more: Partial<Check<unknown>> = {},
): Check<unknown> => ({
  depth,
  results,
  settings: {},
  gate: true,
  ...more,
  applies: () => false,
  observe: () => Promise.resolve(),
  evaluate: () => [],
})

/** The runner's own result for a name with more addresses than are probed. */
export const addressesResult = (
  from: EachAddressFrom,
  target: (settings: never) => Target = () => ({}),
): Check<unknown> =>
  ofRunner(
    from,
    { addresses: 'Reported when a name has more addresses than svc probes' },
    { impossibleWith: (settings) => isIP(target(settings).host ?? '') !== 0 },
  )

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

/** The settings of every kind that connects to a host. */
export type ReachSettings = typeof reachSettings & {
  readonly addresses: (typeof addressesSettings)[EachAddressFrom]
  readonly samples: typeof samplesSetting
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
  /** The mode from which on it checks each address of a name by itself. Default: Advanced. */
  readonly eachAddressFrom?: EachAddressFrom
  /**
   * `signs in`: the server blocks clients that connect and do not sign in, so that svc never only connects to an
   * address.
   */
  readonly knock?: 'signs in'
  readonly signsIn?: (
    settings: Values<JoinedSettings<NoInfer<Own>, NoInfer<Checks>>>,
    mode: ExecutionMode,
  ) => SignIn | undefined
  readonly validate?: (settings: Values<JoinedSettings<NoInfer<Own>, NoInfer<Checks>>>) => string | undefined
  /** Returns a result to skip the whole run, before any lookup, read or request. Undefined: the run proceeds. */
  readonly declineRun?: (
    settings: Values<NoInfer<Own>>,
    context: CheckContext,
  ) => Result | undefined | Promise<Result | undefined>
  /** Whether only all addresses together tell what the settings ask for, so that each is checked by default. */
  readonly needsEachAddress?: (settings: Values<NoInfer<Own>>) => boolean
  /** Returns a result to skip an address, or that takes the place of a connection. Undefined: it connects. */
  readonly declineAddress?: (
    at: AddressTurn,
    settings: Values<NoInfer<Own>>,
    context: CheckContext,
  ) => Result | undefined | Promise<Result | undefined>
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
): Kind<JoinedSettings<Own & ReachSettings, Checks> & SettingsSpec> {
  const { settings: own, connect, checks, target, signsIn, validate, prepare, ...others } = declaration
  const { declineRun, declineAddress, needsEachAddress, eachAddressFrom = 'Advanced', knock, cost, ...facts } = others
  const steps = Object.keys(connect.results)
  const connecting: Check<C> = {
    depth: 'Basic',
    results: connect.results,
    provesNoReading: true,
    settings: {},
    observe: () => Promise.resolve(undefined),
    evaluate: () => [],
  }
  const ofSamples = { settings: { samples: samplesSetting }, when: ['samples'], provesNoReading: true } as const
  const reach = {
    addresses: addressesSettings[eachAddressFrom],
    ...reachSettings,
    samples: samplesSetting,
  }
  const runner = [addressesResult(eachAddressFrom, target as never), ofRunner('Advanced', samplesResult, ofSamples)]
  type SettingsOf = Values<Own>
  // A run asks several times, and a schedule runs the same monitors again and again.
  const targetOf = oncePerObject((joined: object) => target(joined as SettingsOf))
  type All = JoinedSettings<Own & ReachSettings, Checks> & SettingsSpec
  const ofAdvanced = new Set(checks.flatMap(({ depth, results }) => (depth === 'Advanced' ? Object.keys(results) : [])))
  const isOfStandard = ({ check }: Result): boolean => !ofAdvanced.has(check)
  const begin = async (at: AddressTurn, settings: SettingsOf, context: CheckContext, prepared: Prepared) => {
    const start = context.now()
    const connection = await connect.open(at, settings, context, prepared)
    const ms = context.now() - start
    const evaluated = [connect.evaluate?.({ connection, ms }, settings) ?? []].flat()
    return { connection, opened: evaluated.map((result) => ({ ...result, address: at.address })) }
  }
  /** The results of a connection besides the first, on which the checks of Standard run. */
  async function* sampled(
    { connection, opened }: { readonly connection: C; readonly opened: readonly Result[] },
    { turn, joined, context }: { readonly turn: AddressTurn; readonly joined: object; readonly context: CheckContext },
  ): AsyncGenerator<readonly Result[]> {
    yield opened
    const { address, signal, step } = turn
    yield* runChecks(checks, { connection, usable: () => connection.usable, address, signal, step }, joined, context)
  }
  return {
    ...facts,
    cost: cost && 'unit' in cost ? { ...cost, eachAddressFrom, samples: true } : cost,
    runsOn: 'network',
    settings: joinSettings([own, reach, ...checks.map((check) => check.settings)]) as All,
    checks: declaredResults([connecting, ...clientExpiry(own), ...checks, ...runner]),
    target: targetOf as never,
    signsIn: signsIn as never,
    validate: (settings) => samplesProblem(settings) ?? validate?.(settings as never),
    async *run(joined, context) {
      const settings = joined as unknown as SettingsOf
      const { host = '', port = 0 } = targetOf(joined)
      const declined = await declineRun?.(settings, context)
      if (declined) return yield declined
      const prepared = (await prepare?.(settings, context)) as Prepared
      yield* runClientExpiry(joined, context)
      const observations = new Map<Check<C>, Located<unknown>[]>()
      const { addresses, samples } = joined as Partial<Values<ReachSettings>>
      const sampling = samples !== undefined && context.sparesSamples !== true && runIncludes(context, 'Standard')
      const byDefault = choiceIn(context, (mode) => addressesIn(eachAddressFrom, host, mode)) ?? 'any'
      const which = addresses ?? (needsEachAddress?.(settings) ? 'all' : sampling ? 'any' : byDefault)
      const signing = choiceIn(context, (mode) => signsIn?.(joined as never, mode) !== undefined)
      const check = connect.firstStep?.(settings) ?? steps[0] ?? 'connect'
      const ask = {
        host,
        port,
        which,
        check,
        ends: signing ? (of: readonly Result[]) => of.some(isSignInRefusal) : undefined,
        knock: knock && (async (at: AddressTurn) => (await connect.open(at, settings, context, prepared)).close()),
      }
      const results = eachAddress<readonly Result[]>(context, ask, async function* (at) {
        const instead = await declineAddress?.(at, settings, context)
        if (instead) return yield [instead]
        const within = at.msLeft ? contextWith(context, { msLeft: at.msLeft }) : context
        const { connection, opened } = await begin(at, settings, within, prepared)
        const ofFirst: Result[] = [...opened]
        try {
          at.commit()
          // The failed result already explains why nothing further runs.
          const isOver = !connection.usable && opened.some(({ status }) => status === 'failed')
          yield isOver ? opened.map((one) => (one.status === 'failed' ? asLast(one) : one)) : opened
          if (isOver) return
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
          for await (const some of runChecks(checks, running, joined, within)) {
            ofFirst.push(...some)
            yield some
          }
          if (!sampling || ofFirst.some(isSignInRefusal)) return
          const standard = { ...within, mode: 'Standard' as const, step: () => {} }
          const ready = (await prepare?.(settings, standard)) as Prepared
          const others = takeSamples({ count: samples - 1, at, context: within }, async (turn) => {
            const sample = await begin(turn, settings, standard, ready)
            return {
              close: async () => await sample.connection.close(),
              results: sampled(sample, { turn, joined, context: standard }),
            }
          })
          at.step('samples')
          yield [oneOfSamples(at.address, ofFirst.filter(isOfStandard), await others)]
        } finally {
          await connection.close()
        }
      })
      for await (const result of results) yield 'see' in result ? evaluateUnreached(result) : result
      for (const [of, all] of observations) {
        const compared = all.length > 1 ? [of.compare?.(all as never, joined as never) ?? []].flat() : []
        yield compared.filter((result) => !isNameIn(context.without, result.check))
      }
    },
  }
}
