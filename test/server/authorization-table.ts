/**
 * Who may do what over HTTP, as data that is independent of the code: `authorization-matrix.ts` sends what this table
 * describes, and `authorization.test.ts` fails for an operation, a path, a verb or a page of the server without a row.
 */

/**
 * The rights of a caller. `known`: somebody. `user`: somebody, and not by a key. `ever`: an Admin without an end.
 * `some` and `all`: reads the details of some server types, or of all (S11).
 */
export type Right =
  | 'known'
  | 'user'
  | 'Admin'
  | 'Admin by session'
  | 'ever'
  | 'silence'
  | 'drill'
  | 'heartbeat'
  | 'some'
  | 'all'

/** Values that exist only once the server runs: ids and secrets of the user zq-vic, who makes no request of her own. */
export type Made = { readonly session: string; readonly refreshToken: string; readonly silence: string }

/** A map is that of a field such as Meta; null stands for an entry without a value. */
export type Value = string | boolean | readonly string[] | Readonly<Record<string, string | null>>

export type Row = {
  /** `nothing`: anybody is answered, without the names in `hidden` if the caller may not read them. */
  readonly needs: Right | 'nothing'
  /** The verbs of each path. HEAD accompanies GET, every path answers OPTIONS, and all other verbs are a 405. */
  readonly at: Readonly<Record<string, string>>
  /** The verbs of the paths with the name of the operation (R2). */
  readonly reply?: string
  /** An array of requests is accepted (R3). Without it, one is a 400. */
  readonly batch?: true
  readonly ask?: (made: Made) => Readonly<Record<string, Value>>
  /** The statuses for those who may. */
  readonly answers: readonly number[]
  /** It describes this machine: no page of another site may ask (S11), and whoever calls from here reads all. */
  readonly reads?: true
  /**
   * When a page of another site is refused (T6). By default, if the browser has added the credential. `posts`: always,
   * except for GET. `always`: for GET too.
   */
  readonly guard?: 'posts' | 'always'
  /** Only requests that are refused are sent: the others would change who the callers are. */
  readonly onlyRefused?: true
  /** A mistake, which may be found before it is known who asks: the others get a refusal or a 400. */
  readonly isMistake?: true
  /** Answers under every Host (S1). */
  readonly anyHost?: true
  /** It says nothing of this machine, so a few callers suffice. */
  readonly isDocument?: true
}

const page = { needs: 'nothing', answers: [200] } as const
const document = { ...page, isDocument: true } as const
/** A form for which somebody has to be signed in, and not by HTTP Basic. Its answer is a redirect or says why not. */
const form = { needs: 'silence', guard: 'posts' } as const
const unknownToken = 'A'.repeat(32)

/** A row of an operation for Admins at one path. */
const administers = (
  verb: 'GET' | 'POST',
  path: string,
  answer: number,
  ask: Readonly<Record<string, Value>> = {},
): Row => ({
  needs: 'Admin',
  at: { [path]: verb },
  reply: verb === 'GET' ? 'GET POST' : 'POST',
  ask: () => ask,
  answers: [answer],
})
const vic = { UserName: 'zq-vic' } as const
const nobody = { UserName: 'zq-nobody' } as const

