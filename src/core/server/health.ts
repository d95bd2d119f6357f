import { exits } from '../errors.ts'
import { HealthCheckRequest, HealthCheckResponse, runMediaType } from '../protocol/index.ts'
import { type Entry, reports } from '../reports/index.ts'
import type { AnswerFacts, RecentRun } from '../service.ts'
import { attachment, encodeRun } from '../wire/index.ts'
import type { Answer } from './answer.ts'
import { baseUrl } from './base-url.ts'
import type { Exchange } from './exchange.ts'
import { encoded, spoken } from './faults.ts'
import type { Site } from './site.ts'
import type { Wanted } from './target.ts'

type Finished = Pick<RecentRun, 'type' | 'mode' | 'response' | 'run'>

/** A finished run as the reports read it. */
export const entryOf = ({ type, mode, response, run }: Finished, target: string): Entry => ({
  Target: target,
  ServerType: type,
  ExecutionMode: mode,
  ExitCode: response.Status === 'Success' ? exits.ok.code : exits.unhealthy.code,
  Response: response,
  Run: run,
})

export type Asked = {
  readonly request: unknown
  readonly response: unknown
  readonly wanted: Pick<Wanted, 'negotiated' | 'report'> & Partial<Pick<Wanted, 'run'>>
  readonly facts: AnswerFacts | undefined
  /** For the Meta of the ResponseStatus behind a failure. */
  readonly meta?: Readonly<Record<string, string>> | undefined
}

/** H1, H2, F5: a health answer, in the status and the format that was asked for. */
export async function healthAnswer(site: Site, exchange: Exchange, asked: Asked): Promise<Answer> {
  const { wanted } = asked
  const request = asked.request as HealthCheckRequest
  const response = asked.response as HealthCheckResponse
  const failed = response.Status !== 'Success'
  const headers = ['Age', String(Math.max(0, Math.floor(asked.facts?.ageSeconds ?? 0)))]
  const status = (suppressed: boolean): number => (failed && !suppressed ? 503 : 200)
  const suppressed = request.SuppressErrorCodes === true

  if (wanted.report !== undefined) {
    const { default: report } = await reports[wanted.report]()
    const { ServerType: type, ExecutionMode: mode } = request
    const entry = entryOf({ type, mode, response, run: asked.facts?.run }, baseUrl(site, exchange))
    const body = report.render([entry])
    return {
      status: status(suppressed || report.impliesSuppress === true),
      contentType: report.contentType,
      body,
      headers,
    }
  }
  const run = wanted.run === true && asked.facts?.run ? encodeRun(asked.facts.run) : undefined
  if (run !== undefined) return { status: status(suppressed), contentType: runMediaType, body: run, headers }
  if (wanted.negotiated.format === 'csv') {
    if (status(suppressed) === 200) headers.push('Content-Disposition', attachment(HealthCheckRequest.name))
    return { status: status(suppressed), ...(await encoded(HealthCheckResponse, response, wanted.negotiated)), headers }
  }
  const { names } = wanted.negotiated
  const json = site.healthJson.write(response, status(suppressed) !== 200, names, asked.meta)
  return { status: status(suppressed), ...spoken(json, wanted.negotiated), headers }
}
