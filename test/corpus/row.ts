import type { FaultClass } from '../../src/core/base/probe-error.ts'
import type { EngineContext, MonitorReport, Result } from '../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import type { PeerProgram } from './peers.ts'

/**
 * The state of one monitor in the report of svc. `not checked`: nothing failed, and at least one check has no verdict.
 */
export type State = 'healthy' | 'warning' | 'not checked' | 'unhealthy'

/** The results that svc must report, and those that it must not. */
export type Expected = { readonly state: 'healthy' } | Unwell
type Unwell = {
  readonly state: Exclude<State, 'healthy'>
  /** The result that names the cause. It must be the first one that is not ok. Absent: any check may name it. */
  readonly check?: string
  /** Another result that may name it instead, where the timing of the server decides which check meets the fault. */
  readonly orCheck?: string
  readonly fault?: FaultClass
  /** The cause, in the first line. */
  readonly says: RegExp
  /** A wrong cause, in any line. */
  readonly never?: RegExp
}

type More = Pick<Unwell, 'orCheck' | 'never'>
export const fails = (check: string, fault: FaultClass | 'any', says: RegExp, more: More = {}): Unwell => ({
  state: 'unhealthy',
  check,
  ...(fault !== 'any' && { fault }),
  says,
  ...more,
})
export const warns = (check: string, says: RegExp, more: More = {}): Unwell => ({
  state: 'warning',
  check,
  says,
  ...more,
})
export const notChecked = (check: string, says: RegExp, more: More = {}): Unwell => ({
  state: 'not checked',
  check,
  says,
  ...more,
})

/**
 * How the first run of a blind row ended, before svc or the row was changed. `wrong expectation`: the row was mistaken, and
 * was corrected after the run.
 */
export type FirstRun = 'held' | 'false green' | 'false red' | 'wrong cause' | 'wrong expectation'

/** The reply to a plain client, without svc: the reply of the server's own client to a request that its users make. */
export type PlainClient<Server> = {
  readonly asks: (server: Server) => string | Promise<string>
  /** The reply that it must get in the same minute, so that nobody can doubt the expectation. */
  readonly gets: RegExp
}

/** Removes a planted fault. */
export type Cure = () => void | Promise<void>

/** One fault on one real server, or the server as it should be. */
export type Row<Server> = {
  /** In a few words, e.g. `no synchronous standby`. Names the test and the row of the page. */
  readonly fault: string
  /** One monitor as svc.yaml declares it; the kind `host` stands for the host block of the type. */
  readonly monitor: (server: Server) => Readonly<Record<string, unknown>>
  /** Environment variables that `{env: NAME}` refers to. */
  readonly env?: Readonly<Record<string, string>>
  readonly mode?: ExecutionMode
  /** The readings of earlier runs. */
  readonly history?: EngineContext['history']
  /** The clock of the run, where a check judges how long it waits; otherwise one on which nothing is slow. */
  readonly now?: EngineContext['now'] | undefined
  readonly plant?: (server: Server) => Promise<Cure | undefined>
  readonly expected: Expected
  /** The reports of the shallower modes on the same fault, while it is planted. `mode` is Advanced then. */
  readonly shallower?: Readonly<Record<'Basic' | 'Standard', Expected | undefined>>
  readonly client?: PlainClient<Server>
  /** Present: `expected` was written before the first run, by somebody who had not read the sources of the kind. */
  readonly blind?: FirstRun
  /** Why no monitoring program of this kind can see the fault. Present: `expected` is healthy all the same. */
  readonly invisible?: string
  /** The report of version 0.1 on the same fault, where that was wrong. */
  readonly before?: string
  /** Other monitoring programs, asked about the same fault. */
  readonly peers?: (server: Server) => readonly PeerProgram[]
}

export const stateOf = (results: readonly Result[]): State => {
  const failed = results.filter(({ status }) => status === 'failed')
  if (failed.some(({ notChecked }) => notChecked === undefined)) return 'unhealthy'
  if (failed.length > 0) return 'not checked'
  return results.some(({ status }) => status === 'warning') ? 'warning' : 'healthy'
}

/** The result that an operator reads first: a failure, then a check without a verdict, then a warning. */
export const headline = (results: readonly Result[]): Result | undefined =>
  results.find(({ status, notChecked }) => status === 'failed' && notChecked === undefined) ??
  results.find(({ status }) => status === 'failed') ??
  results.find(({ status }) => status === 'warning')

const severity: Readonly<Record<State, number>> = { healthy: 0, warning: 1, 'not checked': 2, unhealthy: 3 }

export type Verdict = {
  readonly state: State
  readonly falseGreen: boolean
  readonly falseRed: boolean
  readonly rightCause: boolean
  /** Why the row does not hold. Empty: it holds. */
  readonly problems: readonly string[]
}

/** Compares a report with what the row expects. Reads nothing, so that changed reports can be assessed too. */
export function assess(expected: Expected, { results }: Pick<MonitorReport, 'results'>): Verdict {
  const state = stateOf(results)
  const first = headline(results)
  const line = first ? `${first.check}: ${first.message}` : 'no result is other than ok'
  const difference = severity[state] - severity[expected.state]
  const problems: string[] = []
  if (results.length === 0) problems.push('nothing was checked')
  if (difference !== 0) problems.push(`state ${state}, expected ${expected.state} (${line})`)
  let rightCause = expected.state === 'healthy' ? state === 'healthy' : first !== undefined
  const report = (problem: string): void => {
    rightCause = false
    problems.push(problem)
  }
  if (expected.state !== 'healthy' && first) {
    if (expected.check !== undefined && first.check !== expected.check && first.check !== expected.orCheck)
      report(`the first line is of ${first.check}, expected ${expected.check} (${line})`)
    if (expected.fault !== undefined && first.fault !== expected.fault)
      report(`fault class ${first.fault}, expected ${expected.fault}`)
    if (!expected.says.test(first.message)) report(`"${first.message}" does not say ${expected.says}`)
    const lines = results.flatMap(({ status, message, details = [] }) => (status === 'ok' ? [] : [message, ...details]))
    const bad = expected.never && lines.find((text) => expected.never?.test(text))
    if (bad !== undefined) report(`"${bad}" says ${expected.never}`)
  }
  return { state, falseGreen: difference < 0, falseRed: difference > 0, rightCause, problems }
}

/** A report in which one check says the opposite: ok becomes failed, and everything else becomes ok. */
export const negated = (report: MonitorReport, check: string): Pick<MonitorReport, 'results'> => ({
  results: report.results.map((result): Result => {
    if (result.check !== check) return result
    if (result.status === 'ok') return { ...result, status: 'failed', fault: 'data' }
    return { check, status: 'ok', message: result.message }
  }),
})

/** The subfolder of the records of `npm run corpus` that has those of the default installs. */
export const installsFolder = 'installs'
