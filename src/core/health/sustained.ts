import { showDuration } from './judge.ts'
import type { Finding, World } from './monitor.ts'

/**
 * A threshold that is passed counts only once it has been passed at every look for longer than `forMs`:
 * until then it is told and well. Whatever else fails, a refused connection or a wrong answer, counts at
 * once; so does a threshold where nothing is kept from run to run.
 */
export async function sustained(
  findings: readonly Finding[],
  forMs: number,
  world: Pick<World, 'date' | 'history'>,
): Promise<readonly Finding[]> {
  const byCheck = Map.groupBy(findings, ({ check }) => check)
  const since = new Map(
    await Promise.all(
      [...byCheck].map(async ([check, those]) => [check, await passedFor(check, those, world)] as const),
    ),
  )
  return findings.map((finding) => (passes(finding) ? judged(finding, since.get(finding.check), forMs) : finding))
}

const passes = ({ level, fault }: Finding): boolean => level === 'warn' || (level === 'fail' && fault === 'threshold')

/** Milliseconds since the first of the looks that all found it so; undefined where that is not known. */
async function passedFor(
  check: string,
  findings: readonly Finding[],
  { date, history }: Pick<World, 'date' | 'history'>,
): Promise<number | undefined> {
  const now = date().getTime()
  const kept = await history(`for ${check}`, findings.some(passes) ? 1 : 0)
  const last = kept?.at(-1)
  return last && Math.max(0, now - last.at)
}

function judged(finding: Finding, passedMs: number | undefined, forMs: number): Finding {
  const { message, details = [] } = finding
  if (passedMs === undefined) {
    const unknown = `it counts at once, though \`for\` says ${showDuration(forMs)}: nothing is kept here from run to run`
    return { ...finding, details: [...details, unknown] }
  }
  const long = passedMs === 0 ? 'for the first time now' : `for ${showDuration(passedMs)} now`
  if (passedMs > forMs) return { ...finding, message: `${message}, ${long}` }
  const { fault: _fault, ...rest } = finding
  return { ...rest, level: 'ok', message: `${message}, ${long}: counts after ${showDuration(forMs)}` }
}
