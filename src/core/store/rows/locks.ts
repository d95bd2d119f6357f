import { admin } from '../grants.ts'
import type { StoreLink } from '../link.ts'
import { type Db, nameKey } from '../tables.ts'

/**
 * The locks of transactions that change users. Each holds what it changes, so that changes of different users never wait for
 * each other, on any node. A transaction that needs several takes them in the order of this file, and several of one kind
 * sorted, so that no two wait for each other.
 */

/** For a transaction that gives an identity of an OpenID provider to a user. */
export const lockIdentity = (link: StoreLink, tx: Db, issuer: string, subject: string): Promise<void> =>
  link.lock(tx, `identity ${JSON.stringify([issuer, subject])}`)

/** For every transaction that changes a user, or the grants of one. */
export async function lockUsers(link: StoreLink, tx: Db, ids: readonly string[]): Promise<void> {
  for (const id of ids.toSorted()) await link.lock(tx, `user ${id}`)
}

/** For a transaction that gives names to a user, so that another one gets them afterwards, or learns that they are taken. */
export async function lockNames(link: StoreLink, tx: Db, names: readonly string[]): Promise<void> {
  for (const key of [...new Set(names.map(nameKey))].toSorted()) await link.lock(tx, `name ${key}`)
}

/**
 * The one lock that all users have in common: for every transaction that gives Admin to a user, takes it away, or enables,
 * disables or removes a user, so that two Admins who remove each other run one after the other. Earlier versions take it for
 * every change of a user; its name therefore stays as it is.
 */
export const lockAdmins = (link: StoreLink, tx: Db): Promise<void> => link.lock(tx, 'users')

/** Whether a change of these roles needs the common lock. */
export const touchesAdmin = (...lists: readonly (readonly string[])[]): boolean =>
  lists.some((roles) => roles.includes(admin))
