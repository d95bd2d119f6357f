import { ErrorResponse, HealthCheckResponse, inStyle, listsRoles, type NameStyle } from '../protocol/index.ts'
import type { Described } from './described.ts'
import { dtoSchema, type JsonSchema, propertiesOf } from './json-schema.ts'
import type { Json } from './open-json.ts'
import { parameters } from './parameters.ts'
import { refusalResponses } from './refusals.ts'
import { securitySchemes } from './security.ts'
import { always, rows, shapes } from './shapes.ts'

/** The shared parts of the OpenAPI document. */
export function components(described: Described): Json {
  const found = [...shapes()]
  const named = found.map(([name, { schema, side }]) => [
    name,
    schema.kind === 'choice' ? { type: 'string', enum: schema.values } : dtoSchema(schema, side, described.names),
  ])
  return {
    schemas: { ...Object.fromEntries(named), ...derived(described.names) },
    responses: { ...refusalResponses(), NoBody: { description: 'As for GET, without a body' } },
    parameters,
    headers,
    securitySchemes: securitySchemes(described),
  }
}

/** Shapes of answers that are made of two DTOs. */
function derived(style: NameStyle): Json {
  const status = propertiesOf(ErrorResponse, 'answer', style)
  const responseStatus = inStyle('ResponseStatus', style)
  const rolesResponse = rows.find(({ response }) => listsRoles(response))?.response
  return {
    // H1: flat, so that who keeps nothing but the ResponseStatus still knows.
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
  CorrelationId: header('Names this request in the log and the audit', { type: 'string' }),
  RetryAfter: header('Seconds to wait before the next attempt', { type: 'integer', minimum: 0 }),
  Allow: header('The verbs that are allowed here', { type: 'string' }),
  Age: header('Seconds since the run behind the answer ended', { type: 'integer', minimum: 0 }),
  AutoBatchCompleted: header('How many requests of the batch were done', { type: 'integer', minimum: 0 }),
  Attachment: header('Of a CSV: a file to keep', { type: 'string' }),
  SetCookie: header('Of a sign-in and a sign-out: the cookies of the session', { type: 'string' }),
}
