import { answerOf } from '../../assert/content.ts'
import { select } from '../../assert/document.ts'
import { atMost, classify, evaluateUnreached, fail, ok, type Result } from '../../engine/index.ts'
import { showBytes, showDuration } from '../../format.ts'
import { said as cleaned, count, quoted } from '../../net/text.ts'
import type { Threshold } from '../../settings/index.ts'
import type { Documents } from './expected.ts'
import type { Answered, Failed, FtpVisited, StepSeen } from './seen.ts'

/** Judges what became of one step. */
export function evaluateStep(seen: StepSeen, latency: Threshold): Result {
  switch (seen.see) {
    case 'connect': {
      const { address, chain, ms } = seen
      const told = `${address} accepted${chain ? `, ${chain.protocol}` : ''}`
      return ok('connect', told, { address, measurement: { value: ms, unit: 'milliseconds' } })
    }
    case 'answered':
      return leftBehind(evaluateAnswer(seen, latency), seen)
    case 'failed':
      return leftBehind(evaluateFailure(seen), seen)
    case 'ftp':
      return evaluateFtp(seen)
    case 'not run':
      return fail('step', 'dependency', `${seen.name}: not run: step ${quoted(seen.because, 64)} failed`)
    case 'unreached':
      return evaluateUnreached(seen)
  }
}

const checkOf = ({ undoes }: Answered | Failed): string => (undoes === undefined ? 'step' : 'cleanup')

function evaluateAnswer(seen: Answered, threshold: Threshold): Result {
  const { name, address, asked, status, content, ms, hide, outcome } = seen
  const check = checkOf(seen)
  const more: Partial<Result> = { address, measurement: { value: ms, unit: 'milliseconds' } }
  const said = `${name}: ${asked} was answered ${status}`
  const waited = seen.waited ? `, ${howLong(seen.waited)}` : ''
  if (outcome.is === 'refused') return fail(check, 'auth', `${said}${waited}: the sign-in was refused`, more)
  if (outcome.is === 'unwanted') {
    const to = seen.location === undefined ? '' : ` to ${seen.location}`
    return fail(check, 'data', `${said}${to}${waited} (expected ${seen.allowed.join(', ')})`, more)
  }
  const bare = (message: string): string => message.replace(`${address}: `, '')
  if (outcome.is === 'failure') {
    const { meaning } = outcome
    const told = `${name}: ${cleaned(meaning.says, 200)} (${asked} was answered ${status}${waited}: ${held(seen, meaning)})`
    return fail(check, 'data', hide(told), more)
  }
  if (outcome.is === 'unjudged') return fail(check, 'data', `${said}${waited}: cannot be judged: ${outcome.why}`, more)
  if (outcome.is === 'unfinished') return notOver(seen, bare(outcome.lacks.message))
  const { unmet } = outcome
  const [first] = unmet
  if (first) {
    // A server may say no with a 200: the account would be locked all the same.
    const fault = seen.signIn ? 'auth' : (first.fault ?? 'data')
    const details = unmet.flatMap(({ message, details: others = [] }) => [bare(message), ...others]).slice(1)
    return fail(check, fault, hide(`${said}${waited}: ${bare(first.message)}`), {
      ...more,
      details: details.map((one) => hide(one)),
    })
  }
  const [lost, ...others] = seen.uncaptured
  if (lost !== undefined) return fail(check, 'data', `${said}${waited}: ${lost}`, { ...more, details: others })
  const what = `${said} with ${showBytes(content.body.length)}${content.more ? ' and more' : ''}${waited === '' ? '' : `${waited}, the last`} in`
  return atMost({ check, what, value: ms, unit: 'duration', threshold, address })
}

const howLong = ({ asked, ms }: NonNullable<Answered['waited']>): string =>
  `asked ${count(asked, 'time')} in ${showDuration(ms)}`

/** `$.verdict is "passed"`: the values by which an answer is what it is. */
function held({ content, hide }: Answered, { json, xml }: Documents): string {
  const shown = Object.keys({ ...json, ...xml }).map((path) => {
    const found = select(answerOf(content), path)
    const [first] = 'problem' in found ? [] : found
    return `${cleaned(path, 80)} is ${quoted(hide(first?.text ?? ''), 80)}`
  })
  return shown.join(', ')
}

/** What took too long: how often it was asked, and what it said last. */
function notOver({ name, asked, address, waited, hide }: Answered, last: string): Result {
  const how = waited ? howLong(waited) : 'asked once'
  const why = waited?.ended === 'most' ? ' (most requests sent)' : ''
  return fail('step', 'timeout', hide(`${name}: ${asked} is not over, ${how}${why}; last heard: ${last}`), { address })
}

function evaluateFailure(seen: Failed): Result {
  const { name, address, asked, cause, afterMs, hide } = seen
  const { fault, message, details } = classify(cause, address, afterMs)
  const told = hide(`${name}: ${asked}: ${message}`)
  return fail(checkOf(seen), fault, told, { address, details: details.map((one) => hide(one)) })
}

/** A cleanup that failed names what it should have removed. */
function leftBehind(result: Result, seen: Answered | Failed): Result {
  if (seen.undoes === undefined || result.status !== 'failed' || result.fault === 'threshold') return result
  const left = `; what step ${quoted(seen.undoes, 64)} made may be left behind, for ${seen.asked} to remove`
  return { ...result, message: `${result.message}${left}` }
}

/** What the ftp kind judges, as one finding: the worst of it speaks. */
function evaluateFtp({ name, address, results, hide }: FtpVisited): Result {
  const worst =
    results.find(({ status }) => status === 'failed') ??
    results.find(({ status }) => status === 'warning') ??
    results.findLast(({ status }) => status === 'ok')
  if (!worst) return fail('step', 'internal', `${name}: looked at nothing`, { address })
  const signedIn = results.find(({ check }) => check === 'sign-in')
  const before = worst.status === 'ok' && signedIn ? `${signedIn.message}; ` : ''
  const details = results.filter((one) => one !== worst && one.status !== 'ok').map(({ message }) => message)
  return {
    ...worst,
    check: 'step',
    message: hide(`${name}: ${before}${worst.message}`),
    details: [...(worst.details ?? []), ...details].map((one) => hide(one)),
  }
}
