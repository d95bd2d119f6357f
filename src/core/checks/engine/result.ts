import { show, showDuration } from '../../base/format.ts'
import type { FaultClass } from '../../base/probe-error.ts'
import type { SettingsSpec, Threshold, ThresholdUnit } from '../../base/settings/index.ts'
import { markText, type ServerType } from '../../protocol/index.ts'

/** Base units: the unit of a measurement, however it is displayed. */
export type Unit = Exclude<ThresholdUnit, 'duration'> | 'milliseconds'

/** A value that a check measured and the limits that it was compared with, in the same unit. */
export type Measurement = {
  readonly value: number
  readonly unit: Unit
  /** Beyond this value the result is a warning. */
  readonly warn?: number | undefined
  /** Beyond this value the result is a failure. */
  readonly limit?: number | undefined
  /** Whether the limits are upper or lower bounds. Nagios ranges, PRTG limits and alert rules need it. */
  readonly bound?: 'atMost' | 'atLeast' | undefined
  /**
   * The instant that the duration counts from or to: an expiry, a backup, a heartbeat. Alert rules compare it with
   * their own clock, so that an old result does not look recent.
   */
  readonly at?: Date | undefined
}

/**
 * Why a check has no verdict of its own:
 * - `configuration`: its entry in svc.yaml has mistakes.
 * - `missing`: the server did not report the figure, or reported a value that is not a finite number.
 * - `starved`: the check never had its own full time, e.g. because it waited for a slot, or svc had no file descriptor left.
 * - `budget`: the caller's time limit left no time for it.
 * - `refused`: the sign-in of another monitor with the same account was refused, and is not repeated.
 * - `permission`: the account lacks the privilege to read the figure.
 * - `missing driver`: the driver of its kind is not installed, or svc does not trust it.
 * - `route`: this machine has no route to the server, or the proxy of the monitor did not connect to it.
 * - `rehearsal`: the server rehearses (`svc serve --rehearse`), and no monitor runs.
 */
export const notCheckedReasons = [
  'configuration',
  'missing',
  'starved',
  'budget',
  'refused',
  'permission',
  'missing driver',
  'route',
  'rehearsal',
  'status',
] as const
export type NotCheckedReason = (typeof notCheckedReasons)[number]

/** A monitor by its server type and its MonitorName, which is unique within the type. */
export type MonitorOfType = { readonly type: ServerType; readonly name: string }

/**
 * Monitors of which at least so many must be within reach, or the monitor that depends on them does not run. A single
 * name of `dependsOn` is a group of one.
 */
export type DependencyGroup = { readonly atLeast: number; readonly of: readonly MonitorOfType[] }

/** `Sql/postgres orders`: how `dependsOn` and messages name a monitor of another type. */
export const writeMonitorOfType = ({ type, name }: MonitorOfType): string => `${type}/${name}`

/** A text that names a monitor of another server type, for readers who may read that type. */
export type NamedElsewhere = { readonly type: ServerType; readonly text: string }

/** The outcome of one check. A warning is Success on the wire, because the interface has two states. */
export type Result<Name extends string = string> = {
  /** The MonitoringName, e.g. `round trip`. */
  readonly check: Name
  readonly status: 'ok' | 'warning' | 'failed'
  /** One line, short enough for a pager: what was observed, with which threshold. Never a secret. */
  readonly message: string
  /** Additional lines for ErrorMessages. */
  readonly details?: readonly string[] | undefined
  /** The fault class. Present if and only if the status is `failed`. */
  readonly fault?: FaultClass | undefined
  /** The check whose failure caused this warning or failure, when the fault class alone does not say. */
  readonly cause?: string | undefined
  readonly measurement?: Measurement | undefined
  /** Identity rather than state: version, serial number, role. Contains no secrets. */
  readonly facts?: Readonly<Record<string, string>> | undefined
  /** The monitors of other types that the cause, the message or the details name, as they are written there. */
  readonly elsewhere?: readonly NamedElsewhere[] | undefined
  /** The address that was probed, e.g. `10.0.0.5:5432`. Set by the runner of network kinds. */
  readonly address?: string | undefined
  /** Which of several items: the name of a query, a queue, a mount point, a step. */
  readonly subject?: string | undefined
  /** Version skew or a deployment in progress, which SuppressDeploymentErrors ignores (H5). */
  readonly deployment?: boolean | undefined
  /**
   * The check came to no verdict, so its status says nothing about the server: a failure, or a warning where the account
   * lacks a privilege for a check that runs by default (`decideDenied`). Never ok.
   */
  readonly notChecked?: NotCheckedReason | undefined
  /**
   * With the fault `auth`: why the server refused the sign-in, in a few words without the server and the account. It is
   * repeated while the sign-in pauses; without it, the message is.
   */
  readonly refusal?: string | undefined
  /** Found by another svc, so its fault does not concern our own connection or sign-in. */
  readonly foundElsewhere?: true | undefined
  /** No conversation took place with its address, so that it tells nothing of the sign-in. */
  readonly isUnreached?: true | undefined
  /** A threshold that every run of the time of `for` has exceeded. */
  readonly isHeld?: true | undefined
  /** Nothing else of the monitor ran after it, at its address. */
  readonly isLast?: true | undefined
  /** It repeats the refusal of an earlier sign-in, and observed nothing. */
  readonly remembered?: true | undefined
  /** With the fault `auth`: the server refused an account that this run created and no later run uses. */
  readonly temporaryAccount?: true | undefined
}

