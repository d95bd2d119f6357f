import { count } from '../../base/format.ts'
import { sanitizeLine } from '../../base/sanitize.ts'
import { humanTime, usualZone } from '../../base/zone.ts'
import type {
  ExecutionMode,
  HealthCheckResponse,
  ResponseStatus,
  RunDocument,
  RunMeasurement,
  RunServerState,
} from '../../protocol/index.ts'

/** Why there is no answer, reduced to an allow-list of fields: the content of `{"error": …}`. */
export type ReportedError = {
  /** The ErrorCode, e.g. `Unreachable`. */
  readonly code: string
  readonly exitCode: number
  readonly message: string
  /** The target of the call, for people. */
  readonly target?: string | undefined
  /** The hints for a remedy, one line each. The last line is the next step. */
  readonly hints: readonly string[]
  /** The ResponseStatus of a remote server, if it sent one. */
  readonly responseStatus?: ResponseStatus | undefined
  /** The remote server rehearses. */
  readonly drill?: true | undefined
  /** The file, and the line and column from 1, of the first mistake in a local file. */
  readonly file?: string | undefined
  readonly line?: number | undefined
  readonly column?: number | undefined
  /** All mistakes, when there are several. */
  readonly mistakes?:
    | readonly { readonly file: string; readonly line: number; readonly column: number; readonly message: string }[]
    | undefined
}

/** The answer of one target for one server type, or why there is none. */
export type Entry = {
  /** The target, for people: a URL, a profile and its URL, or this machine. */
  readonly Target: string
  readonly ServerType: string
  readonly ExecutionMode: string
  readonly ExitCode: number
  readonly Response?: HealthCheckResponse | undefined
  /** The run behind the response. Absent when the server sent none. */
  readonly Run?: RunDocument | undefined
  readonly Error?: ReportedError | undefined
  /** One of the answers of many servers: every format names the server, even if it is the only one. */
  readonly IsOfMany?: true
}

export type ReportOptions = {
  /** For csv and tsv: `false` leaves out the line of column names. */
  readonly header?: boolean | undefined
  /** For nagios: the state of a target that did not answer in time. */
  readonly timeoutState?: 'critical' | 'unknown' | undefined
  /** For nagios: bytes of the output at most. */
  readonly size?: number | undefined
  /** For prometheus: without what the reports of other types of this machine have too. */
  readonly withoutMachine?: boolean | undefined
}

/** A report format of health answers: a pure function, shared by `--output` and the server's `?format=`. */
export type Report = {
  readonly name: string
  /** The Content-Type over HTTP. */
  readonly contentType: string
  readonly render: (entries: readonly Entry[], options?: ReportOptions) => string
  /** Present when the format has exit codes of its own. */
  readonly exitCode?: (entries: readonly Entry[], options?: ReportOptions) => number
  /** Its readers ignore the body of a 503, so over HTTP it implies SuppressErrorCodes (F5). */
  readonly impliesSuppress?: true
}

/**
 * Truncates text to `length` characters; the last three are then dots. Never splits a surrogate pair.
 *
 * @example
 * ```ts
 * shorten('connection refused', 10) // 'connect...'
 * ```
 */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text
  const start = text.slice(0, Math.max(0, length - 3))
  return `${start.replace(/[\ud800-\udbff]$/, '').trimEnd()}...`
}

export type MachineState = {
  readonly name: string
  readonly totalMb?: number
  readonly freeMb?: number
  /** Percent. */
  readonly cpu?: number
}

/** Reads the state of a machine and drops invalid figures. */
export function readState(state: RunServerState | undefined): MachineState | undefined {
  if (!state) return undefined
  const totalMb = figure(state.totalRamInMb)
  const freeMb = figure(state.availableRamInMb)
  const cpu = figure(state.usedCpuPercent)
  return {
    name: sanitizeLine(state.serverName ?? ''),
    ...(totalMb === undefined ? {} : { totalMb }),
    ...(freeMb === undefined ? {} : { freeMb }),
    ...(cpu === undefined ? {} : { cpu }),
  }
}

/** A plausible figure; undefined for NaN, negative and absurdly large values. */
export const figure = (value: number | undefined): number | undefined =>
  value !== undefined && value >= 0 && value <= 1e12 ? value : undefined
/** A date with a four-digit year, so that ISO 8601 has a single form. */
export const valid = (date: Date | undefined): Date | undefined =>
  date !== undefined && date.getTime() >= 0 && date.getTime() < 253_402_300_800_000 ? date : undefined

/**
 * The interface's two states, and two that it does not have: `warn` is Success there, `not checked` is Failure. What
 * was not checked is neither healthy nor blamed.
 */
export type Level = 'ok' | 'warn' | 'not checked' | 'fail'

