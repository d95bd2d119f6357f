/** Junit-to-ctrf: the summary and the tests of its report. */
import { load, run, summary } from './common.mjs'

const { convertJUnitToCTRFReport } = await load('junit-to-ctrf/dist/index.js')

await run('junit-to-ctrf', async (path) => {
  const { results } = await convertJUnitToCTRFReport(path)
  const failed = results.tests.filter(({ status }) => status === 'failed').map(({ name }) => name)
  const { tests, skipped, pending, other } = results.summary
  return summary(tests, results.summary.failed, skipped + pending + other, failed)
})
