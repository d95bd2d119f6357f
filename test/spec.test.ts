import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = new URL('..', import.meta.url).pathname
const known = new Set(
  [...readFileSync(join(root, 'docs/spec.md'), 'utf8').matchAll(/^- \*\*([A-Z]\d+)\*\* /gm)].map(([, id]) => id),
)

const titles = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .flatMap((file) =>
    [
      ...readFileSync(join(root, 'test', file), 'utf8').matchAll(
        /\b(?:test|it|describe)(?:\.each\([^)]*\))?\(\s*(['"`])(.*?)\1/g,
      ),
    ].map(([, , title]) => ({ file, title: title ?? '' })),
  )

test('the specification has ids, and tests name them', () => {
  expect(known.size).toBeGreaterThan(80)
  expect(titles.length).toBeGreaterThan(50)
})

test('no test names an id that the specification does not have', () => {
  const unknown = titles.filter(({ title }) => {
    const [, id] = /^([A-Z]\d{1,2})\b/.exec(title) ?? []
    return id !== undefined && !known.has(id)
  })
  expect(unknown).toEqual([])
})
