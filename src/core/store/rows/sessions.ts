import { Fault } from '../../errors.ts'
import type { Data, RefreshRow, SessionRow } from '../data.ts'
import type { Link } from '../link.ts'
import { type Db, flag } from '../tables.ts'
import { note } from './audit.ts'
import { endAll, lockFamily, ownerOf } from './families.ts'
import { userById } from './user-rows.ts'

export function sessionsOver(link: Link, now: () => number): Data['sessions'] {
  return {
    begin: ({ session, access, refresh, endsSession }, actor) =>
      link.write(async (tx) => {
        const user = await userById(tx, session.userId)
        // Removed, disabled or given another password while it was being checked.
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
