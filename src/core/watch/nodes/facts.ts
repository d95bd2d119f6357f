import type { NodeFacts } from './types.ts'

/** Characters. A node that asks and answers as much as it may has fewer. */
export const maxFacts = 1_048_576
/** The last instant of JavaScript, in milliseconds since 1970. */
const maxTime = 8_640_000_000_000_000

type Shape = Readonly<Record<string, (value: unknown) => boolean>>

const isText = (value: unknown): boolean => typeof value === 'string'
const isNumber = (value: unknown): boolean => Number.isSafeInteger(value)
const isFlag = (value: unknown): boolean => typeof value === 'boolean'
const optional =
  (is: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === undefined || is(value)
const has =
  (shape: Shape) =>
  (value: unknown): boolean =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(shape).every(([name, is]) => is((value as Readonly<Record<string, unknown>>)[name]))
const listOf =
  (is: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(is)

const subject = { key: isText, check: isText, item: optional(isText) }
const isFacts = has({
  version: isText,
  url: optional(isText),
  peer: optional(isText),
  digest: optional(isText),
  startedAt: (value) => typeof value === 'number' && Math.abs(value) <= maxTime,
  crossChecks: optional(
    has({
      questions: listOf(has({ ...subject, id: isNumber, node: isText, depth: isText })),
      answers: listOf(has({ id: isNumber, reaches: isFlag, node: isText, epoch: isNumber })),
    }),
  ),
})

/**
 * The facts in a row of a node, which another version, a broken disk or an administrator may have written. Undefined for any
 * text that no node of this version would write. Never throws.
 *
 * @example
 * ```ts
 * factsIn('{"version":"1.0.0","startedAt":1}')?.version // '1.0.0'
 * factsIn('{"version":1}') // undefined
 * ```
 */
export function factsIn(text: string): NodeFacts | undefined {
  if (text.length > maxFacts) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isFacts(value) ? (value as NodeFacts) : undefined
  } catch {
    return undefined
  }
}
