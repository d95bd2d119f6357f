import type { Updateable } from 'kysely'
import type { Grants, User } from '../data.ts'
import { gone } from '../link.ts'
import type { Db, GrantKind, Tables } from '../tables.ts'

/** The role of administrators, which at least one user must have (O6). */
export const admin = 'Admin'

/** One statement, so that user and grants come from the same snapshot: a row for each grant, or one without. */
export const userRows = (db: Db) =>
  db
    .selectFrom('users')
    .leftJoin('grants', 'grants.userId', 'users.id')
    .select([
      'users.id',
      'users.userName',
      'users.email',
      'users.displayName',
      'users.passwordHash',
      'users.disabled',
      'users.createdAt',
      'users.epoch',
      'grants.kind as grantKind',
      'grants.name as grantName',
    ])
    .orderBy('users.nameKey')
    .orderBy('grants.seq')

type Row = Awaited<ReturnType<ReturnType<typeof userRows>['execute']>>[number]

/** The rows of `userRows` as users, sorted by name. */
export const usersOf = (rows: readonly Row[]): readonly User[] =>
  [...Map.groupBy(rows, ({ id }) => id).values()].flatMap(userOf)

function userOf(rows: readonly Row[]): readonly User[] {
  const [first] = rows
  if (!first) return []
  const { grantKind: _, grantName: __, ...user } = first
  const names = (kind: GrantKind): readonly string[] =>
    rows.flatMap(({ grantKind, grantName }) => (grantKind === kind && grantName ? [grantName] : []))
  return [{ ...user, roles: names('role'), permissions: names('permission') }]
}

export const userById = async (db: Db, id: string): Promise<User | undefined> =>
  usersOf(await userRows(db).where('users.id', '=', id).execute())[0]

/** Throws Fault NotFound. */
export async function userThere(db: Db, id: string): Promise<User> {
  const user = await userById(db, id)
  if (!user) throw gone()
  return user
}

/** Changes columns of a user. */
export async function setUser(tx: Db, id: string, values: Updateable<Tables['users']>): Promise<void> {
  await tx.updateTable('users').set(values).where('id', '=', id).execute()
}

/** The form stored in the audit: two lists in JSON. */
export const grantsText = ({ roles, permissions }: Grants, warning?: string, digest = false): string =>
  JSON.stringify({ roles, permissions, warning, ...(digest ? { digest } : {}) })

/** Whether an enabled user other than `except` holds Admin. */
export const anyAdmin = async (db: Db, except?: string): Promise<boolean> =>
  (await admins(db, except).execute()).length > 0

/** One of them, if there is any. */
export function admins(db: Db, except?: string) {
  const rows = db
    .selectFrom('grants')
    .innerJoin('users', 'users.id', 'grants.userId')
    .select('users.id')
    .where('grants.kind', '=', 'role')
    .where('grants.name', '=', admin)
    .where('users.disabled', '=', false)
    .limit(1)
  return except === undefined ? rows : rows.where('users.id', '<>', except)
}
