import { type RawBuilder, sql } from 'kysely'
import { Fault } from '../../base/errors.ts'
import { passInserted, returned } from '../audit-gate.ts'
import type { Actor, Data, RefreshRow, Rotation, Settlement, SignedInSession, SignInRecord, User } from '../data.ts'
import { compiledOnce, type Later, later, laterSql } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import type { Db, Tables } from '../tables.ts'
import { auditValues, note, providerText } from './audit.ts'
import { cleared } from './failures.ts'
import { givenBack } from './guesses.ts'
import { type PrefixMemory, recordPrefix, rememberMacs } from './known-prefixes.ts'

/**
 * Locks a family. Every transaction that extends or ends it takes this lock; otherwise a sign-out could miss the
 * successor that a refresh is just creating.
 */
export const lockFamily = (link: StoreLink, tx: Db, familyId: string): Promise<void> =>
  link.lock(tx, `family ${familyId}`)

/** Ends the sessions and tokens of a family or a user. Returns whether there were any. */
export async function endAll(tx: Db, of: 'familyId' | 'userId', id: string): Promise<boolean> {
  const ended = [
    await tx.deleteFrom('sessions').where(of, '=', id).executeTakeFirstOrThrow(),
    await tx.deleteFrom('accessTokens').where(of, '=', id).executeTakeFirstOrThrow(),
    await tx.deleteFrom('refreshTokens').where(of, '=', id).executeTakeFirstOrThrow(),
  ]
  await tx.deleteFrom('claimedRoles').where(of, '=', id).execute()
  return ended.some(({ numDeletedRows }) => numDeletedRows > 0n)
}

/** The name of a family's user. Undefined when nothing of the family is left. */
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

const sessionRow = compiledOnce((db, hash: string) => db.selectFrom('sessions').selectAll().where('hash', '=', hash))
const accessRow = compiledOnce((db, hash: string) => db.selectFrom('accessTokens').selectAll().where('hash', '=', hash))

export function sessionsOver(link: StoreLink, now: () => number, prefixes: PrefixMemory): Data['sessions'] {
  return {
    begin: async ({ endsSession, settles, ...signIn }, actor) => {
      const { firstRow, remember } = await link.write(async (tx) => {
        const remember = settles && (await settle(tx, prefixes, settles.user, settles))
        if (endsSession !== undefined) await endPresented(tx, endsSession)
        return { firstRow: await insertValid(tx, signIn, actor), remember }
      })
      remember?.()
      // The user was removed, disabled or given another password meanwhile.
      if (firstRow.changed() === 0) throw new Fault('Unauthorized')
    },
    find: (hash) => link.read(async (db) => (await sessionRow(db, hash).execute())[0]),
    touch: (hash, at) =>
      link.write(async (tx) => {
        const touched = tx.updateTable('sessions').set({ lastUsedAt: at }).where('hash', '=', hash)
        await later(tx, touched.where('lastUsedAt', '<', at))
      }),
    endFamily: (familyId, actor) =>
      link.write(async (tx) => {
        await lockFamily(link, tx, familyId)
        const target = await ownerOf(tx, familyId)
        if (await endAll(tx, 'familyId', familyId)) await note(tx, now(), actor, { event: 'signout', target })
      }),
    list: ({ id, epoch }, at, only) => link.read((db) => sessionsOf(db, { id, epoch, only }, at)),
    endOf: (userId, familyId, actor) =>
      link.write(async (tx) => {
        await lockFamily(link, tx, familyId)
        if (!(await isOf(tx, userId, familyId))) return false
        const target = await ownerOf(tx, familyId)
        await endAll(tx, 'familyId', familyId)
        await note(tx, now(), actor, { event: 'session.ended', target, before: JSON.stringify({ session: familyId }) })
        return true
      }),
  }

  async function endPresented(tx: Db, hash: string): Promise<void> {
    const [row] = await tx.selectFrom('sessions').select('familyId').where('hash', '=', hash).execute()
    if (!row) return
    await lockFamily(link, tx, row.familyId)
    for (const table of issued) await later(tx, tx.deleteFrom(table).where('familyId', '=', row.familyId))
  }

  /**
   * Stores a sign-in if the user is still as when the password was verified. Each row has this condition by itself: rows of
   * an old epoch are worth nothing, so that a change between two of them does no harm.
   */
  async function insertValid(
    tx: Db,
    { session, access, refresh, claimedRoles }: Omit<SignInRecord, 'endsSession' | 'settles'>,
    actor: Actor,
  ) {
    const { familyId, userId, provider } = session
    const firstRow = await insertFor(tx, session, 'sessions', session)
    await insertFor(tx, session, 'accessTokens', access)
    if (refresh) await insertFor(tx, session, 'refreshTokens', refresh)
    if (claimedRoles) {
      const { roles, endsAt } = claimedRoles
      await insertFor(tx, session, 'claimedRoles', { familyId, userId, roles: JSON.stringify(roles), endsAt })
    }
    const entry = auditValues(now(), actor, { event: 'signin.ok', target: undefined, after: providerText(provider) })
    await insertFor(tx, session, 'audit', { ...entry, target: sql.ref('users.userName') })
    return firstRow
  }
}

