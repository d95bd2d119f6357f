/** A guard of the service that is taken away: the text in a source file, and what it becomes. */
export type Plant = {
  readonly file: string
  readonly find: string
  readonly becomes: string
  /** Rows of `authorization-table.ts` of which at least one must be answered otherwise than it says. */
  readonly rows: readonly string[]
}

const local = 'src/core/service/local.ts'
const call = 'src/core/server/call.ts'
const operate = 'src/core/server/operate.ts'
const origins = 'src/core/server/origins.ts'
const credential = 'src/core/server/credential.ts'
const identify = 'src/core/accounts/auth/identify.ts'
const permissions = 'src/core/protocol/permissions.ts'
const signIn = 'src/core/server/sign-in.ts'
const ownAccount = 'src/core/accounts/auth/own-account.ts'

/** Each guard that decides who may do what over HTTP. */
export const plants: Readonly<Record<string, Plant>> = {
  'an Admin is not required': {
    file: local,
    find: "if (!may(identity, required)) throw new Fault('Forbidden')",
    becomes: '',
    rows: ['AssignRoles'],
  },
  'a key does what only a person may': {
    file: local,
    find: "if (required === 'user' && identity.via === 'key')",
    becomes: 'if (false)',
    rows: ['ChangePassword'],
  },
  'a permission in part suffices to silence': {
    file: local,
    find: "if (identity && !maySilence(identity)) throw new Fault('Forbidden')",
    becomes: '',
    rows: ['SilenceMonitors'],
  },
  'a part of a permission is all of it': {
    file: permissions,
    find: "roles.includes('Admin') || permissions.includes(silencePermission)",
    becomes: 'true',
    rows: ['/forms/silence to silence'],
  },
  'heartbeats of other names': {
    file: local,
    find: "if (identity && !maySendHeartbeat(identity, request.Name ?? ''))",
    becomes: 'if (false)',
    rows: ['ReportHeartbeat'],
  },
  'a permission in part suffices to drill': {
    file: local,
    find: "if (identity && !identity.roles.includes('Admin') && !identity.permissions.includes(drillPermission)) {",
    becomes: 'if (false) {',
    rows: ['StartDrill'],
  },
  'nodes are listed for readers of one type': {
    file: local,
    find: "if (views() !== 'full') throw new Fault('Forbidden')",
    becomes: '',
    rows: ['GetNodes'],
  },
  'readers of nothing are answered': {
    file: local,
    find: 'if (type === undefined ? ServerType.values.some(reads) : reads(type)) return views',
    becomes: 'return views',
    rows: ['GetHistory'],
  },
  'the details of health are for everybody': {
    file: local,
    find: "details === 'anyone' || readsHere(caller)",
    becomes: 'true',
    rows: ['HealthCheckRequest'],
  },
  'the details of one type are those of all': {
    file: permissions,
    find: '(type !== undefined && permissions.includes(',
    becomes:
      '(type !== undefined && permissions.some((one) => one.startsWith(healthPermission)) || permissions.includes(',
    rows: ['GetHistory of another type'],
  },
  'permissions in another letter case': {
    file: permissions,
    find: 'permissions.includes(healthPermission) ||',
    becomes: 'permissions.some((one) => one.toLowerCase() === healthPermission) ||',
    rows: ['HealthCheckRequest'],
  },
  'a permission named Admin is the role': {
    file: local,
    find: "required === 'user' || roles.includes('Admin')",
    becomes: "required === 'user' || [...roles, ...permissions].includes('Admin')",
    rows: ['UnAssignRoles'],
  },
  'an Admin for a time grants for ever': {
    file: 'src/core/accounts/roles/change.ts',
    find: 'refuseBeyondOwnEnd(edits, expiry?.endsAt, adminGrant(ending)?.endsAt)',
    becomes: '',
    rows: ['AssignRoles'],
  },
  'the sessions of other users': {
    file: ownAccount,
    find: "if (identity && !identity.roles.includes('Admin')) {",
    becomes: 'if (false) {',
    rows: ['GetSessions of another user'],
  },
  'a session ends whose ever it is': {
    file: ownAccount,
    find: 'data.sessions.endOf(user.id, Id, caller.actor)',
    becomes: '(await data.users.endSessions((await findUser(data, "zq-vic")).id, undefined, caller.actor))',
    rows: ['EndSession'],
  },
  'a disabled user': {
    file: identify,
    find: 'user?.id === issued.userId && !user.disabled &&',
    becomes: 'user?.id === issued.userId &&',
    rows: ['UnAssignRoles'],
  },
  'the key of a disabled user': {
    file: identify,
    find: 'if (!user || user.disabled) return undefined',
    becomes: 'if (!user) return undefined',
    rows: ['UnAssignRoles'],
  },
  'a session after its end': {
    file: identify,
    find: 'if (!row || ended(row, at) || !isUsable(user, row)) return undefined',
    becomes: 'if (!row || !isUsable(user, row)) return undefined',
    rows: ['UnAssignRoles'],
  },
  'a token after its end': {
    file: identify,
    find: 'if (!row || at >= row.expiresAt || !isUsable(user, row)) return undefined',
    becomes: 'if (!row || !isUsable(user, row)) return undefined',
    rows: ['UnAssignRoles'],
  },
  'a session from before the new password': {
    file: identify,
    find: '!user.disabled && user.epoch === issued.epoch',
    becomes: '!user.disabled',
    rows: ['UnAssignRoles'],
  },
  'a revoked key': {
    file: identify,
    find: 'row.revokedAt !== undefined ||',
    becomes: '',
    rows: ['UnAssignRoles'],
  },
  'a key after its end': {
    file: identify,
    find: '|| (row.expiresAt !== undefined && now() >= row.expiresAt)',
    becomes: '',
    rows: ['UnAssignRoles'],
  },
  'a key has all roles of its user': {
    file: identify,
    find: 'user.roles.filter((role) => roles.includes(role))',
    becomes: 'user.roles',
    rows: ['UnAssignRoles'],
  },
  'a key has all permissions of its user': {
    file: identify,
    find: 'permissions.filter((permission) => coversPermission(user, permission))',
    becomes: 'user.permissions',
    rows: ['StartDrill'],
  },
  'a change by cookie for another site': {
    file: call,
    find: 'auth.changes : ambient && !readsHealth(operation)',
    becomes: 'auth.changes : false',
    rows: ['UnAssignRoles'],
  },
  'a sign-in for another site': {
    file: call,
    find: 'auth ? auth.changes : ambient',
    becomes: 'auth ? false : ambient',
    rows: ['Authenticate to sign out'],
  },
  'health for another site': {
    file: operate,
    find: 'if (readsHealth(operation.operation)) refuseCrossSite(context.request.headers, server.origins)',
    becomes: '',
    rows: ['HealthCheckRequest'],
  },
  'a batch for another site': {
    file: 'src/core/server/batch.ts',
    find: "if (operation.operation === 'healthCheck') refuseCrossSite(headers, server.origins)",
    becomes: '',
    rows: ['HealthCheckRequest'],
  },
  'a callback for another site': {
    file: operate,
    find: 'refuseForeignCallback(context.request.headers, context.caller, server.origins)',
    becomes: '',
    rows: ['GetSessions'],
  },
  'a callback with cookies': {
    file: call,
    find: 'ambient: negotiated.callback === undefined,',
    becomes: 'ambient: true,',
    rows: ['GetSessions'],
  },
  'a page of another port': {
    file: origins,
    find: "(String(fetchSite).includes('same-site') && !followed)",
    becomes: 'false',
    rows: ['GetHistory'],
  },
  'an old browser at another site': {
    file: origins,
    find: 'return origin !== undefined && !hasHost(origin, host)',
    becomes: 'return false',
    rows: ['GetHistory'],
  },
  'a typed address that changes something': {
    file: origins,
    find: "(from === 'none' && method === 'GET')",
    becomes: "from === 'none'",
    rows: ['UnAssignRoles'],
  },
  'a link that signs out': {
    file: origins,
    find: 'referrer === undefined ? caller.loopback : referrer === own',
    becomes: 'referrer === undefined ? true : referrer === own',
    rows: ['Authenticate to sign out'],
  },
  'a form of another site': {
    file: 'src/core/server/pages/silence-forms.ts',
    find: 'refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)',
    becomes: '',
    rows: ['/forms/silence to silence'],
  },
  'a check by a form of another site': {
    file: 'src/core/server/pages/page.ts',
    find: 'refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)',
    becomes: '',
    rows: ['/'],
  },
  'a sign-in by a form of another site': {
    file: 'src/core/server/pages/sign-in-page.ts',
    find: 'refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)',
    becomes: '',
    rows: ['/sign-in to sign in'],
  },
  'a drill that another site confirms': {
    file: 'src/core/server/pages/drill-page.ts',
    find: 'refuseForeignChange(context.request, context.caller, ownOrigin(server, context), server.origins)',
    becomes: '{}',
    rows: ['/drills/opened/{Token} to confirm'],
  },
  'a page that knows HTTP Basic': {
    file: 'src/core/server/pages/page-data.ts',
    find: '{ ambient: true, basic: false, signed: undefined }',
    becomes: '{ ambient: true, basic: true, signed: undefined }',
    rows: ['/forms/silence to silence'],
  },
  'a cookie that is no credential of a browser': {
    file: credential,
    find: 'if (credential) return { credential, ambient }',
    becomes: 'if (credential) return { credential, ambient: false }',
    rows: ['UnAssignRoles'],
  },
  'HTTP Basic that is no credential of a browser': {
    file: credential,
    find: 'return { credential: forOneRequest, ambient: true }',
    becomes: 'return { credential: forOneRequest, ambient: false }',
    rows: ['UnAssignRoles'],
  },
  'a sign-out by HEAD of another verb': {
    file: signIn,
    find: "changes: method !== 'HEAD' && (kind === 'sign-out' || !asks),",
    becomes: "changes: method !== 'HEAD' && !asks,",
    rows: ['Authenticate to sign out'],
  },
  'a relayed caller counts as one of this machine': {
    file: 'src/core/server/hosts.ts',
    find: 'if (behindProxy || isRelayed(request)) {',
    becomes: 'if (behindProxy) {',
    rows: ['GetHistory'],
  },
  'a relay that only says so': {
    file: 'src/core/server/hosts.ts',
    find: "const relayed = ['forwarded', 'via', 'x-real-ip']",
    becomes: "const relayed = ['forwarded', 'x-real-ip']",
    rows: ['GetHistory'],
  },
  'every Host': {
    file: 'src/core/server/handle.ts',
    find: 'server.checkHost(host, request.socket.localAddress)\n  }\n  let target',
    becomes: '}\n  let target',
    rows: ['/metrics', 'GetHistory'],
  },
  'every verb': {
    file: 'src/core/server/handle.ts',
    find: 'requireVerb(route, logFields.method)',
    becomes: '',
    rows: ['UnAssignRoles'],
  },
  'batches of every operation': {
    file: 'src/core/server/batch.ts',
    find: 'if (!row.batch) throw notInBatches(row)',
    becomes: '',
    rows: ['GetSessions'],
  },
  'the page shows everybody everything': {
    file: local,
    find: 'return open ? everything : views',
    becomes: 'return everything',
    rows: ['/'],
  },
  'the board shows everybody everything': {
    file: local,
    find: 'return open ? everything : views',
    becomes: 'return everything',
    rows: ['/board'],
  },
  'the metrics show everybody everything': {
    file: 'src/core/server/metrics-page.ts',
    find: 'await runtime.viewOf(callOf(context, credential, () => {}))',
    becomes: "(() => 'full' as const)",
    rows: ['/metrics'],
  },
  'a refusal that names what it hides': {
    file: local,
    find: "throw new Fault(identity ? 'Forbidden' : 'Unauthorized')",
    becomes: "throw new Fault(identity ? 'Forbidden' : 'Unauthorized', 'You may not read zq-orders')",
    rows: ['GetSilences'],
  },
  'a change before its refusal': {
    file: local,
    find: "const { actor, identity } = await admitted('reportHeartbeat', accounts, call)",
    becomes: `const { report: early } = await loaders.heartbeats()
      const by = { who: 'nobody', correlationId: call.correlationId }
      await early({ data: accounts.data, request, actor: by, now: accounts.data.clock.now(), admit: undefined })
      const { actor, identity } = await admitted('reportHeartbeat', accounts, call)`,
    rows: ['ReportHeartbeat'],
  },
  'a query that names another subject wins': {
    file: 'src/core/protocol/wire/query.ts',
    find: 'if (!one || !other) return []',
    becomes: 'return []',
    rows: ['AssignRoles', 'SilenceMonitors'],
  },
  'an end of null is no end': {
    file: 'src/core/protocol/grants.ts',
    find: 'key.trim().toLowerCase() === expiresKey',
    becomes: 'false',
    rows: ['AssignRoles with an end of null'],
  },
  'an end whose key has blanks is no end': {
    file: 'src/core/protocol/grants.ts',
    find: 'key.trim().toLowerCase() === expiresKey',
    becomes: 'key.toLowerCase() === expiresKey',
    rows: ['AssignRoles with an end whose key has blanks'],
  },
  'a proxy at the Unix socket reads what its callers may not': {
    file: 'src/core/server/hosts.ts',
    find: "if (isRelayed(request)) return { kind: 'http', address, loopback: false, relayed: true }",
    becomes: '',
    rows: ['HealthCheckRequest', 'GetHistory', 'GetSilences'],
  },
  'the Unix socket lets nobody read': {
    file: 'src/core/server/local-socket.ts',
    find: 'reads: () => true,',
    becomes: 'reads: () => false,',
    rows: ['HealthCheckRequest', 'GetHistory', 'GetSilences'],
  },
}
