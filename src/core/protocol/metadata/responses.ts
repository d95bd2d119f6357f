import { type Dto, HealthCheckResponse, listsRoles, maxBatch, type OperationSpec, operations } from '../index.ts'
import { essence, isHealth, type PathFormat, pathId, type RequestPlace } from './requests.ts'
import { type Described, type Json, type JsonSchema, pointTo, refTo, rows } from './schemas.ts'

/** The forms of a body. */
export type BodyFormat = PathFormat | 'jsonp'

/** Refusal statuses and when each occurs. */
const refusals: Readonly<Record<number, string>> = {
  400: 'The request is invalid: ResponseStatus.Errors names every invalid or missing field',
  401: 'The request carries no credential, or one that is invalid or has expired',
  403: 'A role or a permission is missing, or the request comes from a page of an origin that is not allowed',
  404: 'Something that the request names does not exist',
  405: 'The verb is not allowed here',
  406: 'The request accepts only a format that is not offered',
  408: 'The request did not arrive in time',
  409: 'The request conflicts with existing data or with a rule of the server',
  413: 'The body is too large',
  415: 'The media type, the charset or the compression of the body is not supported',
  421: 'This server does not accept requests for the host name in the request',
  429: 'Too many failed attempts from this address: Retry-After says when to try again',
  431: 'The request line and headers are too large',
  500: 'A defect of the server: find it in the log by the correlation id of this answer',
  501: 'This server does not offer the operation',
  503: 'The server is stopping or overloaded: Retry-After says when to try again',
  504: 'A dependency of the server did not answer in time',
}

const forEveryone: readonly number[] = [400, 403, 405, 406, 408, 421, 431, 500, 503, 504]
const withBody: readonly number[] = [413, 415]
const forCallers: readonly number[] = [401]
/** The refusal of operations that need the store, on a server without one. */
const withStore: readonly number[] = [501]

/** The refusal statuses of an operation for a verb, in order. */
export function refusalsOf(row: OperationSpec, verb: string): readonly number[] {
  const all = [
    ...forEveryone,
    ...row.refusals,
    ...(verb === 'post' || verb === 'delete' ? withBody : []),
    ...(row.caller === 'anyone' ? [] : forCallers),
    ...(row.response === HealthCheckResponse ? [] : withStore),
  ]
  return [...new Set(all)].sort((a, b) => a - b)
}

/** The refusal statuses of a page. */
export const pageRefusals: readonly number[] = [400, 405, 408, 421, 431, 500, 503]

/** The schema of an operation's refusals (O7). */
export const refusalSchema = (response: Dto): 'RolesErrorResponse' | 'ErrorResponse' =>
  listsRoles(response) ? 'RolesErrorResponse' : 'ErrorResponse'

const refusalShapes = [...new Set(rows.map(({ response }) => refusalSchema(response)).concat('ErrorResponse'))]

const statuses: readonly number[] = Object.keys(refusals).map(Number)

/** All refusals in JSON, by name. */
export const jsonRefusals = ({ basic }: Described): Json =>
  Object.fromEntries(
    refusalShapes.flatMap((schema) =>
      statuses.map((status) => [refusalName(schema, status), refusal(schema, status, ['json'], basic)]),
    ),
  )

/** The name of the answer that refuses or ends a batch of the operation. */
export const batchRefusalName = (response: Dto, unhealthy: boolean): string =>
  `${unhealthy ? 'UnhealthyResponse' : refusalSchema(response)}Batch`

const batchRefusal = (schema: JsonSchema): Json => ({
  description: 'The batch was refused, or stopped at the request whose index is ResponseStatus.Meta.AutoBatchIndex',
  headers: batchHeaders,
  content: inFormats(schema, ['json', 'csv', 'jsv']),
})

/** The name of a shared refusal. */
export const refusalName = (schema: string, status: number | 'default'): string => `${schema}${status}`

/** Headers of every answer to a batch. */
export const batchHeaders: Json = {
  'X-Correlation-Id': pointTo('headers', 'CorrelationId'),
  'X-AutoBatch-Completed': pointTo('headers', 'AutoBatchCompleted'),
}

function refusal(schema: string, status: number | 'default', formats: readonly BodyFormat[], basic: boolean): Json {
  const later = status === 429 || status === 503
  return {
    description: status === 'default' ? 'Any other error' : refusals[status],
    headers: {
      'X-Correlation-Id': pointTo('headers', 'CorrelationId'),
      ...(later ? { 'Retry-After': pointTo('headers', 'RetryAfter') } : {}),
      ...(status === 405 ? { Allow: pointTo('headers', 'Allow') } : {}),
      ...(status === 401 && basic ? { 'WWW-Authenticate': pointTo('headers', 'Challenge') } : {}),
    },
    content: inFormats(refTo(schema), formats),
  }
}

/** A body as JSON, as CSV (F3), as JSV (F6), and wrapped in a callback (F2). */
export const inFormats = (json: JsonSchema, formats: readonly BodyFormat[]): Json => ({
  ...(formats.includes('json') ? { 'application/json': { schema: json } } : {}),
  ...(formats.includes('csv') ? { 'text/csv': { schema: { type: 'string' } } } : {}),
  ...(formats.includes('jsv') ? { 'application/jsv': { schema: { type: 'string' } } } : {}),
  ...(formats.includes('jsonp') ? { 'text/javascript': { schema: { type: 'string' } } } : {}),
})