/** One result for readers: sanitized text, with its level and fault class separate. */
export type Reading = {
  readonly monitor: string
  /** Empty when a monitor failed without a result that explains it. */
  readonly check: string
  /** The check's name in metrics. */
  readonly slug: string
  /** The shallowest mode that runs it, if known. */
  readonly depth: ExecutionMode | undefined
  readonly level: Level
  /** One line, without the warning prefix. */
  readonly message: string
  /** Additional text. An item may span several lines. */
  readonly details: readonly string[]
  readonly fault: string | undefined
  /** The monitor or check whose failure caused this one. */
  readonly cause: string | undefined
  /** Which of several results of the check: a queue, a mount point, an address. */
  readonly item: string | undefined
  readonly measurement: Measured | undefined
  /** When the silence ends of which the message says so. */
  readonly silencedUntil?: Date | undefined
  /** It is about the load of the machine: it is shown, and counts for nothing (M15). Absent: it counts. */
  readonly isLoad?: true | undefined
  /** Why the check came to no verdict. The level is then `not checked`, or `warn` for a missing privilege. */
  readonly notChecked: string | undefined
}

/** When a silence ends, in a message: in UTC in documents, and on the clock of its reader elsewhere. */
export const silenceEnd = (until: Date, zone: string | undefined): string =>
  humanTime(until.getTime(), { zone, to: 'minute' })

/** A message for people: the end of a silence is on the clock of this zone, or of the machine, and not in UTC. */
export const messageIn = ({ message, silencedUntil: until }: Reading, zone?: string): string =>
  until === undefined ? message : message.replace(silenceEnd(until, usualZone), silenceEnd(until, zone))

/** A figure and its limits in a form that tools accept: finite numbers without floating-point noise. */
export type Measured = RunMeasurement

/**
 * A figure without floating-point noise: 15 significant digits of what is not an integer, unless the value then lies on the
 * other side of a limit.
 *
 * @example
 * ```ts
 * withoutNoise({ value: 0.1 + 0.2, warn: undefined, limit: 1, bound: 'atMost' }).value // 0.3
 * ```
 */
export function withoutNoise<One extends Omit<Measured, 'unit'>>(figure: One): One {
  // Adding 0 turns -0 into 0.
  const value = (Number.isInteger(figure.value) ? figure.value : Number(figure.value.toPrecision(15))) + 0
  const isOnItsSide = (edge: number | undefined): boolean =>
    edge === undefined || Math.sign(value - edge) === Math.sign(figure.value - edge)
  const isSame = Object.is(value, figure.value) || !isOnItsSide(figure.warn) || !isOnItsSide(figure.limit)
  return isSame ? figure : { ...figure, value }
}

/** A check of the plan without a result. */
export type NotRunReading = Pick<Reading, 'monitor' | 'check' | 'item' | 'message'>

export type MonitorReading = {
  readonly name: string
  /** Undefined when the server does not send it. */
  readonly kind: string | undefined
  readonly scope: 'machine' | 'network' | undefined
  /** Whether it belongs to the machine rather than to the server type. */
  readonly host: boolean
  /** The shallowest mode that runs it, if known. */
  readonly depth: ExecutionMode | undefined
  readonly level: Level
  /** Milliseconds. */
  readonly duration: number | undefined
  readonly results: readonly Reading[]
  /** Empty where the server does not send it. */
  readonly notRun: readonly NotRunReading[]
}

/** The parts of a run that readers need, from svc or from a foreign server. */
type RunReading = {
  readonly monitors: readonly MonitorReading[]
  /** Milliseconds. */
  readonly duration: number | undefined
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
  readonly correlationId: string
  /** The machine that the monitors ran on. Empty when unknown. */
  readonly node: string
  readonly state: MachineState | undefined
  /** How many results count as ok because they are silenced. */
  readonly silencedResults?: number | undefined
  /** The part of svc that was checked because nothing is configured for the type. */
  readonly ownPart?: string | undefined
  /** The server rehearses: its faults are scripted, and no monitor ran. */
  readonly drill?: true | undefined
}

/** The content of an answer, from whatever source. */
export type Answered = RunReading & {
  readonly level: Level
  /** One line about the whole answer; may be empty. */
  readonly message: string
  /** The number of failed monitors without a name. */
  readonly unnamed: number
}

/** An entry after reading. All formats and the terminal use it. */
export type EntryReading = RunReading & {
  readonly target: string
  /** The target of one of many servers, which every subject then begins with. Otherwise empty. */
  readonly server: string
  readonly type: string
  readonly mode: string
  readonly exitCode: number
  /** `unknown`: there is no answer; `error` says why. */
  readonly level: Level | 'unknown'
  /** One sentence without causes, e.g. `Sql is unhealthy: 1 of 2 monitors failed`. */
  readonly headline: string
  /** Why it is not ok, one line each: root causes only, without the monitors that did not run because of them. */
  readonly causes: readonly string[]
  /** Monitors that really failed. */
  readonly failed: number
  /** Monitors of which nothing really failed, but something was not checked. */
  readonly unchecked: number
  readonly warnings: number
  readonly error: ReportedError | undefined
}

