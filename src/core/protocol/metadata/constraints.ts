import {
  Authenticate,
  type Dto,
  type Field,
  forbiddenKeys,
  inStyle,
  limits,
  type NameStyle,
  type Range,
  ReportHeartbeat,
  type Schema,
  schemaOf,
  type Text,
} from '../index.ts'
import { type JsonSchema, refTo } from './schemas.ts'

/**
 * Patterns of the dates and durations that requests may hold. They need no lookahead, so that every regular expression
 * engine reads them.
 */

const leapYear = '(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)'
const dayOfYear = [
  '\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])',
  '\\d{4}-(?:0[13-9]|1[0-2])-(?:29|30)',
  '\\d{4}-(?:0[13578]|1[02])-31',
  `${leapYear}-02-29`,
].join('|')
const timeOfDay = '[T ](?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:[.,]\\d{1,9})?)?(?:Z|[+-]\\d\\d:?\\d\\d)?'
/** Milliseconds up to the last date of ECMAScript, 8.64e15. */
const instant = '-?(?:\\d{1,15}|[0-7]\\d{15}|8[0-5]\\d{14}|86[0-3]\\d{13}|8640{13})'

/** `/Date(ms)/` with or without an offset, or ISO 8601 with a year of four digits (N3). */
const anyDate = `^(?:/Date\\(${instant}(?:[+-]\\d{4})?\\)/|(?:${dayOfYear})(?:${timeOfDay})?)$`

const hours = '(?:1\\d|2[0-3]|[1-9])H'
const minutes = '(?:[1-5]\\d|[1-9])M'
const seconds = '(?:[1-5]\\d|[1-9])(?:\\.\\d{1,9})?S'
const clock = `(?:${hours}(?:${minutes})?(?:${seconds})?|${minutes}(?:${seconds})?|${seconds})`

const dayMs = 86_400_000
const units = [
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1_000],
] as const

/**
 * Durations as in ISO 8601, within the bounds: with their parts carried over (`P1DT2H`), or in one unit (`PT300S`).
 * Without bounds, any whose parts are carried over. Other spellings that svc reads, such as `01:30:00`, are not
 * described.
 */
function anyDuration({ min = 0, max = 10_000_000 * dayMs }: Range): string {
  const days = max / dayMs
  const below = `P(?:(?:${upTo(days - 1)})D(?:T${clock})?|T${clock}|(?:${upTo(days)})D)`
  const single = units.map(([unit, ms]) => `PT(?:${upTo(max / ms)})${unit}`)
  return `^(?:${[below, ...single, ...(min === 0 ? ['PT0S', 'PT0\\.\\d{1,9}S'] : [])].join('|')})$`
}

/** A pattern for the whole numbers from 1 to `most`, without leading zeros. */
function upTo(most: number): string {
  const digits = String(most)
  const shorter = digits.length === 1 ? [] : [digits.length === 2 ? '[1-9]' : `[1-9]\\d{0,${digits.length - 2}}`]
  const sameLength = Array.from(digits).flatMap((digit, at) => {
    const lowest = at === 0 ? 1 : 0
    const rest = digits.length - at - 1
    const lower = Number(digit) - 1
    if (lower < lowest) return []
    const choice = lower === lowest ? String(lowest) : `[${lowest}-${lower}]`
    return [`${digits.slice(0, at)}${choice}${rest === 0 ? '' : rest === 1 ? '\\d' : `\\d{${rest}}`}`]
  })
  return [...shorter, ...sameLength, digits].join('|')
}

/** The characters of the Unicode categories that patterns name, as ranges. Cs is missing: JSON text has no lone surrogates. */
const categories: Readonly<Record<string, string>> = {
  Cc: '\\u0000-\\u001f\\u007f-\\u009f',
  Cf: [
    '\\u00ad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f',
    '\\ufeff\\ufff9-\\ufffb\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0001}\u{e0020}-\u{e007f}',
  ].join(''),
  Cs: '',
  Default_Ignorable_Code_Point: [
    '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff',
    '\\uffa0\\ufff0-\\ufff8\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}',
  ].join(''),
  Zl: '\\u2028',
  Zp: '\\u2029',
}

/** A pattern without the names of categories, which regular expressions of Python do not know. */
export const portable = ({ source }: RegExp): string =>
  source
    .replace(/\\p\{(\w+)\}/g, (written, name: string) => categories[name] ?? written)
    // U+FEFF is a space in JavaScript only.
    .replaceAll('\\S', '[^\\s\\ufeff]')

