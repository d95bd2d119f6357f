import { expect, test } from 'vitest'
import { type ReportName, reports } from '../../../src/core/checks/reports/index.ts'
import { samples } from './samples.ts'

const names = Object.keys(reports) as ReportName[]
const cases = names.flatMap((name) => Object.keys(samples).map((sample) => ({ name, sample })))

test.each(cases)('$name of $sample equals the reviewed text', async ({ name, sample }) => {
  const { default: report } = await reports[name].load()
  expect(report.name).toBe(name)
  const file = `../../golden/reports/${sample}.${name.replace('+', '-')}.txt`
  await expect(report.render(samples[sample] ?? [])).toMatchFileSnapshot(file)
})
