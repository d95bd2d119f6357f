import { exits, Fault } from '../../core/base/errors.ts'
import { sanitizeLine, type TextForm } from '../../core/base/sanitize.ts'
import {
  type Entry,
  foreignWarning,
  type ReportedError,
  type ReportName,
  reports,
} from '../../core/checks/reports/index.ts'
import type { LoadedConfig } from '../../core/config/index.ts'
import { type ExecutionMode, HealthCheckResponse, type RunDocument, ServerType } from '../../core/protocol/index.ts'
import type { Call, MonitorEnd, RunInProgress } from '../../core/protocol/service/service.ts'
import { requestedOutput } from '../command/base.ts'
import { asFault, exitOf } from '../command/exit.ts'
import { oneOf } from '../command/flags.ts'
import type { Io } from '../io/io.ts'
import { columnsOf } from '../io/terminal.ts'
import type { CommandSession } from '../session/session.ts'
import type { ChosenTypes, Doubt, TypesQuestion } from './health-types.ts'
import type { Outstanding } from './outstanding.ts'
import type { Detail } from './text.ts'

/** The answer for one type on one target, or why there was none. It is the unit of every output format. */
export type HealthOutcome = {
  /** `all` when there is no answer at all, because nobody said which types there are. */
  readonly type: ServerType | 'all'
  readonly exitCode: number
  readonly ageSeconds: number
} & (
  | {
      readonly response: HealthCheckResponse
      /** Absent when the server sent none. */
      readonly run: RunDocument | undefined
      /** Whether these are results of the server's schedule. */
      readonly stored?: boolean | undefined
      readonly fault?: undefined
    }
  | { readonly fault: Fault; readonly response?: undefined }
)

export type HealthQuestion = {
  readonly mode: ExecutionMode
  readonly types: TypesQuestion
  readonly serverState: boolean
  readonly suppressErrorCodes: boolean
  readonly suppressDeploymentErrors: boolean
  /** Whether what somebody silenced counts as ok. */
  readonly honorSilences: boolean
  readonly failOnWarn: boolean
  readonly call: (signal: AbortSignal) => Call
}

/** A round of `--watch`, or the only one. */
export type AttemptOptions = {
  readonly signal: AbortSignal
  /** Tries refused sign-ins once more although they pause. */
  readonly repeatsRefused: boolean
  /** Prefers what the schedule of a server knows to a run. */
  readonly stored?: boolean
  /** Learns what the check waits for. */
  readonly outstanding?: Outstanding | undefined
}

/** The answers for all types, and which of all types are not configured. */
export type HealthAnswers = {
  readonly outcomes: readonly HealthOutcome[]
  /** Empty when the command line names the types, and without a configuration. */
  readonly notConfigured: readonly ServerType[]
  /** Whether a monitor of this machine did not sign in, because the server refused it before. */
  readonly signInPaused: boolean
}

/** Checks all types in parallel. Rejects only for an interruption or a defect. */
export async function askHealth(
  session: CommandSession,
  question: HealthQuestion,
  { signal, repeatsRefused, stored, outstanding }: AttemptOptions,
): Promise<HealthAnswers> {
  let types: ChosenTypes
  try {
    types =
      namedTypes(session, question.types) ??
      (await (await import('./health-types.ts')).chooseTypes(session, question.types, question.call(signal)))
  } catch (error) {
    signal.throwIfAborted()
    return { outcomes: [failedOutcome('all', error)], notConfigured: [], signInPaused: false }
  }
  // The same for all types, whose monitors may share an account.
  const shared = {
    together: {},
    repeatsRefusedUntil: repeatsRefused ? Date.now() : undefined,
    ...(stored ? { fresh: false, stored } : {}),
  }
  outstanding?.begin(types.checked)
  const answered = await Promise.all(
    types.checked.map(async (type) => {
      const onRun = outstanding && ((run: RunInProgress): void => outstanding.run(type, run))
      const onReport = outstanding && ((report: MonitorEnd): void => outstanding.report(type, report))
      const outcome = await askOne(session, question, type, { ...shared, onRun, onReport }, signal)
      outstanding?.end(type)
      return outcome
    }),
  )
  const { doubt } = types
  const checked = doubt ? answered.map((outcome) => doubted(outcome, doubt)) : answered
  const refused = types.refused.map(({ type, fault }) => failedOutcome(type, fault))
  const outcomes = withoutUnmatched([...checked, ...refused])
  const signInPaused = session.runtime !== undefined && outcomes.some(hasPausedSignIn)
  return { outcomes, notConfigured: types.notConfigured, signInPaused }
}

