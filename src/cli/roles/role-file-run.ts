import { exits, Fault } from '../../core/base/errors.ts'
import { uniqueId } from '../../core/base/format.ts'
import type { RowOutcome } from './lists.ts'
import { type Asking, changeRoles } from './role-change.ts'
import type { FileChange } from './role-file.ts'

/**
 * Makes the changes in a file, one after the other. A rejected row does not stop the others. When the caller, the
 * server or the store is the problem, the remaining rows are not tried.
 */
export async function applyFile(
  asking: Asking,
  changes: readonly FileChange[],
  after: (done: number) => void,
): Promise<readonly RowOutcome[]> {
  const outcomes: RowOutcome[] = []
  let over = false
  for (const change of changes) {
    if (over) {
      outcomes.push({ change })
      continue
    }
    try {
      const call = { ...asking.call, correlationId: uniqueId() }
      outcomes.push({ change, done: await changeRoles({ ...asking, call }, change) })
    } catch (error) {
      const stopped = asking.call.signal.aborted ? asking.call.signal.reason : error
      if (!(stopped instanceof Fault)) throw stopped
      outcomes.push({ change, fault: stopped })
      over = stopped.exitCode !== exits.rejected.code
    }
    after(outcomes.length)
  }
  return outcomes
}

/** 0 when all are done; 10 when only some are; else the code that the failures share. */
export function fileExit(outcomes: readonly RowOutcome[]): number {
  const faults = outcomes.flatMap(({ fault }) => fault ?? [])
  if (faults.length === 0) return exits.ok.code
  const codes = new Set(faults.map((fault) => fault.exitCode))
  if (codes.has(exits.interrupted.code)) return exits.interrupted.code
  const [only] = codes
  return outcomes.some(({ done }) => done) || codes.size > 1 || only === undefined ? exits.partial.code : only
}
