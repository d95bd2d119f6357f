import { atMost, type Result, warn } from '../engine/index.ts'
import { showDuration } from '../format.ts'
import type { Threshold } from '../settings/index.ts'

/** Milliseconds by which the clock of the machine that dates a file may be ahead of ours without a remark. */
const toleranceMs = 60_000

/** A file's age in milliseconds, negative if it is dated in the future, and its date. */
export type Age = { readonly ms: number; readonly at: Date }

/** Compares the age of a file with its threshold. A date in the future is a warning, because no age follows from it. */
export function evaluateAge<const Name extends string>(
  check: Name,
  what: string,
  { ms, at }: Age,
  threshold: Threshold,
): Result<Name> {
  if (ms >= -toleranceMs) return atMost({ check, what, value: Math.max(0, ms), unit: 'duration', at, threshold })
  const ahead = showDuration(-ms)
  const message = `${what} unknown: it is dated ${ahead} in the future; compare the clocks, or look at what dates the file`
  return warn(check, message)
}
