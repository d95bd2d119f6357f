import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { Fault } from '../../base/errors.ts'
import { adminWarning } from '../../base/names.ts'
import { storedPermissions } from '../../protocol/index.ts'
import type { Actor, Data, DigestSecret, Grant, User, UserToAdd } from '../data.ts'
import { compiledOnce, later } from '../dialect.ts'
import { adminGrant, afterEdits, endsAdmin, type Giving, grantEdits, isNoChange, newGrants } from '../grants.ts'
import { type StoreLink, taken } from '../link.ts'
import { type Db, nameKey } from '../tables.ts'
import { note } from './audit.ts'
import { putSecret } from './digest.ts'
import { endGrants, type GrantKeeper, noticesOver } from './grants.ts'
import { recordPrefix } from './known-prefixes.ts'
import { lockAdmins, lockNames, lockUsers, touchesAdmin } from './locks.ts'
import { namesNear } from './near.ts'
import { countFamilies, endAll, endOthers, insertSignIn, lockFamily } from './sessions.ts'
import {
  anyAdmin,
  grantsText,
  setUser,
  type UserQuery,
  userById,
  userRows,
  userRowsOf,
  userThere,
} from './user-rows.ts'

/** Stores grants of names that the user does not hold, in this order. */
async function insertGrants(tx: Db, userId: string, grants: readonly Grant[]): Promise<void> {
  // One at a time: a single INSERT does not guarantee the order of its rows.
  for (const grant of grants) await later(tx, tx.insertInto('grants').values({ userId, ...grant }))
}

/** The names of the stored rows of a grant. */
const storedNames = ({ kind, name }: Grant): readonly string[] =>
  kind === 'permission' ? storedPermissions(name) : [name]

async function removeGrants(tx: Db, userId: string, grants: readonly Grant[]): Promise<void> {
  for (const kind of ['role', 'permission'] as const) {
    const names = grants.filter((grant) => grant.kind === kind).flatMap(storedNames)
    if (names.length === 0) continue
    const rows = tx.deleteFrom('grants').where('userId', '=', userId).where('kind', '=', kind)
    await later(tx, rows.where('name', 'in', names))
  }
}

async function setEnds(
  tx: Db,
  userId: string,
  grants: readonly Grant[],
  set: Giving & Pick<Grant, 'endsAt'>,
): Promise<void> {
  const { endsAt = null, grantedAt = null, grantedBy = null, reason = null } = set
  for (const grant of grants) {
    const rows = tx.updateTable('grants').set({ endsAt, grantedAt, grantedBy, reason }).where('userId', '=', userId)
    await later(tx, rows.where('kind', '=', grant.kind).where('name', 'in', storedNames(grant)))
  }
}

/** Changes one user. `admins`: whether that may change who is Admin. */
export const changingUser =
  (link: StoreLink) =>
  <T>(
    { id, admins = false }: { readonly id: string; readonly admins?: boolean },
    work: (tx: Db) => Promise<T>,
  ): Promise<T> =>
    link.write(async (tx) => {
      await lockUsers(link, tx, [id])
      if (admins) await lockAdmins(link, tx)
      return await work(tx)
    })

const maxRoleNames = 1_000

const byName = compiledOnce((db, key: string) => {
  const id = db.selectFrom('names').select('names.userId').where('names.key', '=', key)
  return userRows(db).where('users.id', '=', id)
})
const behindIn = (table: 'sessions' | 'accessTokens' | 'apiKeys') =>
  compiledOnce((db, hash: string) => {
    const id = db.selectFrom(table).select(`${table}.userId`).where(`${table}.hash`, '=', hash)
    return userRows(db).where('users.id', '=', id)
  })
/** The user to whom a session, a token or a key was issued, by its hash. */
const behind = { session: behindIn('sessions'), access: behindIn('accessTokens'), key: behindIn('apiKeys') }

