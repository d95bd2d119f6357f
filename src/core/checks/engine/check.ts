import { oncePerObject } from '../../base/lazy.ts'
import { MissingPrivilegeError } from '../../base/probe-error.ts'
import type { Setting, SettingsSpec, Target, Threshold, Values } from '../../base/settings/index.ts'
import type { ExecutionMode } from '../../protocol/index.ts'
import { classify, withoutVerdict } from './classify.ts'
import {
  type CheckContext,
  contextWith,
  type DeclaredResult,
  includes,
  type Kind,
  type KindFacts,
  runsChecksOf,
} from './kind.ts'
import type { PlannedMonitor } from './monitor.ts'
import { asFailure, asLast, decideDenied, demandingSettings, notChecked, type Result } from './result.ts'

/** `queue <key>` declares a family of results: any text may replace the part in angle brackets. */
type NameOf<N extends string> = N extends `${infer Head}<${string}>${infer Tail}` ? `${Head}${string}${Tail}` : N
/** Results under declared names. An empty list means that the check does not apply here. */
export type ResultsOf<Name extends string> = Result<NameOf<Name>> | readonly Result<NameOf<Name>>[]

/** The fact that a result proves. `when` lists the conditions of a result that differ from those of its check. */
export type ResultDoc<Key extends string = string> =
  | string
  | { readonly doc: string; readonly when: readonly Key[]; readonly items?: DeclaredResult['items'] }

/** An observation and the address where it was made. */
export type Located<Observation> = { readonly address: string; readonly observation: Observation }

/** The declaration of one check. `Connection` is what its kind opens. */
export type CheckDeclaration<Connection, Spec, Name extends string, Observation> = {
  /** The shallowest mode that runs it. */
  readonly depth: ExecutionMode
  /** Result name → what it proves. Used by the reference, `svc monitors list` and completion. */
  readonly results: Readonly<Record<Name, ResultDoc<keyof NoInfer<Spec> & string>>>
  /** Settings that the check adds to its kind. Checks share a setting by sharing its declaration. Default: none. */
  readonly settings?: Spec
  /** The check is left out unless at least one of these settings is given. */
  readonly when?: readonly (keyof NoInfer<Spec> & string)[]
  /**
   * In which case the check rightly yields no result although a setting of `when` is given: `the server is a standby`.
   * In any other case, a check without a result is reported as not checked.
   */
  readonly emptyWhere?: string
  /** The items of which each has a result, where the settings name them; undefined for a result without an item. */
  readonly items?: (settings: Values<NoInfer<Spec>>, mode: ExecutionMode) => readonly (string | undefined)[]
  /** The privilege that the account needs, as typed on the server: a GRANT, an ACL, a group. */
  readonly privilege?: string
  /** Without its privilege, the check is left out instead of not checked, unless svc.yaml gives one of its settings. */
  readonly optional?: true
  /**
   * It shows that the server answers or accepts the sign-in, and not that the account can read anything: a greeting, a
   * ping, a certificate, a clock.
   */
  readonly provesNoReading?: true
  /**
   * When this check fails, the checks after it do not run on this connection: a greeting, a sign-in. Exceeding a
   * threshold does not count as such a failure.
   */
  readonly gate?: true
  /** Runs after all other checks, whatever the order of declaration: it takes long, or may end the connection. */
  readonly last?: true
  /**
   * Runs before all other checks, whatever the order of declaration: opening the connection has read all that it
   * needs.
   */
  readonly first?: true
  /** Its results do not describe the connection itself: they carry their own addresses, or none. */
  readonly elsewhere?: true
  /** The shallowest mode with these settings, when they decide it. */
  readonly depthWith?: (settings: Values<NoInfer<Spec>>) => ExecutionMode
  /**
   * Whether the settings alone tell that the check never has a result, e.g. a certificate check of a URL without TLS. A
   * plan then does not name it. It gets all settings of the kind.
   */
  readonly impossibleWith?: (settings: never) => boolean
  /**
   * False leaves the check out on this connection, e.g. a certificate check without TLS. It asks what the server is and
   * what the session has reached, never whether the connection still works: a check that a lost connection prevents
   * must fail, and not disappear.
   */
  readonly applies?: (connection: NoInfer<Connection>, settings: Values<NoInfer<Spec>>) => boolean
  /**
   * Reads only. A stream is evaluated piece by piece, so that results from before the deadline are kept. Checks with
   * the identical function are observed once, in the place of the first of them, and each evaluates every piece.
   */
  readonly observe: (
    connection: Connection,
    settings: Values<NoInfer<Spec>>,
    context: CheckContext,
  ) => Promise<Observation> | AsyncIterable<Observation>
  /** Decides and reads nothing, so that thresholds can be tested without a network. */
  readonly evaluate: (observation: NoInfer<Observation>, settings: Values<NoInfer<Spec>>) => ResultsOf<NoInfer<Name>>
  /** Compares the observations of all addresses after the last one, e.g. whether they run the same version. */
  readonly compare?: (
    all: readonly Located<NoInfer<Observation>>[],
    settings: Values<NoInfer<Spec>>,
  ) => ResultsOf<NoInfer<Name>>
}