/** Whether the server refused our own sign-in. */
export const isSignInRefusal = ({ fault, foundElsewhere, temporaryAccount, notChecked }: Result): boolean =>
  fault === 'auth' && foundElsewhere !== true && temporaryAccount !== true && notChecked === undefined

/**
 * Whether a check came to a verdict, and the verdict is a failure.
 *
 * @example
 * ```ts
 * reallyFailed({ status: 'failed' }) // true
 * reallyFailed({ status: 'failed', notChecked: 'budget' }) // false
 * ```
 */
export const reallyFailed = ({
  status,
  notChecked: reason,
}: {
  readonly status: Result['status']
  readonly notChecked?: string | undefined
}): boolean => status === 'failed' && reason === undefined

const units: Record<ThresholdUnit, Unit> = {
  duration: 'milliseconds',
  percent: 'percent',
  bytes: 'bytes',
  count: 'count',
  ratio: 'ratio',
  days: 'days',
}

type Measured<Name extends string> = {
  readonly check: Name
  /** Undefined or not finite: the server did not report it, and the result is `notChecked`. */
  readonly value: number | undefined
  readonly unit: ThresholdUnit
  readonly threshold: Threshold
  /** Describes the value and precedes it, e.g. `replication lag`. Empty: only the value is shown. */
  readonly what?: string
  /** Names the value where the server does not report it, e.g. `the uptime`. Default: `what`. */
  readonly figure?: string
  /** Follows the value: `ago`, `left`. */
  readonly after?: string
  /** `Measurement.at`. */
  readonly at?: Date | undefined
  readonly address?: string | undefined
  readonly details?: readonly string[] | undefined
}

type WithValue<Name extends string> = Measured<Name> & { readonly value: number }

/** NaN and infinity would pass every comparison. */
const hasValue = <Name extends string>(m: Measured<Name>): m is WithValue<Name> => Number.isFinite(m.value)

/** A duration in whole nanoseconds: no clock is finer, and the rest is noise of the difference between two readings. */
const ofClock = <Name extends string>(m: Measured<Name>): Measured<Name> =>
  m.unit === 'duration' && m.value !== undefined ? { ...m, value: Number(m.value.toFixed(6)) } : m

const missing = <Name extends string>(m: Measured<Name>): Result<Name> =>
  notChecked(m.check, 'missing', `${m.figure ?? (m.what || 'the figure')} is not reported`, {
    address: m.address,
    details: m.details,
  })

/**
 * Both values of a threshold for people: `warn 1 s, fail 3 s` for an upper bound, `warn below 20 %, fail below 10 %` for
 * a lower one. Empty if neither is set. `unit` is the unit of the values, or a function that shows one of them.
 *
 * @example
 * ```ts
 * showThreshold({ warn: 80, limit: 95 }, 'percent', 'atMost') // 'warn 80 %, fail 95 %'
 * showThreshold({ limit: 10 }, 'percent', 'atLeast') // 'fail below 10 %'
 * ```
 */
export function showThreshold(
  { warn: warning, limit }: Threshold,
  unit: ThresholdUnit | ((value: number) => string),
  bound: 'atMost' | 'atLeast',
): string {
  const display = typeof unit === 'function' ? unit : (value: number) => show(value, unit)
  const below = bound === 'atLeast' ? 'below ' : ''
  return [
    ...(warning === undefined ? [] : [`warn ${below}${display(warning)}`]),
    ...(limit === undefined ? [] : [`fail ${below}${display(limit)}`]),
  ].join(', ')
}

