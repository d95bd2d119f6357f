/**
 * What the store keeps, and the questions asked of it. One query code path serves SQLite and
 * PostgreSQL. Times are milliseconds since 1970; hashes are SHA-256 in lower-case hex. Every method
 * that changes something writes its audit entry in the same transaction: no audit, no change. A call
 * that changes nothing writes none; neither do a renewal, a rotation, a last use, a rehash, a heartbeat
 * and a reading.
 */
export type UserRow = {
  /** A random UUID. */
  readonly id: string
  readonly userName: string
  readonly email: string | undefined
  readonly displayName: string | undefined
  /** An argon2id PHC string; undefined: the user cannot sign in with a password. */
  readonly passwordHash: string | undefined
  readonly disabled: boolean
  readonly createdAt: number
  /** Goes up when the password changes or the user is disabled: what was issued before is void (T2). */
  readonly epoch: number
}
/** In the order granted, first granted first. */
export type Grants = { readonly roles: readonly string[]; readonly permissions: readonly string[] }
export type User = UserRow & Grants

/** Who changed something, from where: for the audit. */
export type Actor = {
  /** `local:alice`, a user name, or `-` for nobody signed in. */
  readonly who: string
  /** The user's id when it is one of the store's. */
  readonly userId?: string | undefined
  readonly address?: string | undefined
  readonly correlationId: string
  readonly reason?: string | undefined
}

export type SessionRow = {
  /** Of the session secret. */
  readonly hash: string
  readonly userId: string
  readonly epoch: number
  /** RememberMe. */
  readonly permanent: boolean
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly idleMs: number
  readonly endsAt: number
  /** The refresh family born with it. */
  readonly familyId: string
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
  /** When it was exchanged for its successor (rotating). */
  readonly usedAt: number | undefined
  /** The successor pair, AES-256-GCM under a key derived from the presented token; erased after 10 s. */
  readonly sealedSuccessor: string | undefined
}
export type KeyRow = {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly userId: string
  /** Undefined: the roles of its user, read at each request. */
  readonly roles: readonly string[] | undefined
  /** Given only with `roles`; undefined with them: none. */
  readonly permissions?: readonly string[] | undefined
  readonly createdAt: number
  readonly expiresAt: number | undefined
  readonly revokedAt: number | undefined
}
export type AuditRow = {
  readonly id: number
  readonly at: number
  readonly event: string
  readonly who: string
  readonly address: string | undefined
  readonly target: string | undefined
  readonly correlationId: string
  readonly before: string | undefined
  readonly after: string | undefined
  readonly reason: string | undefined
}
/** The last sign of life of an agent. */
export type HeartbeatRow = {
  readonly name: string
  /** When it was received; it never goes back. */
  readonly at: number
  /** Who reported it: a user name, or `local:alice`. */
  readonly who: string
  readonly status: 'Ok' | 'Warn' | 'Fail'
  readonly message: string | undefined
  readonly version: string | undefined
  /** How often it means to report. */
  readonly intervalMs: number | undefined
  readonly backlog: number | undefined
  readonly diskFreePercent: number | undefined
  /** By how much the agent's clock was ahead of ours. */
  readonly skewMs: number | undefined
  /** The last ones, this one included, oldest first: for flapping. */
  readonly history: readonly { readonly at: number; readonly status: HeartbeatRow['status'] }[]
}
/** A figure that a run measured. */
export type StoredReading = { readonly at: number; readonly value: number }
/** A sign-in made in one transaction: a session, an access token and a refresh token of one family. */
export type SignInRecord = {
  readonly session: SessionRow
  readonly access: TokenRow
  readonly refresh: RefreshRow
  /** The session presented with the request, which ends (A8). */
  readonly endsSession: string | undefined
}
export type StoredRoleChange = { readonly add: Grants; readonly remove: Grants }
export type Changed = { readonly before: Grants; readonly after: Grants }
export type Rotation =
  | { readonly outcome: 'rotated' }
  /** Exchanged a moment ago (T4): the sealed pair, for whoever presents the same token. */
  | { readonly outcome: 'repeated'; readonly sealedSuccessor: string }
  /** Reused later: the family is dead now. */
  | { readonly outcome: 'reused' }
  | { readonly outcome: 'gone' }