/** The row of an operation has its name, and further ones a few words more. The row of a page has its path. */
export const rows: Readonly<Record<string, Row>> = {
  Authenticate: { needs: 'known', at: { '/auth': 'GET POST' }, reply: 'GET POST', guard: 'posts', answers: [200] },
  'Authenticate to sign out': {
    needs: 'nothing',
    at: { '/auth': 'DELETE', '/auth/{provider}': 'GET POST DELETE' },
    reply: 'DELETE',
    ask: () => ({ provider: 'logout' }),
    guard: 'always',
    answers: [200],
    onlyRefused: true,
  },
  'Authenticate to sign in': {
    needs: 'nothing',
    at: { '/auth/{provider}': 'POST' },
    ask: () => ({ provider: 'credentials', UserName: 'zq-vic', Password: 'wrong' }),
    guard: 'always',
    answers: [401],
    onlyRefused: true,
  },
  GetAccessToken: {
    needs: 'nothing',
    at: { '/access-token': 'POST' },
    reply: 'POST',
    // That of a session that has ended.
    ask: ({ refreshToken }) => ({ RefreshToken: refreshToken }),
    answers: [401],
  },
  AssignRoles: {
    // A permanent role is more than an Admin for a time may give (O8).
    needs: 'ever',
    at: { '/assignroles': 'POST' },
    reply: 'POST',
    batch: true,
    ask: () => ({ UserName: 'zq-vic', Roles: ['Granted'], Permissions: ['granted'] }),
    answers: [200],
  },
  // O8: an end without a value is a mistake, and grants nothing.
  'AssignRoles with an end of null': {
    needs: 'Admin',
    at: { '/assignroles': 'POST' },
    reply: 'POST',
    batch: true,
    ask: () => ({ UserName: 'zq-vic', Roles: ['Granted'], Meta: { expires: null } }),
    answers: [400],
    isMistake: true,
  },
  'AssignRoles with an end whose key has blanks': {
    needs: 'Admin',
    at: { '/assignroles': 'POST' },
    reply: 'POST',
    batch: true,
    ask: () => ({ UserName: 'zq-vic', Permissions: ['granted'], Meta: { reason: 'INC-1', ' Expires ': null } }),
    answers: [400],
    isMistake: true,
  },
  UnAssignRoles: {
    needs: 'Admin',
    at: { '/unassignroles': 'POST' },
    reply: 'POST',
    batch: true,
    ask: () => ({ UserName: 'zq-vic', Roles: ['Held'], Permissions: ['held'] }),
    answers: [200],
  },
  GiveBackRoles: {
    needs: 'user',
    at: { '/roles/give-back': 'POST' },
    reply: 'POST',
    ask: () => ({ Permissions: ['spare'] }),
    answers: [200],
  },
  HealthCheckRequest: {
    needs: 'nothing',
    at: { '/healthcheck': 'GET' },
    reply: 'GET POST',
    batch: true,
    ask: () => ({ ExecutionMode: 'Basic', ServerType: 'Sql', SuppressErrorCodes: true }),
    answers: [200],
    reads: true,
  },
  'HealthCheckRequest of another type': {
    needs: 'nothing',
    at: { '/healthcheck': 'GET' },
    ask: () => ({ ExecutionMode: 'Basic', ServerType: 'App', SuppressErrorCodes: true }),
    answers: [200],
    reads: true,
  },
  GetServerTypes: { needs: 'nothing', at: { '/server-types': 'GET' }, reply: 'GET POST', answers: [200], reads: true },
  GetHistory: {
    needs: 'some',
    at: { '/history': 'GET' },
    reply: 'GET POST',
    ask: () => ({ ServerType: 'Sql' }),
    answers: [200],
    reads: true,
  },
  'GetHistory of another type': {
    needs: 'all',
    at: { '/history': 'GET' },
    ask: () => ({ ServerType: 'App' }),
    answers: [200],
    reads: true,
  },
  GetImpact: {
    needs: 'some',
    at: { '/impact': 'GET' },
    reply: 'GET POST',
    ask: () => ({ Monitor: 'Sql/tcp zq-orders' }),
    answers: [200],
    reads: true,
  },
  StartDrill: {
    needs: 'drill',
    at: { '/drills/start': 'POST' },
    reply: 'POST',
    ask: () => ({ Through: ['nobody'] }),
    answers: [404],
  },
  GetDrill: {
    needs: 'drill',
    at: { '/drills': 'GET', '/drills/{Id}': 'GET' },
    reply: 'GET POST',
    ask: () => ({ Id: 'none' }),
    answers: [404],
  },
  GetSilences: { needs: 'some', at: { '/silences': 'GET' }, reply: 'GET POST', answers: [200], reads: true },
  SilenceMonitors: {
    needs: 'silence',
    at: { '/silences/monitors': 'POST' },
    reply: 'POST',
    ask: () => ({ Monitors: ['Sql/*'], For: 'PT1H', Reason: 'zq-reason' }),
    // There may be so many at a time.
    answers: [200, 409],
  },
  EndSilence: {
    needs: 'silence',
    at: { '/silences/end': 'POST' },
    reply: 'POST',
    ask: ({ silence }) => ({ Id: silence }),
    answers: [200, 404],
  },
  AcknowledgeFault: {
    needs: 'silence',
    at: { '/silences/acknowledge': 'POST' },
    reply: 'POST',
    ask: () => ({ Monitor: 'Sql/tcp zq-orders', Reason: 'zq-reason' }),
    answers: [404],
  },
  // Nodes need a PostgreSQL store.
  GetNodes: { needs: 'all', at: { '/nodes': 'GET' }, reply: 'GET POST', answers: [409], reads: true },
  ForgetNode: {
    needs: 'Admin',
    at: { '/nodes/forget': 'POST' },
    reply: 'POST',
    ask: () => ({ Name: 'zq-host' }),
    answers: [409],
  },
  ReportHeartbeat: {
    needs: 'heartbeat',
    at: { '/heartbeats': 'POST', '/heartbeats/{Name}': 'POST' },
    reply: 'POST',
    ask: () => ({ Name: 'beat-1', Status: 'Ok' }),
    answers: [200],
  },
  ChangePassword: {
    needs: 'user',
    at: { '/password': 'POST' },
    reply: 'POST',
    // Proves the current password, and changes nothing.
    ask: () => ({ CurrentPassword: password, NewPassword: password }),
    answers: [400],
  },
  GetSessions: { needs: 'user', at: { '/sessions': 'GET' }, reply: 'GET POST', answers: [200] },
  'GetSessions of another user': {
    needs: 'Admin by session',
    at: { '/sessions': 'GET' },
    reply: 'GET POST',
    ask: () => ({ UserName: 'zq-vic' }),
    answers: [200],
  },
  EndSession: {
    needs: 'user',
    at: { '/sessions/end': 'POST', '/sessions/{Id}': 'DELETE' },
    reply: 'POST DELETE',
    // The session of another user is none of the caller's.
    ask: ({ session }) => ({ Id: session }),
    answers: [404],
  },
  'EndSession of another user': {
    needs: 'Admin by session',
    at: { '/sessions/end': 'POST' },
    reply: 'POST',
    ask: ({ session }) => ({ UserName: 'zq-vic', Id: session }),
    answers: [200, 404],
  },

  GetUsers: administers('GET', '/users', 200),
  GetUser: administers('GET', '/users/show', 200, vic),
  // Taken.
  AddUser: { ...administers('POST', '/users/add', 409, vic), needs: 'ever' },
  SetPassword: { ...administers('POST', '/users/password', 400, { ...vic, Password: 'short' }), needs: 'ever' },
  RemoveDigest: administers('POST', '/users/digest/remove', 200, vic),
  DisableUser: administers('POST', '/users/disable', 404, nobody),
  EnableUser: administers('POST', '/users/enable', 200, vic),
  UnlockUser: administers('POST', '/users/unlock', 200, vic),
  LinkUser: { ...administers('POST', '/users/link', 400, { ...vic, Provider: 'none', Subject: '1' }), needs: 'ever' },
  UnlinkUser: administers('POST', '/users/unlink', 400, { ...vic, Provider: 'none' }),
  RemoveUser: administers('POST', '/users/remove', 404, nobody),
  GetKeys: administers('GET', '/keys', 200),
  CreateKey: { ...administers('POST', '/keys/create', 404, { ...nobody, Name: 'zq-key' }), needs: 'ever' },
  RevokeKey: administers('POST', '/keys/revoke', 404, { Name: 'zq-key' }),
  GetAudit: administers('GET', '/audit', 200),
  VerifyAudit: administers('POST', '/audit/verify', 200),
  GetAuditHead: administers('GET', '/audit/head', 200),
  GetHeartbeats: administers('GET', '/agents', 200),
  ForgetHeartbeat: administers('POST', '/agents/forget', 404, { Name: 'zq-agent' }),
  GetRoleHolders: administers('GET', '/roles/holders', 200, { Role: 'Admin' }),
  GetRoleHistory: administers('GET', '/roles/history', 200, vic),

  '/': {
    needs: 'nothing',
    at: { '/': 'GET POST' },
    ask: () => ({ ExecutionMode: 'Basic', ServerType: 'Sql' }),
    guard: 'posts',
    answers: [200, 303],
  },
  '/board': { ...page, at: { '/board': 'GET' } },
  '/badge/{Type}/{Monitor}.svg': {
    needs: 'nothing',
    at: { '/badge/{Type}/{Monitor}.svg': 'GET', '/badge/{Type}.svg': 'GET' },
    ask: () => ({ Type: 'Sql', Monitor: 'zq-orders' }),
    answers: [404],
  },
  '/sign-in': { ...page, at: { '/sign-in': 'GET' } },
  '/sign-in to sign in': {
    needs: 'nothing',
    at: { '/sign-in': 'POST' },
    ask: () => ({ UserName: 'zq-vic', Password: 'wrong' }),
    guard: 'posts',
    answers: [401],
    onlyRefused: true,
  },
  '/drills/opened/{Token}': {
    needs: 'nothing',
    at: { '/drills/opened/{Token}': 'GET' },
    ask: () => ({ Token: unknownToken }),
    answers: [404],
  },
  '/drills/opened/{Token} to confirm': {
    needs: 'nothing',
    at: { '/drills/opened/{Token}': 'POST' },
    ask: () => ({ Token: unknownToken }),
    guard: 'posts',
    answers: [404],
  },
  '/forms/silence': { ...page, at: { '/forms/silence': 'GET' } },
  '/forms/silence to silence': {
    ...form,
    at: { '/forms/silence': 'POST' },
    ask: () => ({ Monitors: ['Sql/*'], For: 'PT1H', Reason: 'zq-reason' }),
    answers: [303, 409],
  },
  '/forms/acknowledge': { ...page, at: { '/forms/acknowledge': 'GET' } },
  '/forms/acknowledge to acknowledge': {
    ...form,
    at: { '/forms/acknowledge': 'POST' },
    ask: () => ({ Monitor: 'Sql/tcp zq-orders', Reason: 'zq-reason' }),
    answers: [404],
  },
  '/forms/end-silence': { ...page, at: { '/forms/end-silence': 'GET' } },
  '/forms/end-silence to end': {
    ...form,
    at: { '/forms/end-silence': 'POST' },
    ask: ({ silence }) => ({ Id: silence }),
    answers: [303, 404],
  },
  '/livez': { ...page, at: { '/livez': 'GET' }, anyHost: true },
  '/readyz': { ...page, at: { '/readyz': 'GET' }, anyHost: true },
  // Whoever has no key of the store is told nothing.
  '/nodes/speaker': { ...page, at: { '/nodes/speaker': 'GET' }, anyHost: true },
  '/metrics': { ...page, at: { '/metrics': 'GET' } },
  '/metadata': { ...document, at: { '/metadata': 'GET' } },
  '/openapi.json': { ...document, at: { '/openapi.json': 'GET' } },
  '/openapi-all.json': { ...document, at: { '/openapi-all.json': 'GET' } },
  '/types/metadata.json': { ...document, at: { '/types/metadata.json': 'GET', '/types/metadata': 'GET' } },
  '/metadata/app.json': { ...document, at: { '/metadata/app.json': 'GET', '/metadata/app': 'GET' } },
  '/types/csharp': { ...document, at: { '/types/csharp': 'GET' } },
  '/types/java': { ...document, at: { '/types/java': 'GET' } },
  '/types/kotlin': { ...document, at: { '/types/kotlin': 'GET' } },
  '/types/python': { ...document, at: { '/types/python': 'GET' } },
  '/types/typescript': { ...document, at: { '/types/typescript': 'GET' } },
  '/types/typescript.d': { ...document, at: { '/types/typescript.d': 'GET' } },
}

