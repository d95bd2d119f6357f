import { setTimeout as pause } from 'node:timers/promises'
import { count, showBytes, showDuration } from '../../../base/format.ts'
import { hostPort } from '../../../base/net/connect.ts'
import { CookieJar } from '../../../base/net/http/cookies.ts'
import { open, type Route } from '../../../base/net/http/route.ts'
import { quote, type Redact, sanitize } from '../../../base/net/text.ts'
import { readTrust } from '../../../base/net/trust.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { readSettings, Secret, type Threshold } from '../../../base/settings/index.ts'
import { answerOf } from '../../assert/content.ts'
import { select } from '../../assert/document.ts'
import {
  atMost,
  type CheckContext,
  classify,
  contextWith,
  deadlineSignal,
  eachAddress,
  evaluateAccepted,
  evaluateUnreached,
  fail,
  isSignInRefusal,
  type Result,
  reallyFailed,
  runClientExpiry,
} from '../../engine/index.ts'
import ftp, { ftpPortOf } from '../ftp/index.ts'
import { type Polling, type StepAnswer, type StepsRun, send, shownPath } from './exchange.ts'
import type { Meaning } from './expectations.ts'
import { type CleanupStep, type FtpStep, type Step, type StepsSettings, signsAnywhere, statusesOf } from './settings.ts'
import { firstValues, namesIn, type StepValues } from './values.ts'

/** The request of a step, and its address. */
type StepRequest = {
  readonly step: Step | CleanupStep
  readonly address: string
  /** For example `DELETE /users/42`, without secrets. */
  readonly text: string
}

const checkOf = ({ step }: StepRequest): 'step' | 'cleanup' => ('undoes' in step ? 'cleanup' : 'step')

/** The result of a step that was answered. */
const evaluateAnswer = (request: StepRequest, answer: StepAnswer, latency: Threshold): Result =>
  namingLeftover(request, evaluateOutcome(request, answer, latency))

function evaluateOutcome(request: StepRequest, answer: StepAnswer, threshold: Threshold): Result {
  const { step, address, text } = request
  const { status, content, ms, redact, outcome, polling } = answer
  const check = checkOf(request)
  const more: Partial<Result> = { address, measurement: { value: ms, unit: 'milliseconds' } }
  const summary = `${step.name}: ${text} was answered ${status}`
  const waiting = polling ? `, ${durationOf(polling)}` : ''
  const bare = (message: string): string => message.replace(`${address}: `, '')
  switch (outcome.type) {
    case 'refusal':
      return fail(check, 'auth', `${summary}${waiting}: the sign-in was refused`, {
        ...more,
        refusal: `status ${status}`,
      })
    case 'unexpected status': {
      const to = answer.location === undefined ? '' : ` to ${answer.location}`
      return fail(check, 'data', `${summary}${to}${waiting} (expected ${statusesOf(step).join(', ')})`, more)
    }
    case 'failure': {
      const values = valuesOf(answer, outcome.meaning)
      const why = `${text} was answered ${status}${waiting}: ${values}`
      return fail(check, 'data', redact(`${step.name}: ${sanitize(outcome.meaning.says, 200)} (${why})`), more)
    }
    case 'undecided':
      return fail(check, 'data', `${summary}${waiting}: cannot be evaluated: ${outcome.why}`, more)
    case 'unfinished': {
      const how = polling ? durationOf(polling) : 'sent once'
      const why = polling?.reason === 'most' ? ' (request limit reached)' : ''
      const last = bare(outcome.mismatch.message)
      const message = `${step.name}: ${text} is not finished, ${how}${why}; last answer: ${last}`
      return fail('step', 'timeout', redact(message), { address })
    }
    case 'final': {
      const { firstMismatch: unmet } = outcome
      const first = unmet.find(reallyFailed) ?? unmet[0]
      if (first?.notChecked !== undefined)
        return { ...first, check, message: redact(`${summary}: ${bare(first.message)}`) }
      if (first) {
        // Some servers refuse a sign-in with status 200; repeating it could lock the account all the same.
        const fault = 'signIn' in step && step.signIn ? 'auth' : (first.fault ?? 'data')
        const details = unmet.flatMap(({ message, details: others = [] }) => [bare(message), ...others]).slice(1)
        return fail(check, fault, redact(`${summary}${waiting}: ${bare(first.message)}`), {
          ...more,
          details: details.map((one) => redact(one)),
        })
      }
      const [lost, ...others] = answer.uncaptured
      if (lost !== undefined) return fail(check, 'data', `${summary}${waiting}: ${lost}`, { ...more, details: others })
      const size = `${showBytes(content.body.length)}${content.more ? ' and more' : ''}`
      const what = `${summary} with ${size}${waiting === '' ? '' : `${waiting}, the last`} in`
      return atMost({ check, what, value: ms, unit: 'duration', threshold, address })
    }
  }
}

