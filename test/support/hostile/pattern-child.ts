import { describeHostile, excessiveGrowth, ofSize, sizesUpTo } from './growth.ts'
import type { SourcePattern } from './source-patterns.ts'
import { hostileTextsFor } from './texts.ts'

/** The report to the parent about each pattern that is complete, in the order of the list. */
export type PatternReport = { readonly texts: number; readonly problem: string | undefined }

const sizes = sizesUpTo(1e5)

function scanOf({ source, flags, scan }: SourcePattern): (text: string) => void {
  const pattern = new RegExp(source, scan === 'once' || flags.includes('g') ? flags : `${flags}g`)
  // The same matches as by `match`, `matchAll` and `split`, without a list of them, whose clearing away would be measured too.
  return scan === 'once' ? (text) => void pattern.exec(text) : (text) => void text.replace(pattern, '')
}

async function judge(one: SourcePattern): Promise<PatternReport> {
  const run = scanOf(one)
  const texts = hostileTextsFor(one.source, one.flags)
  for (const hostile of texts) {
    const problem = await excessiveGrowth(run, (size) => ofSize(hostile, size), sizes, { screened: true })
    if (problem !== undefined) return { texts: texts.length, problem: `${problem} of ${describeHostile(hostile)}` }
  }
  return { texts: texts.length, problem: undefined }
}

process.once('message', async (patterns: readonly SourcePattern[]) => {
  for (const one of patterns) process.send?.(await judge(one))
  process.disconnect()
})
process.once('disconnect', () => process.exit(0))
