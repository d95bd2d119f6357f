/** Allure 3: the statistic of its store, in which a repetition hides what it takes for the earlier attempt. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { load, run, summary } from './common.mjs'

const { AllureReport, resolveConfig } = await load('@allurereport/core/dist/index.js')

await run('allure', async (path) => {
  const output = mkdtempSync(join(tmpdir(), 'svc-allure-'))
  try {
    const report = new AllureReport(await resolveConfig({ output, plugins: {} }))
    await report.start()
    await report.readFile(path)
    await report.done()
    const { total, failed = 0, broken = 0, skipped = 0, unknown = 0 } = await report.store.testsStatistic()
    const red = (await report.store.allTestResults()).filter(({ status }) => status === 'failed' || status === 'broken')
    const names = red.map(({ labels, name }) => `${labels.find((one) => one.name === 'testClass')?.value} › ${name}`)
    return summary(total, failed + broken, skipped + unknown, names)
  } finally {
    rmSync(output, { recursive: true, force: true })
  }
})
