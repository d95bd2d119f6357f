import { showDuration } from '../../base/format.ts'
import { type Lasting, lastingSince } from '../../base/lasting.ts'
import type { Result } from './result.ts'

/**
 * The time since which each key holds. Undefined without a history. Of the other keys, only those that `holds` accepts
 * stay. `endings`: of the checks to which a time applies, those whose threshold is met.
 */
type Since = (
  keys: readonly string[],
  holds: (key: string) => boolean,
  endings: readonly string[],
) => Promise<ReadonlyMap<string, number> | undefined>

/**
 * An exceeded threshold counts only after every run has exceeded it for longer than `forMs`; until then the result is
 * ok and says so. Other failures, such as a refused connection or a wrong answer, count at once, and so does what was
 * not checked. Without a history, thresholds count at once too. `deeper`: the checks that need a deeper run, whose state
 * this one leaves alone. `only`: the checks to which it applies, if not to all; each of them has one result.
 */
export async function holdDuration(
  results: readonly Result[],
  {
    forMs,
    at,
    deeper,
    only,
  }: {
    readonly forMs: number
    readonly at: number
    readonly deeper: readonly string[]
    readonly only?: readonly string[] | undefined
  },
  since: Since,
): Promise<readonly Result[]> {
  const waits = (result: Result): boolean => passes(result) && (only === undefined || only.includes(result.check))
  const passed = results.filter(waits)
  // A failed or missing observation does not prove that the threshold is met again.
  const isBlind = (result: Result): boolean =>
    result.notChecked !== undefined || (result.status === 'failed' && !passes(result))
  const blind = only === undefined && results.some(isBlind)
  const unseen = only?.filter((check) => results.every((one) => one.check !== check || isBlind(one))) ?? []
  const beginnings = [...deeper, ...unseen].map(beginningOf)
  const holds = (key: string): boolean => blind || beginnings.some((beginning) => key.startsWith(beginning))
  const endings =
    only?.filter((check) => results.some((one) => one.check === check && !isBlind(one) && !waits(one))) ?? []
  const exceededSince = await since([...new Set(passed.map(keyOf))], holds, endings)
  return results.map((result) => {
    // What could not be measured is neither exceeded nor met.
    if (only?.includes(result.check) && result.status === 'failed' && isBlind(result))
      return { ...result, notChecked: result.notChecked ?? 'missing' }
    if (!waits(result)) return result
    const from = exceededSince?.get(keyOf(result))
    return judged(result, from === undefined ? undefined : Math.max(0, at - from), forMs)
  })
}

/**
 * Since when each key holds, as this process saw it. `endings`: the checks whose threshold is no longer exceeded. `stored`: what the store
 * says, if it answers.
 */
export type ExceededHere = (
  state: Lasting & { readonly series: string; readonly endings: readonly string[] },
  stored: ReadonlyMap<string, number> | undefined,
) => ReadonlyMap<string, number>

/**
 * Keeps in memory since when thresholds are exceeded. The store knows what was before this process, and nothing of the
 * runs during which it did not answer: what this process has seen to end, it knows better.
 */
export function exceededInMemory(): ExceededHere {
  const bySeries = new Map<
    string,
    { readonly ended: ReadonlySet<string>; readonly since: ReadonlyMap<string, number> }
  >()
  return ({ series, endings, ...state }, stored) => {
    const before = bySeries.get(series)
    const ended = new Set([...(before?.ended ?? []), ...endings.map(beginningOf)])
    const hasEnded = (key: string): boolean => [...ended].some((beginning) => key.startsWith(beginning))
    const own = [...lastingSince(before?.since ?? new Map(), state)].map(([key, from]): readonly [string, number] => [
      key,
      hasEnded(key) ? from : Math.min(from, stored?.get(key) ?? from),
    ])
    const since = new Map(own)
    bySeries.set(series, { ended, since })
    return since
  }
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
