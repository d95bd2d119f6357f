import { Fault } from '../base/errors.ts'
import type { ReportName } from '../checks/reports/index.ts'
import { type ChangePasswordResponse, neverInQuery, operations, readsHealth, runMediaType } from '../protocol/index.ts'
import type { AnswerFacts, Call } from '../protocol/service/service.ts'
import {
  bind,
  formatNamed,
  merge,
  negotiate,
  type Pair,
  readBody,
  refuseContradictions,
  refuseInQuery,
  requireFields,
  type Sources,
  type WireValues,
} from '../protocol/wire/index.ts'
import type { HttpAnswer } from './answer.ts'
import { callOf, credentialFor } from './call.ts'
import { orCancelled, type RequestContext, type ServerContext } from './context.ts'
import { healthAnswer } from './health.ts'
import { refuseCrossSite, refuseForeignCallback } from './origins.ts'
import { receive } from './receive.ts'
import { dtoAnswer, type FaultStyle, faultAnswer, plainJson } from './response.ts'
import { type OperationMatch, overHttp, type RequestTarget, type ResponseNegotiation } from './routes.ts'
import { authAnswer, authCall, refusedPage, renewedCookies } from './sign-in.ts'

/**
 * Reads the request of an operation from its body, path, query and form. Throws one BadRequest that names every wrong
 * or missing field (H3).
 */
export async function readRequest(
  context: RequestContext,
  { operation, pathValues: fromPath, style }: OperationMatch,
  target: RequestTarget,
  maxBody: number,
): Promise<WireValues> {
  const { request: schema } = operations[operation]
  const { request } = context
  const bodiless = !hasBody(request.method)
  refuseInQuery(neverInQuery(operations[operation]), target.pairs)
  const bytes = bodiless ? undefined : await orCancelled(context, receive(context, maxBody))
  const sources: Sources = {
    ...(bytes && (await readBody(schema, request.headers['content-type'], bytes, rules[style]))),
    path: bind(schema, fromPath),
  }
  const all: Sources = { ...sources, query: bindAll(operation, target.pairs, merge(sources)) }
  refuseContradictions(schema, all)
  const values = merge(all)
  requireFields(schema, values)
  // All callers of the same target share this object, so it must not change.
  if (bodiless) target.request = Object.freeze(values)
  return values
}

/** The request that the same target made before. Never for a request with a body, which may add fields. */
export const cachedRequest = ({ request }: RequestContext, target: RequestTarget): WireValues | undefined =>
  hasBody(request.method) ? undefined : target.request

const hasBody = (method: string | undefined): boolean => method === 'POST' || method === 'DELETE'
const rules = { route: { plainText: 'ignored' }, reply: { plainText: 'json' } } as const

/** Binds the query. Reports missing fields together with invalid ones. */
function bindAll(operation: keyof typeof operations, pairs: readonly Pair[], others: WireValues): WireValues {
  const { request: schema } = operations[operation]
  try {
    return bind(schema, pairs)
  } catch (error) {
    if (!(error instanceof Fault) || error.details.fields === undefined) throw error
    const missing = missingBeside(schema, pairs, others)
    throw new Fault(error.fault, error.message, {
      ...error.details,
      fields: [...error.details.fields, ...missing],
    })
  }
}

function missingBeside(schema: Parameters<typeof requireFields>[0], pairs: readonly Pair[], others: WireValues) {
  const present = new Set(pairs.filter(([, value]) => value !== '').map(([name]) => name.toLowerCase()))
  const presentFields = Object.keys(schema.fields).filter((name) => present.has(name.toLowerCase()))
  try {
    requireFields(schema, { ...others, ...Object.fromEntries(presentFields.map((name) => [name, true])) })
    return []
  } catch (error) {
    if (error instanceof Fault) return error.details.fields ?? []
    throw error
  }
}

/**
 * Negotiates the format of the answer (F1, F5). Throws BadRequest for an invalid callback name (F2). Remembers the
 * latest result for each target.
 */
