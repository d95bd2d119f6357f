import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { waysToConfigure } from '../../src/cli/session/first-config.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

let home: Home
beforeEach(() => {
  home = temporaryHome()
})

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? ''

describe('the next step where nothing is configured', () => {
  test.each([
    [['health', '--require-config']],
    [['health', '-t', 'Ftp']],
    [['monitors', 'validate']],
    [['monitors', 'test', 'orders']],
  ])('without a svc.yaml, svc %j names svc init', async (args) => {
    const { code, stderr } = await home.run(args)
    expect(code).not.toBe(0)
    expect(lastLine(stderr)).toBe('  svc init   writes a svc.yaml for this machine')
  })

  test('with a svc.yaml of the account that configures nothing, it is not a command that would refuse to write', async () => {
    writeFileSync(join(home.folder, 'svc.yaml'), 'types: {}\n', { mode: 0o600 })
    for (const args of [['health'], ['monitors', 'validate']]) {
      const { code, stderr } = await home.run(args)
      expect([code, stderr]).toEqual([12, expect.stringContaining('configure')])
      expect(lastLine(stderr)).toBe('  svc monitors discover   proposes monitors for this file')
    }
  })

  test('svc health without any svc.yaml proposes svc init first', async () => {
    const { stderr } = await home.run(['health', '-o', 'table'])
    expect(stderr).toMatch(/Try next:\n {2}svc init {2,}\S/)
  })
})

const folder = temporaryFolder()

test.skipIf(process.platform === 'win32')(
  "beside the machine's svc.yaml, svc init writes that of the account while there is none",
  () => {
    const env = { SVC_HOME: folder }
    const own = join(folder, 'svc.yaml')
    expect(waysToConfigure('/etc/svc/svc.yaml', env).at(-1)).toBe(
      `svc init                writes ${own} (your account)`,
    )
    writeFileSync(own, '')
    expect(waysToConfigure('/etc/svc/svc.yaml', env).at(-1)).toMatch(/^svc monitors discover /)
  },
)