/** The text, followed by the threshold in parentheses if one is set: `14 ms (warn 1 s, fail 3 s)`. */
export function withThreshold(text: string, ...threshold: Parameters<typeof showThreshold>): string {
  const limits = showThreshold(...threshold)
  return limits === '' ? text : `${text} (${limits})`
}

function measured<Name extends string>(
  m: WithValue<Name>,
  bound: 'atMost' | 'atLeast',
  status: Result['status'],
): Result<Name> {
  const text = [m.what, show(m.value, m.unit), m.after].filter(Boolean).join(' ')
  return {
    check: m.check,
    status,
    message: withThreshold(text, m.threshold, m.unit, bound),
    ...(status === 'failed' ? { fault: 'threshold' as const } : {}),
    measurement: { value: m.value, unit: units[m.unit], ...m.threshold, bound, ...(m.at && { at: m.at }) },
    address: m.address,
    details: m.details,
  }
}

/**
 * Fails above the limit and warns above `warn`. The boundary itself is ok. A missing value is `notChecked`.
 *
 * @example
 * ```ts
 * const lag = { check: 'lag', unit: 'duration', threshold: { limit: 1_000 } } as const
 * atMost({ ...lag, value: 20 }).status // 'ok'
 * atMost({ ...lag, value: 2_000 }).status // 'failed'
 * atMost({ ...lag, value: undefined }).notChecked // 'missing'
 * ```
 */
export function atMost<const Name extends string>(figure: Measured<Name>): Result<Name> {
  const m = ofClock(figure)
  if (!hasValue(m)) return missing(m)
  const { warn, limit } = m.threshold
  const status =
    limit !== undefined && m.value > limit ? 'failed' : warn !== undefined && m.value > warn ? 'warning' : 'ok'
  return measured(m, 'atMost', status)
}

/**
 * Fails below the limit and warns below `warn`. The boundary itself is ok. A missing value is `notChecked`.
 *
 * @example
 * ```ts
 * atLeast({ check: 'free', value: 5, unit: 'percent', threshold: { warn: 10 } }).status // 'warning'
 * ```
 */
export function atLeast<const Name extends string>(figure: Measured<Name>): Result<Name> {
  const m = ofClock(figure)
  if (!hasValue(m)) return missing(m)
  const { warn, limit } = m.threshold
  const status =
    limit !== undefined && m.value < limit ? 'failed' : warn !== undefined && m.value < warn ? 'warning' : 'ok'
  return measured(m, 'atLeast', status)
}

/** The same result, after which nothing else of the monitor ran at its address. */
export const asLast = <Name extends string>(result: Result<Name>): Result<Name> => ({ ...result, isLast: true })

/** The same results, each with its subject: hold durations are tracked per subject. */
export const about = <Name extends string>(
  subject: string,
  results: Result<Name> | readonly Result<Name>[],
): readonly Result<Name>[] => [results].flat().map((result) => ({ ...result, subject }))

const passedAs =
  (status: 'ok' | 'warning') =>
  <const Name extends string>(check: Name, message: string, more: Partial<Result> = {}): Result<Name> => ({
    ...more,
    check,
    status,
    message,
  })

/**
 * A check that passed.
 *
 * @example
 * ```ts
 * ok('connect', 'connected').status // 'ok'
 * ```
 */
export const ok = passedAs('ok')

/**
 * A check that passed with a warning.
 *
 * @example
 * ```ts
 * warn('version', 'version 9 is no longer supported').status // 'warning'
 * ```
 */
export const warn = passedAs('warning')

/**
 * A check that failed, with the class of the fault.
 *
 * @example
 * ```ts
 * fail('connect', 'refused', 'connection refused').fault // 'refused'
 * ```
 */
export const fail = <const Name extends string>(
  check: Name,
  fault: NonNullable<Result['fault']>,
  message: string,
  more: Partial<Result> = {},
): Result<Name> => ({ ...more, check, status: 'failed', fault, message })

const faultOf: Record<Exclude<NotCheckedReason, 'permission'>, FaultClass> = {
  configuration: 'data',
  missing: 'data',
  starved: 'timeout',
  budget: 'timeout',
  refused: 'auth',
  'missing driver': 'internal',
  route: 'refused',
  rehearsal: 'data',
  status: 'data',
}

/**
 * A check without a verdict: a failure, or for a missing privilege a warning, which the runner of the checks turns into
 * a failure where svc.yaml demands the check. `why` follows `not checked: `.
 *
 * @example
 * ```ts
 * notChecked('lag', 'missing', 'the lag is not reported').notChecked // 'missing'
 * ```
 */
