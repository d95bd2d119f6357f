import type { Heartbeat, JobRun } from '../protocol/index.ts'
import type { AuditFacts } from '../protocol/service/service.ts'
import type { DrillRows } from '../watch/drill/index.ts'
import type { NodesRows } from '../watch/nodes/index.ts'
import type { OutboxRows } from '../watch/outbox/index.ts'
import type { HistoryRows } from '../watch/periods/index.ts'
import type { StoredSilence } from '../watch/silences/index.ts'
import type { StatesRows } from '../watch/states/index.ts'
import type { ChainEntry, ChainHead, Seal } from './audit/index.ts'
import type { AuditEvent } from './audit-events.ts'
import type { StoreClock } from './clock.ts'
import type { SchemaReport } from './own-schema.ts'
import type { StoreFiles } from './path.ts'

/**
 * The data of the store, and the queries on it. One code path serves SQLite and PostgreSQL. Times are milliseconds
 * since 1970; hashes are SHA-256 in lower-case hex. Every method that changes something writes its audit entry in the
 * same transaction: no audit, no change. A call that changes nothing writes no entry. Neither does a renewal, a
 * rotation, a last use, a rehash, a heartbeat or a reading.
 */
export type UserRow = {
  /** A random UUID. */
  readonly id: string
  readonly userName: string
  readonly email: string | undefined
  readonly displayName: string | undefined
  /** An argon2id PHC string. Undefined when the user cannot sign in with a password. */
  readonly passwordHash: string | undefined
  readonly disabled: boolean
  readonly createdAt: number
  /**
   * Increases when the password changes or the user is disabled. Everything issued before that becomes invalid (T2).
   */
  readonly epoch: number
}
/** In the order in which they were granted. */
export type Grants = { readonly roles: readonly string[]; readonly permissions: readonly string[] }
export type GrantKind = 'role' | 'permission'
/** A role or a permission that a user holds. */
export type Grant = {
  readonly kind: GrantKind
  readonly name: string
  /** When it ends by itself. Undefined: it is permanent. */
  readonly endsAt: number | undefined
  /**
   * When, by whom and why it was granted, or its end was changed last. Undefined where an earlier version granted it.
   */
  readonly grantedAt: number | undefined
  readonly grantedBy: string | undefined
  readonly reason: string | undefined
}
/**
 * The roles and permissions of a user: the names, and the grants behind them, all in the order in which they were
 * granted.
 */
export type Holdings = Grants & { readonly grants: readonly Grant[] }
/** Grants that have ended are not among them. */
export type User = UserRow & Holdings & { readonly mustChangePassword: boolean }
/** The values of a user to add, who holds the roles and permissions permanently. */
export type UserToAdd = Omit<User, 'id' | 'createdAt' | 'epoch' | 'disabled' | 'grants' | 'mustChangePassword'> & {
  readonly mustChangePassword?: boolean | undefined
  readonly digest?: DigestSecret | undefined
}

/** Who changed something, and from where. Used for the audit. */
export type Actor = {
  /** `local:alice`, a user name, or `-` when nobody is signed in. */
  readonly who: string
  /** The user's id, when the store has such a user. */
  readonly userId?: string | undefined
  readonly address?: string | undefined
  readonly correlationId: string
  readonly reason?: string | undefined
}

export type SessionRow = {
  /** The hash of the session secret. */
  readonly hash: string
  readonly userId: string
  readonly epoch: number
  /** Whether the user asked to stay signed in (RememberMe). */
  readonly permanent: boolean
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly idleMs: number
  readonly endsAt: number
  /** The refresh family that was created with the session. */
  readonly familyId: string
  /** The sign-in provider, by its name on the wire. */
  readonly provider: string
}
export type TokenRow = {
  readonly hash: string
  readonly userId: string
  readonly epoch: number
  readonly familyId: string
  readonly expiresAt: number
}
export type RefreshRow = {
  readonly hash: string
  readonly familyId: string
  readonly userId: string
  readonly epoch: number
  readonly kind: 'fixed' | 'rotating'
  readonly permanent: boolean
  readonly idleMs: number
  readonly lastUsedAt: number
  readonly endsAt: number
  /** When it was exchanged for its successor (rotating tokens only). */
  readonly usedAt: number | undefined
  /** The successor pair, AES-256-GCM under a key derived from the presented token; erased after 10 s. */
  readonly sealedSuccessor: string | undefined
  readonly provider: string
  /** The time of the sign-in. Undefined when an earlier version, which did not store it, made the token. */
  readonly createdAt: number | undefined
}
/**
 * A sign-in that still counts: its session, its refresh token or both. The id is that of the family. It is not secret:
 * no request can use it as a credential.
 */
