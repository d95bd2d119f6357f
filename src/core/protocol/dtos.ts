import {
  DrillResult,
  ExecutionMode,
  HeartbeatStatus,
  HistoryStatus,
  IncidentEnding,
  MonitoringStatus,
  NodeState,
  ServerType,
  SilenceHandling,
  SilenceSource,
} from './enums.ts'
import { isExpiresKey } from './grants.ts'
import { formerSilencePermission } from './permissions.ts'
import {
  date,
  dto,
  duration,
  durationOf,
  flag,
  type Infer,
  integer,
  integerOf,
  limits,
  list,
  map,
  name,
  newName,
  number,
  numberOf,
  required,
  secretText,
  type Text,
  text,
  textOf,
} from './schema.ts'

/** The name of something that exists: a user, a monitor. A name that does not exist is not found. */
const nameOf = name({ max: limits.nameCharacters })
/** Not blank. */
const filled = () => /\S/u

/** Interface 2.5 */
export const ResponseError = dto('ResponseError', { ErrorCode: text, FieldName: text, Message: text, Meta: map })
export type ResponseError = Infer<typeof ResponseError>

export const ResponseStatus = dto('ResponseStatus', {
  ErrorCode: text,
  Message: text,
  StackTrace: text,
  Errors: list(ResponseError),
  Meta: map,
})
export type ResponseStatus = Infer<typeof ResponseStatus>

/** The body of every error (E1). */
export const ErrorResponse = dto('ErrorResponse', { ResponseStatus })
export type ErrorResponse = Infer<typeof ErrorResponse>

/** Interface 2.1 */
export const Authenticate = dto('Authenticate', {
  // An empty one means none, and a blank one is a mistake (A1).
  provider: textOf({ max: limits.nameCharacters, pattern: () => /^(?:[^\s\p{Cc}][^\p{Cc}]*)?$/u }),
  State: text,
  oauth_token: text,
  oauth_verifier: secretText,
  UserName: nameOf,
  Password: secretText,
  RememberMe: flag,
  ErrorView: text,
  nonce: text,
  uri: text,
  response: secretText,
  qop: text,
  nc: text,
  cnonce: text,
  AccessToken: secretText,
  AccessTokenSecret: secretText,
  scope: text,
  Meta: map,
})
export type Authenticate = Infer<typeof Authenticate>

/** Interface 2.2 */
export const AuthenticateResponse = dto('AuthenticateResponse', {
  UserId: text,
  SessionId: text,
  UserName: text,
  DisplayName: text,
  ReferrerUrl: text,
  BearerToken: text,
  RefreshToken: text,
  ProfileUrl: text,
  Roles: list(text),
  Permissions: list(text),
  ResponseStatus,
  Meta: map,
})
export type AuthenticateResponse = Infer<typeof AuthenticateResponse>

/** Existing clients expect exactly these names in the answer (A11). */
export const GetAccessToken = dto('GetAccessToken', {
  RefreshToken: textOf({ secret: true, needed: true, pattern: () => /^\s*svc_rt_[A-Za-z0-9_-]{49}\s*$/u }),
})
export type GetAccessToken = Infer<typeof GetAccessToken>
export const GetAccessTokenResponse = dto('GetAccessTokenResponse', {
  accessToken: text,
  refreshToken: text,
  ResponseStatus,
})
export type GetAccessTokenResponse = Infer<typeof GetAccessTokenResponse>

/** Changes the password of the signed-in user (P9). Our own addition to the interface, as are the two below. */
export const ChangePassword = dto('ChangePassword', {
  CurrentPassword: textOf({ secret: true, needed: true, pattern: filled }),
  NewPassword: textOf({ secret: true, needed: true, pattern: filled }),
})
export type ChangePassword = Infer<typeof ChangePassword>
/** The session and the tokens that replace those of the request. Empty for HTTP Basic, which has none. */
export const ChangePasswordResponse = dto('ChangePasswordResponse', {
  SessionId: text,
  RememberMe: flag,
  BearerToken: text,
  RefreshToken: text,
  ResponseStatus,
})
export type ChangePasswordResponse = Infer<typeof ChangePasswordResponse>

