import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { count } from '../../src/core/base/format.ts'

const src = new URL('../../src/', import.meta.url)
const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => ({ file, text: readFileSync(new URL(file, src), 'utf8') }))

/** Every count that svc prints: the words after one, and after more, where the code states them. */
const counted = sources
  .filter(({ text }) => /\bcount\b.* from '.*\/format\.ts'/.test(text))
  .flatMap(({ file, text }) =>
    [...text.matchAll(/\bcount(?:ed)?\(((?:[^()']|\([^()]*\))+), '([^']+)'(?:, '([^']+)')?,?\s*\)/g)].map(
      ([, , one = '', many]) => ({ file, one, many }),
    ),
  )

test('every count in messages, pages, logs and on the terminal has a word for one and another for more', () => {
  expect(counted.length).toBeGreaterThan(90)
  // English adds an s to most nouns. The others, and verbs, state both.
  const irregular = /([sxz]|[cs]h|(?<!standb|[aeiou])y|\b(is|has|was|fails|runs|does))$/
  expect(counted.filter(({ one, many }) => many === undefined && irregular.test(one))).toEqual([])
  expect(counted.filter(({ one, many }) => one === many && one !== 'more')).toEqual([])
  for (const { one, many } of counted) {
    expect([count(0, one, many), count(1, one, many), count(2, one, many)]).toEqual([
      `0 ${many ?? `${one}s`}`,
      `1 ${one}`,
      `2 ${many ?? `${one}s`}`,
    ])
  }
})

/** The one place, and a list in which one is another sentence. */
const allowed: ReadonlySet<string> = new Set(['core/base/format.ts', 'cli/nodes/lists.ts'])

test('no count is written by hand: one place knows when a word is plural', () => {
  // `${n} ${n === 1 ? 'key' : 'keys'}`, `${n} key${n === 1 ? '' : 's'}`, and `n === 1 ? '1 key' : …`.
  const byHand = /\$\{([\w.]+)\} \$\{\1 === 1 \?|=== 1 \? '' : 's'\}|=== 1 \? ['`]1 /
  expect(sources.flatMap(({ file, text }) => (byHand.test(text) && !allowed.has(file) ? [file] : []))).toEqual([])
})
