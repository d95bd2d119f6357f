import type { Link } from '../link.ts'
import type { Db } from '../tables.ts'

/**
 * Held by every transaction that adds to a family or ends it: else a sign-out could overlook the
 * successor that a refresh is making at that moment.
 */
export const lockFamily = (link: Link, tx: Db, familyId: string): Promise<void> => link.lock(tx, `family ${familyId}`)

/** Ends the sessions and tokens of a family or a user. Gives whether there were any. */
export async function endAll(tx: Db, of: 'familyId' | 'userId', id: string): Promise<boolean> {
  const ended = [
    await tx.deleteFrom('sessions').where(of, '=', id).executeTakeFirstOrThrow(),
    await tx.deleteFrom('accessTokens').where(of, '=', id).executeTakeFirstOrThrow(),
    await tx.deleteFrom('refreshTokens').where(of, '=', id).executeTakeFirstOrThrow(),
  ]
  return ended.some(({ numDeletedRows }) => numDeletedRows > 0n)
}

/** Whose a family is, by name; undefined when nothing of it is left. */
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
