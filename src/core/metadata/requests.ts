import { type Field, longestBatch, type OperationSpec, operations, schemaOf } from '../protocol/index.ts'
import type { Described } from './described.ts'
import { bodySchema, parameterSchema } from './json-schema.ts'
import { type Json, pointTo } from './open-json.ts'
import { isHealth, type Place } from './places.ts'
import { parametersOf } from './shapes.ts'

/** The parameters of an operation by that verb, beside those of every request and of the path. */
export function parameters(place: Place, verb: string, described: Described): readonly Json[] {
  const { row, kind, format } = place
  const given = parametersOf(place.path)
  const fields = Object.entries(row.request.fields).filter(
    ([name]) => !given.includes(name) && !row.neverInQuery.includes(name),
  )
  return [
    ...(verb === 'get' ? fields.map(([name, field]) => queryParameter(name, field)) : []),
    ...(format === undefined && kind !== 'batch' ? [formatParameter(row, described)] : []),
    ...(verb === 'get' && described.jsonp && format !== 'csv' ? [pointTo('parameters', 'callback')] : []),
    ...(row === operations.authenticate && verb === 'post' ? [pointTo('parameters', 'continue')] : []),
    ...(verb === 'post' ? [pointTo('parameters', 'methodOverride')] : []),
    ...(isHealth(row) ? [pointTo('parameters', 'fresh')] : []),
  ]
}

/** Of every request. */
export const common: readonly Json[] = [pointTo('parameters', 'correlationId'), pointTo('parameters', 'traceparent')]

const queryParameter = (name: string, field: Field): Json => ({
  name,
  in: 'query',
  ...(field.kind === 'required' ? { required: true } : {}),
  schema: parameterSchema(schemaOf(field)),
})

const formatParameter = (row: OperationSpec, { reports }: Described): Json => ({
  name: 'format',
  in: 'query',
  description: 'The form of the answer; what is unknown is passed over',
  schema: {
    type: 'string',
    examples: [
      'json',
      'csv',
      ...(isHealth(row) ? reports.flatMap(({ by, name }) => (by === 'format' ? [name] : [])) : []),
    ],
  },
})

export function requestBody({ path, row, kind }: Place, { names }: Described): Json {
  const schema = bodySchema(row.request, parametersOf(path), names)
  if (kind === 'batch') {
    const array = { type: 'array', items: schema, maxItems: longestBatch }
    return { content: { 'application/json': { schema: array }, 'text/plain': { schema: array } } }
  }
  return {
    content: {
      'application/json': { schema },
      'application/x-www-form-urlencoded': { schema },
      'multipart/form-data': { schema },
      'text/csv': { schema: { type: 'string' } },
      // JSON from clients that do not say so.
      ...(kind === 'reply' ? { 'text/plain': { schema: { type: 'string' } } } : {}),
    },
  }
}
