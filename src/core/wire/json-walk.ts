import type { FieldFault } from '../errors.ts'
import type { Dto, Schema } from '../protocol/index.ts'
import { pick } from './fields.ts'
import type { Values } from './format.ts'
import { isForbiddenKey } from './limits.ts'
import { invalidValue, wrongType } from './problems.ts'
import type { Scalar, ScalarValue } from './scalars.ts'

/** What strict and lenient reading of parsed JSON differ in. */
export type Rules = {
  /** The value, or undefined when the JSON is no such value. */
  readonly scalar: (schema: Scalar, json: unknown) => ScalarValue | undefined
  /** Whether the JSON stands for "not given". */
  readonly unset: (schema: Schema, json: unknown) => boolean
  /** The name to look for, in place of the written one; that one when left out. */
  readonly named?: (schema: Dto, written: string) => string
  /** Whether unset items of a list are passed over; otherwise they are wrong. */
  readonly skipsUnsetItems: boolean
}

/** One walk of a schema over parsed JSON: what is wrong is added to `problems`, under the name as it was written. */
export const walkDto = (schema: Dto, json: object, rules: Rules, problems: FieldFault[], path = ''): Values => {
  const values: Values = {}
  const { named } = rules
  const all = Object.entries(json)
  const pairs = named ? all.map(([written, value]) => [named(schema, written), value] as const) : all
  for (const { member, written, values: given } of pick(schema, pairs)) {
    const value = given.at(-1)
    if (rules.unset(member.schema, value)) continue
    const read = walk(member.schema, value, rules, problems, path + written)
    if (read !== undefined) values[member.name] = read
  }
  return values
}

const walk = (schema: Schema, json: unknown, rules: Rules, problems: FieldFault[], field: string): unknown => {
  switch (schema.kind) {
    case 'list':
      if (!Array.isArray(json)) return wrong(schema, json, problems, field)
      return walkList(schema.item, json, rules, problems, field)
    case 'map':
      return isObject(json) ? walkMap(schema, json, rules, problems, field) : wrong(schema, json, problems, field)
    case 'dto':
      return isObject(json) ? walkDto(schema, json, rules, problems, `${field}.`) : wrong(schema, json, problems, field)
    default:
      return rules.scalar(schema, json) ?? wrong(schema, json, problems, field)
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
    // One complaint a list: an answer must not be longer than the request it refuses.
    if (problems.length > before) return undefined
  }
  return items
}

const walkMap = (schema: Schema, json: object, rules: Rules, problems: FieldFault[], field: string): unknown => {
  const entries: Record<string, string> = {}
  for (const [key, value] of Object.entries(json)) {
    if (isForbiddenKey(key) || rules.unset({ kind: 'text' }, value)) continue
    const text = rules.scalar({ kind: 'text' }, value)
    if (typeof text !== 'string' || !key.isWellFormed()) return wrong(schema, value, problems, field)
    entries[key] = text
  }
  return entries
}

/** Repeats the value only where it is a text that fits no choice, date or duration: other texts may be secrets. */
const wrong = (schema: Schema, json: unknown, problems: FieldFault[], field: string): undefined => {
  const parsed = schema.kind === 'choice' || schema.kind === 'date' || schema.kind === 'duration'
  problems.push(
    parsed && (typeof json === 'string' || typeof json === 'number')
      ? invalidValue(field, String(json))
      : wrongType(field, schema),
  )
}

export const isObject = (json: unknown): json is object =>
  typeof json === 'object' && json !== null && !Array.isArray(json)
