import type { FieldFault } from '../../base/errors.ts'
import { type Dto, forbiddenKeys, isLonger, limits, type Schema, type Text } from '../index.ts'
import { membersOf } from './fields.ts'
import { badRequest, refusedField } from './problems.ts'

export const isForbiddenKey = (key: string): boolean => (forbiddenKeys as readonly string[]).includes(key)

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
  if (schema.kind === 'text' && tooLong(schema, value)) return `'${name}' may have at most ${schema.max} characters`
  if (schema.kind === 'list') {
    const items = value as readonly unknown[]
    const { item } = schema
    const max = item.kind === 'text' ? (item.max ?? limits.nameCharacters) : 0
    if (items.length > limits.listItems) return `'${name}' may have at most ${limits.listItems} entries`
    if (item.kind === 'text' && items.some((each) => isLonger(each as string, max))) {
      return `An entry of '${name}' may have at most ${max} characters`
    }
  }
  if (schema.kind === 'map') {
    const entries = Object.entries(value as Readonly<Record<string, string>>)
    if (entries.length > limits.metaEntries) return `'${name}' may have at most ${limits.metaEntries} entries`
    if (entries.some(([key]) => isLonger(key, limits.nameCharacters))) {
      return `A key of '${name}' may have at most ${limits.nameCharacters} characters`
    }
    if (entries.some(([, text]) => isLonger(text, limits.metaValueCharacters))) {
      return `An entry of '${name}' may have at most ${limits.metaValueCharacters} characters`
    }
  }
  return undefined
}

/** Whether a text is longer than its schema allows on arrival. */
const tooLong = ({ max, late }: Text, value: unknown): boolean =>
  max !== undefined && late !== true && typeof value === 'string' && isLonger(value, max)
