import { showDuration } from '../../base/format.ts'
import type { Result } from './result.ts'

/** The time since which each key holds. Undefined without a history. Of the other keys, only those that `holds` accepts stay. */
type Since = (
  keys: readonly string[],
  holds: (key: string) => boolean,
) => Promise<ReadonlyMap<string, number> | undefined>

/**
 * An exceeded threshold counts only after every run has exceeded it for longer than `forMs`; until then the result is
 * ok and says so. Other failures, such as a refused connection or a wrong answer, count at once, and so does what was
 * not checked. Without a history, thresholds count at once too. `deeper`: the checks that need a deeper run, whose state
 * this one leaves alone.
 */
export async function holdDuration(
  results: readonly Result[],
  { forMs, at, deeper }: { readonly forMs: number; readonly at: number; readonly deeper: readonly string[] },
  since: Since,
): Promise<readonly Result[]> {
  const passed = results.filter(passes)
  // A failed or missing observation does not prove that the threshold is met again.
  const blind = results.some(
    (result) => result.notChecked !== undefined || (result.status === 'failed' && !passes(result)),
  )
  const beginnings = deeper.map(beginningOf)
  const holds = (key: string): boolean => blind || beginnings.some((beginning) => key.startsWith(beginning))
  const exceededSince = await since([...new Set(passed.map(keyOf))], holds)
  return results.map((result) => {
    if (!passes(result)) return result
    const from = exceededSince?.get(keyOf(result))
    return judged(result, from === undefined ? undefined : Math.max(0, at - from), forMs)
  })
}

const passes = ({ status, fault, notChecked }: Result): boolean =>
  notChecked === undefined && (status === 'warning' || (status === 'failed' && fault === 'threshold'))

/** Identifies what a finding is about. Findings with the same key form one series. */
const keyOf = ({ check, subject = '', address = '' }: Result): string => JSON.stringify([check, subject, address])

/** The beginning of the keys of a check. */
const beginningOf = (check: string): string => `[${JSON.stringify(check)},`

function judged(result: Result, passedMs: number | undefined, forMs: number): Result {
  const { message, details = [] } = result
  if (passedMs === undefined) {
    const unknown = `counts immediately despite \`for\` (${showDuration(forMs)}): no store exists to keep values between runs (svc serve or svc users add creates one)`
    return { ...result, details: [...details, unknown] }
  }
  const long = passedMs === 0 ? 'exceeded for the first time' : `exceeded for ${showDuration(passedMs)}`
  if (passedMs > forMs) return { ...result, message: `${message}, ${long}`, isHeld: true }
  const { fault: _fault, ...rest } = result
  return { ...rest, status: 'ok', message: `${message}, ${long}: counts after ${showDuration(forMs)}` }
}
