import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { matchesGlob } from '../../../src/core/base/system/files.ts'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import fileAge, { age as ageCheck, backlog } from '../../../src/core/checks/kinds/file-age.ts'
import { expectResult, finds, findsOnly } from '../../support/engine/finds.ts'
import { checked, evaluated, type RunKindOptions, runKind } from '../../support/engine/run-kind.ts'
import { asServer } from '../../support/servers/server.ts'
import { ownChildren } from '../../support/suite/processes.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => {
  chmodSync(folder, 0o755)
  expect(ownChildren()).toEqual([])
})

type Overrides = Parameters<typeof runKind<typeof fileAge.settings>>[1]
const look = (overrides: Overrides, mode: 'Basic' | 'Standard' = 'Standard', options: RunKindOptions = {}) =>
  runKind(fileAge, overrides, mode, options)
const one = async (check: string, ...args: Parameters<typeof look>): Promise<Result> =>
  checked(await look(...args), check)

const minute = 60_000
/** A file that was last written so many minutes ago. */
function aged(name: string, minutes: number): string {
  const path = join(folder, name)
  writeFileSync(path, 'x')
  const then = new Date(Date.now() - minutes * minute)
  utimesSync(path, then, then)
  return path
}

describe('a file that must be fresh', () => {
  test('is ok while it is fresh, then warns, then fails', async () => {
    const status = async (minutes: number) => (await one('age', { path: aged('backup', minutes) })).status
    expect([await status(10), await status(20), await status(70)]).toEqual(['ok', 'warning', 'failed'])
  })
  test('that is missing is reported at Basic', async () => {
    const [result] = await look({ path: join(folder, 'none') }, 'Basic')
    expect(result).toMatchObject({ check: 'there', status: 'failed', fault: 'data' })
    expect(result?.message).toBe(`${join(folder, 'none')} does not exist`)
  })
  test('is checked only for its existence at Basic', () =>
    findsOnly(look({ path: aged('backup', 600) }, 'Basic'), 'there ok'))
  test('that a slightly faster clock dated in the future is new', async () => {
    expect(await one('age', { path: aged('backup', -0.5) })).toMatchObject({ status: 'ok', measurement: { value: 0 } })
  })
  test('that is dated far in the future has no age, which is a warning', async () => {
    const result = await one('age', { path: aged('backup', -60) })
    expect(result).toMatchObject({ status: 'warning' })
    expect(result.message).toContain('in the future')
    expect(await one('age', { path: folder })).toMatchObject({ status: 'warning' })
  })
  test('is not checked against the settings of a folder, nor a folder against those of a file', async () => {
    const path = aged('export.csv', 0)
    expectResult(
      await one('backlog', { path, files: { limit: 1 } }),
      `not checked (missing): not checked: ${path} is a file, and files wait only in a folder`,
    )
    expectResult(
      await one('size', { path: folder, size: 1 }),
      `not checked (missing): not checked: ${folder} is a folder, and only a file has a size: set newest for its newest one`,
    )
  })

  test('must not be smaller than its minimum size', async () => {
    const path = aged('backup', 1)
    truncateSync(path, 1024)
    expect(await one('size', { path, size: 1024 })).toMatchObject({ status: 'ok', measurement: { value: 1024 } })
    const small = await one('size', { path, size: 1025 })
    expect(small).toMatchObject({ status: 'failed', fault: 'threshold' })
    expect(small.message).toBe(`file ${path} has 1 KiB (fail below 1 KiB)`)
  })
  test('may be behind a link', async () => {
    const path = join(folder, 'latest')
    symlinkSync(aged('backup', 70), path)
    expect((await one('age', { path })).status).toBe('failed')
  })
})