export type SignedInSession = {
  readonly familyId: string
  readonly createdAt: number | undefined
  readonly lastUsedAt: number
  /** When it ends if nobody uses it. */
  readonly expiresAt: number
  readonly permanent: boolean
  readonly provider: string
  /** The kind of its refresh token, if it has one. */
  readonly kind: RefreshRow['kind'] | undefined
}
/**
 * The secret with which a user signs in by HTTP Digest (A12). `sha256` and `md5` are H(userName:realm:password) in hex.
 */
export type DigestSecret = {
  readonly realm: string
  readonly sha256: string
  readonly md5: string
  /** Whether the user may sign in by digest while holding the role Admin. */
  readonly forAdmin: boolean
}
export type NonceUse = {
  readonly userId: string
  /** The secret that the digest was compared with. */
  readonly sha256: string
  readonly nonce: string
  /** When the nonce was made. */
  readonly madeAt: number
  /** The count of the client. */
  readonly nc: number
}
export type KeyRow = {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly userId: string
  /** Undefined: the key has the roles of its user, which each request reads. */
  readonly roles: readonly string[] | undefined
  /** Present only together with `roles`. Undefined beside `roles` means no permissions. */
  readonly permissions?: readonly string[] | undefined
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
}
export type AuditRow = Omit<AuditFacts, 'at'> & { readonly at: number }
/** Gets the entries of each transaction before it commits (S14). */
export type AuditGate = {
  /** Prevents the change if it throws. A transaction that is repeated passes its entries again. */
  readonly pass: (entries: readonly ChainEntry[]) => Promise<void>
  /** The transaction of these entries was not committed, as far as is known. SQLite uses their ids again. */
  readonly withdraw: (entries: readonly ChainEntry[]) => void
}
/** Which entries of the audit to list. */
export type AuditFilter = {
  /** Who made them, or whom they are about, without regard to letter case. */
  readonly user?: string | undefined
  /** Names under which the audit log has them, also those of earlier versions. */
  readonly events?: readonly string[] | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
  /** Those that assigned or removed this role. */
  readonly role?: string | undefined
}
/** The queries of the audit about the past. */
export type AuditPast = {
  /** Newest first. `before` limits the list to entries with a smaller id. */
  readonly list: (
    options: AuditFilter & { readonly limit: number; readonly before?: number | undefined },
  ) => Promise<readonly AuditRow[]>
  /**
   * Of the next 20,000 entries with ids after `after`, those that say who held which role, in their order. `next`: where the
   * next call goes on. Undefined: that was the end. With `user`, those whose target may be that user; others may be among them.
   */
  readonly ofRoles: (
    after: number,
    user?: string,
  ) => Promise<{ readonly entries: readonly AuditRow[]; readonly next: number | undefined }>
  /** The last entry about roles, in the order of the ids, whose time is not later. */
  readonly lastOfRoles: (time: number) => Promise<number | undefined>
  readonly beginning: () => Promise<AuditBeginning>
}
export type AuditBeginning = {
  /** When the store was made. */
  readonly storeAt: number
  /** The oldest entry. The first one of a store has the id 1. */
  readonly first: { readonly id: number; readonly at: number } | undefined
  /** The number of users who are linked to an account of an OpenID provider. */
  readonly identities: number
}
export type SealedHead = ChainHead & { readonly at: number }
/** The chain of seals (S13). */
export type AuditSeals = {
  /** The newest seal that this process has read. Undefined: none yet. */
  readonly lastHead: () => SealedHead | undefined
  /** The newest seal. Undefined: there is none. */
  readonly head: () => Promise<SealedHead | undefined>
  /**
   * Seals the entries that have no seal, at most 1,000 in each. Does nothing while the newest seal is younger than
   * `unlessNewerThanMs`, so that several nodes make one seal in that time. `maxSeals`: the rest waits for the next call.
   * `isAll`: no entry is left.
   */
  readonly seal: (limits?: {
    readonly unlessNewerThanMs?: number | undefined
    readonly maxSeals?: number | undefined
  }) => Promise<{ readonly head: SealedHead | undefined; readonly entries: number; readonly isAll: boolean }>
  /** The seals after a number, in their order. At most 1,000; none after the last. */
  readonly seals: (after: number) => Promise<readonly Seal[]>
  /** The entries with these ids that exist, complete. */
  readonly entries: (ids: readonly number[]) => Promise<readonly ChainEntry[]>
  /** The ids after an id, in their order, with the seals that the entries claim: 0 for none yet. At most 1,000. */
  readonly ids: (after: number) => Promise<readonly { readonly id: number; readonly seal: number | undefined }[]>
}
/**
 * The report of a heartbeat on a run: its start, or with `durationMs` its end. The start of a run keeps the status and
 * the message of the run before it.
 */
