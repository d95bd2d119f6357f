import { describe, expect, test } from 'vitest'
import { isReport, outputs } from '../../src/cli/health/health.ts'
import { exits } from '../../src/core/base/errors.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const home = temporaryHome()

/** The beginning or a part of a failed run in each format. */
const marks = {
  csv: /error: (?:Usage|Local)/,
  tsv: /error: (?:Usage|Local)/,
  ndjson: /error: (?:Usage|Local)/,
  junit: /<testsuites [^>]*errors="1"[\s\S]*<error type="(?:Usage|Local)/,
  github: /^::error title=all not checked::/,
  nagios: /^SVC UNKNOWN|^svc UNKNOWN|UNKNOWN/,
  prtg: /"error":\s*"?1/,
  prometheus: /^svc_type_answered\{type="all"\} 0$/m,
} as const
type Name = keyof typeof marks
const plugins: readonly string[] = ['nagios', 'prtg']

const failures = [
  ['a wrong flag', ['--nonsense'], exits.usage.code],
  ['a wrong value', ['--mode', 'Deepest'], exits.usage.code],
  ['flags that exclude each other', ['--failed'], exits.usage.code],
  ['a configuration that does not exist', ['--config', '/nowhere/svc.yaml'], exits.local.code],
  ['a profile that does not exist', ['--profile', 'nowhere'], undefined],
] as const

describe.each(outputs.filter(isReport))('svc health --output %s', (output) => {
  test.each(failures)('reports %s, which ends the run before any check', async (_, args, code) => {
    const ran = await home.run(['health', ...args, '--output', output])
    expect(ran.stdout).toMatch(marks[output as Name])
    if (output === 'nagios') expect(ran.code).toBe(3)
    else if (code !== undefined) expect(ran.code).toBe(code)
    // Plugins show standard output only; people read the others beside the error.
    expect(ran.stderr.startsWith('Error: ')).toBe(!plugins.includes(output))
  })
})

test('a format that does not exist is an error for people only', async () => {
  const ran = await home.run(['health', '--output', 'junitx'])
  expect([ran.code, ran.stdout]).toEqual([exits.usage.code, ''])
})
