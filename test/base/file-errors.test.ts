import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fileMeaning, fileProblem } from '../../src/core/base/file-errors.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const folder = temporaryFolder()
writeFileSync(join(folder, 'file'), '')
mkdirSync(join(folder, 'folder'))
symlinkSync('loop', join(folder, 'loop'))
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.fail('no error'),
    (error: unknown) => error,
  )

test.each([
  ['absent', 'does not exist'],
  ['file/below', 'does not exist: a part of its path is not a folder'],
  ['folder', 'is a folder'],
  ['loop', 'is a symbolic link that leads back to itself'],
  ['x'.repeat(300), 'has a name that is too long'],
])('the error of the system for %s is said in words, without its code', async (name, words) => {
  expect(fileProblem(await errorOf(readFile(join(folder, name))))).toBe(words)
})

test.skipIf(process.platform !== 'linux')('a full disk is said in words', async () => {
  const full = await open('/dev/full', 'w')
  expect(fileProblem(await errorOf(full.write('x')))).toBe('is on a full disk')
  await full.close()
})

test('an error that is not of the file system has no meaning, and keeps its message', () => {
  expect(fileMeaning(new TypeError('x is not a function'))).toBeUndefined()
  expect(fileProblem(new Error('the share does not answer'))).toBe('the share does not answer')
  expect(fileProblem(Object.assign(new Error('?'), { code: 'EXOTIC' }))).toBe('cannot be used (EXOTIC)')
})
