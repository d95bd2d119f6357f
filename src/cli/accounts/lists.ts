import { count } from '../../core/base/format.ts'
import { isObject, type JsonObject } from '../../core/base/json.ts'
import type { UserSession } from '../../core/protocol/index.ts'
import { fromEntry } from '../../core/protocol/service/facts.ts'
import type { AuditFacts, KeyFacts, UserFacts } from '../../core/protocol/service/service.ts'
import type { Screen } from '../io/io.ts'
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
import { repeatTargetFlags } from '../render/hints.ts'
import { type Headline, type ListOutput, list } from '../render/list.ts'
import { type CellText, day, type FactRows, headline, jsvNames, moment, names, pairs } from '../render/table.ts'

/**
 * One user, with the name or a sentence about the change as the headline. JSON also has whether the command changed or
 * removed the user.
 */
export function renderUser(
  user: UserFacts,
  store: string,
  as: ListOutput & {
    readonly sentence?: string
    readonly changed?: boolean
    readonly removed?: true
  },
): string {
  const { json, screen, sentence = user.userName, changed, removed } = as
  if (json) return userOutcomes.text(store, user, { changed, removed })
  if (!screen.isTTY) return users.record(user, { store })
  const facts: FactRows = [
    ['Display name', user.displayName ?? ''],
    ['E-mail', user.email ?? ''],
    ['Roles', names(user.roles)],
    ['Permissions', names(user.permissions)],
    ['State', user.disabled ? { text: 'disabled: cannot sign in', style: 'caution' } : ''],
    ['Password', passwordText(user)],
    ['Digest', user.digest === undefined ? '' : digestTexts[user.digest]],
    ['Since', moment(user.createdAt)],
    ['Id', user.id],
    ['Store', store],
  ]
  return `${headline('ok', sentence, screen)}\n${pairs(facts, screen)}`
}

function passwordText({ hasPassword, mustChangePassword }: UserFacts): CellText {
  if (!hasPassword) return { text: 'none: signs in with a key, or at a provider', style: 'caution' }
  return mustChangePassword ? { text: 'must be changed before anything else', style: 'caution' } : ''
}

/** Whether the user can sign in by HTTP Digest. Almost nobody does, so that its absence is not worth a line. */
const digestTexts: Readonly<Record<NonNullable<UserFacts['digest']>, CellText>> = {
  none: '',
  valid: 'can also sign in by HTTP Digest, where svc.yaml turns it on',
  'not for Admin': { text: 'not while the user is Admin (--digest-for-admin)', style: 'caution' },
}

/** The text around a new key on stderr. The key itself goes to stdout. */
export function renderNewKey(
  key: KeyFacts,
  store: string,
  screen: Screen,
  argv: readonly string[] = [],
): { readonly before: string; readonly after: string } {
  const facts: FactRows = [
    ['Roles', keyRights(key)],
    [
      'Expires',
      key.expiresAt ? moment(key.expiresAt) : { text: 'never; limit it with --expires 90d', style: 'caution' },
    ],
    ['Store', store],
  ]
  const before = `${headline('ok', `The key ${key.name} acts as ${key.userName}`, screen)}\n${pairs(facts, screen)}\n`
  const after = [
    '',
    '  Copy the key now: it will not be shown again. Use it as a bearer token:',
    '    SVC_TOKEN=KEY svc … --server URL',
    `  To revoke it:   ${repeatTargetFlags(`svc keys revoke ${key.name}`, argv)}`,
  ].join('\n')
  return { before, after }
}

/**
 * The change in an audit entry, for people: `+Ops −Deploy` for lists before and after, else the facts. Entries of
 * another form are shown as stored. `time`: how it shows when a role ends.
 */
export function auditChange(
  { before, after, reason }: Pick<AuditFacts, 'before' | 'after' | 'reason'>,
  time: (at: Date) => string = moment,
): string {
  const [wholeBefore, whole] = [factsOf(before), factsOf(after)]
  const { ends: endsBefore, ...was } = wholeBefore ?? {}
  // The grant that has ended is also missing in the lists.
  const { warning, ends, ended: _, ...is } = whole ?? {}
  const change =
    wholeBefore && whole && Object.keys(was).join() === Object.keys(is).join()
      ? [
          ...Object.keys(is).flatMap((name) => difference(was[name], is[name])),
          ...endDifference(endTexts(endsBefore, time), endTexts(ends, time), is),
        ]
      : [
          before === undefined ? '' : `was ${describe(wholeBefore && was, before)}`,
          after === undefined ? '' : describe(whole && is, after),
        ]
  const warned = typeof warning === 'string' ? `warning: ${warning}` : ''
  return [...change, reason === undefined ? '' : `(${reason})`, warned].filter((part) => part !== '').join(' ')
}

function factsOf(text: string | undefined): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const textsOf = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined

function difference(was: unknown, is: unknown): readonly string[] {
  const [old, now] = [textsOf(was), textsOf(is)]
  if (!old || !now) return was === is ? [] : [`${plain(was)} → ${plain(is)}`]
  const gained = now.filter((item) => !old.includes(item)).map((item) => `+${names([item])}`)
  const lost = old.filter((item) => !now.includes(item)).map((item) => `-${names([item])}`)
  return [...gained, ...lost]
}

/** When roles and permissions end, by their names. */
function endTexts(ends: unknown, time: (at: Date) => string): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const end of Array.isArray(ends) ? ends : []) {
    const { name, endsAt }: JsonObject = isObject(end) ? end : {}
    if (typeof name !== 'string' || typeof endsAt !== 'string') continue
    texts.set(name, Number.isNaN(Date.parse(endsAt)) ? endsAt : time(new Date(endsAt)))
  }
  return texts
}