/** A monitor that must not sign in does not run, and has this result of the engine only. */
const hasPausedSignIn = (outcome: HealthOutcome): boolean =>
  outcome.response !== undefined &&
  (outcome.run?.monitors ?? []).some(
    ({ attempts, results }) => attempts === 0 && results.some(({ check }) => check === 'sign-in'),
  )

/** The named types, if each can be checked. Every other case is loaded on demand. */
function namedTypes({ runtime }: CommandSession, { requested, requireConfig }: TypesQuestion): ChosenTypes | undefined {
  if (requested.length === 0 || requested.includes('all')) return undefined
  const checked = [...new Set(requested as readonly ServerType[])]
  const chosen = { checked, refused: [], notConfigured: [] }
  if (!runtime) return requireConfig ? undefined : chosen
  const { types, ownTypes } = runtime.facts
  return checked.every((type) => types.includes(type) || ownTypes.includes(type)) ? chosen : undefined
}

/** The outcome, or the reason why its pass does not count. */
function doubted(outcome: HealthOutcome, doubt: Doubt): HealthOutcome {
  const { type, exitCode, response } = outcome
  if (exitCode !== exits.ok.code || !response || type === 'all') return outcome
  const reason = doubt(type, response, outcome.run)
  return reason ? failedOutcome(type, reason) : outcome
}

/** Throws anything but a Fault, because it is a defect. */
export function failedOutcome(type: HealthOutcome['type'], error: unknown): HealthOutcome {
  const fault = asFault(error)
  if (!fault) throw error
  return { type, fault, exitCode: fault.exitCode, ageSeconds: 0 }
}

/**
 * Adds what svc.yaml may configure where it has mistakes outside of the server types: every format has to show that
 * something was not checked.
 */
export function withUnread(
  outcomes: readonly HealthOutcome[],
  { mistakes, mistakeLines }: LoadedConfig,
): readonly HealthOutcome[] {
  // Then nothing was checked, and the fault lists the mistakes.
  if (outcomes.some(({ type }) => type === 'all')) return outcomes
  return [...outcomes, failedOutcome('all', new Fault('Local', mistakeLines[0], { places: mistakes }))]
}

/** Leaves out the types without a monitor that `--only` and `--skip` select, if another type has one. */
function withoutUnmatched(outcomes: readonly HealthOutcome[]): readonly HealthOutcome[] {
  const unmatched = outcomes.filter(({ fault }) => fault?.details.nothingSelected === true)
  if (unmatched.length === 0) return outcomes
  const others = outcomes.filter((outcome) => !unmatched.includes(outcome))
  const [first, another] = unmatched
  if (!first?.fault || (!another && others.length === 0)) return outcomes
  if (others.some(({ response }) => response !== undefined)) return others
  const hints = unmatched.flatMap(({ fault }) => fault?.details.hints ?? [])
  // The last line of each is the same.
  const distinct = [...new Set(hints.toReversed())].toReversed()
  const fault = new Fault(first.fault.fault, first.fault.message, { ...first.fault.details, hints: distinct })
  return [{ ...first, type: 'all', fault }, ...others]
}

