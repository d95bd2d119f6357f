import { operations } from '../protocol/index.ts'
import type { AnswerFacts, Call } from '../service.ts'
import type { Answer } from './answer.ts'
import { callOf, credentialFor } from './call.ts'
import { dtoAnswer } from './dto-answer.ts'
import { type Exchange, orCancelled } from './exchange.ts'
import { faultAnswer, plainJson, type Told } from './faults.ts'
import { healthAnswer } from './health.ts'
import { refuseCrossSite } from './origins.ts'
import { readRequest, remembered } from './request.ts'
import type { FoundOperation } from './routes.ts'
import { authAnswer, authCall } from './sign-in.ts'
import type { Site } from './site.ts'
import type { Target } from './target.ts'
import { wantedOf } from './wanted.ts'

/** Answers one operation of the interface: reads the request, asks the Service, writes its answer or its fault. */
export async function operate(site: Site, exchange: Exchange, found: FoundOperation, target: Target): Promise<Answer> {
  const row = operations[found.operation]
  let told: Told = plainJson(site)
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
    const call = { ...callOf(exchange, credential, note), ...auth?.more }
    const response = await orCancelled(exchange, asked(site, found)(request, call))

    if (found.operation === 'healthCheck') {
      return await healthAnswer(site, exchange, { request, response, wanted, facts: facts.latest })
    }
    if (auth) return await authAnswer(site, exchange, auth, { request, response, wanted })
    return await dtoAnswer(row, response, wanted.negotiated)
  } catch (error) {
    return await faultAnswer(site, exchange, error, told)
  }
}

/** The Service's method, for a request that was read by the operation's own schema. */
export const asked = (site: Site, { operation }: FoundOperation) =>
  site.service[operation] as (request: unknown, call: Call) => Promise<unknown>
