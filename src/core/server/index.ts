/** HTTP: puts a Service behind the routes of the protocol. Knows nothing of what computes the answers. */
export { type ServerLimits, serverLimits } from './limits.ts'
export { type Log, type LogEntry, stackOf } from './log.ts'
export { type RunningServer, type StartOptions, startServer } from './start.ts'
