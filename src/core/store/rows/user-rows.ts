import type { Updateable } from 'kysely'
import { presentPermission } from '../../protocol/index.ts'
import type { Grant, Holdings, User } from '../data.ts'
import { compiledOnce, type Rows } from '../dialect.ts'
import { admin, holdingsOf } from '../grants.ts'
import { gone } from '../link.ts'
import type { Db, Tables } from '../tables.ts'

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
      'users.temporaryHash',
      'users.disabled',
      'users.createdAt',
      'users.epoch',
      'grants.seq as grantSeq',
      'grants.kind as grantKind',
      'grants.name as grantName',
      'grants.endsAt as grantEndsAt',
      'grants.grantedAt as grantedAt',
      'grants.grantedBy as grantedBy',
      'grants.reason as grantReason',
    ])
    .orderBy('users.nameKey')
    .orderBy('grants.seq')

type Row = Awaited<ReturnType<ReturnType<typeof userRows>['execute']>>[number]
/** With undefined for null, as dialect.ts reads it. */
export type UserRowWithGrant = {
  readonly [Name in keyof Row]: Row[Name] extends NonNullable<Row[Name]>
    ? Row[Name]
    : Exclude<Row[Name], null> | undefined
}

/** A query that `userRows` began. */
export type UserQuery = Rows<Row>

export const readRows = (query: UserQuery): Promise<readonly UserRowWithGrant[]> =>
  query.execute() as Promise<readonly UserRowWithGrant[]>

/** The user with an id. */
export const userRowsOf = compiledOnce((db, id: string) => userRows(db).where('users.id', '=', id))

/** Tells whether the grant of a row has ended. */
export type IsOver = (row: UserRowWithGrant) => boolean

/** The rows of `userRows` as users, sorted by name, without the grants that have ended. */
export const usersOf = (rows: readonly UserRowWithGrant[], isOver: IsOver): readonly User[] =>
  [...Map.groupBy(rows, ({ id }) => id).values()].flatMap((own) => userOf(own, isOver))

function userOf(rows: readonly UserRowWithGrant[], isOver: IsOver): readonly User[] {
  const [first] = rows
  if (!first) return []
  const { id, userName, email, displayName, passwordHash, temporaryHash, disabled, createdAt, epoch } = first
  const mustChangePassword = passwordHash !== undefined && temporaryHash === passwordHash
  const user = { id, userName, email, displayName, passwordHash, mustChangePassword, disabled, createdAt, epoch }
  return [{ ...user, ...holdingsOf(rows.flatMap((row) => (isOver(row) ? [] : (grantOf(row) ?? [])))) }]
}

/** The grant of a row, if it has one. */
export const grantOf = ({ grantKind, grantName, ...row }: UserRowWithGrant): Grant | undefined =>
  grantKind && grantName
    ? {
        kind: grantKind,
        name: grantKind === 'permission' ? presentPermission(grantName) : grantName,
        endsAt: row.grantEndsAt,
        grantedAt: row.grantedAt,
        grantedBy: row.grantedBy,
        reason: row.grantReason,
      }
    : undefined

export const userById = async (db: Db, id: string, isOver: IsOver): Promise<User | undefined> =>
  usersOf(await readRows(userRowsOf(db, id)), isOver)[0]

/** Throws Fault NotFound. */
export async function userThere(db: Db, id: string, isOver: IsOver): Promise<User> {
  const user = await userById(db, id, isOver)
  if (!user) throw gone()
  return user
}

/** Changes columns of a user. */
export async function setUser(tx: Db, id: string, values: Updateable<Tables['users']>): Promise<void> {
  await tx.updateTable('users').set(values).where('id', '=', id).execute()
}

/** A grant that ends, as the audit has it: `endsAt` in ISO 8601. */
export const endText = ({ kind, name, endsAt }: Grant) => ({
  kind,
  name,
  endsAt: endsAt === undefined ? undefined : new Date(endsAt).toISOString(),
})

/**
 * The roles and permissions of a user, in the form stored in the audit: all of them, and in `ends` those that end by
 * themselves, so that the entries alone tell who held what at any time (O9). `more`: other members.
 */
export const grantsText = (
  { roles, permissions, grants }: Holdings,
  {
    digest,
    ...more
  }: {
    readonly warning?: string | undefined
    readonly digest?: boolean
    readonly mustChange?: boolean
    readonly ended?: object
  } = {},
): string => {
  const ends = grants.filter(({ endsAt }) => endsAt !== undefined).map(endText)
  return JSON.stringify({
    roles,
    permissions,
    ...(ends.length > 0 ? { ends } : {}),
    ...more,
    ...(digest ? { digest } : {}),
  })
}

/** Whether an enabled user other than `except` holds Admin at this time, or permanently. */
export const anyAdmin = async (db: Db, until: number | 'permanently', except?: string): Promise<boolean> => {
  const rows = db
    .selectFrom('grants')
    .innerJoin('users', 'users.id', 'grants.userId')
    .select('users.id')
    .where('grants.kind', '=', 'role')
    .where('grants.name', '=', admin)
    .where('users.disabled', '=', false)
    .where((eb) =>
      until === 'permanently'
        ? eb('grants.endsAt', 'is', null)
        : eb.or([eb('grants.endsAt', 'is', null), eb('grants.endsAt', '>', until)]),
    )
    .limit(1)
  const first = await (except === undefined ? rows : rows.where('users.id', '<>', except)).execute()
  return first.length > 0
}