export type ReportedRun = Pick<JobRun, 'id' | 'durationMs' | 'exitCode' | 'maxMs' | 'output'>
/** A value that a run measured. */
export type StoredReading = { readonly at: number; readonly value: number }
/** A series that gets another name, or several: each gets a copy of its values. */
export type SeriesMove = { readonly from: string; readonly to: readonly string[] }
/** A sign-in, stored in one transaction: a session, an access token and a refresh token of one family. */
export type SignInRecord = {
  readonly session: SessionRow
  readonly access: TokenRow
  /** Undefined when the sign-in cannot be renewed. */
  readonly refresh: RefreshRow | undefined
  /** The session that came with the request. The sign-in ends it (A8). */
  readonly endsSession: string | undefined
  /** The roles that the sign-in has from claims, and until when. They belong to its family and are not grants. */
  readonly claimedRoles?: { readonly roles: readonly string[]; readonly endsAt: number } | undefined
  /** The other changes that the right password makes, for this user. */
  readonly settles?: (Settlement & { readonly user: Pick<User, 'id' | 'userName' | 'email'> }) | undefined
}
/** The changes that a right secret makes to the limits of its name (P5). */
export type Settlement = {
  /** The counter that it removes. */
  readonly clears: string | undefined
  /** The guess that it was not. */
  readonly givesBack: { readonly name: string; readonly bucket: Bucket } | undefined
  /** The sign-in that is recorded for the names of the user. */
  readonly remembers: { readonly prefix: string; readonly at: number } | undefined
}
/** A user as an OpenID provider knows it. */
export type IdentityRow = { readonly issuer: string; readonly subject: string; readonly createdAt: number }
export type StoredRoleChange = {
  readonly add: Grants
  readonly remove: Grants
  /**
   * When what is added ends, also what the user holds already: `never` removes an end. Undefined: new grants are
   * permanent, and those that the user holds keep their ends.
   */
  readonly endsAt?: number | 'never' | undefined
  /** Called in the transaction, with what the user holds before the change. What it throws prevents the change. */
  readonly refuse?: ((before: Holdings, edits: GrantEdits) => void) | undefined
}
/** The edits that a change makes to the grants of a user. */
export type GrantEdits = {
  readonly removed: readonly Grant[]
  /** In the order requested. */
  readonly added: readonly Grant[]
  /** Grants that stay and get another end, or none, as they are before the change. */
  readonly changed: readonly Grant[]
}
/** A grant that ends soon, and its user. */
export type EndingGrant = Grant & { readonly seq: number; readonly userName: string; readonly endsAt: number }
export type Changed = { readonly before: Holdings; readonly after: Holdings }
export type Rotation =
  | { readonly outcome: 'rotated' }
  /** The token was exchanged a moment ago. A caller that presents it again gets the sealed pair (T4). */
  | { readonly outcome: 'repeated'; readonly sealedSuccessor: string }
  /** The token was reused later than that. Its family has been revoked. */
  | { readonly outcome: 'reused' }
  | { readonly outcome: 'gone' }

/** A nonce is accepted for five minutes (A12). Milliseconds. */
export const nonceLivesMs = 5 * 60_000
/** A prefix is forgotten this long after the last sign-in from it (P5). Milliseconds. */
export const prefixesKeptMs = 90 * 86_400_000

