import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder } from '../src/core/folder.ts'
import { svcHome } from './support/svc.ts'

const base = mkdtempSync(join(tmpdir(), 'svc-folder-'))
afterAll(() => rmSync(base, { recursive: true }))

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
  const home = svcHome()
  try {
    const env = { HOME: '/proc/nope', SVC_HOME: '/proc/nope', NODE_COMPILE_CACHE: '' }
    const version = await home.svc(['version'], { env })
    expect(version.code).toBe(0)
    const added = await home.svc(['users', 'add', 'ann', '--password-stdin'], { env, stdin: 'correct horse 7\n' })
    expect(added.code).not.toBe(0)
    expect(added.stderr).toContain('/proc/nope')
  } finally {
    home.remove()
  }
})
