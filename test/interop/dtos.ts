/* Written by hand in the style of what `typescript-ref URL` stores, for clients that were generated long ago. */

export interface IReturn<T> {
  createResponse(): T
}
export type ExecutionMode = 'Basic' | 'Standard' | 'Advanced'
export type ServerType =
  | 'App'
  | 'Sql'
  | 'FtpApi'
  | 'Ftp'
  | 'Batch'
  | 'Identity'
  | 'Qc'
  | 'XcodeV'
  | 'XcodeC'
  | 'MsgVast'
  | 'AsgVast'
  | 'Mongo'
  | 'Agents'
export type MonitoringStatus = 'Success' | 'Failure'

// @DataContract
export class ResponseError {
  // @DataMember(Order=1)
  public ErrorCode?: string
  // @DataMember(Order=2)
  public FieldName?: string
  // @DataMember(Order=3)
  public Message?: string
  // @DataMember(Order=4)
  public Meta?: { [index: string]: string }
  public constructor(init?: Partial<ResponseError>) {
    Object.assign(this, init)
  }
}

// @DataContract
export class ResponseStatus {
  // @DataMember(Order=1)
  public ErrorCode?: string
  // @DataMember(Order=2)
  public Message?: string
  // @DataMember(Order=3)
  public StackTrace?: string
  // @DataMember(Order=4)
  public Errors?: ResponseError[]
  // @DataMember(Order=5)
  public Meta?: { [index: string]: string }
  public constructor(init?: Partial<ResponseStatus>) {
    Object.assign(this, init)
  }
}

// @DataContract
export class AuthenticateResponse {
  public UserId?: string
  public SessionId?: string
  public UserName?: string
  public DisplayName?: string
  public ReferrerUrl?: string
  public BearerToken?: string
  public RefreshToken?: string
  public ProfileUrl?: string
  public Roles?: string[]
  public Permissions?: string[]
  public ResponseStatus?: ResponseStatus
  public Meta?: { [index: string]: string }
  public constructor(init?: Partial<AuthenticateResponse>) {
    Object.assign(this, init)
  }
}

// @DataContract
export class AssignRolesResponse {
  public AllRoles?: string[]
  public AllPermissions?: string[]
  public Meta?: { [index: string]: string }
  public ResponseStatus?: ResponseStatus
  public constructor(init?: Partial<AssignRolesResponse>) {
    Object.assign(this, init)
  }
}

// @DataContract
export class UnAssignRolesResponse {
  public AllRoles?: string[]
  public AllPermissions?: string[]
  public Meta?: { [index: string]: string }
  public ResponseStatus?: ResponseStatus
  public constructor(init?: Partial<UnAssignRolesResponse>) {
    Object.assign(this, init)
  }
}

export class ServerState {
  public ServerName?: string
  public TotalRamInMb?: number
  public AvailableRamInMb?: number
  public UsedCpuPercent?: number
  public constructor(init?: Partial<ServerState>) {
    Object.assign(this, init)
  }
}

export class MonitoringResult {
  public MonitoringName?: string
  public Status?: MonitoringStatus
  public StatusMessage?: string
  public ErrorMessages?: string[]
  public constructor(init?: Partial<MonitoringResult>) {
    Object.assign(this, init)
  }
}

export class MonitorSummary {
  public MonitorName?: string
  public Status?: MonitoringStatus
  public Results?: MonitoringResult[]
  public ErrorMessages?: string[]
  public constructor(init?: Partial<MonitorSummary>) {
    Object.assign(this, init)
  }
}

export class MonitorExecutionMetrics {
  public StartDateTime?: string
  public EndDateTime?: string
  public Duration?: string
  public constructor(init?: Partial<MonitorExecutionMetrics>) {
    Object.assign(this, init)
  }
}

export class HealthCheckResponse {
  public ServerState?: ServerState
  public Status?: MonitoringStatus
  public StatusMessage?: string
  public CorrelationId?: string
  public FailedMonitorCount?: number
  public MonitorSummaries?: MonitorSummary[]
  public ExecutionMetrics?: MonitorExecutionMetrics
  public constructor(init?: Partial<HealthCheckResponse>) {
    Object.assign(this, init)
  }
}

// @Route("/auth", "OPTIONS,GET,POST,DELETE")
// @Route("/auth/{provider}", "OPTIONS,GET,POST,DELETE")
// @DataContract
export class Authenticate implements IReturn<AuthenticateResponse> {
  // @DataMember(Order=1)
  public provider?: string
  public UserName?: string
  public Password?: string
  public RememberMe?: boolean
  public AccessToken?: string
  public Meta?: { [index: string]: string }
  public constructor(init?: Partial<Authenticate>) {
    Object.assign(this, init)
  }
  public getTypeName() {
    return 'Authenticate'
  }
  public getMethod() {
    return 'POST'
  }
  public createResponse() {
    return new AuthenticateResponse()
  }
}

// @Route("/assignroles", "POST")
// @DataContract
export class AssignRoles implements IReturn<AssignRolesResponse> {
  // @DataMember(Order=1)
  public UserName?: string
  // @DataMember(Order=2)
  public Permissions?: string[]
  // @DataMember(Order=3)
  public Roles?: string[]
  // @DataMember(Order=4)
  public Meta?: { [index: string]: string }
  public constructor(init?: Partial<AssignRoles>) {
    Object.assign(this, init)
  }
  public getTypeName() {
    return 'AssignRoles'
  }
  public getMethod() {
    return 'POST'
  }
  public createResponse() {
    return new AssignRolesResponse()
  }
}

// @Route("/unassignroles", "POST")
// @DataContract
export class UnAssignRoles implements IReturn<UnAssignRolesResponse> {
  // @DataMember(Order=1)
  public UserName?: string
  // @DataMember(Order=2)
  public Permissions?: string[]
  // @DataMember(Order=3)
  public Roles?: string[]
  // @DataMember(Order=4)
  public Meta?: { [index: string]: string }
  public constructor(init?: Partial<UnAssignRoles>) {
    Object.assign(this, init)
  }
  public getTypeName() {
    return 'UnAssignRoles'
  }
  public getMethod() {
    return 'POST'
  }
  public createResponse() {
    return new UnAssignRolesResponse()
  }
}

// @Route("/healthcheck", "GET")
export class HealthCheckRequest implements IReturn<HealthCheckResponse> {
  public ExecutionMode?: ExecutionMode
  public ServerType?: ServerType
  public IncludeServerStateInformation?: boolean
  public SuppressErrorCodes?: boolean
  public SuppressDeploymentErrors?: boolean
  public constructor(init?: Partial<HealthCheckRequest>) {
    Object.assign(this, init)
  }
  public getTypeName() {
    return 'HealthCheckRequest'
  }
  public getMethod() {
    return 'GET'
  }
  public createResponse() {
    return new HealthCheckResponse()
  }
}
