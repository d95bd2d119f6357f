import type { UserSession } from '../../core/protocol/index.ts'
import type { AuditFacts, KeyFacts, UserFacts } from '../../core/service.ts'
import {
  dateTime,
  document,
  documentShape,
  documentText,
  flag,
  integer,
  membersOf,
  objectOf,
  oneOf,
  optional,
  orNull,
  string,
  strings,
} from '../render/document.ts'
import { type Headline, list } from '../render/list.ts'
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
    { key: 'id', field: false, is: string },
    { key: 'userName', is: string, title: 'NAME', shrink: 4 },
    { key: 'state', value: stateOf, json: false, title: 'STATE', cell: stateCell },
    { key: 'roles', is: strings, title: 'ROLES', shrink: 3 },
    { key: 'permissions', is: strings, title: 'PERMISSIONS', shrink: 2, optional: true },
    { key: 'email', is: orNull(string), title: 'E-MAIL', shrink: 1, optional: true },
    { key: 'displayName', is: orNull(string) },
    { key: 'disabled', is: flag, field: false },
    { key: 'hasPassword', is: flag, field: false },
    { key: 'digest', is: orNull(oneOf('none', 'valid', 'not for Admin')), field: false },
    { key: 'createdAt', is: dateTime, title: 'SINCE' },
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

/** A user after a command: `changed` and `removed` are absent where the command does not decide that. */
type UserOutcome = { readonly changed?: boolean | undefined; readonly removed?: true | undefined }
const outcomeShapes = { changed: optional(flag), removed: optional(flag) }

/** One user, with what the command did. */
export const userOutcomes = {
  schema: () =>
    documentShape({ store: string }, 'users', objectOf({ ...membersOf(users.rowShape()), ...outcomeShapes })),
  fields: users.fields,
  text: (store: string, user: UserFacts, outcome: UserOutcome) =>
    documentText({ store }, 'users', [{ ...users.json(user), ...outcome }]),
}

export const holdersHeadline = (total: number, role: string): Headline =>
  total === 0
    ? { mark: 'warn', sentence: `No user has "${role}"` }
    : { mark: 'ok', sentence: `${total === 1 ? '1 user has' : `${total} users have`} "${role}"` }

/** The users with a role. */
export const holders = list<UserFacts>()({
  around: ['store', 'role'],
  beneath: 'store',
  rows: 'users',
  headline: (rows, { role }) => holdersHeadline(rows.length, role),
  json: { of: users.json, is: users.rowShape() },
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
    { key: 'name', is: string, title: 'NAME', shrink: 3 },
    { key: 'userName', is: string, title: 'USER', shrink: 2 },
    {
      key: 'state',
      is: oneOf('active', 'expired', 'revoked'),
      title: 'STATE',
      cell: ({ state }) => ({ text: state, style: keyStyles[state] }),
    },
    {
      key: 'roles',
      is: orNull(strings),
      title: 'ROLES',
      cell: keyRights,
      text: ({ roles }) => (roles === undefined ? '*' : jsvNames(roles)),
      shrink: 1,
    },
    {
      key: 'expiresAt',
      is: orNull(dateTime),
      title: 'EXPIRES',
      cell: ({ expiresAt }) => (expiresAt === undefined ? 'never' : day(expiresAt)),
    },
    { key: 'createdAt', is: dateTime, title: 'MADE' },
    { key: 'revokedAt', is: orNull(dateTime), field: false },
    { key: 'permissions', is: strings, absent: 'anywhere' },
  ],
  members: ['name', 'userName', 'roles', 'permissions', 'state', 'createdAt', 'expiresAt', 'revokedAt'],
})

/** A new key: only this answer contains it. */
export const newKeys = {
  schema: () => documentShape({ store: string }, 'keys', objectOf({ key: string, ...membersOf(keys.rowShape()) })),
  text: (store: string, secret: string, key: ListedKey) =>
    documentText({ store }, 'keys', [{ key: secret, ...keys.json(key) }]),
}

export const revokedKeys = document<{ readonly name: string; readonly revoked: true }>()({
  around: { store: string },
  rows: 'keys',
  members: { name: string, revoked: flag },
})

/** The sessions of a user. A table shows the beginning of the id, which is enough to end the session. */
export const sessions = list<UserSession>()({
  around: ['target', 'userName'],
  beneath: 'target',
  rows: 'sessions',
  headline: (rows, { userName }) => ({
    mark: 'ok',
    sentence: `${userName} has ${rows.length === 1 ? '1 session' : `${rows.length || 'no'} sessions`}`,
  }),
  columns: [
    { key: 'id', value: ({ Id }) => Id, is: string, title: 'ID', cell: ({ Id = '' }) => Id.slice(0, 8) },
    {
      key: 'current',
      value: ({ Current }) => Current,
      is: orNull(flag),
      title: 'CURRENT',
      cell: ({ Current }) => (Current ? 'yes' : ''),
      optional: true,
    },
    {
      key: 'createdAt',
      value: ({ CreatedAt }) => CreatedAt,
      is: orNull(dateTime),
      title: 'SINCE (UTC)',
      cell: ({ CreatedAt }) => minute(CreatedAt),
    },
    {
      key: 'lastUsedAt',
      value: ({ LastUsedAt }) => LastUsedAt,
      is: orNull(dateTime),
      title: 'LAST USED (UTC)',
      cell: ({ LastUsedAt }) => minute(LastUsedAt),
    },
    {
      key: 'expiresAt',
      value: ({ ExpiresAt }) => ExpiresAt,
      is: orNull(dateTime),
      title: 'EXPIRES',
      cell: ({ ExpiresAt }) => (ExpiresAt ? day(ExpiresAt) : ''),
    },
    {
      key: 'rememberMe',
      value: ({ RememberMe }) => RememberMe,
      is: orNull(flag),
      title: 'REMEMBERED',
      cell: ({ RememberMe }) => (RememberMe ? 'yes' : ''),
      optional: true,
    },
    { key: 'provider', value: ({ Provider }) => Provider, is: orNull(string), title: 'PROVIDER', shrink: 1 },
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
    { key: 'id', is: integer, title: 'ID', align: 'right' },
    { key: 'at', is: dateTime, title: 'AT (UTC)', cell: ({ at }) => moment(at).replace(' UTC', '') },
    { key: 'event', is: string, title: 'EVENT' },
    { key: 'who', is: orNull(string), title: 'WHO', shrink: 3 },
    { key: 'address', is: orNull(string), title: 'FROM', optional: true },
    { key: 'target', is: orNull(string), title: 'TARGET', shrink: 2 },
    { key: 'before', is: orNull(string) },
    { key: 'after', is: orNull(string) },
    { key: 'reason', is: orNull(string) },
    { key: 'change', value: auditChange, title: 'CHANGE', shrink: 1, field: false, json: false },
    { key: 'correlationId', is: orNull(string) },
  ],
})
