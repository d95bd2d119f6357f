import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { faultOf, file, folder, here } from './given.ts'

const monitor = 'types:\n  App:\n    - {kind: exec, command: /usr/lib/nagios/plugins/check_load}\n'
const allowing = 'exec: {allow: [/usr/lib/nagios/plugins]}\n'

/** A user's folder with a svc.yaml, and a system's folder. */
async function context(user: string | undefined, system: string | undefined) {
  const home = await folder()
  const systemFolder = join(home, 'etc')
  mkdirSync(systemFolder, { mode: 0o755 })
  if (user !== undefined) await file(join(home, 'svc.yaml'), user)
  if (system !== undefined) writeFileSync(join(systemFolder, 'svc.yaml'), system, { mode: 0o644 })
  return { options: { ...here({ SVC_HOME: home }, home), systemFolder }, home, systemFolder }
}
const root = process.getuid?.() === 0

describe('exec: of svc.yaml', () => {
  test('without a system file no program may run, and the message names the file that could allow it', async () => {
    const { options, systemFolder } = await context(monitor, undefined)
    expect((await loadConfig(options)).exec).toEqual({
      allow: [],
      off: `${join(systemFolder, 'svc.yaml')}, the only file that can allow it, does not exist`,
    })
  })

  test("a user's file, --config and SVC_CONFIG cannot turn it on, and the message explains that", async () => {
    const { options, home, systemFolder } = await context(`${monitor}${allowing}`, undefined)
    const own = join(home, 'svc.yaml')
    for (const more of [{}, { path: own }, { env: { SVC_CONFIG: own } }]) {
      const fault = await faultOf(loadConfig({ ...options, ...more }))
      expect(fault.message).toContain(
        `exec has no effect here: move it to ${join(systemFolder, 'svc.yaml')}, a file owned by root`,
      )
    }
  })

  test('the environment cannot name another folder as that of the system', async () => {
    const { options, home } = await context(monitor, undefined)
    const env = { ...options.env, SVC_SYSTEM: home, SVC_CONFIG_DIR: home, ETC: home, XDG_CONFIG_DIRS: home }
    expect((await loadConfig({ ...options, env })).exec?.allow).toEqual([])
  })

  test('the file is not read where no monitor runs a program', async () => {
    const { options } = await context('types: {}', 'not: [yaml')
    expect((await loadConfig(options)).exec).toBeUndefined()
  })

  test('it stays off on Windows', async () => {
    const { readExec } = await import('../../src/core/config/exec.ts')
    const { exec: result } = await readExec({ env: {}, platform: 'win32', home: 'C:\\Users\\a' })
    expect(result).toEqual({ allow: [], off: expect.stringContaining('on Windows, svc cannot verify') })
  })
})

suiteWith(root ? undefined : 'files of root need root to make them', "the system's svc.yaml", () => {
  const execOf = async (system: string) => (await loadConfig((await context(monitor, system)).options)).exec

  test('a file of root allows its folders beside any other file', async () => {
    expect(await execOf(allowing)).toEqual({ allow: ['/usr/lib/nagios/plugins'] })
    const { options, home } = await context(undefined, allowing)
    const other = await file(join(home, 'other.yaml'), monitor)
    expect((await loadConfig({ ...options, path: other })).exec?.allow).toEqual(['/usr/lib/nagios/plugins'])
  })

  test('the configuration itself may be that file', async () => {
    const { options } = await context(undefined, `${monitor}${allowing}`)
    expect((await loadConfig(options)).exec).toEqual({ allow: ['/usr/lib/nagios/plugins'] })
  })

  test('a file of another account, or one that others can write, allows nothing and reports why', async () => {
    const { options, systemFolder } = await context(monitor, allowing)
    const path = join(systemFolder, 'svc.yaml')
    const off = async () => (await loadConfig(options)).exec
    chownSync(path, 1_234, 0)
    expect(await off()).toMatchObject({ allow: [], off: expect.stringContaining('belongs to another user (uid 1234)') })
    // A group of others.
    chownSync(path, 0, 1)
    chmodSync(path, 0o664)
    expect(await off()).toMatchObject({ allow: [], off: expect.stringContaining('can be written by others') })
    chmodSync(path, 0o644)
    chownSync(systemFolder, 1_234, 0)
    // Also when this account is the one that it belongs to: only root's counts.
    expect((await loadConfig({ ...options, uid: 1_234 })).exec).toMatchObject({
      allow: [],
      off: expect.stringContaining(`${systemFolder} belongs to another user`),
    })
    chownSync(systemFolder, 0, 0)
    expect((await off())?.allow).toHaveLength(1)
  })

  test('W21 a folder above the one of the file that others can write is a warning, and programs still run', async () => {
    const { options, home } = await context(monitor, undefined)
    const open = join(home, 'open')
    mkdirSync(join(open, 'etc'), { recursive: true, mode: 0o755 })
    writeFileSync(join(open, 'etc', 'svc.yaml'), allowing, { mode: 0o644 })
    chmodSync(open, 0o757)
    const { exec, trustWarnings } = await loadConfig({ ...options, systemFolder: join(open, 'etc') })
    expect(exec).toEqual({ allow: ['/usr/lib/nagios/plugins'] })
    expect(trustWarnings).toEqual([expect.stringMatching(`the next version refuses it: chmod go-w ${open}$`)])
  })

  test.each([
    ['types: {}', 'does not allow it'],
    ['exec: {}', 'exec.allow is missing'],
    ['exec: {allow: [plugins]}', 'exec.allow.0 must be the absolute path of a folder'],
    ['exec: {allow: [/]}', 'exec.allow.0 must be the absolute path of a folder'],
    ['exec: {alow: [/opt]}', 'exec.alow is not a setting here: did you mean'],
    ['exec: [', 'cannot be read as YAML'],
  ])('%s allows nothing and reports why', async (system, why) => {
    expect(await execOf(system)).toMatchObject({ allow: [], off: expect.stringContaining(why) })
  })

  test('H73 a program that is not there, or in no allowed folder, is a warning with its place', async () => {
    const { options, home, systemFolder } = await context(undefined, undefined)
    const programs = join(home, 'programs')
    mkdirSync(programs, { mode: 0o755 })
    writeFileSync(join(programs, 'check'), '#!/bin/sh\n', { mode: 0o755 })
    writeFileSync(join(systemFolder, 'svc.yaml'), `exec: {allow: [${programs}]}\n`, { mode: 0o644 })
    const entries = [join(programs, 'check'), join(programs, 'gone'), '/bin/sh']
    const monitors = entries.map((command, index) => `    - {kind: exec, name: m${index}, command: ${command}}\n`)
    await file(join(home, 'svc.yaml'), `types:\n  App:\n${monitors.join('')}`)
    const { types, warnings } = await loadConfig(options)
    expect(types.App?.monitors).toHaveLength(3)
    expect(warnings.map((line) => line.replace(/^.*svc\.yaml:/, ''))).toEqual([
      expect.stringMatching(/^4:7: types\.App\[1\] will fail: .*gone does not exist$/),
      expect.stringMatching(/^5:7: types\.App\[2\] will fail: .* is in no folder that the system's svc\.yaml allows: /),
    ])
  })
})
