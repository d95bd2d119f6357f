import type { Generated, Kysely } from 'kysely'

/**
 * The tables as both databases have them: flags are 0 or 1, times milliseconds since 1970, and what is
 * absent is null. schema.ts makes them.
 */
export type Tables = {
  users: {
    id: string
    userName: string
    /** The name as it is compared (names.ts); the order of lists. */
    nameKey: string
    email: string | null
    displayName: string | null
    passwordHash: string | null
    disabled: number
    createdAt: number
    epoch: number
  }
  /** Every name and every e-mail as it is compared: one primary key makes them unique together (O4). */
  names: { key: string; userId: string }
  grants: { seq: Generated<number>; userId: string; kind: GrantKind; name: string }
  sessions: {
    hash: string
    userId: string
    epoch: number
    permanent: number
    createdAt: number
    lastUsedAt: number
    idleMs: number
    endsAt: number
    familyId: string
  }
  accessTokens: { hash: string; userId: string; epoch: number; familyId: string; expiresAt: number }
  refreshTokens: {
    hash: string
    familyId: string
    userId: string
    epoch: number
    kind: 'fixed' | 'rotating'
    permanent: number
    idleMs: number
    lastUsedAt: number
    endsAt: number
    usedAt: number | null
    sealedSuccessor: string | null
  }
  apiKeys: {
    id: string
    name: string
    hash: string
    userId: string
    /** JSON lists. */
    roles: string | null
    permissions: string | null
    createdAt: number
    expiresAt: number | null
    revokedAt: number | null
  }
  heartbeats: {
    name: string
    at: number
    who: string
    status: 'Ok' | 'Warn' | 'Fail'
    message: string | null
    version: string | null
    intervalMs: number | null
    backlog: number | null
    diskFreePercent: number | null
    skewMs: number | null
    /** A JSON list of `[at, status]`, oldest first. */
    history: string
  }
  readings: {
    series: string
    /** Of the last point. */
    at: number
    /** A JSON list of `[at, value]`, oldest first. */
    points: string
  }
  failures: { key: string; count: number; lastAt: number }
  audit: {
    id: Generated<number>
    at: number
    event: string
    who: string
    actorId: string | null
    address: string | null
    target: string | null
    correlationId: string
    before: string | null
    after: string | null
    reason: string | null
  }
}
export type GrantKind = 'role' | 'permission'

/** A connection, or a transaction on one. */
export type Db = Kysely<Tables>

/** Null is the database's way to say that something is absent. */
export const present = <T>(value: T | null): T | undefined => value ?? undefined
export const flag = (value: boolean): number => (value ? 1 : 0)

/** How many rows a table has. */
export async function counted(tx: Db, table: 'heartbeats' | 'readings'): Promise<number> {
  const { n } = await tx
    .selectFrom(table)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow()
  return n
}
