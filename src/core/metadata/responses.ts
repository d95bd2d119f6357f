import { longestBatch, type OperationSpec, operations } from '../protocol/index.ts'
import type { Described } from './described.ts'
import { type JsonSchema, refTo } from './json-schema.ts'
import { type Json, pointTo } from './open-json.ts'
import { essence, type Format, isHealth, operationId, type Place } from './places.ts'
import { batchHeaders, batchRefusalName, inFormats, refusalName, refusalSchema, refusalsOf } from './refusals.ts'

/** What an operation is answered with by that verb, and refused with. */
export function responses(place: Place, verb: string, described: Described): Json {
  const { row, format } = place
  const formats = formatsOf(format, verb, described)
  const told = isHealth(row) && format === undefined && place.kind !== 'batch' ? reportsFor(place, described) : []
  return {
    200: {
      description: isHealth(row) ? 'The answer; unhealthy only where SuppressErrorCodes is true' : 'Done',
      headers: {
        'X-Correlation-Id': pointTo('headers', 'CorrelationId'),
        ...(formats.includes('csv') ? { 'Content-Disposition': pointTo('headers', 'Attachment') } : {}),
        ...(isHealth(row) ? { Age: pointTo('headers', 'Age') } : {}),
        ...(row === operations.authenticate ? { 'Set-Cookie': pointTo('headers', 'SetCookie') } : {}),
      },
      content: withReports(inFormats(refTo(row.response.name), formats), told),
    },
    ...refused(row, refusalsOf(row, verb)),
    ...(isHealth(row) ? { 503: unhealthy(formats, told) } : {}),
  }
}

const refused = ({ response }: OperationSpec, statuses: readonly number[]): Json =>
  Object.fromEntries(
    [...statuses, 'default' as const].map((status) => [
      status,
      pointTo('responses', refusalName(refusalSchema(response), status)),
    ]),
  )

const formatsOf = (
  format: Format | undefined,
  verb: string,
  { jsonp }: Described,
): readonly ('json' | 'csv' | 'jsonp')[] =>
  format === 'csv'
    ? ['csv']
    : [
        'json',
        ...(format === undefined ? (['csv'] as const) : []),
        ...(verb === 'get' && jsonp ? (['jsonp'] as const) : []),
      ]

/** H1: the whole answer with a ResponseStatus behind it, or the refusal of a server that is stopping. */
const unhealthy = (formats: readonly ('json' | 'csv' | 'jsonp')[], told: Described['reports']): Json => ({
  description: 'Unhealthy: what failed and why; or the server is stopping or overloaded',
  headers: {
    'X-Correlation-Id': pointTo('headers', 'CorrelationId'),
    'Retry-After': pointTo('headers', 'RetryAfter'),
    Age: pointTo('headers', 'Age'),
  },
  content: withReports(
    inFormats({ anyOf: [refTo('UnhealthyResponse'), refTo('ErrorResponse')] }, formats),
    told.filter(({ contentType }) => essence(contentType) !== 'application/json'),
  ),
})

/** Routes that are named after the request do not look at Accept (R2). */
const reportsFor = ({ kind }: Place, { reports }: Described): Described['reports'] =>
  reports.filter(({ by }) => by === 'format' || kind === 'route')

/** F5: further media types; a report that is JSON as well is told from the answer by its one property. */
function withReports(content: Json, told: Described['reports']): Json {
  const all: Record<string, unknown> = { ...content }
  for (const { name, contentType } of told) {
    const type = essence(contentType)
    const own: JsonSchema = type.endsWith('json')
      ? {
          type: 'object',
          ...(type === 'application/json' ? { required: [name], properties: { [name]: { type: 'object' } } } : {}),
        }
      : { type: 'string' }
    const before = all[type] as { readonly schema: JsonSchema } | undefined
    all[type] = { schema: before && own.type === 'object' ? { anyOf: [before.schema, own] } : own }
  }
  return all
}

/** R3: an array, or what the first request that failed would have been answered alone. */
export function batchResponses({ row }: Place): Json {
  return {
    200: {
      description: 'The answers, in the order of the requests',
      headers: batchHeaders,
      content: {
        'application/json': { schema: { type: 'array', items: refTo(row.response.name), maxItems: longestBatch } },
      },
    },
    ...Object.fromEntries(
      [...refusalsOf(row, 'post'), 'default'].map((status) => [
        status,
        pointTo('responses', batchRefusalName(row.response, isHealth(row) && status === 503)),
      ]),
    ),
  }
}

/** R5 */
export const options = (path: string, tag: string): Json => ({
  operationId: operationId('options', path),
  summary: 'Which verbs are allowed',
  tags: [tag],
  responses: { 200: allowed, default: pointTo('responses', refusalName('ErrorResponse', 'default')) },
})
const allowed: Json = { description: 'The verbs, and no body', headers: { Allow: pointTo('headers', 'Allow') } }

/** R4: the same without bodies. */
export function withoutBody(get: Json, path: string): Json {
  const answers = Object.keys(get['responses'] as Json).map((status) => [status, pointTo('responses', 'NoBody')])
  return { ...get, operationId: operationId('head', path), responses: Object.fromEntries(answers) }
}
