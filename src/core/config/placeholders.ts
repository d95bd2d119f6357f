import { isIP } from 'node:net'
import { isMap } from '../health/index.ts'

/** `${name}`; `$${name}` is the text `${name}`. */
const placeholder = /\$(\$?)\{([^{}]*)\}/g
const alone = /^\$\{([^{}]*)\}$/

/** The names that stand in a value, at any depth, keys included. */
export function namesIn(value: unknown): readonly string[] {
  if (typeof value === 'string')
    return [...value.matchAll(placeholder)].flatMap(([, dollar, name]) => (dollar ? [] : [name ?? '']))
  if (Array.isArray(value)) return value.flatMap(namesIn)
  return isMap(value) ? Object.entries(value).flatMap(([key, inner]) => [...namesIn(key), ...namesIn(inner)]) : []
}

/** The names that stand within a text, or in a key, where only what is a text by nature can go. */
export function namesWithinText(value: unknown): readonly string[] {
  if (typeof value === 'string') return alone.test(value) ? [] : namesIn(value)
  if (Array.isArray(value)) return value.flatMap(namesWithinText)
  if (!isMap(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => [...namesIn(key), ...namesWithinText(inner)])
}

/** The name, where a value is nothing but `${name}`. */
export const nameAlone = (value: unknown): string | undefined =>
  typeof value === 'string' ? alone.exec(value)?.[1] : undefined

/**
 * Puts values where their names stand. A value that is only `${name}` becomes what was given, of
 * whatever type; where nothing was given, it is left out of its map or list, and so is a map or list
 * of which nothing else remains.
 */
export function fill(value: unknown, values: ReadonlyMap<string, unknown>): unknown {
  const name = nameAlone(value)
  if (name !== undefined) return values.get(name)
  if (typeof value === 'string') return fillText(value, values)
  if (Array.isArray(value)) {
    const filled = value.map((item) => fill(item, values)).filter((item) => item !== undefined)
    return filled.length === 0 && value.length > 0 ? undefined : filled
  }
  if (!isMap(value)) return value
  const entries = Object.entries(value).flatMap(([key, inner]) => {
    const filled = fill(inner, values)
    return filled === undefined ? [] : [[fillText(key, values), filled] as const]
  })
  return entries.length === 0 && Object.keys(value).length > 0 ? undefined : Object.fromEntries(entries)
}

function fillText(text: string, values: ReadonlyMap<string, unknown>): string {
  const isUrl = text.includes('://')
  return text.replace(placeholder, (written, dollar: string, name: string) => {
    if (dollar !== '') return written.slice(1)
    const value = values.get(name)
    const given = ['string', 'number', 'boolean'].includes(typeof value)
      ? String(value as string | number | boolean)
      : ''
    return isUrl && isIP(given) === 6 ? `[${given}]` : given
  })
}
