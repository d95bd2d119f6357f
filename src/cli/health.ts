import { exits, Fault } from '../core/errors.ts'
import { type ExecutionMode, HealthCheckResponse, type RunDocument, type ServerType } from '../core/protocol/index.ts'
import type { Entry, ReportedError, ReportName } from '../core/reports/index.ts'
import type { Call } from '../core/service.ts'
import { asFault } from './exit.ts'
import { oneOf } from './flags.ts'
import type { CommandSession } from './session.ts'
import { isTerminal, showsUnicode, useColour } from './terminal.ts'

/** The answer for one type on one target, or why there was none. It is the unit of every output format. */
export type HealthOutcome = {
  readonly type: ServerType
  readonly exitCode: number
  readonly ageSeconds: number
} & (
  | {
      readonly response: HealthCheckResponse
      /** Absent when the server sent none. */
      readonly run: RunDocument | undefined
      readonly fault?: undefined
    }
  | { readonly fault: Fault; readonly response?: undefined }
)

export type HealthQuestion = {
  readonly mode: ExecutionMode
  readonly types: readonly ServerType[]
  readonly serverState: boolean
  readonly suppressErrorCodes: boolean
  readonly suppressDeploymentErrors: boolean
  readonly failOnWarn: boolean
  readonly call: (signal: AbortSignal) => Call
}

/** Checks all types in parallel. Rejects only for an interruption or a defect. */
export async function askHealth(
  session: CommandSession,
  question: HealthQuestion,
  signal: AbortSignal,
): Promise<readonly HealthOutcome[]> {
  return await Promise.all(question.types.map((type) => askOne(session, question, type, signal)))
}

async function askOne(
  session: CommandSession,
  question: HealthQuestion,
  type: ServerType,
  signal: AbortSignal,
): Promise<HealthOutcome> {
  let ageSeconds = 0
  let run: RunDocument | undefined
  try {
    const response = await session.service.healthCheck(
      {
        ExecutionMode: question.mode,
        ServerType: type,
        IncludeServerStateInformation: question.serverState,
        SuppressErrorCodes: question.suppressErrorCodes,
        SuppressDeploymentErrors: question.suppressDeploymentErrors,
      },
      {
        ...question.call(signal),
        note: (facts) => {
          ageSeconds = facts.ageSeconds
          run = facts.run
        },
      },
    )
    return { type, response, run, exitCode: await healthExit(response, run, question.failOnWarn), ageSeconds }
  } catch (error) {
    signal.throwIfAborted()
    const fault = asFault(error)
    if (!fault) throw error
    return { type, fault, exitCode: fault.exitCode, ageSeconds: 0 }
  }
}

/** 3 for Failure, whatever the HTTP status was. With `--fail-on warn`, also for a warning. */
async function healthExit(
  response: HealthCheckResponse,
  run: RunDocument | undefined,
  failOnWarn: boolean,
): Promise<number> {
  if (response.Status !== 'Success') return exits.unhealthy.code
  if (!failOnWarn) return exits.ok.code
  const warns = run ? run.status === 'warning' : (await import('../core/reports/index.ts')).foreignWarning(response)
  return warns ? exits.unhealthy.code : exits.ok.code
}

/** 0 if all are 0, 3 if any is 3, else the code that all failures share, else 10. */
export function combinedExit(codes: readonly number[]): number {
  const [first = 0] = codes
  if (codes.includes(exits.unhealthy.code)) return exits.unhealthy.code
  return codes.every((code) => code === first) ? first : exits.partial.code
}

/** Exit codes that no waiting changes. */
const permanent: ReadonlySet<number> = new Set([
  exits.usage.code,
  exits.unauthenticated.code,
  exits.forbidden.code,
  exits.rejected.code,
])

/**
 * Repeats the check until everything is healthy, for at most `ms`. It gives up at once on failures that no waiting
 * changes. `onTry` gets the outcome of each attempt.
 */
