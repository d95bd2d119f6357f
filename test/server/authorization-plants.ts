/** A guard of the service that is taken away: the text in a source file, and what it becomes. */
export type Plant = {
  readonly file: string
  readonly find: string
  readonly becomes: string
  /** Rows of `authorization-table.ts` of which at least one must be answered otherwise than it says. */
  readonly rows: readonly string[]
}

/** By file: the text of a guard, what it becomes, and the rows. */
const guards: Readonly<
  Record<string, Readonly<Record<string, readonly [find: string, becomes: string, ...rows: string[]]>>>
> = {
  'src/core/service/local.ts': {
    'an Admin is not required': ["if (!may(identity, required)) throw new Fault('Forbidden')", '', 'AssignRoles'],
    'a key does what only a person may': [
      "if (required === 'user' && identity.via === 'key')",
      'if (false)',
      'ChangePassword',
    ],
    'a permission in part suffices to silence': [
      "if (identity && !maySilence(identity)) throw new Fault('Forbidden')",
      '',
      'SilenceMonitors',
    ],
    'heartbeats of other names': [
      "if (identity && !maySendHeartbeat(identity, request.Name ?? ''))",
      'if (false)',
      'ReportHeartbeat',
    ],
    'a permission in part suffices to drill': [
      "if (identity && !identity.roles.includes('Admin') && !identity.permissions.includes(drillPermission)) {",
      'if (false) {',
      'StartDrill',
    ],
    'nodes are listed for readers of one type': [
      "if (views() !== 'full') throw new Fault('Forbidden')",
      '',
      'GetNodes',
    ],
    'readers of nothing are answered': [
      'if (type === undefined ? ServerType.values.some(reads) : reads(type)) return views',
      'return views',
      'GetHistory',
    ],
    'the details of health are for everybody': [
      "details === 'anyone' || readsHere(caller)",
      'true',
      'HealthCheckRequest',
    ],
    'a permission named Admin is the role': [
      "required === 'user' || roles.includes('Admin')",
      "required === 'user' || [...roles, ...permissions].includes('Admin')",
      'UnAssignRoles',
    ],
    'the page shows everybody everything': ['return open ? everything : views', 'return everything', '/'],
    'the board shows everybody everything': ['return open ? everything : views', 'return everything', '/board'],
    'a refusal that names what it hides': [
      "throw new Fault(identity ? 'Forbidden' : 'Unauthorized')",
      "throw new Fault(identity ? 'Forbidden' : 'Unauthorized', 'You may not read zq-orders')",
      'GetSilences',
    ],
    'a change before its refusal': [
      "const { actor, identity } = await admitted('reportHeartbeat', accounts, call)",
      `const { report: early } = await loaders.heartbeats()
      const by = { who: 'nobody', correlationId: call.correlationId }
      await early({ data: accounts.data, request, actor: by, now: accounts.data.clock.now(), admit: undefined })
      const { actor, identity } = await admitted('reportHeartbeat', accounts, call)`,
      'ReportHeartbeat',
    ],
  },
  'src/core/protocol/permissions.ts': {
    'a part of a permission is all of it': [
      "roles.includes('Admin') || permissions.includes(silencePermission)",
      'true',
      '/forms/silence to silence',
    ],
    'the details of one type are those of all': [
      '(type !== undefined && permissions.includes(',
      '(type !== undefined && permissions.some((one) => one.startsWith(healthPermission)) || permissions.includes(',
      'GetHistory of another type',
    ],
    'permissions in another letter case': [
      'permissions.includes(healthPermission) ||',
      'permissions.some((one) => one.toLowerCase() === healthPermission) ||',
      'HealthCheckRequest',
    ],
  },
  'src/core/accounts/roles/change.ts': {
    'an Admin for a time grants for ever': [
      'refuseBeyondOwnEnd(edits, expiry?.endsAt, adminGrant(ending)?.endsAt)',
      '',
      'AssignRoles',
    ],
  },
  'src/core/accounts/auth/own-account.ts': {
    'the sessions of other users': [
      "if (identity && !identity.roles.includes('Admin')) {",
      'if (false) {',
      'GetSessions of another user',
    ],
    'a session ends whose ever it is': [
      'data.sessions.endOf(user.id, Id, caller.actor)',
      '(await data.users.endSessions((await findUser(data, "zq-vic")).id, undefined, caller.actor))',
      'EndSession',
    ],
  },
  'src/core/accounts/auth/identify.ts': {
    'a disabled user': [
      'user?.id === issued.userId && !user.disabled &&',
      'user?.id === issued.userId &&',
      'UnAssignRoles',
    ],
    'the key of a disabled user': [
      'if (!user || user.disabled) return undefined',
      'if (!user) return undefined',
      'UnAssignRoles',
    ],
    'a session after its end': [
      'if (!row || ended(row, at) || !isUsable(user, row)) return undefined',
      'if (!row || !isUsable(user, row)) return undefined',
      'UnAssignRoles',
    ],
    'a token after its end': [
      'if (!row || at >= row.expiresAt || !isUsable(user, row)) return undefined',
      'if (!row || !isUsable(user, row)) return undefined',
      'UnAssignRoles',
    ],
    'a session from before the new password': [
      '!user.disabled && user.epoch === issued.epoch',
      '!user.disabled',
      'UnAssignRoles',
    ],
    'a revoked key': ['row.revokedAt !== undefined ||', '', 'UnAssignRoles'],
    'a key after its end': ['|| (row.expiresAt !== undefined && now() >= row.expiresAt)', '', 'UnAssignRoles'],
    'a key has all roles of its user': [
      'user.roles.filter((role) => roles.includes(role))',
      'user.roles',
      'UnAssignRoles',
    ],
    'a key has all permissions of its user': [
      'permissions.filter((permission) => coversPermission(user, permission))',
      'user.permissions',
      'StartDrill',
    ],
  },
  'src/core/server/call.ts': {
    'a change by cookie for another site': [
      'auth.changes : ambient && !readsHealth(operation)',
      'auth.changes : false',
      'UnAssignRoles',
    ],
    'a sign-in for another site': [
      'auth ? auth.changes : ambient',
      'auth ? false : ambient',
      'Authenticate to sign out',
    ],
    'a callback with cookies': ['ambient: negotiated.callback === undefined,', 'ambient: true,', 'GetSessions'],
  },
  'src/core/server/operate.ts': {
    'health for another site': [
      'if (readsHealth(operation.operation)) refuseCrossSite(context.request.headers, server.origins)',
      '',
      'HealthCheckRequest',
    ],
    'a callback for another site': [
      'refuseForeignCallback(context.request.headers, context.caller, server.origins)',
      '',
      'GetSessions',
    ],
  },
  'src/core/server/batch.ts': {
    'a batch for another site': [
      "if (operation.operation === 'healthCheck') refuseCrossSite(headers, server.origins)",
      '',
      'HealthCheckRequest',
    ],
    'batches of every operation': ['if (!row.batch) throw notInBatches(row)', '', 'GetSessions'],
  },
  'src/core/server/origins.ts': {
    'a page of another port': ["(String(fetchSite).includes('same-site') && !followed)", 'false', 'GetHistory'],
    'an old browser at another site': [
      'return origin !== undefined && !hasHost(origin, host)',
      'return false',
      'GetHistory',
    ],
    'a typed address that changes something': [
      "(from === 'none' && method === 'GET')",
      "from === 'none'",
      'UnAssignRoles',
    ],
    'a link that signs out': [
      'referrer === undefined ? caller.loopback : referrer === own',
      'referrer === undefined ? true : referrer === own',
      'Authenticate to sign out',
    ],
  },
  'src/core/server/pages/silence-forms.ts': {
    'a form of another site': [
      'refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)',
      '',
      '/forms/silence to silence',
    ],
  },
  'src/core/server/pages/page.ts': {
    'a check by a form of another site': [
      'refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)',
      '',
      '/',
    ],
  },
  'src/core/server/pages/sign-in-page.ts': {
    'a sign-in by a form of another site': [
      'refuseForeignChange(request, context.caller, ownOrigin(server, context), server.origins)',
      '',
      '/sign-in to sign in',
    ],
  },
  'src/core/server/pages/drill-page.ts': {
    'a drill that another site confirms': [
      'refuseForeignChange(context.request, context.caller, ownOrigin(server, context), server.origins)',
      '{}',
      '/drills/opened/{Token} to confirm',
    ],
  },
  'src/core/server/pages/page-data.ts': {
    'a page that knows HTTP Basic': [
      '{ ambient: true, basic: false, signed: undefined }',
      '{ ambient: true, basic: true, signed: undefined }',
      '/forms/silence to silence',
    ],
  },
  'src/core/server/credential.ts': {
    'a cookie that is no credential of a browser': [
      'if (credential) return { credential, ambient }',
      'if (credential) return { credential, ambient: false }',
      'UnAssignRoles',
    ],
    'HTTP Basic that is no credential of a browser': [
      'return { credential: forOneRequest, ambient: true }',
      'return { credential: forOneRequest, ambient: false }',
      'UnAssignRoles',
    ],
  },
  'src/core/server/sign-in.ts': {
    'a sign-out by HEAD of another verb': [
      "changes: method !== 'HEAD' && (kind === 'sign-out' || !asks),",
      "changes: method !== 'HEAD' && !asks,",
      'Authenticate to sign out',
    ],
  },
  'src/core/server/hosts.ts': {
    'a relayed caller counts as one of this machine': [
      'if (behindProxy || isRelayed(request)) {',
      'if (behindProxy) {',
      'GetHistory',
    ],
    'a relay that only says so': [
      "const relayed = ['forwarded', 'via', 'x-real-ip']",
      "const relayed = ['forwarded', 'x-real-ip']",
      'GetHistory',
    ],
    'a proxy at the Unix socket reads what its callers may not': [
      "if (isRelayed(request)) return { kind: 'http', address, loopback: false, relayed: true }",
      '',
      'HealthCheckRequest',
      'GetHistory',
      'GetSilences',
    ],
  },
  'src/core/server/handle.ts': {
    'every Host': [
      'server.checkHost(host, request.socket.localAddress)\n  }\n  let target',
      '}\n  let target',
      '/metrics',
      'GetHistory',
    ],
    'every verb': ['requireVerb(route, logFields.method)', '', 'UnAssignRoles'],
  },
  'src/core/server/metrics-page.ts': {
    'the metrics show everybody everything': [
      'await runtime.viewOf(callOf(context, credential, () => {}))',
      "(() => 'full' as const)",
      '/metrics',
    ],
  },
  'src/core/protocol/wire/query.ts': {
    'a query that names another subject wins': [
      'if (!one || !other) return []',
      'return []',
      'AssignRoles',
      'SilenceMonitors',
    ],
  },
  'src/core/protocol/grants.ts': {
    'an end of null is no end': ['key.trim().toLowerCase() === expiresKey', 'false', 'AssignRoles with an end of null'],
    'an end whose key has blanks is no end': [
      'key.trim().toLowerCase() === expiresKey',
      'key.toLowerCase() === expiresKey',
      'AssignRoles with an end whose key has blanks',
    ],
  },
  'src/core/server/local-socket.ts': {
    'the Unix socket lets nobody read': [
      'reads: () => true,',
      'reads: () => false,',
      'HealthCheckRequest',
      'GetHistory',
      'GetSilences',
    ],
  },
}

/** Each guard that decides who may do what over HTTP. */
export const plants: Readonly<Record<string, Plant>> = Object.fromEntries(
  Object.entries(guards).flatMap(([file, entries]) =>
    Object.entries(entries).map(([name, [find, becomes, ...rows]]) => [name, { file, find, becomes, rows }]),
  ),
)