/** A declaration with the settings that it adds, none if it names none. */
export type DeclaredCheck<Connection, Spec, Name extends string, Observation> = CheckDeclaration<
  Connection,
  Spec,
  Name,
  Observation
> & { readonly settings: Spec }

/** A check as its kind holds it, without the type of its observation. */
export type Check<Connection, Spec extends SettingsSpec = SettingsSpec> = Pick<
  CheckDeclaration<Connection, SettingsSpec, string, unknown>,
  | 'depth'
  | 'results'
  | 'when'
  | 'emptyWhere'
  | 'privilege'
  | 'optional'
  | 'provesNoReading'
  | 'gate'
  | 'last'
  | 'first'
  | 'elsewhere'
> & {
  readonly settings: Spec
  readonly depthWith?: (settings: never) => ExecutionMode
  readonly impossibleWith?: (settings: never) => boolean
  readonly items?: (settings: never, mode: ExecutionMode) => readonly (string | undefined)[]
  readonly applies?: (connection: Connection, settings: never) => boolean
  readonly observe: (
    connection: Connection,
    settings: never,
    context: CheckContext,
  ) => Promise<unknown> | AsyncIterable<unknown>
  readonly evaluate: (observation: never, settings: never) => Result | readonly Result[]
  readonly compare?: (all: readonly Located<never>[], settings: never) => Result | readonly Result[]
}

/**
 * Gives the checks of one connection type their types. It infers the observation from `observe` and the settings from
 * `settings`; a result under an undeclared name does not compile.
 *
 * @example
 * ```ts
 * import { atMost } from './result.ts'
 * type Session = { readonly usedPercent: () => Promise<number> }
 * const check = checksOn<Session>()
 * const connections = check({
 *   depth: 'Standard',
 *   results: { connections: 'Connections are left for ordinary accounts' },
 *   settings: { connections: { type: 'threshold', unit: 'percent', default: { warn: 80, limit: 95 }, doc: '…' } },
 *   observe: async (session) => ({ percent: await session.usedPercent() }),
 *   evaluate: ({ percent }, { connections: threshold }) =>
 *     atMost({ check: 'connections', value: percent, unit: 'percent', threshold }),
 * })
 * ```
 */
export const checksOn =
  <Connection>() =>
  <const Name extends string, Observation, const Spec extends SettingsSpec = Record<never, never>>(
    declaration: CheckDeclaration<Connection, Spec, Name, Observation>,
  ): DeclaredCheck<Connection, Spec, Name, Observation> => ({ settings: {} as Spec, ...declaration })

/** The failure of a shared read. Reported only once, under the name of the read. */
class SharedReadError extends Error {
  override readonly name = 'SharedReadError'
  readonly read: string
  reported = false
  constructor(read: string, cause: unknown) {
    super(`the read ${read} failed`, { cause })
    this.read = read
  }
}

/** Thrown by a read whose answer another check has found wrong, so that it shows nothing of what the others check. */
export class UnacceptedAnswerError extends Error {
  override readonly name = 'UnacceptedAnswerError'
}

