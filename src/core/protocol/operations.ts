import {
  AssignRoles,
  AssignRolesResponse,
  Authenticate,
  AuthenticateResponse,
  GetAccessToken,
  GetAccessTokenResponse,
  HealthCheckRequest,
  HealthCheckResponse,
  ReportHeartbeat,
  ReportHeartbeatResponse,
  UnAssignRoles,
  UnAssignRolesResponse,
} from './dtos.ts'
import type { Dto, Infer } from './schema.ts'

export type Verb = 'GET' | 'POST' | 'DELETE' | 'OPTIONS'
export type OperationRoute = {
  readonly verbs: readonly Verb[]
  readonly path: string
  /** The parameter that ends the path may hold dots: only the suffix of a format is one (F1). */
  readonly dots?: true
}
/** Who may call: anyone, who holds Admin, or who holds a permission; Admin may do what a permission allows. */
export type WhoMayCall = 'anyone' | 'Admin' | { readonly permission: string }
export type OperationSpec = {
  /** The request's name on the wire: `/json/reply/{name}`, CSV file names, metadata. */
  readonly name: string
  readonly summary: string
  /** HEAD is answered wherever GET is (R4); OPTIONS on every route (R5). */
  readonly routes: readonly [OperationRoute, ...OperationRoute[]]
  /** Verbs of the pre-defined routes `/json/reply/{name}` and `/api/{name}` (R2). */
  readonly replyVerbs: readonly Verb[]
  readonly request: Dto
  readonly response: Dto
  /** Who may call. Required, so that nothing is open by omission. */
  readonly caller: WhoMayCall
  /** Fields refused in a query, because queries are logged (N7). */
  readonly neverInQuery: readonly string[]
  /** Whether several may be sent in one request (R3): never what a guesser of passwords would send by the hundred. */
  readonly batch: boolean
  /** HTTP statuses that it is refused with, beside those that every operation has. */
  readonly refusals: readonly number[]
}

/** A route named after the request (R2). */
export type ReplyRoute = {
  /** What stands before `/{name}`. */
  readonly prefix: string
  /** The format that it fixes; undefined: a suffix or `?format=` says, else JSON. */
  readonly format: 'json' | 'csv' | undefined
  /** Whether `{name}[]` takes a batch (R3). */
  readonly batches: boolean
}
export const replyRoutes: readonly ReplyRoute[] = [
  { prefix: '/json/reply', format: 'json', batches: true },
  { prefix: '/json/oneway', format: 'json', batches: true },
  { prefix: '/csv/reply', format: 'csv', batches: false },
  { prefix: '/csv/oneway', format: 'csv', batches: false },
  { prefix: '/api', format: undefined, batches: true },
]

/** R3: the most requests that one batch may hold. */
export const maxBatch = 64

const authVerbs = ['OPTIONS', 'GET', 'POST', 'DELETE'] as const

/** One row an operation. Types, validation, routes, client, guard and docs are read off it. */
export const operations = {
  authenticate: {
    name: 'Authenticate',
    summary: 'Sign in, sign out, or ask who is signed in',
    routes: [
      { verbs: authVerbs, path: '/auth' },
      { verbs: authVerbs, path: '/auth/{provider}' },
    ],
    replyVerbs: authVerbs,
    request: Authenticate,
    response: AuthenticateResponse,
    caller: 'anyone',
    neverInQuery: ['Password', 'AccessToken', 'AccessTokenSecret', 'RefreshToken', 'oauth_verifier', 'response'],
    batch: false,
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
    neverInQuery: ['RefreshToken'],
    batch: false,
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
    neverInQuery: [],
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
    neverInQuery: [],
    batch: true,
    refusals: [404, 409],
  },
  healthCheck: {
    name: 'HealthCheckRequest',
    summary: 'Report the health of a server, at a depth and for a server type',
    routes: [{ verbs: ['GET'], path: '/healthcheck' }],
    replyVerbs: ['GET', 'POST'],
    request: HealthCheckRequest,
    response: HealthCheckResponse,
    caller: 'anyone',
    neverInQuery: [],
    batch: true,
    refusals: [],
  },
  reportHeartbeat: {
    name: 'ReportHeartbeat',
    summary: 'Report that an agent is alive, and how it is',
    routes: [
      { verbs: ['POST'], path: '/heartbeats' },
      { verbs: ['POST'], path: '/heartbeats/{Name}', dots: true },
    ],
    replyVerbs: ['POST'],
    request: ReportHeartbeat,
    response: ReportHeartbeatResponse,
    caller: { permission: 'heartbeat' },
    neverInQuery: [],
    batch: false,
    refusals: [409],
  },
} as const satisfies Record<string, OperationSpec>

export type Operation = keyof typeof operations
export type Request<O extends Operation> = Infer<(typeof operations)[O]['request']>
export type Response<O extends Operation> = Infer<(typeof operations)[O]['response']>

/** O7: whether a refusal of the operation says, beside the ResponseStatus, that there are no roles. */
export const listsRoles = (response: Dto): boolean => 'AllRoles' in response.fields

/** A1, A5–A7: what is asked of `authenticate`, by the verb that carried it (HEAD asks as GET does). */
export type AuthPurpose = 'sign-in' | 'sign-out' | 'question'
export function authPurpose(verb: 'GET' | 'POST' | 'DELETE', request: Authenticate): AuthPurpose {
  const provider = request.provider?.trim().toLowerCase() ?? ''
  if (verb === 'DELETE' || provider === 'logout') return 'sign-out'
  return verb === 'POST' && (provider !== '' || request.UserName !== undefined) ? 'sign-in' : 'question'
}
