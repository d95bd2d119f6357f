import type { FieldFault } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import type { Dto, Schema } from '../index.ts'
import { pick, pickFromRequest } from './fields.ts'
import type { WireValues } from './format.ts'
import { isForbiddenKey } from './limits.ts'
import { invalidValue, refusedField, typeMismatch } from './problems.ts'
import { number, type Scalar, type ScalarValue } from './scalars.ts'

/** The first key in a parsed value that has a special meaning in JavaScript, or undefined. */
export const forbiddenKeyIn = (json: unknown): string | undefined => {
  if (typeof json !== 'object' || json === null) return undefined
  if (Array.isArray(json)) {
    for (const item of json) {
      const forbidden = forbiddenKeyIn(item)
      if (forbidden !== undefined) return forbidden
    }
    return undefined
  }
  for (const [key, value] of Object.entries(json)) {
    const matched = isForbiddenKey(key) ? key : forbiddenKeyIn(value)
    if (matched !== undefined) return matched
  }
  return undefined
}

/** A key with an escape. May match other text too, but misses no such key. */
const escapedKey = /\\.[^"\\]*"[ \t\r\n]*:/

/**
 * Parses JSON text that is known not to nest deeply. Throws a SyntaxError.
 *
 * V8 has a bug with escapes in keys: after a key that ends in a backslash, it misreads a later key that has an escape
 * at the same position (`"\n"` becomes `\`: nodejs/node#63785). An earlier request could thus change the meaning of a
 * later one. The rare texts with such keys are tokenized here, and V8 reads only their strings and literals.
 */
export const parseJsonText = (text: string): unknown => (escapedKey.test(text) ? parseByToken(text) : JSON.parse(text))

export const parseByToken = (text: string): unknown => {
  const token = /[ \t\r\n]*([{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^ \t\r\n{}[\],:"]+)/y

  const next = (): string => {
    const matched = token.exec(text)?.[1]
    if (matched === undefined) throw new SyntaxError('unexpected text')
    return matched
  }
  const value = (first: string): unknown => {
    if (first === '{') return object()
    return first === '[' ? array() : JSON.parse(first)
  }
  const object = (): object => {
    const entries: [string, unknown][] = []
    for (let key = next(); key !== '}' || entries.length > 0; key = next()) {
      if (!key.startsWith('"') || next() !== ':') throw new SyntaxError('a name and a colon are expected')
      entries.push([JSON.parse(key), value(next())])
      if (isLast('}')) break
    }
    return Object.fromEntries(entries)
  }
  const array = (): unknown[] => {
    const items: unknown[] = []
    for (let first = next(); first !== ']' || items.length > 0; first = next()) {
      items.push(value(first))
      if (isLast(']')) break
    }
    return items
  }
  const isLast = (bracket: string): boolean => {
    const separator = next()
    if (separator !== ',' && separator !== bracket) throw new SyntaxError(`a comma or ${bracket} is expected`)
    return separator === bracket
  }

  const whole = value(next())
  if (text.slice(token.lastIndex).replace(/^[ \t\r\n]+/, '') !== '') throw new SyntaxError('text after the end')
  return whole
}

/** The differences between strict and lenient reading of parsed JSON. */
export type Rules = {
  /** The value, or undefined when the JSON is invalid for the schema. */
  readonly scalar: (schema: Scalar, json: unknown) => ScalarValue | undefined
  /** Whether the JSON means "not given". */
  readonly unset: (schema: Schema, json: unknown) => boolean
  /** Maps a written name to the name to look for. Default: the written name itself. */
  readonly memberName?: (schema: Dto, written: string) => string
  /** Whether unset items of a list are skipped. Otherwise they are errors. */
  readonly skipsUnsetItems: boolean
  /** Whether two spellings of one name with different values are a 400, as in every request. */
  readonly refusesTwoSpellings?: boolean | undefined
}

/**
 * Rules for JSON of exactly the schema's types: a flag or a number is not accepted as text. `read` reads the other
 * scalars.
 */
export const exactRules = (read: (schema: Scalar, json: unknown) => ScalarValue | undefined): Rules => ({
  unset: (_schema, json) => json === null,
  skipsUnsetItems: false,
  scalar: (schema, json) => {
    switch (schema.kind) {
      case 'flag':
        return typeof json === 'boolean' ? json : undefined
      case 'number':
        return typeof json === 'number' ? number(schema, json) : undefined
      default:
        return read(schema, json)
    }
  },
})

/** Reads parsed JSON by a schema. Adds errors to `problems`, under the names as written. */
export const walkDto = (schema: Dto, json: object, rules: Rules, problems: FieldFault[], path = ''): WireValues => {
  const values: WireValues = {}
  const { memberName } = rules
  const pairs = Object.entries(json)
  if (memberName) for (const pair of pairs) pair[0] = memberName(schema, pair[0])
  const pickFrom = rules.refusesTwoSpellings ? pickFromRequest : pick
  for (const { member, written, values: texts } of pickFrom(schema, pairs)) {
    const value = texts.at(-1)
    if (rules.unset(member.schema, value)) continue
    const read = walk(member.schema, value, rules, problems, path + written)
    if (read !== undefined) values[member.name] = read
  }
  return values
}

const walk = (schema: Schema, json: unknown, rules: Rules, problems: FieldFault[], field: string): unknown => {
  switch (schema.kind) {
    case 'list':
      if (!Array.isArray(json)) return mismatch(schema, json, problems, field)
      return walkList(schema.item, json, rules, problems, field)
    case 'map':
      return isObject(json) ? walkMap(schema, json, rules, problems, field) : mismatch(schema, json, problems, field)
    case 'dto':
      return isObject(json)
        ? walkDto(schema, json, rules, problems, `${field}.`)
        : mismatch(schema, json, problems, field)
    default:
      return rules.scalar(schema, json) ?? mismatch(schema, json, problems, field)
  }
}

const walkList = (
  item: Schema,
  json: readonly unknown[],
  rules: Rules,
  problems: FieldFault[],
  field: string,
): unknown => {
  const items: unknown[] = []
  const before = problems.length
  for (const value of json) {
    if (rules.skipsUnsetItems && rules.unset(item, value)) continue
    items.push(walk(item, value, rules, problems, field))
    // At most one error per list, so that an answer is never longer than the request that it refuses.
    if (problems.length > before) return undefined
  }
  return items
}

const walkMap = (schema: Schema, json: object, rules: Rules, problems: FieldFault[], field: string): unknown => {
  const entries: Record<string, string> = {}
  for (const [key, value] of Object.entries(json)) {
    if (isForbiddenKey(key)) continue
    if (rules.unset({ kind: 'text' }, value)) {
      if (schema.kind === 'map' && schema.neverNull?.(key)) {
        const name = `${field}.${key}`
        problems.push(refusedField(name, `'${name}' must not be null: leave it out, or give it a value`))
      }
      continue
    }
    const text = rules.scalar({ kind: 'text' }, value)
    if (typeof text !== 'string' || !key.isWellFormed()) return mismatch(schema, value, problems, field)
    entries[key] = text
  }
  return entries
}

/** Quotes the value only for an invalid choice, date or duration: other texts may be secrets. */
const mismatch = (schema: Schema, json: unknown, problems: FieldFault[], field: string): undefined => {
  const parsed = schema.kind === 'choice' || schema.kind === 'date' || schema.kind === 'duration'
  problems.push(
    parsed && (typeof json === 'string' || typeof json === 'number')
      ? invalidValue(field, String(json))
      : typeMismatch(field, schema),
  )
}
