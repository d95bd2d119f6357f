import { resolveHost } from '../../../src/core/base/net/connect.ts'
import { Secret, type SettingsSpec, type Values } from '../../../src/core/base/settings/index.ts'
import {
  type EngineContext,
  type Kind,
  limits,
  type MonitorReport,
  type Result,
  runMonitors,
} from '../../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { farMs, unhurried, wallClock } from '../suite/until.ts'

export type RunKindOptions = Partial<Omit<EngineContext, 'measureState'>> & {
  readonly timeoutMs?: number
  readonly retries?: number
  readonly calledByPeer?: boolean
  readonly signal?: AbortSignal
  /** The checks that the monitor leaves out. */
  readonly without?: readonly string[] | undefined
}

/** Settings as svc.yaml would give them, with the table's defaults filled in, groups included. */
export function withDefaults<S extends SettingsSpec>(spec: S, overrides: Partial<Values<S>>): Values<S> {
  const values: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries<SettingsSpec[string]>(spec)) {
    const value = (overrides as Record<string, unknown>)[key] ?? ('default' in setting ? setting.default : undefined)
    if (value === undefined) continue
    if (setting.type === 'group') values[key] = withDefaults(setting.fields, value as object)
    else if (setting.type === 'groups')
      values[key] = (value as object[]).map((one) => withDefaults(setting.fields, one))
    else values[key] = value
  }
  return values as Values<S>
}

/**
 * Runs one kind through the real engine, against the real machine. Without `timeoutMs` the deadline is far away, and,
 * unless the test gives `latency`, the clock one on which nothing is slow. `options` replaces parts of it.
 */
export async function reportKind<S extends SettingsSpec>(
  kind: Kind<S>,
  overrides: Partial<Values<S>>,
  mode: ExecutionMode = 'Basic',
  options: RunKindOptions = {},
): Promise<MonitorReport> {
  const context: EngineContext = {
    now: options.now ?? (options.timeoutMs === undefined && !('latency' in overrides) ? unhurried : wallClock),
    date: options.date ?? (() => new Date()),
    resolve: options.resolve ?? resolveHost,
    inChild: options.inChild ?? ((probe) => Promise.reject(new Error(`no child was given for ${probe}`))),
    measureState: () => () => ({}),
    limits: options.limits ?? limits(),
    processorWaitMs: options.processorWaitMs ?? (() => undefined),
    services: options.services,
    history: options.history,
  }
  const monitor = {
    name: `${kind.name} under test`,
    kind,
    settings: withDefaults(kind.settings, overrides),
    configured: new Set(Object.keys(overrides)),
    ...(options.without ? { without: options.without } : {}),
    depth: 'Basic' as const,
    host: false,
    dependsOn: [],
    timeoutMs: options.timeoutMs ?? farMs,
    retries: options.retries ?? 0,
    deployment: false,
  }
  const run = await runMonitors([monitor], context, {
    mode,
    signal: options.signal ?? new AbortController().signal,
    cause: options.calledByPeer ? 'peer' : 'caller',
    timeoutMs: farMs,
  })
  const [report] = run.monitors
  if (!report) throw new Error('the engine ran nothing')
  return report
}

/** The results of `reportKind`. */
export const runKind = async <S extends SettingsSpec>(
  kind: Kind<S>,
  overrides: Partial<Values<S>>,
  mode: ExecutionMode = 'Basic',
  options: RunKindOptions = {},
): Promise<readonly Result[]> => (await reportKind(kind, overrides, mode, options)).results

/** The result of one check; fails the test with a list of the results when there is none. */
export function checked(results: readonly Result[], check: string): Result {
  const match = results.find((result) => result.check === check)
  if (!match)
    throw new Error(`no finding ${check} among: ${results.map((f) => `${f.check}: ${f.message}`).join(' | ')}`)
  return match
}

/** The names of the checks that have a result. */
export const checksOf = (results: readonly Result[]): readonly string[] => results.map(({ check }) => check)

/** Check and message of each result that is not ok. */
export const problemsOf = (results: readonly Result[]): readonly string[] =>
  results.filter(({ status }) => status !== 'ok').map(({ check, message }) => `${check}: ${message}`)

/** The results of one check for an observation, with the default settings; the last argument replaces some. */
export const evaluated = <S extends SettingsSpec, O>(
  check: {
    readonly settings: S
    readonly evaluate: (observation: O, settings: Values<S>) => Result | readonly Result[]
  },
  observation: O,
  overrides: Partial<Values<NoInfer<S>>> = {},
): readonly Result[] => [check.evaluate(observation, withDefaults(check.settings, overrides))].flat()

/** A result that shows the rows of an answer, for kinds that a test makes up. */
export const rowsAsResult = (rows: unknown): Result => ({ check: 'ask', status: 'ok', message: JSON.stringify(rows) })

/** A secret as svc.yaml would point at. */
export const secret = (value: string): Secret => new Secret('{env: TEST}', () => Promise.resolve(value))

/** The results that the engine adds to every kind that connects to a host, or takes a client certificate. */
export const ofRunner: readonly string[] = ['addresses', 'samples', 'client certificate']