/**
 * The fields that say who or what a request is about (N7). A second one of them, at another place of the request, is a 400.
 */
export const subjects = ['UserName', 'Monitors', 'Monitor', 'Name', 'Id', 'Through', 'Role', 'Subject', 'From'] as const

/** The password of every caller. */
export const password = 'violet-harbour-42'

/** Names that callers do not read: without the right `some` all of them, without `all` those of the other type. */
export const hidden = {
  some: ['zq-orders', '127.0.0.9'],
  all: ['zq-shop', '127.0.0.8', 'zq-reason', 'zq-vic', 'zq-host', 'zq-pager'],
} as const

type Grants = { readonly roles?: readonly string[]; readonly permissions?: readonly string[] }

export type CallerRow = {
  readonly may: readonly Right[]
  /** A user with these grants. Absent: nobody. */
  readonly user?: Grants
  /** The caller has a key of that user instead of a session, limited to these grants if there are any. */
  readonly key?: Grants
  /** Permissions that `svc users add` refuses, and AssignRoles gives. */
  readonly assigned?: readonly string[]
  /**
   * The event since the credential was issued. The last two leave sessions and tokens in the store, which svc
   * removes when it disables a user or changes a password.
   */
  readonly since?:
    | 'expired'
    | 'revoked'
    | 'disabled'
    | 'new password'
    | 'removed'
    | 'Admin has ended'
    | 'disabled alone'
    | 'another epoch'
    | 'named by an earlier version'
  /** Admin for an hour. */
  readonly forATime?: true
}

