import { Fault } from '../errors.ts'
import { type HealthCheckRequest, type HealthCheckResponse, type RunDocument, resultLifeMs } from '../protocol/index.ts'
import type { Received } from './exchange.ts'
import type { SentRequest } from './failure.ts'

/**
 * Throws `Fault` UnreadableAnswer if an HTTP cache between svc and the server gave this answer to a request for a new
 * run: an old success must not open a gate. Only figures of one machine are compared: `Age`, or the end of the run with
 * the `Date` of the same answer.
 */
export function demandNewRun(
  { ExecutionMode: mode }: HealthCheckRequest,
  { headers, status }: Received,
  endedAt: Date | undefined,
  { server }: SentRequest,
): void {
  const lifeMs = resultLifeMs[mode]
  const agedMs = /^\d{1,9}$/.test(headers.age ?? '') ? Number(headers.age) * 1_000 : 0
  // NaN without a date, which no comparison exceeds.
  const sinceMs = Date.parse(headers.date ?? '') - (endedAt?.getTime() ?? Number.NaN)
  const oldMs = Math.max(agedMs, sinceMs > lifeMs ? sinceMs : 0)
  if (oldMs <= lifeMs) return
  throw new Fault(
    'UnreadableAnswer',
    `a cache answered for ${server}: the result is ${Math.floor(oldMs / 1_000)} s old`,
    {
      remoteStatus: status,
      hints: [
        'Exempt /healthcheck from the cache of the proxy in front of the server.',
        'If that proxy has another clock than the server, correct it. --cached accepts an older answer.',
      ],
    },
  )
}

/** Throws `Fault` UnreadableAnswer for a run of another type or depth than the request names. */
export function demandSameRun(
  { ExecutionMode, ServerType }: HealthCheckRequest,
  { type, mode }: RunDocument,
  { server, url }: SentRequest,
): void {
  if (type === ServerType && mode === ExecutionMode) return
  throw new Fault(
    'UnreadableAnswer',
    `${server} answered with a run of ${type} in ${mode}, and not of ${ServerType} in ${ExecutionMode}`,
    { hints: [`Does a proxy or cache ignore the query of ${url}?`] },
  )
}

const contradiction = (status: number): string =>
  `the server reports Success, which contradicts its HTTP status ${status}`

const withReason = (reason: string, message = ''): string => (message.trim() === '' ? reason : `${reason} (${message})`)

/** An answer with Success and an HTTP status of 400 or more is a Failure. Other answers are returned unchanged. */
export function judgedByStatus(answer: HealthCheckResponse, status: number): HealthCheckResponse {
  if (status < 400 || answer.Status !== 'Success') return answer
  return { ...answer, Status: 'Failure', StatusMessage: withReason(contradiction(status), answer.StatusMessage) }
}

/** The same for a run. */
export function runJudgedByStatus(run: RunDocument, status: number): RunDocument {
  if (status < 400 || run.status === 'failed') return run
  return { ...run, status: 'failed', message: withReason(contradiction(status), run.message) }
}
