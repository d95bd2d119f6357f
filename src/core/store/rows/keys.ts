import { randomUUID } from 'node:crypto'
import { type Selectable, sql } from 'kysely'
import { Fault, invalidField } from '../../base/errors.ts'
import { presentPermission } from '../../protocol/index.ts'
import type { Data, KeyRow, User } from '../data.ts'
import { compiledOnce } from '../dialect.ts'
import { adminGrant, keyEnd } from '../grants.ts'
import { type StoreLink, taken } from '../link.ts'
import type { Tables } from '../tables.ts'
import { note } from './audit.ts'
import type { GrantKeeper } from './grants.ts'
import { namesNear } from './near.ts'

/** A lock for every transaction that adds or revokes a key. */
const keysLock = 'keys'

const keyRow = compiledOnce((db, hash: string) => db.selectFrom('apiKeys').selectAll().where('hash', '=', hash))

export function keysOver(link: StoreLink, now: () => number, ends: GrantKeeper): Data['keys'] {
  return {
    add: ({ name, hash, userId, roles, permissions, expiresAt: limit }, actor) =>
      link.write(async (tx) => {
        await link.lock(tx, keysLock)
        const { user } = await ends.inTransaction(tx, userId)
        const expiresAt = keyEnd(user.grants, roles, limit)
        if (expiresAt === 'too late') throw outlivesAdmin(user)
        const same = tx.selectFrom('apiKeys').select('id').where('name', '=', name).where('revokedAt', 'is', null)
        if ((await same.execute()).length > 0) throw taken('The name of the key')
        const key = { id: randomUUID(), name, hash, userId, createdAt: now() }
        const lists = { roles: roles && JSON.stringify(roles), permissions: permissions && JSON.stringify(permissions) }
        const row = { ...key, ...lists, expiresAt }
        await tx.insertInto('apiKeys').values(row).execute()
        const after = JSON.stringify({ user: user.userName, roles: roles ?? null, permissions })
        await note(tx, key.createdAt, actor, { event: 'key.added', target: name, after })
        return { ...key, roles, permissions, expiresAt, revokedAt: undefined }
      }),
    find: (hash) =>
      link.read(async (db) => {
        const [row] = await keyRow(db, hash).execute()
        return row && keyOf(row)
      }),
    count: () =>
      link.read(async (db) => {
        const { n } = await db
          .selectFrom('apiKeys')
          .select((eb) => eb.fn.countAll<number>().as('n'))
          .executeTakeFirstOrThrow()
        return Number(n)
      }),
    list: (after, take) =>
      link.read(async (db) => {
        let names = db.selectFrom('apiKeys as one').select('one.name').distinct().orderBy('one.name')
        if (after !== undefined) names = names.where('one.name', '>', after)
        if (take !== undefined) names = names.limit(take)
        const rows = await db
          .selectFrom('apiKeys')
          .where('apiKeys.name', 'in', names)
          .innerJoin('users', 'users.id', 'apiKeys.userId')
          .selectAll('apiKeys')
          .select('users.userName')
          .orderBy('apiKeys.name')
          .orderBy('apiKeys.createdAt')
          .execute()
        return rows.map(({ userName, ...row }) => ({ ...keyOf(row), userName }))
      }),
    near: (typed) =>
      link.read((db) =>
        namesNear(db, typed, { table: 'apiKeys', key: 'name', name: 'name', only: sql`"revokedAt" IS NULL` }),
      ),
    revoke: (name, actor) =>
      link.write(async (tx) => {
        await link.lock(tx, keysLock)
        const existing = tx.selectFrom('apiKeys').select('id').where('name', '=', name).limit(1)
        const [live] = await existing.where('revokedAt', 'is', null).execute()
        if (!live) {
          // Already revoked: nothing changes.
          if ((await existing.execute()).length > 0) return
          throw new Fault('NotFound', 'No key has that name')
        }
        await tx.updateTable('apiKeys').set({ revokedAt: now() }).where('id', '=', live.id).execute()
        await note(tx, now(), actor, { event: 'key.revoked', target: name })
      }),
  }
}

function outlivesAdmin({ userName, grants }: User): Fault {
  const end = new Date(adminGrant(grants)?.endsAt ?? 0).toISOString()
  const field = invalidField('ExpiresInMs', `must not be later than ${end}, when ${userName} ceases to be Admin`)
  return new Fault('BadRequest', field.Message, { errorCode: 'ValidationException', fields: [field] })
}

const keyOf = ({ roles, permissions, ...row }: Selectable<Tables['apiKeys']>): KeyRow => ({
  ...row,
  roles: names(roles),
  permissions: names(permissions)?.map(presentPermission),
})

const names = (json: string | undefined): readonly string[] | undefined =>
  json === undefined ? undefined : (JSON.parse(json) as string[])
