import { isIP } from 'node:net'
import { isMap, type Problem } from '../settings/index.ts'

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

/** Whether something is given for a name; a flag counts when it is on. */
export const isPresent = (name: string, values: ReadonlyMap<string, unknown>): boolean =>
  values.get(name) !== undefined && values.get(name) !== false

/** The key of an item of a list that names what it is left out without. */
const whenKey = 'when'
/** The names; what is none becomes one that nobody has. */
const namesOf = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? (value as readonly unknown[]) : [value]).map((name) =>
    typeof name === 'string' ? name : (JSON.stringify(name) ?? ''),
  )

/** What `when:` of the items of lists says, at any depth below the monitor's own. */
export function conditionsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) {
    const own = value.flatMap((item) => (isMap(item) && Object.hasOwn(item, whenKey) ? namesOf(item[whenKey]) : []))
    return [...own, ...value.flatMap(conditionsIn)]
  }
  return isMap(value) ? Object.values(value).flatMap(conditionsIn) : []
}

/** An item of a list without its `when:`, or undefined where that leaves it out. */
function due(item: unknown, values: ReadonlyMap<string, unknown>): unknown {
  if (!isMap(item) || !Object.hasOwn(item, whenKey)) return item
  const { [whenKey]: names, ...rest } = item
  return namesOf(names).every((name) => isPresent(name, values)) ? rest : undefined
}

/**
 * Puts values where their names stand. A value that is only `${name}` becomes what was given, of
 * whatever type; where nothing was given, it is left out of its map or list, and so is a map or list
 * of which nothing else remains. An item of a list may name with `when:` what it is left out without.
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
  /** With the items counted that `fill` left out. */
  readonly path: Problem['path']
  /** What stands there, or the last that the path passes. */
  readonly value: unknown
}

/** Where in a value stands what `fill` made of it, at a path within that. */
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