/**
 * The constraints on requests as JSON Schema: what a request may hold, as the readers of the wire and the operations
 * enforce it. A constraint is declared once, with its field.
 */

/** In JSON bodies, null means "not given". In a parameter, a flag and a number are text. */
type Notation = 'body' | 'parameter'

/** The largest integer that is exact in JSON. */
const largest = Number.MAX_SAFE_INTEGER

/** The JSON Schema of a value in a request. */
function requestSchema(schema: Schema, notation: Notation): JsonSchema {
  const orNull = (type: string): string | readonly string[] => (notation === 'body' ? [type, 'null'] : type)
  switch (schema.kind) {
    case 'text':
      return {
        type: schema.needed ? 'string' : orNull('string'),
        ...(schema.max === undefined ? {} : { maxLength: schema.max }),
        ...textPattern(schema, notation),
      }
    case 'flag':
      return notation === 'body'
        ? { type: ['boolean', 'null'] }
        : { anyOf: [{ type: 'boolean' }, { type: 'string', enum: flagTexts }] }
    case 'number':
      return { type: orNull(schema.integer ? 'integer' : 'number'), ...bounds(schema, schema.integer) }
    case 'date':
      return {
        type: orNull('string'),
        pattern: orUnset(anyDate, notation),
        examples: ['/Date(1795262400000-0000)/', '2026-11-21T12:00:00Z'],
      }
    case 'duration':
      return { type: orNull('string'), pattern: orUnset(anyDuration(schema), notation), examples: ['PT5M'] }
    case 'list':
      return { type: orNull('array'), items: itemSchema(schema.item, notation), maxItems: limits.listItems }
    case 'map':
      return notation === 'body'
        ? {
            type: ['object', 'null'],
            maxProperties: limits.metaEntries,
            propertyNames: { maxLength: limits.nameCharacters, not: { enum: forbiddenKeys } },
            additionalProperties: { type: ['string', 'null'], maxLength: limits.metaValueCharacters },
          }
        : { type: 'string', pattern: `^\\{(?:${pair}(?:,${pair}){0,15})?\\}$`, examples: ['{key:value}'] }
    case 'choice':
      return {
        anyOf: [
          refTo(schema.name),
          { type: 'integer', minimum: 1, maximum: schema.values.length },
          ...(notation === 'body' ? [{ type: 'null' }] : []),
        ],
      }
    case 'dto':
      return refTo(schema.name)
  }
}

/** A pair of a map in a parameter (N6), without the characters that need quotes. */
const pair = '[A-Za-z0-9_-]{1,32}:[A-Za-z0-9_ .-]{0,64}'

/** An empty parameter means unset (N5). */
const orUnset = (pattern: string, notation: Notation): string =>
  notation === 'parameter' ? `^(?:${pattern.slice(1, -1)})?$` : pattern

/** How a parameter may spell a flag (N5), besides true and false, in lower case. */
const flagTexts = ['t', 'y', '1', 'on', 'f', 'n', '0', 'off']

/** No target may hold a control character, encoded or not (S2). */
export const textOfTarget = { pattern: '^[^\\u0000-\\u001f\\u007f]*$' } as const

function textPattern({ pattern, not }: Text, notation: Notation): JsonSchema {
  const without = not === undefined ? {} : { not: { const: not } }
  if (pattern !== undefined) return { pattern: portable(pattern()), ...without }
  return { ...(notation === 'parameter' ? textOfTarget : {}), ...without }
}

const bounds = ({ min, max }: Range, integer: boolean): JsonSchema => ({
  ...(min !== undefined || integer ? { minimum: min ?? -largest } : {}),
  ...(max !== undefined || integer ? { maximum: max ?? largest } : {}),
})

/** The items of a list are not null, and those of a list of text are names. */
function itemSchema(item: Schema, notation: Notation): JsonSchema {
  return item.kind === 'text'
    ? { type: 'string', maxLength: item.max ?? limits.nameCharacters, ...textPattern(item, notation) }
    : requestSchema(item, notation)
}

/** Whether a request without the field is refused. */
const isRequired = (field: Field): boolean =>
  field.kind === 'required' || (field.kind === 'text' && field.needed === true)