async function askOne(
  session: CommandSession,
  question: HealthQuestion,
  type: ServerType,
  shared: Pick<Call, 'together' | 'repeatsRefusedUntil' | 'fresh' | 'stored' | 'onReport' | 'onRun'>,
  signal: AbortSignal,
): Promise<HealthOutcome> {
  let ageSeconds = 0
  let run: RunDocument | undefined
  let fromSchedule: boolean | undefined
  try {
    const response = await session.service.healthCheck(
      {
        ExecutionMode: question.mode,
        ServerType: type,
        IncludeServerStateInformation: question.serverState,
        SuppressErrorCodes: question.suppressErrorCodes,
        SuppressDeploymentErrors: question.suppressDeploymentErrors,
        Silence: question.honorSilences ? 'Honor' : undefined,
      },
      {
        ...question.call(signal),
        ...shared,
        note: (facts) => {
          ageSeconds = facts.ageSeconds
          run = facts.run
          fromSchedule = facts.stored
        },
      },
    )
    const here = session.runtime !== undefined
    const exitCode = await healthExit(response, run, here, question.failOnWarn)
    return { type, response, run, stored: fromSchedule, exitCode, ageSeconds }
  } catch (error) {
    signal.throwIfAborted()
    return failedOutcome(type, error)
  }
}

/**
 * 3 for Failure, whatever the HTTP status was. With `--fail-on warn`, also for a warning. 12 if everything that failed
 * was not checked because of mistakes in the svc.yaml of this machine.
 */
async function healthExit(
  response: HealthCheckResponse,
  run: RunDocument | undefined,
  here: boolean,
  failOnWarn: boolean,
): Promise<number> {
  if (response.Status !== 'Success') {
    const failed = (here && run?.monitors.filter(({ status }) => status === 'failed')) || []
    const mistakes = failed.length > 0 && failed.every(hasOnlyMistakes)
    return mistakes ? exits.local.code : exits.unhealthy.code
  }
  if (!failOnWarn) return exits.ok.code
  const warns = run ? run.status === 'warning' : foreignWarning(response)
  return warns ? exits.unhealthy.code : exits.ok.code
}

/** Whether a monitor failed because its entry in svc.yaml, or that of a monitor that it depends on, has mistakes. */
const hasOnlyMistakes = ({ results }: RunDocument['monitors'][number]): boolean =>
  results.every(({ status, notChecked }) => status !== 'failed' || notChecked === 'configuration')

/**
 * 0 if all are 0, 3 if any is 3, else the code that all share, else 10. 12 counts even if others are 0: what is not
 * configured was not checked.
 */
export function combinedExit(codes: readonly number[]): number {
  const [first = 0] = codes
  if (codes.includes(exits.unhealthy.code)) return exits.unhealthy.code
  if (codes.every((code) => code === first)) return first
  const local = codes.every((code) => code === exits.ok.code || code === exits.local.code)
  return local ? exits.local.code : exits.partial.code
}

/** Why the answers are not healthy, in one line. */
export const firstProblem = (outcomes: readonly HealthOutcome[]): string => {
  const bad = outcomes.find((outcome) => outcome.exitCode !== 0)
  if (!bad) return 'all is healthy'
  return sanitizeLine(bad.fault?.message ?? bad.response?.StatusMessage ?? 'not healthy')
}

export type Output = 'table' | 'json' | ReportName

/** Every format, and whether it also writes what failed to standard error (O10). */
export const formats: Readonly<Record<Output, { readonly logsFailures: boolean }>> = {
  table: { logsFailures: false },
  json: { logsFailures: true },
  ...reports,
}

/** The formats of `--output`, in the order of the help. */
export const outputs = (Object.keys(formats) as Output[]).filter(
  (name) => !isReport(name) || reports[name].help !== undefined,
)

/** How much the table shows. Throws Usage for `--failed` beside another format, `--verbose` or `--quiet`. */
export function chooseDetail(
  flags: { readonly verbose: boolean; readonly quiet: boolean; readonly failed: boolean },
  output: Output,
): Detail {
  if (!flags.failed) return flags.verbose ? 'verbose' : flags.quiet ? 'verdict' : 'usual'
  if (output !== 'table') {
    throw new Fault('Usage', `--failed shows a table: omit --output ${output} or --failed`, {
      hints: [`${output} always contains everything. --failed alone is a table in a pipe too.`],
    })
  }
  const other = flags.verbose ? '--verbose' : flags.quiet ? '--quiet' : undefined
  if (other === undefined) return 'failed'
  throw new Fault('Usage', `--failed and ${other} cannot be combined`, {
    hints: [`Omit one of them: --failed shows what is not ok, ${detailOf[other]}.`],
  })
}