const durationOf = ({ requests, ms }: Polling): string => `sent ${count(requests, 'time')} in ${showDuration(ms)}`

/** For example `$.verdict is "passed"`: the values that identify the answer as this failure. */
function valuesOf({ content, redact }: StepAnswer, { json, xml }: Meaning): string {
  const values = Object.keys({ ...json, ...xml }).map((path) => {
    const items = select(answerOf(content), path)
    const [first] = 'problem' in items ? [] : items
    return `${sanitize(path, 80)} is ${quote(redact(first?.text ?? ''), 80)}`
  })
  return values.join(', ')
}

/** The result of a step that could not be sent, or was not answered. */
function evaluateFailure(request: StepRequest, cause: unknown, afterMs: number, redact: Redact): Result {
  const { step, address, text } = request
  const { fault, message, details } = classify(cause, address, afterMs)
  const result = fail(checkOf(request), fault, redact(`${step.name}: ${text}: ${message}`), {
    address,
    details: details.map((one) => redact(one)),
  })
  return namingLeftover(request, result)
}

/** Names the object that a failed cleanup should have removed. */
function namingLeftover({ step, text }: StepRequest, result: Result): Result {
  if (!('undoes' in step) || result.status !== 'failed' || result.fault === 'threshold') return result
  const left = `; what step ${quote(step.undoes, 64)} created may be left behind: remove it with ${text}`
  return { ...result, message: `${result.message}${left}` }
}

/** Milliseconds reserved for the cleanup, if there is one; at most a third of the total. */
const cleanupMs = 5_000
/** Milliseconds reserved so that a result can name the step that did not answer. */
const reportMs = 200
/** Milliseconds for the cleanup after an aborted run; the engine waits no longer. */
const lastMs = 400
/** The minimum milliseconds for the last request. With less time, the request is not sent. */
const lastRequestMs = 100

/**
 * Runs the steps in order until one fails. Then runs the cleanup, even after a failure, at the deadline, and when the
 * run is aborted.
 */
