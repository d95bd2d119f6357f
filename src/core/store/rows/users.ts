import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { Fault } from '../../errors.ts'
import { adminWarning } from '../../names.ts'
import type { Actor, Data, DigestSecret, User } from '../data.ts'
import { later } from '../dialect.ts'
import { type StoreLink, taken } from '../link.ts'
import { type Db, type GrantKind, nameKey } from '../tables.ts'
import { note } from './audit.ts'
import { putSecret } from './digest.ts'
import { recordPrefix } from './known-prefixes.ts'
import { namesNear } from './near.ts'
import { countFamilies, endAll, endOthers, insertSignIn, lockFamily } from './sessions.ts'
import { admin, admins, anyAdmin, grantsText, setUser, userById, userRows, usersOf, userThere } from './user-rows.ts'

/** Grants names that the user does not hold, in this order. */
async function grant(tx: Db, userId: string, kind: GrantKind, names: ReadonlySet<string>): Promise<void> {
  // One at a time: a single INSERT does not guarantee the order of its rows.
  for (const name of names) await later(tx, tx.insertInto('grants').values({ userId, kind, name }))
}

async function ungrant(tx: Db, userId: string, kind: GrantKind, names: ReadonlySet<string>): Promise<void> {
  if (names.size === 0) return
  const grants = tx.deleteFrom('grants').where('userId', '=', userId).where('kind', '=', kind)
  await later(tx, grants.where('name', 'in', [...names]))
}

/**
 * A lock for every transaction that adds or removes users or Admins, so that two Admins who remove each other run one
 * after the other.
 */
const usersLock = 'users'
export const changingUsers =
  (link: StoreLink) =>
  <T>(work: (tx: Db) => Promise<T>): Promise<T> =>
    link.write(async (tx) => {
      await link.lock(tx, usersLock)
      return await work(tx)
    })
const maxRoleNames = 1_000

const tableOf = { session: 'sessions', access: 'accessTokens', key: 'apiKeys' } as const