const issued = ['sessions', 'accessTokens', 'refreshTokens', 'claimedRoles'] as const

/** Stores the session and the tokens of a sign-in. */
export async function insertSignIn(
  tx: Db,
  { session, access, refresh, claimedRoles }: Omit<SignInRecord, 'endsSession' | 'settles'>,
): Promise<void> {
  await tx.insertInto('sessions').values(session).execute()
  await tx.insertInto('accessTokens').values(access).execute()
  if (refresh) await tx.insertInto('refreshTokens').values(refresh).execute()
  if (claimedRoles) {
    const { familyId, userId } = session
    const { roles, endsAt } = claimedRoles
    await tx
      .insertInto('claimedRoles')
      .values({ familyId, userId, roles: JSON.stringify(roles), endsAt })
      .execute()
  }
}

const maxListed = 1_000

async function sessionsOf(
  db: Db,
  { id, epoch, only }: { readonly id: string; readonly epoch: number; readonly only: string | undefined },
  at: number,
): Promise<readonly SignedInSession[]> {
  const ofFamily = only === undefined ? sql`` : sql` AND "familyId" = ${only}`
  const living = sql<boolean>`"endsAt" > ${at} AND "lastUsedAt" + "idleMs" > ${at}${ofFamily}`
  const sessions = await db
    .selectFrom('sessions')
    .selectAll()
    .where('userId', '=', id)
    .where('epoch', '=', epoch)
    .where(living)
    .orderBy('lastUsedAt', 'desc')
    .limit(maxListed)
    .execute()
  const refreshes = await db
    .selectFrom('refreshTokens')
    .selectAll()
    .where('userId', '=', id)
    .where('epoch', '=', epoch)
    .where('usedAt', 'is', null)
    .where(living)
    .orderBy('lastUsedAt', 'desc')
    .limit(maxListed)
    .execute()
  const parts = [...sessions.map((row) => ({ ...row, kind: undefined })), ...refreshes]
  return [...Map.groupBy(parts, ({ familyId }) => familyId).values()]
    .flatMap((rows): readonly SignedInSession[] => {
      const [first] = rows
      if (!first) return []
      return [
        {
          familyId: first.familyId,
          createdAt: rows.map(({ createdAt }) => createdAt).find((time) => time !== undefined),
          lastUsedAt: Math.max(...rows.map(({ lastUsedAt }) => lastUsedAt)),
          expiresAt: Math.max(...rows.map(({ lastUsedAt, idleMs, endsAt }) => Math.min(lastUsedAt + idleMs, endsAt))),
          permanent: first.permanent,
          provider: first.provider,
          kind: rows.map(({ kind }) => kind).find((kind) => kind !== undefined),
        },
      ]
    })
    .sort((one, other) => other.lastUsedAt - one.lastUsedAt)
    .slice(0, maxListed)
}

async function isOf(tx: Db, userId: string, familyId: string): Promise<boolean> {
  for (const table of ['sessions', 'refreshTokens', 'accessTokens'] as const) {
    const rows = tx.selectFrom(table).select('hash').where('familyId', '=', familyId).where('userId', '=', userId)
    if ((await rows.limit(1).execute()).length > 0) return true
  }
  return false
}

/** The number of the user's families, except one. */
export async function countFamilies(tx: Db, userId: string, except: string | undefined): Promise<number> {
  const families = new Set<string>()
  for (const table of ['sessions', 'refreshTokens', 'accessTokens'] as const) {
    const rows = await tx.selectFrom(table).select('familyId').distinct().where('userId', '=', userId).execute()
    for (const { familyId } of rows) if (familyId !== except) families.add(familyId)
  }
  return families.size
}

