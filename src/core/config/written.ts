import { isMap, type Problem } from '../settings/index.ts'
import { fill } from './placeholders.ts'

type Written = {
  /** With the items counted that `fill` left out. */
  readonly path: Problem['path']
  /** What stands there, or the last that the path passes. */
  readonly value: unknown
}

/** Where in a value stands what `fill` made of it, at a path within that. */
export function writtenAt(value: unknown, path: Problem['path'], values: ReadonlyMap<string, unknown>): Written {
  const written = [...path]
  let found = value
  for (const [index, step] of path.entries()) {
    if (Array.isArray(found) && typeof step === 'number') {
      const kept = found.flatMap((item: unknown, at) => (fill([item], values) === undefined ? [] : [at]))
      const at = kept[step] ?? step
      written[index] = at
      found = found[at] as unknown
    } else if (isMap(found) && Object.hasOwn(found, step)) found = found[step]
    else break
  }
  return { path: written, value: found }
}