/** A read that several checks share as their `observe`. */
export type SharedRead<Connection, Observation> = {
  (connection: Connection, settings: unknown, context: CheckContext): Promise<Observation>
  /** The result that reports a failure of the read itself. */
  readonly failure: { readonly name: string; readonly doc: string }
}

/**
 * Reads once per connection for all checks that use it. When the read fails, the first of these checks reports it
 * under the current step (initially `name`), and the others are left out. A read may await another one.
 */
export function sharedRead<Connection extends object, Observation>(
  name: string,
  doc: string,
  read: (connection: Connection, context: CheckContext) => Promise<Observation>,
): SharedRead<Connection, Observation> {
  const reads = new WeakMap<Connection, Promise<Observation>>()
  const observe = (connection: Connection, _settings: unknown, context: CheckContext): Promise<Observation> => {
    const existing = reads.get(connection)
    if (existing) return existing
    let current = name
    const step: CheckContext['step'] = (next, address) => {
      current = next
      context.step(next, address)
    }
    step(name)
    const made = read(connection, contextWith(context, { step })).catch((cause: unknown) => {
      throw cause instanceof SharedReadError ? cause : new SharedReadError(current, cause)
    })
    reads.set(connection, made)
    return made
  }
  return Object.assign(observe, { failure: { name, doc } })
}

/** Wraps an error that prevented an observation and adds fields to its result. The cause is what gets classified. */
export class ObservationError extends Error {
  override readonly name = 'ObservationError'
  readonly about: Pick<Result, 'address' | 'deployment'>
  constructor(cause: unknown, about: Pick<Result, 'address' | 'deployment'>) {
    super('the check could not observe', { cause })
    this.about = about
  }
}

/** Where checks run. */
export type CheckTarget<Connection> = {
  readonly connection: Connection
  /** False once the connection is broken. No further check uses it then. */
  readonly usable: () => boolean
  /** `ip:port`; absent for this machine. */
  readonly address?: string | undefined
  /** Aborts at the deadline, or when it is the next address's turn. */
  readonly signal: AbortSignal
  /** Names the current step and its address, if that differs. */
  readonly step: (check: string, address?: string) => void
  /** Stores an observation for checks that compare addresses. */
  readonly keep?: ((check: Check<Connection>, observation: unknown) => void) | undefined
}

/**
 * Runs the due checks one after the other and yields their results with their addresses. A check that cannot observe
 * becomes a failure and does not hide the others. A broken connection ends the run with a failure that names the checks
 * it prevented. The deadline is rethrown.
 */
