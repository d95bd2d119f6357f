import type { FieldFault } from '../../base/errors.ts'
import { type Dto, limits, type Schema } from '../index.ts'
import { memberNamed, membersOf, pick, pickFromRequest } from './fields.ts'
import { type Format, joinAsList, type Trailing, type WireValues } from './format.ts'
import { isForbiddenKey } from './limits.ts'
import {
  badRequest,
  forbiddenName,
  invalidValue,
  nestedTooDeeply,
  repeatedName,
  typeMismatch,
  unbindable,
  undeserialisable,
} from './problems.ts'
import { isScalar, readScalar, type Scalar, writeScalar } from './scalars.ts'

/** Reads JSV as `writeJsv` writes it, and as people type it into a query. */

/** Undefined for an invalid text. Nests no deeper than the schema, in time linear in the length of the text. */
export const readJsv = (schema: Schema, text: string): unknown =>
  reading(text, (cursor) => {
    const value = readValue(schema, cursor, '')
    if (cursor.at < text.length) throw malformed
    return value
  })

/** The items of `a,b` or `[a,b]`. The brackets are optional in a query (N6). */
export const readJsvItems = (item: Schema, text: string): readonly unknown[] | undefined =>
  reading(text, (cursor) => {
    skipBlanks(cursor)
    if (text[cursor.at] === '[') {
      const items = readList(item, cursor)
      if (cursor.at < text.length) throw malformed
      return items
    }
    cursor.at = 0
    const items: unknown[] = []
    for (;;) {
      items.push(present(readValue(item, cursor, ',')))
      if (cursor.at === text.length) return items
      expect(cursor, ',')
    }
  })

type Cursor = { readonly text: string; at: number }

const malformed = new Error('not JSV')

const reading = <T>(text: string, read: (cursor: Cursor) => T): T | undefined => {
  try {
    return read({ text, at: 0 })
  } catch (error) {
    if (error === malformed) return undefined
    throw error
  }
}

/** `ends` are the characters that end an unquoted value here. Returns undefined for an empty unquoted value: unset. */
const readValue = (schema: Schema, cursor: Cursor, ends: string): unknown => {
  if (isScalar(schema)) return readToken(schema, cursor, ends)
  skipBlanks(cursor)
  if (schema.kind === 'list') return readList(schema.item, cursor)
  return schema.kind === 'map' ? readMap(cursor) : readDto(schema, cursor)
}

const readToken = (schema: Scalar, cursor: Cursor, ends: string): unknown => {
  const { text, quoted } = token(cursor, ends)
  if (text === '' && (schema.kind !== 'text' || !quoted)) return undefined
  return present(readScalar(schema, text))
}

const readList = (item: Schema, cursor: Cursor): readonly unknown[] => {
  const items: unknown[] = []
  expect(cursor, '[')
  if (closed(cursor, ']')) return items
  do items.push(present(readValue(item, cursor, ',]')))
  while (took(cursor, ','))
  close(cursor, ']')
  return items
}

const readMap = (cursor: Cursor): Record<string, string> => {
  const entries: Record<string, string> = {}
  expect(cursor, '{')
  if (closed(cursor, '}')) return entries
  do {
    const key = token(cursor, ':,}').text
    if (isForbiddenKey(key) || !key.isWellFormed() || Object.hasOwn(entries, key)) throw malformed
    expect(cursor, ':')
    const value = token(cursor, ',}').text
    if (!value.isWellFormed()) throw malformed
    entries[key] = value
  } while (took(cursor, ','))
  close(cursor, '}')
  return entries
}

const readDto = (schema: Dto, cursor: Cursor): Record<string, unknown> => {
  const pairs: [string, unknown][] = []
  expect(cursor, '{')
  if (closed(cursor, '}')) return {}
  do {
    const name = token(cursor, ':,}').text.trim()
    expect(cursor, ':')
    const member = memberNamed(schema, name)
    if (member) pairs.push([name, readValue(member.schema, cursor, ',}')])
    else skipValue(cursor)
  } while (took(cursor, ','))
  close(cursor, '}')
  const values: Record<string, unknown> = {}
  for (const { member, values: texts } of pick(schema, pairs)) {
    const value = texts.at(-1)
    if (value !== undefined) values[member.name] = value
  }
  return values
}

