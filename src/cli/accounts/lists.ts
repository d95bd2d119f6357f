import type { UserSession } from '../../core/protocol/index.ts'
import type { AuditFacts, KeyFacts, UserFacts } from '../../core/service.ts'
import { list } from '../render/list.ts'
import { type CellText, day, jsvNames, moment, names } from '../render/table.ts'
import { auditChange } from './audit-change.ts'

const stateOf = ({ disabled }: UserFacts): string => (disabled ? 'disabled' : 'active')

const stateCell = (user: UserFacts): CellText => ({
  text: stateOf(user),
  style: user.disabled ? 'caution' : undefined,
})

export const users = list<UserFacts>()({
  around: ['store'],
  beneath: 'store',
  rows: 'users',
  headline: ['user', 'users'],
  empty: { sentence: 'There are no users yet', next: 'To add the first:   svc users add NAME --role Admin' },
  columns: [
    { key: 'id', field: false },
    { key: 'userName', title: 'NAME', shrink: 4 },
    { key: 'state', value: stateOf, json: false, title: 'STATE', cell: stateCell },
    { key: 'roles', title: 'ROLES', shrink: 3 },
    { key: 'permissions', title: 'PERMISSIONS', shrink: 2, optional: true },
    { key: 'email', title: 'E-MAIL', shrink: 1, optional: true },
    { key: 'displayName' },
    { key: 'disabled', field: false },
    { key: 'hasPassword', field: false },
    { key: 'digest', field: false },
    { key: 'createdAt', title: 'SINCE' },
  ],
  members: [
    'id',
    'userName',
    'email',
    'displayName',
    'roles',
    'permissions',
    'disabled',
    'hasPassword',
    'digest',
    'createdAt',
  ],
})

/** The users with a role. */
export const holders = list<UserFacts>()({
  around: ['store', 'role'],
  beneath: 'store',
  rows: 'users',
  headline: (rows, { role }) =>
    rows.length === 0
      ? { mark: 'warn', sentence: `No user has "${role}"` }
      : { mark: 'ok', sentence: `${rows.length === 1 ? '1 user has' : `${rows.length} users have`} "${role}"` },
  json: users.json,
  columns: [
    { key: 'userName', title: 'NAME', shrink: 2 },
    { key: 'email', title: 'E-MAIL', shrink: 1 },
    { key: 'state', value: stateOf, title: 'STATE', cell: stateCell },
  ],
})

export type ListedKey = KeyFacts & { readonly state: 'active' | 'expired' | 'revoked' }

export function keyRow(key: KeyFacts, now: Date): ListedKey {
  if (key.revokedAt !== undefined) return { ...key, state: 'revoked' }
  return { ...key, state: key.expiresAt !== undefined && key.expiresAt <= now ? 'expired' : 'active' }
}

/** What a key may do, in words. */
export function keyRights({ userName, roles, permissions }: KeyFacts): string {
  if (roles === undefined) return `all rights of ${userName}`
  return [
    ...(roles.length > 0 || !permissions ? [names(roles)] : []),
    ...(permissions?.length ? [`permissions ${names(permissions)}`] : []),
  ].join('; ')
}

const keyStyles = { active: undefined, expired: 'caution', revoked: 'dim' } as const

/** API keys, without their secrets. `roles` is null, and `*` in a pipe, when the key has all rights of its user. */
export const keys = list<ListedKey>()({
  around: ['store'],
  beneath: 'store',
  rows: 'keys',
  headline: ['key', 'keys'],
  empty: {
    sentence: 'There are no keys',
    next: 'To create one:   svc keys create NAME --user USER --expires 90d',
  },
  columns: [
    { key: 'name', title: 'NAME', shrink: 3 },
    { key: 'userName', title: 'USER', shrink: 2 },
    { key: 'state', title: 'STATE', cell: ({ state }) => ({ text: state, style: keyStyles[state] }) },
    {
      key: 'roles',
      title: 'ROLES',
      cell: keyRights,
      text: ({ roles }) => (roles === undefined ? '*' : jsvNames(roles)),
      shrink: 1,
    },
    {
      key: 'expiresAt',
      title: 'EXPIRES',
      cell: ({ expiresAt }) => (expiresAt === undefined ? 'never' : day(expiresAt)),
    },
    { key: 'createdAt', title: 'MADE' },
    { key: 'revokedAt', field: false },
    { key: 'permissions', absent: 'anywhere' },
  ],
  members: ['name', 'userName', 'roles', 'permissions', 'state', 'createdAt', 'expiresAt', 'revokedAt'],
})

/** The sessions of a user. A table shows the beginning of the id, which is enough to end the session. */
export const sessions = list<UserSession>()({
  around: ['Target', 'UserName'],
  beneath: 'Target',
  rows: 'Sessions',
  headline: (rows, { UserName }) => ({
    mark: 'ok',
    sentence: `${UserName} has ${rows.length === 1 ? '1 session' : `${rows.length || 'no'} sessions`}`,
  }),
  columns: [
    { key: 'Id', title: 'ID', cell: ({ Id = '' }) => Id.slice(0, 8) },
    { key: 'Current', title: 'CURRENT', cell: ({ Current }) => (Current ? 'yes' : ''), optional: true },
    { key: 'CreatedAt', title: 'SINCE (UTC)', cell: ({ CreatedAt }) => minute(CreatedAt) },
    { key: 'LastUsedAt', title: 'LAST USED (UTC)', cell: ({ LastUsedAt }) => minute(LastUsedAt) },
    { key: 'ExpiresAt', title: 'EXPIRES', cell: ({ ExpiresAt }) => (ExpiresAt ? day(ExpiresAt) : '') },
    { key: 'RememberMe', title: 'REMEMBERED', cell: ({ RememberMe }) => (RememberMe ? 'yes' : ''), optional: true },
    { key: 'Provider', title: 'PROVIDER', shrink: 1 },
  ],
})

const minute = (time: Date | undefined): string => (time ? moment(time).replace(' UTC', '') : 'unknown')

export const audit = list<AuditFacts>()({
  around: ['store'],
  beneath: 'store',
  rows: 'entries',
  headline: ['entry, newest first', 'entries, newest first'],
  empty: { sentence: 'No matching audit entries' },
  columns: [
    { key: 'id', title: 'ID', align: 'right' },
    { key: 'at', title: 'AT (UTC)', cell: ({ at }) => moment(at).replace(' UTC', '') },
    { key: 'event', title: 'EVENT' },
    { key: 'who', title: 'WHO', shrink: 3 },
    { key: 'address', title: 'FROM', optional: true },
    { key: 'target', title: 'TARGET', shrink: 2 },
    { key: 'before' },
    { key: 'after' },
    { key: 'reason' },
    { key: 'change', value: auditChange, title: 'CHANGE', shrink: 1, field: false, json: false },
    { key: 'correlationId' },
  ],
})