const everything = ['Admin', 'ever', 'silence', 'drill', 'heartbeat', 'some', 'all'] as const
const admin = { roles: ['Admin'], permissions: ['spare'] } as const
/** One who has every permission, so that a key can be limited to each of them, and no role Admin. */
const many = { roles: ['Ops'], permissions: ['health', 'silence', 'drill', 'heartbeat', 'spare'] } as const

export const callers: Readonly<Record<string, CallerRow>> = {
  'a stranger': { may: [] },
  'a user with another permission': { user: { permissions: ['spare'] }, may: ['known', 'user'] },
  'a user with mistaken permissions': {
    user: { permissions: ['Health', 'healthy', 'Silence', 'silences', 'drills', 'admin', 'Heartbeat'] },
    may: ['known', 'user'],
  },
  'a user with a role in another case': { user: { roles: [], permissions: ['Admin'] }, may: ['known', 'user'] },
  'a user with health': { user: { permissions: ['health'] }, may: ['known', 'user', 'some', 'all'] },
  'a user with health:Sql': { user: { permissions: ['health:Sql'] }, may: ['known', 'user', 'some'] },
  'a user with silence': { user: { permissions: ['silence'] }, may: ['known', 'user', 'silence'] },
  'a user with silence, granted by an earlier version': {
    user: { permissions: ['silence'] },
    since: 'named by an earlier version',
    may: ['known', 'user', 'silence'],
  },
  'a user with drill': { user: { permissions: ['drill'] }, may: ['known', 'user', 'drill'] },
  'a user with heartbeat': { user: { permissions: ['heartbeat'] }, may: ['known', 'user', 'heartbeat'] },
  'a user with heartbeat for other names': { user: { permissions: ['heartbeat:other-*'] }, may: ['known', 'user'] },
  'a user with a role': { user: { roles: ['Ops'] }, may: ['known', 'user', 'some', 'all'] },
  'a user with parts of permissions that have none': {
    user: { permissions: ['spare'] },
    assigned: ['silence:Sql', 'drill:Sql', 'health:sql', 'health:Nope', 'heartbeat:*x'],
    may: ['known', 'user'],
  },
  'an Admin': { user: admin, may: ['known', 'user', 'Admin by session', ...everything] },
  'an Admin for a time': {
    user: { permissions: ['spare'] },
    forATime: true,
    may: ['known', 'user', 'Admin by session', ...everything.filter((right) => right !== 'ever')],
  },
  'an Admin whose role has ended': { user: {}, forATime: true, since: 'Admin has ended', may: ['known', 'user'] },
  'an Admin who is disabled': { user: admin, since: 'disabled', may: [] },
  'an Admin whose session has expired': { user: admin, since: 'expired', may: [] },
  'an Admin who has signed out': { user: admin, since: 'revoked', may: [] },
  'an Admin with a new password': { user: admin, since: 'new password', may: [] },
  'an Admin who is disabled, with a session': { user: admin, since: 'disabled alone', may: [] },
  'an Admin of another epoch': { user: admin, since: 'another epoch', may: [] },
  'an Admin who is removed': { user: admin, since: 'removed', may: [] },
  'a key of an Admin': { user: admin, key: {}, may: ['known', ...everything] },
  'a key of an Admin, for a role': {
    user: { roles: ['Admin', 'Ops'] },
    key: { roles: ['Ops'] },
    may: ['known', 'some', 'all'],
  },
  'a key for health': { user: many, key: { permissions: ['health'] }, may: ['known', 'some', 'all'] },
  'a key for health:Sql': { user: many, key: { permissions: ['health:Sql'] }, may: ['known', 'some'] },
  'a key for silence': { user: many, key: { permissions: ['silence'] }, may: ['known', 'silence'] },
  'a key for silence, made by an earlier version': {
    user: many,
    key: { permissions: ['silence'] },
    since: 'named by an earlier version',
    may: ['known', 'silence'],
  },
  'a key for drill': { user: many, key: { permissions: ['drill'] }, may: ['known', 'drill'] },
  'a key for heartbeat': { user: many, key: { permissions: ['heartbeat'] }, may: ['known', 'heartbeat'] },
  'a key for heartbeat:other': { user: many, key: { permissions: ['heartbeat:other'] }, may: ['known'] },
  'a key of a user with another permission': { user: { permissions: ['spare'] }, key: {}, may: ['known'] },
  'a key of an Admin whose role has ended': {
    user: {},
    forATime: true,
    key: {},
    since: 'Admin has ended',
    may: ['known'],
  },
  'a key that is revoked': { user: admin, key: {}, since: 'revoked', may: [] },
  'a key that has expired': { user: admin, key: {}, since: 'expired', may: [] },
  'a key of a disabled Admin': { user: admin, key: {}, since: 'disabled', may: [] },
  'a key of a removed Admin': { user: admin, key: {}, since: 'removed', may: [] },
}

