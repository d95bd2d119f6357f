import type { Schema } from '../protocol/index.ts'
import { membersOf } from './fields.ts'
import { writeScalar } from './scalars.ts'

/** JSV, the text of nested values in CSV cells and query parameters (F3, N6): `{Name:value,…}`, `[a,b]`. */

const special = /[":,{}[\]\r\n]/

const writeText = (text: string): string =>
  text === '' || special.test(text) ? `"${text.replaceAll('"', '""')}"` : text

/** Undefined for a value that has no text, as NaN. */
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
