import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startServeProcess } from '../support/program/serve-process.ts'
import { until } from '../support/suite/until.ts'
import { badChecks, maxMs, metricsOf, monitorsOf, mostRuns, startScheduledWeb } from './scheduled-web.ts'

const everyMs = 5_000
/** `npm run prove` stops the process for a minute. */
const stoppedMs = process.env['SVC_PROVE'] === '1' ? 60_000 : 30_000

test(
  'W1 a process that stood still makes up for nothing, runs nothing twice and shows no failure',
  async () => {
    // A run takes a second, so that some are in progress when the process stops.
    const web = await startScheduledWeb(30, 1_000)
    await using serve = await startServeProcess(
      `types:\n  App:\n${monitorsOf(web, `timeout: 5s, every: {Standard: ${everyMs / 1_000}s, Advanced: off}`)}`,
    )
    await until(() => web.fewest() >= 2, maxMs, 100)
    serve.signal('SIGSTOP')
    await pause(stoppedMs)
    web.reset()
    const goesOnAt = performance.now()
    serve.signal('SIGCONT')
    for (let round = 1; round <= 3; round += 1) {
      await until(() => web.fewest() >= round, maxMs, 50)
      expect(badChecks(await metricsOf(serve))).toEqual([])
    }
    expect([...web.doubled]).toEqual([])
    // One run for all due times of the stop, and one that repeats what the stop interrupted.
    expect(web.most()).toBeLessThanOrEqual(mostRuns(performance.now() - goesOnAt, everyMs) + 1)
  },
  maxMs,
)