export type Data = {
  readonly users: {
    /** Exact name first, then e-mail; NFC, without letter case (O4). */
    readonly find: (nameOrEmail: string) => Promise<User | undefined>
    readonly byId: (id: string) => Promise<User | undefined>
    readonly list: () => Promise<readonly User[]>
    /** User names that `typed`, which is none, may stand for; a bounded number (rows/near.ts). */
    readonly near: (typed: string) => Promise<readonly string[]>
    /** True when any user exists; when any user that is not disabled holds Admin. */
    readonly any: () => Promise<boolean>
    readonly anyAdmin: () => Promise<boolean>
    readonly holders: (role: string) => Promise<readonly User[]>
    /** The roles that anybody holds, by name, the first 1,000. */
    readonly roleNames: () => Promise<readonly string[]>
    /** Fault Conflict when the name or e-mail is taken, across both columns together. */
    readonly add: (user: Omit<User, 'id' | 'createdAt' | 'epoch' | 'disabled'>, actor: Actor) => Promise<User>
    /**
     * Ends every session and token of the user (epoch + 1). With `replaces`, the hash that was just
     * verified, it only rehashes the same password, ends nothing, and does nothing when the password
     * was changed meanwhile.
     */
    readonly setPassword: (
      id: string,
      passwordHash: string,
      actor: Actor | { readonly replaces: string },
    ) => Promise<void>
    /** Disabling also ends what was issued (epoch + 1). Fault Conflict for the last Admin (O6); so has remove. */
    readonly setDisabled: (id: string, disabled: boolean, actor: Actor) => Promise<void>
    readonly remove: (id: string, actor: Actor) => Promise<void>
    /** Fault NotFound when the user is gone, Conflict when the last Admin would lose Admin (O6). */
    readonly changeGrants: (id: string, change: StoredRoleChange, actor: Actor) => Promise<Changed>
  }
  readonly sessions: {
    /** Fault Unauthorized when the user was removed, disabled or given another password meanwhile. */
    readonly begin: (signIn: SignInRecord, actor: Actor) => Promise<void>
    readonly find: (hash: string) => Promise<SessionRow | undefined>
    readonly touch: (hash: string, at: number) => Promise<void>
    /** Ends a session and its refresh family, or a family by its id. */
    readonly endFamily: (familyId: string, actor: Actor) => Promise<void>
  }
  readonly tokens: {
    readonly access: (hash: string) => Promise<TokenRow | undefined>
    readonly refresh: (hash: string) => Promise<RefreshRow | undefined>
    /** A fixed family's renewal: a new access token, last use noted. Fault Unauthorized when it ended meanwhile. */
    readonly renew: (refreshHash: string, access: TokenRow, at: number) => Promise<void>
    /** One transaction (T4): 50 parallel ones make one rotation. */
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
    readonly list: () => Promise<readonly (KeyRow & { readonly userName: string })[]>
    /** As for users. */
    readonly near: (typed: string) => Promise<readonly string[]>
    /** Fault NotFound for an unknown name. */
    readonly revoke: (name: string, actor: Actor) => Promise<void>
  }
  readonly heartbeats: {
    /** Fault Conflict for a new name when there are as many as may be. */
    readonly report: (heartbeat: Omit<HeartbeatRow, 'history'>) => Promise<void>
    /** In the order of their names. */
    readonly list: () => Promise<readonly HeartbeatRow[]>
    /** As for users. */
    readonly near: (typed: string) => Promise<readonly string[]>
    /** Fault NotFound for an unknown name. */
    readonly remove: (name: string, actor: Actor) => Promise<void>
  }
  /** Failed sign-ins (P5): atomic counters, at most 100,000 rows. */
  readonly failures: {
    readonly read: (key: string) => Promise<{ readonly count: number; readonly lastAt: number } | undefined>
    /** Adds one, beginning anew when the last is older than `windowMs`; gives the count. */
    readonly add: (
      key: string,
      at: number,
      windowMs: number,
      /** `fixed`: the window begins at its first failure, which `lastAt` then is; else at each one anew. */
      window?: 'sliding' | 'fixed',
    ) => Promise<number>
    readonly clear: (key: string) => Promise<void>
  }
  readonly audit: {
    /** For what changes no row: a failed or locked sign-in. */
    readonly write: (event: string, target: string | undefined, actor: Actor) => Promise<void>
    readonly list: (options: { readonly limit: number; readonly before?: number }) => Promise<readonly AuditRow[]>
  }
  readonly readings: {
    /**
     * Adds a reading to its series and gives the series, oldest first, this reading last. It is kept when
     * the one kept before is `everyMs` old or older. Fault Conflict when there are as many series as may be.
     */
    readonly keep: (
      reading: StoredReading & { readonly series: string; readonly everyMs: number },
    ) => Promise<readonly StoredReading[]>
    /**
     * Since when each of `keys` holds, `at` for those that did not hold before; with `hold` all others of
     * the series stay as they are, else they are forgotten. Fault Conflict as above.
     */
    readonly exceededSince: (state: {
      readonly series: string
      readonly at: number
      readonly keys: readonly string[]
      readonly hold: boolean
    }) => Promise<ReadonlyMap<string, number>>
  }
  /** Removes what has expired; called now and then by `svc serve`. */
  readonly sweep: (at: number) => Promise<void>
  /**
   * The same store for one request. A question alone waits 1.8 s at most, and many that follow one another would wait
   * many times that; those of one request wait 1.8 s together.
   */
  readonly forRequest: () => Data
  /** Resolves when the store answers. */
  readonly ping: (signal?: AbortSignal) => Promise<void>
  readonly close: () => Promise<void>
}
