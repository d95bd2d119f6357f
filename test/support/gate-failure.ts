import type { Combination } from '../../tools/gates/dimensions.ts'
import { exitOf, outcomeOf, type Reason } from '../../tools/gates/rules.ts'
import type { GateCommand, GateResult } from './gate-commands.ts'
import { reasonTexts } from './gate-reasons.ts'

export type GateFailure = {
  readonly argv: string
  readonly env: GateCommand['env']
  readonly where: string
  readonly expected: number
  readonly code: number
  readonly reason: Reason
  readonly text: string
}

/** What differs from the table of gates: the exit code, the reason, or a verdict that is green although the code is not. */
export function gateFailure(
  combination: Combination,
  { argv, env }: GateCommand,
  { code, text }: GateResult,
): readonly GateFailure[] {
  const { format, server, file } = combination
  const { exit, reason } = outcomeOf(combination)
  const expected = exitOf(combination)
  // The screen breaks sentences where the terminal ends.
  const sentences = text.replaceAll(/\s+/g, ' ')
  const explains = format === 'prometheus' || reasonTexts[reason].test(sentences)
  const contradicts = exit !== 0 && /(?:✓ HEALTHY|SVC OK)\b/.test(text)
  if (code === expected && explains && !contradicts) return []
  const where = server ?? `svc.yaml ${file}`
  return [{ argv: argv.join(' '), env, where, expected, code, reason, text: text.slice(0, 2_000) }]
}
