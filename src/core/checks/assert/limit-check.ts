import type { SettingsSpec, Threshold, ThresholdUnit, Values } from '../../base/settings/index.ts'
import {
  atLeast,
  atMost,
  type CheckDeclaration,
  type DeclaredCheck,
  type Result,
  type ResultsOf,
} from '../engine/index.ts'

/** A figure of a check. `threshold` replaces the configured one, e.g. for a server that is meant to be full. */
type Figure = Omit<Parameters<typeof atMost>[0], 'check' | 'unit' | 'threshold'> & { readonly threshold?: Threshold }

/** The setting of a check with or without a default. */
type LimitSetting<Default extends Threshold | undefined> = {
  readonly type: 'threshold'
  readonly unit: ThresholdUnit
  readonly doc: string
} & (Default extends Threshold ? { readonly default: Default } : unknown)

type Spec<Key extends string, Default extends Threshold | undefined, More> = {
  readonly [K in Key]: LimitSetting<Default>
} & More

type LimitDeclaration<
  Connection,
  Name extends string,
  Key extends string,
  Default extends Threshold | undefined,
  More extends SettingsSpec,
  Observation,
> = Omit<
  CheckDeclaration<Connection, Spec<Key, Default, More>, Name, Observation>,
  'results' | 'settings' | 'evaluate'
> & {
  /** The name of the result. */
  readonly check: Name
  /** The fact that the result proves. */
  readonly proves: string
  /** The setting that contains the threshold, its unit, its default and its description. */
  readonly setting: Key
  readonly unit: ThresholdUnit
  /** Absent: the check is left out unless svc.yaml gives the setting. */
  readonly default?: Default
  readonly doc: string
  /** Which side of the threshold is a fault. Default: `atMost`. */
  readonly bound?: 'atMost' | 'atLeast'
  /** Settings besides the threshold, and before it in every list. */
  readonly settings?: More
  /** `compare` makes the result of a figure; a check without a figure to compare returns a result of its own, or none. */
  readonly evaluate: (
    observation: NoInfer<Observation>,
    compare: (figure: Figure) => Result<NoInfer<Name>>,
    settings: Values<NoInfer<Spec<Key, Default, More>>> & { readonly [K in NoInfer<Key>]: Threshold },
  ) => ResultsOf<NoInfer<Name>>
}

/**
 * Types the checks of one connection that compare a figure with one threshold. The name, the setting and the unit are
 * declared once.
 *
 * @example
 * ```ts
 * type Session = { readonly sessions: () => Promise<{ readonly used: number; readonly max: number }> }
 * const limitCheck = limitsOn<Session>()
 * const sessions = limitCheck({
 *   depth: 'Standard',
 *   check: 'sessions',
 *   proves: 'Enough sessions remain',
 *   setting: 'sessions',
 *   unit: 'percent',
 *   default: { warn: 80, limit: 95 },
 *   doc: 'Sessions in use, in percent of the maximum of the server',
 *   observe: async (session) => await session.sessions(),
 *   evaluate: ({ used, max }, compare) => compare({ what: `${used} of ${max} sessions:`, value: (used / max) * 100 }),
 * })
 * ```
 */
export const limitsOn =
  <Connection>() =>
  <
    const Name extends string,
    const Key extends string,
    Observation,
    const Default extends Threshold | undefined = undefined,
    const More extends SettingsSpec = Record<never, never>,
  >({
    check,
    proves,
    setting,
    unit,
    default: usual,
    doc,
    bound = 'atMost',
    settings: more,
    evaluate,
    ...declaration
  }: LimitDeclaration<Connection, Name, Key, Default, More, Observation>) => {
    const isMinimum = bound === 'atLeast' ? { isMinimum: true } : {}
    const limit = { type: 'threshold', unit, doc, ...isMinimum, ...(usual && { default: usual }) } as const
    const judge = bound === 'atMost' ? atMost : atLeast
    return {
      ...(usual ? {} : { when: [setting] }),
      ...declaration,
      results: { [check]: proves } as Record<Name, string>,
      settings: { ...more, [setting]: limit } as unknown as Spec<Key, Default, More>,
      evaluate: (observation, settings) => {
        const threshold = (settings as Readonly<Record<string, Threshold | undefined>>)[setting]
        if (!threshold) return []
        const compare = (figure: Figure) => judge({ threshold, ...figure, check, unit })
        return evaluate(observation, compare, settings as never)
      },
    } as DeclaredCheck<Connection, Spec<Key, Default, More>, Name, Observation>
  }
