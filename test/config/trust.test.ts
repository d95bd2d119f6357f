import { execFileSync } from 'node:child_process'
import { chmod, chown, lchown, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ConfiguredFiles } from '../../src/core/base/files/index.ts'
import { configTrust, readFile } from '../../src/core/config/find.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { files } from '../support/engine/files.ts'
import { svcHome } from '../support/program/svc.ts'
import { faultOf, file, folder, here } from './given.ts'

async function createFile(): Promise<{ readonly home: string; readonly path: string }> {
  const home = await folder()
  return { home, path: await file(join(home, 'svc.yaml'), 'types: {}') }
}

test.each(['620', '602', '666'])('a file of mode %s is refused with the chmod command to run', async (octal) => {
  const { home, path } = await createFile()
  // Root's own group is no other: the group that may write must be one of others.
  if (process.getuid?.() === 0) await chown(path, 0, 1)
  await chmod(path, Number.parseInt(octal, 8))
  const fault = await faultOf(loadConfig(here({ SVC_HOME: home }, home)))
  expect(fault.fault).toBe('Local')
  expect(fault.message).toBe(`The configuration is not trusted: ${path} can be written by others (mode ${octal})`)
  expect(fault.details.hints?.at(-1)).toBe(`chmod go-w ${path}`)
  execFileSync('sh', ['-c', String(fault.details.hints?.at(-1))])
  expect((await loadConfig(here({ SVC_HOME: home }, home))).origin).toBe(path)
})

test('a folder that others can write is refused, however its path is written', async () => {
  const home = join(await folder(), "o'clock folder")
  await mkdir(home)
  await file(join(home, 'svc.yaml'), 'types: {}')
  await chmod(home, 0o777)
  const fault = await faultOf(loadConfig(here({ SVC_HOME: home }, home)))
  expect(fault.message).toContain(`${home} can be written by others (mode 777)`)
  execFileSync('sh', ['-c', String(fault.details.hints?.at(-1))])
  expect((await loadConfig(here({ SVC_HOME: home }, home))).types).toEqual({})
})

test('behind a link both folders are checked: whoever can write to either decides what is read', async () => {
  const { home, path } = await createFile()
  const open = join(home, 'open')
  await mkdir(open)
  await symlink(path, join(open, 'svc.yaml'))
  await chmod(open, 0o777)
  const fault = await faultOf(loadConfig({ ...here({}, home), path: join(open, 'svc.yaml') }))
  expect(fault.message).toContain(`${open} can be written by others`)

  const closed = join(home, 'closed')
  await mkdir(closed, { mode: 0o700 })
  await file(join(open, 'real.yaml'), 'types: {}')
  await symlink(join(open, 'real.yaml'), join(closed, 'svc.yaml'))
  const through = await faultOf(loadConfig({ ...here({}, home), path: join(closed, 'svc.yaml') }))
  expect(through.message).toContain(`${open} can be written by others`)
})

test("another user's file is refused; those of root and of the account itself are not", async () => {
  const { home, path } = await createFile()
  const uid = process.getuid?.() ?? 0
  // Root may own a file that anybody reads, so a file that root owns is made somebody else's first.
  if (uid === 0) execFileSync('chown', ['-R', '65534', home])
  const owner = uid === 0 ? 65_534 : uid
  const stranger = 4_242_424
  const fault = await faultOf(loadConfig({ ...here({ SVC_HOME: home }, home), uid: stranger }))
  expect(fault.message).toContain(`${path} belongs to another user (uid ${owner})`)
  expect(fault.message).toContain(`${home} belongs to another user (uid ${owner})`)
  expect(fault.details.hints).toContain(`chown ${stranger} ${path}`)
  expect((await loadConfig({ ...here({ SVC_HOME: home }, home), uid: owner })).origin).toBe(path)
})

/** A folder for each test, with its parent: a sticky one of root's, as /tmp. */
async function tree(): Promise<(...names: readonly string[]) => string> {
  const top = await folder()
  return (...names) => join(top, ...names)
}

test('W21 a folder above that others can write is a warning with the chmod line, once', async () => {
  const at = await tree()
  await mkdir(at('open', 'mine', 'conf.d'), { recursive: true })
  for (const path of [at('open', 'mine'), at('open', 'mine', 'conf.d')]) await chmod(path, 0o755)
  for (const name of ['a', 'b'])
    await file(
      at('open', 'mine', 'conf.d', `${name}.yaml`),
      `types: {Qc: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: 9}]}`,
    )
  const path = await file(at('open', 'mine', 'svc.yaml'), 'include: [conf.d/*.yaml]')
  await chmod(at('open'), 0o2777)
  const options = { ...here({}, at()), path }
  expect((await loadConfig(options)).warnings).toEqual([
    `the way to the configuration is not trusted: ${at('open')} can be written by others (mode 2777); the next version refuses it: chmod go-w ${at('open')}`,
  ])
  // Who runs nothing but checks learns it too.
  const health = await svcHome(undefined, at()).run(['health', '--type', 'Qc', '--mode', 'Basic', '--config', path])
  expect(health.stderr).toContain(`chmod go-w ${at('open')}`)
  const [line = ''] = (await loadConfig(options)).warnings
  execFileSync('sh', ['-c', line.slice(line.lastIndexOf('chmod'))])
  expect((await loadConfig(options)).warnings).toEqual([])
  await chmod(at('open'), 0o1777)
  expect((await loadConfig(options)).warnings).toEqual([])
})

