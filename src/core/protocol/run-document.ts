import { ExecutionMode, ServerType } from './enums.ts'
import { choice, date, dto, flag, type Infer, integer, list, map, number, required, text } from './schema.ts'

/**
 * A run with its figures: what the interface's document has no place for. In the process every report reads it;
 * between two svc it travels as `application/vnd.svc.run+json;version=1`. Members are added without a new version, and
 * readers pass over members that they do not know; a member that changes its meaning or goes makes a new version.
 */

/** The version of the run document that is written and read. */
export const runVersion = 1
/** Its media type between two svc: only who names it, with the version, gets it. */
export const runMediaType = `application/vnd.svc.run+json;version=${runVersion}`

export const RunStatus = choice('RunStatus', ['ok', 'warning', 'failed'])
export type RunStatus = Infer<typeof RunStatus>

/** A figure and the limits that it was compared with, in the same unit; the figure that equals a limit is within it. */
export const RunMeasurement = dto('RunMeasurement', {
  value: required(number),
  /** `milliseconds`, `bytes`, `percent` (0 to 100), `ratio`, `count` or `days`. A later svc may know more. */
  unit: required(text),
  /** Beyond it the result is a warning. */
  warn: number,
  /** Beyond it the result is a failure. */
  limit: number,
  /** On which side of the limits the figure has to stay. */
  bound: choice('RunBound', ['atMost', 'atLeast']),
  /** The instant that a duration counts from or to, where it is one: a backup, an expiry. */
  at: date,
})
export type RunMeasurement = Infer<typeof RunMeasurement>

/** What one check results in. Only the check, its slug, status and fault are there where the view is `brief`. */
export const RunResult = dto('RunResult', {
  check: required(text),
  /** The check's name in metrics, without what it looks at: `disk` of `disk /data`. */
  slug: text,
  status: required(RunStatus),
  /** The class of the fault, e.g. `refused`; where the status is `failed`, and nowhere else. */
  fault: text,
  /** The check that failed before this one, where that is why. */
  cause: text,
  /** One line: what was observed, against what limit. */
  message: text,
  details: list(text),
  /** Which of several: the name of a query, a queue, a mount point. */
  subject: text,
  /** What was asked, e.g. `10.0.0.5:5432`. */
  address: text,
  /** The shallowest mode that runs the check. */
  depth: ExecutionMode,
  measurement: RunMeasurement,
  /** Identity rather than state: version, serial number, role. */
  facts: map,
})
export type RunResult = Infer<typeof RunResult>

/** What stands for a message where the view leaves messages out; the fault class follows that of a failure. */
export const briefMessages: Readonly<Record<RunStatus, string>> = {
  ok: 'ok',
  warning: 'see the server',
  failed: 'failed: ',
}

export const RunMonitor = dto('RunMonitor', {
  /** Kind and name, e.g. `postgres orders`. Absent where the view is `brief`. */
  name: text,
  kind: required(text),
  /** Whether it looks at the machine that it runs on or at something in the network. */
  scope: choice('RunScope', ['machine', 'network']),
  status: required(RunStatus),
  /** The shallowest mode that runs the monitor. */
  depth: ExecutionMode,
  /** Whether it belongs to the machine itself and not to the server type. */
  host: flag,
  durationMs: number,
  /** More than 1 after failures; 0 when it was not run. */
  attempts: integer,
  results: required(list(RunResult)),
})
export type RunMonitor = Infer<typeof RunMonitor>

/** The machine that the monitors ran on. Megabytes are 2^20 bytes. */
export const RunServerState = dto('RunServerState', {
  serverName: text,
  totalRamInMb: number,
  availableRamInMb: number,
  usedCpuPercent: number,
})
export type RunServerState = Infer<typeof RunServerState>

export const RunDocument = dto('RunDocument', {
  version: required(integer),
  type: required(ServerType),
  mode: required(ExecutionMode),
  /** `brief` leaves out what a caller who is not signed in may not read: names, messages, addresses, figures. */
  view: required(choice('RunView', ['full', 'brief'])),
  status: required(RunStatus),
  /** One line: what is wrong, root causes only. */
  message: required(text),
  correlationId: text,
  /** The same for everyone who shares the run. */
  runId: text,
  /** The machine that the monitors ran on. */
  node: text,
  startedAt: required(date),
  endedAt: required(date),
  /** By a clock that is never set. */
  durationMs: required(number),
  /** Where it was asked for. */
  serverState: RunServerState,
  monitors: required(list(RunMonitor)),
})
export type RunDocument = Infer<typeof RunDocument>
