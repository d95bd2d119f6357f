import { expect } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { checked, checksOf } from './run-kind.ts'

/**
 * The result of one check, written as `CHECK STATUS (FAULT): MESSAGE`. Everything after the check may be left out.
 * In the message, `…` stands for any text. The status `not checked (REASON)` is that of a check without a verdict.
 * A text or a pattern of the message, or fields of the result, may follow the line.
 */
export type Finding = string | readonly [line: string, ...more: readonly (string | RegExp | object)[]]

type Run = readonly Result[] | { readonly results: readonly Result[] }

const form =
  /^(?<check>.+?)(?: (?<status>ok|warning|failed|not checked))?(?: \((?<reason>\w+)\))?(?:: (?<message>.*))?$/s

const parse = (finding: Finding) => {
  const [line, ...more] = typeof finding === 'string' ? [finding] : finding
  const { check = '', status, reason, message } = form.exec(line)?.groups ?? {}
  const isUnchecked = status === 'not checked'
  const fields = {
    ...(status && { status: isUnchecked ? 'failed' : status }),
    ...(reason && { [isUnchecked ? 'notChecked' : 'fault']: reason }),
    ...(message && { message: expect.stringMatching(anyTextAt(message)) }),
  }
  return { check, fields, more }
}

const literally = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

const anyTextAt = (message: string): RegExp => new RegExp(`^${message.split('…').map(literally).join('.*')}$`, 's')

const resultsOf = (run: Run): readonly Result[] => ('results' in run ? run.results : run)

function compare(result: Result, { fields, more }: ReturnType<typeof parse>): void {
  expect(result).toMatchObject(fields)
  for (const one of more) {
    if (typeof one === 'string') expect(result.message).toContain(one)
    else if (one instanceof RegExp) expect(result.message).toMatch(one)
    else expect(result).toMatchObject(one)
  }
}

/**
 * Expects each finding among the results of a run, and resolves with the run. Of several results of a check, the first
 * counts.
 */
export async function expectFindings<R extends Run>(run: R | Promise<R>, ...findings: readonly Finding[]): Promise<R> {
  const ran = await run
  for (const one of findings.map(parse)) compare(checked(resultsOf(ran), one.check), one)
  return ran
}

/** As `expectFindings`, for a test that expects nothing else of the run. */
export const finds = async (run: Run | Promise<Run>, ...findings: readonly Finding[]): Promise<void> =>
  void (await expectFindings(run, ...findings))

/** Expects that these findings are all results of a run, in their order. */
export async function findsOnly(run: Run | Promise<Run>, ...findings: readonly Finding[]): Promise<void> {
  const results = resultsOf(await run)
  const all = findings.map(parse)
  expect(checksOf(results)).toEqual(all.map(({ check }) => check))
  for (const [at, one] of all.entries()) if (results[at]) compare(results[at], one)
}

/** Expects one result to be as a finding says, which begins with the status or the fault. */
export function expectResult(
  result: Result | undefined,
  line: string,
  ...more: readonly (string | RegExp | object)[]
): void {
  const finding = parse([`result ${line}`, ...more])
  if (finding.check !== 'result') throw new Error(`"${line}" begins with no status`)
  if (result === undefined) throw new Error(`no result is ${line}`)
  compare(result, finding)
}