test.runIf(process.getuid?.() === 0)(
  'W21 the folder of every link on the way counts, and so does each folder above it',
  async () => {
    const at = await tree()
    await mkdir(at('srv', 'a'), { recursive: true })
    await mkdir(at('etc', 'conf.d'), { recursive: true })
    await chmod(at('srv'), 0o755)
    await chmod(at('srv', 'a'), 0o755)
    await chmod(at('etc', 'conf.d'), 0o755)
    await symlink(at('etc', 'conf.d'), at('srv', 'a', 'link'))
    await file(at('etc', 'conf.d', 'x.yaml'), 'types: {}')
    await file(at('etc', 'conf.d', 'svc.yaml'), 'types: {}')
    const main = await file(at('etc', 'main.yaml'), `include: ['${at('srv', 'a', 'link')}/x*.yaml']`)
    const linked = { ...here({}, at()), path: at('srv', 'a', 'link', 'svc.yaml') }
    const including = { ...here({}, at()), path: main }
    for (const options of [linked, including]) expect((await loadConfig(options)).warnings).toEqual([])
    await chown(at('srv', 'a'), 65_534, 65_534)
    for (const options of [linked, including]) {
      expect((await loadConfig(options)).warnings).toEqual([
        `the way to the configuration is not trusted: ${at('srv', 'a')} belongs to another user (uid 65534); the next version refuses it: chown root ${at('srv', 'a')}`,
      ])
    }
    // In a sticky folder, a link is as trusted as its owner.
    await chown(at('srv', 'a'), 0, 0)
    await chmod(at('srv', 'a'), 0o1777)
    for (const options of [linked, including]) expect((await loadConfig(options)).warnings).toEqual([])
    await lchown(at('srv', 'a', 'link'), 65_534, 65_534)
    expect((await loadConfig(linked)).warnings).toHaveLength(1)
  },
)

test('W21 a file in a sticky folder is trusted as its owner is', async () => {
  const { home, path } = await createFile()
  await chmod(home, 0o1777)
  expect((await loadConfig(here({ SVC_HOME: home }, home))).origin).toBe(path)
  if (process.getuid?.() !== 0) return
  await chown(path, 65_534, 65_534)
  expect((await faultOf(loadConfig(here({ SVC_HOME: home }, home)))).message).toContain('belongs to another user')
})

test('W21 a load reads each folder on the way once, whatever it includes', async () => {
  const at = await tree()
  await mkdir(at('conf.d'), { mode: 0o700 })
  const lookups: string[] = []
  const counting: ConfiguredFiles = (task, input) => {
    if (task === 'place') lookups.push(input.path)
    return files(task, input)
  }
  const trust = configTrust({ platform: process.platform, uid: process.getuid?.(), files: counting })
  await trust.demandFolder(at('conf.d'))
  for (let number = 0; number < 20; number += 1) {
    const path = await file(at('conf.d', `${number}.yaml`), 'types: {}')
    await readFile({ path, from: 'include' }, trust)
  }
  const depth = at('conf.d').split('/').length
  expect(lookups).toHaveLength(depth + 20)
  expect(new Set(lookups).size).toBe(lookups.length)
})

test('modes are not checked on Windows, which does not have them', async () => {
  const { path } = await createFile()
  await chmod(path, 0o666)
  const candidate = { path, from: '--config' } as const
  expect(await readFile(candidate, configTrust({ platform: 'win32', uid: undefined, files }))).toBe('types: {}')
  expect((await faultOf(readFile(candidate, configTrust({ platform: 'linux', uid: 0, files })))).fault).toBe('Local')
})

test('a folder, a device and a pipe are refused at once', async () => {
  const home = await folder()
  const pipe = join(home, 'pipe')
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe])
  for (const path of [home, '/dev/zero', pipe]) {
    const fault = await faultOf(loadConfig({ ...here({}, home), path }))
    expect(fault.message).toBe(`${path} is not a regular file`)
  }
})

test('a file beyond 1 MiB is refused, one of exactly 1 MiB is read', async () => {
  const home = await folder()
  const path = await file(join(home, 'svc.yaml'), `#${'x'.repeat(1024 * 1024 - 1)}`)
  expect((await loadConfig(here({ SVC_HOME: home }, home))).origin).toBe(path)
  await file(path, `#${'x'.repeat(1024 * 1024)}`)
  expect((await faultOf(loadConfig(here({ SVC_HOME: home }, home)))).message).toBe(`${path} is larger than 1 MiB`)
})

test('a file that is not UTF-8 is refused; a byte order mark is accepted', async () => {
  const home = await folder()
  const path = await file(join(home, 'svc.yaml'), Buffer.from([0x61, 0xff, 0xfe]))
  expect((await faultOf(loadConfig(here({ SVC_HOME: home }, home)))).message).toBe(`${path} is not UTF-8 text`)
  await file(path, '\uFEFFserve: {jsonp: false}\r\n')
  expect((await loadConfig(here({ SVC_HOME: home }, home))).serve.jsonp).toBe(false)
})
