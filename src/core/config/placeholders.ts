import { isIP } from 'node:net'
import { isMap, type Problem } from '../base/settings/index.ts'

/** `${name}`. `$${name}` is the literal text `${name}`. */
const placeholder = /\$(\$?)\{([^{}]*)\}/g
const alone = /^\$\{([^{}]*)\}$/

/** The placeholder names in a value, at any depth, keys included. */
export function namesIn(value: unknown): readonly string[] {
  if (typeof value === 'string')
    return [...value.matchAll(placeholder)].flatMap(([, dollar, name]) => (dollar ? [] : [name ?? '']))
  if (Array.isArray(value)) return value.flatMap(namesIn)
  return isMap(value) ? Object.entries(value).flatMap(([key, inner]) => [...namesIn(key), ...namesIn(inner)]) : []
}

/** The placeholder names within a longer text or in a key, where only text-like values can go. */
export function namesWithinText(value: unknown): readonly string[] {
  if (typeof value === 'string') return alone.test(value) ? [] : namesIn(value)
  if (Array.isArray(value)) return value.flatMap(namesWithinText)
  if (!isMap(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => [...namesIn(key), ...namesWithinText(inner)])
}

/** The name, if a value is only `${name}`. */
export const nameAlone = (value: unknown): string | undefined =>
  typeof value === 'string' ? alone.exec(value)?.[1] : undefined

/** Whether a name has a value. A flag counts when it is on. */
export const isPresent = (name: string, values: ReadonlyMap<string, unknown>): boolean =>
  values.get(name) !== undefined && values.get(name) !== false

/** The key of a list item that names the parameters it depends on. */
const whenKey = 'when'
/** The names of a `when:`. An invalid entry becomes a name that does not exist. */
const namesOf = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? (value as readonly unknown[]) : [value]).map((name) =>
    typeof name === 'string' ? name : (JSON.stringify(name) ?? ''),
  )

/** The names in every `when:` of list items, at any depth below the monitor's own. */
export function conditionsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) {
    const own = value.flatMap((item) => (isMap(item) && Object.hasOwn(item, whenKey) ? namesOf(item[whenKey]) : []))
    return [...own, ...value.flatMap(conditionsIn)]
  }
  return isMap(value) ? Object.values(value).flatMap(conditionsIn) : []
}

/** A list item without its `when:`, or undefined when a named parameter is not given. */
function due(item: unknown, values: ReadonlyMap<string, unknown>): unknown {
  if (!isMap(item) || !Object.hasOwn(item, whenKey)) return item
  const { [whenKey]: names, ...rest } = item
  return namesOf(names).every((name) => isPresent(name, values)) ? rest : undefined
}

/**
 * Replaces placeholders with values. A value that is only `${name}` becomes the given value, of any type. Without a
 * given value it is removed from its map or list, and so is a map or list that becomes empty. A list item with `when:`
 * is removed unless all parameters named there are given.
 */
export function fill(value: unknown, values: ReadonlyMap<string, unknown>): unknown {
  const name = nameAlone(value)
  if (name !== undefined) return values.get(name)
  if (typeof value === 'string') return fillText(value, values)
  if (Array.isArray(value)) {
    const filled = value.map((item) => fill(due(item, values), values)).filter((item) => item !== undefined)
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
    const isScalar = ['string', 'number', 'boolean'].includes(typeof value)
      ? String(value as string | number | boolean)
      : ''
    return isUrl && isIP(isScalar) === 6 ? `[${isScalar}]` : isScalar
  })
}

type Written = {
  /** The path in the value as written, counting the items that `fill` removed. */
  readonly path: Problem['path']
  /** The value at the path, or the last one on the way to it. */
  readonly value: unknown
}

/** Maps a path in the result of `fill` to the path in the value as written. */
export function writtenAt(value: unknown, path: Problem['path'], values: ReadonlyMap<string, unknown>): Written {
  const written = [...path]
  let result = value
  for (const [index, step] of path.entries()) {
    if (Array.isArray(result) && typeof step === 'number') {
      const indexes = result.flatMap((item: unknown, at) => (fill([item], values) === undefined ? [] : [at]))
      const at = indexes[step] ?? step
      written[index] = at
      result = result[at] as unknown
    } else if (isMap(result) && Object.hasOwn(result, step)) result = result[step]
    else break
  }
  return { path: written, value: result }
}
