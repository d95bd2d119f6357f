import { randomBytes } from 'node:crypto'
import type { StoreLink } from '../link.ts'

/**
 * Bytes. A sign-in changes pages of a session, two tokens, an audit entry and their indexes, and adds 78 to 103 KB to the
 * log of SQLite. A small row proves nothing, because the log of a full disk still has room for it.
 */
const size = 96 * 1024

/** The row is replaced by each proof, and removed with old readings. */
const series = 'proof that the store can be written'

/** Commits as much as a sign-in writes. The content is random, because a database compresses. */
export async function proveWrites(link: StoreLink, at: number): Promise<void> {
  const points = JSON.stringify(randomBytes(size / 2).toString('hex'))
  await link.write(async (tx) => {
    const row = tx.insertInto('readings').values({ series, at, points })
    await row.onConflict((conflict) => conflict.column('series').doUpdateSet({ at, points })).execute()
  })
}