export async function* runSteps(settings: StepsSettings, whole: CheckContext): AsyncGenerator<Result> {
  const url = new URL(settings.url)
  const [host, port] = [hostOf(url), portOf(url)]
  whole.step('connect', url.host)
  const [values, trust] = await Promise.all([firstValues(settings, whole.files), readTrust(settings, whole.files)])
  const route: Route = {
    url,
    method: 'GET',
    common: {},
    own: {},
    signsIn: signsAnywhere(settings),
    insecureHttp: settings.insecureHttp,
    redirects: 0,
    verify: settings.verify,
    trust,
    servername: settings.servername,
    redact: values.redact,
  }
  yield* runClientExpiry(settings, whole)
  const results = eachAddress<Result>(
    whole,
    { host, port, which: settings.addresses ?? 'any', check: 'connect', ends: isSignInRefusal },
    async function* (target) {
      const { address, signal, msLeft = whole.msLeft } = target
      const context = settings.addresses === 'all' ? contextWith(whole, { signal, msLeft }) : whole
      const start = context.now()
      const first = await open(target, url, route, context)
      const run: StepsRun = { settings, context, target, route, values, jar: new CookieJar(), made: new Set(), first }
      // Each cleanup step is sent at most once.
      const due = new Set(settings.cleanup ?? [])
      try {
        // Tries no other address from here on, so that no request is repeated there.
        yield {
          ...evaluateAccepted('connect', { address, chain: first.chain, ms: context.now() - start }),
          address,
        }
        yield* forward(run)
        for (const step of settings.cleanup ?? []) {
          due.delete(step)
          if (!run.made.has(step.undoes)) continue
          target.step('cleanup')
          const share = Math.max(1, (context.msLeft() - reportMs) / (due.size + 1))
          yield { ...(await resultOf(run, step, context.signal, share)), subject: step.name }
        }
      } finally {
        first.socket.destroy()
        // Nobody reads these results any more, but the cleanup still runs.
        for (const step of due) if (run.made.has(step.undoes)) await resultOf(run, step, undefined, lastMs / due.size)
      }
    },
  )
  for await (const result of results) yield 'see' in result ? evaluateUnreached(result) : result
}

async function* forward(run: StepsRun): AsyncGenerator<Result> {
  const { settings, context, target } = run
  const whole = context.msLeft()
  const reserve = (settings.cleanup ?? []).length > 0 ? Math.min(cleanupMs, whole / 3) : Math.min(reportMs, whole / 10)
  const ends = context.now() + whole - reserve
  let failed: string | undefined
  for (const step of settings.steps) {
    if (failed !== undefined) {
      yield fail('step', 'dependency', `${step.name}: not run: step ${quote(failed, 64)} failed`, {
        subject: step.name,
      })
      continue
    }
    target.step('step')
    const result = await resultOf(run, step, context.signal, Math.max(1, ends - context.now()))
    yield { ...result, subject: step.name }
    // A slow step still provides what the next one needs.
    if (reallyFailed(result) && result.fault !== 'threshold') failed = step.name
  }
}

/** Runs one step within `ms`, and reports an error as its result. Throws if the run itself has ended. */
async function resultOf(
  run: StepsRun,
  step: Step | CleanupStep,
  parent: AbortSignal | undefined,
  ms: number,
): Promise<Result> {
  const { settings, context, values } = run
  const { address } = run.target
  const start = context.now()
  let requests = 0
  const deadline = deadlineSignal(parent ?? new AbortController().signal, ms)
  const text = 'ftp' in step && step.ftp ? `ftp ${step.ftp.host}` : `${step.method} ${shownPath(run, step)}`
  const request = { step, address, text }
  try {
    if ('ftp' in step && step.ftp)
      return await runFtpStep(step.name, step.ftp, values, { ...context, signal: deadline.signal }, ms)
    if (!('until' in step && step.until))
      return evaluateAnswer(request, await send(run, step, deadline.signal), settings.latency)
    const answer = await untilOver({
      until: step.until,
      address,
      now: context.now,
      ms,
      parent: parent ?? deadline.signal,
      send: (signal) => send(run, step, signal),
      count: (sent) => {
        requests = sent
      },
    })
    return evaluateAnswer(request, answer, settings.latency)
  } catch (error) {
    if (parent?.aborted) throw error
    const late = deadline.signal.aborted && !(error instanceof ProbeError)
    const cause = late ? new ProbeError('timeout', `${address} gave no answer within ${showDuration(ms)}`) : error
    const numbered = requests > 1 ? `${text} (request ${requests})` : text
    return evaluateFailure({ ...request, text: numbered }, cause, context.now() - start, values.redact)
  } finally {
    deadline.clear()
  }
}

type Waiting = {
  readonly until: NonNullable<Step['until']>
  readonly address: string
  readonly now: () => number
  /** The total time in milliseconds. */
  readonly ms: number
  /** Aborts the run; no answer is returned after that. */
  readonly parent: AbortSignal
  readonly send: (signal: AbortSignal) => Promise<StepAnswer>
  /** Called before each request with its number. */
  readonly count: (requests: number) => void
}