const detailOf = { '--verbose': '--verbose every check', '--quiet': '--quiet the verdict alone' } as const

export const parseOutput = (input: string): Output => oneOf('output', outputs, input, 'Formats')

export function isReport(output: Output | undefined): output is ReportName {
  return output !== undefined && output !== 'table' && output !== 'json'
}

/** The states of Nagios for a target that does not answer in time. */
export const timeoutStates = ['critical', 'unknown'] as const
export type TimeoutState = (typeof timeoutStates)[number]

/**
 * `64k`, `64KiB` or `65536` → bytes, from 1 KiB to 1 MiB.
 *
 * @throws a mistake in the usage for anything else
 */
export async function parseNagiosSize(input: string): Promise<number> {
  const { parseBytes } = await import('../../core/base/settings/index.ts')
  const bytes = parseBytes(/^\d+$/.test(input) ? `${input}B` : input.replace(/^(\d+)k$/i, '$1KiB'))
  if (bytes !== undefined && bytes >= 1_024 && bytes <= 1_048_576) return bytes
  throw new Fault('Usage', `--nagios-size "${input}" is not a size between 1k and 1024k`, {
    hints: ['Write bytes or KiB: 4000, 64k.'],
  })
}

/** The exit code of a Nagios plugin that could not find out. */
export const nagiosUnknown = 3

export type Presentation = {
  readonly output: Output
  readonly target: string
  /** Whether a server ran the checks, rather than this process. */
  readonly atServer: boolean
  readonly mode: string
  /** For people. */
  readonly detail: Detail
  /** For csv and tsv: whether records begin with a line of column names. */
  readonly header: boolean
  /** For nagios. */
  readonly timeoutState: TimeoutState | undefined
  /** For nagios: bytes. */
  readonly size: number | undefined
  /** For prometheus: one of several files of this machine, of which another one has the figures of the machine. */
  readonly withoutMachine: boolean
}

type DisplayOptions = {
  readonly text: string
  readonly form: TextForm
  /** Present when the format has exit codes of its own. */
  readonly exitCode?: number | undefined
  /** For standard error: what failed, beside a document that a program reads. */
  readonly log?: string | undefined
}

/** Prints the answers in the requested format. */
export async function showHealth(
  outcomes: readonly HealthOutcome[],
  as: Presentation,
  io: Io,
): Promise<DisplayOptions> {
  const { output } = as
  const entries = await Promise.all(outcomes.map((outcome) => entryOf(outcome, as)))
  if (output === 'table') return { text: await screenOf(outcomes, entries, as, io.stdout, io.env), form: 'text' }
  const hasFailed = combinedExit(outcomes.map(({ exitCode }) => exitCode)) !== exits.ok.code
  const reasons = { ...as, detail: 'reasons' } as const
  const log =
    hasFailed && formats[output].logsFailures
      ? await screenOf(outcomes, entries, reasons, io.stderr, io.env)
      : undefined
  if (output === 'json') return { text: await json(outcomes, as), form: 'json', log }
  const { load, form } = reports[output]
  const { default: report } = await load()
  return { text: report.render(entries, as), form, exitCode: report.exitCode?.(entries, as), log }
}

/** Loads the screen while a server works on its answer. If that fails, `showHealth` tries again. */
export const preloadScreen = (): void => void import('./screen.ts').catch(() => {})

async function screenOf(
  outcomes: readonly HealthOutcome[],
  entries: readonly Entry[],
  { detail, atServer }: Presentation,
  screen: Io['stdout'],
  env: Io['env'],
): Promise<string> {
  const { renderHealth } = await import('./screen.ts')
  return renderHealth(entries, {
    width: columnsOf(screen, env),
    height: screen.rows,
    colour: screen.colour,
    unicode: screen.unicode,
    detail,
    atServer,
    ages: outcomes.map((outcome) => outcome.ageSeconds),
  }).trimEnd()
}

/** An outcome in the form that the reports read. */
export async function entryOf(outcome: HealthOutcome, as: Pick<Presentation, 'target' | 'mode'>): Promise<Entry> {
  const base = { Target: as.target, ServerType: outcome.type, ExecutionMode: as.mode, ExitCode: outcome.exitCode }
  return outcome.response
    ? { ...base, Response: outcome.response, Run: outcome.run }
    : { ...base, Error: await errorJson(outcome.fault, as.target) }
}

