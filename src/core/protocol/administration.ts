/**
 * Administration by Admins (P70): what `svc users`, `keys`, `audit`, `heartbeats` and `roles` do, as rows of the table of
 * operations. Our own addition to the interface. The commands work by them on the machine of the store, too.
 */
import { ResponseStatus } from './dtos.ts'
import { HeartbeatStatus } from './enums.ts'
import { formerSilencePermission } from './permissions.ts'
import {
  date,
  dto,
  duration,
  type Fields,
  flag,
  type Infer,
  integer,
  integerOf,
  limits,
  list,
  name,
  newName,
  number,
  secretText,
  text,
  textOf,
} from './schema.ts'

const someName = name({ max: limits.nameCharacters })
/** Not blank at its beginning, and without control characters, which no target of a request may contain (S2). */
const filled = () => /^[^\s\p{Cc}][^\p{Cc}]*$/u
const neededName = name({ max: limits.nameCharacters, needed: true, pattern: filled })
const rights = { Roles: list(newName), Permissions: list({ ...newName, not: formerSilencePermission }) } as const
/** Of a user, by name or e-mail address. */
const ofUser = { UserName: neededName } as const
/** The name of an OpenID provider in svc.yaml, or the URL of its issuer. */
const atProvider = { Provider: textOf({ max: 1024, needed: true, pattern: filled }) } as const
/** Recorded in the audit. */
const reason = { Reason: textOf({ max: limits.metaValueCharacters }) } as const
/** How many entries a page of a list has at most, and the name that the page before ended with. */
const page = {
  Take: integerOf({ min: 1, max: limits.pageItems }),
  After: textOf({ max: limits.nameCharacters }),
} as const
/** Names similar to this one, in place of a page. */
const like = { Like: textOf({ max: limits.nameCharacters }) } as const
/** Digest: also make a secret for sign-in by HTTP Digest (A12), valid for an Admin only with DigestForAdmin. */
const aboutPassword = { Digest: flag, DigestForAdmin: flag, MustChangePassword: flag } as const

export const UserEntry = dto('UserEntry', {
  Id: text,
  UserName: text,
  Email: text,
  DisplayName: text,
  Disabled: flag,
  HasPassword: flag,
  /** The user may do nothing before the password is changed (P71). */
  MustChangePassword: flag,
  /** `none`, `valid` or `not for Admin`. Absent in lists. */
  Digest: text,
  CreatedAt: date,
  Roles: list(text),
  Permissions: list(text),
})
export type UserEntry = Infer<typeof UserEntry>

export const KeyEntry = dto('KeyEntry', {
  Name: text,
  UserName: text,
  /** Absent: all roles of its user. */
  Roles: list(text),
  Permissions: list(text),
  CreatedAt: date,
  ExpiresAt: date,
  RevokedAt: date,
})
export type KeyEntry = Infer<typeof KeyEntry>

export const AuditLogEntry = dto('AuditLogEntry', {
  Id: integer,
  At: date,
  Event: text,
  Who: text,
  Address: text,
  Target: text,
  CorrelationId: text,
  /** JSON. */
  Before: text,
  After: text,
  Reason: text,
})
export type AuditLogEntry = Infer<typeof AuditLogEntry>

/** A seal of the audit (S13). */
export const AuditSeal = dto('AuditSeal', { Number: integer, Hash: text, At: date })
export type AuditSeal = Infer<typeof AuditSeal>

export const AuditProblem = dto('AuditProblem', { Seal: integer, Kind: text, Sentence: text })

/** The last heartbeat of an agent (B1), with the last run of a job. */
export const HeartbeatEntry = dto('HeartbeatEntry', {
  Name: text,
  Status: HeartbeatStatus,
  At: date,
  Who: text,
  Message: text,
  Version: text,
  Interval: duration,
  Backlog: integer,
  DiskFreePercent: number,
  ClockSkew: duration,
  StartedAt: date,
  /** Absent while the job runs. */
  EndedAt: date,
  Duration: duration,
  ExitCode: integer,
  Output: text,
})
export type HeartbeatEntry = Infer<typeof HeartbeatEntry>

