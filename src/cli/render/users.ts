import type { UserFacts } from '../../core/service.ts'
import {
  aside,
  day,
  headline,
  jsvNames,
  listing,
  moment,
  names,
  pairs,
  type Screen,
  type Shown,
  tabbed,
} from './listing.ts'

const state = (user: UserFacts): string => (user.disabled ? 'disabled' : 'active')

/** As `--json` shows a user. */
export const userJson = (user: UserFacts) => ({
  id: user.id,
  userName: user.userName,
  email: user.email ?? null,
  displayName: user.displayName ?? null,
  roles: user.roles,
  permissions: user.permissions,
  disabled: user.disabled,
  hasPassword: user.hasPassword,
  createdAt: user.createdAt.toISOString(),
})

/** A record of a pipe: Store, UserName, State, Roles, Permissions, Email, DisplayName, CreatedAt. */
const record = (user: UserFacts, store: string): string =>
  tabbed([
    store,
    user.userName,
    state(user),
    jsvNames(user.roles),
    jsvNames(user.permissions),
    user.email ?? '',
    user.displayName ?? '',
    user.createdAt.toISOString(),
  ])

export function renderUsers(users: readonly UserFacts[], store: string, screen: Screen): string {
  if (!screen.isTTY) return users.map((user) => record(user, store)).join('\n')
  if (users.length === 0) {
    return `${headline('warn', 'There are no users yet', screen)}\n${aside(store, screen)}\n\n  The first one:   svc users add NAME --role Admin`
  }
  const noEmail = users.every((user) => user.email === undefined)
  const noPermissions = users.every((user) => user.permissions.length === 0)
  const columns: readonly { readonly title: string; readonly shown: (user: UserFacts) => Shown }[] = [
    { title: 'NAME', shown: (user) => user.userName },
    { title: 'STATE', shown: (user) => (user.disabled ? { text: 'disabled', style: 'caution' } : 'active') },
    { title: 'ROLES', shown: (user) => names(user.roles, '') },
    ...(noPermissions ? [] : [{ title: 'PERMISSIONS', shown: (user: UserFacts) => names(user.permissions, '') }]),
    ...(noEmail ? [] : [{ title: 'E-MAIL', shown: (user: UserFacts) => user.email ?? '' }]),
    { title: 'SINCE', shown: (user) => day(user.createdAt) },
  ]
  const wide = columns.flatMap(({ title }, at) =>
    ['ROLES', 'PERMISSIONS', 'E-MAIL', 'NAME'].includes(title) ? [at] : [],
  )
  const count = users.length === 1 ? '1 user' : `${users.length} users`
  const rows = users.map((user) => columns.map(({ shown }) => shown(user)))
  return [
    headline('ok', count, screen),
    aside(store, screen),
    '',
    listing({ titles: columns.map(({ title }) => title), yielding: wide.toReversed() }, rows, screen),
  ].join('\n')
}

/** One user under a sentence about what was done, or under the name. */
export function renderUser(user: UserFacts, said: string | undefined, store: string, screen: Screen): string {
  if (!screen.isTTY) return record(user, store)
  const lines: readonly (readonly [string, Shown])[] = [
    ['Display name', user.displayName ?? ''],
    ['E-mail', user.email ?? ''],
    ['Roles', names(user.roles)],
    ['Permissions', names(user.permissions)],
    ['State', user.disabled ? { text: 'disabled: cannot sign in', style: 'caution' } : ''],
    ['Password', user.hasPassword ? '' : { text: 'none: signs in with a key only', style: 'caution' }],
    ['Since', moment(user.createdAt)],
    ['Id', user.id],
    ['Store', store],
  ]
  return `${headline('ok', said ?? user.userName, screen)}\n${pairs(lines, screen)}`
}
