import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runInChild } from '../../../src/core/health/child/index.ts'
import type { Finding } from '../../../src/core/health/index.ts'
import fileAge from '../../../src/core/health/monitors/file-age.ts'
import { ownChildren } from '../../support/processes.ts'
import { checked, type RunKindOptions, runKind, withDefaults } from '../../support/run-kind.ts'
import { asServer } from '../../support/server.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-file-age-'))
})
afterEach(() => {
  chmodSync(folder, 0o755)
  rmSync(folder, { recursive: true, force: true })
  expect(ownChildren()).toEqual([])
})

type Given = Parameters<typeof runKind<typeof fileAge.settings, unknown>>[1]
const look = (given: Given, mode: 'Basic' | 'Standard' = 'Standard', options: RunKindOptions = {}) =>
  runKind(fileAge, given, mode, { inChild: runInChild, ...options })
const one = async (check: string, ...args: Parameters<typeof look>): Promise<Finding> =>
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
  test('is ok while it is, warns, then fails', async () => {
    const level = async (minutes: number) => (await one('age', { path: aged('backup', minutes) })).level
    expect([await level(10), await level(20), await level(70)]).toEqual(['ok', 'warn', 'fail'])
  })
  test('that is not there is told at Basic', async () => {
    const [finding] = await look({ path: join(folder, 'none') }, 'Basic')
    expect(finding).toMatchObject({ check: 'there', level: 'fail', fault: 'data' })
    expect(finding?.message).toBe(`${join(folder, 'none')} is not there`)
  })
  test('at Basic only its being there counts', async () => {
    expect(await look({ path: aged('backup', 600) }, 'Basic')).toMatchObject([{ check: 'there', level: 'ok' }])
  })
  test('that comes from a clock ahead of ours is new', async () => {
    expect(await one('age', { path: aged('backup', -60) })).toMatchObject({ level: 'ok', observed: 0 })
  })
  test('must not be smaller than it should', async () => {
    const path = aged('backup', 1)
    truncateSync(path, 1024)
    expect(await one('size', { path, size: 1024 })).toMatchObject({ level: 'ok', observed: 1024 })
    const small = await one('size', { path, size: 1025 })
    expect(small).toMatchObject({ level: 'fail', fault: 'threshold' })
    expect(small.message).toBe(`file ${path} has 1 KiB (at least 1 KiB)`)
  })
  test('may be reached by a link', async () => {
    const path = join(folder, 'latest')
    symlinkSync(aged('backup', 70), path)
    expect((await one('age', { path })).level).toBe('fail')
  })
})

describe('a folder with a backlog', () => {
  test('names its oldest file, of those with the ending, and leaves folders and hidden files alone', async () => {
    aged('old.tmp', 500)
    aged('.hidden.xml', 500)
    aged('a.xml', 5)
    aged('b.xml', 30)
    mkdirSync(join(folder, 'c.xml'))
    const settings = { path: folder, ending: '.xml', files: { warn: 1, limit: 2 } }
    const findings = await look(settings)
    expect(checked(findings, 'age')).toMatchObject({ level: 'warn', message: expect.stringContaining('b.xml') })
    expect(checked(findings, 'backlog')).toMatchObject({ level: 'warn', observed: 2 })
    expect((await one('age', { ...settings, hidden: true })).message).toContain('.hidden.xml')
  })
  test('that is empty is ok', async () => {
    expect(await one('age', { path: folder })).toMatchObject({ level: 'ok', message: 'no file waits' })
  })
  test('counts a link as the file that it leads to; one that leads nowhere is none', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'svc-file-age-target-'))
    try {
      const target = join(outside, 'job')
      writeFileSync(target, 'x')
      utimesSync(target, new Date(0), new Date(0))
      symlinkSync(target, join(folder, 'linked'))
      symlinkSync(join(outside, 'gone'), join(folder, 'broken'))
      symlinkSync(outside, join(folder, 'elsewhere'))
      symlinkSync('loop', join(folder, 'loop'))
      const findings = await look({ path: folder, files: {} })
      expect(checked(findings, 'age').message).toContain('linked')
      expect(checked(findings, 'backlog').observed).toBe(1)
    } finally {
      rmSync(outside, { recursive: true })
    }
  })
  test('names of files reach no terminal', async () => {
    aged('\x1b[2J\x1b[31mred\u202egnp', 70)
    const { message } = await one('age', { path: folder })
    expect(message).not.toMatch(/[\x00-\x1f\u202e]/)
    expect(message).toContain('oldest file red gnp: age ')
  })
  test('boundaries belong to ok', () => {
    const settings = withDefaults(fileAge.settings, { path: '/in', age: { warn: 5, limit: 10 }, files: { limit: 3 } })
    const judged = (ms: number, files: number) => {
      const seen = { see: 'backlog', files, oldest: { name: 'f', ms }, more: false } as const
      return [fileAge.judge(seen, settings)].flat().map(({ level }) => level)
    }
    expect(judged(5, 3)).toEqual(['ok', 'ok'])
    expect(judged(10, 4)).toEqual(['warn', 'fail'])
    expect(judged(11, 0)).toEqual(['fail', 'ok'])
  })
  test('with more files than are dated is judged by those, and is never quite well', async () => {
    for (let i = 0; i < 10_050; i += 1) writeFileSync(join(folder, String(i)), '')
    const findings = await look({ path: folder, files: { limit: 20_000 } })
    expect(checked(findings, 'age')).toMatchObject({ level: 'warn' })
    expect(checked(findings, 'age').message).toContain('of more than can be dated (10000 files)')
    expect(checked(findings, 'backlog').message).toBe('files waiting, and there are more: 10000 (limit 20000)')
    expect(await one('age', { path: folder, age: {} })).toMatchObject({ level: 'ok' })
  })
})

