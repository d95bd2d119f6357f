import { Fault } from '../base/errors.ts'
import { count } from '../base/format.ts'
import {
  type Dto,
  ErrorResponse,
  type HealthCheckRequest,
  type HealthCheckResponse,
  type MonitorSummary,
  type Operation,
  operations,
  type ResponseStatus,
  type RunDocument,
  resultLifeMs,
} from '../protocol/index.ts'
import type { Received } from './exchange.ts'
import { refusal, type SentRequest, sanitizeServerText } from './failure.ts'

/** `decodeAnswer` of wire: throws `Fault` UnreadableAnswer. */
export type Decode = (schema: Dto, text: string) => Readonly<Record<string, unknown>>

/** The functions that the run reader needs: `decodeRun` and `isRunType` of wire. */
export type RunReader = {
  readonly decodeRun: (text: string) => RunDocument
  readonly isRunType: (contentType: string) => boolean
}

/**
 * The run in a server's answer, whatever the HTTP status; undefined for any other answer. Throws `Fault`
 * UnreadableAnswer for a run that cannot be read.
 */
export function runOf(
  received: Received,
  request: SentRequest,
  { decodeRun, isRunType }: RunReader,
): RunDocument | undefined {
  if (request.operation !== 'healthCheck' || !isRunType(received.headers['content-type'] ?? '')) return undefined
  const { problem, text = '' } = read(received, request)
  if (problem) throw problem
  return located(() => decodeRun(text), received, request)
}

/**
 * Interprets an answer: returns the operation's response or throws a `Fault`. A body with `Status` is a health answer
 * whatever its HTTP status (C2). Only a complete, plain JSON object counts as a success (K7).
 */
export function verdict(
  received: Received,
  request: SentRequest & { readonly operation: Operation },
  decode: Decode,
): Readonly<Record<string, unknown>> {
  const schema: Dto = operations[request.operation].response
  const successful = received.status >= 200 && received.status < 300
  const body = read(received, request)
  if (successful && body.problem) throw body.problem
  const text = body.text ?? ''

  if (request.operation === 'healthCheck' && (successful || looksLikeJson(text))) {
    const answer = successful ? decodeWhole(decode, schema, text, received, request) : attempt(decode, schema, text)
    if (answer?.['Status'] !== undefined) return worstPart(answer as HealthCheckResponse)
  }
  const status = responseStatus(decode, text)
  if (!successful) throw refusal(received, request, status, body.plain)
  if (status?.ErrorCode) {
    throw new Fault('ServerError', refusal({ ...received, status: 500 }, request, status, undefined).message, {
      remoteStatus: received.status,
    })
  }
  if (request.operation === 'healthCheck') {
    throw new Fault('UnreadableAnswer', `${request.server} answered without a Status`, {
      remoteStatus: received.status,
      hints: [`Is ${request.url} the health operation?`],
    })
  }
  return decodeWhole(decode, schema, text, received, request)
}

/** The fault of an unsuccessful answer, as `verdict` throws it. */
export function refusalOf(received: Received, request: SentRequest, decode: Decode): Fault {
  const body = read(received, request)
  return refusal(received, request, responseStatus(decode, body.text ?? ''), body.plain)
}

type Body = {
  readonly text?: string
  /** The text, if it is meant for people. */
  readonly plain?: string
  readonly problem?: Fault
}

/** Made once: making it costs more than most answers. */
let utf8: InstanceType<typeof TextDecoder> | undefined

function read({ headers, bytes, status }: Received, request: SentRequest): Body {
  const unreadable = (what: string, ...hints: readonly string[]): Body => ({
    problem: new Fault('UnreadableAnswer', `${request.server} answered ${what}`, { remoteStatus: status, hints }),
  })
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (encoding !== '' && encoding !== 'identity') {
    return unreadable('with a compressed body, which svc did not request', 'A proxy may have compressed it.')
  }
  let text: string
  try {
    utf8 ??= new TextDecoder('utf-8', { fatal: true })
    text = utf8.decode(bytes)
  } catch {
    return unreadable('with a body that is not UTF-8')
  }
  if (text.trim() === '') return unreadable('with an empty body', `Is ${request.url} the right address?`)
  const type = headers['content-type']?.toLowerCase() ?? ''
  if (type.includes('html') || text.trimStart().startsWith('<')) {
    return unreadable(
      'with a web page instead of JSON',
      'Is the base URL correct? Login pages, gateways and proxies return web pages.',
    )
  }
  return looksLikeJson(text) ? { text } : { text, plain: text }
}

const looksLikeJson = (text: string): boolean => /^\s*[{[]/.test(text)

/** Like `decode`, but its fault names the origin of the answer. */
const decodeWhole = (
  decode: Decode,
  schema: Dto,
  text: string,
  received: Received,
  request: SentRequest,
): Readonly<Record<string, unknown>> => located(() => decode(schema, text), received, request)

function located<T>(decoded: () => T, { status }: Received, { url }: SentRequest): T {
  try {
    return decoded()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault('UnreadableAnswer', sanitizeServerText(error.message), {
      remoteStatus: status,
      hints: [`Is ${url} the right address?`],
    })
  }
}

/** Like `decode`, for an answer that may be something else. */
function attempt(decode: Decode, schema: Dto, text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return decode(schema, text)
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

function responseStatus(decode: Decode, text: string): ResponseStatus | undefined {
  if (!looksLikeJson(text)) return undefined
  return attempt(decode, ErrorResponse, text)?.['ResponseStatus'] as ResponseStatus | undefined
}

/**
 * Makes an answer as bad as its worst part. A server may send Success together with a failed monitor, a failed result,
 * a FailedMonitorCount above 0, or no monitor at all; none of these is healthy. Other answers are returned unchanged,
 * and a Failure stays one whatever its parts say.
 */
function worstPart(answer: HealthCheckResponse): HealthCheckResponse {
  const summaries = answer.MonitorSummaries ?? []
  const MonitorSummaries = summaries.some(hides) ? summaries.map(asBadAsItsResults) : summaries
  const failed = MonitorSummaries.filter(hasFailed).length
  const all = Math.max(failed, answer.FailedMonitorCount ?? 0)
  if (MonitorSummaries === summaries && (answer.Status !== 'Success' || (all === 0 && summaries.length > 0))) {
    return answer
  }
  const corrected = { ...answer, MonitorSummaries, FailedMonitorCount: all }
  if (answer.Status !== 'Success') return corrected
  const contradiction =
    all === 0
      ? 'the server reports Success, but no monitor: nothing was checked'
      : `the server reports Success, but also ${count(all, 'failed monitor')}`
  const { StatusMessage: message = '' } = answer
  return {
    ...corrected,
    Status: 'Failure',
    StatusMessage: message.trim() === '' ? contradiction : `${contradiction} (${message})`,
  }
}

const hasFailed = ({ Status }: { readonly Status?: string | undefined }): boolean => Status === 'Failure'

/** Whether a monitor that passed has a failed result. */
const hides = (summary: MonitorSummary): boolean => !hasFailed(summary) && (summary.Results ?? []).some(hasFailed)

const asBadAsItsResults = (summary: MonitorSummary): MonitorSummary =>
  hides(summary) ? { ...summary, Status: 'Failure' } : summary

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