export function usersOver(link: StoreLink, now: () => number, ends: GrantKeeper): Data['users'] {
  const change = changingUser(link)
  const there = async (tx: Db, id: string): Promise<User> => (await ends.inTransaction(tx, id)).user
  const one = async (query: (db: Db) => UserQuery): Promise<User | undefined> => (await ends.users(query))[0]
  return {
    find: (nameOrEmail) => one((db) => byName(db, nameKey(nameOrEmail))),
    behind: (kind, hash) => one((db) => behind[kind](db, hash)),
    byId: (id) => one((db) => userRowsOf(db, id)),
    list: (after, take) => ends.users((db) => userRows(db).where('users.id', 'in', idsOfPage(db, { after, take }))),
    count: async (role) => {
      const at = await ends.settle()
      return await link.read((db) => countUsers(db, role, at))
    },
    near: (typed) =>
      link.read((db) => namesNear(db, nameKey(typed), { table: 'users', key: 'nameKey', name: 'userName' })),
    any: () => link.read(async (db) => (await db.selectFrom('users').select('id').limit(1).execute()).length > 0),
    anyAdmin: async () => {
      const at = await ends.settle()
      return await link.read((db) => anyAdmin(db, at))
    },
    holders: async (role, after, take) => {
      const at = await ends.settle()
      const few = await link.read((db) => areFew(db, role, at))
      return await ends.users((db) =>
        userRows(db).where('users.id', 'in', idsOfHolders(db, { after, take }, { role, at, few })),
      )
    },
    roleNames: async () => {
      const at = await ends.settle()
      return await link.read((db) => roleNames(db, at))
    },
    add: (user, actor) =>
      link.write(async (tx) => {
        await lockNames(link, tx, namesOf(user))
        if (touchesAdmin(user.roles)) await lockAdmins(link, tx)
        return await addUser(tx, user, now(), actor)
      }),
    setPassword: (id, passwordHash, actor, { digest, mustChange } = {}) =>
      change({ id }, async (tx) => {
        if ('replaces' in actor) {
          // If the password has changed meanwhile, its new hash differs and stays.
          for (const column of ['passwordHash', 'temporaryHash'] as const) {
            const same = tx.updateTable('users').set(column, passwordHash).where('id', '=', id)
            await same.where(column, '=', actor.replaces).execute()
          }
          return
        }
        const user = await there(tx, id)
        await setUser(tx, id, { passwordHash, temporaryHash: mustChange ? passwordHash : null, epoch: user.epoch + 1 })
        await endAll(tx, 'userId', id)
        const texts = passwordTexts(await replaceDigest(tx, id, digest, now()), mustChange)
        await note(tx, now(), actor, { event: 'password.changed', target: user.userName, ...texts })
      }),
    changePassword: ({ id, epoch, passwordHash, digest, signIn }, actor) =>
      change({ id }, async (tx) => {
        const user = await userById(tx, id, ends.isOver())
        if (!user || user.disabled || user.epoch !== epoch) throw new Fault('Unauthorized')
        await setUser(tx, id, { passwordHash, temporaryHash: null, epoch: epoch + 1 })
        await endAll(tx, 'userId', id)
        if (signIn) await insertSignIn(tx, signIn)
        const texts = passwordTexts(await replaceDigest(tx, id, digest, now()))
        await note(tx, now(), actor, { event: 'password.changed', target: user.userName, ...texts })
      }),
    endSessions: (id, keep, actor) =>
      change({ id }, async (tx) => {
        if (keep !== undefined) await lockFamily(link, tx, keep)
        const user = await there(tx, id)
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
      change({ id, admins: true }, async (tx) => {
        const user = await there(tx, id)
        if (user.disabled === disabled) return
        if (disabled) await refuseLastAdmin(tx, user, now())
        // Enabling the user again must not revive old tokens.
        const epoch = disabled ? user.epoch + 1 : user.epoch
        await setUser(tx, id, { disabled, epoch })
        if (disabled) await endAll(tx, 'userId', id)
        await note(tx, now(), actor, { event: disabled ? 'user.disabled' : 'user.enabled', target: user.userName })
      }),
    remove: (id, actor) =>
      change({ id, admins: true }, async (tx) => {
        const at = now()
        const { user, ended } = await ends.inTransaction(tx, id)
        await refuseLastAdmin(tx, user, at)
        await endGrants(tx, at, ended)
        await tx.deleteFrom('users').where('id', '=', id).execute()
        await note(tx, at, actor, { event: 'user.removed', target: user.userName, before: grantsText(user) })
      }),
    unlock: (id, { counters, guesses, prefix }, actor) =>
      change({ id }, async (tx) => {
        const user = await there(tx, id)
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
    changeGrants: (id, { add, remove, endsAt, refuse }, actor) =>
      change({ id, admins: touchesAdmin(add.roles, remove.roles) }, async (tx) => {
        const at = now()
        // Nobody else changes the grants meanwhile, because of the lock.
        const { user: before, ended } = await ends.inTransaction(tx, id)
        const by = { grantedAt: at, grantedBy: actor.who, reason: actor.reason }
        const edits = grantEdits(before.grants, { add, remove, endsAt }, by)
        refuse?.(before, edits)
        if (isNoChange(edits)) return { before, after: before }
        if (endsAdmin(edits)) await refuseLastAdmin(tx, before, at, adminGrant(edits.changed) !== undefined)
        await endGrants(tx, at, ended)
        await removeGrants(tx, id, edits.removed)
        await insertGrants(tx, id, edits.added)
        await setEnds(tx, id, edits.changed, { ...by, endsAt: endsAt === 'never' ? undefined : endsAt })
        const after = afterEdits(before.grants, edits, endsAt, by)
        const won = edits.added.flatMap(({ kind, name }) => (kind === 'role' ? [name] : []))
        const texts = { before: grantsText(before), after: grantsText(after, { warning: adminWarning(won) }) }
        await note(tx, at, actor, { event: 'roles.changed', target: before.userName, ...texts })
        return { before, after }
      }),
    ...noticesOver(link, now),
  }
}

/** Users that one query reads: about 1 MB. */
const usersPerPage = 1_000

async function countUsers(db: Db, role: string | undefined, at: number): Promise<number> {
  const n = sql<number | string>`count(*)`.as('n')
  const query = role === undefined ? db.selectFrom('users').select(n) : holding(db, role, at).select(n)
  return Number((await query.executeTakeFirstOrThrow()).n)
}

/** Whether all holders of a role fit on one page. */
async function areFew(db: Db, role: string, at: number): Promise<boolean> {
  const beyond = holding(db, role, at).select('held.userId').offset(usersPerPage).limit(1)
  return (await beyond.execute()).length === 0
}

const holding = (db: Db, role: string, at: number) =>
  db.selectFrom('grants as held').where('held.kind', '=', 'role').where('held.name', '=', role).where(isHeldAt(at))

/** The condition of a grant that has not ended. */
const isHeldAt = (at: number) => sql<boolean>`("endsAt" IS NULL OR "endsAt" > ${at})`

type UserPage = { readonly after: string | undefined; readonly take: number | undefined }

/** The ids of the next users by name. */
function idsOfPage(db: Db, { after, take = usersPerPage }: UserPage) {
  const ids = db.selectFrom('users as one').select('one.id').orderBy('one.nameKey').limit(take)
  return after === undefined ? ids : ids.where('one.nameKey', '>', nameKey(after))
}

/** The ids of the next holders of a role by name. `few`: whether all of them fit on one page. */
function idsOfHolders(
  db: Db,
  page: UserPage,
  { role, at, few }: { readonly role: string; readonly at: number; readonly few: boolean },
) {
  const holders = holding(db, role, at).select('held.userId')
  const ids = idsOfPage(db, page)
  // Few are found by the index of roles. Of many, each page would sort all: reading the users in their order is less.
  return few
    ? ids.where('one.id', 'in', holders)
    : ids.where((eb) => eb.exists(holders.where(sql<boolean>`held."userId" = one."id"`)))
}

/** Replaces the digest secret beside a new password. Returns whether there was one, and is; undefined if neither. */
async function replaceDigest(tx: Db, id: string, digest: DigestSecret | undefined, at: number) {
  const before = await putSecret(tx, id, digest, at)
  return before || digest ? { before, after: digest !== undefined } : undefined
}

/** The texts of the audit about a new password. */
function passwordTexts(
  digest: { readonly before: boolean; readonly after: boolean } | undefined,
  mustChange?: boolean,
) {
  const after = { ...(digest && { digest: digest.after }), ...(mustChange ? { mustChange } : {}) }
  return {
    ...(digest && { before: JSON.stringify({ digest: digest.before }) }),
    ...(digest || mustChange ? { after: JSON.stringify(after) } : {}),
  }
}

/**
 * Steps from name to name by the index instead of reading all grants: one step per name, however many users hold it.
 * Names of permissions only are skipped.
 */
async function roleNames(db: Db, at: number): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    WITH RECURSIVE held("name", "step") AS (
      SELECT min("name"), 1 FROM "grants"
      UNION ALL
      SELECT (SELECT min(g."name") FROM "grants" g WHERE g."name" > held."name"), held."step" + 1
      FROM held WHERE held."name" IS NOT NULL AND held."step" < ${sql.lit(maxRoleNames)}
    )
    SELECT "name" FROM held
    WHERE EXISTS (SELECT 1 FROM "grants" g WHERE g."name" = held."name" AND g."kind" = 'role' AND ${isHeldAt(at)})`.execute(
    db,
  )
  return rows.map(({ name }) => name)
}

/** Adds a user under the locks of the names. Throws Fault Conflict when the name or e-mail address is taken. */
export async function addUser(
  tx: Db,
  { userName, email, displayName, passwordHash, mustChangePassword: mustChange, roles, permissions, digest }: UserToAdd,
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
    temporaryHash: mustChange ? passwordHash : undefined,
    disabled: false,
    createdAt: at,
    epoch: 0,
  }
  await later(tx, tx.insertInto('users').values(row))
  const keys = new Set(namesOf({ userName, email }).map(nameKey))
  await later(tx, tx.insertInto('names').values([...keys].map((key) => ({ key, userId: id }))))
  const by = { grantedAt: at, grantedBy: actor.who, reason: actor.reason }
  await insertGrants(tx, id, newGrants({ roles, permissions }, undefined, by))
  if (digest) await putSecret(tx, id, digest, at)
  const user = await userThere(tx, id, () => false)
  await note(tx, at, actor, {
    event: 'user.added',
    target: userName,
    after: grantsText(user, {
      warning: adminWarning(roles),
      digest: digest !== undefined,
      ...(mustChange ? { mustChange } : {}),
    }),
  })
  return user
}

const namesOf = ({ userName, email }: Pick<UserToAdd, 'userName' | 'email'>): readonly string[] =>
  email === undefined ? [userName] : [userName, email]

async function refuseTaken(tx: Db, userName: string, email: string | undefined): Promise<void> {
  const [name, address] = [nameKey(userName), email === undefined ? undefined : nameKey(email)]
  const keys = address === undefined ? [name] : [name, address]
  const rows = await tx.selectFrom('names').select('key').where('key', 'in', keys).execute()
  if (rows.some(({ key }) => key === name)) throw taken('The user name')
  if (rows.length > 0) throw taken('The e-mail address')
}

/**
 * Throws Fault Conflict for the last Admin, and for the only permanent one, for whom Admins for a time do not stand in.
 * `byEnd`: whether the user would get an end, instead of losing Admin.
 */
async function refuseLastAdmin(tx: Db, user: User, at: number, byEnd = false): Promise<void> {
  const own = user.disabled ? undefined : adminGrant(user.grants)
  if (!own || (await anyAdmin(tx, own.endsAt === undefined ? 'permanently' : at, user.id))) return
  if (!byEnd && !(await anyAdmin(tx, at, user.id))) {
    throw new Fault('Conflict', 'The last Admin cannot lose Admin', {
      hints: ['Assign Admin to another user first.'],
    })
  }
  throw new Fault('Conflict', `The only permanent Admin cannot ${byEnd ? 'get an end' : 'lose Admin'}`, {
    hints: ['Assign Admin to another user first, without an end.'],
  })
}
