import type { Generated, Kysely } from 'kysely'
import type { AuditEvent } from './audit-events.ts'

/**
 * A user name or e-mail address in the form for comparison: NFC, without letter case (O4). It is converted to upper
 * case first, because some letters (ß, ſ, final ς) lose their case only in that way.
 */
export const nameKey = (name: string): string =>
  name.replaceAll('\0', '\u{fffd}').toWellFormed().normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')

/**
 * The tables, the same in both databases: flags are 0 or 1, times are milliseconds since 1970, and absent values are
 * null. schema.ts creates them.
 */
export type Tables = {
  users: {
    id: string
    userName: string
    /** The name in the form for comparison (names.ts). Lists are sorted by it. */
    nameKey: string
    email: string | null
    displayName: string | null
    passwordHash: string | null
    disabled: number
    createdAt: number
    epoch: number
  }
  /**
   * Every name and every e-mail address in the form for comparison. One primary key makes them unique together (O4).
   */
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
    provider: string
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
    provider: string
    createdAt: number | null
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
    /** A JobRun as JSON. */
    run: string | null
  }
  readings: {
    series: string
    /** The time of the last point. */
    at: number
    /** A JSON list of `[at, value]`, oldest first. */
    points: string
  }
  failures: { key: string; count: number; lastAt: number }
  /** The token bucket of a name (P5). A bucket without a row is full. */
  guesses: {
    name: string
    /** When it is full again if nothing more is taken. */
    fullAt: number
  }
  knownPrefixes: {
    /** HMAC-SHA256 of a name and a prefix, in hex. */
    mac: string
    userId: string
    /** The last sign-in. */
    at: number
  }
  digestSecrets: {
    userId: string
    realm: string
    sha256: string
    md5: string
    forAdmin: number
    /** Nonces made at this time or before are refused: their rows have been removed. */
    usedUntil: number
  }
  /** The highest nc that was accepted with a nonce. */
  digestNonces: { nonce: string; userId: string; nc: number; madeAt: number }
  /** The user behind an identity of an OpenID provider. */
  identities: { issuer: string; subject: string; userId: string; createdAt: number }
  /** The roles that a family has from the claims of its sign-in, as a JSON list. */
  claimedRoles: { familyId: string; userId: string; roles: string; endsAt: number }
  /** Browser sign-ins that are complete. */
  usedStates: { state: string; endsAt: number }
  /** Random keys that the store makes for itself, in hex. */
  storeKeys: { name: string; key: string }
  audit: {
    id: Generated<number>
    at: number
    event: AuditEvent
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

/** The database stores absent values as null. */
export const present = <T>(value: T | null): T | undefined => value ?? undefined
export const flag = (value: boolean): number => (value ? 1 : 0)

/** The number of rows of a table. */
export async function counted(tx: Db, table: 'heartbeats' | 'readings'): Promise<number> {
  const { n } = await tx
    .selectFrom(table)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow()
  return n
}