/** Ends that are new, and those that were removed from what is still in the lists. */
function endDifference(
  was: ReadonlyMap<string, string>,
  is: ReadonlyMap<string, string>,
  lists: JsonObject,
): readonly string[] {
  const all = Object.values(lists).flatMap((list) => textsOf(list) ?? [])
  return [
    ...[...is].flatMap(([name, end]) => (was.get(name) === end ? [] : [`${names([name])} until ${end}`])),
    ...[...was.keys()].flatMap((name) => (is.has(name) || !all.includes(name) ? [] : [`${names([name])} permanent`])),
  ]
}

/** `user deploy, roles Ops`, without empty and null facts. */
function describe(facts: JsonObject | undefined, written: string): string {
  if (!facts) return written
  const parts = Object.entries(facts).flatMap(([name, value]) => {
    const list = textsOf(value)
    if (value === null || value === '' || list?.length === 0) return []
    return [`${name} ${list ? names(list) : plain(value)}`]
  })
  return parts.length > 0 ? parts.join(', ') : 'nothing'
}

const plain = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

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
    { key: 'mustChangePassword', is: flag, field: false },
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
    'mustChangePassword',
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
    : { mark: 'ok', sentence: `${count(total, 'user has', 'users have')} "${role}"` }

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

/** The rights of a key, in words. */
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

export const sessionRow = (session: UserSession) => fromEntry(session)

/** The sessions of a user. A table shows the beginning of the id, which is enough to end the session. */
export const sessions = list<ReturnType<typeof sessionRow>>()({
  around: ['target', 'userName'],
  beneath: 'target',
  rows: 'sessions',
  headline: (rows, { userName }) => ({
    mark: 'ok',
    sentence: `${userName} has ${rows.length === 0 ? 'no sessions' : count(rows.length, 'session')}`,
  }),
  columns: [
    { key: 'id', is: string, title: 'ID', cell: ({ id = '' }) => id.slice(0, 8) },
    { key: 'current', is: orNull(flag), title: 'CURRENT', cell: ({ current }) => yesOr(current), optional: true },
    { key: 'createdAt', is: orNull(dateTime), title: 'SINCE', cell: ({ createdAt }) => momentOr(createdAt) },
    { key: 'lastUsedAt', is: orNull(dateTime), title: 'LAST USED', cell: ({ lastUsedAt }) => momentOr(lastUsedAt) },
    {
      key: 'expiresAt',
      is: orNull(dateTime),
      title: 'EXPIRES',
      cell: ({ expiresAt }) => (expiresAt ? day(expiresAt) : ''),
    },
    {
      key: 'rememberMe',
      is: orNull(flag),
      title: 'REMEMBERED',
      cell: ({ rememberMe }) => yesOr(rememberMe),
      optional: true,
    },
    { key: 'provider', is: orNull(string), title: 'PROVIDER', shrink: 1 },
  ],
})

const yesOr = (is: boolean | undefined): string => (is ? 'yes' : '')
const momentOr = (time: Date | undefined): string => (time ? moment(time) : 'unknown')

export const audit = list<AuditFacts>()({
  around: ['store'],
  beneath: 'store',
  rows: 'entries',
  headline: ['entry, newest first', 'entries, newest first'],
  empty: { sentence: 'No matching audit entries' },
  columns: [
    { key: 'id', is: integer, title: 'ID', align: 'right' },
    { key: 'at', is: dateTime, title: 'AT', cell: ({ at }) => moment(at) },
    { key: 'event', is: string, title: 'EVENT' },
    { key: 'who', is: orNull(string), title: 'WHO', shrink: 3 },
    { key: 'address', is: orNull(string), title: 'FROM', optional: true },
    { key: 'target', is: orNull(string), title: 'TARGET', shrink: 2 },
    { key: 'before', is: orNull(string) },
    { key: 'after', is: orNull(string) },
    { key: 'reason', is: orNull(string) },
    { key: 'change', value: (entry) => auditChange(entry), title: 'CHANGE', shrink: 1, field: false, json: false },
    { key: 'correlationId', is: orNull(string) },
  ],
})

/** The entries of all pages of a list. `page` gives those after a name. */
export async function allPages<Entry>(
  page: (after?: string) => Promise<readonly Entry[]>,
  nameOf: (entry: Entry) => string | undefined,
): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  for await (const next of namedPages(page, nameOf)) entries.push(...next)
  return entries
}

/**
 * A list, page by page. `page` gives the entries after a name, sorted by name, and nothing after the last. The first page may
 * be empty. Entries that change meanwhile appear as they are when their page is read.
 */
export async function* namedPages<Entry>(
  page: (after?: string) => Promise<readonly Entry[]>,
  nameOf: (entry: Entry) => string | undefined,
): AsyncIterable<readonly Entry[]> {
  let after: string | undefined
  for (let entries = await page(); ; ) {
    yield entries
    const last = entries.at(-1)
    const name = last && nameOf(last)
    // What is not sorted by name would never end.
    if (name === undefined || name === after) return
    after = name
    entries = await page(after)
    if (entries.length === 0) return
  }
}

/** All users, page by page. */
export const userPages = <User extends { readonly userName: string }>(
  page: (after?: string) => Promise<readonly User[]>,
): AsyncIterable<readonly User[]> => namedPages(page, ({ userName }) => userName)