export type FailureCount = { readonly count: number; readonly lastAt: number }
export type FailureCounter = {
  readonly key: string
  readonly windowMs: number
  /**
   * `fixed`: the window starts at its first failure, whose time `lastAt` then holds. `sliding`: each failure restarts
   * it.
   */
  readonly window: 'sliding' | 'fixed'
}
/** A bucket of `capacity` tokens that gains one token every `everyMs`. */
export type Bucket = { readonly capacity: number; readonly everyMs: number }
export type BucketLevel = {
  /** Whole tokens. */
  readonly left: number
  /** When it has one token, if it has none now. */
  readonly freeAt: number
}

/** Silences by hand and acknowledgements. Those that have ended are kept for a week. */
export type SilenceRows = {
  /** The earliest first. */
  readonly list: () => Promise<readonly StoredSilence[]>
  /** Throws Fault Conflict when the limit of entries is reached. */
  readonly add: (entries: readonly StoredSilence[], actor: Actor) => Promise<void>
  /** Ends an entry. Undefined: there is none of this id, or it has ended. Of two nodes that end it at once, one gets it. */
  readonly end: (
    id: string,
    ended: NonNullable<StoredSilence['ended']>,
    actor: Actor,
  ) => Promise<StoredSilence | undefined>
}

/** The nodes that share the store, with what an Admin does. */
export type StoredNodes = NodesRows & {
  /** Removes a node that is not live, with all that is stored of its machine. False: there is no such node. */
  readonly forget: (node: string, actor: Actor) => Promise<boolean>
}