export async function* runChecks<Connection>(
  checks: readonly Check<Connection>[],
  target: CheckTarget<Connection>,
  settings: object,
  context: CheckContext,
): AsyncGenerator<readonly Result[]> {
  const { connection, address, signal } = target
  const dueOf = (group: readonly Check<Connection>[]): readonly Check<Connection>[] =>
    group.filter(
      (check) =>
        isDue(check, settings, context) &&
        !isLeftOut(check, context) &&
        (check.applies?.(connection, settings as never) ?? true),
    )
  const groups = observedTogether(checks as readonly Check<never>[]) as readonly (readonly Check<Connection>[])[]
  let [name, place, since] = ['', address, 0]
  const step = (next: string, elsewhere?: string): void => {
    name = next
    place = elsewhere ?? place
    since = context.now()
    target.step(next, elsewhere)
  }
  const within = contextWith(context, { signal, step })
  const demandsOf = ({ settings: own }: Check<Connection>): readonly string[] =>
    demandingSettings(own).filter(context.isConfigured)
  const failed = (as: string, error: unknown): Result => {
    const { cause, about } = error instanceof ObservationError ? error : { cause: error, about: {} }
    const at = about.address ?? place
    if (cause instanceof MissingPrivilegeError) {
      return notChecked(as, 'permission', cause.message, { details: cause.details, ...about, address: at })
    }
    const unchecked = withoutVerdict(as, cause, { ...about, address: at })
    if (unchecked) return unchecked
    return { check: as, status: 'failed', ...classify(cause, at, context.now() - since), ...about, address: at }
  }
  for (const [index, group] of groups.entries()) {
    const due = dueOf(group)
    const [first] = due
    if (!first) continue
    place = address
    step(firstName(first))
    const obstacles: Parameters<typeof decideDenied>[1]['obstacles'] = new Map()
    const decided = (check: Check<Connection>, results: Result | readonly Result[]): readonly Result[] =>
      decideDenied([results].flat(), {
        check,
        demands: demandsOf(check),
        obstacles,
        isOptional: check.optional === true,
      })
    const located = (check: Check<Connection>, results: Result | readonly Result[]): readonly Result[] =>
      address === undefined || check.elsewhere
        ? decided(check, results)
        : decided(check, results).map((result) => ({ ...result, address }))
    const evaluate = (check: Check<Connection>, observation: unknown): readonly Result[] => {
      try {
        const results = located(check, check.evaluate(observation as never, settings as never))
        return results.filter((result) => !isNameIn(context.without, result.check))
      } catch (cause) {
        return [failed(check === first ? name : firstName(check), cause)]
      }
    }
    /** Of checks that share a read, each that svc.yaml demands reports for itself that the account may not read. */
    const unobserved = (error: unknown): readonly Result[] => {
      const shared = error instanceof SharedReadError ? error : undefined
      const thrown: unknown = shared ? shared.cause : error
      if (thrown instanceof UnacceptedAnswerError) {
        return due.flatMap((check) => located(check, notChecked(firstName(check), 'status', thrown.message)))
      }
      const isReported = shared?.reported === true
      if (shared) shared.reported = true
      const one = shared ? [failed(shared.read, thrown)] : decided(first, failed(name, thrown))
      const askedFor = isDenial(thrown) ? due.filter((check) => demandsOf(check).length > 0) : []
      const each = askedFor.flatMap((check) => decided(check, failed(firstName(check), thrown)))
      if (isReported) return each
      return [...one.filter((result) => each.every(({ check }) => check !== result.check)), ...each]
    }
    let closed = false
    const observed = new Set<string>()
    const silent = new Set(due.filter(({ when, emptyWhere }) => when !== undefined && emptyWhere === undefined))
    const judged = (observation: unknown): readonly Result[] =>
      due.flatMap((check) => {
        target.keep?.(check, observation)
        const results = evaluate(check, observation)
        if (results.length > 0) silent.delete(check)
        for (const result of results) observed.add(result.check)
        const closes = ({ status, fault, notChecked: why }: Result): boolean =>
          check.gate === true && status === 'failed' && fault !== 'threshold' && why !== 'permission'
        closed ||= results.some(closes)
        return results.map((result) => (closes(result) ? asLast(result) : result))
      })
    try {
      const observing = first.observe(connection, settings as never, within)
      if (Symbol.asyncIterator in observing) for await (const piece of observing) yield judged(piece)
      else yield judged(await observing)
      // A gate that fails in the same observation already says why there is nothing to evaluate.
      if (!closed && !signal.aborted) for (const check of silent) yield located(check, withoutResult(check))
    } catch (error) {
      if (signal.aborted) throw causeOf(error)
      if (!target.usable()) {
        const expected = groups
          .slice(index)
          .flatMap(dueOf)
          .flatMap((check) => expectedNames(check, settings))
        const lost = failed(name, error instanceof SharedReadError ? error.cause : error)
        yield [withPrevented(lost, expected, observed)]
        return
      }
      closed = due.some(({ gate }) => gate)
      yield closed ? unobserved(error).map(asLast) : unobserved(error)
    }
    if (closed) return
  }
}

/** The error of the observation itself. */
function causeOf(error: unknown): unknown {
  const read = error instanceof SharedReadError ? error.cause : error
  return read instanceof ObservationError ? read.cause : read
}

const isDenial = (error: unknown): boolean => causeOf(error) instanceof MissingPrivilegeError

/** The failure of a broken connection, with the checks that it prevented. Never only a warning: nothing else ran. */
function withPrevented(lost: Result, expected: readonly string[], observed: ReadonlySet<string>): Result {
  const result = asLast(asFailure(lost))
  const names = new Set(expected.filter((name) => name !== lost.check && !observed.has(name)))
  if (names.size === 0) return result
  const why = `not checked, because the connection ended: ${[...names].join(', ')}`
  return { ...result, details: [...(result.details ?? []), why] }
}

