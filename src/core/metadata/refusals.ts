import { type Dto, HealthCheckResponse, listsRoles, type OperationSpec } from '../protocol/index.ts'
import { type JsonSchema, refTo } from './json-schema.ts'
import { type Json, pointTo } from './open-json.ts'
import { rows } from './shapes.ts'

/** The statuses of refusals, and when each is given. */
const refusals: Readonly<Record<number, string>> = {
  400: 'The request cannot be understood: ResponseStatus.Errors names every field that is wrong or missing',
  401: 'Nobody is signed in, or what was presented is not valid or not valid any more',
  403: 'A role or a permission is missing, or a page of a site that is not listed asks',
  404: 'What the request names is not there',
  405: 'The verb is not allowed here',
  408: 'The request did not arrive in time',
  409: 'It would break a rule that always holds',
  413: 'The body is too large',
  415: 'The body is of a type, in a charset or compressed in a way that is not read',
  421: 'This server does not answer for the host name in the request',
  429: 'Too many failed attempts from this address: Retry-After says when to try again',
  431: 'The request line and headers are too large',
  500: 'A defect of the server: the log has it under the correlation id of this answer',
  501: 'This server does not offer the operation',
  503: 'The server is stopping or overloaded: Retry-After says when to try again',
  504: 'What the server depends on did not answer in time',
}

const forEveryone: readonly number[] = [400, 403, 405, 408, 421, 431, 500, 503, 504]
const withBody: readonly number[] = [413, 415]
const forCallers: readonly number[] = [401]
/** Of an operation that needs the store, at a server that runs without one. */
const withStore: readonly number[] = [501]

/** The statuses of an operation's refusals by that verb, in order. */
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

/** The statuses of the refusals of a page. */
export const pageRefusals: readonly number[] = [400, 405, 408, 421, 431, 500, 503]

/** O7: what a refusal of that operation looks like. */
export const refusalSchema = (response: Dto): 'RolesErrorResponse' | 'ErrorResponse' =>
  listsRoles(response) ? 'RolesErrorResponse' : 'ErrorResponse'

const refusalShapes = [...new Set(rows.map(({ response }) => refusalSchema(response)).concat('ErrorResponse'))]

const sharedRefusals = (schema: string): readonly (readonly [string, Json])[] => [
  ...Object.keys(refusals).map(
    (status) => [refusalName(schema, Number(status)), refusal(schema, Number(status))] as const,
  ),
  [refusalName(schema, 'default'), refusal(schema, 'default')],
  [`${schema}Batch`, batchRefusal(refTo(schema))],
]

/** The name of what a batch of that operation is refused or ended with. */
export const batchRefusalName = (response: Dto, unhealthy: boolean): string =>
  `${unhealthy ? 'UnhealthyResponse' : refusalSchema(response)}Batch`

const batchRefusal = (schema: JsonSchema): Json => ({
  description: 'The batch is refused, or ended at the request whose index is ResponseStatus.Meta.AutoBatchIndex',
  headers: batchHeaders,
  content: { 'application/json': { schema } },
})

/** The name of a shared refusal. */
export const refusalName = (schema: string, status: number | 'default'): string => `${schema}${status}`

/** Of every answer to a batch. */
export const batchHeaders: Json = {
  'X-Correlation-Id': pointTo('headers', 'CorrelationId'),
  'X-AutoBatch-Completed': pointTo('headers', 'AutoBatchCompleted'),
}

function refusal(schema: string, status: number | 'default'): Json {
  const later = status === 429 || status === 503
  return {
    description: status === 'default' ? 'Any other refusal' : refusals[status],
    headers: {
      'X-Correlation-Id': pointTo('headers', 'CorrelationId'),
      ...(later ? { 'Retry-After': pointTo('headers', 'RetryAfter') } : {}),
      ...(status === 405 ? { Allow: pointTo('headers', 'Allow') } : {}),
    },
    content: inFormats(refTo(schema), ['json', 'csv', 'jsonp']),
  }
}

/** A body as JSON, as CSV (F3), and wrapped into a callback (F2). */
export const inFormats = (json: JsonSchema, formats: readonly ('json' | 'csv' | 'jsonp')[]): Json => ({
  ...(formats.includes('json') ? { 'application/json': { schema: json } } : {}),
  ...(formats.includes('csv') ? { 'text/csv': { schema: { type: 'string' } } } : {}),
  ...(formats.includes('jsonp') ? { 'text/javascript': { schema: { type: 'string' } } } : {}),
})

/** All of them, by their names. */
export const refusalResponses = (): Json => ({
  ...Object.fromEntries(refusalShapes.flatMap(sharedRefusals)),
  [batchRefusalName(HealthCheckResponse, true)]: batchRefusal({
    anyOf: [refTo('UnhealthyResponse'), refTo('ErrorResponse')],
  }),
})
