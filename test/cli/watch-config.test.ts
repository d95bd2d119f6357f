import { appendFileSync, chmodSync, mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { filesNotedIn } from '../../src/cli/serve/config-files.ts'
import { configWatcher } from '../../src/cli/serve/watch-config.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { here } from '../config/given.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

let folder: string
let main: string
let part: string
let now = 0
beforeEach(() => {
  folder = temporaryFolder()
  main = join(folder, 'svc.yaml')
  part = join(folder, 'conf.d', 'a.yaml')
  mkdirSync(join(folder, 'conf.d'), { mode: 0o700 })
  writeFileSync(main, 'include: [conf.d/*.yaml]\ntypes: {App: [{kind: tcp, host: a, port: 1}]}\n', { mode: 0o600 })
  writeFileSync(part, 'types: {Sql: [{kind: tcp, host: b, port: 1}]}\n', { mode: 0o600 })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  vi.spyOn(performance, 'now').mockImplementation(() => now)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const load = async (read: Map<string, string>): Promise<unknown> =>
  await loadConfig({ ...here({ SVC_HOME: folder }, folder), files: filesNotedIn(read) }).catch(
    (error: unknown) => error,
  )

/** A watcher over the files of this test, which look at a time of the test. */
async function watched() {
  const first = new Map<string, string>()
  await load(first)
  const watcher = configWatcher(first)
  let offers = 0
  let looks = 0
  let tells: string | undefined
  watcher.begin(
    async () => {
      offers += 1
      const read = new Map<string, string>()
      const outcome = await load(read)
      if (!watcher.isSettled(read)) return
      if (outcome instanceof Error) watcher.waits(outcome.message)
      else watcher.inForce(read)
    },
    (reason) => {
      looks += 1
      tells = reason
    },
  )
  /** Lets time pass in looks of 2 s each, and counts the offers. */
  const pass = async (ms: number): Promise<number> => {
    const before = offers
    for (let left = ms; left > 0; left -= 2_000) {
      const last = looks
      now += 2_000
      vi.advanceTimersByTime(2_000)
      while (looks === last) await turn()
    }
    return offers - before
  }
  return { pass, end: watcher.end, tells: () => tells }
}

/** Replaces a text in a file by one of the same length, and sets the time of its change back. */
function replacedInPlace(file: string, content: string): void {
  const { mtime, atime, ino } = statSync(file)
  writeFileSync(file, content)
  utimesSync(file, atime, mtime)
  expect([statSync(file).mtimeMs, statSync(file).ino]).toEqual([mtime.getTime(), ino])
}

test.each<[string, () => void]>([
  ['a line more', () => appendFileSync(main, '# more\n')],
  [
    'other content of the same size in the same file, with the former time of its change',
    () => {
      utimesSync(main, 1_000, 1_000)
      replacedInPlace(main, 'include: [conf.d/*.yaml]\ntypes: {App: [{kind: tcp, host: c, port: 1}]}\n')
    },
  ],
  [
    'another file in its place',
    () => {
      writeFileSync(`${main}.new`, 'types: {App: [{kind: tcp, host: a, port: 2}]}\n', { mode: 0o600 })
      renameSync(`${main}.new`, main)
    },
  ],
  ['no file', () => rmSync(main)],
  ['a change of an included file', () => appendFileSync(part, '# more\n')],
  ['one included file less', () => rmSync(part)],
  ['one included file more', () => writeFileSync(join(folder, 'conf.d', 'b.yaml'), 'types: {}\n', { mode: 0o600 })],
  ['another mode of the file', () => chmodSync(main, 0o640)],
  ['a folder that others can write', () => chmodSync(join(folder, 'conf.d'), 0o777)],
])('W9 the watch over svc.yaml finds %s', async (_, change) => {
  const { pass, end } = await watched()
  expect(await pass(10_000)).toBe(0)
  change()
  expect(await pass(4_000)).toBe(0)
  // A file that it has not looked at before has to settle, too.
  expect(await pass(14_000)).toBeGreaterThan(0)
  expect(await pass(10_000)).toBe(0)
  end()
})

test('W9 the time of a change alone is no change', async () => {
  const { pass, end } = await watched()
  utimesSync(main, 2_000, 2_000)
  utimesSync(part, 2_000, 2_000)
  expect(await pass(20_000)).toBe(0)
  end()
})

test.each(['there', 'missing'])('W9 a file beside a svc.yaml that is %s is no change', async (state) => {
  if (state === 'missing') rmSync(main)
  const { pass, end } = await watched()
  for (const beside of [folder, join(folder, 'conf.d')]) writeFileSync(join(beside, 'notes.txt'), 'other')
  mkdirSync(join(folder, 'credentials'))
  expect(await pass(20_000)).toBe(0)
  end()
})

test('W9 a change that waits is told after 10 min, and no longer once its file is corrected by its mode alone', async () => {
  const { pass, end, tells } = await watched()
  await pass(4_000)
  chmodSync(main, 0o666)
  expect(await pass(20_000)).toBe(1)
  expect(tells()).toBeUndefined()
  expect(await pass(600_000)).toBe(0)
  expect(tells()).toMatch(/The configuration is not trusted/)
  chmodSync(main, 0o600)
  expect(await pass(20_000)).toBe(1)
  expect(tells()).toBeUndefined()
  end()
})
