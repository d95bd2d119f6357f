import { expect } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import httpSteps from '../../../src/core/checks/kinds/http-steps/index.ts'
import { type RunKindOptions, runKind } from './run-kind.ts'

/** Settings of the kind http-steps as svc.yaml gives them. */
export type RawSteps = Readonly<Record<string, unknown>>

/** The settings of a sequence of steps, its run, and the reason to refuse it, with these environment variables. */
export function stepsWith(env: Readonly<Record<string, string>>) {
  const read = (raw: RawSteps) => readSettings(httpSteps.settings, raw, { env, folder: '/' })
  const settingsOf = (raw: RawSteps) => {
    const { values, problems } = read(raw)
    expect(problems).toEqual([])
    return values
  }
  return {
    settingsOf,
    run: (raw: RawSteps, options: RunKindOptions = {}): Promise<readonly Result[]> =>
      runKind(httpSteps, settingsOf(raw), 'Advanced', options),
    problemOf: (raw: RawSteps): string | undefined => {
      const { values, problems } = read(raw)
      return problems.length > 0 ? problems.map(({ message }) => message).join('; ') : httpSteps.validate?.(values)
    },
  }
}

/** The results with the names of their steps in place of those of the checks. */
export const byStep = async (run: readonly Result[] | Promise<readonly Result[]>): Promise<readonly Result[]> =>
  (await run).map((result) => ({ ...result, check: /^(.+?): /.exec(result.message)?.[1] ?? result.check }))

/** Check, status and message of each result, without durations. */
export const messagesOf = (results: readonly Result[]): readonly string[] =>
  results.map(({ check, status, message }) => `${check} ${status} ${message.replace(/ in [\d.]+ m?s.*/, '')}`)
