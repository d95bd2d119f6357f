import { type Dto, inStyle, type NameStyle, type Schema, schemaOf } from '../protocol/index.ts'
import { always, type Side } from './shapes.ts'

/** JSON Schema of the 2020-12 dialect, as OpenAPI 3.1 uses it. */
export type JsonSchema = { readonly [keyword: string]: unknown }

export const refTo = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const writtenDate = '^/Date\\(-?\\d{1,16}-0000\\)/$'
const anyDate = '^(/Date\\(-?\\d{1,16}([+-]\\d{4})?\\)/|\\d{4}-\\d\\d-\\d\\d.*)$'
/** Durations without zero parts, but with at least one part (N4). */
const writtenDuration = '^-?P(?=[\\dT])(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+(\\.\\d{1,7})?S)?)?$'
const anyDuration = '^(-?P(?=[\\dT]).+|-?(\\d{1,8}\\.)?\\d{1,2}:\\d\\d:\\d\\d(\\.\\d{1,9})?)$'

/** The JSON Schema of a value. DTOs and enumerations are references to components. */
export function jsonSchema(schema: Schema, side: Side): JsonSchema {
  switch (schema.kind) {
    case 'text':
      return { type: 'string' }
    case 'flag':
      return { type: 'boolean' }
    case 'number':
      return { type: schema.integer ? 'integer' : 'number' }
    case 'date':
      return side === 'answer'
        ? { type: 'string', pattern: writtenDate, examples: ['/Date(1795262400000-0000)/'] }
        : { type: 'string', pattern: anyDate, examples: ['/Date(1795262400000-0000)/', '2026-11-21T12:00:00Z'] }
    case 'duration':
      return {
        type: 'string',
        pattern: side === 'answer' ? writtenDuration : anyDuration,
        examples: ['PT0.0151S', 'PT5M'],
      }
    case 'list':
      return { type: 'array', items: jsonSchema(schema.item, side) }
    case 'map':
      return { type: 'object', additionalProperties: { type: 'string' } }
    case 'choice':
    case 'dto':
      return refTo(schema.name)
  }
}

/**
 * The component of a DTO. For an answer, it requires the members that are always present; for a request, the route
 * decides.
 */
export function dtoSchema(dto: Dto, side: Side, style: NameStyle): JsonSchema {
  const names = side === 'answer' ? (always[dto.name] ?? []) : []
  return {
    type: 'object',
    properties: propertiesOf(dto, side, style),
    ...(names.length > 0 ? { required: names.map((name) => inStyle(name, style)) } : {}),
  }
}

/** The schema of a request body. It requires the required fields that the path does not set. */
export function bodySchema(dto: Dto, fromPath: readonly string[], style: NameStyle): JsonSchema {
  const names = Object.entries(dto.fields).flatMap(([name, field]) =>
    field.kind === 'required' && !fromPath.includes(name) ? [inStyle(name, style)] : [],
  )
  return names.length === 0 ? refTo(dto.name) : { type: 'object', allOf: [refTo(dto.name)], required: names }
}

export const propertiesOf = (dto: Dto, side: Side, style: NameStyle): JsonSchema =>
  Object.fromEntries(
    Object.entries(dto.fields).map(([name, field]) => [inStyle(name, style), jsonSchema(schemaOf(field), side)]),
  )

/** The schema of a path or query parameter. Lists may also be repeated; maps are `{key:value}` (N6). */
export function parameterSchema(schema: Schema): JsonSchema {
  switch (schema.kind) {
    case 'map':
    case 'dto':
      return { type: 'string', pattern: '^\\{.*\\}$', examples: ['{key:value}'] }
    default:
      return jsonSchema(schema, 'request')
  }
}