/** The schema of a JSON body. `fromPath` names the fields that the path sets, which the body may then leave out. */
export function requestDtoSchema(dto: Dto, style: NameStyle, fromPath: readonly string[] = []): JsonSchema {
  const entries = Object.entries(dto.fields)
  const required = entries.flatMap(([name, field]) =>
    isRequired(field) && !fromPath.includes(name) ? [inStyle(name, style)] : [],
  )
  const rules = dependent(dto, style)
  return {
    type: 'object',
    properties: Object.fromEntries(
      entries.map(([name, field]) => {
        const schema = requestSchema(schemaOf(field), 'body')
        return [inStyle(name, style), field.kind === 'required' ? notNull(schema) : schema]
      }),
    ),
    ...(required.length > 0 ? { required } : {}),
    propertyNames: { not: { enum: forbiddenKeys } },
    ...(Object.keys(rules).length > 0 ? { dependentSchemas: rules } : {}),
  }
}

function notNull(schema: JsonSchema): JsonSchema {
  const { anyOf, type } = schema as { readonly anyOf?: readonly JsonSchema[]; readonly type?: unknown }
  if (anyOf) return { ...schema, anyOf: anyOf.filter((each) => each['type'] !== 'null') }
  return Array.isArray(type) ? { ...schema, type: type[0] as unknown } : schema
}

/** A query parameter of a field. */
export const queryParameter = (name: string, field: Field): JsonSchema => ({
  name,
  in: 'query',
  ...(isRequired(field) ? { required: true } : {}),
  schema: requestSchema(schemaOf(field), 'parameter'),
})

/** A path parameter of a field. It is never empty. */
export const pathParameter = (name: string, field: Field): JsonSchema => ({
  name,
  in: 'path',
  required: true,
  schema: { ...requestSchema(schemaOf(field), 'parameter'), minLength: 1 },
})

/** The rules between the fields of a request, by the field that they begin with. */
function dependent(dto: Dto, style: NameStyle): Readonly<Record<string, JsonSchema>> {
  const rules = dto === Authenticate ? signIn(style) : dto === ReportHeartbeat ? ofRun(style) : []
  return Object.fromEntries(rules.map(([name, rule]) => [inStyle(name, style), rule]))
}

type Rule = readonly [field: string, rule: JsonSchema]

const isText: JsonSchema = { type: 'string' }
/** With other fields as described, the field is present and not null. */
const needs = (name: string, schema: JsonSchema, style: NameStyle): JsonSchema => ({
  required: [inStyle(name, style)],
  properties: { [inStyle(name, style)]: schema },
})

/** The fields of a run: its start, with a duration its end, and of the end the exit code and the output. */
function ofRun(style: NameStyle): readonly Rule[] {
  const rule = (name: string, condition: JsonSchema, needed: string, schema: JsonSchema): Rule => [
    name,
    conditional({ properties: { [inStyle(name, style)]: condition } }, needs(needed, schema, style)),
  ]
  return [
    rule('Duration', isText, 'StartedAt', isText),
    rule('ExitCode', { type: 'integer' }, 'Duration', isText),
    rule('Output', isText, 'Duration', isText),
  ]
}

/** A1, A4, A13: a sign-in needs a user name and a password, and only a known provider takes the fields of OAuth. */
function signIn(style: NameStyle): readonly Rule[] {
  const provider = inStyle('provider', style)
  const filled = { type: 'string', pattern: '[^\\s\\ufeff]' }
  const both = { allOf: [needs('UserName', filled, style), needs('Password', filled, style)] }
  const blank = { anyOf: [{ type: 'null' }, { type: 'string', maxLength: 0 }] }
  const byPassword = { type: 'string', pattern: `^\\s*(?:${anyCase('credentials')}|${anyCase('login')})\\s*$` }
  const anyProvider = { anyOf: [blank, byPassword, { type: 'string', pattern: `^\\s*${anyCase('logout')}\\s*$` }] }
  const oauth = ['oauth_token', 'oauth_verifier', 'AccessTokenSecret'].map(
    (name): Rule => [
      name,
      conditional({ properties: { [inStyle(name, style)]: isText } }, { properties: { [provider]: anyProvider } }),
    ],
  )
  return [
    ['provider', conditional({ properties: { [provider]: byPassword } }, both)],
    [
      'UserName',
      conditional(
        { properties: { [inStyle('UserName', style)]: isText, [provider]: { anyOf: [blank, byPassword] } } },
        both,
      ),
    ],
    ...oauth,
  ]
}

/** Implication without `if` and `then`: an object with a member `then` looks like a promise. */
const conditional = (condition: JsonSchema, consequence: JsonSchema): JsonSchema => ({
  anyOf: [{ not: condition }, consequence],
})

/** A pattern for a word in any letter case. */
const anyCase = (word: string): string => word.replace(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`)
