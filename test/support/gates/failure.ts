import type { Combination } from '../../../tools/gates/dimensions.ts'
import { exitOf, outcomeOf, type Reason } from '../../../tools/gates/rules.ts'
import { type GateCommand, type GateResult, runGate } from './commands.ts'
import type { GateFixture } from './fixture.ts'
import { reasonTexts } from './reasons.ts'

export type GateFailure = {
  readonly argv: string
  readonly env: GateCommand['env']
  readonly where: string
  readonly expected: number
  readonly code: number
  readonly reason: Reason
  readonly text: string
}

/** Monitoring systems read what a plugin prints, whatever happens: its state is that of the exit code. */
const plugins: Readonly<Record<string, (stdout: string, code: number) => boolean>> = {
  nagios: (stdout, code) => stdout.startsWith(`SVC ${['OK', 'WARNING', 'CRITICAL', 'UNKNOWN'][code]} - `),
  prtg: (stdout, code) => code === 0 || isRed(JSON.parse(stdout) as PrtgDocument),
}

type PrtgDocument = {
  readonly prtg: {
    readonly error?: 1
    readonly result?: readonly { readonly channel: string; readonly value: number }[]
  }
}
/** Whether a channel is beyond the limit from which a sensor is red. */
const isRed = ({ prtg: { error, result = [] } }: PrtgDocument): boolean =>
  error === 1 ||
  result.some(
    ({ channel, value }) =>
      (/^(?:Failed monitors|Not checked|Not answered)$/.test(channel) && value > 0) ||
      (/Status/.test(channel) && value > 1),
  )

/**
 * The difference from the table of gates: the exit code, the reason, or a verdict that is green although the code is
 * not.
 */
export function gateFailure(
  combination: Combination,
  { argv, env }: GateCommand,
  { code, stdout, text }: GateResult,
): readonly GateFailure[] {
  const { format, server, file } = combination
  const { exit, reason } = outcomeOf(combination)
  const expected = exitOf(combination)
  // The screen breaks sentences where the terminal ends.
  const sentences = text.replaceAll(/\s+/g, ' ')
  const explains = format === 'prometheus' || reasonTexts[reason].test(sentences)
  const contradicts = exit !== 0 && /(?:✓ HEALTHY|SVC OK)\b/.test(text)
  const hasForm = plugins[format]?.(stdout, code) ?? true
  if (code === expected && explains && !contradicts && hasForm) return []
  const where = server ?? `svc.yaml ${file}`
  return [{ argv: argv.join(' '), env, where, expected, code, reason, text: text.slice(0, 2_000) }]
}

/** Commands at a time: some of them only wait for the end of their time. */
const workers = 4
/** More failures than that say nothing new. */
const maxFailures = 20

/** Runs the combinations in this process: how many, and what differs from the table of gates. */
export async function runGates(
  fixture: GateFixture,
  combinations: readonly Combination[],
): Promise<{ readonly count: number; readonly failures: readonly GateFailure[] }> {
  const failures: GateFailure[] = []
  let count = 0
  const left = combinations.values()
  const work = async (): Promise<void> => {
    for (let next = left.next(); !next.done && failures.length < maxFailures; next = left.next()) {
      const command = fixture.commandFor(next.value)
      failures.push(...gateFailure(next.value, command, await runGate(command)))
      count += 1
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
  return { count, failures: failures.slice(0, maxFailures) }
}
