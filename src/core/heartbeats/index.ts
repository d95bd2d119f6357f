/** What agents report of themselves: taken, kept and told. */
export { heartbeatAdmin } from './admin.ts'
export { report } from './report.ts'
