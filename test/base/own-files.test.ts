import { chmodSync, existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type AccountFiles, makeFolder, othersMayWrite } from '../../src/core/base/own-files.ts'
import { files as configured } from '../support/engine/files.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const base = temporaryFolder()

test('a folder is created with its parents, for this account alone', () => {
  makeFolder(join(base, 'a', 'b', 'c'))
  expect(statSync(join(base, 'a', 'b', 'c')).mode & 0o777).toBe(0o700)
  expect(statSync(join(base, 'a')).mode & 0o777).toBe(0o700)
  makeFolder(join(base, 'a', 'b', 'c'))
})

test('a file or a broken link at the path makes it throw', () => {
  writeFileSync(join(base, 'file'), '')
  symlinkSync(join(base, 'nowhere'), join(base, 'link'))
  expect(() => makeFolder(join(base, 'file', 'x'))).toThrow(/ENOTDIR/)
  expect(() => makeFolder(join(base, 'link', 'x'))).toThrow(/ENOENT/)
  expect(existsSync(join(base, 'nowhere'))).toBe(false)
})

test.runIf(existsSync('/proc/self'))('a home that cannot be created ends in an error, not in a hang', async () => {
  expect(() => makeFolder('/proc/nope/x')).toThrow(/ENOENT/)
  const home = temporaryHome()
  const env = { HOME: '/proc/nope', SVC_HOME: '/proc/nope', NODE_COMPILE_CACHE: '' }
  const version = await home.svc(['version'], { env })
  expect(version.code).toBe(0)
  const added = await home.svc(['users', 'add', 'ann', '--password-stdin'], { env, stdin: 'correct horse 7\n' })
  expect(added.code).not.toBe(0)
  expect(added.stderr).toContain('/proc/nope')
})

const passwd =
  'root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\n'
const group = 'root:x:0:\nusers:x:100:carol\nalice:x:1000:\n'
const files = (more: { passwd?: string; group?: string } = {}): AccountFiles => ({
  passwd: () => passwd + (more.passwd ?? ''),
  group: () => group + (more.group ?? ''),
})
const alice = { uid: 1000, gid: 1000, mode: 0o100664 }

test('umask 002: a group that only the owner has may write, and nobody else', () => {
  expect(othersMayWrite(alice, files())).toBe(false)
  expect(othersMayWrite({ ...alice, mode: 0o100644 }, files())).toBe(false)
  expect(othersMayWrite({ uid: 0, gid: 0, mode: 0o040775 }, files())).toBe(false)
})

test.each<[why: string, stats: typeof alice, files: AccountFiles]>([
  ['everybody may write', { ...alice, mode: 0o100666 }, files()],
  ['the group belongs to another account', { ...alice, uid: 0 }, files()],
  ['the group has another name', { uid: 1001, gid: 100, mode: 0o100664 }, files()],
  ['the group is in no file', { ...alice, gid: 5000 }, files()],
  ['another account has the group as its first', alice, files({ passwd: 'eve:x:1002:1000::/:/bin/sh\n' })],
  ['the group has another member', alice, { ...files(), group: () => 'alice:x:1000:alice,eve\n' }],
  ['another group has the same number', alice, files({ group: 'staff:x:1000:eve\n' })],
  [
    'the files cannot be read',
    alice,
    {
      ...files(),
      group: () => {
        throw new Error('EACCES')
      },
    },
  ],
])('a file is writable by others if %s', (_, stats, accounts) => {
  expect(othersMayWrite(stats, accounts)).toBe(true)
})

test('everyone may read a file if its mode and those of all folders above it allow that', async () => {
  const exposure = async (path: string) => await configured('exposure', { path })
  const open = temporaryFolder()
  chmodSync(open, 0o755)
  const file = join(open, 'secret')
  writeFileSync(file, 'x')
  const link = join(open, 'link')
  symlinkSync(file, link)
  for (const [mode, expected] of [
    [0o644, 'readable by everyone'],
    [0o640, 'private'],
    [0o600, 'private'],
  ] as const) {
    chmodSync(file, mode)
    expect([await exposure(file), await exposure(link)]).toEqual([expected, expected])
  }
  chmodSync(file, 0o644)
  const inner = join(open, 'inner')
  mkdirSync(inner)
  writeFileSync(join(inner, 'secret'), 'x', { mode: 0o644 })
  chmodSync(join(inner, 'secret'), 0o644)
  chmodSync(inner, 0o755)
  expect(await exposure(join(inner, 'secret'))).toBe('readable by everyone')
  chmodSync(inner, 0o750)
  expect(await exposure(join(inner, 'secret'))).toBe('private')
  expect(await exposure(join(open, 'missing'))).toBe('missing')
})