/** The levels in the order of their severity. */
export const worstFirst: readonly Level[] = ['fail', 'not checked', 'warn', 'ok']

/**
 * The worst level; ok for an empty list.
 *
 * @example
 * ```ts
 * worst(['ok', 'warn', 'not checked']) // 'not checked'
 * ```
 */
export const worst = (levels: readonly Level[]): Level => worstFirst.find((level) => levels.includes(level)) ?? 'ok'

/** Classes that each message of them shows. */
const evident: ReadonlySet<string | undefined> = new Set([undefined, 'threshold', 'dependency'])

/**
 * The details of a result, and its fault class on a line of its own: messages are sentences, which do not repeat it in
 * brackets. What was not checked has no class of its own.
 */
export const detailsWithFault = ({ details, fault, notChecked }: Reading): readonly string[] =>
  evident.has(fault) || notChecked !== undefined ? details : [...details, `fault class: ${fault}`]

/**
 * Whether a level is Failure in the interface's document.
 *
 * @example
 * ```ts
 * isBad('warn') // false
 * isBad('not checked') // true
 * ```
 */
export const isBad = (level: EntryReading['level']): boolean => level !== 'ok' && level !== 'warn'

/** `1 silenced result not counted`. Undefined: all count. */
export const silencedSentence = (results: number | undefined): string | undefined =>
  results === undefined || results === 0 ? undefined : `${count(results, 'silenced result')} not counted`

/** The readings that count for what they belong to. */
export const counting = (readings: readonly Reading[]): readonly Reading[] => readings.filter(({ isLoad }) => !isLoad)

/** The level of a monitor and of all that it shows, the load of the machine included. */
export const shownLevel = ({ level, results }: MonitorReading): Level =>
  worst([level, ...results.map((result) => result.level)])

/** The level of a monitor and of its results that count. */
export function countedLevel({ level, results }: MonitorReading): Level {
  let worst = level
  for (const { level: own, isLoad } of results) {
    if (!isLoad && own !== worst && worstFirst.indexOf(own) < worstFirst.indexOf(worst)) worst = own
  }
  return worst
}

type Graded = { readonly level: Level }
/**
 * Compares for sorting: the worst comes first.
 *
 * @example
 * ```ts
 * const levels = [{ level: 'ok' }, { level: 'fail' }] as const
 * levels.toSorted(bySeverity) // [{ level: 'fail' }, { level: 'ok' }]
 * ```
 */
export const bySeverity = (a: Graded, b: Graded): number => worstFirst.indexOf(a.level) - worstFirst.indexOf(b.level)

export const results = (entry: EntryReading): readonly Reading[] => entry.monitors.flatMap((monitor) => monitor.results)

/** The unique name of a result: monitor, check and, unless the check contains it, the item. */
export const figureName = ({ monitor, check, item }: Pick<Reading, 'monitor' | 'check' | 'item'>): string =>
  [monitor, check, item !== undefined && check.endsWith(item) ? undefined : item].filter(Boolean).join(' ')

/** Did not run because of something else: a consequence, not a cause. */
export const isConsequence = ({ level, fault }: Pick<Reading, 'level' | 'fault'>): boolean =>
  isBad(level) && fault === 'dependency'

/** The words for states, the same in every output for people. */
export const stateWords = {
  ok: 'ok',
  warn: 'warning',
  'not checked': 'not checked',
  fail: 'failed',
} as const satisfies Record<Level, string>
export type StateWord = (typeof stateWords)[Level] | 'skipped'

/**
 * The state of a result in one word: `skipped` if something else failed.
 *
 * @example
 * ```ts
 * stateWord({ level: 'fail', fault: 'dependency' }) // 'skipped'
 * ```
 */
export const stateWord = (reading: Pick<Reading, 'level' | 'fault'>): StateWord =>
  isConsequence(reading) ? 'skipped' : stateWords[reading.level]

/** A result in one line, e.g. `postgres orders round trip: 14 ms (warn 1 s, fail 3 s)`. */
export function describeResult(reading: Reading): string {
  // The message about a missing configuration needs no prefix.
  if (reading.check === 'configured' && reading.monitor.toLowerCase() === 'configuration') return reading.message
  if (reading.check === 'configured') return `${reading.monitor}: ${reading.message}`
  return `${[reading.monitor, reading.check].filter(Boolean).join(' ')}: ${reading.message}`
}

/** `Sql is unhealthy: 2 of 14 monitors failed, 3 not checked`. */
export function unhealthySentence(type: string, failed: number, unchecked: number, total: number): string {
  // A server may call an answer unhealthy although all its monitors passed.
  if (failed + unchecked === 0) return `${type} is unhealthy`
  const all = `${count(total, 'monitor')}`
  if (failed === 0 && unchecked > 0) return `${type} is not fully checked: ${unchecked} of ${all} not checked`
  return `${type} is unhealthy: ${failed} of ${all} failed${unchecked > 0 ? `, ${unchecked} not checked` : ''}`
}
