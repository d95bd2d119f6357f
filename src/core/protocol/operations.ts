import { administration } from './administration.ts'
import {
  AcknowledgeFault,
  AcknowledgeFaultResponse,
  AssignRoles,
  AssignRolesResponse,
  Authenticate,
  AuthenticateResponse,
  ChangePassword,
  ChangePasswordResponse,
  EndSession,
  EndSessionResponse,
  EndSilence,
  EndSilenceResponse,
  ForgetNode,
  ForgetNodeResponse,
  GetAccessToken,
  GetAccessTokenResponse,
  GetDrill,
  GetDrillResponse,
  GetHistory,
  GetHistoryResponse,
  GetImpact,
  GetImpactResponse,
  GetNodes,
  GetNodesResponse,
  GetServerTypes,
  GetServerTypesResponse,
  GetSessions,
  GetSessionsResponse,
  GetSilences,
  GetSilencesResponse,
  GiveBackRoles,
  GiveBackRolesResponse,
  HealthCheckRequest,
  HealthCheckResponse,
  ReportHeartbeat,
  ReportHeartbeatResponse,
  SilenceMonitors,
  SilenceMonitorsResponse,
  StartDrill,
  StartDrillResponse,
  UnAssignRoles,
  UnAssignRolesResponse,
} from './dtos.ts'
import { type Dto, type Field, type Infer, schemaOf } from './schema.ts'

export type Verb = 'GET' | 'POST' | 'DELETE' | 'OPTIONS'
export type OperationRoute = {
  readonly verbs: readonly Verb[]
  readonly path: string
  /** The path's last parameter may contain dots: only the suffix of a known format is removed (F1). */
  readonly dots?: true
}
/**
 * Who may call: anyone, a user who has signed in (not a key), users with Admin, or users with a permission. Admin
 * includes all permissions.
 */
export type WhoMayCall = 'anyone' | 'user' | 'Admin' | { readonly permission: string }
export type OperationSpec = {
  /** The request's name on the wire: `/json/reply/{name}`, CSV file names, metadata. */
  readonly name: string
  readonly summary: string
  /** HEAD accompanies GET (R4), and every route answers OPTIONS (R5). */
  readonly routes: readonly [OperationRoute, ...OperationRoute[]]
  /** Verbs of the predefined routes `/json/reply/{name}` and `/api/{name}` (R2). */
  readonly replyVerbs: readonly Verb[]
  readonly request: Dto
  readonly response: Dto
  /** Who may call. Required, so that no operation is public by omission. */
  readonly caller: WhoMayCall
  /** Refused in a query beside the fields that are secret (N7). */
  readonly neverInQuery?: readonly string[]
  /** A batch may contain it (R3). Never for operations that would help to guess passwords in bulk. */
  readonly batch?: true
  /** It gives somebody access that lasts: for Admins without an end only (O8). */
  readonly givesAccess?: true
  /** Statuses of its refusals, in addition to those of every operation. */
  readonly refusals: readonly number[]
}

const isSecret = (field: Field): boolean => {
  const schema = schemaOf(field)
  return schema.kind === 'text' && schema.secret === true
}

/** The fields with a password, a key or a code. */
export const secretFields = ({ fields }: Dto): readonly string[] =>
  Object.entries(fields).flatMap(([name, field]) => (isSecret(field) ? [name] : []))

/** The parameters that no query may have, because queries are logged (N7). */
export const neverInQuery = ({ request, neverInQuery = [] }: OperationSpec): readonly string[] => [
  ...secretFields(request),
  ...neverInQuery,
]

/** A route named after the request (R2); `{name}[]` accepts a batch (R3). */
export type ReplyRoute = {
  /** The path before `/{name}`. */
  readonly prefix: string
  /** The format of the route. Undefined: a suffix or `?format=` decides; the default is JSON. */
  readonly format: 'json' | 'csv' | 'jsv' | undefined
}
export const replyRoutes: readonly ReplyRoute[] = [
  { prefix: '/json/reply', format: 'json' },
  { prefix: '/json/oneway', format: 'json' },
  { prefix: '/csv/reply', format: 'csv' },
  { prefix: '/csv/oneway', format: 'csv' },
  { prefix: '/jsv/reply', format: 'jsv' },
  { prefix: '/jsv/oneway', format: 'jsv' },
  { prefix: '/api', format: undefined },
]

/** The maximum number of requests in a batch (R3). */
export const maxBatch = 64

const authVerbs = ['OPTIONS', 'GET', 'POST', 'DELETE'] as const

