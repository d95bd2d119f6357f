import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { plants } from './planted-outbox.ts'
import { shipped, simulate } from './simulated-outbox.ts'

/** The slow tier simulates many more, and shows that the rules find planted defects. */
const quick = Array.from({ length: 12 }, (_, at) => at + 1)

test('W23 a simulated outbox keeps all of its rules in 12 scenarios with simulated receivers', () => {
  const broken = quick.flatMap((seed) => {
    const { violations } = simulate(shipped, seed)
    return violations.slice(0, 2).map((violation) => `seed ${seed}: ${violation}`)
  })
  expect(broken).toEqual([])
})

test('W0 the same seed simulates the same notifications, to the byte', () => {
  const { lines, digest } = simulate(shipped, 9, true)
  const again = simulate(shipped, 9, true)
  expect(again.lines.join('\n')).toBe(lines.join('\n'))
  expect(again.digest).toBe(digest)
  expect(lines.length).toBeGreaterThan(100)
  expect(simulate(shipped, 8).digest).not.toBe(digest)
})

test('docs/simulation.md lists each defect planted in the outbox with its rule', () => {
  const page = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8')
  for (const { what, rule } of plants) expect(page).toContain(`| ${what} | ${rule} |`)
})