/** Ends all families of a user but one, which takes the user's new epoch. */
export async function endOthers(tx: Db, userId: string, keep: string, epoch: number): Promise<void> {
  await tx.deleteFrom('claimedRoles').where('userId', '=', userId).where('familyId', '<>', keep).execute()
  for (const table of ['sessions', 'refreshTokens', 'accessTokens'] as const) {
    await tx.deleteFrom(table).where('userId', '=', userId).where('familyId', '<>', keep).execute()
    await tx.updateTable(table).set({ epoch }).where('userId', '=', userId).where('familyId', '=', keep).execute()
  }
}

/**
 * Milliseconds. A caller that presents a token again within this time has missed the successor, and gets it again (T4).
 */
export const repeatMs = 10_000

export function tokensOver(link: StoreLink, now: () => number): Data['tokens'] {
  return {
    access: (hash) => link.read(async (db) => (await accessRow(db, hash).execute())[0]),
    refresh: (hash) => link.read((db) => refreshRow(db, hash)),
    renew: (refreshHash, access, at) =>
      link.write(async (tx) => {
        await lockFamily(link, tx, access.familyId)
        const fixed = tx.updateTable('refreshTokens').set({ lastUsedAt: at }).where('hash', '=', refreshHash)
        const { numUpdatedRows } = await fixed
          .where('familyId', '=', access.familyId)
          .where('kind', '=', 'fixed')
          .executeTakeFirstOrThrow()
        // The user has signed out meanwhile.
        if (numUpdatedRows === 0n) throw new Fault('Unauthorized')
        // The family may have taken a newer epoch since the caller read it.
        const epoch = (await refreshRow(tx, refreshHash))?.epoch ?? access.epoch
        await tx
          .insertInto('accessTokens')
          .values({ ...access, epoch })
          .execute()
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
          // The family may have taken a newer epoch since the caller read it.
          const { epoch } = row
          await tx
            .insertInto('accessTokens')
            .values({ ...access, epoch })
            .execute()
          await tx
            .insertInto('refreshTokens')
            .values({ ...refresh, epoch })
            .execute()
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

/** Erases sealed pairs that can no longer be requested. */
export async function eraseSealed(tx: Db, at: number, familyId?: string): Promise<void> {
  const old = tx
    .updateTable('refreshTokens')
    .set({ sealedSuccessor: null })
    .where('sealedSuccessor', 'is not', null)
    .where('usedAt', '<', at - repeatMs)
  await later(tx, familyId === undefined ? old : old.where('familyId', '=', familyId))
}

const refreshRow = (db: Db, hash: string): Promise<RefreshRow | undefined> =>
  db.selectFrom('refreshTokens').selectAll().where('hash', '=', hash).executeTakeFirst()

type Column = string | number | boolean | undefined | RawBuilder<unknown>

/**
 * Inserts a row if the user exists, is not disabled and has this epoch, without another statement that asks first. The
 * columns of `users` may be values.
 */
async function insertFor(
  tx: Db,
  { userId, epoch }: { readonly userId: string; readonly epoch: number },
  table: keyof Tables,
  row: Readonly<Record<string, Column>>,
): Promise<Later<unknown>> {
  const columns = sql.join(Object.keys(row).map((name) => sql.ref(name)))
  const values = sql.join(Object.values(row).map((value) => (isExpression(value) ? value : sql`${value}`)))
  const what = table === 'audit' ? returned(tx) : 'nothing'
  const returning = { all: sql`RETURNING *`, number: sql`RETURNING "id", "correlationId"`, nothing: sql`` }
  const inserted = await laterSql(
    tx,
    sql`INSERT INTO ${sql.table(table)} (${columns}) SELECT ${values} FROM "users"
      WHERE "users"."id" = ${userId} AND "users"."epoch" = ${epoch} AND "users"."disabled" = 0
      ${returning[what]}`,
  )
  if (what !== 'nothing') passInserted(tx, inserted)
  return inserted
}

const isExpression = (value: Column): value is RawBuilder<unknown> => typeof value === 'object'

/**
 * Stores what a right secret changes, without waiting for its answers. Returns what this process remembers of it once the
 * transaction has ended.
 */
async function settle(
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