/** The report that the command line requests, determined without parsing it: that may be what failed. */
export function requestedReport(argv: readonly string[]): ReportName | undefined {
  const name = requestedOutput(argv)?.toLowerCase()
  const output = outputs.find((one) => one === name)
  return isReport(output) ? output : undefined
}

/** Whether a monitoring system starts svc as its plugin, and reads standard output only. */
export const isPlugin = (output: ReportName | undefined): boolean =>
  output !== undefined && reports[output].isPlugin === true

/**
 * A failure before any answer, such as a mistake on the command line, as the requested report: its readers would take
 * an empty file for one without failures. Undefined when no report is requested. Nagios gets one of its own exit codes.
 */
export async function failureReport(
  argv: readonly string[],
  error: unknown,
  target: string | undefined,
): Promise<DisplayOptions | undefined> {
  const output = requestedReport(argv)
  if (output === undefined) return undefined
  const { renderError } = await import('../render/errors.ts')
  const fault = asFault(error)
  const failure = renderError.json(fault ?? error, target).error
  // The first line of a plugin begins with its own name.
  const types = isPlugin(output) ? ['svc'] : typesIn(argv)
  const base = { Target: target ?? 'this machine', ExecutionMode: '', ExitCode: failure.exitCode, Error: failure }
  const entries = (types.length > 0 ? types : ['all']).map((type): Entry => ({ ...base, ServerType: type }))
  const { load, form } = reports[output]
  const { default: report } = await load()
  const isUnknown = /(?:^| )--nagios-timeout[= ]unknown(?: |$)/i.test(argv.join(' '))
  // A failure says nothing about the machine, whichever types it is about.
  const options = { timeoutState: isUnknown ? ('unknown' as const) : undefined, withoutMachine: true }
  return {
    text: report.render(entries, options),
    form,
    exitCode: report.exitCode?.(entries, options) ?? (fault ? exitOf(fault) : failure.exitCode),
  }
}

/** The server types that the command line names, without parsing it: files of several runs differ by them. */
const typesIn = (argv: readonly string[]): readonly string[] => {
  const words = new Set(argv.flatMap((word) => word.replace(/^(?:--type=|-t=?)/, '').split(',')))
  return ServerType.values.filter((type) => [...words].some((word) => word.toLowerCase() === type.toLowerCase()))
}

/** Errors are rare, so their renderer is loaded on demand. */
const errorJson = async (fault: Fault, target: string): Promise<ReportedError> =>
  (await import('../render/errors.ts')).renderError.json(fault, target).error

/** The protocol's own document. For several types, an array of these documents with their requests. */
async function json(outcomes: readonly HealthOutcome[], as: Pick<Presentation, 'target' | 'mode'>): Promise<string> {
  const [only] = outcomes
  if (outcomes.length !== 1 || !only?.response)
    return resultsJson(await Promise.all(outcomes.map((one) => resultJson(one, as))))
  const { encodeJson } = await import('../../core/protocol/wire/index.ts')
  return encodeJson(HealthCheckResponse, only.response)
}

export const resultsJson = (results: readonly string[]): string => `{"Results":[${results.join(',')}]}`

/** An answer with its request, as JSON. */
export async function resultJson(outcome: HealthOutcome, as: Pick<Presentation, 'target' | 'mode'>): Promise<string> {
  const { encodeJson } = await import('../../core/protocol/wire/index.ts')
  const head = JSON.stringify({
    Target: as.target,
    ServerType: outcome.type,
    ExecutionMode: as.mode,
    ExitCode: outcome.exitCode,
    ...(outcome.response && outcome.run?.drill === true ? { Drill: true } : {}),
  }).slice(0, -1)
  const tail = outcome.response
    ? `"Response":${encodeJson(HealthCheckResponse, outcome.response)}`
    : `"Error":${JSON.stringify(await errorJson(outcome.fault, as.target))}`
  return `${head},${tail}}`
}
