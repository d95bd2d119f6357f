import type { FieldFault } from '../errors.ts'
import type { Dto, Schema } from '../protocol/index.ts'
import { membersOf } from './fields.ts'
import { badRequest, refusedField } from './problems.ts'

/** Limits on requests (S4). Answers have none. */
export const limits = {
  depth: 32,
  listItems: 256,
  nameCharacters: 128,
  metaEntries: 64,
  metaValueBytes: 1024,
  /** Parameters of one query or form. */
  parameters: 1024,
  /** Cells of a CSV row. */
  columns: 256,
} as const

/** Keys with a special meaning in JavaScript, refused wherever clients choose the keys. */
export const isForbiddenKey = (key: string): boolean =>
  key === '__proto__' || key === 'constructor' || key === 'prototype'

/** The fields that hold names. The items of text lists are names as well. */
const nameFields: ReadonlySet<string> = new Set(['provider', 'UserName'])

/** Returns the request, or throws a 400 that names every field beyond its limit. */
export const withinLimits = <V extends Record<string, unknown>>(schema: Dto, values: V): V => {
  const [first, ...rest] = membersOf(schema).flatMap((member) => {
    const message = excess(member.name, member.schema, values[member.name])
    return message === undefined ? [] : [refusedField(member.name, message)]
  })
  if (first) throw badRequest([first, ...rest] satisfies [FieldFault, ...FieldFault[]])
  return values
}

const excess = (name: string, schema: Schema, value: unknown): string | undefined => {
  if (value === undefined) return undefined
  if (typeof value === 'string' && nameFields.has(name) && value.length > limits.nameCharacters) {
    return `'${name}' may have at most ${limits.nameCharacters} characters`
  }
  if (schema.kind === 'list') {
    const items = value as readonly unknown[]
    if (items.length > limits.listItems) return `'${name}' may have at most ${limits.listItems} entries`
    if (items.some((item) => typeof item === 'string' && item.length > limits.nameCharacters)) {
      return `An entry of '${name}' may have at most ${limits.nameCharacters} characters`
    }
  }
  if (schema.kind === 'map') {
    const entries = Object.entries(value as Readonly<Record<string, string>>)
    if (entries.length > limits.metaEntries) return `'${name}' may have at most ${limits.metaEntries} entries`
    if (entries.some(([key]) => key.length > limits.nameCharacters)) {
      return `A key of '${name}' may have at most ${limits.nameCharacters} characters`
    }
    if (entries.some(([, text]) => Buffer.byteLength(text) > limits.metaValueBytes)) {
      return `An entry of '${name}' may have at most ${limits.metaValueBytes} bytes`
    }
  }
  return undefined
}
