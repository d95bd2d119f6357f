import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { commands } from '../../src/registry.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const folder = temporaryFolder()
const pages = join(folder, 'man1')
beforeAll(() => {
  const tool = fileURLToPath(new URL('../../tools/man.ts', import.meta.url))
  execFileSync(process.execPath, [tool, '--into', folder], { stdio: 'ignore' })
})

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0
const text = (page: string): string => readFileSync(join(pages, page), 'utf8')

describe('the manual pages', () => {
  test('there is one for svc and one for each command', () => {
    const expected = ['svc.1', ...Object.keys(commands).map((id) => `svc-${id.replaceAll(':', '-')}.1`)]
    expect(readdirSync(pages).sort()).toEqual(expected.sort())
  })

  test('each has a name, a synopsis and a description, and only requests that roff knows', () => {
    const requests = new Set(['.TH', '.SH', '.TP', '.B', '.BR', '.PP', '.nf', '.fi'])
    for (const page of readdirSync(pages)) {
      const lines = text(page).split('\n')
      expect(lines[0]).toMatch(/^\.TH "SVC\S*" 1 "" "svc \d/)
      for (const section of ['NAME', '"SYNOPSIS"']) expect(lines).toContain(`.SH ${section}`)
      const unknown = lines.filter((line) => /^[.']/.test(line) && !requests.has(line.split(' ', 1)[0] ?? ''))
      expect(unknown).toEqual([])
      // Every backslash begins an escape that is meant.
      expect(text(page).replace(/\\(?:e|-|&|\[u[0-9A-F]{4,6}\])/g, '')).not.toContain('\\')
      expect(text(page)).toMatch(/^[\n\x20-\x7e]*$/)
    }
  })

  test('the flags of svc health and the exit codes are in them', () => {
    expect(text('svc-health.1')).toContain('\\-\\-type')
    expect(text('svc.1')).toContain('SVC_SERVER')
    expect(text('svc.1')).toMatch(/\.B 12\nlocal configuration/)
  })

  test.skipIf(!has('groff'))('groff formats every page without a warning', () => {
    const all = readdirSync(pages)
    // Without the bold letters of a terminal.
    const { status, stderr, stdout } = spawnSync('groff', ['-ww', '-man', '-Tutf8', '-P-cbou', ...all], {
      cwd: pages,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    })
    expect([status, stderr]).toEqual([0, ''])
    const [, ...formatted] = stdout.split(/^NAME$/m)
    expect(formatted).toHaveLength(all.length)
    for (const [at, text] of formatted.entries()) expect([all[at], text.length > 200]).toEqual([all[at], true])
  })

  test.skipIf(!has('man'))('man shows a page without a warning', () => {
    const env = { PATH: process.env.PATH, MANPAGER: 'cat', MANWIDTH: '80', LC_ALL: 'C.UTF-8' }
    const { status, stderr, stdout } = spawnSync('man', ['--warnings', '-l', join(pages, 'svc-health.1')], {
      encoding: 'utf8',
      env,
    })
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain('SYNOPSIS')
  })
})
