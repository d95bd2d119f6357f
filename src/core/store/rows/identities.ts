import { Fault } from '../../base/errors.ts'
import { namesItLooksLike } from '../../base/names.ts'
import type { Actor, Data, IdentityRow, User } from '../data.ts'
import { compiledOnce } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import { type Db, nameKey } from '../tables.ts'
import { note } from './audit.ts'
import { ownKey, storedKey } from './capacity.ts'
import type { GrantKeeper } from './grants.ts'
import { lockIdentity, lockNames, lockUsers } from './locks.ts'
import { endAll } from './sessions.ts'
import { readRows, setUser, userRows, usersOf } from './user-rows.ts'
import { addUser, changingUser } from './users.ts'

/** The key that seals browser sign-ins, once it has been read. */
export type SealingKey = { hex: string | undefined }
const sealingKeyName = 'browser sign-ins'

type Identity = Omit<IdentityRow, 'createdAt'>

/** More subjects of one user are a mistake. */
const maxListed = 100

export function identitiesOver(
  link: StoreLink,
  own: SealingKey,
  now: () => number,
  ends: GrantKeeper,
): Data['identities'] {
  const change = changingUser(link)
  const linked = async (tx: Db, { id: userId, userName }: User, identity: Identity, actor: Actor): Promise<void> => {
    const at = now()
    await tx
      .insertInto('identities')
      .values({ ...identity, userId, createdAt: at })
      .execute()
    await note(tx, at, actor, { event: 'user.linked', target: userName, after: JSON.stringify(identity) })
  }
  const owner = async (tx: Db, issuer: string, subject: string): Promise<User | undefined> =>
    usersOf(await readRows(usersBehind(tx, issuer, subject)), ends.isOver())[0]
  return {
    find: async (issuer, subject) => (await ends.users((db) => usersBehind(db, issuer, subject)))[0],
    list: (userId) =>
      link.read((db) =>
        db
          .selectFrom('identities')
          .select(['issuer', 'subject', 'createdAt'])
          .where('userId', '=', userId)
          .orderBy('issuer')
          .orderBy('subject')
          .limit(maxListed)
          .execute(),
      ),
    addUser: ({ issuer, subject }, { names, displayName }, actor) =>
      link.write(async (tx) => {
        await lockIdentity(link, tx, issuer, subject)
        await lockNames(link, tx, names.flatMap(alike))
        const existing = await owner(tx, issuer, subject)
        if (existing) return existing
        const userName = await firstFree(tx, names)
        const added = { userName, displayName, email: undefined, passwordHash: undefined, roles: [], permissions: [] }
        const user = await addUser(tx, added, now(), actor)
        await linked(tx, user, { issuer, subject }, actor)
        return user
      }),
    link: (userId, { issuer, subject }, actor) =>
      link.write(async (tx) => {
        await lockIdentity(link, tx, issuer, subject)
        await lockUsers(link, tx, [userId])
        const { user } = await ends.inTransaction(tx, userId)
        const present = await owner(tx, issuer, subject)
        if (present?.id === userId) return false
        if (present) throw new Fault('Conflict', `This identity belongs to the user ${present.userName}`)
        await linked(tx, user, { issuer, subject }, actor)
        return true
      }),
    unlink: (userId, issuer, subject, actor) =>
      change({ id: userId }, async (tx) => {
        const { user } = await ends.inTransaction(tx, userId)
        const ofIssuer = tx.deleteFrom('identities').where('userId', '=', userId).where('issuer', '=', issuer)
        const rows = subject === undefined ? ofIssuer : ofIssuer.where('subject', '=', subject)
        const removed = await rows.returning(['issuer', 'subject']).execute()
        if (removed.length === 0) return 0
        await setUser(tx, userId, { epoch: user.epoch + 1 })
        await endAll(tx, 'userId', userId)
        for (const identity of removed) {
          const before = JSON.stringify(identity)
          await note(tx, now(), actor, { event: 'user.unlinked', target: user.userName, before })
        }
        return removed.length
      }),
    claimedRoles: (kind, hash, at) =>
      link.read(async (db) => {
        const [row] = await rolesBehind[kind](db, hash, at).execute()
        return row ? (JSON.parse(row.roles) as readonly string[]) : []
      }),
    async sealingKey() {
      own.hex ??=
        (await link.read((db) => storedKey(db, sealingKeyName))) ??
        (await link.write((tx) => ownKey(tx, sealingKeyName)))
      return own.hex
    },
    use: (state, endsAt) =>
      link.write(async (tx) => {
        const row = tx.insertInto('usedStates').values({ state, endsAt })
        const added = await row
          .onConflict((conflict) => conflict.column('state').doNothing())
          .returning('state')
          .execute()
        return added.length > 0
      }),
  }
}

const claimedBehind = (table: 'sessions' | 'accessTokens') =>
  compiledOnce((db, hash: string, at: number) => {
    const family = db.selectFrom(table).select(`${table}.familyId`).where(`${table}.hash`, '=', hash)
    const rows = db.selectFrom('claimedRoles').select('roles').where('claimedRoles.familyId', '=', family)
    return rows.where('claimedRoles.endsAt', '>', at)
  })
/** The roles from claims that a session or a token has. */
const rolesBehind = { session: claimedBehind('sessions'), access: claimedBehind('accessTokens') }

const usersBehind = (db: Db, issuer: string, subject: string) =>
  userRows(db).where(
    'users.id',
    'in',
    db
      .selectFrom('identities')
      .select('identities.userId')
      .where('identities.issuer', '=', issuer)
      .where('identities.subject', '=', subject),
  )

/** A name, and those that could be taken for it. */
const alike = (name: string): readonly string[] => [name, ...namesItLooksLike(name)]

async function firstFree(tx: Db, names: readonly string[]): Promise<string> {
  for (const name of names) {
    // A name that could be taken for that of another user is not free either.
    const keys = [...new Set(alike(name).map(nameKey))]
    const rows = await tx.selectFrom('names').select('userId').where('key', 'in', keys).limit(1).execute()
    if (rows.length === 0) return name
  }
  throw new Fault('Conflict', 'No name is free for this user')
}