export const notChecked = <const Name extends string>(
  check: Name,
  reason: NotCheckedReason,
  why: string,
  more: Partial<Result> = {},
): Result<Name> => ({
  ...more,
  check,
  message: `not checked: ${why}`,
  notChecked: reason,
  ...(reason === 'permission' ? { status: 'warning' as const } : { status: 'failed' as const, fault: faultOf[reason] }),
})

/**
 * The result as a rehearsal reports it: marked, and never a success. What would be one was not checked. No request can
 * suppress it as related to a deployment.
 */
export function asDrill({ deployment: _, ...result }: Result): Result {
  const message = markText(result.message)
  return result.status === 'failed' && result.notChecked !== 'permission'
    ? { ...result, message }
    : { ...result, status: 'failed', fault: faultOf.rehearsal, notChecked: 'rehearsal', message }
}

// The rule for checks that the account of a monitor may not perform (H10). The runner of checks and the engine apply
// it, so that a check only says what it could not read.

const isDenied = ({ notChecked: reason }: Result): boolean => reason === 'permission'

/** A check that runs by default warns; one that somebody demands has failed to answer. */
export const asFailure = (result: Result): Result =>
  isDenied(result) ? { ...result, status: 'failed', fault: 'data' } : result

/** The settings that demand a check. A setting that only leaves out a part demands nothing. */
export const demandingSettings = (settings: SettingsSpec): readonly string[] =>
  Object.keys(settings).filter((name) => settings[name]?.narrows !== true)

/** The report of one obstacle by checks that share an observation. */
type Reported = { readonly by: unknown; readonly settings: Set<string> }

/**
 * The results of a check as the rule requires them. `demands` are those of its settings that svc.yaml gives. Checks that
 * share an observation share its obstacle: it is reported once, and again for each setting that demands another of
 * them. `obstacles` collects by message what has been reported.
 */
export function decideDenied(
  results: readonly Result[],
  about: {
    readonly check: unknown
    readonly demands: readonly string[]
    readonly obstacles: Map<string, Reported>
    readonly isOptional?: boolean
  },
): readonly Result[] {
  const { check, demands, obstacles, isOptional = false } = about
  return results.flatMap((result) => {
    if (!isDenied(result)) return [result]
    if (isOptional && demands.length === 0) return []
    const before = obstacles.get(result.message)
    const { by, settings } = before ?? { by: check, settings: new Set() }
    const isNew = demands.some((setting) => !settings.has(setting))
    obstacles.set(result.message, { by, settings: new Set([...settings, ...demands]) })
    if (by !== check && !isNew) return []
    return [demands.length > 0 ? asFailure(result) : result]
  })
}

/**
 * All results of a monitor. Where the account could read nothing at all, the monitor has checked nothing, so that what
 * the account was refused is a failure. `provesReading`: whether the verdict of a check shows that the account can read.
 */
export function decideReading(
  results: readonly Result[],
  provesReading: (check: string) => boolean,
): readonly Result[] {
  const hasRead = results.some(({ check, notChecked: reason }) => reason === undefined && provesReading(check))
  return results.some(isDenied) && !hasRead ? results.map(asFailure) : results
}

/** Milliseconds of waiting for a processor that are worth a line. */
const leastWaitMs = 100

/** Whether a result is a time that was too long: a latency above its threshold, or a timeout. */
const isSlow = ({ status, fault, measurement }: Result): boolean =>
  (status === 'failed' && fault === 'timeout') ||
  ((status === 'failed' || status === 'warning') &&
    measurement?.unit === 'milliseconds' &&
    measurement.bound === 'atMost')

/**
 * The results, each time that was too long with how long svc itself waited for a processor meanwhile, if that was at least
 * half of it: it is then a matter of this machine rather than of the server. The verdict stays, since nobody knows how
 * long the server would have taken. `ms`: since the observation began; `waitMs` is only called where a time is too long.
 */
export function withOwnWait(
  results: readonly Result[],
  { ms, waitMs }: { readonly ms: number; readonly waitMs: () => number },
): readonly Result[] {
  if (!results.some(isSlow)) return results
  const wait = waitMs()
  return results.map((result) => {
    const own = result.fault === 'timeout' ? ms : (result.measurement?.value ?? ms)
    if (!isSlow(result) || wait < leastWaitMs || wait < own / 2) return result
    const note = `svc itself waited ${showDuration(wait)} for a processor in this time: this machine is too busy to tell how long the server takes`
    return { ...result, details: [...(result.details ?? []), note] }
  })
}
