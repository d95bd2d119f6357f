const step = /\.([\p{L}_$@-][\p{L}\p{N}_$@-]*)|\[(\d{1,9})\]|\[(?:'([^']*)'|"([^"]*)")\]/uy

/**
 * The steps of a JSON path: `$.a.b[0].c`, `$['a b']`. No wildcards, filters or slices: one path
 * names one value. Undefined when it cannot be read.
 */
export function parseJsonPath(path: string): readonly (string | number)[] | undefined {
  if (!path.startsWith('$')) return undefined
  const steps: (string | number)[] = []
  let at = 1
  while (at < path.length) {
    step.lastIndex = at
    const found = step.exec(path)
    if (!found) return undefined
    const [whole, name, index, single, double] = found
    steps.push(index === undefined ? (name ?? single ?? double ?? '') : Number(index))
    at += whole.length
  }
  return steps
}

/** The value at a path, in an object of its own: `undefined` says that nothing is there. */
export function readJsonPath(
  document: unknown,
  steps: readonly (string | number)[],
): { readonly value: unknown } | undefined {
  let value = document
  for (const name of steps) {
    if (typeof value !== 'object' || value === null) return undefined
    if (typeof name === 'number' ? !Array.isArray(value) : Array.isArray(value)) return undefined
    if (!Object.hasOwn(value, name)) return undefined
    value = (value as Record<string | number, unknown>)[name]
  }
  return { value }
}

/**
 * Everything at a path that may hold `[*]`, each element of a list: `$.Services[*].State`. Undefined
 * when the path cannot be read.
 */
export function selectJson(document: unknown, path: string): readonly unknown[] | undefined {
  const parts = path.split('[*]')
  let values: readonly unknown[] = [document]
  for (const [index, part] of parts.entries()) {
    const steps = parseJsonPath(index === 0 ? part : `$${part}`)
    if (steps === undefined) return undefined
    values = values.flatMap((value) => {
      const found = readJsonPath(value, steps)
      if (found === undefined || index === parts.length - 1) return found === undefined ? [] : [found.value]
      return Array.isArray(found.value) ? (found.value as readonly unknown[]) : []
    })
  }
  return values
}

/** A JSON value as expectations see it: a string bare, anything else as JSON. */
export const jsonText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
