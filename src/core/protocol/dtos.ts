import { ExecutionMode, HeartbeatStatus, MonitoringStatus, ServerType } from './enums.ts'
import { date, dto, duration, flag, type Infer, integer, list, map, number, required, text } from './schema.ts'

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
  provider: text,
  State: text,
  oauth_token: text,
  oauth_verifier: text,
  UserName: text,
  Password: text,
  RememberMe: flag,
  ErrorView: text,
  nonce: text,
  uri: text,
  response: text,
  qop: text,
  nc: text,
  cnonce: text,
  AccessToken: text,
  AccessTokenSecret: text,
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
export const GetAccessToken = dto('GetAccessToken', { RefreshToken: text })
export type GetAccessToken = Infer<typeof GetAccessToken>
export const GetAccessTokenResponse = dto('GetAccessTokenResponse', {
  accessToken: text,
  refreshToken: text,
  ResponseStatus,
})
export type GetAccessTokenResponse = Infer<typeof GetAccessTokenResponse>

/** One shape under two names (Interface 2.3). */
const roleChange = { UserName: text, Permissions: list(text), Roles: list(text), Meta: map } as const
export const AssignRoles = dto('AssignRoles', roleChange)
export type AssignRoles = Infer<typeof AssignRoles>
export const UnAssignRoles = dto('UnAssignRoles', roleChange)
export type UnAssignRoles = Infer<typeof UnAssignRoles>

/** Interface 2.4 */
const roleLists = { AllRoles: list(text), AllPermissions: list(text), Meta: map, ResponseStatus } as const
export const AssignRolesResponse = dto('AssignRolesResponse', roleLists)
export type AssignRolesResponse = Infer<typeof AssignRolesResponse>
export const UnAssignRolesResponse = dto('UnAssignRolesResponse', roleLists)
export type UnAssignRolesResponse = Infer<typeof UnAssignRolesResponse>

/** Interface 4.4 */
export const HealthCheckRequest = dto('HealthCheckRequest', {
  ExecutionMode: required(ExecutionMode),
  ServerType: required(ServerType),
  IncludeServerStateInformation: flag,
  SuppressErrorCodes: flag,
  SuppressDeploymentErrors: flag,
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

/** A heartbeat of an agent (B1). Our own addition to the interface. */
export const ReportHeartbeat = dto('ReportHeartbeat', {
  Name: text,
  Status: HeartbeatStatus,
  Message: text,
  Version: text,
  Interval: duration,
  Backlog: integer,
  DiskFreePercent: number,
  SentAt: date,
  StartedAt: date,
  Duration: duration,
  ExitCode: integer,
  MaxDuration: duration,
  Output: text,
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
