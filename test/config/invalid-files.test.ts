import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Home, svcHome } from '../support/program/svc.ts'
import { invalidFiles } from './invalid-files.ts'

let home: Home
beforeAll(() => {
  home = svcHome()
})
afterAll(() => home.remove())

describe('K11 a wrong svc.yaml is answered with what is wrong, why, and what to do next', () => {
  test.each(invalidFiles)('$mistake', async ({ yaml, what, why, next, code }) => {
    writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
    const ran = await home.run(['monitors', 'validate'])
    expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(what)])
    expect(ran.stderr).toContain(why)
    expect(ran.stderr).toContain(next)
    expect(ran.stderr).not.toMatch(/hunter2|defect|undefined|\[object|\*\*\*/)
  })
})

test('the collection of wrong files has sixty different ones', () => {
  expect(new Set(invalidFiles.map(({ yaml }) => yaml)).size).toBeGreaterThanOrEqual(60)
})