export function usersOver(link: StoreLink, now: () => number): Data['users'] {
  const change = changingUsers(link)
  return {
    find: (nameOrEmail) =>
      link.read(async (db) => {
        const key = nameKey(nameOrEmail)
        const id = db.selectFrom('names').select('names.userId').where('names.key', '=', key)
        return usersOf(await userRows(db).where('users.id', '=', id).execute())[0]
      }),
    behind: (kind, hash) =>
      link.read(async (db) => {
        const table = tableOf[kind]
        const id = db.selectFrom(table).select(`${table}.userId`).where(`${table}.hash`, '=', hash)
        return usersOf(await userRows(db).where('users.id', '=', id).execute())[0]
      }),
    byId: (id) => link.read((db) => userById(db, id)),
    list: (after) => link.read((db) => userPage(db, after)),
    count: (role) => link.read((db) => countUsers(db, role)),
    near: (typed) =>
      link.read((db) => namesNear(db, nameKey(typed), { table: 'users', key: 'nameKey', name: 'userName' })),
    any: () => link.read(async (db) => (await db.selectFrom('users').select('id').limit(1).execute()).length > 0),
    anyAdmin: () => link.read((db) => anyAdmin(db)),
    holders: (role, after) => link.read((db) => userPage(db, after, role)),
    roleNames: () => link.read(roleNames),
    add: (user, actor) => change((tx) => addUser(tx, user, now(), actor)),
    setPassword: (id, passwordHash, actor, digest) =>
      change(async (tx) => {
        if ('replaces' in actor) {
          // If the password has changed meanwhile, its new hash differs and stays.
          const same = tx.updateTable('users').set({ passwordHash }).where('id', '=', id)
          await same.where('passwordHash', '=', actor.replaces).execute()
          return
        }
        const user = await userThere(tx, id)
        await setUser(tx, id, { passwordHash, epoch: user.epoch + 1 })
        await endAll(tx, 'userId', id)
        const texts = await digestTexts(tx, id, digest, now())
        await note(tx, now(), actor, { event: 'password.changed', target: user.userName, ...texts })
      }),
    changePassword: ({ id, epoch, passwordHash, digest, signIn }, actor) =>
      change(async (tx) => {
        const user = await userById(tx, id)
        if (!user || user.disabled || user.epoch !== epoch) throw new Fault('Unauthorized')
        await setUser(tx, id, { passwordHash, epoch: epoch + 1 })
        await endAll(tx, 'userId', id)
        if (signIn) await insertSignIn(tx, signIn)
        const texts = await digestTexts(tx, id, digest, now())
        await note(tx, now(), actor, { event: 'password.changed', target: user.userName, ...texts })
      }),
    endSessions: (id, keep, actor) =>
      change(async (tx) => {
        if (keep !== undefined) await lockFamily(link, tx, keep)
        const user = await userThere(tx, id)
        const ended = await countFamilies(tx, id, keep)
        if (ended === 0) return 0
        const epoch = user.epoch + 1
        await setUser(tx, id, { epoch })
        if (keep === undefined) await endAll(tx, 'userId', id)
        else await endOthers(tx, id, keep, epoch)
        const before = JSON.stringify({ sessions: ended })
        await note(tx, now(), actor, { event: 'session.ended', target: user.userName, before })
        return ended
      }),
    setDisabled: (id, disabled, actor) =>
      change(async (tx) => {
        const user = await userThere(tx, id)
        if (user.disabled === disabled) return
        if (disabled) refuseLastAdmin(user, await anyAdmin(tx, id))
        // Enabling the user again must not revive old tokens.
        const epoch = disabled ? user.epoch + 1 : user.epoch
        await setUser(tx, id, { disabled, epoch })
        if (disabled) await endAll(tx, 'userId', id)
        await note(tx, now(), actor, { event: disabled ? 'user.disabled' : 'user.enabled', target: user.userName })
      }),
    remove: (id, actor) =>
      change(async (tx) => {
        const user = await userThere(tx, id)
        refuseLastAdmin(user, await anyAdmin(tx, id))
        await tx.deleteFrom('users').where('id', '=', id).execute()
        await note(tx, now(), actor, { event: 'user.removed', target: user.userName, before: grantsText(user) })
      }),
    unlock: (id, { counters, guesses, prefix }, actor) =>
      change(async (tx) => {
        const user = await userThere(tx, id)
        for (const start of counters) {
          // The range of all keys that begin so. Keys are compared byte by byte.
          await tx.deleteFrom('failures').where('key', '>=', start).where('key', '<', `${start}\u{10ffff}`).execute()
        }
        await tx
          .deleteFrom('guesses')
          .where('name', 'in', [...guesses])
          .execute()
        if (prefix !== undefined) await recordPrefix(tx, { hex: undefined }, user, { prefix, at: now() })
        const after = prefix === undefined ? undefined : JSON.stringify({ address: prefix })
        await note(tx, now(), actor, { event: 'user.unlocked', target: user.userName, after })
      }),
    changeGrants: (id, { add, remove, refuse }, actor) =>
      change(async (tx) => {
        const otherAdmins = await later(tx, admins(tx, id))
        // Nobody else changes the grants meanwhile, because of the lock.
        const before = await userThere(tx, id)
        refuse?.(before)
        const roles = changedNames(before.roles, add.roles, remove.roles)
        const permissions = changedNames(before.permissions, add.permissions, remove.permissions)
        if (roles.lost.has(admin)) refuseLastAdmin(before, otherAdmins.rows().length > 0)
        if ([roles.lost, roles.won, permissions.lost, permissions.won].every(({ size }) => size === 0))
          return { before, after: before }
        await ungrant(tx, id, 'role', roles.lost)
        await ungrant(tx, id, 'permission', permissions.lost)
        await grant(tx, id, 'role', roles.won)
        await grant(tx, id, 'permission', permissions.won)
        const after = { roles: roles.after, permissions: permissions.after }
        const texts = { before: grantsText(before), after: grantsText(after, adminWarning([...roles.won])) }
        await note(tx, now(), actor, { event: 'roles.changed', target: before.userName, ...texts })
        return { before, after }
      }),
  }
}

/** Users that one query reads: about 1 MB. */
const usersPerPage = 1_000

async function countUsers(db: Db, role: string | undefined): Promise<number> {
  const count = (table: 'users' | 'grants') =>
    db.selectFrom(table).select((eb) => eb.fn.countAll<number | string>().as('n'))
  const query =
    role === undefined ? count('users') : count('grants').where('kind', '=', 'role').where('name', '=', role)
  return Number((await query.executeTakeFirstOrThrow()).n)
}

