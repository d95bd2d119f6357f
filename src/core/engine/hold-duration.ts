import { showDuration } from '../format.ts'
import type { Result } from './result.ts'

/** Since when each of the keys holds; undefined where nothing is kept. With `hold` no other is forgotten. */
type Since = (keys: readonly string[], hold: boolean) => Promise<ReadonlyMap<string, number> | undefined>

/**
 * A threshold that is passed counts only once it has been passed at every look for longer than `forMs`:
 * until then it is told and well. Whatever else fails, a refused connection or a wrong answer, counts at
 * once; so does a threshold where nothing is kept from run to run.
 */
export async function holdDuration(
  results: readonly Result[],
  { forMs, at }: { readonly forMs: number; readonly at: number },
  since: Since,
): Promise<readonly Result[]> {
  const passed = results.filter(passes)
  // A look that was refused has not found that all is well.
  const blind = results.some((result) => result.status === 'failed' && !passes(result))
  const exceededSince = await since([...new Set(passed.map(keyOf))], blind)
  return results.map((result) => {
    if (!passes(result)) return result
    const from = exceededSince?.get(keyOf(result))
    return judged(result, from === undefined ? undefined : Math.max(0, at - from), forMs)
  })
}

const passes = ({ status, fault }: Result): boolean =>
  status === 'warning' || (status === 'failed' && fault === 'threshold')

/** What a finding is about; a run of findings that are about the same is one. */
const keyOf = ({ check, subject = '', address = '' }: Result): string => JSON.stringify([check, subject, address])

function judged(result: Result, passedMs: number | undefined, forMs: number): Result {
  const { message, details = [] } = result
  if (passedMs === undefined) {
    const unknown = `it counts at once, though \`for\` says ${showDuration(forMs)}: nothing is kept here from run to run (svc serve, or svc users add, makes a store)`
    return { ...result, details: [...details, unknown] }
  }
  const long = passedMs === 0 ? 'for the first time now' : `for ${showDuration(passedMs)} now`
  if (passedMs > forMs) return { ...result, message: `${message}, ${long}` }
  const { fault: _fault, ...rest } = result
  return { ...rest, status: 'ok', message: `${message}, ${long}: counts after ${showDuration(forMs)}` }
}