/** The sessions of the signed-in user or, for an Admin, of UserName (T8). */
export const GetSessions = dto('GetSessions', { UserName: nameOf })
export type GetSessions = Infer<typeof GetSessions>
export const UserSession = dto('UserSession', {
  /** Identifies the session, and is not a credential. */
  Id: text,
  /** Absent for a sign-in with a version of svc that did not store it. */
  CreatedAt: date,
  LastUsedAt: date,
  /** When it ends if it is not used again. */
  ExpiresAt: date,
  RememberMe: flag,
  Provider: text,
  /** Whether the request was made with this session. */
  Current: flag,
})
export type UserSession = Infer<typeof UserSession>
export const GetSessionsResponse = dto('GetSessionsResponse', {
  UserName: text,
  Sessions: list(UserSession),
  ResponseStatus,
})
export type GetSessionsResponse = Infer<typeof GetSessionsResponse>

/** Ends the session Id, all but the present one, or all, of the signed-in user or, for an Admin, of UserName (T8). */
export const EndSession = dto('EndSession', { Id: name({}), Others: flag, All: flag, UserName: nameOf })
export type EndSession = Infer<typeof EndSession>
/** Ended is the number of sessions. */
export const EndSessionResponse = dto('EndSessionResponse', { Ended: integer, ResponseStatus })
export type EndSessionResponse = Infer<typeof EndSessionResponse>

/** One shape under two names (Interface 2.3). */
/** Of one that is removed: a store may hold some that nobody could grant today. */
const removedRole = name({ max: limits.nameCharacters, pattern: filled })
/** Refused also where it is removed: an answer 200 would suggest that it was held (O8). */
const grantedPermission: Text = { ...newName, not: formerSilencePermission }
const removedPermission: Text = { ...removedRole, not: formerSilencePermission }
const changedUser = { UserName: name({ max: limits.nameCharacters, needed: true, pattern: filled }) }
export const AssignRoles = dto('AssignRoles', {
  ...changedUser,
  Permissions: list(grantedPermission),
  Roles: list(newName),
  // A caller who computed an end and got null must not grant for ever.
  Meta: { ...map, neverNull: isExpiresKey },
})
export type AssignRoles = Infer<typeof AssignRoles>
export const UnAssignRoles = dto('UnAssignRoles', {
  ...changedUser,
  Permissions: list(removedPermission),
  Roles: list(removedRole),
  Meta: map,
})
export type UnAssignRoles = Infer<typeof UnAssignRoles>

/** Interface 2.4 */
const roleLists = { AllRoles: list(text), AllPermissions: list(text), Meta: map, ResponseStatus } as const
export const AssignRolesResponse = dto('AssignRolesResponse', roleLists)
export type AssignRolesResponse = Infer<typeof AssignRolesResponse>
export const UnAssignRolesResponse = dto('UnAssignRolesResponse', roleLists)
export type UnAssignRolesResponse = Infer<typeof UnAssignRolesResponse>

/** Removes own roles and permissions of the signed-in user (O8). Our own addition to the interface. */
export const GiveBackRoles = dto('GiveBackRoles', {
  Permissions: list(removedPermission),
  Roles: list(removedRole),
  Meta: map,
})
export type GiveBackRoles = Infer<typeof GiveBackRoles>
export const GiveBackRolesResponse = dto('GiveBackRolesResponse', roleLists)
export type GiveBackRolesResponse = Infer<typeof GiveBackRolesResponse>

/** Interface 4.4 */
export const HealthCheckRequest = dto('HealthCheckRequest', {
  ExecutionMode: required(ExecutionMode),
  ServerType: required(ServerType),
  IncludeServerStateInformation: flag,
  SuppressErrorCodes: flag,
  SuppressDeploymentErrors: flag,
  /** Ours (Q2): with Honor, failures that somebody silenced do not count, and the answer says so. Default: Ignore. */
  Silence: SilenceHandling,
})
export type HealthCheckRequest = Infer<typeof HealthCheckRequest>

