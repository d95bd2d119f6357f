import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Accounts, startAccounts } from '../server/accounts.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { farMs } from '../support/suite/until.ts'

/** Where `.ci/clients` installs it. */
const bin = join(import.meta.dirname, '../../node_modules/.cache/servicestack-cli/node_modules/@servicestack/cli/bin')
const missing = existsSync(bin) ? undefined : '@servicestack/cli: .ci/clients installs it from a package index'

/** Each tool, the file that it writes, an option of the language, and what the option's other value changes. */
const tools = [
  ['csharp-ref', 'dtos.cs', 'MakePartial: True', 'public partial class HealthCheckRequest'],
  ['java-ref', 'dtos.java', 'AddPropertyAccessors: True', ' getExecutionMode()'],
  ['kotlin-ref', 'dtos.kt', 'InitializeCollections: True', ' = ArrayList<String>()'],
  ['typescript-ref', 'dtos.ts', 'MakePropertiesOptional: True', 'ExecutionMode?:'],
  ['typescriptd-ref', 'dtos.d.ts', 'MakePropertiesOptional: True', 'ExecutionMode?:'],
] as const

peerSuite(missing, '@servicestack/cli 1.0.10, unmodified', () => {
  let server: Accounts
  let folder = ''
  beforeAll(async () => {
    server = await startAccounts()
    folder = mkdtempSync(join(tmpdir(), 'svc-refs-'))
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.close()
  })

  const runTool = async (tool: string, argument: string): Promise<string> => {
    const { stdout } = await promisify(execFile)(process.execPath, [join(bin, `${tool}.js`), argument], {
      cwd: folder,
      // It otherwise reports its use to its maker.
      env: { SERVICESTACK_TELEMETRY_OPTOUT: '1' },
      timeout: farMs,
    })
    return stdout.trim()
  }

  test.each(tools)('R6 %s saves %s, and what its header says holds on update', async (tool, name, option, part) => {
    const file = join(folder, name)
    const source = () => readFileSync(file, 'utf8')
    expect(await runTool(tool, server.server.url)).toBe(`Saved to: ${name}`)
    expect(source()).toContain(part)
    expect(source()).toContain('GetServerTypes')

    // As a person edits it.
    const other = option.replace('True', 'False')
    const edited = source()
      .replace(`//${option}`, other)
      .replace('//IncludeTypes: ', 'IncludeTypes: HealthCheckRequest.*')
    writeFileSync(file, edited)
    for (const _ of ['first', 'second']) {
      expect(await runTool(tool, name)).toBe(`Updated: ${name}`)
      expect(source()).toContain(`\n${other}\n`)
      expect(source()).toContain('\nIncludeTypes: HealthCheckRequest.*\n')
      expect(source()).toContain('HealthCheckRequest')
      expect(source()).not.toContain(part)
      expect(source()).not.toContain('GetServerTypes')
    }
  })

  test('R6 a refused option leaves the file as it was, and the tool says that the answer is not a source', async () => {
    const file = join(folder, 'edited.dtos.java')
    await runTool('java-ref', `${server.server.url}/types/java`)
    const edited = readFileSync(join(folder, 'dtos.java'), 'utf8').replace(
      /^(\/\/)?IncludeTypes:.*$/m,
      'IncludeTypes: a;b',
    )
    writeFileSync(file, edited)
    const failed = await runTool('java-ref', 'edited.dtos.java').catch((error: { stderr: string }) => error.stderr)
    expect(failed).toContain('ERROR: Invalid Response from')
    expect(readFileSync(file, 'utf8')).toBe(edited)
  })
})