describe('what cannot be looked at', () => {
  test('a path that is not whole is told before anything is looked at', async () => {
    expect(await look({ path: 'in/box' })).toMatchObject([
      { check: 'settings', level: 'fail', message: 'path is no whole path: in/box' },
    ])
  })
  test.runIf(process.platform !== 'win32')('a named pipe is neither, and is not waited for', async () => {
    const path = join(folder, 'pipe')
    execFileSync('sh', ['-c', 'mkfifo "$0"', path])
    expect(await one('there', { path })).toMatchObject({
      level: 'fail',
      fault: 'data',
      message: `${path} is neither a file nor a folder`,
    })
    expect((await one('there', { path: '/dev/null' })).level).toBe('fail')
    expect(await one('age', { path: folder })).toMatchObject({ message: 'no file waits' })
  })
  test.runIf(process.platform !== 'win32')('a folder that this account may not list is told', async () => {
    aged('job', 70)
    chmodSync(folder, 0o000)
    if (asServer.uid !== undefined) chownSync(folder, 0, 0)
    const found = await one('there', { path: folder }, 'Basic', { inChild: asNobody })
    expect(found).toMatchObject({ level: 'fail', fault: 'data' })
    expect(found.message).toBe(`${folder} may not be read by this account`)
  })
  test('files that are taken away while it looks are not missed', async () => {
    const names = Array.from({ length: 3_000 }, (_, i) => aged(`job-${i}`, 70))
    const looking = look({ path: folder, files: {} })
    for (const [index, path] of names.entries()) {
      rmSync(path)
      // The child must get to its turn, too.
      if (index % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    const findings = await looking
    expect(checked(findings, 'there').level).toBe('ok')
    expect(checked(findings, 'backlog').observed).toBeLessThanOrEqual(3_000)
  })
  test('simulated: a share that hangs ends at the deadline, with the path', async () => {
    const found = await one('there', { path: folder }, 'Standard', {
      timeoutMs: 200,
      inChild: () => new Promise(() => {}),
    })
    expect(found).toMatchObject({ level: 'fail', fault: 'timeout', message: `${folder} gave no answer within 0.2 s` })
  })
  test('at the deadline the child is gone with it', async () => {
    await look({ path: folder }, 'Standard', { timeoutMs: 1 })
    await expect.poll(() => ownChildren()).toEqual([])
  })
})

/** The real child, but under an account that root's rights do not help. */
async function asNobody(probe: string, input: unknown): Promise<unknown> {
  const entry = new URL('../../../src/core/health/child/child-main.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [entry], { ...asServer, cwd: '/', stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.write(`${JSON.stringify({ probe, input })}\n`)
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  child.kill('SIGKILL')
  await once(child, 'exit')
  return (JSON.parse(line.toString()) as { readonly value: unknown }).value
}
