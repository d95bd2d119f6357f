import { noRedaction } from '../../base/net/text.ts'
import type { SettingsSpec } from '../../base/settings/index.ts'
import { isPattern, patternProblem, UnjudgedError, unmetEach } from './expectation.ts'

/** A setting that leaves out some of what a check finds by itself. `what` names them: `Replication slots`. */
export const skipSetting = <const What extends string>(what: What) =>
  ({
    type: 'texts',
    default: [],
    narrows: true,
    mistake: (text: string) => (isPattern(text) ? patternProblem(text) : undefined),
    doc: `${what} to leave out: names, or /patterns/ of names`,
  }) as const satisfies SettingsSpec[string]

/** Leaves out the entries that svc.yaml names. A pattern that is given up leaves out nothing. */
export function withoutSkipped<T>(
  all: readonly T[],
  nameOf: (one: T) => string,
  skipped: readonly string[],
): readonly T[] {
  return skipped.reduce((left, entry) => {
    if (!isPattern(entry)) return left.filter((one) => nameOf(one) !== entry)
    try {
      const mismatches = unmetEach(left.map(nameOf), entry, noRedaction)
      return left.filter((_, index) => mismatches[index] !== undefined)
    } catch (error) {
      if (error instanceof UnjudgedError) return left
      throw error
    }
  }, all)
}