describe('a folder with a backlog', () => {
  test('reports its oldest file among those with the extension, and ignores folders and hidden files', async () => {
    aged('old.tmp', 500)
    aged('.hidden.xml', 500)
    aged('a.xml', 5)
    aged('b.xml', 30)
    mkdirSync(join(folder, 'c.xml'))
    const settings = { path: folder, ending: '.xml', files: { warn: 1, limit: 2 } }
    await finds(look(settings), 'age warning: …b.xml…', ['backlog warning', { measurement: { value: 2 } }])
    expect((await one('age', { ...settings, hidden: true })).message).toContain('.hidden.xml')
  })
  test('that is empty is ok', async () => {
    expect(await one('age', { path: folder })).toMatchObject({ status: 'ok', message: 'no file is waiting' })
  })
  test('counts a link as its target, and ignores a broken one', async () => {
    const outside = temporaryFolder()
    const target = join(outside, 'job')
    writeFileSync(target, 'x')
    utimesSync(target, new Date(0), new Date(0))
    symlinkSync(target, join(folder, 'linked'))
    symlinkSync(join(outside, 'gone'), join(folder, 'broken'))
    symlinkSync(outside, join(folder, 'elsewhere'))
    symlinkSync('loop', join(folder, 'loop'))
    const results = await look({ path: folder, files: {} })
    await finds(results, 'age: …linked…')
    expect(checked(results, 'backlog').measurement?.value).toBe(1)
  })
  test('contains file names that never reach a terminal unescaped', async () => {
    aged('\x1b[2J\x1b[31mred\u202egnp', 70)
    const { message } = await one('age', { path: folder })
    expect(message).not.toMatch(/[\x00-\x1f\u202e]/)
    expect(message).toContain('oldest file redgnp: age ')
  })
  test('is ok at the boundaries', () => {
    const judged = (ms: number, files: number) => {
      const file = { name: 'f', bytes: 1, ms, at: new Date(0) }
      const observed = { name: '/in', folder: { files, oldest: file, newest: file, more: false } }
      const results = [
        ...evaluated(ageCheck, observed, { age: { warn: 5, limit: 10 } }),
        ...evaluated(backlog, observed, { files: { limit: 3 } }),
      ]
      return results.map(({ status }) => status)
    }
    expect(judged(5, 3)).toEqual(['ok', 'ok'])
    expect(judged(10, 4)).toEqual(['warning', 'failed'])
    expect(judged(11, 0)).toEqual(['failed', 'ok'])
  })
})

describe('H33 the newest file of a folder', () => {
  test('H33 has its age as a figure, and the oldest one counts only if svc.yaml limits its age', async () => {
    aged('old.dump', 600)
    aged('new.dump', 2)
    const limits = { warn: 5 * minute, limit: 10 * minute }
    const results = await look({ path: folder, newest: limits })
    expect(results.map(({ check }) => check)).toEqual(['there', 'newest'])
    await finds(results, ['newest ok', { measurement: { unit: 'milliseconds', ...limits } }])
    expect(checked(results, 'newest').measurement?.value).toBeGreaterThanOrEqual(2 * minute)
    expectResult(await one('age', { path: folder, newest: limits, age: { limit: minute } }), 'failed')
    expectResult(await one('newest', { path: folder, newest: { limit: minute } }), 'failed (threshold)')
  })
  test.each(['part', 'tmp', 'partial', 'filepart', 'crdownload'])(
    'H48 is not one that is still being written under .%s, which age and files count',
    async (ending) => {
      const limits = { newest: { warn: 60 * minute, limit: 120 * minute }, files: { limit: 5 } }
      aged(`db-2.dump.${ending}`, 0)
      await finds(look({ path: folder, ...limits }), 'newest: …there is no file, only 1 file under a temporary name')
      aged('db-1.dump', 24 * 60)
      const results = await look({ path: folder, ...limits, size: 2, age: { limit: 60 * minute } })
      expectResult(checked(results, 'newest'), 'failed: …db-1.dump…')
      expect(checked(results, 'size').message).toContain('db-1.dump')
      expect(checked(results, 'backlog').measurement?.value).toBe(2)
      // A user who asks for these names gets them.
      expect(await one('newest', { path: folder, ending: `.${ending}`, ...limits })).toMatchObject({ status: 'ok' })
    },
  )

  test('H48 that is nothing but zero bytes at both ends is a warning in Advanced', async () => {
    const advanced = async (settings: object) =>
      (await runKind(fileAge, { path: folder, newest: { limit: 60 * minute }, ...settings }, 'Advanced')).filter(
        ({ check }) => check === 'zeros',
      )
    const path = aged('db.dump', 5)
    await findsOnly(advanced({}), 'zeros ok')
    truncateSync(path, 0)
    await findsOnly(advanced({}))
    truncateSync(path, 1_000_000)
    await findsOnly(advanced({}), 'zeros warning: newest file db.dump begins and ends with nothing but zero bytes…')
    await findsOnly(advanced({ path, newest: undefined }), `zeros warning: file ${path} begins…`)
    writeFileSync(path, Buffer.concat([Buffer.alloc(200_000), Buffer.from('x')]))
    await findsOnly(advanced({}), 'zeros ok')
    chmodSync(path, 0)
    if (process.getuid?.() !== 0) await findsOnly(advanced({}))
  })

  test('H33 is missing in an empty folder, and not checked for a file', async () => {
    expect(await one('newest', { path: folder, newest: { limit: minute } })).toMatchObject({ fault: 'data' })
    const path = aged('export.csv', 0)
    expect(await one('newest', { path, newest: { limit: minute } })).toMatchObject({ notChecked: 'missing' })
  })
})

