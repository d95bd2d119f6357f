import type { Data } from '../../../src/core/store/index.ts'

/** The store, with the names of the methods that are called. */
export function recorded(data: Data, calls: string[]): Data {
  const part = (path: string, value: unknown): unknown => {
    if (typeof value === 'function') {
      return (...parts: readonly unknown[]) => {
        calls.push(path)
        return Reflect.apply(value, undefined, parts)
      }
    }
    if (typeof value !== 'object' || value === null) return value
    // A group of queries is inherited: the store makes it on its first use.
    const copy: Record<string, unknown> = {}
    for (const name in value) copy[name] = part(`${path}.${name}`, Reflect.get(value, name))
    return copy
  }
  return part('data', data) as Data
}