/** Megabytes are 2^20 bytes. In a container, its limits are the totals (H4). Interface 2.6. */
export const ServerState = dto('ServerState', {
  ServerName: text,
  TotalRamInMb: number,
  AvailableRamInMb: number,
  UsedCpuPercent: number,
})
export type ServerState = Infer<typeof ServerState>

export const MonitoringResult = dto('MonitoringResult', {
  MonitoringName: text,
  Status: MonitoringStatus,
  StatusMessage: text,
  ErrorMessages: list(text),
})
export type MonitoringResult = Infer<typeof MonitoringResult>

export const MonitorSummary = dto('MonitorSummary', {
  MonitorName: text,
  Status: MonitoringStatus,
  Results: list(MonitoringResult),
  ErrorMessages: list(text),
})
export type MonitorSummary = Infer<typeof MonitorSummary>

export const MonitorExecutionMetrics = dto('MonitorExecutionMetrics', {
  StartDateTime: date,
  EndDateTime: date,
  Duration: duration,
})
export type MonitorExecutionMetrics = Infer<typeof MonitorExecutionMetrics>

export const HealthCheckResponse = dto('HealthCheckResponse', {
  ServerState,
  Status: MonitoringStatus,
  StatusMessage: text,
  CorrelationId: text,
  FailedMonitorCount: integer,
  MonitorSummaries: list(MonitorSummary),
  ExecutionMetrics: MonitorExecutionMetrics,
})
export type HealthCheckResponse = Infer<typeof HealthCheckResponse>

/** Asks which server types a health check of everything includes (H14). Our own addition to the interface. */
export const GetServerTypes = dto('GetServerTypes', {})
export type GetServerTypes = Infer<typeof GetServerTypes>

export const GetServerTypesResponse = dto('GetServerTypesResponse', {
  /** The configured types, or those that check svc itself while there is no configuration. */
  Types: list(ServerType),
  /** Whether the server has a configuration. */
  Configured: flag,
  ResponseStatus,
})
export type GetServerTypesResponse = Infer<typeof GetServerTypesResponse>

/** Without control characters, invisible ones (which make two names look alike) and line breaks. */
const line = { late: true, pattern: () => /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]*$/u } as const

/** As `line`, not empty, and without white space at its ends. */
const trimmedLine = () =>
  /^[^\s\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}](?:[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]*[^\s\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}])?$/u

const second = 1_000
const day = 86_400_000

/** How monitors were over time (W3). Our own addition to the interface. */
export const GetHistory = dto('GetHistory', {
  /** Without it, all types that the caller may read. */
  ServerType,
  /** Only the monitors of this name, and with their periods. */
  MonitorName: nameOf,
  /** How far back: up to 400 days. Without it, a day. */
  SinceMinutes: integerOf({ min: 5, max: 400 * 24 * 60 }),
  /** Only the checks that this depth includes. Without it, all checks. */
  ExecutionMode,
})
export type GetHistory = Infer<typeof GetHistory>

/** The values that a check measured in a period, to three significant digits. */
export const HistoryFigure = dto('HistoryFigure', {
  MonitoringName: text,
  /** `milliseconds`, `bytes`, `percent`, `ratio`, `count` or `days`. */
  Unit: text,
  Minimum: number,
  Average: number,
  Maximum: number,
  Count: integer,
})
export type HistoryFigure = Infer<typeof HistoryFigure>