export async function waitUntilHealthy(
  ask: (signal: AbortSignal) => Promise<readonly HealthOutcome[]>,
  ms: number,
  signal: AbortSignal,
  onTry: (outcomes: readonly HealthOutcome[], attempt: number) => void,
): Promise<readonly HealthOutcome[]> {
  const { setTimeout: pause } = await import('node:timers/promises')
  const ends = performance.now() + ms
  for (let attempt = 1; ; attempt += 1) {
    const outcomes = await ask(signal)
    const code = combinedExit(outcomes.map((outcome) => outcome.exitCode))
    if (code === exits.ok.code || outcomes.some((outcome) => permanent.has(outcome.exitCode))) return outcomes
    const left = ends - performance.now()
    if (left <= 0) return outcomes
    onTry(outcomes, attempt)
    try {
      await pause(Math.min(1_000, left), undefined, { signal })
    } catch {
      signal.throwIfAborted()
    }
  }
}

export const outputs = [
  'table',
  'json',
  'csv',
  'tsv',
  'ndjson',
  'junit',
  'github',
  'nagios',
  'prtg',
  'prometheus',
] as const
export type Output = (typeof outputs)[number]

/** `--output`, or `--json` for short; the two must not contradict each other. */
export function chooseOutput(flags: { readonly output?: Output | undefined; readonly json: boolean }): Output {
  if (!flags.json) return flags.output ?? 'table'
  if (flags.output === undefined || flags.output === 'json') return 'json'
  throw new Fault('Usage', `--json and --output ${flags.output} contradict each other`, {
    hints: ['Leave one of them out.'],
  })
}

export const parseOutput = (input: string): Output => oneOf('output', outputs, input, 'Formats')

export const isReport = (output: Output): output is Output & ReportName => output !== 'table' && output !== 'json'

type DisplayOptions = {
  readonly text: string
  /** Present when the format has exit codes of its own. */
  readonly exitCode?: number | undefined
}

/** Prints the answers in the requested format. */
export async function showHealth(
  outcomes: readonly HealthOutcome[],
  as: { readonly output: Output; readonly target: string; readonly mode: string },
): Promise<DisplayOptions> {
  if (as.output === 'json') return { text: await json(outcomes, as) }
  const entries = await Promise.all(outcomes.map((outcome) => entry(outcome, as)))
  if (isReport(as.output)) {
    const { nagiosState, reports } = await import('../core/reports/index.ts')
    const { default: report } = await reports[as.output]()
    return { text: report.render(entries), exitCode: as.output === 'nagios' ? nagiosState(entries) : undefined }
  }
  if (!isTerminal('stdout')) {
    const { renderPlain } = await import('../core/reports/index.ts')
    return { text: renderPlain(entries) }
  }
  const { renderHealth } = await import('./render/health.ts')
  return {
    text: renderHealth(entries, {
      width: process.stdout.columns || 80,
      colour: useColour(process.stdout),
      unicode: showsUnicode(process.env, process.platform),
      ages: outcomes.map((outcome) => outcome.ageSeconds),
    }),
  }
}

async function entry(outcome: HealthOutcome, as: { readonly target: string; readonly mode: string }): Promise<Entry> {
  const base = { Target: as.target, ServerType: outcome.type, ExecutionMode: as.mode, ExitCode: outcome.exitCode }
  return outcome.response
    ? { ...base, Response: outcome.response, Run: outcome.run }
    : { ...base, Error: await errorJson(outcome.fault, as.target) }
}

/** Errors are rare, so their renderer is loaded on demand. */
const errorJson = async (fault: Fault, target: string): Promise<ReportedError> =>
  (await import('./render/errors.ts')).renderError.json(fault, target).error

/** The protocol's own document. For several types, an array of these documents with their requests. */
async function json(
  outcomes: readonly HealthOutcome[],
  as: { readonly target: string; readonly mode: string },
): Promise<string> {
  const { encodeJson } = await import('../core/wire/index.ts')
  const [only] = outcomes
  if (outcomes.length === 1 && only?.response) return encodeJson(HealthCheckResponse, only.response)
  const results = outcomes.map(async (outcome) => {
    const head = JSON.stringify({
      Target: as.target,
      ServerType: outcome.type,
      ExecutionMode: as.mode,
      ExitCode: outcome.exitCode,
    }).slice(0, -1)
    const tail = outcome.response
      ? `"Response":${encodeJson(HealthCheckResponse, outcome.response)}`
      : `"Error":${JSON.stringify(await errorJson(outcome.fault, as.target))}`
    return `${head},${tail}}`
  })
  return `{"Results":[${(await Promise.all(results)).join(',')}]}`
}
