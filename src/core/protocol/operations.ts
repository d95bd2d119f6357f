import {
  AssignRoles,
  AssignRolesResponse,
  Authenticate,
  AuthenticateResponse,
  GetAccessToken,
  GetAccessTokenResponse,
  HealthCheckRequest,
  HealthCheckResponse,
  UnAssignRoles,
  UnAssignRolesResponse,
} from './dtos.ts'
import type { Dto, Infer } from './schema.ts'

export type Verb = 'GET' | 'POST' | 'DELETE' | 'OPTIONS'
export type Route = { readonly verbs: readonly Verb[]; readonly path: string }
export type OperationSpec = {
  /** The request's name on the wire: `/json/reply/{name}`, CSV file names, metadata. */
  readonly name: string
  readonly summary: string
  /** HEAD is answered wherever GET is (R4); OPTIONS on every route (R5). */
  readonly routes: readonly [Route, ...Route[]]
  /** Verbs of the pre-defined routes `/json/reply/{name}` and `/api/{name}` (R2). */
  readonly replyVerbs: readonly Verb[]
  readonly request: Dto
  readonly response: Dto
  /** Who may call. Required, so that nothing is open by omission. */
  readonly caller: 'anyone' | 'Admin'
  /** Fields refused in a query, because queries are logged (N7). */
  readonly neverInQuery: readonly string[]
}

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
  },
} as const satisfies Record<string, OperationSpec>

export type Operation = keyof typeof operations
export type Request<O extends Operation> = Infer<(typeof operations)[O]['request']>
export type Response<O extends Operation> = Infer<(typeof operations)[O]['response']>
