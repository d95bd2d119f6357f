import fc from 'fast-check'
import * as protocol from '../../../src/core/protocol/index.ts'
import { type Dto, type Schema, schemaOf } from '../../../src/core/protocol/index.ts'
import { codePoints } from '../../support/suite/code-points.ts'

/** Every DTO that the protocol exports, so that a new one is tested without being named here. */
export const dtos: readonly Dto[] = Object.values<unknown>(protocol).filter(
  (value): value is Dto => typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'dto',
)

const lookAlikes = [
  ...['', ' ', '  ', ' a ', '"', '""', '"a"', "'", ',', ':', '{', '}', '[', ']', '{}', '[]', '[a', '{a:b}', '\\'],
  ...['\r', '\n', '\r\n', '\t', '\0', 'True', 'False', 'true', 'null', 'undefined', 'NaN', '0', '007', '-1', '1e3'],
  ...['=1+1', '/Date(0)/', '\\/Date(0)\\/', 'PT0S', '2026-01-01', '😀', '\u2028', '\ufeff', 'é', 'ß', '\u202e', '\0"'],
]
const troublesome = fc.constantFrom(...lookAlikes)

/** Well-formed texts, thick with what formats give a meaning. */
const text = fc.oneof(
  troublesome,
  fc.array(troublesome, { maxLength: 5 }).map((parts) => parts.join('')),
  fc.string({ unit: codePoints, maxLength: 20 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 20 }),
)

const forbidden = new Set(['__proto__', 'constructor', 'prototype'])

/** Values of a schema, every field of a DTO now and then absent. */
export const valuesOf = (schema: Schema): fc.Arbitrary<unknown> => {
  switch (schema.kind) {
    case 'text':
      return text
    case 'flag':
      return fc.boolean()
    case 'number':
      return schema.integer
        ? fc.maxSafeInteger()
        : // JSON has no -0.
          fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)
    case 'date':
      return fc.date({ noInvalidDate: true })
    case 'duration':
      return fc.integer({ min: -(2 ** 50), max: 2 ** 50 }).map((ticks) => ticks / 10_000)
    case 'choice':
      return fc.constantFrom(...schema.values)
    case 'list':
      return fc.array(valuesOf(schema.item), { maxLength: 4 })
    case 'map':
      return fc.dictionary(
        text.filter((key) => !forbidden.has(key)),
        text,
        { maxKeys: 4, noNullPrototype: true },
      )
    case 'dto':
      return fc.record(
        Object.fromEntries(Object.entries(schema.fields).map(([name, field]) => [name, valuesOf(schemaOf(field))])),
        { requiredKeys: [], noNullPrototype: true },
      )
  }
}
