/** Heartbeats of agents: receiving, storing and listing them. */
export { heartbeatAdmin, report } from './report.ts'
