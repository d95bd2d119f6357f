import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeWhole } from '../../src/cli/serve/serve-run.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const folder = temporaryFolder()

test('a program that waits for a file finds the whole of it', async () => {
  const file = join(folder, 'port')
  const contents = new Set<string>()
  let done = false
  const reading = (async () => {
    while (!done) {
      if (existsSync(file)) contents.add(readFileSync(file, 'utf8'))
      await new Promise(setImmediate)
    }
  })()
  for (let n = 0; n < 200; n += 1) {
    await writeWhole(file, `${n % 2 === 0 ? 'one' : 'two'}\n`)
    await new Promise(setImmediate)
  }
  done = true
  await reading
  expect([...contents].sort()).toEqual(['one\n', 'two\n'])
  expect(readdirSync(folder)).toEqual(['port'])
})

test('a private file is private from its first byte on', async () => {
  const file = join(folder, 'private')
  await writeWhole(file, 'x', 0o600)
  if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).toBe(0o600)
})

test.skipIf('a pipe is written to, not replaced')('a pipe is written to, and not replaced', async () => {
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const content = readFile(pipe, 'utf8')
  await writeWhole(pipe, '8790\n')
  expect(await content).toBe('8790\n')
  expect(statSync(pipe).isFIFO()).toBe(true)
})

test('a missing folder is an error, and nothing is created', async () => {
  await expect(writeWhole(join(folder, 'none', 'port'), 'x')).rejects.toThrow('ENOENT')
  expect(existsSync(join(folder, 'none'))).toBe(false)
})
