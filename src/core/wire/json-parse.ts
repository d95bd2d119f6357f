/** A key whose last escape is followed by its end: a text may match without one, but none is missed. */
const escapedKey = /\\.[^"\\]*"[ \t\r\n]*:/

/**
 * Parses JSON text that is known not to nest deeply. Throws a SyntaxError.
 *
 * V8 misreads a key with an escape once it has seen a key that ends in a backslash where this one has its escape
 * (`"\n"` comes out as `\`: nodejs/node#63785). So whoever spoke before could change what the next one says; texts with
 * such keys, which are rare, are taken apart here, and V8 reads only their strings and literals.
 */
export const parseJsonText = (text: string): unknown => (escapedKey.test(text) ? parseByToken(text) : JSON.parse(text))

export const parseByToken = (text: string): unknown => {
  const token = /[ \t\r\n]*([{}[\],:]|"[^"\\]*(?:\\.[^"\\]*)*"|[^ \t\r\n{}[\],:"]+)/y

  const next = (): string => {
    const found = token.exec(text)?.[1]
    if (found === undefined) throw new SyntaxError('unexpected text')
    return found
  }
  const value = (first: string): unknown => {
    if (first === '{') return object()
    return first === '[' ? array() : JSON.parse(first)
  }
  const object = (): object => {
    const entries: [string, unknown][] = []
    for (let key = next(); key !== '}' || entries.length > 0; key = next()) {
      if (!key.startsWith('"') || next() !== ':') throw new SyntaxError('a name and a colon are expected')
      entries.push([JSON.parse(key), value(next())])
      if (isLast('}')) break
    }
    return Object.fromEntries(entries)
  }
  const array = (): unknown[] => {
    const items: unknown[] = []
    for (let first = next(); first !== ']' || items.length > 0; first = next()) {
      items.push(value(first))
      if (isLast(']')) break
    }
    return items
  }
  const isLast = (bracket: string): boolean => {
    const separator = next()
    if (separator !== ',' && separator !== bracket) throw new SyntaxError(`a comma or ${bracket} is expected`)
    return separator === bracket
  }

  const whole = value(next())
  if (text.slice(token.lastIndex).replace(/^[ \t\r\n]+/, '') !== '') throw new SyntaxError('text after the end')
  return whole
}
