import { performance } from 'node:perf_hooks'
import { Fault } from '../errors.ts'
import { type OperationSpec, operations } from '../protocol/index.ts'
import type { AnswerFacts, Call } from '../service.ts'
import { type Negotiated, negotiate, readBatch, refuseInQuery, requireFields, type Values } from '../wire/index.ts'
import type { Answer } from './answer.ts'
import { receive } from './body.ts'
import { callOf, credentialFor } from './call.ts'
import { dtoAnswer } from './dto-answer.ts'
import { type Exchange, orCancelled } from './exchange.ts'
import { faultAnswer, type Told } from './faults.ts'
import { healthAnswer } from './health.ts'
import { asked } from './operate.ts'
import { refuseCrossSite } from './origins.ts'
import type { FoundOperation } from './routes.ts'
import type { Site } from './site.ts'
import type { Target } from './target.ts'

/**
 * R3: answers an array of requests with an array of answers, one after the other. The first that would not be a
 * success if it came alone ends the batch: its status and its body are the batch's, because existing clients read a
 * failure off an object and look into its Meta for the index; the header says how many were done before it.
 */
export async function operateBatch(
  site: Site,
  exchange: Exchange,
  found: FoundOperation,
  target: Target,
): Promise<Answer> {
  const row: OperationSpec = operations[found.operation]
  // A batch speaks JSON only, whatever is asked for.
  const negotiated = negotiate({ method: 'POST', suffix: 'json', jsconfig: target.jsconfig, names: site.options.names })
  const told: Told = { negotiated, response: row.response }
  try {
    if (!row.batch) throw notInBatches(row)
    const { headers } = exchange.request
    if (found.operation === 'healthCheck') refuseCrossSite(headers, site.origins)
    refuseInQuery(row.neverInQuery, target.pairs)
    const bytes = await orCancelled(exchange, receive(exchange, site.options.maxBody))
    const requests = readBatch(row.request, headers['content-type'], bytes)
    const credential = credentialFor(site, exchange, found, { negotiated })

    const bodies: string[] = []
    for (const [index, read] of requests.entries()) {
      const one = await answerOne(site, exchange, found, { read, credential, index, negotiated })
      if (one.status !== 200) return { ...one, headers: [...completed(index), ...(one.headers ?? [])] }
      bodies.push(one.body ?? '')
      // Nothing moves on the connection meanwhile, and yet it is no silent one.
      exchange.request.socket.setTimeout(site.limits.silenceMs)
    }
    return {
      status: 200,
      contentType: 'application/json; charset=utf-8',
      body: `[${bodies.join(',')}]`,
      headers: completed(requests.length),
    }
  } catch (error) {
    return await faultAnswer(site, exchange, error, told)
  }
}

type One = {
  readonly read: () => Values
  readonly credential: Call['credential']
  readonly index: number
  readonly negotiated: Negotiated
}

/** Read, guarded, answered, counted and logged as if it had come alone. */
async function answerOne(
  site: Site,
  exchange: Exchange,
  found: FoundOperation,
  { read, credential, index, negotiated }: One,
): Promise<Answer> {
  const row: OperationSpec = operations[found.operation]
  const meta = { AutoBatchIndex: String(index) }
  const started = performance.now()
  const known: { facts: AnswerFacts | undefined } = { facts: undefined }
  const answer = await attempt()
  note(site, exchange, { name: row.name, index, status: answer.status, started, runId: known.facts?.runId })
  return answer

  async function attempt(): Promise<Answer> {
    try {
      const request = read()
      requireFields(row.request, request)
      const call = callOf(exchange, credential, (facts) => {
        known.facts = facts
      })
      const response = await orCancelled(exchange, asked(site, found)(request, call))
      if (found.operation !== 'healthCheck') return await dtoAnswer(row, response, negotiated)
      const wanted = { negotiated, report: undefined }
      return await healthAnswer(site, exchange, { request, response, wanted, facts: known.facts, meta })
    } catch (error) {
      return await faultAnswer(site, exchange, error, { negotiated, response: row.response, meta })
    }
  }
}

type Answered = {
  readonly name: string
  readonly index: number
  readonly status: number
  /** By the monotonic clock, milliseconds. */
  readonly started: number
  readonly runId: string | undefined
}

function note(site: Site, { told, correlationId, caller }: Exchange, { name, started, ...one }: Answered): void {
  site.metrics.answeredInBatch(name, one.status)
  const ms = Math.round((performance.now() - started) * 10) / 10
  const { address } = caller
  site.log({
    level: 'info',
    msg: 'answered in a batch',
    path: told.path,
    ...one,
    request: name,
    ms,
    correlationId,
    address,
  })
}

const completed = (count: number): readonly string[] => ['X-AutoBatch-Completed', String(count)]

function notInBatches({ name }: OperationSpec): Fault {
  const rows: readonly OperationSpec[] = Object.values(operations)
  const may = rows.flatMap((row) => (row.batch ? [row.name] : []))
  return new Fault('BadRequest', `${name} is not taken in batches: send each alone. In batches: ${may.join(', ')}`)
}
