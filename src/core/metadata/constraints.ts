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
} from '../protocol/index.ts'
import { anyDate, anyDuration, portable } from './patterns.ts'
import { type JsonSchema, refTo } from './schemas.ts'

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
        ...textPattern(schema.pattern, notation),
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
        pattern: anyDate,
        examples: ['/Date(1795262400000-0000)/', '2026-11-21T12:00:00Z'],
      }
    case 'duration':
      return { type: orNull('string'), pattern: anyDuration(schema), examples: ['PT5M'] }
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

/** How a parameter may spell a flag (N5), besides true and false, in lower case. */
const flagTexts = ['t', 'y', '1', 'on', 'f', 'n', '0', 'off']

/** No target may hold a control character, encoded or not (S2). */
function textPattern(pattern: RegExp | undefined, notation: Notation): JsonSchema {
  if (pattern !== undefined) return { pattern: portable(pattern) }
  return notation === 'parameter' ? { pattern: '^[^\\u0000-\\u001f\\u007f]*$' } : {}
}

const bounds = ({ min, max }: Range, integer: boolean): JsonSchema => ({
  ...(min !== undefined || integer ? { minimum: min ?? -largest } : {}),
  ...(max !== undefined || integer ? { maximum: max ?? largest } : {}),
})

/** The items of a list are not null, and those of a list of text are names. */
function itemSchema(item: Schema, notation: Notation): JsonSchema {
  return item.kind === 'text'
    ? { type: 'string', maxLength: item.max ?? limits.nameCharacters, ...textPattern(item.pattern, notation) }
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
