import type { Data } from '../data.ts'
import type { StoreLink } from '../link.ts'
import { ownKey, storedKey } from './capacity.ts'

const name = 'store'

/** Reads first, so that a store that is full or cannot be written still tells which one it is. */
export const identityOver = (link: StoreLink): Data['identity'] => ({
  id: async () => (await link.read((db) => storedKey(db, name))) ?? (await link.write((tx) => ownKey(tx, name))),
})
