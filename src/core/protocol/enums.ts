import { choice, type Infer } from './schema.ts'

/** The order matters: values may be given by number, counted from 1 (N1). Interface 2.7. */
export const MonitoringStatus = choice('MonitoringStatus', ['Success', 'Failure'])
export type MonitoringStatus = Infer<typeof MonitoringStatus>

export const ExecutionMode = choice('ExecutionMode', ['Basic', 'Standard', 'Advanced'])
export type ExecutionMode = Infer<typeof ExecutionMode>
/** Milliseconds for which `svc serve` shares a result (H8). A failure is shared for a quarter of that. */
export const resultLifeMs: Readonly<Record<ExecutionMode, number>> = {
  Basic: 2_000,
  Standard: 10_000,
  Advanced: 60_000,
}
/** Milliseconds for which a result counts for a caller of this mode. */
export const lifeFor = (mode: ExecutionMode, outcome: 'passed' | 'failed'): number =>
  outcome === 'failed' ? resultLifeMs[mode] / 4 : resultLifeMs[mode]

export const ServerType = choice('ServerType', [
  'App',
  'Sql',
  'FtpApi',
  'Ftp',
  'Batch',
  'Identity',
  'Qc',
  'XcodeV',
  'XcodeC',
  'MsgVast',
  'AsgVast',
  'Mongo',
  'Agents',
])
export type ServerType = Infer<typeof ServerType>

/** The status that an agent reports of itself in a heartbeat. */
export const HeartbeatStatus = choice('HeartbeatStatus', ['Ok', 'Warn', 'Fail'])
export type HeartbeatStatus = Infer<typeof HeartbeatStatus>

/** Where a silence comes from: a person, `silences:` of svc.yaml, or the acknowledgement of one fault. */
export const SilenceSource = choice('SilenceSource', ['Hand', 'Clock', 'Ack'])
export type SilenceSource = Infer<typeof SilenceSource>

/** How a health check treats failures that somebody silenced. `Ignore`: like all others. */
export const SilenceHandling = choice('SilenceHandling', ['Ignore', 'Honor'])
export type SilenceHandling = Infer<typeof SilenceHandling>

/** Whether a node that shares the store works. `Out`: it does not renew its row. `Left`: it ended in order. */
export const NodeState = choice('NodeState', ['Live', 'Out', 'Left'])
export type NodeState = Infer<typeof NodeState>

/** The worst that history knows of a time of a monitor. */
export const HistoryStatus = choice('HistoryStatus', ['Ok', 'Warning', 'Failed', 'Unobserved'])
export type HistoryStatus = Infer<typeof HistoryStatus>

/** The result of a hop of a drill. `Waiting`: the drill is not over. */
export const DrillResult = choice('DrillResult', ['Proven', 'NotProven', 'Failed', 'Waiting'])
export type DrillResult = Infer<typeof DrillResult>

/** How an incident ended. `Unknown`: svc lost sight of it. */
export const IncidentEnding = choice('IncidentEnding', ['Recovered', 'Removed', 'Unknown'])
export type IncidentEnding = Infer<typeof IncidentEnding>

/**
 * The measures of the load of a machine: the one list of them. How busy a machine is says nothing about a server on it,
 * and a backup at night fills its memory every day. So they are shown with the machine, and colour no server type, no
 * answer and no exit code (M15).
 */
export const loadMeasures = ['load', 'cpu', 'memory', 'swap'] as const

/** Whether a check of the host block measures the load of its machine. */
export const isLoadMeasure = (check: string): boolean => loadMeasures.some((measure) => measure === check)

/** The facts of a monitor in a run document that say whether it is one of the machine. */
type MonitorFacts = { readonly kind: string; readonly host?: boolean | undefined }

/**
 * Whether a result of a monitor is about the load of the machine. A host block that is the only monitor of a type
 * belongs to that type, as all its checks do (K10). The `brief` view does not say which of the two it is.
 */
export const isLoadOf = ({ kind, host = kind === 'host' }: MonitorFacts, check: string): boolean =>
  host && kind === 'host' && isLoadMeasure(check)

/** How a monitor of the host block is called, as everywhere: a subject of such a monitor has no type. */
type SubjectNames = { readonly type?: string | undefined; readonly monitor: string; readonly check: string }

/** Whether a subject is about the load of a machine, as people are notified about it. */
export const isLoadSubject = ({ type, monitor, check }: SubjectNames): boolean =>
  type === undefined && monitor === 'host' && isLoadMeasure(check)
