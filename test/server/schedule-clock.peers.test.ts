import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { aheadBy, fakeTimeMissing } from '../support/faults/clock.ts'
import { startServeProcess } from '../support/program/serve-process.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'
import { badChecks, latenessIn, maxMs, metricsOf, monitorsOf, mostRuns, startScheduledWeb } from './scheduled-web.ts'

const everyMs = 5_000

peerSuite(fakeTimeMissing, 'W1 a wall clock that is set, beside a schedule', () => {
  test(
    'W1 a clock that is set a day ahead and back, or passes into summer time, makes nothing due and nothing fail',
    async () => {
      const folder = temporaryFolder()
      const clock = join(folder, 'clock')
      const set = (offset: string): void => writeFileSync(clock, `${offset}\n`)
      set('+0')
      const { FAKETIME: _, ...preloaded } = aheadBy('0')
      const env = { ...preloaded, FAKETIME_TIMESTAMP_FILE: clock, FAKETIME_NO_CACHE: '1', TZ: 'Europe/Berlin' }
      const web = await startScheduledWeb(30)
      const startedAt = performance.now()
      await using serve = await startServeProcess(
        `types:\n  App:\n${monitorsOf(web, `timeout: 5s, every: {Standard: ${everyMs / 1_000}s, Advanced: off}`)}`,
        [],
        undefined,
        { env },
      )
      await until(() => web.fewest() >= 2, maxMs, 100)
      const dateAt = async (): Promise<string | null> =>
        (await fetch(`http://127.0.0.1:${serve.port}/livez`)).headers.get('date')
      // Three seconds before the clocks of Berlin go from 2:00 to 3:00.
      const beforeSummerTime = Math.round((Date.UTC(2027, 2, 28, 0, 59, 57) - Date.now()) / 1_000)
      let runs = 2
      for (const offset of [86_400, -86_400, beforeSummerTime, 0]) {
        set(offset < 0 ? String(offset) : `+${offset}`)
        runs += 2
        await until(() => web.fewest() >= runs, maxMs, 100)
        const aheadMs = Date.parse((await dateAt()) ?? '') - Date.now()
        expect(Math.abs(aheadMs / 1_000 - offset)).toBeLessThan(3_600)
        const metrics = await metricsOf(serve)
        expect(badChecks(metrics)).toEqual([])
        expect(latenessIn(metrics)).toBeLessThan(3_600)
      }
      expect(web.most()).toBeLessThanOrEqual(mostRuns(performance.now() - startedAt, everyMs))
    },
    maxMs,
  )
})
