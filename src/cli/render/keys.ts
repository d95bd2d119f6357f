import type { KeyFacts } from '../../core/service.ts'
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

const state = (key: KeyFacts, now: Date): 'active' | 'expired' | 'revoked' => {
  if (key.revokedAt !== undefined) return 'revoked'
  return key.expiresAt !== undefined && key.expiresAt <= now ? 'expired' : 'active'
}

/** As `--json` shows a key, never the key itself. `roles` null: whatever its user holds. */
export const keyJson = (key: KeyFacts, now: Date) => ({
  name: key.name,
  userName: key.userName,
  roles: key.roles ?? null,
  ...(key.permissions === undefined ? {} : { permissions: key.permissions }),
  state: state(key, now),
  createdAt: key.createdAt.toISOString(),
  expiresAt: key.expiresAt?.toISOString() ?? null,
  revokedAt: key.revokedAt?.toISOString() ?? null,
})

const rights = (key: KeyFacts): string =>
  key.roles === undefined
    ? `all that ${key.userName} holds`
    : [...(key.roles.length > 0 || !key.permissions ? [names(key.roles)] : []), ...permissionsOf(key)].join('; ')

const permissionsOf = ({ permissions = [] }: KeyFacts): readonly string[] =>
  permissions.length === 0 ? [] : [`permissions ${names(permissions)}`]

/** In a pipe: Store, Name, UserName, State, Roles (`*`: those of its user), ExpiresAt, CreatedAt, Permissions. */
export function renderKeys(keys: readonly KeyFacts[], store: string, now: Date, screen: Screen): string {
  if (!screen.isTTY) {
    return keys
      .map((key) =>
        tabbed([
          store,
          key.name,
          key.userName,
          state(key, now),
          key.roles === undefined ? '*' : jsvNames(key.roles),
          key.expiresAt?.toISOString() ?? '',
          key.createdAt.toISOString(),
          ...(key.permissions === undefined ? [] : [jsvNames(key.permissions)]),
        ]),
      )
      .join('\n')
  }
  if (keys.length === 0) {
    return `${headline('warn', 'There are no keys', screen)}\n${aside(store, screen)}\n\n  One for a machine:   svc keys create NAME --user USER --expires 90d`
  }
  const rows = keys.map((key): Shown[] => {
    const now_ = state(key, now)
    return [
      key.name,
      key.userName,
      now_ === 'active' ? now_ : { text: now_, style: now_ === 'expired' ? 'caution' : 'dim' },
      rights(key),
      key.expiresAt === undefined ? 'never' : day(key.expiresAt),
      day(key.createdAt),
    ]
  })
  return [
    headline('ok', keys.length === 1 ? '1 key' : `${keys.length} keys`, screen),
    aside(store, screen),
    '',
    listing({ titles: ['NAME', 'USER', 'STATE', 'ROLES', 'EXPIRES', 'MADE'], yielding: [3, 1, 0] }, rows, screen),
  ].join('\n')
}

/** What stands around a new key on stderr; the key itself is stdout's. */
export function renderNewKey(
  key: KeyFacts,
  store: string,
  screen: Screen,
): { readonly before: string; readonly after: string } {
  const lines: readonly (readonly [string, Shown])[] = [
    ['Roles', rights(key)],
    [
      'Expires',
      key.expiresAt ? moment(key.expiresAt) : { text: 'never: give --expires 90d to bound it', style: 'caution' },
    ],
    ['Store', store],
  ]
  const before = `${headline('ok', `The key ${key.name} acts as ${key.userName}`, screen)}\n${pairs(lines, screen)}\n`
  const after = [
    '',
    '  It is told this once. Use it as a bearer token:',
    '    SVC_TOKEN=KEY svc … --server URL',
    `  Take it back:   svc keys revoke ${key.name}`,
  ].join('\n')
  return { before, after }
}

export const renderRevoked = (name: string, store: string, screen: Screen): string =>
  screen.isTTY
    ? `${headline('ok', `The key ${name} is revoked: it no longer signs in`, screen)}\n${pairs([['Store', store]], screen)}`
    : tabbed([store, name, 'revoked'])
