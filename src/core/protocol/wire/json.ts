import type { FieldFault } from '../../base/errors.ts'
import { isObject, repeatedNameIn, tooDeepUnder } from '../../base/json.ts'
import { type Dto, limits, type NameStyle, type Schema } from '../index.ts'
import { keyOf, membersOf } from './fields.ts'
import { type Format, joinAsList, type Trailing, type WireValues } from './format.ts'
import { exactRules, forbiddenKeyIn, parseJsonText, type Rules, walkDto } from './json-read.ts'
import { badRequest, forbiddenName, nestedTooDeeply, repeatedName, unbindable, undeserialisable } from './problems.ts'
import { jsonDate, readScalar, type Scalar, writeDuration } from './scalars.ts'

/** JSON in the schema's order, without unset members and unknown properties (N1–N4, N9). */
export const encodeJson = (
  schema: Dto,
  value: unknown,
  trailing?: Trailing,
  style: NameStyle = 'PascalCase',
): string => {
  const own = writeMembers(schema, value, style)
  const more = trailing ? writeMembers(trailing.schema, trailing.value, style) : ''
  return `{${own}${own !== '' && more !== '' ? ',' : ''}${more}}`
}

const writeMembers = (schema: Dto, value: unknown, style: NameStyle): string => {
  const properties = value as Readonly<Record<string, unknown>>
  let text = ''
  for (const member of membersOf(schema)) {
    const written = write(member.schema, properties[member.name], style)
    if (written === undefined) continue
    text += `${text === '' ? '' : ','}${keyOf(member, style)}${written}`
  }
  return text
}

/** Undefined for unset values, and for values that JSON cannot express: NaN, an invalid date. */
const write = (schema: Schema, value: unknown, style: NameStyle): string | undefined => {
  if (value === undefined || value === null) return undefined
  switch (schema.kind) {
    case 'dto':
      return `{${writeMembers(schema, value, style)}}`
    case 'list':
      return writeList(schema.item, value as readonly unknown[], style)
    case 'map':
      return JSON.stringify(value)
    case 'date':
      return Number.isNaN((value as Date).getTime()) ? undefined : jsonDate(value as Date)
    case 'duration':
      return Number.isFinite(value) ? `"${writeDuration(value as number)}"` : undefined
    case 'number':
      return Number.isFinite(value) ? String(value as number) : undefined
    default:
      return JSON.stringify(value)
  }
}

const writeList = (item: Schema, values: readonly unknown[], style: NameStyle): string => {
  let text = ''
  for (const value of values) {
    const written = write(item, value, style)
    if (written !== undefined) text += text === '' ? written : `,${written}`
  }
  return `[${text}]`
}

/** A choice may also be given by its number (N1). */
const exact = exactRules((schema, json) =>
  typeof json === 'string' || (schema.kind === 'choice' && typeof json === 'number')
    ? readScalar(schema, String(json))
    : undefined,
)

/** Some clients write every value as text, which ServiceStack 5.8 reads (N5). */
const strict: Rules = {
  ...exact,
  scalar: (schema, json) => exact.scalar(schema, typeof json === 'string' ? unquoted(schema, json) : json),
  refusesTwoSpellings: true,
}

/** The text `true` or `false` as a flag, and digits as a number. Any other value as it is. */
function unquoted({ kind }: Scalar, written: string): string | boolean | number {
  if (kind === 'flag' && /^(?:true|false)$/i.test(written)) return written.toLowerCase() === 'true'
  return kind === 'number' && /^-?\d+(?:\.\d+)?$/.test(written) ? Number(written) : written
}

/** Binds a parsed request body to a DTO. A wrong type is a 400 that names the field (N5). */
export const bindJson = (schema: Dto, json: unknown): WireValues => {
  if (!isObject(json)) throw undeserialisable(schema, 'application/json', 'an object is expected')
  const problems: FieldFault[] = []
  const values = walkDto(schema, json, strict, problems)
  if (problems.length > 0) throw unbindable(schema, problems)
  return values
}

/**
 * Parses untrusted JSON: refuses deep nesting, keys with a special meaning in JavaScript (S4, E2), and names that an
 * object contains twice, which two readers understand differently (S2).
 */
export const parseJson = (schema: Dto, body: string): unknown => {
  const deep = tooDeepUnder(body, limits.depth)
  if (deep !== undefined) throw nestedTooDeeply(deep)
  const json = parse(schema, body)
  const key = forbiddenKeyIn(json)
  if (key !== undefined) throw badRequest([forbiddenName(key)])
  const twice = repeatedNameIn(body)
  if (twice !== undefined) throw badRequest([repeatedName(twice)])
  return json
}

const parse = (schema: Dto, body: string): unknown => {
  try {
    return parseJsonText(body)
  } catch (error) {
    const place = error instanceof Error ? /at position \d+/.exec(error.message)?.[0] : undefined
    throw undeserialisable(schema, 'application/json', `the body is not valid JSON${place ? ` ${place}` : ''}`)
  }
}

export const decodeJson = (schema: Dto, body: string): WireValues => bindJson(schema, parseJson(schema, body))

export const json: Format = {
  name: 'json',
  contentType: 'application/json; charset=utf-8',
  encode: encodeJson,
  join: joinAsList,
  decode: decodeJson,
}