/** Where the caller is, as the connection and its headers show (S11). `reads`: whoever is here reads all details. */
export const places: Readonly<
  Record<
    string,
    {
      readonly reads: boolean
      readonly headers: Readonly<Record<string, string>>
      /** By the Unix socket of the server, where the system has such sockets. */
      readonly onSocket?: true
    }
  >
> = {
  here: { reads: true, headers: {} },
  elsewhere: { reads: false, headers: { 'x-forwarded-for': '203.0.113.9' } },
  'elsewhere, behind two proxies': { reads: false, headers: { 'x-forwarded-for': '127.0.0.1, 203.0.113.9' } },
  'elsewhere, by Forwarded': { reads: false, headers: { forwarded: 'for=203.0.113.9;proto=http' } },
  'elsewhere, by X-Real-IP': { reads: false, headers: { 'x-real-ip': '203.0.113.9' } },
  'behind a proxy that only says so': { reads: false, headers: { via: '1.1 proxy' } },
  'at serve.socket': { reads: true, headers: {}, onSocket: true },
  'at serve.socket, behind a proxy': { reads: false, headers: { 'x-forwarded-for': '203.0.113.9' }, onSocket: true },
}

/** Where a browser says that the request comes from. `foreign`: a page of another origin. */
export const sites: Readonly<
  Record<
    string,
    { readonly is: 'none' | 'own' | 'typed' | 'foreign'; readonly headers: Readonly<Record<string, string>> }
  >
> = {
  'no browser': { is: 'none', headers: {} },
  'an own page': { is: 'own', headers: { 'sec-fetch-site': 'same-origin', origin: 'http://OWN' } },
  'a page of another site': {
    is: 'foreign',
    headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
  },
  'a typed address': { is: 'typed', headers: { 'sec-fetch-site': 'none' } },
  'an old browser at another site': { is: 'foreign', headers: { origin: 'https://evil.example' } },
  'a page of another port': { is: 'foreign', headers: { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:1' } },
  'a page in a sandbox': { is: 'foreign', headers: { 'sec-fetch-site': 'cross-site', origin: 'null' } },
  'an own page in an old browser': { is: 'own', headers: { origin: 'http://OWN' } },
}
