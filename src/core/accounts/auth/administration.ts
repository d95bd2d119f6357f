import { isIP } from 'node:net'
import { Fault, invalidField } from '../../base/errors.ts'
import { coversPermission } from '../../protocol/index.ts'
import type { Admin, AdminActor, DigestConsent, KeyFacts, NewUser, UserFacts } from '../../protocol/service/service.ts'
import type { Data, DigestSecret, KeyRow, User, UserToAdd } from '../../store/index.ts'
import { addressPrefixes, limitsOf } from './attempts.ts'
import {
  emailProblems,
  listProblems,
  nameProblems,
  type Problems,
  permissionProblems,
  refuseFields,
  subjectProblems,
  userNameProblems,
} from './names.ts'
import { passwordProblems } from './password-policy.ts'
import type { Passwords } from './passwords.ts'
import { newToken } from './tokens.ts'

export type UsersContext = {
  /** Opens the store. `create`: creates it when there is none. */
  readonly data: (create: boolean) => Promise<Data>
  readonly passwords: Passwords
}

/** Administration of users, for accounts that can open the store (P8). */
export function users({ data, passwords }: UsersContext): Admin['users'] {
  const withUser = async (userName: string) => {
    const store = await data(false)
    return { store, user: await findUser(store, userName) }
  }
  const setDisabled = async (userName: string, disabled: boolean, by: AdminActor): Promise<UserFacts> => {
    const { store, user } = await withUser(userName)
    await store.users.setDisabled(user.id, disabled, by)
    return userFacts({ ...user, disabled })
  }
  const ownSignal = (): AbortSignal => new AbortController().signal
  return {
    async add(input, by) {
      const user = await checked(input)
      const { password } = input
      const passwordHash = password === undefined ? undefined : await passwords.hash(password, ownSignal())
      const digest = await newSecret(user, password, input.digest)
      const store = await data(true)
      const added = await store.users.add({ ...user, passwordHash, digest }, by)
      return withDigest(userFacts(added), digest)
    },
    list: async (after, take) => (await (await data(false)).users.list(after, take)).map(userFacts),
    count: async () => await (await data(false)).users.count(),
    any: async () => await (await data(false)).users.any(),
    near: async (userName) => await (await data(false)).users.near(userName),
    async show(userName) {
      const { store, user } = await withUser(userName)
      return withDigest(userFacts(user), await store.digest.secret(user.id))
    },
    async passwd(userName, password, by, consent, mustChange = false) {
      const { store, user } = await withUser(userName)
      refuseFields(await passwordProblems('Password', password, user))
      const digest = await newSecret(user, password, consent)
      await store.users.setPassword(user.id, await passwords.hash(password, ownSignal()), by, { digest, mustChange })
      return withDigest(userFacts({ ...user, passwordHash: '', mustChangePassword: mustChange }), digest)
    },
    async removeDigest(userName, by) {
      const { store, user } = await withUser(userName)
      const removed = await store.digest.remove(user.id, by)
      return { user: withDigest(userFacts(user), undefined), removed }
    },
    disable: (userName, by) => setDisabled(userName, true, by),
    enable: (userName, by) => setDisabled(userName, false, by),
    async unlock(userName, from, by) {
      if (from !== undefined && isIP(from) === 0) refuseFields([invalidField('From', 'must be an IP address')])
      const { store, user } = await withUser(userName)
      const names = [user.userName, ...(user.email === undefined ? [] : [user.email])]
      const prefix = from === undefined ? undefined : addressPrefixes(from)[0]
      await store.users.unlock(user.id, { ...limitsOf(names), prefix }, by)
      return userFacts(user)
    },
    async link(userName, { issuer, subject }, by) {
      refuseFields(subjectProblems(subject))
      const { store, user } = await withUser(userName)
      return await store.identities.link(user.id, { issuer, subject }, by)
    },
    async unlink(userName, { issuer, subject }, by) {
      const { store, user } = await withUser(userName)
      return await store.identities.unlink(user.id, issuer, subject, by)
    },
    async identities(userName) {
      const { store, user } = await withUser(userName)
      return (await store.identities.list(user.id)).map(({ issuer, subject }) => ({ issuer, subject }))
    },
    async remove(userName, by) {
      const { store, user } = await withUser(userName)
      await store.users.remove(user.id, by)
      return userFacts(user)
    },
  }
}

/** The digest secret of a new password, where it is asked for. Throws Usage for a user who may not have one (A12). */
async function newSecret(
  { userName, roles }: Pick<User, 'userName' | 'roles'>,
  password: string | undefined,
  consent: DigestConsent | undefined,
): Promise<DigestSecret | undefined> {
  if (!consent) return undefined
  if (password === undefined) throw new Fault('Usage', 'sign-in by digest needs a password')
  if (userName.includes(':')) {
    throw new Fault('Usage', `"${userName}" contains a colon, which sign-in by digest does not allow in user names`)
  }
  if (roles.includes(adminRole) && !consent.forAdmin) {
    throw new Fault('Usage', `${userName} is Admin: whoever reads the store could sign in as Admin by digest`, {
      hints: ['To accept this: --digest-for-admin instead of --digest'],
    })
  }
  const { digestSecret } = await import('./digest/secret.ts')
  return digestSecret(userName, password, consent.forAdmin)
}

