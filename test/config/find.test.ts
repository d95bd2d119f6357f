import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { candidates, loadConfig } from '../../src/core/config/index.ts'
import { faultOf, file, folder, here } from './given.ts'

const paths = (env: Record<string, string>, platform: NodeJS.Platform, home: string, path?: string): string[] =>
  candidates({ env, platform, home, path }).map((candidate) => candidate.path)

test('on Linux the user folder precedes the system folder', () => {
  expect(paths({}, 'linux', '/home/ann')).toEqual(['/home/ann/.config/svc/svc.yaml', '/etc/svc/svc.yaml'])
  expect(paths({ XDG_CONFIG_HOME: '/xdg' }, 'linux', '/home/ann')[0]).toBe('/xdg/svc/svc.yaml')
})

test('an empty or relative XDG_CONFIG_HOME is ignored, as its specification requires', () => {
  for (const XDG_CONFIG_HOME of ['', 'relative/folder']) {
    expect(paths({ XDG_CONFIG_HOME }, 'linux', '/home/ann')[0]).toBe('/home/ann/.config/svc/svc.yaml')
  }
})

test('on macOS and on Windows the folders are those of the platform', () => {
  expect(paths({}, 'darwin', '/Users/ann')).toEqual([
    '/Users/ann/Library/Application Support/svc/svc.yaml',
    '/etc/svc/svc.yaml',
  ])
  expect(paths({ AppData: 'C:\\Users\\ann\\Roaming', PROGRAMDATA: 'D:\\Data' }, 'win32', 'C:\\Users\\ann')).toEqual([
    'C:\\Users\\ann\\Roaming\\svc\\svc.yaml',
    'D:\\Data\\svc\\svc.yaml',
  ])
  expect(paths({}, 'win32', 'C:\\Users\\ann')).toEqual([
    'C:\\Users\\ann\\AppData\\Roaming\\svc\\svc.yaml',
    'C:\\ProgramData\\svc\\svc.yaml',
  ])
})

test('--config overrides SVC_CONFIG, and both override every folder', () => {
  expect(paths({ SVC_CONFIG: '/b.yaml', SVC_HOME: '/h' }, 'linux', '/home/ann', '/a.yaml')).toEqual(['/a.yaml'])
  expect(paths({ SVC_CONFIG: '/b.yaml', SVC_HOME: '/h' }, 'linux', '/home/ann')).toEqual(['/b.yaml'])
  expect(paths({ SVC_HOME: '/h', XDG_CONFIG_HOME: '/xdg' }, 'linux', '/home/ann')[0]).toBe('/h/svc.yaml')
})

test('a variable or flag that is set but empty is refused by name', async () => {
  const home = await folder()
  for (const [name, options] of [
    ['SVC_CONFIG', here({ SVC_CONFIG: '' }, home)],
    ['SVC_HOME', here({ SVC_HOME: ' ' }, home)],
    ['--config', { ...here({}, home), path: '' }],
  ] as const) {
    const fault = await faultOf(loadConfig(options))
    expect(fault.fault).toBe('Usage')
    expect(fault.message).toBe(`${name} is set but empty`)
  }
})

test('a file that --config or SVC_CONFIG names must exist', async () => {
  const home = await folder()
  const missing = join(home, 'no.yaml')
  const byFlag = await faultOf(loadConfig({ ...here({}, home), path: missing }))
  expect([byFlag.fault, byFlag.message]).toEqual(['Local', `--config names ${missing}, which does not exist`])
  const byVariable = await faultOf(loadConfig(here({ SVC_CONFIG: missing }, home)))
  expect(byVariable.message).toContain(`SVC_CONFIG names ${missing}`)
})

test('without a file the configuration is empty', async () => {
  const home = await folder()
  const config = await loadConfig(here({ SVC_HOME: home }, home))
  expect(config).toMatchObject({ origin: undefined, types: {}, warnings: [] })
  expect(config.serve.maxBody).toBe(1024 * 1024)
})

test('the first file that exists is read, and its path is reported', async () => {
  const home = await folder()
  const user = join(home, '.config', 'svc')
  await mkdir(user, { recursive: true, mode: 0o700 })
  const path = await file(join(user, 'svc.yaml'), 'serve: {jsonp: false}')
  const config = await loadConfig({ env: {}, platform: 'linux', home })
  expect([config.origin, config.serve.jsonp]).toEqual([path, false])
})

test('the working directory is never searched', async () => {
  const [home, work] = [await folder(), await folder()]
  await file(join(work, 'svc.yaml'), 'serve: {jsonp: false}')
  const before = process.cwd()
  process.chdir(work)
  onTestFinished(() => process.chdir(before))

  expect((await loadConfig(here({ SVC_HOME: home }, home))).origin).toBeUndefined()
})

test('a link is followed to its target', async () => {
  const [home, elsewhere] = [await folder(), await folder()]
  await file(join(elsewhere, 'real.yaml'), 'serve: {jsonp: false}')
  await symlink(join(elsewhere, 'real.yaml'), join(home, 'svc.yaml'))
  expect((await loadConfig(here({ SVC_HOME: home }, home))).serve.jsonp).toBe(false)
})

test('K10 a link to a svc.yaml that does not exist is a fault, and so is a file in the place of its folder', async () => {
  const home = await folder()
  const path = join(home, 'svc.yaml')
  await symlink(join(home, 'gone.yaml'), path)
  const fault = await faultOf(loadConfig(here({ SVC_HOME: home }, home)))
  expect([fault.fault, fault.message]).toEqual(['Local', `${path} is a link to a file that does not exist`])
  const other = await folder()
  await symlink(join(other, 'gone'), join(other, 'link'))
  const linked = await faultOf(loadConfig(here({ SVC_HOME: join(other, 'link') }, other)))
  expect(linked.message).toBe(`${join(other, 'link')} is a link to a file that does not exist`)
  const plain = await file(join(other, 'plain'), '')
  const misplaced = await faultOf(loadConfig(here({ SVC_HOME: plain }, other)))
  expect(misplaced.message).toBe(`${plain} is a file and not a folder`)
})

test('a svc.yml in the place of svc.yaml is mentioned', async () => {
  const home = await folder()
  const misnamed = await file(join(home, 'svc.yml'), 'types: {}\n')
  const config = await loadConfig(here({ SVC_HOME: home }, home))
  expect(config.origin).toBeUndefined()
  expect(config.warnings).toEqual([`${misnamed} is not read: rename it to svc.yaml`])
})
