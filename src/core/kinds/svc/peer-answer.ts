import { type Content, evaluateHealth } from '../../assert/content.ts'
import { fail, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { count, quoted, said } from '../../net/text.ts'
import { inPascalCase, warningPrefix } from '../../protocol/index.ts'

export type PeerAnswer = Content & { readonly status: number; readonly signedIn: boolean }

/** How many failed monitors the message names, and how many warnings become details. */
const maxNames = 5
const maxWarnings = 10

/** The health answer of another server, with its failed monitors by name and its warnings as one of ours. */
export function evaluatePeer(answer: PeerAnswer): Result<'health'> {
  const result = evaluateAnswer(answer)
  const age = Number(/^\d{1,9}$/.exec(answer.headers['age'] ?? '')?.[0] ?? 0)
  return age > 1 ? { ...result, message: `${result.message}; seen there ${showDuration(age * 1_000)} ago` } : result
}

function evaluateAnswer(answer: PeerAnswer): Result<'health'> {
  const { address, status, hide } = answer
  const body = documentOf(answer)
  // A draining server answers 503 without a verdict; one that does not suppress error codes, with it.
  if (status !== 200 && typeof body['Status'] !== 'string') return evaluateRefusal(answer, body)
  const result = evaluateHealth(answer)
  if (result.status === 'failed') {
    const names = failedMonitors(body).map((name) => said(hide(name), 80))
    if (names.length === 0) return result
    const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : ''
    return { ...result, message: `${result.message}; failed there: ${names.slice(0, maxNames).join(', ')}${more}` }
  }
  const warnings = result.status === 'ok' ? warningsIn(body) : []
  const [first] = warnings
  if (first === undefined) return result
  const message = `${address} says Success with ${count(warnings.length, 'warning')}: ${quoted(hide(first), 160)}`
  return warn('health', message, { address, details: warnings.slice(0, maxWarnings).map((one) => hide(one)) })
}

function evaluateRefusal({ address, status, signedIn, hide }: PeerAnswer, body: Body): Result<'health'> {
  const error = (body['ResponseStatus'] ?? {}) as Body
  const words = typeof error === 'object' && typeof error['Message'] === 'string' ? error['Message'] : ''
  const text = `${address} answered ${status}${words === '' ? '' : `: ${quoted(hide(words), 160)}`}`
  const more: Partial<Result> = { address, measurement: { value: status, unit: 'count' } }
  if (status === 401 || status === 403) {
    return fail('health', 'auth', `${text}${signedIn ? ': the token of this monitor is refused there' : ''}`, more)
  }
  if (status === 404 || status === 405) {
    return fail('health', 'protocol', `${text}: there is no health operation at this URL`, more)
  }
  return fail('health', 'protocol', text, more)
}

type Body = Readonly<Record<string, unknown>>

function documentOf({ body, more }: PeerAnswer): Body {
  if (more) return {}
  try {
    const value = inPascalCase(JSON.parse(body.toString('utf8')))
    return typeof value === 'object' && value !== null ? (value as Body) : {}
  } catch {
    return {}
  }
}

/** As far as they are what they should be; no more than a hostile answer may make us read. */
const records = (value: unknown): readonly Body[] =>
  (Array.isArray(value) ? value.slice(0, 1_000) : []).filter(
    (one): one is Body => typeof one === 'object' && one !== null,
  )

const failedMonitors = (body: Body): readonly string[] =>
  records(body['MonitorSummaries']).flatMap(({ MonitorName: name, Status: status }) =>
    status === 'Failure' && typeof name === 'string' ? [name] : [],
  )

const warningsIn = (body: Body): readonly string[] =>
  records(body['MonitorSummaries']).flatMap(({ MonitorName: monitor, Results: results }) =>
    records(results).flatMap(({ MonitoringName: check, StatusMessage: message }) =>
      typeof message === 'string' && message.startsWith(warningPrefix)
        ? [`${String(monitor)} ${String(check)}: ${message.slice(warningPrefix.length)}`]
        : [],
    ),
  )
