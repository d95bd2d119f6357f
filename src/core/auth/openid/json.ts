export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An own member of an object; undefined for anything else. */
export const member = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined

/**
 * Whether an object in a valid JSON text names a member twice. Two readers of such a text may see different values, so a
 * token with one is refused. Takes one pass.
 */
export function hasDuplicates(text: string): boolean {
  const open: (Set<string> | undefined)[] = []
  let at = 0
  while (at < text.length) {
    const one = text[at]
    if (one === '"') {
      const end = endOfString(text, at)
      const names = open.at(-1)
      colon.lastIndex = end
      if (names && colon.test(text)) {
        const name = JSON.parse(text.slice(at, end)) as string
        if (names.has(name)) return true
        names.add(name)
      }
      at = end
      continue
    }
    if (one === '{') open.push(new Set())
    else if (one === '[') open.push(undefined)
    else if (one === '}' || one === ']') open.pop()
    at += 1
  }
  return false
}

/** In valid JSON, it follows the names of members only. */
const colon = /[ \t\r\n]*:/y

/** The index after the closing quote. */
function endOfString(text: string, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}
