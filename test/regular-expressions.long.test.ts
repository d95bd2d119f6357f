import { fork } from 'node:child_process'
import { beforeAll, describe, expect, test } from 'vitest'
import type { PatternReport } from './support/hostile/pattern-child.ts'
import { patternsBelow, patternsOf, type SourcePattern } from './support/hostile/source-patterns.ts'

const src = new URL('../src', import.meta.url).pathname

/** Milliseconds after which a pattern counts as one that does not end: the slowest that is linear takes seconds. */
const patienceMs = 120_000

/**
 * The problem of each pattern under hostile text, or undefined, in their order; in a child that ends when a pattern does
 * not. `patienceOf`: milliseconds for the pattern with this index.
 */
async function problemsOf(
  patterns: readonly SourcePattern[],
  patienceOf = (_index: number): number => patienceMs,
): Promise<readonly (string | undefined)[]> {
  const problems: (string | undefined)[] = []
  while (problems.length < patterns.length) {
    await new Promise<void>((resolve, reject) => {
      const child = fork(new URL('./support/hostile/pattern-child.ts', import.meta.url), { execArgv: [] })
      let ms = patienceOf(problems.length)
      let timer = setTimeout(giveUp, ms)
      function giveUp(): void {
        problems.push(`did not end within ${ms / 1_000} s`)
        child.kill('SIGKILL')
      }
      child.on('message', ({ texts, problem }: PatternReport) => {
        clearTimeout(timer)
        problems.push(texts > 40 ? problem : `only ${texts} hostile texts`)
        ms = patienceOf(problems.length)
        timer = setTimeout(giveUp, ms)
      })
      child.once('error', reject)
      child.once('exit', (code) => {
        clearTimeout(timer)
        if (code !== 0 && code !== null) reject(new Error(`the child of the patterns exited with ${code}`))
        else resolve()
      })
      child.send(patterns.slice(problems.length))
    })
  }
  return problems
}

const result = patternsBelow(src)

describe('each regular expression of svc', () => {
  test('takes time in proportion to the text, whatever the text: 100 KB at most 15 times as long as 10 KB', async () => {
    expect(result.literals.length).toBeGreaterThan(400)
    const distinct = [...Map.groupBy(result.literals, (one) => `/${one.source}/${one.flags} ${one.scan}`).values()]
    const problems = await problemsOf(distinct.flatMap((same) => same[0] ?? []))
    const slow = problems.flatMap((problem, index) => {
      const [one, ...others] = distinct[index] ?? []
      if (problem === undefined || !one) return []
      const where = [one, ...others].map(({ at }) => at).join(', ')
      return [`${where}: /${one.source}/${one.flags}: ${problem}`]
    })
    expect(slow).toEqual([])
  }, 600_000)

  test('is a literal that this test finds, except the patterns of svc.yaml, which have a budget of CPU time', () => {
    expect(result.built).toEqual([
      `core/checks/assert/dialogue-settings.ts: new RegExp(\`\${pattern.slice(1, pattern.lastIndexOf('/'))}|\`)`,
      "core/checks/assert/expectation.ts: new RegExp(source.replaceAll('{nonce}', '0'), flags)",
      'core/checks/assert/expectation.ts: new RegExp(source, flags)',
      'core/checks/assert/expectation.ts: new RegExp(source, flags)',
    ])
  })
})

describe('the test of the regular expressions', () => {
  const planted = [
    ['leading blanks', 'text.replace(/\\s*Code: 0x[0-9a-f]+$/i, "")'],
    [
      'a string with escapes and no end',
      'text.replace(/"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"|-?\\b(?:NaN|Infinity)\\b/g, "")',
    ],
    ['trailing slashes', 'url.replace(/\\/+$/, "")'],
    ['blanks behind a lazy value', '/^([a-z]+):[ \\t]*(.*?)[ \\t]*$/s.exec(line)'],
    ['a beginning without an end, again and again', 'pem.match(/-----BEGIN X-----[\\s\\S]*?-----END X-----/g)'],
    ['lines that begin alike', '/^SSH-[^\\n]*\\n/m.test(banner)'],
    ['a separator with blanks around', 'text.split(/\\s*,\\s*/)'],
    ['a separator with a name', 'const comma = /\\s*,\\s*/\ntext.split(comma)'],
    ['digits that two repeats share', '/^(?:\\d+\\.?\\d*|\\.\\d+)$/.test(figure)'],
  ] as const
  let problems: readonly (string | undefined)[] = []
  beforeAll(async () => {
    problems = await problemsOf(planted.flatMap(([, code]) => patternsOf('planted.ts', code).literals))
  }, 120_000)
  test.each(planted.map(([name], index) => [name, index] as const))('finds %s', (_, index) => {
    expect(problems).toHaveLength(planted.length)
    expect(problems[index]).toMatch(/characters: \d+ times the processor time/)
  })
  test('finds a pattern that never ends, and continues with the next', async () => {
    const { literals } = patternsOf('planted.ts', '[/^(?:a|a)*$/, /^a+$/, /\\s*x/]')
    const [endless, linear, quadratic] = await problemsOf(literals, (index) => (index === 0 ? 3_000 : patienceMs))
    expect(endless).toBe('did not end within 3 s')
    expect(linear).toBeUndefined()
    expect(quadratic).toContain('times the processor time')
  }, 300_000)
  test('finds no problem with patterns that are linear', async () => {
    const { literals } = patternsOf(
      'planted.ts',
      '[/\\s+/g, /^\\s*x/, /\\r?\\n$/, /[^"]*"/y, /\\bdata ([0-9a-f]{1,8})\\b/i]',
    )
    expect(await problemsOf(literals)).toEqual([undefined, undefined, undefined, undefined, undefined])
  }, 60_000)
  test('finds literals in each position, and each conversion of a string to a pattern', () => {
    const code = [
      'const comment = "/no+/" // /nor+this/',
      'const half = 4 / two / 1',
      'const one = /a/g, table = { two: [/b/y] }',
      'text.split(/c/); const border = /d/; text.split(border)',
      'RegExp("e"); new RegExp(`f`); text.match("g"); text.search(`h`)',
    ].join('\n')
    const { literals, built } = patternsOf('planted.ts', code)
    expect(literals.map(({ at, source, scan }) => [at, source, scan])).toEqual([
      ['planted.ts:3', 'a', 'all'],
      ['planted.ts:3', 'b', 'sticky'],
      ['planted.ts:4', 'c', 'all'],
      ['planted.ts:4', 'd', 'all'],
    ])
    expect(built).toEqual([
      'planted.ts: RegExp("e")',
      'planted.ts: new RegExp(`f`)',
      'planted.ts: text.match("g")',
      'planted.ts: text.search(`h`)',
    ])
  })
})
