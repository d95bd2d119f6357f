import { type Data, type DigestSecret, type NonceUse, nonceLivesMs } from '../data.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { note } from './audit.ts'
import { ownKey } from './capacity.ts'
import { userThere } from './user-rows.ts'

/** Rows of nonces stay longer, because the clocks of two nodes may differ. */
export const noncesKeptMs = 2 * nonceLivesMs
/** Maximum rows for each user. Beyond it, the older half is forgotten and refused. */
const mostOfUser = 1_000

const keyName = 'digest nonces'

/** The key that seals nonces, once it has been read. */
export type NonceKey = { hex: string | undefined }

export function digestOver(link: StoreLink, now: () => number, own: NonceKey): Data['digest'] {
  return {
    nonceKey: async () => {
      own.hex ??= await link.write((tx) => ownKey(tx, keyName))
      return own.hex
    },
    secret: (userId) =>
      link.read(async (db) => {
        const columns = ['realm', 'sha256', 'md5', 'forAdmin'] as const
        return await db.selectFrom('digestSecrets').select(columns).where('userId', '=', userId).executeTakeFirst()
      }),
    use: (used) => link.write((tx) => use(tx, used)),
    remove: (userId, actor) =>
      link.write(async (tx) => {
        const { userName } = await userThere(tx, userId, () => false)
        if (!(await removeSecret(tx, userId))) return false
        await note(tx, now(), actor, { event: 'digest.removed', target: userName })
        return true
      }),
  }
}

/**
 * Counts one use of a nonce. False when this nc, or a higher one, has been used with the nonce. The first statement locks
 * the secret, so that the uses of one user run one after the other on all nodes.
 */
async function use(tx: Db, { userId, sha256, nonce, nc, madeAt }: NonceUse): Promise<boolean> {
  const own = tx.updateTable('digestSecrets').where('userId', '=', userId)
  const secret = await own
    .set((eb) => ({ usedUntil: eb.ref('usedUntil') }))
    .where('sha256', '=', sha256)
    .returning('usedUntil')
    .executeTakeFirst()
  if (!secret || madeAt <= secret.usedUntil) return false
  const counted = await tx
    .insertInto('digestNonces')
    .values({ nonce, userId, nc, madeAt })
    .onConflict((conflict) =>
      conflict
        .column('nonce')
        .doUpdateSet({ nc })
        .where('digestNonces.nc', '<', nc)
        .where('digestNonces.userId', '=', userId),
    )
    .returning('nc')
    .executeTakeFirst()
  if (!counted) return false
  const rows = tx.selectFrom('digestNonces').where('userId', '=', userId)
  const { n } = await rows.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirstOrThrow()
  if (n <= mostOfUser) return true
  const middle = rows
    .select('madeAt')
    .orderBy('madeAt', 'desc')
    .offset(mostOfUser / 2)
  const { madeAt: until } = await middle.limit(1).executeTakeFirstOrThrow()
  await tx.deleteFrom('digestNonces').where('userId', '=', userId).where('madeAt', '<=', until).execute()
  await own.set({ usedUntil: until }).execute()
  return true
}

/**
 * Replaces the secret of a user, or removes it when there is none. Returns whether there was one. The nonces that the
 * user has used stay used: the new secret may be the same.
 */
export async function putSecret(
  tx: Db,
  userId: string,
  secret: DigestSecret | undefined,
  at: number,
): Promise<boolean> {
  const before = await removeSecret(tx, userId)
  if (!secret) return before
  const row = { ...secret, userId, usedUntil: at }
  await tx.insertInto('digestSecrets').values(row).execute()
  return before
}

async function removeSecret(tx: Db, userId: string): Promise<boolean> {
  const removed = await tx.deleteFrom('digestSecrets').where('userId', '=', userId).executeTakeFirstOrThrow()
  return removed.numDeletedRows > 0n
}