/** All shared refusals by name. */
export const refusalResponses = ({ basic }: Described): Json => ({
  ...Object.fromEntries(
    refusalShapes.flatMap((schema) => [
      ...[...statuses, 'default' as const].map((status) => [
        refusalName(schema, status),
        refusal(schema, status, ['json', 'csv', 'jsv', 'jsonp'], basic),
      ]),
      [`${schema}Batch`, batchRefusal(refTo(schema))],
    ]),
  ),
  [batchRefusalName(HealthCheckResponse, true)]: batchRefusal({
    anyOf: [refTo('UnhealthyResponse'), refTo('ErrorResponse')],
  }),
})

/** The answers and refusals of an operation for a verb. */
export function responses(
  place: Pick<RequestPlace, 'row' | 'format' | 'kind'>,
  verb: string,
  described: Described,
): Json {
  const { row, format } = place
  const formats = formatsOf(format, verb, described)
  const reports = isHealth(row) && format === undefined && place.kind !== 'batch' ? reportsFor(place, described) : []
  return {
    200: {
      description: isHealth(row) ? 'The answer; unhealthy only when SuppressErrorCodes is true' : 'Success',
      headers: {
        'X-Correlation-Id': pointTo('headers', 'CorrelationId'),
        ...(formats.includes('csv') ? { 'Content-Disposition': pointTo('headers', 'Attachment') } : {}),
        ...(isHealth(row) ? { Age: pointTo('headers', 'Age') } : {}),
        ...(row === operations.authenticate ? { 'Set-Cookie': pointTo('headers', 'SetCookie') } : {}),
      },
      content: withReports(inFormats(refTo(row.response.name), formats), reports),
    },
    ...refused(row, refusalsOf(row, verb)),
    ...(isHealth(row) ? { 503: unhealthy(formats, reports) } : {}),
  }
}

const refused = ({ response }: OperationSpec, statuses: readonly number[]): Json =>
  Object.fromEntries(
    statuses.map((status) => [status, pointTo('responses', refusalName(refusalSchema(response), status))]),
  )

const formatsOf = (format: PathFormat | undefined, verb: string, { jsonp }: Described): readonly BodyFormat[] =>
  format === 'csv' || format === 'jsv'
    ? [format]
    : [
        'json',
        ...(format === undefined ? (['csv', 'jsv'] as const) : []),
        ...(verb === 'get' && jsonp ? (['jsonp'] as const) : []),
      ]

/** The whole answer followed by a ResponseStatus, or the refusal of a stopping server (H1). */
const unhealthy = (formats: readonly BodyFormat[], reports: Described['reports']): Json => ({
  description: 'Unhealthy: what failed and why; or the server is stopping or overloaded',
  headers: {
    'X-Correlation-Id': pointTo('headers', 'CorrelationId'),
    'Retry-After': pointTo('headers', 'RetryAfterRefusal'),
    Age: pointTo('headers', 'AgeOfRun'),
  },
  content: withReports(
    inFormats({ anyOf: [refTo('UnhealthyResponse'), refTo('ErrorResponse')] }, formats),
    reports.filter(({ contentType }) => essence(contentType) !== 'application/json'),
  ),
})

/** Routes that are named after the request ignore Accept (R2). */
const reportsFor = ({ kind }: Pick<RequestPlace, 'kind'>, { reports }: Described): Described['reports'] =>
  reports.filter(({ by }) => by === 'format' || kind === 'route')

/**
 * Adds further media types (F5). A report that is also JSON is distinguished from the answer by its single property.
 */
function withReports(content: Json, reports: Described['reports']): Json {
  const all: Record<string, unknown> = { ...content }
  for (const { name, contentType } of reports) {
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

/** An array of answers, or the single answer of the first request that failed (R3). */
export function batchResponses({ row, format = 'json' }: RequestPlace): Json {
  return {
    200: {
      description: 'The answers, in the order of the requests',
      headers: batchHeaders,
      content: inFormats({ type: 'array', items: refTo(row.response.name), maxItems: maxBatch }, [format]),
    },
    ...Object.fromEntries(
      refusalsOf(row, 'post').map((status) => [
        status,
        pointTo('responses', batchRefusalName(row.response, isHealth(row) && status === 503)),
      ]),
    ),
  }
}

/** The answer to OPTIONS (R5). */
export const options = (path: string, tag: string): Json => ({
  operationId: pathId('options', path),
  summary: 'List the allowed verbs',
  tags: [tag],
  responses: { 200: allowed, default: pointTo('responses', refusalName('ErrorResponse', 'default')) },
})
const allowed: Json = {
  description: 'The allowed verbs, without a body',
  headers: { Allow: pointTo('headers', 'Allow') },
}

/** The answers to HEAD: those to GET without bodies (R4). */
export function withoutBody(get: Json, path: string): Json {
  const answers = Object.keys(get['responses'] as Json).map((status) => [status, pointTo('responses', 'NoBody')])
  return { ...get, operationId: pathId('head', path), responses: Object.fromEntries(answers) }
}