/** One row per operation. Types, validation, routes, client, authorization and docs all derive from it. */
export const operations = {
  authenticate: {
    name: 'Authenticate',
    summary: 'Sign in, sign out, or show who is signed in',
    routes: [
      { verbs: authVerbs, path: '/auth' },
      { verbs: authVerbs, path: '/auth/{provider}' },
    ],
    replyVerbs: authVerbs,
    request: Authenticate,
    response: AuthenticateResponse,
    caller: 'anyone',
    neverInQuery: ['RefreshToken'],
    refusals: [401, 404, 405, 429],
  },
  getAccessToken: {
    name: 'GetAccessToken',
    summary: 'Exchange a refresh token for a new access token',
    routes: [{ verbs: ['POST'], path: '/access-token' }],
    replyVerbs: ['POST'],
    request: GetAccessToken,
    response: GetAccessTokenResponse,
    caller: 'anyone',
    refusals: [401],
  },
  assignRoles: {
    name: 'AssignRoles',
    summary: 'Add roles and permissions to a user',
    routes: [{ verbs: ['POST'], path: '/assignroles' }],
    replyVerbs: ['POST'],
    request: AssignRoles,
    response: AssignRolesResponse,
    caller: 'Admin',
    batch: true,
    refusals: [404, 409],
  },
  unAssignRoles: {
    name: 'UnAssignRoles',
    summary: 'Remove roles and permissions from a user',
    routes: [{ verbs: ['POST'], path: '/unassignroles' }],
    replyVerbs: ['POST'],
    request: UnAssignRoles,
    response: UnAssignRolesResponse,
    caller: 'Admin',
    batch: true,
    refusals: [404, 409],
  },
  giveBackRoles: {
    name: 'GiveBackRoles',
    summary: 'Remove own roles and permissions of the signed-in user',
    routes: [{ verbs: ['POST'], path: '/roles/give-back' }],
    replyVerbs: ['POST'],
    request: GiveBackRoles,
    response: GiveBackRolesResponse,
    caller: 'user',
    refusals: [409],
  },
  healthCheck: {
    name: 'HealthCheckRequest',
    summary: 'Report the health of a server type, at a depth',
    routes: [{ verbs: ['GET'], path: '/healthcheck' }],
    replyVerbs: ['GET', 'POST'],
    request: HealthCheckRequest,
    response: HealthCheckResponse,
    caller: 'anyone',
    batch: true,
    refusals: [],
  },
  serverTypes: {
    name: 'GetServerTypes',
    summary: 'List the server types that a check of everything includes',
    routes: [{ verbs: ['GET'], path: '/server-types' }],
    replyVerbs: ['GET', 'POST'],
    request: GetServerTypes,
    response: GetServerTypesResponse,
    caller: 'anyone',
    refusals: [],
  },
  history: {
    name: 'GetHistory',
    summary: 'Show the availability, down times and figures of the monitors',
    routes: [{ verbs: ['GET'], path: '/history' }],
    replyVerbs: ['GET', 'POST'],
    request: GetHistory,
    response: GetHistoryResponse,
    caller: 'anyone',
    refusals: [401, 403, 404],
  },
  impact: {
    name: 'GetImpact',
    summary: 'Show which monitors depend on others, and would not run without them',
    routes: [{ verbs: ['GET'], path: '/impact' }],
    replyVerbs: ['GET', 'POST'],
    request: GetImpact,
    response: GetImpactResponse,
    caller: 'anyone',
    refusals: [401, 403, 404],
  },
  startDrill: {
    name: 'StartDrill',
    summary: 'Begin a drill: send a marked fault through the receivers of notifications',
    routes: [{ verbs: ['POST'], path: '/drills/start' }],
    replyVerbs: ['POST'],
    request: StartDrill,
    response: StartDrillResponse,
    caller: { permission: 'drill' },
    refusals: [404, 409, 429],
  },
  getDrill: {
    name: 'GetDrill',
    summary: 'Show a drill, or the latest one, with what it has proven of each hop',
    routes: [
      { verbs: ['GET'], path: '/drills' },
      { verbs: ['GET'], path: '/drills/{Id}' },
    ],
    replyVerbs: ['GET', 'POST'],
    request: GetDrill,
    response: GetDrillResponse,
    caller: { permission: 'drill' },
    refusals: [404],
  },
  getSilences: {
    name: 'GetSilences',
    summary: 'List what is silenced and acknowledged',
    routes: [{ verbs: ['GET'], path: '/silences' }],
    replyVerbs: ['GET', 'POST'],
    request: GetSilences,
    response: GetSilencesResponse,
    caller: 'anyone',
    refusals: [401, 403],
  },
  silenceMonitors: {
    name: 'SilenceMonitors',
    summary: 'Silence notifications about monitors for a while',
    routes: [{ verbs: ['POST'], path: '/silences/monitors' }],
    replyVerbs: ['POST'],
    request: SilenceMonitors,
    response: SilenceMonitorsResponse,
    caller: { permission: 'silence' },
    refusals: [409],
  },
  endSilence: {
    name: 'EndSilence',
    summary: 'End a silence or an acknowledgement before its time',
    routes: [{ verbs: ['POST'], path: '/silences/end' }],
    replyVerbs: ['POST'],
    request: EndSilence,
    response: EndSilenceResponse,
    caller: { permission: 'silence' },
    refusals: [404],
  },
  acknowledge: {
    name: 'AcknowledgeFault',
    summary: 'Silence notifications about a fault for as long as it is the same fault',
    routes: [{ verbs: ['POST'], path: '/silences/acknowledge' }],
    replyVerbs: ['POST'],
    request: AcknowledgeFault,
    response: AcknowledgeFaultResponse,
    caller: { permission: 'silence' },
    refusals: [404, 409],
  },
  getNodes: {
    name: 'GetNodes',
    summary: 'List the nodes that share the store, and which monitors of the network have no owner',
    routes: [{ verbs: ['GET'], path: '/nodes' }],
    replyVerbs: ['GET', 'POST'],
    request: GetNodes,
    response: GetNodesResponse,
    caller: 'anyone',
    refusals: [401, 403, 409],
  },
  forgetNode: {
    name: 'ForgetNode',
    summary: 'Remove a node that does not return, with what is stored of its machine',
    routes: [{ verbs: ['POST'], path: '/nodes/forget' }],
    replyVerbs: ['POST'],
    request: ForgetNode,
    response: ForgetNodeResponse,
    caller: 'Admin',
    refusals: [404, 409],
  },
  reportHeartbeat: {
    name: 'ReportHeartbeat',
    summary: 'Report that an agent is alive, and its status',
    routes: [
      { verbs: ['POST'], path: '/heartbeats' },
      { verbs: ['POST'], path: '/heartbeats/{Name}', dots: true },
    ],
    replyVerbs: ['POST'],
    request: ReportHeartbeat,
    response: ReportHeartbeatResponse,
    caller: { permission: 'heartbeat' },
    refusals: [409, 429],
  },
  changePassword: {
    name: 'ChangePassword',
    summary: 'Change the password of the signed-in user',
    routes: [{ verbs: ['POST'], path: '/password' }],
    replyVerbs: ['POST'],
    request: ChangePassword,
    response: ChangePasswordResponse,
    caller: 'user',
    refusals: [409, 429],
  },
  getSessions: {
    name: 'GetSessions',
    summary: 'List the sessions of the signed-in user, or of another user for an Admin',
    routes: [{ verbs: ['GET'], path: '/sessions' }],
    replyVerbs: ['GET', 'POST'],
    request: GetSessions,
    response: GetSessionsResponse,
    caller: 'user',
    refusals: [404],
  },
  endSession: {
    name: 'EndSession',
    summary: 'End a session with its tokens, all other sessions, or all',
    routes: [
      { verbs: ['POST'], path: '/sessions/end' },
      { verbs: ['DELETE'], path: '/sessions/{Id}' },
    ],
    replyVerbs: ['POST', 'DELETE'],
    request: EndSession,
    response: EndSessionResponse,
    caller: 'user',
    refusals: [404],
  },
  ...administration,
} as const satisfies Record<string, OperationSpec>

