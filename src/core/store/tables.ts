import type { ColumnType, Generated, Kysely } from 'kysely'
import type { Heartbeat } from '../protocol/index.ts'
import type { Seal } from './audit/index.ts'
import type { AuditEvent } from './audit-events.ts'
import type {
  AuditRow,
  DigestSecret,
  Grant,
  IdentityRow,
  KeyRow,
  RefreshRow,
  SessionRow,
  TokenRow,
  UserRow,
} from './data.ts'

/**
 * A user name or e-mail address in the form for comparison: NFC, without letter case (O4). It is converted to upper
 * case first, because some letters (ß, ſ, final ς) lose their case only in that way.
 *
 * @example
 * ```ts
 * nameKey('STRASSE') === nameKey('Straße') // true
 * ```
 */
export const nameKey = (name: string): string =>
  name.replaceAll('\0', '\u{fffd}').toWellFormed().normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')

/** A row as its table has it: a change must write null where a value goes away, because it leaves out what is undefined. */
type Stored<Row> = {
  [Name in keyof Row]-?: undefined extends Row[Name]
    ? ColumnType<Row[Name], Row[Name] | null, Exclude<Row[Name], undefined> | null>
    : Row[Name]
}

/**
 * The tables, the same in both databases. Times are milliseconds since 1970. The databases have 0 or 1 for flags and null
 * for absent values, which dialect.ts converts. schema.ts creates them.
 */
export type Tables = {
  /** `nameKey` is the name in the form for comparison. Lists are sorted by it. `temporaryHash`: a hash that is to be replaced. */
  users: Stored<UserRow & { readonly temporaryHash: string | undefined }> & { nameKey: string }
  /**
   * Every name and every e-mail address in the form for comparison. One primary key makes them unique together (O4).
   */
  names: { key: string; userId: string }
  /** Earlier versions leave out everything after the name. `noticedEnd`: the end that receivers were told of. */
  grants: Stored<Grant & { noticedEnd: number | undefined }> & { seq: Generated<number>; userId: string }
  sessions: Stored<SessionRow>
  accessTokens: Stored<TokenRow>
  refreshTokens: Stored<RefreshRow>
  /** The roles and the permissions are JSON lists. */
  apiKeys: Stored<
    Omit<KeyRow, 'roles' | 'permissions'> & { roles: string | undefined; permissions: string | undefined }
  >
  /** The history is a JSON list of `[at, status]`, oldest first; the run a JobRun as JSON. */
  heartbeats: Stored<Omit<Heartbeat, 'history' | 'run'> & { history: string; run: string | undefined }>
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
  /** Nonces made at `usedUntil` or before are refused: their rows have been removed. */
  digestSecrets: Stored<DigestSecret> & { userId: string; usedUntil: number }
  /** The highest nc that was accepted with a nonce. */
  digestNonces: { nonce: string; userId: string; nc: number; madeAt: number }
  /** The user behind an identity of an OpenID provider. */
  identities: Stored<IdentityRow> & { userId: string }
  /** The roles that a family has from the claims of its sign-in, as a JSON list. */
  claimedRoles: { familyId: string; userId: string; roles: string; endsAt: number }
  /** Browser sign-ins that are complete. */
  usedStates: { state: string; endsAt: number }
  /** A StoredSilence as JSON, and when it ends or ended. */
  quiets: { id: string; endsAt: number; body: string }
  /** Random keys that the store makes for itself, in hex. */
  storeKeys: { name: string; key: string }
  audit: Stored<Omit<AuditRow, 'id' | 'event'> & { actorId: string | undefined; seal: number | undefined }> & {
    id: Generated<number>
    event: AuditEvent
  }
  auditSeals: Stored<Seal>
}
/** A connection, or a transaction on one. */
export type Db = Kysely<Tables>

/** The columns that are flags, which the databases store as 0 or 1. */
export const flagColumns = ['disabled', 'permanent', 'forAdmin'] as const

/** The number of rows of a table. */
export async function counted(tx: Db, table: 'heartbeats' | 'readings'): Promise<number> {
  const { n } = await tx
    .selectFrom(table)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirstOrThrow()
  return n
}
