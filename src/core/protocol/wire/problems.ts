import { Fault, type FieldFault } from '../../base/errors.ts'
import type { Dto, Schema } from '../index.ts'

const errorCode = 'SerializationException'
const maxEcho = 100

/** Client text for a message, truncated to a readable length. */
export const excerpt = (text: string): string =>
  text.length <= maxEcho ? text : `${text.slice(0, maxEcho).toWellFormed()}…`

/** For values that may be shown. Never used for text fields, which may hold secrets. */
export const invalidValue = (field: string, value: string): FieldFault => ({
  ErrorCode: errorCode,
  FieldName: field,
  Message: `'${excerpt(value)}' is an Invalid value for '${field}'`,
})

/** For a field of the wrong type. Names the expected type and does not quote the value. */
export const typeMismatch = (field: string, schema: Schema): FieldFault => ({
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

/** One answer with every field that cannot be bound (H3). */
export const unbindable = (schema: Dto, fields: readonly FieldFault[]): Fault =>
  new Fault('Unreadable', `Unable to bind to request '${schema.name}'`, { fields })

/**
 * A body that is not in its format at all (E2). Neither quotes nor chains the parser's error, which repeats part of
 * the body: it may be a password.
 */
export const undeserialisable = (schema: Dto, contentType: string, reason: string): Fault =>
  new Fault('Unreadable', `Could not deserialize '${contentType}' request using '${schema.name}': ${reason}`)

/** A hostile or oversized value in one field (S4). */
export const refusedField = (field: string, message: string): FieldFault => ({
  ErrorCode: 'BadRequest',
  FieldName: excerpt(field),
  Message: message,
})

/** A 400 with the message of its first field. */
export const badRequest = (fields: readonly [FieldFault, ...FieldFault[]]): Fault =>
  new Fault('BadRequest', fields[0].Message, { fields })

/** `name` is the member of the body that contains the nesting; empty when there is none. */
export const nestedTooDeeply = (name: string): Fault =>
  name === ''
    ? new Fault('BadRequest', 'The body is nested too deeply')
    : badRequest([refusedField(name, `'${excerpt(name)}' is nested too deeply`)])

/** For a name with a special meaning in JavaScript. */
export const forbiddenName = (name: string): FieldFault =>
  refusedField(name, `'${name}' is not allowed as a property name`)

export const repeatedName = (name: string): FieldFault => refusedField(name, `'${excerpt(name)}' occurs more than once`)

export const twoSpellings = (name: string, other: string): FieldFault =>
  refusedField(name, `'${excerpt(name)}' and '${excerpt(other)}' are one field, with different values: send it once`)
