import { operations } from '../protocol/index.ts'
import type { AnswerFacts, Call } from '../service.ts'
import { attachment, type Negotiated } from '../wire/index.ts'
import type { Answer } from './answer.ts'
import { type Exchange, orCancelled } from './exchange.ts'
import { encoded, faultAnswer, plainJson, type Told } from './faults.ts'
import { healthAnswer } from './health.ts'
import { refuseCrossSite } from './origins.ts'
import { readRequest, remembered } from './request.ts'
import type { Found } from './routes.ts'
import type { Site } from './site.ts'
import type { Target } from './target.ts'
import { wantedOf } from './wanted.ts'

type FoundOperation = Extract<Found, { kind: 'operation' }>

/** Answers one operation of the interface: reads the request, asks the Service, writes its answer or its fault. */
export async function operate(site: Site, exchange: Exchange, found: FoundOperation, target: Target): Promise<Answer> {
  const row = operations[found.operation]
  let told: Told = plainJson
  try {
    const wanted = wantedOf(site, exchange, found, target)
    told = { negotiated: wanted.negotiated, response: row.response }
    if (found.operation === 'healthCheck') refuseCrossSite(exchange.request.headers, site.origins)

    const request = remembered(exchange, target) ?? (await readRequest(exchange, found, target, site.options.maxBody))
    const facts: { latest: AnswerFacts | undefined } = { latest: undefined }
    const call = callOf(exchange, (latest) => {
      facts.latest = latest
      exchange.told.runId = latest.runId
    })
    const ask = site.service[found.operation] as (request: unknown, call: Call) => Promise<unknown>
    const response = await orCancelled(exchange, ask(request, call))

    if (found.operation !== 'healthCheck') return await dtoAnswer(row, response, wanted.negotiated)
    return await healthAnswer(site, exchange, { request, response, wanted, facts: facts.latest })
  } catch (error) {
    return await faultAnswer(site, exchange, error, told)
  }
}

async function dtoAnswer(
  row: (typeof operations)[keyof typeof operations],
  response: unknown,
  negotiated: Negotiated,
): Promise<Answer> {
  const headers = negotiated.format === 'csv' ? ['Content-Disposition', attachment(row.name)] : []
  return { status: 200, ...(await encoded(row.response, response, negotiated)), headers }
}

/** What the transport knows about a call. The Service judges it. */
function callOf({ request, caller, correlationId, signal }: Exchange, note: (facts: AnswerFacts) => void): Call {
  const { headers } = request
  return {
    caller,
    correlationId,
    signal,
    fresh: /\bno-cache\b/i.test(headers['cache-control'] ?? ''),
    timeoutMs: scrapeDeadline(headers['x-prometheus-scrape-timeout-seconds']),
    calledByPeer: Number(headers['x-svc-hops'] ?? 0) > 0,
    note,
  }
}

/** Prometheus gives up after so many seconds; an answer half a second earlier still reaches it. */
function scrapeDeadline(header: string | string[] | undefined): number | undefined {
  const seconds = Number(header ?? Number.NaN)
  if (!Number.isFinite(seconds) || seconds <= 0) return undefined
  return Math.max(100, Math.min(seconds * 1_000 - 500, 3_600_000))
}