describe('H33 a path with a pattern', () => {
  test('H33 selects the files of the folder, and no hidden ones', async () => {
    for (const name of ['db-1.dump', 'db-12.dump', 'web-1.dump', '.db-3.dump']) aged(name, 1)
    const files = async (pattern: string) =>
      (await one('backlog', { path: join(folder, pattern), files: { limit: 9 } })).measurement?.value
    expect(await files('db-*.dump')).toBe(2)
    expect(await files('db-?.dump')).toBe(1)
    expect(await files('*-1*')).toBe(3)
    expect(await files('.db*')).toBe(1)
    expect(await files('*.sql')).toBe(0)
  })
  test('H33 is refused in a folder of the path, and together with ending', async () => {
    expect(await look({ path: '/srv/*/in/x' })).toMatchObject([
      { check: 'settings', message: 'path may have * and ? in its last part only: /srv/*/in/x' },
    ])
    expect(await look({ path: '/srv/in/*', ending: '.xml' })).toMatchObject([{ check: 'settings' }])
  })
  test('H33 is matched in time that does not explode', () => {
    expect(matchesGlob('a'.repeat(255), `${'*a'.repeat(120)}b`)).toBe(false)
    expect(matchesGlob('a'.repeat(255), `${'*a'.repeat(120)}*`)).toBe(true)
  })
})

describe('paths that cannot be checked', () => {
  test('a relative path is reported before any access', () =>
    findsOnly(look({ path: 'in/box' }), 'settings failed: path is not an absolute path: in/box'))
  test.runIf('a named pipe is reported, without waiting for it')(
    'a named pipe is neither, and is not waited for',
    async () => {
      const path = join(folder, 'pipe')
      execFileSync('sh', ['-c', 'mkfifo "$0"', path])
      expectResult(await one('there', { path }), `failed (data): ${path} is neither a file nor a folder`)
      expect((await one('there', { path: '/dev/null' })).status).toBe('failed')
      expect(await one('age', { path: folder })).toMatchObject({ message: 'no file is waiting' })
    },
  )
  test.runIf('a folder that this account may not list is reported')(
    'a folder that this account may not list is reported',
    async () => {
      aged('job', 70)
      chmodSync(folder, 0o000)
      if (asServer.uid !== undefined) chownSync(folder, 0, 0)
      const result = asNobody({ path: folder })
      expect(result).toMatchObject({ status: 'failed', fault: 'data' })
      expect(result?.message).toBe(`${folder} is not accessible to this account`)
    },
  )
  test('files that disappear during the check are ignored', async () => {
    const names = Array.from({ length: 3_000 }, (_, i) => aged(`job-${i}`, 70))
    const looking = look({ path: folder, files: {} })
    for (const [index, path] of names.entries()) {
      rmSync(path)
      // The child must get to its turn, too.
      if (index % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    const results = await looking
    await finds(results, 'there ok')
    expect(checked(results, 'backlog').measurement?.value).toBeLessThanOrEqual(3_000)
  })
})

/** The kind under an account that root's rights do not help. */
function asNobody(settings: object): Result | undefined {
  const child = new URL('../../support/engine/kind-child.ts', import.meta.url).pathname
  const args = [child, 'file-age', JSON.stringify(settings), 'Basic']
  const [result] = JSON.parse(
    execFileSync(process.execPath, args, { ...asServer, cwd: '/', encoding: 'utf8' }),
  ) as Result[]
  return result
}