const adminRole = 'Admin'

/** Adds what the store has for sign-in by digest. */
function withDigest(user: UserFacts, secret: DigestSecret | undefined): UserFacts {
  const refused = secret && !secret.forAdmin && user.roles.includes(adminRole)
  return { ...user, digest: secret === undefined ? 'none' : refused ? 'not for Admin' : 'valid' }
}

/** The problems with the values of a new user, as fields of the response. */
export async function newUserProblems(input: NewUser): Promise<Problems> {
  const { userName, email, displayName, password } = input
  return [
    ...userNameProblems('UserName', userName),
    ...(email === undefined ? [] : emailProblems('Email', email)),
    ...(displayName === undefined ? [] : nameProblems('DisplayName', displayName)),
    ...listProblems('Roles', input.roles),
    ...permissionProblems(input.permissions),
    ...(password === undefined ? [] : await passwordProblems('Password', password, input)),
  ]
}

/** Validates a new user. Throws one Fault that names every invalid field. */
async function checked(input: NewUser): Promise<Omit<UserToAdd, 'passwordHash' | 'digest'>> {
  refuseFields(await newUserProblems(input))
  const { userName, email, displayName, mustChangePassword } = input
  return {
    mustChangePassword,
    userName: userName.normalize('NFC'),
    email: email?.normalize('NFC'),
    displayName,
    roles: [...new Set(input.roles)],
    permissions: [...new Set(input.permissions)],
  }
}

/** Finds a user. Throws Fault NotFound, whose message is the name. */
export async function findUser({ users }: Pick<Data, 'users'>, name: string): Promise<User> {
  const user = await users.find(name)
  if (!user) throw new Fault('NotFound', name)
  return user
}

/** The facts about a user that may be shown: everything but the password hash. */
export const userFacts = (user: User): UserFacts => ({
  id: user.id,
  userName: user.userName,
  email: user.email,
  displayName: user.displayName,
  disabled: user.disabled,
  hasPassword: user.passwordHash !== undefined,
  mustChangePassword: user.mustChangePassword,
  createdAt: new Date(user.createdAt),
  roles: user.roles,
  permissions: user.permissions,
})

/** API keys: like bearer tokens without a session, valid until they expire or are revoked. */
export function keys(data: () => Promise<Data>): Admin['keys'] {
  return {
    async create({ name, userName, roles: givenRoles, permissions, expiresInMs }, by) {
      refuseFields([
        ...nameProblems('Name', name),
        ...listProblems('Roles', givenRoles),
        ...permissionProblems(permissions),
        ...(expiresInMs !== undefined && !(Number.isSafeInteger(expiresInMs) && expiresInMs > 0)
          ? [invalidField('ExpiresInMs', 'must be a time in the future')]
          : []),
      ])
      // A key limited to some permissions has no roles, whichever version of svc reads it.
      const roles = givenRoles ?? (permissions && [])
      const store = await data()
      const user = await findUser(store, userName)
      const missing = roles?.find((role) => !user.roles.includes(role))
      if (missing !== undefined)
        refuseFields([invalidField('Roles', `contains ${missing}, which the user does not have`)])
      const lacking = permissions?.find((permission) => !coversPermission(user, permission))
      if (lacking !== undefined)
        refuseFields([invalidField('Permissions', `contains ${lacking}, which the user does not have`)])
      const secret = newToken('key')
      const row = await store.keys.add(
        {
          name,
          hash: secret.hash,
          userId: user.id,
          roles: roles && [...new Set(roles)],
          permissions: permissions && [...new Set(permissions)],
          expiresAt: expiresInMs === undefined ? undefined : store.clock.now() + expiresInMs,
        },
        by,
      )
      return { key: keyFacts(row, user.userName), secret: secret.text }
    },
    list: async (after, take) =>
      (await (await data()).keys.list(after, take)).map((row) => keyFacts(row, row.userName)),
    near: async (name) => await (await data()).keys.near(name),
    revoke: async (name, by) => await (await data()).keys.revoke(name, by),
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
 * The operations of `svc users`, `keys`, `roles show` and `roles holders`, on the store that `label` names.
 */
export function administration(options: {
  readonly label: string
  readonly data: (create: boolean) => Promise<Data>
  readonly passwords: Passwords
}): Omit<Admin, 'heartbeats' | 'audit' | 'roles'> & {
  readonly roles: Omit<Admin['roles'], 'holdersAt' | 'history'>
} {
  const store = (): Promise<Data> => options.data(false)
  return {
    store: options.label,
    schema: { foreign: async () => (await (await store()).inspect()).foreign.map(({ label }) => label) },
    users: users(options),
    keys: keys(store),
    roles: {
      show: async (userName) => userFacts(await findUser(await store(), userName)),
      holders: async (role, after, take) => (await (await store()).users.holders(role, after, take)).map(userFacts),
      count: async (role) => await (await store()).users.count(role),
      names: async () => await (await store()).users.roleNames(),
    },
  }
}
