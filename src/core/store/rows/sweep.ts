import { sql } from 'kysely'
import { refusalsInSql } from '../audit-events.ts'
import { type Data, prefixesKeptMs } from '../data.ts'
import { type Later, later } from '../dialect.ts'
import type { StoreLink } from '../link.ts'
import { noncesKeptMs } from './digest.ts'
import { heartbeatsKeptMs } from './heartbeats.ts'
import { readingsKeptMs } from './readings.ts'
import { eraseSealed } from './sessions.ts'

/** Rows per transaction: others wait no longer than for any other change. */
const batch = 500
/** Maximum rows of one sweep; the next one continues. */
const most = 100_000
/** Older failed sign-ins no longer count (P5). */
const dayMs = 86_400_000

/**
 * Audit entries that anonymous callers cause. They are kept for 90 days only: they could fill the disk, and without
 * room for the audit no role could change. Entries of users and Admins are kept forever.
 */
const isRefusal = sql<boolean>`"event" IN ${sql.raw(refusalsInSql)}`
const refusalsKeptMs = 90 * dayMs

/** When an unused row ends. This and the refusals above are written exactly as in their indexes (schema.ts). */
const unusedUntil = sql<number>`"lastUsedAt" + "idleMs"`

/** Removes expired rows, and sealed pairs that can no longer be requested. */
export function sweepOver(link: StoreLink): Data['sweep'] {
  return async (at) => {
    await link.write((tx) => eraseSealed(tx, at))
    await inBatches((limit) =>
      link.write(async (tx) => {
        const ended = tx.selectFrom('sessions').select('hash').where('endsAt', '<=', at).limit(limit)
        return await later(tx, tx.deleteFrom('sessions').where('hash', 'in', ended))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const idle = tx.selectFrom('sessions').select('hash').where(unusedUntil, '<=', at).limit(limit)
        return await later(tx, tx.deleteFrom('sessions').where('hash', 'in', idle))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const ended = tx.selectFrom('accessTokens').select('hash').where('expiresAt', '<=', at).limit(limit)
        return await later(tx, tx.deleteFrom('accessTokens').where('hash', 'in', ended))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const ended = tx.selectFrom('refreshTokens').select('hash').where('endsAt', '<=', at).limit(limit)
        return await later(tx, tx.deleteFrom('refreshTokens').where('hash', 'in', ended))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        // An exchanged token stays until its family ends, because its reuse reveals a thief.
        const idle = tx.selectFrom('refreshTokens').select('hash').where('usedAt', 'is', null).limit(limit)
        const rows = idle.where(unusedUntil, '<=', at)
        return await later(tx, tx.deleteFrom('refreshTokens').where('hash', 'in', rows))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const old = tx
          .selectFrom('failures')
          .select('key')
          // Older ones no longer count, and no right clock wrote those of tomorrow.
          .where((eb) => eb.or([eb('lastAt', '<', at - dayMs), eb('lastAt', '>', at + dayMs)]))
          .limit(limit)
        return await later(tx, tx.deleteFrom('failures').where('key', 'in', old))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        // Full buckets, and those that no clock but a wrong one could have left so.
        const full = tx
          .selectFrom('guesses')
          .select('name')
          .where((eb) => eb.or([eb('fullAt', '<=', at), eb('fullAt', '>', at + 2 * dayMs)]))
          .limit(limit)
        return await later(tx, tx.deleteFrom('guesses').where('name', 'in', full))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const old = tx
          .selectFrom('knownPrefixes')
          .select('mac')
          .where('at', '<', at - prefixesKeptMs)
          .limit(limit)
        return await later(tx, tx.deleteFrom('knownPrefixes').where('mac', 'in', old))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const ended = tx.selectFrom('claimedRoles').select('familyId').where('endsAt', '<=', at).limit(limit)
        const rows = tx.deleteFrom('claimedRoles').where('familyId', 'in', ended)
        return await later(tx, rows)
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const ended = tx.selectFrom('usedStates').select('state').where('endsAt', '<=', at).limit(limit)
        return await later(tx, tx.deleteFrom('usedStates').where('state', 'in', ended))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const old = tx
          .selectFrom('digestNonces')
          .select('nonce')
          .where('madeAt', '<', at - noncesKeptMs)
          .limit(limit)
        return await later(tx, tx.deleteFrom('digestNonces').where('nonce', 'in', old))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const silent = tx
          .selectFrom('heartbeats')
          .select('name')
          .where('at', '<', at - heartbeatsKeptMs)
          .limit(limit)
        return await later(tx, tx.deleteFrom('heartbeats').where('name', 'in', silent))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const old = tx
          .selectFrom('readings')
          .select('series')
          .where((eb) => eb.or([eb('at', '<', at - readingsKeptMs), eb('at', '>', at + dayMs)]))
          .limit(limit)
        return await later(tx, tx.deleteFrom('readings').where('series', 'in', old))
      }),
    )
    await inBatches((limit) =>
      link.write(async (tx) => {
        const old = tx
          .selectFrom('audit')
          .select('id')
          .where(isRefusal)
          .where('at', '<', at - refusalsKeptMs)
          // The newest stays: a server notices by its number that the store was set back.
          .where(
            'id',
            '<',
            tx.selectFrom('audit').select((eb) => eb.fn.max('id').as('newest')),
          )
          .limit(limit)
        return await later(tx, tx.deleteFrom('audit').where('id', 'in', old))
      }),
    )
  }
}

async function inBatches(remove: (limit: number) => Promise<Later<unknown>>): Promise<void> {
  for (let removed = 0; removed < most; ) {
    const n = (await remove(batch)).changed()
    if (n < batch) return
    removed += n
  }
}
