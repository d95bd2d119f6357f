import { isIP } from 'node:net'
import { Fault, invalidField } from '../../base/errors.ts'
import { coversPermission, type KeyEntry, limits, type Request, type UserEntry } from '../../protocol/index.ts'
import type { AdminActor, Administration } from '../../protocol/service/service.ts'
import type { Data, DigestSecret, KeyRow, User, UserToAdd } from '../../store/index.ts'
import { addressPrefixes, limitsOf } from './attempts.ts'
import {
  emailProblems,
  invalidFields,
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

export type AdministrationContext = {
  /** Opens the store. `create`: creates it when there is none. */
  readonly data: (create: boolean) => Promise<Data>
  readonly passwords: Passwords
  /** The OpenID providers that are turned on. */
  readonly providers: readonly { readonly name: string; readonly issuer: string }[]
}

type UserOperation = Extract<keyof Administration, `${string}User` | 'getUsers' | 'setPassword' | 'removeDigest'>

/** The operations on users. Each finds its user by exact name, otherwise by e-mail. */
export function userOperations({
  data,
  passwords,
  providers,
}: AdministrationContext): Pick<Administration, UserOperation> {
  const find = async (UserName = '') => {
    const store = await data(false)
    return { store, user: await findUser(store, UserName) }
  }
  const hash = (password: string) => passwords.hash(password, new AbortController().signal)
  const setDisabled = async (UserName: string | undefined, disabled: boolean, by: AdminActor) => {
    const { store, user } = await find(UserName)
    const Changed = user.disabled !== disabled
    if (Changed) await store.users.setDisabled(user.id, disabled, by)
    return { User: await entryOf(store, { ...user, disabled }), Changed }
  }
  return {
    async getUsers({ Like, Take, After }) {
      const { users } = await data(false)
      if (Like !== undefined) return { Users: (await users.near(Like)).map((UserName) => ({ UserName })) }
      const Users = (await users.list(After, Take)).map(userEntry)
      return After === undefined ? { Users, Total: await users.count() } : { Users }
    },
    async getUser({ UserName }) {
      const { store, user } = await find(UserName)
      return { User: await entryOf(store, user) }
    },
    async addUser(request, by) {
      const user = await checked(request)
      const { Password } = request
      const passwordHash = Password === undefined ? undefined : await hash(Password)
      const digest = await newSecret(user, Password, request)
      const store = await data(true)
      return { User: await entryOf(store, await store.users.add({ ...user, passwordHash, digest }, by)) }
    },
    async setPassword({ UserName, Password = '', MustChangePassword: mustChange = false, ...wish }, by) {
      const { store, user } = await find(UserName)
      refuseFields(await passwordProblems('Password', Password, user))
      const digest = await newSecret(user, Password, wish)
      const passwordHash = await hash(Password)
      await store.users.setPassword(user.id, passwordHash, by, { digest, mustChange })
      return { User: await entryOf(store, { ...user, passwordHash, mustChangePassword: mustChange }) }
    },
    async removeDigest({ UserName }, by) {
      const { store, user } = await find(UserName)
      const Changed = await store.digest.remove(user.id, by)
      return { User: await entryOf(store, user), Changed }
    },
    disableUser: ({ UserName }, by) => setDisabled(UserName, true, by),
    enableUser: ({ UserName }, by) => setDisabled(UserName, false, by),
    async unlockUser({ UserName, From }, by) {
      if (From !== undefined && isIP(From) === 0) refuseFields([invalidField('From', 'must be an IP address')])
      const { store, user } = await find(UserName)
      const names = [user.userName, ...(user.email === undefined ? [] : [user.email])]
      const prefix = From === undefined ? undefined : addressPrefixes(From)[0]
      await store.users.unlock(user.id, { ...limitsOf(names), prefix }, by)
      return { User: await entryOf(store, user) }
    },
    async linkUser({ UserName, Provider, Subject = '' }, by) {
      const issuer = issuerNamed(providers, Provider)
      refuseFields(subjectProblems(Subject))
      const { store, user } = await find(UserName)
      const Changed = await store.identities.link(user.id, { issuer, subject: Subject }, by)
      return { User: await entryOf(store, user), Changed }
    },
    async unlinkUser({ UserName, Provider, Subject }, by) {
      const issuer = issuerNamed(providers, Provider)
      const { store, user } = await find(UserName)
      const removed = await store.identities.unlink(user.id, issuer, Subject, by)
      return { User: await entryOf(store, user), Changed: removed > 0 }
    },
    async removeUser({ UserName }, by) {
      const { store, user } = await find(UserName)
      const User = await entryOf(store, user)
      await store.users.remove(user.id, by)
      return { User }
    },
  }
}

/** The issuer of a provider by its name; a URL is the issuer itself. */
function issuerNamed(providers: AdministrationContext['providers'], provider = ''): string {
  if (/^https?:\/\//.test(provider)) return provider
  const match = providers.find(({ name }) => name === provider.toLowerCase())
  if (match) return match.issuer
  throw invalidFields([invalidField('Provider', notAProvider(providers.map(({ name }) => name)))])
}

/** Continues the sentence about the name of a provider that svc.yaml does not have. */
export const notAProvider = (names: readonly string[]): string =>
  `must be a provider of svc.yaml or the URL of its issuer; ${names.length === 0 ? 'there is none' : `there are: ${names.join(', ')}`}`

type DigestWish = Pick<Request<'addUser'>, 'Digest' | 'DigestForAdmin'>

/** The digest secret of a new password, where it is asked for. Throws Usage for a user who may not have one (A12). */
async function newSecret(
  { userName, roles }: Pick<User, 'userName' | 'roles'>,
  password: string | undefined,
  { Digest, DigestForAdmin: forAdmin = false }: DigestWish,
): Promise<DigestSecret | undefined> {
  if (!Digest && !forAdmin) return undefined
  if (password === undefined) throw new Fault('Usage', 'sign-in by digest needs a password')
  if (userName.includes(':')) {
    throw new Fault('Usage', `"${userName}" contains a colon, which sign-in by digest does not allow in user names`)
  }
  if (roles.includes(adminRole) && !forAdmin) {
    throw new Fault('Usage', `${userName} is Admin: whoever reads the store could sign in as Admin by digest`, {
      hints: ['To accept this: --digest-for-admin instead of --digest'],
    })
  }
  const { digestSecret } = await import('./digest/secret.ts')
  return digestSecret(userName, password, forAdmin)
}

const adminRole = 'Admin'

/** The problems with the values of a new user, as fields of the response. */
export async function newUserProblems(request: Request<'addUser'>): Promise<Problems> {
  const { UserName: userName = '', Email: email, DisplayName: displayName, Password } = request
  return [
    ...userNameProblems('UserName', userName),
    ...(email === undefined ? [] : emailProblems('Email', email)),
    ...(displayName === undefined ? [] : nameProblems('DisplayName', displayName)),
    ...listProblems('Roles', request.Roles),
    ...permissionProblems(request.Permissions),
    ...(Password === undefined ? [] : await passwordProblems('Password', Password, { userName, email, displayName })),
  ]
}

/** Validates a new user. Throws one Fault that names every invalid field. */
async function checked(request: Request<'addUser'>): Promise<Omit<UserToAdd, 'passwordHash' | 'digest'>> {
  refuseFields(await newUserProblems(request))
  return {
    mustChangePassword: request.MustChangePassword && request.Password !== undefined,
    userName: (request.UserName ?? '').normalize('NFC'),
    email: request.Email?.normalize('NFC'),
    displayName: request.DisplayName,
    roles: [...new Set(request.Roles)],
    permissions: [...new Set(request.Permissions)],
  }
}

/** Finds a user. Throws Fault NotFound, whose message is the name. */
export async function findUser({ users }: Pick<Data, 'users'>, name: string): Promise<User> {
  const user = await users.find(name)
  if (!user) throw new Fault('NotFound', name)
  return user
}

/** A user as an Admin may see it: everything but the password hash. */
export const userEntry = (user: User): UserEntry => ({
  Id: user.id,
  UserName: user.userName,
  Email: user.email,
  DisplayName: user.displayName,
  Disabled: user.disabled,
  HasPassword: user.passwordHash !== undefined,
  MustChangePassword: user.mustChangePassword,
  CreatedAt: new Date(user.createdAt),
  Roles: user.roles,
  Permissions: user.permissions,
})

/** The same, with what the store has for sign-in by digest. */
async function entryOf({ digest }: Data, user: User): Promise<UserEntry> {
  const secret = await digest.secret(user.id)
  const isRefused = secret && !secret.forAdmin && user.roles.includes(adminRole)
  return { ...userEntry(user), Digest: secret === undefined ? 'none' : isRefused ? 'not for Admin' : 'valid' }
}

/** The operations on keys: like bearer tokens without a session, valid until they expire or are revoked. */
export function keyOperations({
  data,
}: Pick<AdministrationContext, 'data'>): Pick<Administration, 'getKeys' | 'createKey' | 'revokeKey'> {
  return {
    async getKeys({ Like, Take = limits.pageItems, After }) {
      const { keys } = await data(false)
      if (Like !== undefined) return { Keys: (await keys.near(Like)).map((Name) => ({ Name })) }
      const Keys = (await keys.list(After, Take)).map((row) => keyEntry(row, row.userName))
      return After === undefined ? { Keys, Total: await keys.count() } : { Keys }
    },
    async createKey({ Name: name = '', UserName = '', Lifetime, ...rights }, by) {
      refuseFields([
        ...nameProblems('Name', name),
        ...listProblems('Roles', rights.Roles),
        ...permissionProblems(rights.Permissions),
        ...(Lifetime !== undefined && !(Number.isSafeInteger(Lifetime) && Lifetime > 0)
          ? [invalidField('Lifetime', 'must be a time in the future')]
          : []),
      ])
      const permissions = rights.Permissions && [...new Set(rights.Permissions)]
      // A key limited to some permissions has no roles, whichever version of svc reads it.
      const roles = rights.Roles ? [...new Set(rights.Roles)] : permissions && []
      const store = await data(false)
      const user = await findUser(store, UserName)
      refuseMissing(
        'Roles',
        roles?.find((role) => !user.roles.includes(role)),
      )
      refuseMissing(
        'Permissions',
        permissions?.find((permission) => !coversPermission(user, permission)),
      )
      const { hash, text } = newToken('key')
      const expiresAt = Lifetime === undefined ? undefined : store.clock.now() + Lifetime
      const row = await store.keys.add({ name, hash, userId: user.id, roles, permissions, expiresAt }, by)
      return { Key: keyEntry(row, user.userName), Secret: text }
    },
    async revokeKey({ Name = '' }, by) {
      await (await data(false)).keys.revoke(Name, by)
      return { Name }
    },
  }
}

function refuseMissing(field: string, right: string | undefined): void {
  if (right !== undefined) throw invalidFields([invalidField(field, `contains ${right}, which the user does not have`)])
}

const keyEntry = (row: KeyRow, UserName: string): KeyEntry => ({
  Name: row.name,
  UserName,
  Roles: row.roles,
  Permissions: row.permissions,
  CreatedAt: new Date(row.createdAt),
  ExpiresAt: dateOf(row.expiresAt),
  RevokedAt: dateOf(row.revokedAt),
})

const dateOf = (at: number | undefined): Date | undefined => (at === undefined ? undefined : new Date(at))
