import type { ExecutionMode, RunMeasurement, RunServerState } from '../protocol/index.ts'
import { sanitizeLine } from '../sanitize.ts'
import type { ReportedError } from './entry.ts'

/** At most `length` characters, the last three being dots when something was cut. Never splits a pair. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text
  const start = text.slice(0, Math.max(0, length - 3))
  return `${start.replace(/[\ud800-\udbff]$/, '').trimEnd()}...`
}

/** `1 monitor`, `2 monitors`. */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`

export type MachineState = {
  readonly name: string
  readonly totalMb?: number
  readonly freeMb?: number
  /** Percent. */
  readonly cpu?: number
}

/** Reads the state of a server, leaving out what is no figure. */
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

/** A figure that a server of this world can have; NaN, below nothing and absurdly large ones are none. */
export const figure = (value: number | undefined): number | undefined =>
  value !== undefined && value >= 0 && value <= 1e12 ? value : undefined
/** Dates of four-digit years, so that ISO 8601 has one shape. */
export const valid = (date: Date | undefined): Date | undefined =>
  date !== undefined && date.getTime() >= 0 && date.getTime() < 253_402_300_800_000 ? date : undefined

/** The interface's two states and the warning that it has no word for. */
export type Level = 'ok' | 'warn' | 'fail'

/** One result, as a reader needs it: safe text, its level and its fault class apart. */
export type Reading = {
  readonly monitor: string
  /** Empty when a monitor failed without a result that says why. */
  readonly check: string
  /** The check's name in metrics. */
  readonly slug: string
  /** The shallowest mode that runs it, where that is known. */
  readonly depth: ExecutionMode | undefined
  readonly level: Level
  /** One line, without the warning prefix. */
  readonly message: string
  /** Further text; an item may hold several lines. */
  readonly details: readonly string[]
  readonly fault: string | undefined
  /** The monitor or check that failed before this one, where that is why. */
  readonly cause: string | undefined
  /** Which of several results of the check: a queue, a mount point, an address. */
  readonly item: string | undefined
  readonly measurement: Measured | undefined
}

/** A figure that tools can hold: finite, without an exponent, with six decimals at most. Its limits as well. */
export type Measured = RunMeasurement

export type MonitorReading = {
  readonly name: string
  /** Undefined where the server does not tell it. */
  readonly kind: string | undefined
  readonly scope: 'machine' | 'network' | undefined
  /** Whether it belongs to the machine and not to the server type. */
  readonly host: boolean
  /** The shallowest mode that runs it, where that is known. */
  readonly depth: ExecutionMode | undefined
  readonly level: Level
  /** Milliseconds. */
  readonly duration: number | undefined
  readonly results: readonly Reading[]
}

/** One entry, read: what every format and the terminal are made from. */
export type EntryReading = {
  readonly target: string
  readonly type: string
  readonly mode: string
  readonly exitCode: number
  /** `unknown`: there is no answer, `error` says why. */
  readonly level: Level | 'unknown'
  /** One sentence without causes, e.g. `Sql is unhealthy: 1 of 2 monitors failed`. */
  readonly headline: string
  /** Why it is not ok, each on one line: root causes only, never what was not run because of them. */
  readonly causes: readonly string[]
  readonly monitors: readonly MonitorReading[]
  readonly failed: number
  readonly warnings: number
  /** Milliseconds. */
  readonly duration: number | undefined
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
  readonly correlationId: string
  /** The machine that the monitors ran on; empty where nobody says. */
  readonly node: string
  readonly state: MachineState | undefined
  readonly error: ReportedError | undefined
}

const order: Record<Level, number> = { ok: 0, warn: 1, fail: 2 }
/** The worst of some levels; ok when there are none. */
export const worst = (levels: readonly Level[]): Level =>
  levels.reduce<Level>((most, level) => (order[level] > order[most] ? level : most), 'ok')

export const results = (entry: EntryReading): readonly Reading[] => entry.monitors.flatMap((monitor) => monitor.results)

/** A result in the words that tell it apart from others: monitor, check and, where the check does not name it, the item. */
export const figureName = ({ monitor, check, item }: Reading): string =>
  [monitor, check, item !== undefined && check.endsWith(item) ? undefined : item].filter(Boolean).join(' ')

/** Not run because something else failed: a consequence, not a cause. */
export const isConsequence = (reading: Reading): boolean => reading.level === 'fail' && reading.fault === 'dependency'

/** A result in one line, e.g. `postgres orders round trip: 14 ms (limit 3 s)`. */
export function describeResult(reading: Reading): string {
  // The monitor that says what is not configured speaks for itself.
  if (reading.check === 'configured') return reading.message
  return `${[reading.monitor, reading.check].filter(Boolean).join(' ')}: ${reading.message}`
}

/** What an answer says, whoever sent it. */
export type Answered = {
  readonly level: Level
  /** One line over all of it; empty where there is none. */
  readonly message: string
  readonly monitors: readonly MonitorReading[]
  /** Monitors that failed without being named. */
  readonly unnamed: number
  readonly duration: number | undefined
  readonly startedAt: Date | undefined
  readonly endedAt: Date | undefined
  readonly correlationId: string
  readonly node: string
  readonly state: MachineState | undefined
}
