import { isForbiddenKey, limits } from './limits.ts'

const quote = 34
const comma = 44
const colon = 58
const backslash = 92
const openBracket = 91
const closeBracket = 93
const openBrace = 123
const closeBrace = 125

/**
 * The top-level property under which JSON text nests deeper than 32 (S4), empty where it is under none, or undefined.
 * Looked at before parsing: a megabyte of brackets costs the parser half a second, and this scan a few milliseconds.
 */
export const tooDeepUnder = (text: string): string | undefined => {
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
      // Only what a colon follows is a name: any other text may be a secret.
      topName = topText
    } else if (depth === 1 && char === comma) {
      topName = ''
    } else if (char === openBrace || char === openBracket) {
      depth++
      if (depth > limits.depth) return topName
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

/** The first key anywhere in a parsed value that JavaScript gives a meaning of its own, or undefined. */
export const forbiddenKeyIn = (json: unknown): string | undefined => {
  if (typeof json !== 'object' || json === null) return undefined
  if (Array.isArray(json)) {
    for (const item of json) {
      const found = forbiddenKeyIn(item)
      if (found !== undefined) return found
    }
    return undefined
  }
  for (const [key, value] of Object.entries(json)) {
    const found = isForbiddenKey(key) ? key : forbiddenKeyIn(value)
    if (found !== undefined) return found
  }
  return undefined
}
