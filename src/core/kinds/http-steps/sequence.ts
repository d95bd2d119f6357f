import { setTimeout as pause } from 'node:timers/promises'
import {
  type CheckContext,
  deadlineSignal,
  eachAddress,
  evaluateAccepted,
  evaluateUnreached,
  fail,
  type Result,
} from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { hostPort } from '../../net/connect.ts'
import { open, type Route } from '../../net/http/route.ts'
import { quote } from '../../net/text.ts'
import { readTrust } from '../../net/trust.ts'
import { hostOf, portOf } from '../../net/url.ts'
import { ProbeError } from '../../probe-error.ts'
import { readSettings, Secret } from '../../settings/index.ts'
import ftp, { portOf as ftpPortOf } from '../ftp/index.ts'
import { CookieJar } from './cookies.ts'
import { type Polling, type StepAnswer, type StepsRun, send, shownPath } from './exchange.ts'
import { evaluateAnswer, evaluateFailure } from './results.ts'
import { type CleanupStep, type FtpStep, type Step, type StepsSettings, signsAnywhere } from './settings.ts'
import { firstValues, namesIn, type StepValues } from './values.ts'

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
export async function* runSteps(settings: StepsSettings, context: CheckContext): AsyncGenerator<Result> {
  const url = new URL(settings.url)
  const [host, port] = [hostOf(url), portOf(url)]
  context.step('connect', url.host)
  const [values, trust] = await Promise.all([firstValues(settings, context.files), readTrust(settings, context.files)])
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
  const results = eachAddress<Result>(
    context,
    { host, port, which: 'any', check: 'connect' },
    async function* (target) {
      const { address } = target
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
          yield await resultOf(run, step, context.signal, share)
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
      yield fail('step', 'dependency', `${step.name}: not run: step ${quote(failed, 64)} failed`)
      continue
    }
    target.step('step')
    const result = await resultOf(run, step, context.signal, Math.max(1, ends - context.now()))
    yield result
    // A slow step still provides what the next one needs.
    if (result.status === 'failed' && result.fault !== 'threshold') failed = step.name
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
