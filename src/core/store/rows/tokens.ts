import { Fault } from '../../errors.ts'
import type { Data, RefreshRow, Rotation } from '../data.ts'
import type { Link } from '../link.ts'
import { type Db, present } from '../tables.ts'
import { note } from './audit.ts'
import { endAll, lockFamily, ownerOf } from './families.ts'
import { refreshValues } from './sessions.ts'

/** T4, milliseconds: who presents a token again within this has not got its successor, and gets it now. */
export const repeatMs = 10_000

export function tokensOver(link: Link, now: () => number): Data['tokens'] {
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
        // Signed out meanwhile.
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

/** Sealed pairs lie there for no longer than they can be asked for. */
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
