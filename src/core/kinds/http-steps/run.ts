import { type CheckContext, deadlineSignal, eachAddress, type Result } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { readCaFile } from '../../net/ca-file.ts'
import { hostPort } from '../../net/connect.ts'
import { hostOf, open, portOf, type Route } from '../../net/http/route.ts'
import { ProbeError } from '../../probe-error.ts'
import { readSettings, Secret } from '../../settings/index.ts'
import ftp, { portOf as ftpPort } from '../ftp/index.ts'
import { ask, type Run, shownPath } from './ask.ts'
import { CookieJar } from './cookies.ts'
import { evaluateStep } from './judge.ts'
import type { Failed, StepSeen } from './seen.ts'
import type { CleanupStep, FtpStep, Step, StepsSettings } from './settings.ts'
import { untilOver } from './until.ts'
import { firstValues } from './values.ts'

/** Milliseconds kept for the cleanup, where there is one: no more than a third of what there is. */
const cleanupMs = 5_000
/** Milliseconds kept so that what did not answer can be told by name. */
const tellingMs = 200
/** Milliseconds for a cleanup after the run itself was given up: the engine waits that long, and no longer. */
const lastMs = 400

/**
 * Does the steps one after the other, up to the first that fails, and then what undoes them: also after
 * a failure, at the deadline, and when the run is given up.
 */
export async function* runSteps(given: StepsSettings, context: CheckContext): AsyncGenerator<StepSeen> {
  const url = new URL(given.url)
  const [host, port] = [hostOf(url), portOf(url)]
  context.step('connect', url.host)
  const [values, ca] = await Promise.all([firstValues(given), readCaFile(given.caFile)])
  const route: Route = {
    url,
    method: 'GET',
    common: {},
    own: {},
    signsIn: signsAnywhere(given),
    insecureHttp: given.insecureHttp,
    redirects: 0,
    verify: given.verify,
    ca,
    hide: values.hide,
  }
  yield* eachAddress<StepSeen>(context, { host, port, which: 'any', check: 'connect' }, async function* (target) {
    const start = context.now()
    const first = await open(target, url, route, context)
    const run: Run = { given, context, target, route, values, jar: new CookieJar(), made: new Set(), first }
    // Each is sent once, whatever comes in between.
    const due = new Set(given.cleanup ?? [])
    try {
      // From here on no other address stands in for this one: what was sent is not sent again.
      yield { see: 'connect', address: target.address, ms: context.now() - start, chain: first.chain }
      yield* forward(run)
      for (const step of given.cleanup ?? []) {
        due.delete(step)
        if (!run.made.has(step.undoes)) continue
        target.step('cleanup')
        const share = Math.max(1, (context.msLeft() - tellingMs) / (due.size + 1))
        yield* taken(run, step, context.signal, share)
      }
    } finally {
      first.socket.destroy()
      for (const step of due) {
        if (!run.made.has(step.undoes)) continue
        // Nobody hears of it any more; it is undone all the same.
        for await (const _ of taken(run, step, undefined, lastMs / due.size));
      }
    }
  })
}

/** Whether a credential of svc.yaml is sent, in whatever way. */
export const signsAnywhere = (given: StepsSettings): boolean =>
  given.password !== undefined || given.token !== undefined || given.steps.some(({ signIn }) => signIn)

async function* forward(run: Run): AsyncGenerator<StepSeen> {
  const { given, context, target } = run
  const whole = context.msLeft()
  const kept = (given.cleanup ?? []).length > 0 ? Math.min(cleanupMs, whole / 3) : Math.min(tellingMs, whole / 10)
  const ends = context.now() + whole - kept
  let failed: string | undefined
  for (const step of given.steps) {
    if (failed !== undefined) {
      yield { see: 'not run', name: step.name, because: failed }
      continue
    }
    target.step('step')
    for await (const seen of taken(run, step, context.signal, Math.max(1, ends - context.now()))) {
      yield seen
      const { status, fault } = evaluateStep(seen, given.latency)
      // One that is slow has done what the next one needs.
      if (status === 'failed' && fault !== 'threshold') failed = step.name
    }
  }
}

/** One step within `ms`; what goes wrong is a part of what is seen. Throws when the run itself has ended. */
async function* taken(
  run: Run,
  step: Step | CleanupStep,
  parent: AbortSignal | undefined,
  ms: number,
): AsyncGenerator<StepSeen> {
  const { context, target, values } = run
  const start = context.now()
  let requests = 0
  const deadline = deadlineSignal(parent ?? new AbortController().signal, ms)
  const undoes = 'undoes' in step ? step.undoes : undefined
  const asked = 'ftp' in step && step.ftp ? `ftp ${step.ftp.host}` : `${step.method} ${shownPath(run, step)}`
  const failed = (cause: unknown): Failed => {
    const { address } = target
    return {
      see: 'failed',
      name: step.name,
      undoes,
      address,
      asked: requests > 1 ? `${asked} (request ${requests})` : asked,
      cause,
      afterMs: context.now() - start,
      hide: values.hide,
    }
  }
  try {
    if ('ftp' in step && step.ftp) yield await visited(run, step.name, step.ftp, deadline.signal, ms)
    else if ('until' in step && step.until) {
      const { address } = target
      const count = (asked: number): void => {
        requests = asked
      }
      const again = (signal: AbortSignal) => ask(run, step, asked, signal)
      const signal = parent ?? deadline.signal
      yield await untilOver({ until: step.until, address, now: context.now, ms, parent: signal, ask: again, count })
    } else yield await ask(run, step, asked, deadline.signal)
  } catch (error) {
    if (parent?.aborted) throw error
    const late = deadline.signal.aborted && !(error instanceof ProbeError)
    yield failed(
      late ? new ProbeError('timeout', `${target.address} gave no answer within ${showDuration(ms)}`) : error,
    )
  } finally {
    deadline.clear()
  }
}

/** Signs in at an FTP server and lists a folder, as the ftp kind does in Standard. */
async function visited(run: Run, name: string, step: FtpStep, signal: AbortSignal, ms: number): Promise<StepSeen> {
  const { context, values } = run
  const ends = context.now() + ms
  const { username, password, ...plain } = step
  const hushed = values.fill(password, String)
  const usual = readSettings(ftp.settings, { host: step.host }, { env: {}, folder: '' }).values
  const settings = {
    ...usual,
    ...plain,
    username: values.fill(username, String),
    password: new Secret('a value of this run', () => Promise.resolve(hushed)),
  }
  const results: Result[] = []
  const within: CheckContext = {
    ...context,
    mode: 'Standard',
    signal,
    msLeft: () => Math.max(1, Math.floor(ends - context.now())),
    // The deadline is told by the name of the step, not by what the visit was at.
    step: () => {},
  }
  for await (const some of ftp.run(settings, within)) results.push(...[some].flat())
  return { see: 'ftp', name, address: hostPort(step.host, ftpPort(settings)), results, hide: values.hide }
}
