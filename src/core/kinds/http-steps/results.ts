import { answerOf } from '../../assert/content.ts'
import { select } from '../../assert/document.ts'
import { atMost, classify, fail, type Result } from '../../engine/index.ts'
import { showBytes, showDuration } from '../../format.ts'
import { sanitize as cleaned, count, quote, type Redact } from '../../net/text.ts'
import type { Threshold } from '../../settings/index.ts'
import type { Polling, StepAnswer } from './exchange.ts'
import type { Meaning } from './expectations.ts'
import { type CleanupStep, type Step, statusesOf } from './settings.ts'

/** The request of a step, and its address. */
export type StepRequest = {
  readonly step: Step | CleanupStep
  readonly address: string
  /** For example `DELETE /users/42`, without secrets. */
  readonly text: string
}

const checkOf = ({ step }: StepRequest): 'step' | 'cleanup' => ('undoes' in step ? 'cleanup' : 'step')

/** The result of a step that was answered. */
export const evaluateAnswer = (request: StepRequest, answer: StepAnswer, latency: Threshold): Result =>
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
      return fail(check, 'data', redact(`${step.name}: ${cleaned(outcome.meaning.says, 200)} (${why})`), more)
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
      const [first] = unmet
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
    return `${cleaned(path, 80)} is ${quote(redact(first?.text ?? ''), 80)}`
  })
  return values.join(', ')
}

/** The result of a step that could not be sent, or was not answered. */
export function evaluateFailure(request: StepRequest, cause: unknown, afterMs: number, redact: Redact): Result {
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