/**
 * A quoted text, or everything up to one of `ends`. Blanks belong to an unquoted text, but a quote after them begins a
 * quoted one: JSV never writes a quote inside an unquoted text.
 */
const token = (cursor: Cursor, ends: string): { text: string; quoted: boolean } => {
  const { text } = cursor
  const start = cursor.at
  skipBlanks(cursor)
  if (text[cursor.at] === '"') {
    const quoted = readQuoted(cursor)
    skipBlanks(cursor)
    return { text: quoted, quoted: true }
  }
  cursor.at = start
  while (cursor.at < text.length && !ends.includes(text.charAt(cursor.at))) cursor.at++
  return { text: text.slice(start, cursor.at), quoted: false }
}

const readQuoted = (cursor: Cursor): string => {
  const start = cursor.at + 1
  let end = cursor.text.indexOf('"', start)
  while (end !== -1 && cursor.text[end + 1] === '"') end = cursor.text.indexOf('"', end + 2)
  if (end === -1) throw malformed
  cursor.at = end + 1
  return cursor.text.slice(start, end).replaceAll('""', '"')
}

/** Skips the value of an unknown property, at any depth. */
const skipValue = (cursor: Cursor): void => {
  for (let depth = 0; cursor.at < cursor.text.length; cursor.at++) {
    const char = cursor.text.charAt(cursor.at)
    if (char === '"') {
      readQuoted(cursor)
      cursor.at--
    } else if (char === '{' || char === '[') depth++
    else if (depth === 0 && (char === ',' || char === '}')) return
    else if (char === '}' || char === ']') depth--
  }
}

const skipBlanks = (cursor: Cursor): void => {
  while (cursor.text[cursor.at] === ' ') cursor.at++
}

const took = (cursor: Cursor, char: string): boolean => {
  if (cursor.text[cursor.at] !== char) return false
  cursor.at++
  return true
}

const expect = (cursor: Cursor, char: string): void => {
  if (!took(cursor, char)) throw malformed
}

/** A closing bracket and any blanks after it. */
const closed = (cursor: Cursor, bracket: string): boolean => {
  if (!took(cursor, bracket)) return false
  skipBlanks(cursor)
  return true
}

const close = (cursor: Cursor, bracket: string): void => {
  if (!closed(cursor, bracket)) throw malformed
}

const present = (value: unknown): unknown => {
  if (value === undefined) throw malformed
  return value
}

/** JSV is the text of nested values in CSV cells and query parameters (F3, N6): `{Name:value,…}`, `[a,b]`. */