/** The next users by name, with a role if one is named. */
async function userPage(db: Db, after: string | undefined, role?: string): Promise<readonly User[]> {
  let ids = db.selectFrom('users as one').select('one.id').orderBy('one.nameKey').limit(usersPerPage)
  if (after !== undefined) ids = ids.where('one.nameKey', '>', nameKey(after))
  if (role !== undefined) {
    const holding = db.selectFrom('grants as held').select('held.userId').where('held.kind', '=', 'role')
    const few = (await countUsers(db, role)) <= usersPerPage
    // Few are found by the index of roles. Of many, each page would sort all: reading the users in their order is less.
    ids = few
      ? ids.where('one.id', 'in', holding.where('held.name', '=', role))
      : ids.where((eb) =>
          eb.exists(
            eb
              .selectFrom('grants as held')
              .select('held.userId')
              .where('held.kind', '=', 'role')
              .where('held.name', '=', role)
              .whereRef('held.userId', '=', 'one.id'),
          ),
        )
  }
  return usersOf(await userRows(db).where('users.id', 'in', ids).execute())
}

/** Replaces the digest secret beside a new password. Returns the texts of the audit, if there is or was a secret. */
async function digestTexts(tx: Db, id: string, digest: DigestSecret | undefined, at: number) {
  const before = await putSecret(tx, id, digest, at)
  const text = (has: boolean): string => JSON.stringify({ digest: has })
  return before || digest ? { before: text(before), after: text(digest !== undefined) } : {}
}

/**
 * Steps from name to name by the index instead of reading all grants: one step per name, however many users hold it.
 * Names of permissions only are skipped.
 */
async function roleNames(db: Db): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    WITH RECURSIVE held("name", "step") AS (
      SELECT min("name"), 1 FROM "grants"
      UNION ALL
      SELECT (SELECT min(g."name") FROM "grants" g WHERE g."name" > held."name"), held."step" + 1
      FROM held WHERE held."name" IS NOT NULL AND held."step" < ${sql.lit(maxRoleNames)}
    )
    SELECT "name" FROM held
    WHERE EXISTS (SELECT 1 FROM "grants" g WHERE g."name" = held."name" AND g."kind" = 'role')`.execute(db)
  return rows.map(({ name }) => name)
}

/** What a change adds to names, what it removes from them, and the names after it, in the order of their rows. */
function changedNames(before: readonly string[], add: readonly string[], remove: readonly string[]) {
  const lost = new Set(before.filter((name) => remove.includes(name) && !add.includes(name)))
  const won = new Set(add.filter((name) => !before.includes(name)))
  return { lost, won, after: [...before.filter((name) => !lost.has(name)), ...won] }
}

/** Adds a user under the lock of users. Throws Fault Conflict when the name or e-mail address is taken. */
export async function addUser(
  tx: Db,
  {
    userName,
    email,
    displayName,
    passwordHash,
    roles,
    permissions,
    digest,
  }: Omit<User, 'id' | 'createdAt' | 'epoch' | 'disabled'> & { readonly digest?: DigestSecret | undefined },
  at: number,
  actor: Actor,
): Promise<User> {
  const id = randomUUID()
  await refuseTaken(tx, userName, email)
  const row = {
    id,
    userName,
    nameKey: nameKey(userName),
    email,
    displayName,
    passwordHash,
    disabled: false,
    createdAt: at,
    epoch: 0,
  }
  await later(tx, tx.insertInto('users').values(row))
  const keys = new Set([userName, ...(email === undefined ? [] : [email])].map(nameKey))
  await later(tx, tx.insertInto('names').values([...keys].map((key) => ({ key, userId: id }))))
  await grant(tx, id, 'role', new Set(roles))
  await grant(tx, id, 'permission', new Set(permissions))
  if (digest) await putSecret(tx, id, digest, at)
  const user = await userThere(tx, id)
  await note(tx, at, actor, {
    event: 'user.added',
    target: userName,
    after: grantsText(user, adminWarning(roles), digest !== undefined),
  })
  return user
}

async function refuseTaken(tx: Db, userName: string, email: string | undefined): Promise<void> {
  const [name, address] = [nameKey(userName), email === undefined ? undefined : nameKey(email)]
  const keys = address === undefined ? [name] : [name, address]
  const rows = await tx.selectFrom('names').select('key').where('key', 'in', keys).execute()
  if (rows.some(({ key }) => key === name)) throw taken('The user name')
  if (rows.length > 0) throw taken('The e-mail address')
}

function refuseLastAdmin(user: User, hasOthers: boolean): void {
  if (user.disabled || !user.roles.includes(admin) || hasOthers) return
  throw new Fault('Conflict', 'The last Admin cannot lose Admin', {
    hints: ['Assign Admin to another user first.'],
  })
}
