import { operations } from '../protocol/index.ts'
import type { AnswerFacts, Call } from '../service.ts'
import type { Answer } from './answer.ts'
import { ownOrigin } from './base-url.ts'
import { presented } from './credential.ts'
import { dtoAnswer } from './dto-answer.ts'
import { type Exchange, orCancelled } from './exchange.ts'
import { faultAnswer, plainJson, type Told } from './faults.ts'
import { healthAnswer } from './health.ts'
import { refuseCrossSite, refuseForeignChange } from './origins.ts'
import { readRequest, remembered } from './request.ts'
import type { Found } from './routes.ts'
import { type AuthCall, authAnswer, authCall } from './sign-in.ts'
import type { Site } from './site.ts'
import type { Target, Wanted } from './target.ts'
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
    const auth = found.operation === 'authenticate' ? authCall(site, exchange, request, target, wanted) : undefined
    const credential = credentialFor(site, exchange, found, wanted, auth)
    const facts: { latest: AnswerFacts | undefined } = { latest: undefined }
    const note = (latest: AnswerFacts): void => {
      facts.latest = latest
      exchange.told.runId = latest.runId
    }
    const call = { ...callOf(exchange, note), ...auth?.more, credential }
    const ask = site.service[found.operation] as (request: unknown, call: Call) => Promise<unknown>
    const response = await orCancelled(exchange, ask(request, call))

    if (found.operation === 'healthCheck') {
      return await healthAnswer(site, exchange, { request, response, wanted, facts: facts.latest })
    }
    if (auth) return await authAnswer(site, exchange, auth, { request, response, wanted })
    return await dtoAnswer(row, response, wanted.negotiated)
  } catch (error) {
    return await faultAnswer(site, exchange, error, told)
  }
}

/** What the request presents of itself (A9). Throws Forbidden for a change that a page of another site asks for (T6). */
function credentialFor(
  site: Site,
  exchange: Exchange,
  { operation }: FoundOperation,
  { negotiated }: Wanted,
  auth: AuthCall | undefined,
): Call['credential'] {
  const { headers } = exchange.request
  const { credential, byCookie } = auth?.presented ?? presented(headers, { cookies: negotiated.callback === undefined })
  // A sign-in and a sign-out write cookies, so that no other site may make a browser do either.
  const guarded = auth ? auth.changes : byCookie && operation !== 'healthCheck'
  if (guarded) refuseForeignChange(exchange.request, ownOrigin(site, exchange), site.origins)
  return credential
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
