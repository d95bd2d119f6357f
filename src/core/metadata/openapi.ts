import {
  ErrorResponse,
  type Field,
  HealthCheckResponse,
  inStyle,
  listsRoles,
  maxBatch,
  type NameStyle,
  type OperationSpec,
  schemaOf,
} from '../protocol/index.ts'
import {
  common,
  essence,
  operationId,
  parameters as parametersAt,
  places,
  type RequestPlace,
  requestBody,
} from './requests.ts'
import {
  batchResponses,
  options,
  pageRefusals,
  refusalName,
  refusalResponses,
  responses,
  withoutBody,
} from './responses.ts'
import {
  always,
  callerOf,
  type Described,
  dtoSchema,
  interfaceTitle,
  interfaceVersion,
  type Json,
  type JsonSchema,
  parameterSchema,
  parametersOf,
  pointTo,
  propertiesOf,
  rows,
  shapes,
} from './schemas.ts'

/** Parameters that are not fields of a request. */
export const parameters: Json = {
  correlationId: {
    name: 'X-Correlation-Id',
    in: 'header',
    description:
      'An id for this request, chosen by the caller. Default: the trace id of traceparent, otherwise a new id',
    schema: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$' },
  },
  traceparent: {
    name: 'traceparent',
    in: 'header',
    description: 'W3C Trace Context. Its trace id identifies the request when X-Correlation-Id is absent',
    schema: { type: 'string' },
  },
  fresh: {
    name: 'Cache-Control',
    in: 'header',
    description: 'no-cache requests a run that begins after this request',
    schema: { type: 'string' },
  },
  methodOverride: {
    name: 'X-Http-Method-Override',
    in: 'header',
    description: 'The verb that replaces POST',
    schema: { type: 'string' },
  },
  callback: {
    name: 'callback',
    in: 'query',
    description: 'JSONP: the function that receives the JSON',
    schema: { type: 'string', pattern: '^([A-Za-z_$][A-Za-z0-9_$]{0,49})?(\\.[A-Za-z_$][A-Za-z0-9_$]{0,49})*$' },
  },
  continue: {
    name: 'continue',
    in: 'query',
    description: 'The address to continue at after sign-in, on this server',
    schema: { type: 'string' },
  },
}

const schemes: Json = {
  bearer: { type: 'http', scheme: 'bearer', description: 'BearerToken of a sign-in, or a key' },
  session: { type: 'apiKey', in: 'header', name: 'X-ss-id', description: 'SessionId of a sign-in' },
  rememberedSession: {
    type: 'apiKey',
    in: 'header',
    name: 'X-ss-pid',
    description: 'SessionId of a sign-in with RememberMe, together with X-ss-opt: perm',
  },
  sessionKind: { type: 'apiKey', in: 'header', name: 'X-ss-opt', description: 'perm, together with X-ss-pid' },
  sessionCookie: { type: 'apiKey', in: 'cookie', name: 'ss-id', description: 'Set by a sign-in' },
  rememberedCookie: {
    type: 'apiKey',
    in: 'cookie',
    name: 'ss-pid',
    description: 'Set by a sign-in with RememberMe, together with ss-opt=perm',
  },
  kindCookie: { type: 'apiKey', in: 'cookie', name: 'ss-opt', description: 'perm, together with ss-pid' },
  tokenCookie: { type: 'apiKey', in: 'cookie', name: 'ss-tok', description: 'A BearerToken as a cookie' },
}

export const securitySchemes = ({ basic }: Described): Json => ({
  ...schemes,
  ...(basic
    ? { basic: { type: 'http', scheme: 'basic', description: 'Valid for one request; starts no session' } }
    : {}),
})

/**
 * The alternative credentials. The names in the lists are the required roles. Without a row, no credential is
 * required.
 */
export function security({ basic }: Described, row?: OperationSpec): readonly Json[] {
  const caller = row?.caller ?? 'anyone'
  const roles = caller === 'Admin' ? [caller] : []
  const ways = [
    ['bearer'],
    ['session'],
    ['rememberedSession', 'sessionKind'],
    ['sessionCookie'],
    ['rememberedCookie', 'kindCookie'],
    ['tokenCookie'],
    ...(basic ? [['basic']] : []),
  ].map((names) => Object.fromEntries(names.map((name) => [name, roles])))
  return caller === 'anyone' ? [{}, ...ways] : ways
}

/** The shared parts of the OpenAPI document. */
export function components(described: Described): Json {
  const all = [...shapes()]
  const schemas = all.map(([name, { schema, side }]) => [
    name,
    schema.kind === 'choice' ? { type: 'string', enum: schema.values } : dtoSchema(schema, side, described.names),
  ])
  return {
    schemas: { ...Object.fromEntries(schemas), ...derived(described.names) },
    responses: { ...refusalResponses(), NoBody: { description: 'As for GET, without a body' } },
    parameters,
    headers,
    securitySchemes: securitySchemes(described),
  }
}

