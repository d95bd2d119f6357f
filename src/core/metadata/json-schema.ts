import { type Dto, inStyle, type NameStyle, type Schema, schemaOf } from '../protocol/index.ts'
import { always, type Side } from './shapes.ts'

/** JSON Schema of the 2020-12 dialect, as OpenAPI 3.1 uses it. */
export type JsonSchema = { readonly [keyword: string]: unknown }

export const refTo = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })

const writtenDate = '^/Date\\(-?\\d{1,16}-0000\\)/$'
const anyDate = '^(/Date\\(-?\\d{1,16}([+-]\\d{4})?\\)/|\\d{4}-\\d\\d-\\d\\d.*)$'
/** Parts that are zero are left out, and at least one is there (N4). */
const writtenDuration = '^-?P(?=[\\dT])(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+(\\.\\d{1,7})?S)?)?$'
const anyDuration = '^(-?P(?=[\\dT]).+|-?(\\d{1,8}\\.)?\\d{1,2}:\\d\\d:\\d\\d(\\.\\d{1,9})?)$'

/** How a value looks in JSON. DTOs and enumerations are components, and referred to. */
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

/** The component of a DTO; of an answer, with what it always holds. What a request must hold depends on its route. */
export function dtoSchema(dto: Dto, side: Side, style: NameStyle): JsonSchema {
  const names = side === 'answer' ? (always[dto.name] ?? []) : []
  return {
    type: 'object',
    properties: propertiesOf(dto, side, style),
    ...(names.length > 0 ? { required: names.map((name) => inStyle(name, style)) } : {}),
  }
}

/** The body of a request: what is required and not given by the path must be in it. */
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

/** How a value looks as a parameter of a path or query: lists may also be repeated, maps are `{key:value}` (N6). */
export function parameterSchema(schema: Schema): JsonSchema {
  switch (schema.kind) {
    case 'map':
    case 'dto':
      return { type: 'string', pattern: '^\\{.*\\}$', examples: ['{key:value}'] }
    default:
      return jsonSchema(schema, 'request')
  }
}