/** The names of the results that a check may have with these settings. */
const expectedNames = ({ results }: Pick<Check<never>, 'results'>, settings: object): readonly string[] =>
  Object.entries(results)
    .filter(([, about]) => typeof about === 'string' || isEnabled(about.when, settings))
    .map(([name]) => name)

/** A configured check that looked at nothing is not healthy. */
const withoutResult = ({ results, when = [] }: Pick<Check<never>, 'results' | 'when'>): Result =>
  notChecked(firstName({ results }), 'missing', `nothing was found to check for ${when.join(' or ')}`)

/** Groups the checks that share an `observe`, in the order in which they run. */
const observedTogether = oncePerObject((checks: readonly Check<never>[]): readonly (readonly Check<never>[])[] => {
  const ordered = [
    ...checks.filter(({ first }) => first),
    ...checks.filter(({ first, last }) => !first && !last),
    ...checks.filter(({ last }) => last),
  ]
  return [...Map.groupBy(ordered, ({ observe }) => observe).values()]
})

/** Whether the mode and the settings include a check. */
const isDue = (
  { depth, depthWith, when }: Pick<Check<never>, 'depth' | 'depthWith' | 'when'>,
  settings: object,
  context: CheckContext,
): boolean =>
  (depthWith ? includes(context.mode, depthWith(settings as never)) : runsChecksOf(context, depth)) &&
  isEnabled(when, settings)

/** Whether a name is in a list of declared names, where `disk <mount>` means each of its family. */
export const isNameIn = (declared: readonly string[] | undefined, name: string): boolean =>
  declared?.some((one) => {
    const [head = '', tail] = one.split(/<[^<>]+>/, 2)
    return one === name || (tail !== undefined && name.startsWith(head) && name.endsWith(tail))
  }) ?? false

/** Whether the monitor leaves out all results of a check. */
const isLeftOut = ({ results }: Pick<Check<never>, 'results'>, { without }: CheckContext): boolean =>
  without !== undefined && Object.keys(results).length > 0 && Object.keys(results).every((one) => without.includes(one))

/** Whether at least one of the settings that a check depends on is given. An empty list names nothing to check. */
export const isEnabled = (when: readonly string[] | undefined, settings: object): boolean =>
  when === undefined ||
  when.some((name) => {
    const value = (settings as Readonly<Record<string, unknown>>)[name]
    return value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0)
  })

const firstName = ({ results }: Pick<Check<never>, 'results'>): string => Object.keys(results)[0] ?? 'check'

/**
 * The results that checks declare, in order. The result of a shared read comes before its first check, unless a check
 * declares it. A result that several checks declare with the same text is listed once, with all their conditions.
 */
export function declaredResults(checks: readonly Check<never>[]): readonly DeclaredResult[] {
  const reads = new Set(checks.flatMap(({ results }) => Object.keys(results)))
  const all = checks.flatMap((check): readonly DeclaredResult[] => {
    const { depth, depthWith, impossibleWith, items, elsewhere, results, when } = check
    const { emptyWhere, privilege, gate, settings, observe } = check
    const canBeLeftOut: true | undefined = depth === 'Basic' || gate ? undefined : true
    const { failure } = observe as unknown as Partial<SharedRead<never, unknown>>
    const demanding = demandingSettings(settings)
    const demandedBy = privilege === undefined ? undefined : demanding
    const { provesNoReading } = check
    const facts = { emptyWhere, privilege, provesNoReading, canBeLeftOut, settings: demanding, demandedBy }
    const more = { ...facts, depthWith, impossibleWith, items, elsewhere }
    const declared = Object.entries(results).map(([name, about]) =>
      typeof about === 'string'
        ? { name, depth, doc: about, when, ...more }
        : { name, depth, doc: about.doc, when: about.when, ...more, items: about.items ?? items },
    )
    if (!failure || reads.has(failure.name)) return declared
    reads.add(failure.name)
    return [{ name: failure.name, depth, doc: failure.doc, privilege }, ...declared]
  })
  const listed: DeclaredResult[] = []
  for (const one of all) {
    const place = listed.findIndex(
      ({ name, depth, doc }) => name === one.name && depth === one.depth && doc === one.doc,
    )
    const same = listed[place]
    if (!same) listed.push(one)
    else {
      const when = same.when && one.when && [...new Set([...same.when, ...one.when])]
      const items: DeclaredResult['items'] = (...args) => [same, one].flatMap((each) => each.items?.(...args) ?? [])
      // One check that may have the result is enough.
      const impossibleWith = (of: never): boolean => [same, one].every((each) => each.impossibleWith?.(of) === true)
      listed[place] = { ...same, when, impossibleWith, items: same.items || one.items ? items : undefined }
    }
  }
  return listed
}