export type Operation = keyof typeof operations

/** Operations that change nothing and need no sign-in, but tell about this machine: no other site may read them (S11). */
export const readsHealth = (operation: Operation): boolean =>
  ['healthCheck', 'serverTypes', 'history', 'impact', 'getSilences', 'getNodes'].includes(operation)

export type Request<O extends Operation> = Infer<(typeof operations)[O]['request']>
export type Response<O extends Operation> = Infer<(typeof operations)[O]['response']>

/** Whether refusals of the operation contain empty role lists beside the ResponseStatus (O7). */
export const listsRoles = (response: Dto): boolean => 'AllRoles' in response.fields

/** The purpose of an `authenticate` call, by its verb (A1, A5–A7). HEAD counts as GET. */
export type AuthPurpose = 'sign-in' | 'sign-out' | 'question'
export function authPurpose(verb: 'GET' | 'POST' | 'DELETE', request: Authenticate): AuthPurpose {
  const provider = request.provider?.trim().toLowerCase() ?? ''
  if (verb === 'DELETE' || provider === 'logout') return 'sign-out'
  return verb === 'POST' && (provider !== '' || request.UserName !== undefined) ? 'sign-in' : 'question'
}

/**
 * Ours (O8): with this entry in the Meta of a role change, the Meta of the answer has the lists before the change, as JSON
 * arrays, and an unassignment in another letter case is refused.
 */
export const changesRequest = { key: 'svc.changes', value: '1' } as const
export const rolesBefore = 'svc.rolesBefore'
export const permissionsBefore = 'svc.permissionsBefore'
/** The head of the audit as the server knows it, `N:HASH`, in the same Meta (S13): a copy of it that the store cannot change. */
export const auditHeadKey = 'svc.auditHead'
/** The ErrorCode of that refusal. */
export const otherCaseCode = 'OtherCase'

/** The ErrorCode of a caller who has to change the password first (P71), and the entry of the Meta of that sign-in. */
export const mustChangeCode = 'PasswordMustChange'
export const mustChangeKey = 'svc.mustChangePassword'

/** The entry of the Meta of a refusal with the remedy (P82), one line each. */
export const remedyKey = 'svc.remedy'
export const maxRemedyLines = 10

/** The ErrorCode of a pattern that covers no monitor (Q1). */
export const coversNothingCode = 'CoversNothing'
