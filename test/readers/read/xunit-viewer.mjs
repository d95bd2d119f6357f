/** Xunit-viewer: the suites and tests that its page shows. */
import { readFileSync } from 'node:fs'
import { load, run, summary } from './common.mjs'

const { default: parse } = await load('xunit-viewer/src/cli/parse.js')

const nameOf = ({ classname, name }) => `${classname} › ${name}`

await run('xunit-viewer', async (path) => {
  const { suites } = await parse(readFileSync(path, 'utf8'))
  const tests = Object.values(suites).flatMap((suite) => Object.values(suite.tests))
  const failed = tests.filter(({ status }) => status === 'failure' || status === 'error').map(nameOf)
  return summary(tests.length, failed.length, tests.filter(({ status }) => status === 'skipped').length, failed)
})
