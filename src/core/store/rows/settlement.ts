import type { Data, Settlement, User } from '../data.ts'
import type { StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { cleared } from './failures.ts'
import { givenBack } from './guesses.ts'
import { type PrefixMemory, recordPrefix, rememberMacs } from './known-prefixes.ts'

/**
 * Stores what a right secret changes, without waiting for its answers. Returns what this process remembers of it once the
 * transaction has ended.
 */
export async function settle(
  tx: Db,
  own: PrefixMemory,
  user: Pick<User, 'id' | 'userName' | 'email'>,
  { clears, givesBack, remembers }: Settlement,
): Promise<() => void> {
  if (clears !== undefined) await cleared(tx, clears)
  if (givesBack) await givenBack(tx, givesBack.name, givesBack.bucket)
  if (!remembers) return () => {}
  const key = await recordPrefix(tx, own, user, remembers)
  return () => rememberMacs(own, user, remembers, key)
}

export const settlementsOver = (link: StoreLink, own: PrefixMemory): Data['settle'] =>
  async function settleAlone(user, settlement) {
    const { clears, givesBack, remembers } = settlement
    if (clears === undefined && !givesBack && !remembers) return
    const remember = await link.write((tx) => settle(tx, own, user, settlement))
    remember()
  }