/** One who holds a role, or held it at a time: then with the name, the state then, and when it was to end. */
export const RoleHolder = dto('RoleHolder', { ...UserEntry.fields, EndsAt: date })
export type RoleHolder = Infer<typeof RoleHolder>

/** A row of the table. The request and the answer have the name of the operation. */
function row<const N extends string, const Q extends Fields, const A extends Fields>(
  name: N,
  [verb, path, summary]: readonly [verb: 'GET' | 'POST', path: string, summary: string],
  request: Q,
  answer: A,
  more: { readonly refusals?: readonly number[]; readonly givesAccess?: true } = {},
) {
  return {
    name,
    summary,
    routes: [{ verbs: [verb], path }],
    replyVerbs: verb === 'GET' ? (['GET', 'POST'] as const) : (['POST'] as const),
    request: dto(name, request),
    response: dto(`${name}Response`, { ...answer, ResponseStatus }),
    caller: 'Admin',
    refusals: [404],
    ...more,
  } as const
}

const user = { User: UserEntry } as const
/** Changed is false where everything was so before. */
const changedUser = { User: UserEntry, Changed: flag } as const
const conflicts = { refusals: [404, 409] } as const
const access = { ...conflicts, givesAccess: true } as const

export const administration = {
  getUsers: row(
    'GetUsers',
    ['GET', '/users', 'List the users, sorted by name'],
    { ...page, ...like },
    // Total, in the first page: how many there are in all pages.
    { Users: list(UserEntry), Total: integer },
  ),
  getUser: row('GetUser', ['GET', '/users/show', 'Show a user'], ofUser, user),
  addUser: row(
    'AddUser',
    ['POST', '/users/add', 'Add a user, with a password or, for keys only, without'],
    {
      UserName: { ...newName, needed: true },
      Password: secretText,
      ...aboutPassword,
      Email: someName,
      DisplayName: textOf({ max: limits.nameCharacters }),
      ...rights,
      ...reason,
    },
    user,
    access,
  ),
  setPassword: row(
    'SetPassword',
    ['POST', '/users/password', 'Set the password of a user, and end the sessions and tokens of the user'],
    { ...ofUser, Password: textOf({ secret: true, needed: true, pattern: () => /\S/u }), ...aboutPassword, ...reason },
    user,
    access,
  ),
  removeDigest: row(
    'RemoveDigest',
    ['POST', '/users/digest/remove', 'Remove the secret for sign-in by HTTP Digest, and keep the password'],
    { ...ofUser, ...reason },
    changedUser,
  ),
  disableUser: row(
    'DisableUser',
    ['POST', '/users/disable', 'Disable a user, and end the sessions and tokens of the user'],
    { ...ofUser, ...reason },
    changedUser,
    conflicts,
  ),
  enableUser: row(
    'EnableUser',
    ['POST', '/users/enable', 'Enable a disabled user'],
    { ...ofUser, ...reason },
    changedUser,
  ),
  unlockUser: row(
    'UnlockUser',
    ['POST', '/users/unlock', 'End the locks and limits of a user after failed sign-ins'],
    // From: an address from which the user may sign in while somebody continues to guess.
    { ...ofUser, From: someName, ...reason },
    user,
  ),
  linkUser: row(
    'LinkUser',
    ['POST', '/users/link', 'Allow a user to sign in at an OpenID provider'],
    {
      ...ofUser,
      ...atProvider,
      Subject: name({ max: 255, needed: true, pattern: filled }),
      ...reason,
    },
    changedUser,
    access,
  ),
  unlinkUser: row(
    'UnlinkUser',
    ['POST', '/users/unlink', 'Stop a user from signing in at an OpenID provider'],
    {
      ...ofUser,
      ...atProvider,
      Subject: name({ max: 255 }),
      ...reason,
    },
    changedUser,
  ),
  removeUser: row(
    'RemoveUser',
    ['POST', '/users/remove', 'Remove a user with all sessions, tokens and keys'],
    { ...ofUser, ...reason },
    user,
    conflicts,
  ),
  getKeys: row(
    'GetKeys',
    ['GET', '/keys', 'List the keys, sorted by name, without their secrets'],
    { ...page, ...like },
    { Keys: list(KeyEntry), Total: integer },
  ),
  createKey: row(
    'CreateKey',
    ['POST', '/keys/create', 'Create a key with which a machine acts as a user'],
    {
      Name: { ...newName, needed: true },
      ...ofUser,
      // Limits of the rights of the key. Without both, it has those of its user.
      ...rights,
      Lifetime: duration,
      ...reason,
    },
    // Secret: the key itself, in this answer only.
    { Key: KeyEntry, Secret: secretText },
    access,
  ),
  revokeKey: row(
    'RevokeKey',
    ['POST', '/keys/revoke', 'Revoke a key, so that it is no longer valid'],
    { Name: neededName, ...reason },
    { Name: text },
  ),
  getAudit: row(
    'GetAudit',
    ['GET', '/audit', 'List entries of the audit, newest first'],
    {
      Take: page.Take,
      // Only entries with a smaller id.
      Before: integerOf({ min: 1 }),
      // Those that the user made, or that are about the user.
      UserName: someName,
      Events: list(textOf({ max: limits.nameCharacters, pattern: () => /^[a-z.]+$/u })),
      Since: date,
      Until: date,
      Role: someName,
    },
    { Entries: list(AuditLogEntry) },
    { refusals: [] },
  ),
  verifyAudit: row(
    'VerifyAudit',
    ['POST', '/audit/verify', 'Seal the audit, and verify its chain of seals'],
    // `N:HASH`, one that was kept elsewhere.
    {
      Head: textOf({
        max: limits.nameCharacters,
        pattern: () => /^(?:\s*[1-9]\d{0,14}:[0-9A-Fa-f]{64}\s*)?$/u,
      }),
    },
    {
      // In the order of the seals, at most 100. Empty: the audit is intact.
      Problems: list(AuditProblem),
      More: integer,
      Seals: integer,
      Entries: integer,
      Pruned: integer,
      Unsealed: integer,
      Head: AuditSeal,
      Began: AuditSeal,
      EntriesBefore: integer,
    },
    { refusals: [] },
  ),
  auditHead: row(
    'GetAuditHead',
    ['GET', '/audit/head', 'Seal the audit, and show its newest seal'],
    {},
    { Head: AuditSeal },
    { refusals: [] },
  ),
  getHeartbeats: row(
    'GetHeartbeats',
    ['GET', '/agents', 'List the agents that have reported, sorted by name, with their last heartbeat'],
    { ...page, ...like },
    { Heartbeats: list(HeartbeatEntry) },
    { refusals: [] },
  ),
  forgetHeartbeat: row(
    'ForgetHeartbeat',
    ['POST', '/agents/forget', 'Delete an agent, until it reports again'],
    { Name: neededName, ...reason },
    { Name: text },
  ),
  roleHolders: row(
    'GetRoleHolders',
    ['GET', '/roles/holders', 'List the users with a role, sorted by name, now or at a time'],
    { Role: neededName, At: date, ...page },
    {
      Users: list(RoleHolder),
      // In the first page.
      Total: integer,
      // Where nobody has the role: those that somebody has, at most 1,000.
      Roles: list(text),
      // With At: from when on the audit answers, and how many users have roles from claims, which it does not have.
      AnswersFrom: date,
      LinkedUsers: integer,
    },
    { refusals: [409] },
  ),
  roleHistory: row(
    'GetRoleHistory',
    ['GET', '/roles/history', "List the changes of a user's roles, oldest first"],
    // AfterId: the id of the last entry of the page before.
    { ...ofUser, Take: page.Take, AfterId: integerOf({ min: 0 }) },
    { Entries: list(AuditLogEntry) },
  ),
} as const

export type AdminOperation = keyof typeof administration

/** The ErrorCode of a time of which the audit says nothing (O9). */
export const notCoveredCode = 'NotCovered'
