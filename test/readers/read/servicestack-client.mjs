/** @servicestack/client: the instants and durations of an answer, by its own readers. */
import { readFileSync } from 'node:fs'
import { load, run, summary } from './common.mjs'

const { fromXsdDuration, toDate } = await load('@servicestack/client/dist/index.js')

await run('@servicestack/client', (path) => {
  const text = readFileSync(path, 'utf8')
  if (text === '') return summary(0, 0, null, [])
  const { MonitorSummaries, FailedMonitorCount, ExecutionMetrics } = JSON.parse(text)
  const { StartDateTime, EndDateTime, Duration } = ExecutionMetrics
  const alerts = MonitorSummaries.filter(({ Status }) => Status === 'Failure').map(({ MonitorName }) => MonitorName)
  return summary(MonitorSummaries.length, FailedMonitorCount, null, alerts, {
    seconds: fromXsdDuration(Duration),
    start: toDate(StartDateTime).getTime(),
    end: toDate(EndDateTime).getTime(),
  })
})