/** The results that a run of a monitor in a mode may have, as far as its settings tell. */
export const plannedChecks = (
  { kind, settings, without }: Pick<PlannedMonitor, 'kind' | 'settings' | 'without'>,
  mode: ExecutionMode,
): readonly DeclaredResult[] =>
  kind.checks.filter(
    ({ name, depth, depthWith, impossibleWith, when }) =>
      includes(mode, depthWith?.(settings as never) ?? depth) &&
      impossibleWith?.(settings as never) !== true &&
      isEnabled(when, settings as object) &&
      !isNameIn(without, name),
  )

/** The latency setting that all kinds share, in milliseconds. `usual` is the default; `doc` says what is timed. */
export const latencySetting = <const Usual extends Threshold>(usual: Usual, doc: string) =>
  ({ type: 'threshold', unit: 'duration', default: usual, doc }) as const

type Joined<U> = (U extends unknown ? (x: U) => void : never) extends (x: infer I) => void ? I : never
/** The settings of a kind: its own and those of its checks. */
export type JoinedSettings<Own, Checks extends readonly { readonly settings: SettingsSpec }[]> = Own &
  (Checks extends readonly [] ? unknown : Joined<Checks[number]['settings']>)

/** Joins the settings of a kind and its checks in one table. Throws when a name has two different declarations. */
export function joinSettings(specs: readonly SettingsSpec[]): SettingsSpec {
  const joined = new Map<string, Setting>()
  for (const [name, setting] of specs.flatMap((spec) => Object.entries(spec))) {
    if ((joined.get(name) ?? setting) !== setting) throw new Error(`the setting ${name} is declared twice`)
    joined.set(name, setting)
  }
  return Object.fromEntries(joined)
}

export type MachineKindDeclaration<
  C extends object,
  Own extends SettingsSpec,
  Checks extends readonly Check<C>[],
> = KindFacts & {
  /** Settings of the kind itself; those of its checks are added. */
  readonly settings?: Own
  /** `network` if the kind accesses the network without opening a connection itself. Default: `machine`. */
  readonly runsOn?: 'machine' | 'network'
  /** Set when the kind accesses the network. */
  readonly target?: (settings: Values<NoInfer<Own>>) => Target
  readonly validate?: (settings: Values<JoinedSettings<NoInfer<Own>, NoInfer<Checks>>>) => string | undefined
  /** `Kind.runsPrograms`. */
  readonly runsPrograms?: true
  /** Opens what the checks share: a process, a first sample. */
  readonly open: (
    settings: Values<JoinedSettings<NoInfer<Own>, NoInfer<Checks>>>,
    context: CheckContext,
  ) => Promise<C> | C
  /** Closes what was opened. Called once, even after the deadline. */
  readonly close?: (connection: NoInfer<C>) => void
  readonly checks: Checks
}

/** Makes a kind that monitors the machine svc runs on, without a connection or an address. */
export function machineKind<
  C extends object,
  const Checks extends readonly Check<C>[],
  const Own extends SettingsSpec = Record<never, never>,
>(declaration: MachineKindDeclaration<C, Own, Checks>): Kind<JoinedSettings<Own, Checks> & SettingsSpec> {
  const { settings: own = {}, checks, target, validate, open, close, ...facts } = declaration
  return {
    runsOn: 'machine',
    ...facts,
    settings: joinSettings([own, ...checks.map((check) => check.settings)]) as JoinedSettings<Own, Checks> &
      SettingsSpec,
    checks: declaredResults(checks),
    target: target as never,
    validate: validate as never,
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
