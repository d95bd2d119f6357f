import { performance } from 'node:perf_hooks'
import { Fault } from '../base/errors.ts'
import { neverInQuery, type OperationSpec, operations } from '../protocol/index.ts'
import type { AnswerFacts, Call } from '../protocol/service/service.ts'
import {
  formats,
  type Negotiated,
  negotiate,
  readBatch,
  refuseInQuery,
  requireFields,
  type WireValues,
} from '../protocol/wire/index.ts'
import type { HttpAnswer } from './answer.ts'
import { callOf, credentialFor } from './call.ts'
import { orCancelled, type RequestContext, type ServerContext } from './context.ts'
import { healthAnswer } from './health.ts'
import { methodOf } from './operate.ts'
import { refuseCrossSite } from './origins.ts'
import { receive } from './receive.ts'
import { downloadHeaders, dtoAnswer, type FaultStyle, faultAnswer } from './response.ts'
import type { OperationMatch, RequestTarget } from './routes.ts'

/**
 * Answers an array of requests with an array of answers, one after the other (R3), in the format of the path whatever
 * the request asks for. The first request that fails ends
 * the batch and supplies its status and body, because existing clients read a failure from an object and look for the
 * index in its Meta. A header says how many requests were completed before it.
 */
export async function operateBatch(
  server: ServerContext,
  context: RequestContext,
  operation: OperationMatch,
  target: RequestTarget,
): Promise<HttpAnswer> {
  const row: OperationSpec = operations[operation.operation]
  const { format: suffix = 'json' } = operation
  const negotiated = negotiate({
    method: 'POST',
    suffix,
    jsconfig: target.jsconfig,
    names: server.options.names,
  })
  const style: FaultStyle = { negotiated, response: row.response }
  try {
    if (!row.batch) throw notInBatches(row)
    const { headers } = context.request
    if (operation.operation === 'healthCheck') refuseCrossSite(headers, server.origins)
    const isPost = context.logFields.method === 'POST'
    // A field in the query would belong to none of the requests: a name or an end there must not be ignored (N7).
    refuseInQuery(isPost ? Object.keys(row.request.fields) : neverInQuery(row), target.pairs)
    const bytes = isPost ? await orCancelled(context, receive(context, server.options.maxBody)) : Buffer.alloc(0)
    const requests = await readBatch(row.request, headers['content-type'], bytes)
    const credential = credentialFor(server, context, operation, { negotiated })

    const bodies: string[] = []
    for (const [index, read] of requests.entries()) {
      const one = await answerOne(server, context, operation, { read, credential, index, negotiated })
      if (one.status !== 200) return { ...one, headers: [...completed(index), ...(one.headers ?? [])] }
      bodies.push(String(one.body ?? ''))
      // Restarts the silence timeout: the connection is idle while the batch runs.
      context.request.socket.setTimeout(server.limits.silenceMs)
    }
    const { contentType, join } = await formats[suffix]()
    return {
      status: 200,
      contentType,
      body: join(row.response, bodies),
      headers: [...completed(requests.length), ...downloadHeaders(row, negotiated)],
    }
  } catch (error) {
    return await faultAnswer(server, context, error, style)
  }
}

type One = {
  readonly read: () => WireValues
  readonly credential: Call['credential']
  readonly index: number
  readonly negotiated: Negotiated
}

/** Reads, authorizes, answers, counts and logs one request as if it had arrived alone. */
async function answerOne(
  server: ServerContext,
  context: RequestContext,
  operation: OperationMatch,
  { read, credential, index, negotiated }: One,
): Promise<HttpAnswer> {
  const row: OperationSpec = operations[operation.operation]
  const meta = { AutoBatchIndex: String(index) }
  const started = performance.now()
  const latest: { facts: AnswerFacts | undefined } = { facts: undefined }
  const answer = await attempt()
  note(server, context, { name: row.name, index, status: answer.status, started, runId: latest.facts?.runId })
  return answer

  async function attempt(): Promise<HttpAnswer> {
    try {
      const request = read()
      requireFields(row.request, request)
      const call = callOf(context, credential, (facts) => {
        latest.facts = facts
      })
      const response = await orCancelled(context, methodOf(server, operation)(request, call))
      if (operation.operation !== 'healthCheck') return await dtoAnswer(row, response, negotiated)
      const negotiation = { negotiated, report: undefined }
      return await healthAnswer(server, context, { request, response, negotiation, facts: latest.facts, meta })
    } catch (error) {
      return await faultAnswer(server, context, error, { negotiated, response: row.response, meta })
    }
  }
}

type Answered = {
  readonly name: string
  readonly index: number
  readonly status: number
  /** Monotonic milliseconds. */
  readonly started: number
  readonly runId: string | undefined
}

function note(
  server: ServerContext,
  { logFields, correlationId, caller }: RequestContext,
  { name, started, ...one }: Answered,
): void {
  server.metrics.answeredInBatch(name, one.status)
  const ms = Math.round((performance.now() - started) * 10) / 10
  const { address } = caller
  server.log({
    level: 'info',
    msg: 'answered in a batch',
    path: logFields.path,
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
  return new Fault(
    'BadRequest',
    `${name} is not allowed in batches: send each request separately. Allowed in batches: ${may.join(', ')}`,
  )
}
