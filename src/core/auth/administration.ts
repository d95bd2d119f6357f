import type { Admin, AuditFacts, KeyFacts } from '../service.ts'
import type { AuditRow, Data, KeyRow } from '../store/index.ts'
import { listProblems, nameProblems, problem, refuse } from './names.ts'
import type { Passwords } from './passwords.ts'
import { newToken } from './tokens.ts'
import { asActor, findUser, userFacts, users } from './users.ts'

/** API keys: like bearer tokens without a session, valid until they expire or are revoked. */
export function keys(data: () => Promise<Data>, now: () => number): Admin['keys'] {
  return {
    async create({ name, userName, roles: givenRoles, permissions, expiresInMs }, by) {
      refuse([
        ...nameProblems('Name', name),
        ...listProblems('Roles', givenRoles),
        ...listProblems('Permissions', permissions),
        ...(expiresInMs !== undefined && !(Number.isSafeInteger(expiresInMs) && expiresInMs > 0)
          ? [problem('ExpiresInMs', 'must be a time in the future')]
          : []),
      ])
      // A key limited to some permissions has no roles, whichever version of svc reads it.
      const roles = givenRoles ?? (permissions && [])
      const store = await data()
      const user = await findUser(store, userName)
      const missing = roles?.find((role) => !user.roles.includes(role))
      if (missing !== undefined) refuse([problem('Roles', `names ${missing}, which the user does not hold`)])
      const lacking = permissions?.find((permission) => !user.permissions.includes(permission))
      if (lacking !== undefined) refuse([problem('Permissions', `names ${lacking}, which the user does not hold`)])
      const secret = newToken('key')
      const row = await store.keys.add(
        {
          name,
          hash: secret.hash,
          userId: user.id,
          roles: roles && [...new Set(roles)],
          permissions: permissions && [...new Set(permissions)],
          expiresAt: expiresInMs === undefined ? undefined : now() + expiresInMs,
        },
        asActor(by),
      )
      return { key: keyFacts(row, user.userName), secret: secret.text }
    },
    list: async () => (await (await data()).keys.list()).map((row) => keyFacts(row, row.userName)),
    near: async (name) => await (await data()).keys.near(name),
    revoke: async (name, by) => await (await data()).keys.revoke(name, asActor(by)),
  }
}

const keyFacts = (row: KeyRow, userName: string): KeyFacts => ({
  name: row.name,
  userName,
  roles: row.roles,
  permissions: row.permissions,
  createdAt: new Date(row.createdAt),
  expiresAt: row.expiresAt === undefined ? undefined : new Date(row.expiresAt),
  revokedAt: row.revokedAt === undefined ? undefined : new Date(row.revokedAt),
})

/**
 * The operations of `svc users`, `keys`, `roles show`, `roles holders` and `audit`, on the store that `label` names.
 */
export function administration(options: {
  readonly label: string
  readonly data: (create: boolean) => Promise<Data>
  readonly passwords: Passwords
  readonly now: () => number
}): Omit<Admin, 'heartbeats'> {
  const store = (): Promise<Data> => options.data(false)
  return {
    store: options.label,
    users: users(options),
    keys: keys(store, options.now),
    roles: {
      show: async (userName) => userFacts(await findUser(await store(), userName)),
      holders: async (role) => (await (await store()).users.holders(role)).map(userFacts),
      names: async () => await (await store()).users.roleNames(),
    },
    audit: {
      list: async ({ limit, before }) => {
        const { audit } = await store()
        return (await audit.list(before === undefined ? { limit } : { limit, before })).map(auditFacts)
      },
    },
  }
}

const auditFacts = (row: AuditRow): AuditFacts => ({ ...row, at: new Date(row.at) })
