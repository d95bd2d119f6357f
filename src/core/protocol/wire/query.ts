import { emptyField, Fault, type FieldFault } from '../../base/errors.ts'
import { type Dto, limits, type Schema } from '../index.ts'
import { fold, isSame, membersOf, pickFromRequest } from './fields.ts'
import type { WireValues } from './format.ts'
import { readJsv, readJsvItems, writeJsv } from './jsv.ts'
import { withinLimits } from './limits.ts'
import { badRequest, invalidValue, refusedField, typeMismatch, unbindable } from './problems.ts'
import { isScalar, readScalar, writeScalar } from './scalars.ts'

/** A parameter of a path, query or form, percent-decoded. */
export type Pair = readonly [name: string, value: string]

/**
 * Splits a query (without its `?`) or an urlencoded form. Throws a 400 for escapes that are not UTF-8.
 *
 * @example
 * ```ts
 * parsePairs('ServerType=App&reason=on%20call') // [['ServerType', 'App'], ['reason', 'on call']]
 * ```
 */
export const parsePairs = (text: string): readonly Pair[] => {
  const pieces = text.split('&').filter((piece) => piece !== '')
  if (pieces.length > limits.parameters) throw tooMany()
  return pieces.map((piece) => {
    const equals = piece.indexOf('=')
    const name = equals === -1 ? piece : piece.slice(0, equals)
    return [percentDecoded(name, name), percentDecoded(equals === -1 ? '' : piece.slice(equals + 1), name)]
  })
}

export const tooMany = (): Fault => new Fault('BadRequest', `At most ${limits.parameters} parameters are allowed`)

const percentDecoded = (text: string, name: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw badRequest([refusedField(name, 'A parameter is not valid percent-encoded UTF-8')])
  }
}

/**
 * Binds the parameters of a path, query or form (N1, N5, N6). Ignores empty values and unknown names; a repeated name
 * extends a list. Throws one 400 that names every invalid parameter as the client wrote it (H3).
 */
export const bind = (schema: Dto, pairs: readonly Pair[]): WireValues => {
  const values: WireValues = {}
  const problems: FieldFault[] = []
  for (const { member, written, values: texts } of pickFromRequest(schema, pairs)) {
    const present = texts.filter((text) => text !== '')
    if (present.length === 0) continue
    const value = readParameter(member.schema, present)
    if (value !== undefined) values[member.name] = value
    else if (member.schema.kind === 'text') problems.push(typeMismatch(written, member.schema))
    else problems.push(invalidValue(written, textOf(member.schema, present)))
  }
  if (problems.length > 0) throw unbindable(schema, problems)
  return withinLimits(schema, values)
}

const textOf = (schema: Schema, present: readonly string[]): string =>
  schema.kind === 'choice' ? (present.at(-1) ?? '') : present.join(',')

const readParameter = (schema: Schema, present: readonly string[]): unknown => {
  // As real servers do: the last value of a choice counts, and other repeated values are joined. A repeated flag is
  // thus refused instead of one silently winning.
  if (isScalar(schema)) return readScalar(schema, textOf(schema, present))
  const parts = present.map((text) =>
    schema.kind === 'list' ? readJsvItems(schema.item, text) : readJsv(schema, text),
  )
  if (parts.includes(undefined)) return undefined
  if (schema.kind === 'list') return parts.flat()
  const entries = parts.flatMap((part) => Object.entries(part as object))
  const whole = Object.fromEntries(entries)
  return entries.every(([key, value]) => isSame(whole[key], value)) ? whole : undefined
}

/** The query of a request, without `?`, as `bind` reads it. Leaves out unset fields and empty texts. */
export const encodeQuery = (schema: Dto, value: unknown): string => {
  const properties = value as Readonly<Record<string, unknown>>
  return membersOf(schema)
    .flatMap((member) => {
      const text = writeParameter(member.schema, properties[member.name])
      return text === undefined || text === '' ? [] : [`${member.name}=${encodeURIComponent(text.toWellFormed())}`]
    })
    .join('&')
}

const writeParameter = (schema: Schema, value: unknown): string | undefined => {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'boolean') return String(value)
  return isScalar(schema) ? writeScalar(schema, value) : writeJsv(schema, value)
}

/** The values of a request by source. */
export type Sources = {
  readonly body?: WireValues | undefined
  readonly path?: WireValues | undefined
  readonly query?: WireValues | undefined
  readonly form?: WireValues | undefined
}

/**
 * Precedence: body < path < query < form (N7). What must not differ: `refuseContradictions`.
 *
 * @example
 * ```ts
 * merge({ path: { provider: 'ldap' }, query: { provider: 'credentials' } }) // { provider: 'credentials' }
 * ```
 */
export const merge = ({ body, path, query, form }: Sources): WireValues => ({ ...body, ...path, ...query, ...form })

/**
 * Throws one 400 for each name of who or what a request is about, and each map, in which two sources differ (N7).
 * Precedence alone would let a link or a proxy that adds a query change another user than the body names, and a second
 * Meta drop entries that limit the change, such as the end of a role. It quotes no value: somebody may have typed a
 * password. Empty texts and lists are unset.
 */
export const refuseContradictions = (schema: Dto, sources: Sources): void => {
  const present = (['body', 'form', 'path', 'query'] as const).flatMap((place) => {
    const values = sources[place]
    return values ? [{ place, values }] : []
  })
  const [first, ...rest] = membersOf(schema).flatMap(({ name, schema }) => {
    if (!isName(schema) && schema.kind !== 'map') return []
    const [one, ...others] = present.filter(({ values }) => !isUnset(values[name]))
    const other = others.find(({ values }) => !isSame(values[name], one?.values[name]))
    if (!one || !other) return []
    return [refusedField(name, `'${name}' differs between the ${one.place} and the ${other.place}: send it once`)]
  })
  if (first) throw badRequest([first, ...rest])
}

/** An empty map is set: it replaces those of other sources. */
const isUnset = (value: unknown): boolean => (Array.isArray(value) ? value.length === 0 : (value ?? '') === '')

const isName = (schema: Schema): boolean =>
  schema.kind === 'list' ? isName(schema.item) : schema.kind === 'text' && schema.names === true

/** Throws one 400 NotEmpty that names every required field without a value (H3). */
export const requireFields = (schema: Dto, values: WireValues): void => {
  const missing = Object.entries(schema.fields)
    .filter(([name, field]) => field.kind === 'required' && (values[name] ?? '') === '')
    .map(([name]) => emptyField(name))
  if (missing[0]) throw new Fault('NotEmpty', missing[0].Message, { fields: missing })
}

/**
 * Refuses secrets in a query, because queries are logged (N7). Compares case-insensitively and quotes no value. An empty
 * value is unset and reveals nothing: old clients send every field of a request, also those without a value (N5).
 */
export const refuseInQuery = (names: readonly string[], pairs: readonly Pair[]): void => {
  const folded = new Set(names.map(fold))
  const refused = new Map<string, FieldFault>()
  for (const [written, value] of pairs) {
    const name = fold(written)
    if (value === '' || name === undefined || !folded.has(name)) continue
    refused.set(written, refusedField(written, `'${written}' is not accepted in a query: send it in the body`))
  }
  const [first, ...rest] = refused.values()
  if (first) throw badRequest([first, ...rest])
}