/** A time of a monitor. Up, Down and Unobserved add up to it. */
export const HistoryPeriod = dto('HistoryPeriod', {
  From: date,
  To: date,
  /** The worst of the time. */
  Status: HistoryStatus,
  /** Of the time observed, from 0 to 100. Absent: nothing was observed. */
  AvailabilityPercent: number,
  Up: duration,
  /** From the first failed verdict of a check to its first healthy one. */
  Down: duration,
  /** No verdict stood. */
  Unobserved: duration,
  /** The checks that failed, the one that failed for longest first. */
  FailedChecks: list(text),
  Figures: list(HistoryFigure),
})
export type HistoryPeriod = Infer<typeof HistoryPeriod>

/** A confirmed fault of a check from its first bad run to its end. */
export const HistoryIncident = dto('HistoryIncident', {
  /** The same across restarts of the server. */
  Id: text,
  MonitoringName: text,
  /** Which of several: a disk, a queue. */
  Item: text,
  From: date,
  /** Absent while it is open. */
  To: date,
  /** Of an open one, until now. */
  Duration: duration,
  /** The worst of it. */
  Status: HistoryStatus,
  Ending: IncidentEnding,
  /** The class of the fault. */
  Fault: text,
  Message: text,
  /** The monitor that it was a victim of. */
  Cause: text,
  /** The monitors that failed because of it, at most 100, of the types that the caller may read. */
  Victims: list(text),
  /** How many there were, of all types. */
  VictimCount: integer,
})
export type HistoryIncident = Infer<typeof HistoryIncident>

export const MonitorHistory = dto('MonitorHistory', {
  ServerType,
  MonitorName: text,
  /** The time of which history knows something. */
  From: date,
  To: date,
  /** The worst of the time. */
  Status: HistoryStatus,
  AvailabilityPercent: number,
  Up: duration,
  Down: duration,
  Unobserved: duration,
  /** When it was down for longest, the longest time first. */
  Worst: list(HistoryPeriod),
  /** Only for a MonitorName. Periods of which nothing is known are left out. */
  Periods: list(HistoryPeriod),
  /** Its incidents that were open at some time, the latest first, at most 100. */
  Incidents: list(HistoryIncident),
})
export type MonitorHistory = Infer<typeof MonitorHistory>

export const GetHistoryResponse = dto('GetHistoryResponse', {
  From: date,
  To: date,
  ExecutionMode,
  /** The results that are not kept, and the reason. Absent: all are kept. */
  NotKept: text,
  /** How many monitors of types are left out that the caller may not read. */
  HiddenMonitors: integer,
  Monitors: list(MonitorHistory),
  ResponseStatus,
})
export type GetHistoryResponse = Infer<typeof GetHistoryResponse>

/**
 * The monitors that depend on others, and would not run if these could not be reached (G4). Our own addition to the
 * interface.
 */
export const GetImpact = dto('GetImpact', {
  /** As `dependsOn` writes it: a monitor, a type and a monitor (`Sql/postgres orders`), or a tag (`tag:network`). */
  Monitor: name({ max: 256, needed: true, pattern: trimmedLine }),
})
export type GetImpact = Infer<typeof GetImpact>

export const ImpactCause = dto('ImpactCause', {
  ServerType,
  MonitorName: text,
  /** Its confirmed state now. Absent where no schedule runs it. */
  Status: HistoryStatus,
})
export type ImpactCause = Infer<typeof ImpactCause>

export const ImpactMonitor = dto('ImpactMonitor', {
  ServerType,
  MonitorName: text,
  /** Its groups have enough other members. */
  Runs: flag,
  /** It depends on one of the monitors itself, and not only through others. */
  Direct: flag,
  /** The monitors of its dependencies that cannot be reached, or do not run because of that. */
  Through: list(text),
  /** How many monitors the group has that decides; a single name is a group of one. */
  Members: integer,
  /** How many of them remain. */
  Left: integer,
  /** How many of them it needs. */
  Needed: integer,
  /** Its confirmed state now. Absent where no schedule runs it. */
  Status: HistoryStatus,
})
export type ImpactMonitor = Infer<typeof ImpactMonitor>

