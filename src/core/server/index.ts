/** HTTP: serves a Service on the routes of the protocol. Does not know how answers are computed. */
export { type ServerLimits, serverLimits } from './limits.ts'
export { type Log, type LogEntry, stackOf } from './log.ts'
export { type RunningServer, type StartOptions, startServer } from './start.ts'