const special = /[":,{}[\]\r\n]/

const writeText = (text: string): string =>
  text === '' || special.test(text) ? `"${text.replaceAll('"', '""')}"` : text

/** Undefined for a value without a text, e.g. NaN. */
export const writeJsv = (schema: Schema, value: unknown): string | undefined => {
  if (value === undefined || value === null) return undefined
  switch (schema.kind) {
    case 'text':
      return writeText(value as string)
    case 'list':
      return `[${(value as readonly unknown[])
        .map((item) => writeJsv(schema.item, item))
        .filter((item) => item !== undefined)
        .join(',')}]`
    case 'map':
      return `{${Object.entries(value)
        .map(([key, text]) => `${writeText(key)}:${writeText(String(text))}`)
        .join(',')}}`
    case 'dto':
      return `{${membersOf(schema)
        .map((member) => [member.name, writeJsv(member.schema, (value as Record<string, unknown>)[member.name])])
        .filter(([, text]) => text !== undefined)
        .map(([name, text]) => `${name}:${text}`)
        .join(',')}}`
    default:
      return writeScalar(schema, value)
  }
}

/** JSV as a format of bodies (F6). */

const encode = (schema: Dto, value: unknown, trailing?: Trailing): string => {
  const own = writeJsv(schema, value) ?? '{}'
  const more = trailing ? (writeJsv(trailing.schema, trailing.value) ?? '{}') : '{}'
  if (more === '{}') return own
  return own === '{}' ? more : `${own.slice(0, -1)},${more.slice(1)}`
}

/** Strict, for requests: one 400 names every invalid member (H3). */
export const decodeJsv = (schema: Dto, body: string): WireValues => {
  const pairs = parsed(schema, body, membersAt)
  const values: WireValues = {}
  const problems: FieldFault[] = []
  for (const { member, written, values: texts } of pickFromRequest(schema, pairs)) {
    // Blanks belong to texts only.
    const text = member.schema.kind === 'text' ? (texts.at(-1) ?? '') : (texts.at(-1) ?? '').trim()
    if (text === '' || (text === '""' && member.schema.kind !== 'text')) continue
    const value = readJsv(member.schema, text)
    if (value !== undefined) values[member.name] = value
    else problems.push(problemOf(member.schema, written, text))
  }
  if (problems.length > 0) throw unbindable(schema, problems)
  return values
}

/** Other texts than these may be secrets. */
const problemOf = (schema: Schema, written: string, text: string): FieldFault =>
  schema.kind === 'choice' || schema.kind === 'date' || schema.kind === 'duration'
    ? invalidValue(written, text)
    : typeMismatch(written, schema)

/** The requests of a batch, each read in its turn. */
export const jsvRequests = (schema: Dto, body: string): readonly (() => WireValues)[] =>
  parsed(schema, body, itemsAt).map((item) => () => decodeJsv(schema, item))

const parsed = <T>(schema: Dto, body: string, read: (cursor: Cursor) => T): T => {
  const text = body.trim()
  const value = reading(text, (cursor) => {
    const value = read(cursor)
    if (cursor.at < text.length) throw malformed
    return value
  })
  // Without a cause and an excerpt: the body may hold a password.
  if (value === undefined) throw undeserialisable(schema, 'application/jsv', 'the body is not valid JSV')
  return value
}

/** The members of a body: their names and their values as written. */
const membersAt = (cursor: Cursor): readonly (readonly [name: string, text: string])[] => {
  const members: [string, string][] = []
  passObject(cursor, { depth: 0, under: '' }, (name, text) => members.push([name, text]))
  return members
}

const itemsAt = (cursor: Cursor): readonly string[] => {
  const items: string[] = []
  passList(cursor, { depth: 0, under: '' }, (text) => items.push(text))
  return items
}

/** How deep a value lies, and the member of the body that contains it. */
type Place = { readonly depth: number; readonly under: string }

/**
 * Passes over a value of any shape, known or not. Refuses what every body is refused for: deep nesting, keys with a
 * special meaning in JavaScript (S4), and names that an object contains twice (S2).
 */
const passValue = (cursor: Cursor, ends: string, place: Place): void => {
  const start = cursor.at
  skipBlanks(cursor)
  const first = cursor.text[cursor.at]
  if (first === '{') passObject(cursor, place)
  else if (first === '[') passList(cursor, place)
  else {
    cursor.at = start
    token(cursor, ends)
  }
}

const passObject = (cursor: Cursor, { depth, under }: Place, each?: (name: string, text: string) => void): void => {
  if (depth === limits.depth) throw nestedTooDeeply(under)
  const names = new Set<string>()
  expect(cursor, '{')
  if (closed(cursor, '}')) return
  do {
    const written = token(cursor, ':,}').text
    // Blanks belong to the keys of a map. Only members of the schema are at the top.
    const name = each ? written.trim() : written
    if (isForbiddenKey(name)) throw badRequest([forbiddenName(name)])
    if (names.has(name)) throw badRequest([repeatedName(name)])
    names.add(name)
    expect(cursor, ':')
    const start = cursor.at
    passValue(cursor, ',}', { depth: depth + 1, under: each ? name : under })
    each?.(name, cursor.text.slice(start, cursor.at))
  } while (took(cursor, ','))
  close(cursor, '}')
}

const passList = (cursor: Cursor, { depth, under }: Place, each?: (text: string) => void): void => {
  if (depth === limits.depth) throw nestedTooDeeply(under)
  expect(cursor, '[')
  skipBlanks(cursor)
  if (closed(cursor, ']')) return
  do {
    const start = cursor.at
    passValue(cursor, ',]', { depth: depth + 1, under })
    each?.(cursor.text.slice(start, cursor.at))
  } while (took(cursor, ','))
  close(cursor, ']')
}

export const jsv: Format = {
  name: 'jsv',
  contentType: 'application/jsv; charset=utf-8',
  encode,
  decode: decodeJsv,
  join: joinAsList,
}
