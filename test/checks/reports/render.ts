import { type Entry, type ReportName, reports } from '../../../src/core/checks/reports/index.ts'

/** A report of these entries, as `svc health -o` prints it. */
export const render = async (name: ReportName, entries: readonly Entry[]): Promise<string> =>
  (await reports[name].load()).default.render(entries)