export const GetImpactResponse = dto('GetImpactResponse', {
  /** The monitors that are taken to be out of reach. */
  Causes: list(ImpactCause),
  /** The monitors that depend on them. */
  Monitors: list(ImpactMonitor),
  /** How many more would not run, of types that the caller may not read. */
  HiddenMonitors: integer,
  ResponseStatus,
})
export type GetImpactResponse = Infer<typeof GetImpactResponse>

/** Begins a drill: a marked fault that goes the way of an alarm, to the named receivers (M14). Our own addition to the interface. */
export const StartDrill = dto('StartDrill', {
  /** Receivers by name. Empty: those of `drill:` in svc.yaml. */
  Through: list(name({ max: 63, pattern: trimmedLine })),
})
export type StartDrill = Infer<typeof StartDrill>

/** One step on the way of a drill. */
export const DrillHop = dto('DrillHop', {
  /** Absent for what all receivers share. */
  Receiver: text,
  /** `watching`, `confirmation`, `outbox`, `accepted`, `listed`, `routed`, `notified`, `opened` or `end`. */
  Hop: text,
  /** Of several instances of Alertmanager, which one. */
  Place: text,
  Result: DrillResult,
  /** From the hop before. */
  Duration: duration,
  Message: text,
})
export type DrillHop = Infer<typeof DrillHop>

export const Drill = dto('Drill', {
  Id: text,
  By: text,
  Through: list(text),
  BeganAt: date,
  /** Absent while it runs. */
  EndedAt: date,
  /** The worst of its hops. */
  Result: DrillResult,
  Hops: list(DrillHop),
})
export type Drill = Infer<typeof Drill>

export const StartDrillResponse = dto('StartDrillResponse', { Drill, ResponseStatus })
export type StartDrillResponse = Infer<typeof StartDrillResponse>

/** Shows a drill: what has become of it so far. Our own addition to the interface. */
export const GetDrill = dto('GetDrill', {
  /** Absent: the latest drill. */
  Id: name({ max: 64, pattern: trimmedLine }),
})
export type GetDrill = Infer<typeof GetDrill>

export const GetDrillResponse = dto('GetDrillResponse', { Drill, ResponseStatus })
export type GetDrillResponse = Infer<typeof GetDrillResponse>

/** Silences notifications about monitors, and changes nothing else (Q1). Our own addition to the interface, as are the three below. */
export const SilenceMonitors = dto('SilenceMonitors', {
  /** By name, with or without the type; `*` matches any characters: `Sql/*`. */
  Monitors: list(name({ max: 256, pattern: trimmedLine })),
  /** How long, at most 30 days. Instead of Until. */
  For: durationOf({ min: second, max: 30 * day }),
  /** Until when, at most 30 days ahead. Instead of For. */
  Until: date,
  Reason: textOf({ max: 200, needed: true, pattern: trimmedLine }),
})
export type SilenceMonitors = Infer<typeof SilenceMonitors>

export const SilenceEntry = dto('SilenceEntry', {
  /** Ends it. Absent for a silence by the clock. */
  Id: text,
  Source: SilenceSource,
  /** The patterns, or the one monitor of an acknowledgement. Without those that name types that the caller may not read. */
  Monitors: list(text),
  /** Of an acknowledgement: the check and, if there are several, which of its items. */
  MonitoringName: text,
  Item: text,
  From: date,
  Until: date,
  /** Who silenced it. Absent for a silence by the clock, and for callers who may not read the details of all types. */
  By: text,
  /** Absent for callers who may not read the details of all types. */
  Reason: text,
})
export type SilenceEntry = Infer<typeof SilenceEntry>

export const SilencedMonitor = dto('SilencedMonitor', {
  /** Absent for monitors of the machine itself. */
  ServerType,
  MonitorName: text,
})
export type SilencedMonitor = Infer<typeof SilencedMonitor>

/** An Alertmanager that has no silence for it: it goes on sending what fires. */
export const NotSilenced = dto('NotSilenced', {
  /** The receiver of `notify:`. */
  Receiver: text,
  /** The scheme and host of the instance. */
  Place: text,
  Message: text,
})
export type NotSilenced = Infer<typeof NotSilenced>

