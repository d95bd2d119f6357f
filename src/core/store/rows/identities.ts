import { Fault } from '../../errors.ts'
import { namesItLooksLike } from '../../names.ts'
import type { Actor, Data, IdentityRow, User } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { type Db, nameKey } from '../tables.ts'
import { note } from './audit.ts'
import { ownKey, storedKey } from './capacity.ts'
import { endAll } from './sessions.ts'
import { setUser, userById, userThere } from './user-rows.ts'
import { addUser, changingUsers } from './users.ts'

/** The key that seals browser sign-ins, once it has been read. */
export type SealingKey = { hex: string | undefined }
const sealingKeyName = 'browser sign-ins'

type Identity = Omit<IdentityRow, 'createdAt'>

/** More subjects of one user are a mistake. */
const maxListed = 100

export function identitiesOver(link: StoreLink, own: SealingKey, now: () => number): Data['identities'] {
  const change = changingUsers(link)
  const linked = async (tx: Db, { id: userId, userName }: User, identity: Identity, actor: Actor): Promise<void> => {
    const at = now()
    await tx
      .insertInto('identities')
      .values({ ...identity, userId, createdAt: at })
      .execute()
    await note(tx, at, actor, { event: 'user.linked', target: userName, after: JSON.stringify(identity) })
  }
  return {
    find: (issuer, subject) => link.read((db) => userOf(db, issuer, subject)),
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
      change(async (tx) => {
        const existing = await userOf(tx, issuer, subject)
        if (existing) return existing
        const userName = await firstFree(tx, names)
        const added = { userName, displayName, email: undefined, passwordHash: undefined, roles: [], permissions: [] }
        const user = await addUser(tx, added, now(), actor)
        await linked(tx, user, { issuer, subject }, actor)
        return user
      }),
    link: (userId, { issuer, subject }, actor) =>
      change(async (tx) => {
        const user = await userThere(tx, userId)
        const owner = await userOf(tx, issuer, subject)
        if (owner?.id === userId) return false
        if (owner) throw new Fault('Conflict', `This identity belongs to the user ${owner.userName}`)
        await linked(tx, user, { issuer, subject }, actor)
        return true
      }),
    unlink: (userId, issuer, subject, actor) =>
      change(async (tx) => {
        const user = await userThere(tx, userId)
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
        const table = kind === 'session' ? 'sessions' : 'accessTokens'
        const family = db.selectFrom(table).select(`${table}.familyId`).where(`${table}.hash`, '=', hash)
        const rows = db.selectFrom('claimedRoles').select('roles').where('claimedRoles.familyId', '=', family)
        const [row] = await rows.where('claimedRoles.endsAt', '>', at).execute()
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

async function userOf(db: Db, issuer: string, subject: string): Promise<User | undefined> {
  const identity = db.selectFrom('identities').select('userId').where('issuer', '=', issuer)
  const [row] = await identity.where('subject', '=', subject).execute()
  return row && (await userById(db, row.userId))
}

async function firstFree(tx: Db, names: readonly string[]): Promise<string> {
  for (const name of names) {
    // A name that could be taken for that of another user is not free either.
    const keys = [...new Set([name, ...namesItLooksLike(name)].map(nameKey))]
    const rows = await tx.selectFrom('names').select('userId').where('key', 'in', keys).limit(1).execute()
    if (rows.length === 0) return name
  }
  throw new Fault('Conflict', 'No name is free for this user')
}