export function negotiateResponse(
  server: ServerContext,
  { request, logFields }: RequestContext,
  operation: OperationMatch,
  target: RequestTarget,
): ResponseNegotiation {
  const { method } = logFields
  // Routes that are named after the request ignore Accept (R2).
  const accept = operation.style === 'route' ? request.headers.accept : undefined
  const { negotiation: before, format, jsconfig } = target
  if (before !== undefined && before.method === method && before.accept === accept) return before
  const negotiated = negotiate({
    method,
    suffix: operation.format,
    format,
    accept,
    callback: target.callback,
    jsconfig,
    names: server.options.names,
  })
  const free =
    operation.operation === 'healthCheck' && operation.format === undefined && negotiated.callback === undefined
  const report = free ? reportOf(format, accept) : undefined
  const run = free && report === undefined && format === undefined && prefersRun(accept ?? '')
  const negotiation = { method, accept, negotiated, report, run }
  target.negotiation = negotiation
  return negotiation
}

const jsonpIsOff = (): Fault =>
  new Fault('Forbidden', 'JSONP is turned off: omit ?callback=, or set serve.jsonp to true in svc.yaml')

/** The report that `?format=` or `Accept` requests. */
function reportOf(format: string | undefined, accept: string | undefined): ReportName | undefined {
  if (format !== undefined) {
    const name = overHttp.format.find((name) => name === format.toLowerCase())
    // A known format decides; an unknown one falls through to Accept (F1).
    if (name !== undefined || formatNamed(format) !== undefined) return name
  }
  return accept === undefined ? undefined : overHttp.accept.find(({ type }) => type === preferred(accept))?.name
}

/** Whether the caller prefers the run document, in the version that this server writes. */
function prefersRun(accept: string): boolean {
  const best = bestOf(accept)
  return best !== undefined && [best.type, ...best.parameters].join(';') === runMediaType
}

/** The media type with the highest quality; the first one listed wins a tie. */
const preferred = (accept: string): string | undefined => bestOf(accept)?.type

function bestOf(accept: string): { readonly type: string; readonly parameters: readonly string[] } | undefined {
  const ranges = accept.split(',').map((range) => {
    const [type = '', ...all] = range.split(';').map((part) => part.trim().toLowerCase())
    const quality = all.find((parameter) => parameter.startsWith('q='))
    const parameters = all.filter((parameter) => parameter !== '' && parameter !== quality)
    return { type, parameters, quality: quality === undefined ? 1 : Number(quality.slice(2)) }
  })
  return ranges.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality)[0]
}

/** Handles one operation of the interface: reads the request, calls the Service, writes the answer or the fault. */
export async function operate(
  server: ServerContext,
  context: RequestContext,
  operation: OperationMatch,
  target: RequestTarget,
): Promise<HttpAnswer> {
  const row = operations[operation.operation]
  let style: FaultStyle = plainJson(server)
  let browses = false
  try {
    const negotiation = negotiateResponse(server, context, operation, target)
    if (negotiation.negotiated.callback !== undefined) {
      if (!server.options.jsonp) throw jsonpIsOff()
      refuseForeignCallback(context.request.headers, context.caller, server.origins)
    }
    style = { negotiated: negotiation.negotiated, response: row.response }
    if (readsHealth(operation.operation)) refuseCrossSite(context.request.headers, server.origins)

    const values =
      cachedRequest(context, target) ?? (await readRequest(context, operation, target, server.options.maxBody))
    const auth =
      operation.operation === 'authenticate' ? authCall(server, context, values, target, negotiation) : undefined
    browses = auth?.more.browser !== undefined
    const request = auth?.request ?? values
    const credential = credentialFor(server, context, operation, negotiation, auth)
    const facts: { latest: AnswerFacts | undefined } = { latest: undefined }
    const note = (latest: AnswerFacts): void => {
      facts.latest = latest
      context.logFields.runId = latest.runId
    }
    const call = { ...callOf(context, credential, note), ...auth?.more }
    const response = await orCancelled(context, methodOf(server, operation)(request, call))

    if (operation.operation === 'healthCheck') {
      return await healthAnswer(server, context, { request, response, negotiation, facts: facts.latest })
    }
    if (auth) return await authAnswer(server, context, auth, { request, response, negotiation })
    if (operation.operation === 'changePassword') {
      const cookies = renewedCookies(server, context, response as ChangePasswordResponse)
      return await dtoAnswer(row, response, negotiation.negotiated, cookies)
    }
    return await dtoAnswer(row, response, negotiation.negotiated)
  } catch (error) {
    const answer = await faultAnswer(server, context, error, style)
    return browses ? refusedPage(context, answer) : answer
  }
}

/** The Service's method for a request that the operation's own schema has validated. */
export const methodOf = (server: ServerContext, { operation }: OperationMatch) =>
  server.service[operation] as (request: unknown, call: Call) => Promise<unknown>
