/** Heartbeats of agents: receiving and storing them. */
export { NewNames, report } from './report.ts'