export type Data = {
  readonly users: {
    /**
     * Looks for the exact name first, then for the e-mail address. Both are compared in NFC and without regard to case
     * (O4).
     */
    readonly find: (nameOrEmail: string) => Promise<User | undefined>
    readonly byId: (id: string) => Promise<User | undefined>
    /** The user to whom a session, an access token or a key was issued. */
    readonly behind: (kind: 'session' | 'access' | 'key', hash: string) => Promise<User | undefined>
    /** At most `take` users (1,000), sorted by name: the first ones, or those after the name `after`. */
    readonly list: (after?: string, take?: number) => Promise<readonly User[]>
    /** The number of users, or of those with a role. */
    readonly count: (role?: string) => Promise<number>
    /** User names similar to `typed`, which is not a user name itself. Their number is bounded (rows/near.ts). */
    readonly near: (typed: string) => Promise<readonly string[]>
    /** `any`: whether a user exists. `anyAdmin`: whether a user who is not disabled holds Admin. */
    readonly any: () => Promise<boolean>
    readonly anyAdmin: () => Promise<boolean>
    /** The users with a role, as `list`. */
    readonly holders: (role: string, after?: string, take?: number) => Promise<readonly User[]>
    /** The roles that any user holds, sorted by name. At most 1,000. */
    readonly roleNames: () => Promise<readonly string[]>
    /** Throws Fault Conflict when the name or e-mail address is taken. Names and addresses share one namespace. */
    readonly add: (user: UserToAdd, actor: Actor) => Promise<User>
    /**
     * Ends every session and token of the user (epoch + 1). With `replaces`, the hash that was just verified, it only
     * rehashes the same password: it ends nothing, and does nothing when the password has changed meanwhile. A new
     * password replaces the digest secret of the user by `digest`, or removes it. `mustChange`: until the user has changed it.
     */
    readonly setPassword: (
      id: string,
      passwordHash: string,
      actor: Actor | { readonly replaces: string },
      more?: { readonly digest?: DigestSecret | undefined; readonly mustChange?: boolean | undefined },
    ) => Promise<void>
    /**
     * A user's own change. Ends every session and token of the user (epoch + 1) and begins `signIn`, made for the new
     * epoch, in the same transaction. Throws Fault Unauthorized when the password has changed or the user was disabled
     * since `epoch` was read.
     */
    readonly changePassword: (
      change: {
        readonly id: string
        readonly epoch: number
        readonly passwordHash: string
        /** Replaces the digest secret. Without it, the change removes the secret. */
        readonly digest?: DigestSecret | undefined
        readonly signIn: Omit<SignInRecord, 'endsSession'> | undefined
      },
      actor: Actor,
    ) => Promise<void>
    /**
     * Ends every session and token of the user except the family `keep`, on every node from the next request on
     * (epoch + 1). Returns how many sessions ended.
     */
    readonly endSessions: (id: string, keep: string | undefined, actor: Actor) => Promise<number>
    /**
     * Disabling also ends the user's sessions and tokens (epoch + 1). Throws Fault Conflict for the last Admin, and so
     * does `remove` (O6).
     */
    readonly setDisabled: (id: string, disabled: boolean, actor: Actor) => Promise<void>
    readonly remove: (id: string, actor: Actor) => Promise<void>
    /**
     * Removes the counters whose keys begin with one of `counters`, fills the buckets of `guesses`, and records a
     * sign-in from `prefix`, all in one transaction (P5). Throws Fault NotFound when the user no longer exists.
     */
    readonly unlock: (
      id: string,
      limits: {
        readonly counters: readonly string[]
        readonly guesses: readonly string[]
        readonly prefix: string | undefined
      },
      actor: Actor,
    ) => Promise<void>
    /**
     * Throws Fault NotFound when the user no longer exists, and Conflict when the last Admin would lose Admin (O6), or the
     * only permanent one would get an end (O8).
     */
    readonly changeGrants: (id: string, change: StoredRoleChange, actor: Actor) => Promise<Changed>
    /** Grants of enabled users whose notice is due and that no node has claimed, the first to end first. At most 1,000. */
    readonly noticesDue: () => Promise<readonly EndingGrant[]>
    /**
     * Claims the notice of an end for this node, or gives it back for any node. Returns false when another node has
     * claimed it, or the grant has another end.
     */
    readonly claimNotice: (grant: EndingGrant) => Promise<boolean>
    readonly returnNotice: (grant: EndingGrant) => Promise<void>
  }
  readonly sessions: {
    /** Throws Fault Unauthorized when the user has been removed, disabled or given another password meanwhile. */
    readonly begin: (signIn: SignInRecord, actor: Actor) => Promise<void>
    readonly find: (hash: string) => Promise<SessionRow | undefined>
    readonly touch: (hash: string, at: number) => Promise<void>
    /** Ends a session and its refresh family, or a family by its id. */
    readonly endFamily: (familyId: string, actor: Actor) => Promise<void>
    /** The user's sessions that count at `at`, the one used last first. At most 1,000. `only` names a family. */
    readonly list: (
      user: Pick<UserRow, 'id' | 'epoch'>,
      at: number,
      only?: string,
    ) => Promise<readonly SignedInSession[]>
    /** Ends one of the user's families. Returns whether there was one. */
    readonly endOf: (userId: string, familyId: string, actor: Actor) => Promise<boolean>
  }
  readonly tokens: {
    readonly access: (hash: string) => Promise<TokenRow | undefined>
    readonly refresh: (hash: string) => Promise<RefreshRow | undefined>
    /**
     * Renews a family of fixed refresh tokens: stores a new access token and the time of the last use. Throws Fault
     * Unauthorized when the family has ended meanwhile.
     */
    readonly renew: (refreshHash: string, access: TokenRow, at: number) => Promise<void>
    /** Runs in one transaction, so that 50 parallel calls make one rotation (T4). */
    readonly rotate: (
      presentedHash: string,
      successor: { readonly access: TokenRow; readonly refresh: RefreshRow; readonly sealed: string },
      at: number,
      actor: Actor,
    ) => Promise<Rotation>
  }
  readonly keys: {
    readonly add: (key: Omit<KeyRow, 'id' | 'createdAt' | 'revokedAt'>, actor: Actor) => Promise<KeyRow>
    readonly find: (hash: string) => Promise<KeyRow | undefined>
    /** Revoked and expired ones, too. */
    readonly count: () => Promise<number>
    /** All keys with the first `take` names (all) after the name `after`, sorted by name. */
    readonly list: (after?: string, take?: number) => Promise<readonly (KeyRow & { readonly userName: string })[]>
    /** Like `near` of users. */
    readonly near: (typed: string) => Promise<readonly string[]>
    /** Throws Fault NotFound for an unknown name. */
    readonly revoke: (name: string, actor: Actor) => Promise<void>
  }
  readonly heartbeats: {
    /**
     * Asks `admit` whether a new name is accepted, and passes on what it throws. Throws Fault Conflict for a new name
     * when the limit of heartbeats is reached.
     */
    readonly report: (
      heartbeat: Omit<Heartbeat, 'history' | 'run'> & { readonly run?: ReportedRun | undefined },
      admit?: () => void,
    ) => Promise<void>
    /** Sorted by name. */
    readonly list: () => Promise<readonly Heartbeat[]>
    /** Like `near` of users. */
    readonly near: (typed: string) => Promise<readonly string[]>
    /** Throws Fault NotFound for an unknown name. */
    readonly remove: (name: string, actor: Actor) => Promise<void>
  }
  /** Failed sign-ins: atomic counters, at most 100,000 rows (P5). */
  readonly failures: {
    /** The counters of these keys that have a row. */
    readonly read: (keys: readonly string[]) => Promise<ReadonlyMap<string, FailureCount>>
    /**
     * Increments counters in one transaction and returns each of them. A counter starts anew when its last failure is
     * older than its `windowMs`.
     */
    readonly add: (at: number, counters: readonly FailureCounter[]) => Promise<readonly number[]>
  }
  /** Token buckets that limit the guesses for each name, at most 100,000 rows (P5). */
  readonly guesses: {
    readonly level: (name: string, at: number, bucket: Bucket) => Promise<BucketLevel>
    /** Takes a token. Undefined when the bucket is empty. One statement: nodes that take at once take different ones. */
    readonly take: (name: string, at: number, bucket: Bucket) => Promise<BucketLevel | undefined>
    /** Returns a token that was taken. */
    readonly giveBack: (name: string, bucket: Bucket) => Promise<void>
  }
  /** Sign-in by HTTP Digest (A12). */
  readonly digest: {
    /** The key that seals nonces, in hex; the same on every node. */
    readonly nonceKey: () => Promise<string>
    readonly secret: (userId: string) => Promise<DigestSecret | undefined>
    /**
     * Records that a nonce is used with this nc. False when this nc or a higher one was used with it before, or when
     * the secret has changed. One transaction: of two nodes that present the same nc at once, one gets true.
     */
    readonly use: (use: NonceUse) => Promise<boolean>
    /** Removes the secret of a user. Returns whether there was one. */
    readonly remove: (userId: string, actor: Actor) => Promise<boolean>
  }
  /** From where users have signed in. Kept as an HMAC for 90 days, and at most 100 for each user (P5). */
  readonly knownPrefixes: {
    /** The time of the last sign-in with this name from this prefix. Undefined: none. */
    readonly lastAt: (name: string, prefix: string) => Promise<number | undefined>
    /**
     * Whether a sign-in with this name from this prefix after `since` is in memory. The memory has the newest 20,000 that
     * `loadRecent` has read, `lastAt` has found or a sign-in has recorded.
     */
    readonly isRemembered: (name: string, prefix: string, since: number) => boolean
    /** Reads the newest sign-ins into the memory. */
    readonly loadRecent: () => Promise<void>
  }
  /** Users of OpenID providers. An identity is an issuer and a subject, and belongs to one user. */
  readonly identities: {
    readonly find: (issuer: string, subject: string) => Promise<User | undefined>
    readonly list: (userId: string) => Promise<readonly IdentityRow[]>
    /**
     * Adds a user without a password for an identity, with the first of `names` that is free. Returns the user whom the
     * identity belongs to, when another node was first.
     */
    readonly addUser: (
      identity: Omit<IdentityRow, 'createdAt'>,
      user: { readonly names: readonly string[]; readonly displayName: string | undefined },
      actor: Actor,
    ) => Promise<User>
    /** Throws Fault Conflict when the identity belongs to another user. Returns whether anything changed. */
    readonly link: (userId: string, identity: Omit<IdentityRow, 'createdAt'>, actor: Actor) => Promise<boolean>
    /**
     * Removes the user's identities of an issuer, or the one with the subject, and ends every session and token of the
     * user (epoch + 1). Returns how many it removed.
     */
    readonly unlink: (userId: string, issuer: string, subject: string | undefined, actor: Actor) => Promise<number>
    /**
     * The roles from claims of the family of a session or an access token. Empty when there are none, or no longer.
     */
    readonly claimedRoles: (kind: 'session' | 'access', hash: string, at: number) => Promise<readonly string[]>
    /** The key, in hex, that seals browser sign-ins, the same on every node. */
    readonly sealingKey: () => Promise<string>
    /** Records that a browser sign-in is complete. False when it was before. */
    readonly use: (state: string, endsAt: number) => Promise<boolean>
  }
  /** Stores what a right secret changes without a session: all of it in one transaction. */
  readonly settle: (user: Pick<User, 'id' | 'userName' | 'email'>, settlement: Settlement) => Promise<void>
  readonly audit: {
    /** For events that change no row: a failed or locked sign-in, and that somebody read the audit. */
    readonly write: (event: AuditEvent, target: string | undefined, actor: Actor, provider?: string) => Promise<void>
    /**
     * The numbers of entries that this process has written in the last ten minutes (the newest 1,000) and that the store no
     * longer has, each once.
     */
    readonly lost: () => Promise<readonly number[]>
  } & AuditPast &
    AuditSeals
  readonly readings: {
    /**
     * Adds a reading to its series and returns the series, oldest first, this reading last. The reading is stored when
     * the one stored before it is at least `everyMs` old. Throws Fault Conflict when the limit of series is reached.
     */
    readonly keep: (
      reading: StoredReading & { readonly series: string; readonly everyMs: number },
    ) => Promise<readonly StoredReading[]>
    /**
     * Returns since when each of `keys` has exceeded its threshold; `at` for those that did not before. Of the other keys
     * of the series, those that `holds` accepts keep their state, and the rest are forgotten. Throws Fault Conflict like
     * `keep`.
     */
    readonly exceededSince: (state: {
      readonly series: string
      readonly at: number
      readonly keys: readonly string[]
      readonly holds: (key: string) => boolean
    }) => Promise<ReadonlyMap<string, number>>
    /**
     * Renames series, all in one transaction: each move that `moves` returns for the stored names. A name that exists
     * already keeps its series, and the moved one is removed; a second node finds nothing left to move. `moves` may be
     * called more than once.
     */
    readonly rename: (moves: (series: readonly string[]) => readonly SeriesMove[]) => Promise<void>
  }
  /** The silences and acknowledgements that somebody made by hand. */
  readonly silences: SilenceRows
  /**
   * The history of results: of an embedded store in a file of its own, which `open` or the first write makes, otherwise in tables
   * of the same database. Its writes say nothing about the store.
   */
  readonly history: HistoryRows
  /** Confirmed states and incidents, in the database of the history. Its writes say nothing about the store, either. */
  readonly states: StatesRows
  /** Tells stores apart. Made on first use. */
  readonly identity: { readonly id: () => Promise<string> }
  /** The state of the notifications by receiver, in the database of the history, too. */
  readonly outbox: OutboxRows
  /**
   * Nodes that share the store, and what they store of states and of what receivers know, fenced. In the database of the history,
   * too. Undefined for an embedded store, which one server uses.
   */
  readonly nodes: StoredNodes | undefined
  /**
   * Compares the schema with that of svc. While it has what changes the contents of the tables, such as a trigger, every other
   * method throws StoreOutage.
   */
  readonly inspect: () => Promise<SchemaReport>
  /** Whatever writes to the audit waits for this gate before it commits. Undefined: for none. Replaces the gate before. */
  readonly passAudit: (gate: AuditGate | undefined) => void
  /** Drills, and what receivers know of them, in the database of the history, too. */
  readonly drills: DrillRows & { readonly outbox: OutboxRows }
  /** Removes expired rows. `svc serve` calls it periodically. */
  readonly sweep: (at: number) => Promise<void>
  /**
   * Called after each write, with the reason if the store has failed to make it. Replaces the listener before.
   */
  readonly onWrite: (listener: (failure: string | undefined) => void) => void
  /** Commits as much as a sign-in writes, in rows that nobody reads, and something in the history. Throws the store's errors. */
  readonly proveWrites: () => Promise<void>
  /** The files of an embedded store that were opened. */
  readonly files: StoreFiles | undefined
  /** By which everything in the store ends, whatever the clocks of the machines that use it show (W12). */
  readonly clock: StoreClock
  /**
   * The same store for one request. A single query waits 1.8 s at most, but a sequence of queries could wait many times
   * that. The queries of one request share a limit of 1.8 s.
   */
  readonly forRequest: () => Data
  /** Resolves when the store answers. */
  readonly ping: (signal?: AbortSignal) => Promise<void>
  readonly close: () => Promise<void>
}
