import type { OperationSpec } from '../index.ts'
import { frame, headers, parameters, schemas, security, securitySchemes } from './components.ts'
import { canonicalParameters, canonicalPlace, jsonBody } from './requests.ts'
import { jsonRefusals, responses } from './responses.ts'
import { callerOf, type Described, type Json, rows } from './schemas.ts'

/**
 * The interface as OpenAPI 3.1, for generators of clients: each operation once, at its canonical path and verb, with
 * its name as the operationId, in JSON. All other paths and formats are in openapi-all.json.
 */
export function openapi(described: Described): Json {
  const paths: Record<string, Json> = {}
  for (const row of rows) {
    const { path, verb } = canonicalPlace(row)
    paths[path] = { ...paths[path], [verb.toLowerCase()]: operation(row, described) }
  }
  const document: Json = {
    ...frame(description),
    externalDocs: {
      url: '/openapi-all.json',
      description: 'Every path, verb and format, as OpenAPI: aliases, CSV, JSONP, batches, reports and pages',
    },
    tags: [{ name: 'Interface', description: 'The operations' }],
    paths,
    security: security(described),
  }
  const all: Readonly<Record<string, Json>> = {
    schemas: schemas(described),
    responses: jsonRefusals(described),
    parameters,
    headers,
  }
  return { ...document, components: { ...used(document, all), securitySchemes: securitySchemes(described) } }
}

const description = [
  'Each operation once, in JSON. Property names and enumeration values match in any letter case; enumeration values can',
  'also be sent as numbers, counted from 1. Unknown properties are ignored, and null means "not given". Dates are written',
  'as `/Date(<UTC milliseconds>-0000)/`, durations as in ISO 8601. Fields without a value are omitted. `x-svc-limits` has',
  'the limits on requests; those of one field stand beside it.',
].join(' ')

function operation(row: OperationSpec, described: Described): Json {
  const { path, verb: written } = canonicalPlace(row)
  const verb = written.toLowerCase()
  const place = { row, path, verbs: [written], format: 'json', kind: 'route' } as const
  return {
    operationId: row.name,
    summary: row.summary,
    description: `${callerOf(row)} may call it.`,
    tags: ['Interface'],
    parameters: canonicalParameters(place, verb),
    ...(verb === 'post' ? { requestBody: jsonBody(place, described) } : {}),
    responses: responses(place, verb, { ...described, jsonp: false }),
    ...(row.caller === 'anyone' ? {} : { security: security(described, row) }),
  }
}

const reference = /"\$ref":"#\/components\/(\w+)\/([\w.-]+)"/g

/** The components that a document refers to, directly or through others: generators make code of each that exists. */
function used(document: Json, all: Readonly<Record<string, Json>>): Json {
  const components: Record<string, Record<string, unknown>> = {}
  const visit = (part: unknown): void => {
    for (const [, kind = '', name = ''] of JSON.stringify(part).matchAll(reference)) {
      const component = all[kind]?.[name]
      if (component === undefined || components[kind]?.[name] !== undefined) continue
      components[kind] = { ...components[kind], [name]: component }
      visit(component)
    }
  }
  visit(document)
  return components
}
