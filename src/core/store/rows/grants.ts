import { randomUUID } from 'node:crypto'
import { isStoreFailure } from '../../base/errors.ts'
import { presentPermission } from '../../protocol/index.ts'
import type { Actor, Data, EndingGrant, User } from '../data.ts'
import { later } from '../dialect.ts'
import { hasEnded, mostNoticeMs, noticeAt } from '../grants.ts'
import { gone, type StoreLink } from '../link.ts'
import type { Db } from '../tables.ts'
import { note } from './audit.ts'
import { lockUsers } from './locks.ts'
import {
  endText,
  grantOf,
  grantsText,
  type IsOver,
  readRows,
  type UserQuery,
  type UserRowWithGrant,
  userRowsOf,
  usersOf,
} from './user-rows.ts'

/**
 * Ends of grants, by the number of the grant, that this process has noticed and the store has not accepted. They remain
 * final here whatever the clock shows.
 */
export type EndMemory = { readonly ends: Map<number, number>; triedAt: number }
/** Milliseconds after which a request tries again to store an end that the store did not accept. */
const tryAgainMs = 5_000
/** How many are remembered at most. */
const maxSeen = 10_000

/** How many grants one query looks up, and of how many users one transaction ends them, because it locks these users. */
const batch = 200
const usersAtOnce = 20

type Ended = { readonly seq: number; readonly userId: string; readonly endsAt: number }

export type GrantKeeper = {
  /** Returns a function that decides whether a grant has ended by now. */
  readonly isOver: () => IsOver
  /**
   * The users of a query, as they are now. An end that is noticed here is final: the grant is removed, with its audit
   * entry, before anybody learns that the user lacks it.
   */
  readonly users: (query: (db: Db) => UserQuery) => Promise<readonly User[]>
  /** A user as the transaction sees it, and the grants that it has to end if it changes any. Throws Fault NotFound. */
  readonly inTransaction: (tx: Db, id: string) => Promise<{ readonly user: User; readonly ended: readonly Ended[] }>
  /** Removes all grants that have ended by now. Resolves to that time. */
  readonly settle: () => Promise<number>
}

export function endsOver(link: StoreLink, now: () => number, memory: EndMemory): GrantKeeper {
  const isOver = (): IsOver => {
    const at = now()
    return ({ grantSeq, grantEndsAt: endsAt }) =>
      endsAt !== undefined &&
      (hasEnded({ endsAt }, at) || (grantSeq !== undefined && memory.ends.get(grantSeq) === endsAt))
  }
  /** Whether the store has accepted the ends. */
  const store = async (ended: readonly Ended[]): Promise<boolean> => {
    const isNew = ended.some(({ seq, endsAt }) => memory.ends.get(seq) !== endsAt)
    if (!isNew && performance.now() - memory.triedAt < tryAgainMs) return false
    const left = new Map(Map.groupBy(ended, ({ userId }) => userId))
    try {
      while (left.size > 0) {
        const some = [...left].slice(0, usersAtOnce)
        const ids = some.map(([id]) => id)
        const grants = some.flatMap(([, own]) => own)
        await link.write(async (tx) => {
          await lockUsers(link, tx, ids)
          await endGrants(tx, now(), grants)
        })
        for (const { seq } of grants) memory.ends.delete(seq)
        for (const id of ids) left.delete(id)
      }
      return true
    } catch (error) {
      if (!isStoreFailure(error)) throw error
      // In this process, nobody holds them from now on. The sweep and later requests try to store that again.
      memory.triedAt = performance.now()
      for (const { seq, endsAt } of [...left.values()].flat()) {
        if (memory.ends.size < maxSeen) memory.ends.set(seq, endsAt)
      }
      return false
    }
  }
  return {
    isOver,
    users: async (query) => {
      const rows = await link.read((db) => readRows(query(db)))
      const over = isOver()
      if (rows.some(over)) await store(endedIn(rows, over))
      return usersOf(rows, over)
    },
    inTransaction: async (tx, id) => {
      const rows = await readRows(userRowsOf(tx, id))
      const over = isOver()
      const [user] = usersOf(rows, over)
      if (!user) throw gone()
      return { user, ended: endedIn(rows, over) }
    },
    settle: async () => {
      const at = now()
      for (let more = true; more; ) {
        const ended = await link.read((db) => pastGrants(db, at))
        more = ended.length > 0 && (await store(ended)) && ended.length === batch
      }
      return at
    },
  }
}