export const SilenceMonitorsResponse = dto('SilenceMonitorsResponse', {
  Silence: SilenceEntry,
  /** The monitors that it covers now. Those that are added later are covered, too. */
  Covers: list(SilencedMonitor),
  /** How many more it covers than the answer lists. */
  MoreMonitors: integer,
  NotSilenced: list(NotSilenced),
  ResponseStatus,
})
export type SilenceMonitorsResponse = Infer<typeof SilenceMonitorsResponse>

/** The silences that are in force now. */
export const GetSilences = dto('GetSilences', {})
export type GetSilences = Infer<typeof GetSilences>
export const GetSilencesResponse = dto('GetSilencesResponse', {
  /** The one that ends first comes first. */
  Silences: list(SilenceEntry),
  /** How many more there are, of types that the caller may not read. */
  HiddenSilences: integer,
  ResponseStatus,
})
export type GetSilencesResponse = Infer<typeof GetSilencesResponse>

export const EndSilence = dto('EndSilence', { Id: name({ max: limits.nameCharacters, needed: true }) })
export type EndSilence = Infer<typeof EndSilence>
export const EndSilenceResponse = dto('EndSilenceResponse', {
  Silence: SilenceEntry,
  NotSilenced: list(NotSilenced),
  ResponseStatus,
})
export type EndSilenceResponse = Infer<typeof EndSilenceResponse>

/** Silences notifications about the open incidents of a monitor, for as long as they are the same faults (Q3). */
export const AcknowledgeFault = dto('AcknowledgeFault', {
  /** By name, with or without the type: `Sql/postgres orders`. */
  Monitor: name({ max: 256, needed: true, pattern: trimmedLine }),
  /** Only this check. Without it, each open incident of the monitor. */
  MonitoringName: name({ max: 256, pattern: trimmedLine }),
  /** Only this item of the check. */
  Item: name({ max: 256, pattern: trimmedLine }),
  /** How long at most, up to 30 days. Without For and Until: 30 days. */
  For: durationOf({ min: second, max: 30 * day }),
  Until: date,
  Reason: textOf({ max: 200, needed: true, pattern: trimmedLine }),
})
export type AcknowledgeFault = Infer<typeof AcknowledgeFault>
export const AcknowledgeFaultResponse = dto('AcknowledgeFaultResponse', {
  /** One for each fault. */
  Silences: list(SilenceEntry),
  NotSilenced: list(NotSilenced),
  ResponseStatus,
})
export type AcknowledgeFaultResponse = Infer<typeof AcknowledgeFaultResponse>

/** One of the `svc serve` that share a store (W4). */
export const NodeEntry = dto('NodeEntry', {
  Name: text,
  State: NodeState,
  /** When it last renewed its row, by the clock of the store: about when it left, or since when it is out. */
  SeenAt: date,
  /** None of its witnesses answers it. Absent unless it is live. */
  Isolated: flag,
  /** Whether it holds the lease: it runs the monitors of the network for all nodes. */
  Holds: flag,
  /** The beginning of the digest of its monitors of the network. Absent in versions that share monitors. */
  Configuration: text,
  /** Whether it is live and has other monitors than most live nodes. */
  Differs: flag,
  /** Absent, as its addresses and its start, where its row in the store is unreadable. */
  Version: text,
  /** Its page. */
  Url: text,
  /** The address at which other nodes ask whether it sends while none has the store. */
  Peer: text,
  StartedAt: date,
  /** Whether it answers this request. */
  Current: flag,
})
export type NodeEntry = Infer<typeof NodeEntry>

/** Lists the nodes that share the store (W4). Our own addition to the interface, as is the one below. */
export const GetNodes = dto('GetNodes', {})
export type GetNodes = Infer<typeof GetNodes>
export const GetNodesResponse = dto('GetNodesResponse', {
  /** By name. */
  Nodes: list(NodeEntry),
  ResponseStatus,
})
export type GetNodesResponse = Infer<typeof GetNodesResponse>

