import { Fault } from '../../errors.ts'
import type { Data, RefreshRow, Rotation, SessionRow } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { type Db, flag, present } from '../tables.ts'
import { note } from './audit.ts'
import { userById } from './user-rows.ts'

/**
 * Locks a family. Every transaction that extends or ends it takes this lock; otherwise a sign-out could miss the
 * successor that a refresh is just creating.
 */
export const lockFamily = (link: StoreLink, tx: Db, familyId: string): Promise<void> =>
  link.lock(tx, `family ${familyId}`)

/** Ends the sessions and tokens of a family or a user. Returns whether there were any. */
export async function endAll(tx: Db, of: 'familyId' | 'userId', id: string): Promise<boolean> {
  const ended = [
    await tx.deleteFrom('sessions').where(of, '=', id).executeTakeFirstOrThrow(),
    await tx.deleteFrom('accessTokens').where(of, '=', id).executeTakeFirstOrThrow(),
    await tx.deleteFrom('refreshTokens').where(of, '=', id).executeTakeFirstOrThrow(),
  ]
  return ended.some(({ numDeletedRows }) => numDeletedRows > 0n)
}

/** The name of a family's user. Undefined when nothing of the family is left. */
export async function ownerOf(tx: Db, familyId: string): Promise<string | undefined> {
  for (const table of ['sessions', 'refreshTokens', 'accessTokens'] as const) {
    const rows = await tx
      .selectFrom('users')
      .select('userName')
      .where('id', 'in', tx.selectFrom(table).select('userId').where('familyId', '=', familyId))
      .limit(1)
      .execute()
    if (rows[0]) return rows[0].userName
  }
  return undefined
}

export function sessionsOver(link: StoreLink, now: () => number): Data['sessions'] {
  return {
    begin: ({ session, access, refresh, endsSession }, actor) =>
      link.write(async (tx) => {
        const user = await userById(tx, session.userId)
        // The user was removed, disabled or given another password meanwhile.
        if (!user || user.disabled || user.epoch !== session.epoch) throw new Fault('Unauthorized')
        if (endsSession !== undefined) await endPresented(tx, endsSession)
        await tx
          .insertInto('sessions')
          .values({ ...session, permanent: flag(session.permanent) })
          .execute()
        await tx.insertInto('accessTokens').values(access).execute()
        await tx.insertInto('refreshTokens').values(refreshValues(refresh)).execute()
        await note(tx, now(), actor, { event: 'signin.ok', target: user.userName })
      }),
    find: (hash) =>
      link.read(async (db) => {
        const [row] = await db.selectFrom('sessions').selectAll().where('hash', '=', hash).execute()
        return row && ({ ...row, permanent: row.permanent !== 0 } satisfies SessionRow)
      }),
    touch: (hash, at) =>
      link.write(async (tx) => {
        const later = tx.updateTable('sessions').set({ lastUsedAt: at }).where('hash', '=', hash)
        await later.where('lastUsedAt', '<', at).execute()
      }),
    endFamily: (familyId, actor) =>
      link.write(async (tx) => {
        await lockFamily(link, tx, familyId)
        const target = await ownerOf(tx, familyId)
        if (await endAll(tx, 'familyId', familyId)) await note(tx, now(), actor, { event: 'signout', target })
      }),
  }

  async function endPresented(tx: Db, hash: string): Promise<void> {
    const [row] = await tx.selectFrom('sessions').select('familyId').where('hash', '=', hash).execute()
    if (!row) return
    await lockFamily(link, tx, row.familyId)
    await endAll(tx, 'familyId', row.familyId)
  }
}

export const refreshValues = ({ permanent, usedAt, sealedSuccessor, ...row }: RefreshRow) => ({
  ...row,
  permanent: flag(permanent),
  usedAt: usedAt ?? null,
  sealedSuccessor: sealedSuccessor ?? null,
})

/**
 * Milliseconds. A caller that presents a token again within this time has missed the successor, and gets it again (T4).
 */
export const repeatMs = 10_000

export function tokensOver(link: StoreLink, now: () => number): Data['tokens'] {
  return {
    access: (hash) =>
      link.read(async (db) => (await db.selectFrom('accessTokens').selectAll().where('hash', '=', hash).execute())[0]),
    refresh: (hash) => link.read((db) => refreshRow(db, hash)),
    renew: (refreshHash, access, at) =>
      link.write(async (tx) => {
        await lockFamily(link, tx, access.familyId)
        const fixed = tx.updateTable('refreshTokens').set({ lastUsedAt: at }).where('hash', '=', refreshHash)
        const { numUpdatedRows } = await fixed
          .where('familyId', '=', access.familyId)
          .where('kind', '=', 'fixed')
          .executeTakeFirstOrThrow()
        // The user has signed out meanwhile.
        if (numUpdatedRows === 0n) throw new Fault('Unauthorized')
        await tx.insertInto('accessTokens').values(access).execute()
      }),
    rotate: (presentedHash, { access, refresh, sealed }, at, actor) =>
      link.write(async (tx): Promise<Rotation> => {
        await lockFamily(link, tx, refresh.familyId)
        const row = await refreshRow(tx, presentedHash)
        if (row?.kind !== 'rotating' || row.familyId !== refresh.familyId) return { outcome: 'gone' }
        if (row.usedAt === undefined) {
          const presented = tx.updateTable('refreshTokens').where('hash', '=', presentedHash)
          await presented.set({ usedAt: at, sealedSuccessor: sealed }).execute()
          await eraseSealed(tx, at, row.familyId)
          await tx.insertInto('accessTokens').values(access).execute()
          await tx.insertInto('refreshTokens').values(refreshValues(refresh)).execute()
          return { outcome: 'rotated' }
        }
        if (row.sealedSuccessor !== undefined && at - row.usedAt <= repeatMs) {
          return { outcome: 'repeated', sealedSuccessor: row.sealedSuccessor }
        }
        const target = await ownerOf(tx, row.familyId)
        await endAll(tx, 'familyId', row.familyId)
        await note(tx, now(), actor, { event: 'refresh.reused', target })
        return { outcome: 'reused' }
      }),
  }
}

/** Erases sealed pairs that can no longer be requested. */
export async function eraseSealed(tx: Db, at: number, familyId?: string): Promise<void> {
  const old = tx
    .updateTable('refreshTokens')
    .set({ sealedSuccessor: null })
    .where('sealedSuccessor', 'is not', null)
    .where('usedAt', '<', at - repeatMs)
  await (familyId === undefined ? old : old.where('familyId', '=', familyId)).execute()
}

async function refreshRow(db: Db, hash: string): Promise<RefreshRow | undefined> {
  const [row] = await db.selectFrom('refreshTokens').selectAll().where('hash', '=', hash).execute()
  if (!row) return undefined
  const { permanent, usedAt, sealedSuccessor, ...rest } = row
  return {
    ...rest,
    permanent: permanent !== 0,
    usedAt: present(usedAt),
    sealedSuccessor: present(sealedSuccessor),
  }
}
