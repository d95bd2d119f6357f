import { tooDeepUnder } from '../json.ts'

/**
 * Maximum levels of a JSON document from a peer. Functions that walk through a document call themselves once for each
 * level, and a document of a few kilobytes could otherwise exhaust the stack. The documents of services have about ten.
 */
export const deepestJson = 100

export type JsonRead =
  | { readonly json: unknown }
  /** `tooDeep`: more than the levels allowed, whether or not the rest is JSON. */
  | { readonly problem: 'invalid' | 'tooDeep' }

/**
 * Parses a JSON text from a peer, with or without a byte order mark, up to `deepest` levels. Never throws. `parse` is
 * `parseExactly` where integers are compared by their digits.
 *
 * @example
 * ```ts
 * readJson('{"up": true}') // { json: { up: true } }
 * ```
 */
export function readJson(
  written: string,
  deepest = deepestJson,
  parse: (text: string) => unknown = JSON.parse,
): JsonRead {
  const text = written.startsWith('\uFEFF') ? written.slice(1) : written
  if (tooDeepUnder(text, deepest) !== undefined) return { problem: 'tooDeep' }
  try {
    return { json: parse(text) }
  } catch {
    return { problem: 'invalid' }
  }
}
