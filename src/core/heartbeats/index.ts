/** What agents report of themselves: taken, kept and told. */
export { heartbeatAdmin, report } from './report.ts'