/**
 * Polls until an answer ends it (by its values, its status, or a failure that `fails` declares), until the time is up,
 * or until `most` requests have been sent. A request without an answer by then is abandoned, and the last answer
 * decides. Throws the error of any request that fails earlier, and ProbeError `timeout` if there is no answer at all.
 */
async function untilOver(waiting: Waiting): Promise<StepAnswer> {
  const { until, now, parent } = waiting
  const started = now()
  const ms = Math.min(until.within ?? waiting.ms, waiting.ms)
  const ends = started + ms
  let last: StepAnswer | undefined
  for (let requests = 1; ; requests += 1) {
    const ending = (reason: Polling['reason'], answer: StepAnswer): StepAnswer => ({
      ...answer,
      polling: { requests, ms: now() - started, reason },
    })
    waiting.count(requests)
    const deadline = deadlineSignal(parent, Math.max(1, ends - now()))
    try {
      last = await waiting.send(deadline.signal)
    } catch (error) {
      if (parent.aborted || !deadline.signal.aborted) throw error
      if (last === undefined) {
        throw new ProbeError('timeout', `${waiting.address} gave no answer within ${showDuration(ms)}`)
      }
      return ending('time', last)
    } finally {
      deadline.clear()
    }
    if (last.outcome.type !== 'unfinished') return ending('over', last)
    if (requests >= until.most) return ending('most', last)
    const left = ends - now() - Math.max(lastRequestMs, last.ms * 2)
    if (left <= 0) return ending('time', last)
    await pause(Math.min(until.every, left), undefined, { signal: parent })
  }
}

/**
 * Signs in at an FTP server and lists a folder within `ms`, like the ftp kind in Standard. The worst result decides.
 */
async function runFtpStep(
  name: string,
  step: FtpStep,
  values: StepValues,
  context: CheckContext,
  ms: number,
): Promise<Result> {
  const ends = context.now() + ms
  const { username, password, ...plain } = step
  const secret = values.fill(password, String)
  const settings = {
    ...readSettings(ftp.settings, { host: step.host }, { env: {}, folder: '' }).values,
    ...plain,
    username: values.fill(username, String),
    password: new Secret('a value of this run', () => Promise.resolve(secret)),
  }
  const during: CheckContext = {
    ...context,
    mode: 'Standard',
    msLeft: () => Math.max(1, Math.floor(ends - context.now())),
    // Ignores the steps of the ftp kind, so that a timeout names the step of this sequence.
    step: () => {},
  }
  const results: Result[] = []
  for await (const some of ftp.run(settings, during)) results.push(...[some].flat())
  const worst = worstOf(name, results, hostPort(step.host, ftpPortOf(settings)), values)
  // No later run can lock the account of this one, and the account of svc.yaml was not refused.
  const isTemporary = worst.fault === 'auth' && namesIn(username).includes('probe')
  return isTemporary ? { ...worst, temporaryAccount: true } : worst
}

function worstOf(name: string, results: readonly Result[], address: string, { redact }: StepValues): Result {
  const worst =
    results.find(({ status }) => status === 'failed') ??
    results.find(({ status }) => status === 'warning') ??
    results.findLast(({ status }) => status === 'ok')
  if (!worst) return fail('step', 'internal', `${name}: nothing was checked`, { address })
  const signIn = results.find(({ check }) => check === 'sign-in')
  const before = worst.status === 'ok' && signIn ? `${signIn.message}; ` : ''
  const details = results.filter((one) => one !== worst && one.status !== 'ok').map(({ message }) => message)
  return {
    ...worst,
    check: 'step',
    message: redact(`${name}: ${before}${worst.message}`),
    details: [...(worst.details ?? []), ...details].map((one) => redact(one)),
  }
}
