import { ExecutionMode, ServerType } from './enums.ts'
import { choice, date, dto, flag, type Infer, integer, list, map, number, required, text } from './schema.ts'

/**
 * A run with its figures, for which the interface's document has no fields. All reports in this process read it;
 * between two svc it travels as `application/vnd.svc.run+json;version=1`. New members do not change the version, and
 * readers skip unknown members. Removing a member or changing its meaning requires a new version.
 */

/** The version of the run document that svc writes and reads. */
export const runVersion = 1
/** The media type between two svc. Only a request that names it, with the version, gets it. */
export const runMediaType = `application/vnd.svc.run+json;version=${runVersion}`

export const RunStatus = choice('RunStatus', ['ok', 'warning', 'failed'])
export type RunStatus = Infer<typeof RunStatus>

/** A value and the limits that it was compared with, in the same unit. A value equal to a limit is within it. */
export const RunMeasurement = dto('RunMeasurement', {
  value: required(number),
  /** `milliseconds`, `bytes`, `percent` (0 to 100), `ratio`, `count` or `days`. A later svc may add more. */
  unit: required(text),
  /** Beyond this value the result is a warning. */
  warn: number,
  /** Beyond this value the result is a failure. */
  limit: number,
  /** Whether the limits are upper or lower bounds. */
  bound: choice('RunBound', ['atMost', 'atLeast']),
  /** The instant that a duration counts from or to: a backup, an expiry. */
  at: date,
})
export type RunMeasurement = Infer<typeof RunMeasurement>

/** Why nobody is notified about a result that is not ok. Whoever reads the result decides by itself (Q2). */
export const RunSilence = dto('RunSilence', {
  /** A person, `silences:` in svc.yaml, or the acknowledgement of this fault. */
  source: required(choice('RunSilenceSource', ['hand', 'clock', 'ack'])),
  until: required(date),
  /** Absent for readers who may not read the details of all types, as the reason is. */
  by: text,
  reason: text,
})
export type RunSilence = Infer<typeof RunSilence>

/** The outcome of one check. In the `brief` view it has only the check, its slug, status, fault and `notChecked`. */
export const RunResult = dto('RunResult', {
  check: required(text),
  /** The check's name in metrics, without its item: `disk` of `disk /data`. */
  slug: text,
  status: required(RunStatus),
  /** The fault class, e.g. `refused`. Present if and only if the status is `failed`. */
  fault: text,
  /** The check whose failure caused this one. */
  cause: text,
  /** One line: what was observed, against which limit. */
  message: text,
  details: list(text),
  /** Which of several items: the name of a query, a queue, a mount point. */
  subject: text,
  /** The address that was probed, e.g. `10.0.0.5:5432`. */
  address: text,
  /** The shallowest mode that runs the check. */
  depth: ExecutionMode,
  measurement: RunMeasurement,
  /** Identity rather than state: version, serial number, role. */
  facts: map,
  /**
   * Why the check came to no verdict: `configuration`, `missing`, `starved`, `budget`, `refused`, `permission` or
   * `rehearsal`. The status then says nothing about the server. A later svc may add more.
   */
  notChecked: text,
  /** Present if notifications about it are silenced. Only of results that are not ok, or that count as ok because of it. */
  silence: RunSilence,
})
export type RunResult = Infer<typeof RunResult>

/** Replaces the message in the `brief` view. */
export function briefMessage({ status, fault, notChecked }: RunResult): string {
  if (notChecked !== undefined) return `not checked: ${notChecked}`
  if (status === 'failed') return `failed: ${fault ?? 'internal'}`
  return status === 'warning' ? 'see the server' : 'ok'
}

/** A check of the plan without a result. In the `brief` view it has only the check. */
export const RunNotRun = dto('RunNotRun', {
  check: required(text),
  /** Which of several items, where svc.yaml names them. */
  subject: text,
  /** Where several addresses are checked: the one at which it did not run. */
  address: text,
  /** `not run: connect failed`, or that it has nothing to report here. */
  message: text,
})
export type RunNotRun = Infer<typeof RunNotRun>

export const RunMonitor = dto('RunMonitor', {
  /** Kind and name, e.g. `postgres orders`. Absent in the `brief` view. */
  name: text,
  kind: required(text),
  /** Whether it monitors its own machine or something in the network. */
  scope: choice('RunScope', ['machine', 'network']),
  status: required(RunStatus),
  /** The shallowest mode that runs the monitor. */
  depth: ExecutionMode,
  /** Whether it belongs to the machine itself rather than to the server type. */
  host: flag,
  /** Its own tags and those of its type and profile. Absent: none. */
  tags: list(text),
  durationMs: number,
  /** More than 1 after retries; 0 when it was not run. */
  attempts: integer,
  results: required(list(RunResult)),
  /** The checks that a run in this mode may include, and that have no result. Absent: none. */
  notRun: list(RunNotRun),
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
  /** `brief` leaves out what anonymous callers may not see: names, messages, addresses, figures. */
  view: required(choice('RunView', ['full', 'brief'])),
  status: required(RunStatus),
  /** One line: what is wrong, root causes only. */
  message: required(text),
  correlationId: text,
  /** Identical for all callers that share the run. */
  runId: text,
  /** The machine that the monitors ran on. */
  node: text,
  startedAt: required(date),
  endedAt: required(date),
  /** From a monotonic clock. */
  durationMs: required(number),
  /** Present when requested. */
  serverState: RunServerState,
  monitors: required(list(RunMonitor)),
  /** How many results count as ok because they are silenced: the caller asked for that. Absent: none. */
  silencedResults: integer,
  /** The part of svc that was checked because nothing is configured for the type: `svc's own store`. */
  ownPart: text,
  /** The server rehearses (`svc serve --rehearse`): no monitor ran, the faults are scripted, and nothing is ever ok. */
  drill: flag,
})
export type RunDocument = Infer<typeof RunDocument>
