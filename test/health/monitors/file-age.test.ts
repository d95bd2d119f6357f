import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import fileAge from '../../../src/core/health/monitors/file-age.ts'
import { checked, runKind } from '../../support/run-kind.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-file-age-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

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
    const level = async (minutes: number) =>
      checked(await runKind(fileAge, { path: aged('backup', minutes) }, 'Standard'), 'age').level
    expect([await level(10), await level(20), await level(70)]).toEqual(['ok', 'warn', 'fail'])
  })

  test('that is not there is told at Basic', async () => {
    const [finding] = await runKind(fileAge, { path: join(folder, 'none') })
    expect(finding).toMatchObject({ check: 'there', level: 'fail', fault: 'data' })
    expect(finding?.message).toContain(join(folder, 'none'))
  })

  test('at Basic only its being there counts', async () => {
    expect(await runKind(fileAge, { path: aged('backup', 600) })).toMatchObject([{ check: 'there', level: 'ok' }])
  })
})

describe('a folder with a backlog', () => {
  test('names its oldest file, of those with the ending, and leaves folders alone', async () => {
    aged('old.tmp', 500)
    aged('a.xml', 5)
    aged('b.xml', 30)
    mkdirSync(join(folder, 'c.xml'))
    const settings = { path: folder, ending: '.xml', files: { warn: 1, limit: 2 } }
    const findings = await runKind(fileAge, settings, 'Standard')
    expect(checked(findings, 'age')).toMatchObject({ level: 'warn', message: expect.stringContaining('b.xml') })
    expect(checked(findings, 'backlog')).toMatchObject({ level: 'warn', observed: 2 })
  })

  test('that is empty is ok', async () => {
    expect(checked(await runKind(fileAge, { path: folder }, 'Standard'), 'age')).toMatchObject({ level: 'ok' })
  })

  test('boundaries belong to ok', () => {
    const settings = { path: '/in', age: { warn: 5, limit: 10 }, files: { limit: 3 } }
    const judged = (ms: number, files: number) => {
      const found = fileAge.judge({ see: 'backlog', files, oldest: { name: 'f', ms } }, settings)
      return (Array.isArray(found) ? found : [found]).map(({ level }) => level)
    }
    expect(judged(5, 3)).toEqual(['ok', 'ok'])
    expect(judged(10, 4)).toEqual(['warn', 'fail'])
    expect(judged(11, 0)).toEqual(['fail', 'ok'])
  })
})
