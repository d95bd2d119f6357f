import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type ReportName, reports } from '../../src/core/checks/reports/index.ts'
import { expectations } from './expected.ts'
import { runs } from './runs.ts'

const cases = Object.entries(runs)
/** The most lines of a run in a golden file. The sum covers those beyond. */
const mostLines = 15

/**
 * The outputs of all runs in one text, which `UPDATE=1` writes again: each line where it is first written, and the number of lines and a sum, so that no
 * other change goes unnoticed.
 */
async function goldenOf(name: ReportName): Promise<string> {
  const { default: report } = await reports[name].load()
  const earlier = new Set<string>()
  const texts = cases.map(([run, entries]) => {
    const text = report.render(entries)
    // A document of one line has a line for each part.
    const lines = text.replaceAll(/\},(?=["{])/g, '},\n').split('\n')
    const own = lines.filter((line) => !earlier.has(line))
    for (const line of own) earlier.add(line)
    const sum = createHash('sha256').update(text).digest('hex').slice(0, 12)
    return [`=== ${run}: ${lines.length} lines, ${sum}`, ...own.slice(0, mostLines)].join('\n')
  })
  return `${texts.join('\n')}\n`
}

test.each((Object.keys(reports) as ReportName[]).filter((name) => name !== 'tsv'))(
  'the outputs of all runs as %s equal the reviewed text',
  async (name) => {
    const file = new URL(`../golden/readers/${name.replace('+', '-')}.txt`, import.meta.url)
    const text = await goldenOf(name)
    if (process.env['UPDATE'] === '1') writeFileSync(file, text)
    expect(text).toBe(readFileSync(file, 'utf8'))
  },
)

test('there are 40 runs, and each that is not healthy is red in what a reader must see', () => {
  expect(cases).toHaveLength(40)
  const red = cases.filter(([, entries]) => (expectations.junit(entries).failed ?? 0) > 0).map(([run]) => run)
  expect(red).toEqual(cases.filter(([, entries]) => entries.some(({ ExitCode }) => ExitCode !== 0)).map(([run]) => run))
})
