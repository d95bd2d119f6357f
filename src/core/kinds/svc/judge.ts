import { type Content, evaluateHealth } from '../../assert/content.ts'
import { fail, type Result, warn } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { count, quoted, said } from '../../net/text.ts'
import { inPascalCase, warningPrefix } from '../../protocol/index.ts'

export type PeerAnswer = Content & { readonly status: number; readonly signedIn: boolean }

/** The health answer of another server, with its failed monitors by name and its warnings as one of ours. */
export function evaluatePeer(answer: PeerAnswer): Result {
  const verdict = judgedPeer(answer)
  const age = Number(/^\d{1,9}$/.exec(answer.headers['age'] ?? '')?.[0] ?? 0)
  return age > 1 ? { ...verdict, message: `${verdict.message}; seen there ${showDuration(age * 1_000)} ago` } : verdict
}

function judgedPeer(answer: PeerAnswer): Result {
  const { address, status, hide } = answer
  const body = documentOf(answer)
  // A draining server answers 503 without a verdict; one that does not suppress error codes, with it.
  if (status !== 200 && typeof body['Status'] !== 'string') return refused(answer, body)
  const verdict = evaluateHealth(answer)
  if (verdict.status === 'failed') {
    const names = failedMonitors(body).map((name) => said(hide(name), 80))
    if (names.length === 0) return verdict
    const shown = names.slice(0, mostNamed).join(', ')
    const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : ''
    return { ...verdict, message: `${verdict.message}; failed there: ${shown}${more}` }
  }
  const warnings = verdict.status === 'ok' ? warningsIn(body) : []
  const [first] = warnings
  if (first === undefined) return verdict
  return warn(
    'health',
    `${address} says Success with ${count(warnings.length, 'warning')}: ${quoted(hide(first), 160)}`,
    {
      address,
      details: warnings.slice(0, mostTold).map((one) => hide(one)),
    },
  )
}

const mostNamed = 5
const mostTold = 10

function refused({ address, status, signedIn, hide }: PeerAnswer, body: Body): Result {
  const error = (body['ResponseStatus'] ?? {}) as Body
  const words = typeof error === 'object' && typeof error['Message'] === 'string' ? error['Message'] : ''
  const told = `${address} answered ${status}${words === '' ? '' : `: ${quoted(hide(words), 160)}`}`
  const more: Partial<Result> = { address, measurement: { value: status, unit: 'count' } }
  if (status === 401 || status === 403) {
    return fail('health', 'auth', `${told}${signedIn ? ': the token of this monitor is refused there' : ''}`, more)
  }
  if (status === 404 || status === 405) {
    return fail('health', 'protocol', `${told}: there is no health operation at this URL`, more)
  }
  return fail('health', 'protocol', told, more)
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