const endedIn = (rows: readonly UserRowWithGrant[], isOver: IsOver): readonly Ended[] =>
  rows.flatMap((row) =>
    row.grantSeq !== undefined && row.grantEndsAt !== undefined && isOver(row)
      ? [{ seq: row.grantSeq, userId: row.id, endsAt: row.grantEndsAt }]
      : [],
  )

/** The grants that have ended by now, the earliest first, and no more than one transaction ends. */
const pastGrants = async (db: Db, at: number): Promise<readonly Ended[]> => {
  const rows = db.selectFrom('grants').select(['seq', 'userId', 'endsAt']).where('endsAt', '<=', at)
  const past = await rows.orderBy('endsAt').orderBy('seq').limit(batch).execute()
  return past.flatMap(({ endsAt, ...row }) => (endsAt === undefined ? [] : [{ ...row, endsAt }]))
}

/** The actor of ends: a grant ends by itself. */
const byItself = (): Actor => ({ who: '-', correlationId: randomUUID() })

/**
 * Removes grants under the locks of their users, each with its audit entry. One that another node has removed, or that has
 * another end by now, is left out, so that each end has one entry.
 */
export async function endGrants(tx: Db, at: number, ended: readonly Ended[]): Promise<void> {
  for (const [userId, own] of Map.groupBy(ended, (one) => one.userId)) {
    const rows = [...(await readRows(userRowsOf(tx, userId)))]
    for (const { seq, endsAt } of own) {
      const stored = (one: UserRowWithGrant): boolean => one.grantSeq === seq && one.grantEndsAt === endsAt
      const row = rows.find(stored)
      const grant = row && grantOf(row)
      const [[user], [without]] = [usersOf(rows, () => false), usersOf(rows, stored)]
      if (!row || !grant || !user || !without) continue
      await later(tx, tx.deleteFrom('grants').where('seq', '=', seq))
      const texts = { before: grantsText(user), after: grantsText(without, { ended: endText(grant) }) }
      await note(tx, at, byItself(), { event: 'roles.ended', target: user.userName, ...texts })
      rows.splice(rows.indexOf(row), 1)
    }
  }
}

/** How many notices are due at once, to avoid a flood. */
const maxNotices = 1_000

/** Notices of ends: which are due, and which node sends them. */
export function noticesOver(
  link: StoreLink,
  now: () => number,
): Pick<Data['users'], 'noticesDue' | 'claimNotice' | 'returnNotice'> {
  /** The stored grant, unless it has a new end. */
  const sameEnd = (tx: Db, { seq, endsAt }: EndingGrant, noticedEnd: number | null) =>
    tx.updateTable('grants').set({ noticedEnd }).where('seq', '=', seq).where('endsAt', '=', endsAt)
  return {
    noticesDue: async () => {
      const at = now()
      const rows = await link.read((db) =>
        db
          .selectFrom('grants')
          .innerJoin('users', 'users.id', 'grants.userId')
          .select(['seq', 'kind', 'name', 'endsAt', 'grantedAt', 'grantedBy', 'reason', 'users.userName'])
          .where('endsAt', '>', at)
          .where('endsAt', '<=', at + mostNoticeMs)
          .where((eb) => eb.or([eb('noticedEnd', 'is', null), eb('noticedEnd', '<>', eb.ref('endsAt'))]))
          .where('users.disabled', '=', false)
          .orderBy('endsAt')
          .limit(maxNotices)
          .execute(),
      )
      return rows.flatMap(({ endsAt, ...row }): readonly EndingGrant[] => {
        if (endsAt === undefined || (noticeAt({ ...row, endsAt }) ?? Number.POSITIVE_INFINITY) > at) return []
        return [{ ...row, name: row.kind === 'permission' ? presentPermission(row.name) : row.name, endsAt }]
      })
    },
    claimNotice: (grant) =>
      link.write(async (tx) => {
        const { endsAt } = grant
        const unclaimed = sameEnd(tx, grant, endsAt).where((eb) =>
          eb.or([eb('noticedEnd', 'is', null), eb('noticedEnd', '<>', endsAt)]),
        )
        return (await unclaimed.executeTakeFirstOrThrow()).numUpdatedRows > 0n
      }),
    returnNotice: (grant) =>
      link.write(async (tx) => {
        await sameEnd(tx, grant, null).execute()
      }),
  }
}
