/** Heartbeats of agents: receiving, storing and listing them. */
export { heartbeatAdmin, NewNames, report } from './report.ts'
