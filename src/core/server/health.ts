import { exits } from '../base/errors.ts'
import { type Entry, reports } from '../checks/reports/index.ts'
import {
  ExecutionMode,
  HealthCheckRequest,
  HealthCheckResponse,
  type RunDocument,
  runMediaType,
  type ServerType,
} from '../protocol/index.ts'
import type { AnswerFacts, RecentRun, RuntimeFacts } from '../protocol/service/service.ts'
import { encodeRun } from '../protocol/wire/index.ts'
import type { HttpAnswer } from './answer.ts'
import { baseUrl, type RequestContext, type ServerContext } from './context.ts'
import { failureOf } from './health-json.ts'
import { downloadHeaders, encoded, encodedJson } from './response.ts'
import type { ResponseNegotiation } from './routes.ts'

/** The index of a mode, from 0 for the shallowest; -1 for a value that is not a mode. */
export const depthOf = (mode: string): number => (ExecutionMode.values as readonly string[]).indexOf(mode)

/** All types: the configured ones or, while there are none, those that check svc itself. */
export const checkedTypes = ({ types, ownTypes }: RuntimeFacts): readonly ServerType[] =>
  types.length > 0 ? types : ownTypes

/** The interface's document, or the run. */
type Finished = Pick<RecentRun, 'type' | 'mode'> & {
  readonly response?: HealthCheckResponse | undefined
  readonly run?: RunDocument | undefined
}

/** A finished run in the form that the reports read. */
export const entryOf = ({ type, mode, response, run }: Finished, target: string): Entry => ({
  Target: target,
  ServerType: type,
  ExecutionMode: mode,
  ExitCode:
    response?.Status === 'Success' || (!response && run?.status !== 'failed') ? exits.ok.code : exits.unhealthy.code,
  Response: response,
  Run: run,
})

export type HealthAnswerInput = {
  readonly request: unknown
  readonly response: unknown
  readonly negotiation: Pick<ResponseNegotiation, 'negotiated' | 'report'> & Partial<Pick<ResponseNegotiation, 'run'>>
  readonly facts: AnswerFacts | undefined
  /** The Meta of the ResponseStatus of a failure. */
  readonly meta?: Readonly<Record<string, string>> | undefined
}

/** A health answer in the requested format and with the matching status (H1, H2, F5). */
export async function healthAnswer(
  server: ServerContext,
  context: RequestContext,
  question: HealthAnswerInput,
): Promise<HttpAnswer> {
  const { negotiation } = question
  const request = question.request as HealthCheckRequest
  const response = question.response as HealthCheckResponse
  const failed = response.Status !== 'Success'
  const headers = ['Age', String(Math.max(0, Math.floor(question.facts?.ageSeconds ?? 0)))]
  // RFC 9211: the answer comes from what is stored.
  if (question.facts?.stored) headers.push('Cache-Status', 'svc; hit')
  const status = (suppressed: boolean): number => (failed && !suppressed ? 503 : 200)
  const suppressed = request.SuppressErrorCodes === true

  if (negotiation.report !== undefined) {
    const { default: report } = await reports[negotiation.report].load()
    const { ServerType: type, ExecutionMode: mode } = request
    const entry = entryOf({ type, mode, response, run: question.facts?.run }, baseUrl(server, context))
    const body = report.render([entry])
    return {
      status: status(suppressed || report.impliesSuppress === true),
      contentType: report.contentType,
      body,
      headers,
    }
  }
  const run = negotiation.run === true && question.facts?.run ? encodeRun(question.facts.run) : undefined
  if (run !== undefined) return { status: status(suppressed), contentType: runMediaType, body: run, headers }
  if (negotiation.negotiated.format !== 'json') {
    const isError = status(suppressed) !== 200
    if (!isError) headers.push(...downloadHeaders(HealthCheckRequest, negotiation.negotiated))
    const trailing = isError ? failureOf(response, question.meta) : undefined
    return {
      status: status(suppressed),
      ...(await encoded(HealthCheckResponse, response, negotiation.negotiated, trailing)),
      headers,
    }
  }
  const { names } = negotiation.negotiated
  const json = server.healthJson.write(response, status(suppressed) !== 200, names, question.meta)
  return { status: status(suppressed), ...encodedJson(json, negotiation.negotiated), headers }
}
