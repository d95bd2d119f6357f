/** Heartbeats of agents: receiving, storing and listing them. */
export { NewNames } from './new-names.ts'
export { heartbeatAdmin, report } from './report.ts'