/** Removes a node that does not return, with what is stored of its machine. */
export const ForgetNode = dto('ForgetNode', {
  Name: name({ max: limits.nameCharacters, needed: true, pattern: trimmedLine }),
})
export type ForgetNode = Infer<typeof ForgetNode>
export const ForgetNodeResponse = dto('ForgetNodeResponse', {
  /** As it was. */
  Node: NodeEntry,
  ResponseStatus,
})
export type ForgetNodeResponse = Infer<typeof ForgetNodeResponse>

/** A heartbeat of an agent (B1). Our own addition to the interface. */
export const ReportHeartbeat = dto('ReportHeartbeat', {
  Name: name({
    max: limits.nameCharacters,
    needed: true,
    late: true,
    pattern: trimmedLine,
  }),
  Status: HeartbeatStatus,
  Message: textOf({ ...line, max: 1_000 }),
  Version: textOf({ ...line, max: limits.nameCharacters }),
  Interval: durationOf({ min: second, max: 7 * day }),
  Backlog: integerOf({ min: 0 }),
  DiskFreePercent: numberOf({ min: 0, max: 100 }),
  SentAt: date,
  StartedAt: date,
  Duration: durationOf({ min: 0, max: 100 * day }),
  ExitCode: integerOf({ min: 0, max: 255 }),
  MaxDuration: durationOf({ min: second, max: 100 * day }),
  Output: textOf({
    secret: true,
    max: 4_000,
    late: true,
    pattern: () => /^(?:[\t\n]|[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}])*$/u,
  }),
})
export type ReportHeartbeat = Infer<typeof ReportHeartbeat>

/** The time of receipt by the server's clock, and the agent's clock skew (positive when ahead). */
export const ReportHeartbeatResponse = dto('ReportHeartbeatResponse', {
  Name: text,
  ReceivedAt: date,
  ClockSkew: duration,
  ResponseStatus,
})
export type ReportHeartbeatResponse = Infer<typeof ReportHeartbeatResponse>

/** The last run of a job that reports its start and its end. Times are milliseconds since 1970. */
export type JobRun = {
  /** The time of the start by the clock of the job: identifies the run, and is not compared with our clock. */
  readonly id: number
  /** When the report of the start was received, or the end less the duration when that report was lost. */
  readonly startedAt: number
  /** When the report of the end was received. Absent while the job runs. */
  readonly endedAt?: number | undefined
  /** Milliseconds, by the clock of the job. */
  readonly durationMs?: number | undefined
  /** 128 plus the number of the signal that ended the job. */
  readonly exitCode?: number | undefined
  /** Milliseconds that the run may take, as the job announced. */
  readonly maxMs?: number | undefined
  /** The run before it, if that had not ended when this one began. Absent once its end has been reported. */
  readonly overlaps?: Pick<JobRun, 'id' | 'startedAt'> | undefined
  /** The end of its output, sanitized and with secrets redacted by the sender as far as it knew them. */
  readonly output?: string | undefined
}

/** The last heartbeat of an agent. */
export type Heartbeat = {
  readonly name: string
  /** Milliseconds since 1970, when it was received. It never decreases. */
  readonly at: number
  /** Who reported it: a user name, or `local:alice`. */
  readonly who: string
  readonly status: HeartbeatStatus
  readonly message: string | undefined
  readonly version: string | undefined
  /** Milliseconds: the interval that the agent announced. */
  readonly intervalMs: number | undefined
  readonly backlog: number | undefined
  readonly diskFreePercent: number | undefined
  /** Milliseconds by which the agent's clock was ahead of ours. */
  readonly skewMs: number | undefined
  /** The latest heartbeats including this one, oldest first. */
  readonly history: readonly { readonly at: number; readonly status: HeartbeatStatus }[]
  /** Only for jobs that report their start and end. */
  readonly run?: JobRun | undefined
}
