/** JSON of others: what its text tells before and besides parsing, and its objects. Nothing here throws for any text. */

/** An object of parsed JSON. */
export type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * A member of an object in a parsed document. Inherited names such as `constructor` are none.
 *
 * @example
 * ```ts
 * member({ status: 'up' }, 'status') // 'up'
 * member({}, 'constructor') // undefined
 * ```
 */
export const member = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined

const longDigits = /\d{16}/
/** Digits of the longest integer that keeps them: a longer one costs more than it tells. */
const maxDigits = 1_000

/**
 * Parses JSON like JSON.parse, but integers beyond 2⁵³ become bigints, so that they keep their digits. Throws a
 * SyntaxError.
 *
 * @example
 * ```ts
 * parseExactly('[9007199254740993, 1.5]') // [9007199254740993n, 1.5]
 * ```
 */
export const parseExactly = (text: string): unknown => JSON.parse(text, longDigits.test(text) ? exactly : undefined)

// The types of JavaScript that we compile with do not have the third argument yet.
const exactly = ((_: string, value: unknown, { source = '' }: { readonly source?: string }) =>
  typeof value === 'number' && !Number.isSafeInteger(value) && source.length <= maxDigits && /^-?\d+$/.test(source)
    ? BigInt(source)
    : value) as (key: string, value: unknown) => unknown

/**
 * The JSON of a document that `parseExactly` has parsed.
 *
 * @example
 * ```ts
 * exactJson([9007199254740993n]) // '[9007199254740993]'
 * ```
 */
export const exactJson = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? raw(part) : part))
const raw = (integer: bigint): unknown =>
  (JSON as unknown as { readonly rawJSON: (text: string) => unknown }).rawJSON(String(integer))

const quote = 34
const comma = 44
const colon = 58
const backslash = 92
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125

/**
 * The top-level property under which JSON text nests deeper than so many levels, empty if there is none, or undefined.
 * Checked before parsing: a megabyte of brackets costs the parser half a second, and this scan a few milliseconds.
 *
 * @example
 * ```ts
 * tooDeepUnder('{"a": [[1]]}', 2) // 'a'
 * tooDeepUnder('{"a": [1]}', 2) // undefined
 * ```
 */
export const tooDeepUnder = (text: string, levels: number): string | undefined => {
  let depth = 0
  let topText = ''
  let topName = ''
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) {
      const start = at
      at = endOfString(text, at)
      if (depth === 1) topText = text.slice(start + 1, at)
    } else if (depth === 1 && char === colon) {
      // Only text before a colon is a name; other text may be a secret.
      topName = topText
    } else if (depth === 1 && char === comma) {
      topName = ''
    } else if (char === openBrace || char === openBracket) {
      depth++
      if (depth > levels) return topName
    } else if (char === closeBrace || char === closeBracket) depth--
  }
  return undefined
}

const endOfString = (text: string, start: number): number => {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === quote) return at
    if (char === backslash) at++
  }
  return text.length
}

/**
 * The first name that an object in JSON text contains twice, at any depth, or undefined. Names that differ in letter
 * case are different names. For text that has been parsed: a parser keeps the last value without a word.
 *
 * @example
 * ```ts
 * repeatedNameIn('{"a": 1, "a": 2}') // 'a'
 * ```
 */
export const repeatedNameIn = (text: string): string | undefined => {
  const open: (Set<string> | undefined)[] = []
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === openBrace || char === openBracket) open.push(undefined)
    else if (char === closeBrace || char === closeBracket) open.pop()
    else if (char === quote) {
      const start = at
      at = endOfString(text, at)
      if (!isName(text, at + 1)) continue
      const written = text.slice(start, at + 1)
      const name: string = written.includes('\\') ? JSON.parse(written) : written.slice(1, -1)
      const names = open[open.length - 1] ?? new Set()
      if (names.has(name)) return name
      open[open.length - 1] = names.add(name)
    }
  }
  return undefined
}

/** Whether the string that ends before `at` is followed by a colon. */
const isName = (text: string, at: number): boolean => {
  for (let next = at; next < text.length; next++) {
    const char = text.charCodeAt(next)
    if (char === colon) return true
    if (char !== 0x20 && char !== 0x0a && char !== 0x0d && char !== 0x09) return false
  }
  return false
}