/** Schemas that combine two DTOs. */
function derived(style: NameStyle): Json {
  const status = propertiesOf(ErrorResponse, 'answer', style)
  const responseStatus = inStyle('ResponseStatus', style)
  const rolesResponse = rows.find(({ response }) => listsRoles(response))?.response
  return {
    // Flat, so that clients that read only the ResponseStatus still see the failure (H1).
    UnhealthyResponse: {
      type: 'object',
      properties: { ...propertiesOf(HealthCheckResponse, 'answer', style), ...status },
      required: [...(always[HealthCheckResponse.name] ?? []).map((name) => inStyle(name, style)), responseStatus],
    },
    ...(rolesResponse
      ? {
          RolesErrorResponse: {
            type: 'object',
            properties: propertiesOf(rolesResponse, 'answer', style),
            required: [responseStatus],
          },
        }
      : {}),
  }
}

const header = (description: string, schema: JsonSchema): Json => ({ description, schema })

const headers: Json = {
  CorrelationId: header('Identifies this request in the log and the audit', { type: 'string' }),
  RetryAfter: header('Seconds to wait before the next attempt', { type: 'integer', minimum: 0 }),
  Allow: header('The verbs allowed here', { type: 'string' }),
  Age: header('Seconds since the run behind the answer ended', { type: 'integer', minimum: 0 }),
  AutoBatchCompleted: header('The number of completed requests of the batch', { type: 'integer', minimum: 0 }),
  Attachment: header('For CSV: sends the answer as a download', { type: 'string' }),
  SetCookie: header('For a sign-in or a sign-out: the session cookies', { type: 'string' }),
}

/** The interface as OpenAPI 3.1: every path, verb, parameter, body and answer, derived from the table of operations. */
export function openapi(described: Described): Json {
  return {
    openapi: '3.1.1',
    info: {
      title: interfaceTitle,
      version: interfaceVersion,
      description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    servers: [{ url: described.base }],
    tags: [
      { name: 'Interface', description: 'The operations, at their own paths' },
      { name: 'By name', description: 'The same operations, at paths named after the request' },
      { name: 'Batches', description: `Up to ${maxBatch} requests of one kind at once` },
      { name: 'Server', description: 'Pages about the server itself' },
    ],
    paths: {
      ...Object.fromEntries(places().map((place) => [place.path, pathItem(place, described)])),
      ...Object.fromEntries(described.pages.flatMap((page) => page.paths.map((path) => [path, pageItem(path, page)]))),
    },
    components: components(described),
    security: security(described),
  }
}

const description = [
  'Property names and enumeration values match in any letter case. Enumeration values can also be sent as numbers, counted',
  'from 1. Unknown properties are ignored. Letter case, a trailing slash and doubled slashes in a path do not matter.',
  'Fields can be sent in the body, the path, the query or a form. If a field occurs in several of them, the form takes',
  'precedence, then the query, the path and the body. A path suffix, `?format=` or Accept selects the format, in this',
  'order; the default is JSON. Dates are written as `/Date(<UTC milliseconds>-0000)/`, durations as in ISO 8601. Fields',
  'without a value are omitted. HEAD works wherever GET does, and changes nothing.',
].join(' ')

const tags = { route: 'Interface', reply: 'By name', batch: 'Batches' } as const

function pathItem(place: RequestPlace, described: Described): Json {
  const verbs = [...new Set([...place.verbs, 'OPTIONS'])].map((verb) => verb.toLowerCase())
  const pathParameters = parametersOf(place.path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: parameterSchema(schemaOf(fieldNamed(place.row, name))),
  }))
  return {
    parameters: [...pathParameters, ...common],
    ...Object.fromEntries(
      verbs.map((verb) => [
        verb,
        verb === 'options' ? options(place.path, tags[place.kind]) : operation(place, verb, described),
      ]),
    ),
    ...(verbs.includes('get') ? { head: withoutBody(operation(place, 'get', described), place.path) } : {}),
  }
}

function fieldNamed({ request }: OperationSpec, name: string): Field {
  const field = request.fields[name]
  if (field === undefined) throw new Error(`${request.name} has no field ${name}, which a path of it gives`)
  return field
}

function operation(place: RequestPlace, verb: string, described: Described): Json {
  const { row, kind } = place
  return {
    operationId: operationId(verb, place.path),
    summary: row.summary,
    description: `${callerOf(row)} may call it.`,
    tags: [tags[kind]],
    parameters: parametersAt(place, verb, described),
    ...(verb === 'post' ? { requestBody: requestBody(place, described) } : {}),
    responses: kind === 'batch' ? batchResponses(place) : responses(place, verb, described),
    ...(row.caller === 'anyone' ? {} : { security: security(described, row) }),
  }
}

function pageItem(path: string, { summary, contentType }: Described['pages'][number]): Json {
  const name = path === '/' ? '/statusPage' : path
  const json = essence(contentType) === 'application/json'
  const get: Json = {
    operationId: operationId('get', name),
    summary,
    tags: ['Server'],
    responses: {
      200: {
        description: 'The page',
        headers: { 'X-Correlation-Id': pointTo('headers', 'CorrelationId') },
        content: { [essence(contentType)]: { schema: json ? { type: 'object' } : { type: 'string' } } },
      },
      ...Object.fromEntries(
        [...pageRefusals, 'default' as const].map((status) => [
          status,
          pointTo('responses', refusalName('ErrorResponse', status)),
        ]),
      ),
    },
  }
  return {
    parameters: common,
    get,
    head: withoutBody(get, name),
    options: options(name, 'Server'),
  }
}
