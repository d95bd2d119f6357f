import {
  ErrorResponse,
  HealthCheckResponse,
  inStyle,
  limits,
  listsRoles,
  type NameStyle,
  type OperationSpec,
} from '../index.ts'
import { requestDtoSchema } from './constraints.ts'
import {
  always,
  type Described,
  dtoSchema,
  interfaceTitle,
  interfaceVersion,
  type Json,
  type JsonSchema,
  propertiesOf,
  rows,
  shapes,
} from './schemas.ts'

/** The common parts of both OpenAPI documents: openapi.json and openapi-all.json. */

const identifier = '[A-Za-z_$][A-Za-z0-9_$]{0,49}'

/** Parameters that are not fields of a request. */
export const parameters: Json = {
  correlationId: {
    name: 'X-Correlation-Id',
    in: 'header',
    description:
      'An id for this request, chosen by the caller: letters, digits and ._:- (at most 128), beginning with a letter or digit. Without such an id: the trace id of traceparent, otherwise a new id',
    // Any other text is ignored (H6), so the pattern is that of the header of the answer.
    schema: { type: 'string' },
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
    description:
      'no-cache requests a run that begins after this request. Without it, the answer may contain results of the schedule and of other callers, as old as Age says. max-stale requests the latest results of the schedule, if it repeats all of them, instead of a run',
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
    schema: { type: 'string', pattern: `^(?:${identifier}(?:\\.${identifier})*)?$` },
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

const header = (description: string, schema: JsonSchema, required = true): Json => ({ description, required, schema })

const seconds: JsonSchema = { type: 'integer', minimum: 0 }

export const headers: Json = {
  CorrelationId: header('Identifies this request in the log and the audit', {
    type: 'string',
    pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$',
  }),
  RetryAfter: header('Seconds to wait before the next attempt', seconds),
  RetryAfterRefusal: header('For a refusal: seconds to wait before the next attempt', seconds, false),
  Allow: header('The verbs allowed here', { type: 'string', pattern: '^[A-Z]+(?:, [A-Z]+)*$' }),
  Age: header('The age of the oldest result in the answer, in seconds', seconds),
  AgeOfRun: header('For a health answer: the age of its oldest result, in seconds', seconds, false),
  Challenge: header('HTTP Basic, for clients that send credentials on demand', { type: 'string' }, false),
  AutoBatchCompleted: header('The number of completed requests of the batch', seconds, false),
  Attachment: header('For CSV: sends the answer as a download', { type: 'string' }, false),
  SetCookie: header('For a sign-in or a sign-out: the session cookies', { type: 'string' }, false),
}

/** Every DTO and enumeration by name. */
export const schemas = ({ names }: Described): Json => ({
  ...Object.fromEntries(
    [...shapes()].map(([name, { schema, side }]) => {
      if (schema.kind === 'choice') return [name, { type: 'string', enum: schema.values }]
      return [name, side === 'request' ? requestDtoSchema(schema, names) : dtoSchema(schema, names)]
    }),
  ),
  ...derived(names),
})

/** Schemas that combine two DTOs. */
function derived(style: NameStyle): Json {
  const status = propertiesOf(ErrorResponse, style)
  const responseStatus = inStyle('ResponseStatus', style)
  const rolesResponse = rows.find(({ response }) => listsRoles(response))?.response
  const required = [...(always[HealthCheckResponse.name] ?? []).map((name) => inStyle(name, style)), responseStatus]
  return {
    // Flat, so that clients that read only the ResponseStatus still see the failure (H1).
    UnhealthyResponse: {
      type: 'object',
      properties: { ...propertiesOf(HealthCheckResponse, style), ...status },
      required,
    },
    ...(rolesResponse
      ? {
          RolesErrorResponse: {
            type: 'object',
            properties: propertiesOf(rolesResponse, style),
            required: [responseStatus],
          },
        }
      : {}),
  }
}

/** The members of a document besides its paths, tags and components. Its server is the one that it was loaded from. */
export const frame = (description: string): Json => ({
  openapi: '3.1.1',
  info: {
    title: interfaceTitle,
    version: interfaceVersion,
    description,
    license: { name: 'MIT', identifier: 'MIT' },
  },
  jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
  servers: [{ url: '/' }],
  // Those that no keyword of JSON Schema expresses are here as well.
  'x-svc-limits': limits,
})
