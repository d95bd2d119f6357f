import type { FieldFault } from '../errors.ts'
import { type Dto, limits, type Schema } from '../protocol/index.ts'
import { pick, pickFromRequest } from './fields.ts'
import type { WireValues } from './format.ts'
import { isForbiddenKey } from './limits.ts'
import { invalidValue, wrongType } from './problems.ts'
import { number, type Scalar, type ScalarValue } from './scalars.ts'

const quote = 34
const comma = 44
const colon = 58
const backslash = 92
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125

/**
 * The top-level property under which JSON text nests deeper than 32 levels (S4), empty if there is none, or undefined.
 * Checked before parsing: a megabyte of brackets costs the parser half a second, and this scan a few milliseconds.
 */
export const tooDeepUnder = (text: string): string | undefined => {
  let depth = 0
  let topText = ''
  let topName = ''
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) {
      const start = at
      at = endOfString(text, at)
      if (depth === 1) topText = text.slice(start + 1, at)
    } else if (depth === 1 && char === colon) {
      // Only text before a colon is a name; other text may be a secret.
      topName = topText
    } else if (depth === 1 && char === comma) {
      topName = ''
    } else if (char === openBrace || char === openBracket) {
      depth++
      if (depth > limits.depth) return topName
    } else if (char === closeBrace || char === closeBracket) depth--
  }
  return undefined
}

const endOfString = (text: string, start: number): number => {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) return at
    if (char === backslash) at++
  }
  return text.length
}

/**
 * The first name that an object in JSON text contains twice, at any depth, or undefined. Names that differ in letter
 * case are different names. For text that has been parsed: a parser keeps the last value without a word.
 */
export const repeatedNameIn = (text: string): string | undefined => {
  const open: (Set<string> | undefined)[] = []
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === openBrace || char === openBracket) open.push(undefined)
    else if (char === closeBrace || char === closeBracket) open.pop()
    else if (char === quote) {
      const start = at
      at = endOfString(text, at)
      if (!isName(text, at + 1)) continue
      const written = text.slice(start, at + 1)
      const name: string = written.includes('\\') ? JSON.parse(written) : written.slice(1, -1)
      const names = open[open.length - 1] ?? new Set()
      if (names.has(name)) return name
      open[open.length - 1] = names.add(name)
    }
  }
  return undefined
}

/** Whether the string that ends before `at` is followed by a colon. */
const isName = (text: string, at: number): boolean => {
  for (let next = at; next < text.length; next++) {
    const char = text.charCodeAt(next)
    if (char === colon) return true
    if (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09) return false
  }
  return false
}

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
  const all = Object.entries(json)
  const pairs = memberName ? all.map(([written, value]) => [memberName(schema, written), value] as const) : all
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
    // At most one error per list, so that an answer is never longer than the request that it refuses.
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

/** Quotes the value only for an invalid choice, date or duration: other texts may be secrets. */
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
