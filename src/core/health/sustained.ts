import { showDuration } from './judge.ts'
import type { Finding } from './monitor.ts'

/** Since when each of the keys holds; undefined where nothing is kept. With `hold` no other is forgotten. */
type Since = (keys: readonly string[], hold: boolean) => Promise<ReadonlyMap<string, number> | undefined>

/**
 * A threshold that is passed counts only once it has been passed at every look for longer than `forMs`:
 * until then it is told and well. Whatever else fails, a refused connection or a wrong answer, counts at
 * once; so does a threshold where nothing is kept from run to run.
 */
export async function sustained(
  findings: readonly Finding[],
  { forMs, at }: { readonly forMs: number; readonly at: number },
  since: Since,
): Promise<readonly Finding[]> {
  const passed = findings.filter(passes)
  // A look that was refused has not found that all is well.
  const blind = findings.some((finding) => finding.level === 'fail' && !passes(finding))
  const known = await since([...new Set(passed.map(keyOf))], blind)
  return findings.map((finding) => {
    if (!passes(finding)) return finding
    const from = known?.get(keyOf(finding))
    return judged(finding, from === undefined ? undefined : Math.max(0, at - from), forMs)
  })
}

const passes = ({ level, fault }: Finding): boolean => level === 'warn' || (level === 'fail' && fault === 'threshold')

/** What a finding is about; a run of findings that are about the same is one. */
const keyOf = ({ check, subject = '', address = '' }: Finding): string => JSON.stringify([check, subject, address])

function judged(finding: Finding, passedMs: number | undefined, forMs: number): Finding {
  const { message, details = [] } = finding
  if (passedMs === undefined) {
    const unknown = `it counts at once, though \`for\` says ${showDuration(forMs)}: nothing is kept here from run to run (svc serve, or svc users add, makes a store)`
    return { ...finding, details: [...details, unknown] }
  }
  const long = passedMs === 0 ? 'for the first time now' : `for ${showDuration(passedMs)} now`
  if (passedMs > forMs) return { ...finding, message: `${message}, ${long}` }
  const { fault: _fault, ...rest } = finding
  return { ...rest, level: 'ok', message: `${message}, ${long}: counts after ${showDuration(forMs)}` }
}
