import type { MonitorReport, Result, Run } from '../../../src/core/checks/engine/index.ts'
import { type RunDocumentOptions, runDocument } from '../../../src/core/checks/reports/index.ts'

/** The report of a monitor with these results. */
export const report = (name: string, results: readonly Result[], more: Partial<MonitorReport> = {}): MonitorReport => ({
  ...{ name, kind: name.split(' ')[0] ?? name, depth: 'Basic', runsOn: 'network', host: false, checks: [] },
  ...{ durationMs: 1, attempts: 1, results },
  ...more,
})

/** A run of these monitors, whose clock was set back meanwhile. */
export const run = (...monitors: readonly MonitorReport[]): Run => ({
  ...{ id: 'r', mode: 'Basic', startedAt: new Date(1_000), endedAt: new Date(900), durationMs: 12.5, monitors },
  serverState: { ServerName: 'db1', TotalRamInMb: 64, AvailableRamInMb: 32, UsedCpuPercent: 5 },
})

export const document = (of: Run, more: Partial<RunDocumentOptions> = {}) =>
  runDocument(of, { type: 'Sql', correlationId: 'c', flags: {}, view: 'full', ...more })
