import { Fault, type FieldFault } from '../errors.ts'
import type { Dto, Schema } from '../protocol/index.ts'

const errorCode = 'SerializationException'
const maxEcho = 100

/** Client text inside a message: never more of it than a person wants to read. */
export const excerpt = (text: string): string =>
  text.length <= maxEcho ? text : `${text.slice(0, maxEcho).toWellFormed()}…`

/** A value that can be shown: never used for text fields, which may hold secrets. */
export const invalidValue = (field: string, value: string): FieldFault => ({
  ErrorCode: errorCode,
  FieldName: field,
  Message: `'${excerpt(value)}' is an Invalid value for '${field}'`,
})

/** A field of the wrong type; says what it must be and not what it is. */
export const wrongType = (field: string, schema: Schema): FieldFault => ({
  ErrorCode: errorCode,
  FieldName: field,
  Message: `'${field}' must be ${expected(schema)}`,
})

const expected = (schema: Schema): string => {
  switch (schema.kind) {
    case 'text':
      return 'a string of valid Unicode'
    case 'flag':
      return 'true or false'
    case 'number':
      return schema.integer ? 'a whole number' : 'a number'
    case 'date':
      return 'a date'
    case 'duration':
      return 'an ISO 8601 duration'
    case 'choice':
      return `one of ${schema.values.join(', ')}`
    case 'list':
      return 'an array'
    case 'map':
      return 'an object of strings'
    case 'dto':
      return 'an object'
  }
}

/** H3: every field that cannot be bound, in one answer. */
export const unbindable = (schema: Dto, fields: readonly FieldFault[]): Fault =>
  new Fault('Unreadable', `Unable to bind to request '${schema.name}'`, { fields })

/**
 * E2: a body that is not in its format at all. The parser's own error is neither quoted nor kept as
 * a cause, because it repeats part of the body, which may be a password.
 */
export const undeserialisable = (schema: Dto, contentType: string, reason: string): Fault =>
  new Fault('Unreadable', `Could not deserialize '${contentType}' request using '${schema.name}': ${reason}`)

/** S4: something hostile or oversized in one field. */
export const refusedField = (field: string, message: string): FieldFault => ({
  ErrorCode: 'BadRequest',
  FieldName: excerpt(field),
  Message: message,
})

/** A 400 whose message is that of its first field. */
export const badRequest = (fields: readonly [FieldFault, ...FieldFault[]]): Fault =>
  new Fault('BadRequest', fields[0].Message, { fields })
