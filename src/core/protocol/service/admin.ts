import type { AdminOperation, Heartbeat, Request, Response } from '../index.ts'

/** The problem with a value: its field, and a sentence that begins with the field in quotes. */
export type ValueProblem = { readonly FieldName: string; readonly Message: string }

/**
 * Administration for anybody who can open the store (P8), and for Admins over HTTP (P70). Faults name the field that they
 * concern, by the names of the operations. An unknown user or key is NotFound; a taken name, or removing the last Admin, is
 * Conflict.
 */
export type Admin = {
  /** The store's name in answers: the file, or the database's URL without its password. */
  readonly store: string
  readonly schema: {
    /** Objects in the database that svc did not make and does not use, as `the table "notes"`. */
    readonly foreign: () => Promise<readonly string[]>
  }
  readonly users: {
    /** Makes the store if it does not exist. Without a password the user cannot sign in by password. */
    readonly add: (user: NewUser, by: AdminActor) => Promise<UserFacts>
    /** At most `take` users (1,000), sorted by name: the first ones, or those after the name `after`. */
    readonly list: (after?: string, take?: number) => Promise<readonly UserFacts[]>
    readonly count: () => Promise<number>
    readonly any: () => Promise<boolean>
    /** Names similar to an unknown one. Does not search all of a large store. */
    readonly near: (userName: string) => Promise<readonly string[]>
    /** Finds a user by exact name, otherwise by e-mail, as do all methods below. */
    readonly show: (userName: string) => Promise<UserFacts>
    /**
     * Ends every session and token of the user. With `digest`, also makes a digest secret; without it, removes the one
     * that the user has. `mustChange`: the user may do nothing before it is changed again.
     */
    readonly passwd: (
      userName: string,
      password: string,
      by: AdminActor,
      digest?: DigestConsent,
      mustChange?: boolean,
    ) => Promise<UserFacts>
    /** Removes the digest secret and keeps the password. `removed`: whether there was a secret. */
    readonly removeDigest: (
      userName: string,
      by: AdminActor,
    ) => Promise<{ readonly user: UserFacts; readonly removed: boolean }>
    readonly disable: (userName: string, by: AdminActor) => Promise<UserFacts>
    readonly enable: (userName: string, by: AdminActor) => Promise<UserFacts>
    /**
     * Ends the locks and limits of failed sign-ins with the user's names (P5). `from`: an IP address from which the user
     * may then sign in even if guessing continues.
     */
    readonly unlock: (userName: string, from: string | undefined, by: AdminActor) => Promise<UserFacts>
    /**
     * Gives an identity of an OpenID provider to the user (T7): `issuer` and `subject` as in its tokens. Returns whether
     * anything changed. Throws Conflict when it belongs to another user.
     */
    readonly link: (userName: string, identity: IdentityFacts, by: AdminActor) => Promise<boolean>
    /**
     * Takes the user's identities of an issuer away, or the one with the subject, and ends every session and token of
     * the user. Returns how many identities it removed.
     */
    readonly unlink: (
      userName: string,
      identity: { readonly issuer: string; readonly subject?: string | undefined },
      by: AdminActor,
    ) => Promise<number>
    readonly identities: (userName: string) => Promise<readonly IdentityFacts[]>
    /** Returns the removed user. */
    readonly remove: (userName: string, by: AdminActor) => Promise<UserFacts>
  }
  readonly keys: {
    /** `secret` is the key itself, which only this call returns. */
    readonly create: (key: NewKey, by: AdminActor) => Promise<{ readonly key: KeyFacts; readonly secret: string }>
    /** All keys with the first `take` names, or with those after the name `after`, sorted by name. */
    readonly list: (after?: string, take?: number) => Promise<readonly KeyFacts[]>
    readonly near: (name: string) => Promise<readonly string[]>
    readonly revoke: (name: string, by: AdminActor) => Promise<void>
  }
  readonly roles: {
    readonly show: (userName: string) => Promise<UserFacts>
    /** The users with a role, as `users.list`. */
    readonly holders: (role: string, after?: string, take?: number) => Promise<readonly UserFacts[]>
    /** The number of users with a role. */
    readonly count: (role: string) => Promise<number>
    /** The roles that any user holds, sorted by name, at most 1,000. */
    readonly names: () => Promise<readonly string[]>
    /**
     * The users who held a role at a time, from the audit (O9). Throws Fault Conflict for a time of which the audit says
     * nothing, and Usage for one in the future.
     */
    readonly holdersAt: (role: string, at: Date) => Promise<PastHolders>
    /**
     * The entries of the audit about a user's roles, oldest first. Throws Fault NotFound for a name that it never had.
     */
    readonly history: (userName: string) => Promise<readonly AuditFacts[]>
  }
  readonly heartbeats: {
    readonly list: () => Promise<readonly Heartbeat[]>
    readonly near: (name: string) => Promise<readonly string[]>
    /** Removes an agent that is gone for good. */
    readonly remove: (name: string, by: AdminActor) => Promise<void>
  }
  readonly audit: {
    /**
     * Newest first. `before` limits the list to entries with a smaller id, `user` to those that the user made or that are
     * about the user, and `role` to those that assigned or removed it.
     */
    readonly list: (options: {
      readonly limit: number
      readonly before?: number | undefined
      readonly user?: string | undefined
      readonly events?: readonly string[] | undefined
      readonly since?: Date | undefined
      readonly until?: Date | undefined
      readonly role?: string | undefined
    }) => Promise<readonly AuditFacts[]>
    /** Records that somebody read the audit. */
    readonly noteReading: (by: AdminActor) => Promise<void>
    /** Seals what has no seal, and returns the newest seal. Undefined: the audit has no entry (S13). */
    readonly head: () => Promise<(AuditHead & { readonly at: Date }) | undefined>
    /** Seals what has no seal, and verifies the chain. `head`: one that was kept elsewhere. */
    readonly verify: (head: AuditHead | undefined, signal: AbortSignal) => Promise<AuditVerdict>
    /** Seals what has no seal, and writes the chain with its entries as lines. Returns the newest seal. */
    readonly export: (write: (line: string) => Promise<void>, signal: AbortSignal) => Promise<AuditHead | undefined>
  }
}
/** The number and the hash of a seal. */
export type AuditHead = { readonly number: number; readonly hash: string }
/** The verdict of the chain of seals on the audit. */
export type AuditVerdict = {
  /** In the order of the seals, at most 100. Empty: the audit is intact. */
  readonly problems: readonly {
    /** The seal at which it shows. */
    readonly seal: number
    readonly kind: 'edit' | 'deletion' | 'swap' | 'insertion' | 'seal' | 'cut'
    readonly sentence: string
  }[]
  /** Problems beyond those. */
  readonly more: number
  readonly seals: number
  /** Sealed entries that are there. */
  readonly entries: number
  /** Refusals that were deleted because of their age. */
  readonly pruned: number
  /** Entries that no seal has yet. */
  readonly unsealed: number
  readonly head: AuditHead | undefined
  /** The first seal, in milliseconds since 1970: the chain says nothing of changes before it. */
  readonly began: { readonly number: number; readonly at: number } | undefined
  /** Entries older than the first seal. */
  readonly entriesBefore: number
  /** In a stream: lines that repeat an earlier one, lines that are cut off, and entries whose change was refused. */
  readonly repeated: number
  readonly torn: number
  readonly withdrawn: number
  /** In a stream that begins later: entries that were written before it. */
  readonly earlier: number
}
/** Who held a role at a time. */
export type PastHolders = {
  /** Sorted by name. */
  readonly users: readonly PastHolder[]
  /** All roles that anybody held then. */
  readonly roles: readonly string[]
  /** The earliest time of which the audit says who held which role. */
  readonly answersFrom: Date
  /** Users who are linked to an account of an OpenID provider: roles that they had from claims are not in the audit. */
  readonly linkedUsers: number
}
export type PastHolder = {
  readonly userName: string
  readonly disabled: boolean
  /** When the role was to end by itself. */
  readonly endsAt: Date | undefined
}
/** The administrator, for the audit. */
export type AdminActor = {
  /** `local:alice`, or the name of an Admin who is signed in. */
  readonly who: string
  readonly userId?: string | undefined
  readonly address?: string | undefined
  readonly correlationId: string
  readonly reason?: string | undefined
}
/** A caller of an operation. `session`: of one over HTTP, the session or the key. */
export type AdminCaller = AdminActor & { readonly session?: string | undefined; readonly signal: AbortSignal }
/** The operations of administration, for a caller who has been authorized. */
export type Administration = {
  readonly [O in AdminOperation]: (request: Request<O>, by: AdminCaller) => Promise<Response<O>>
}
/** A user as an OpenID provider knows it. */
export type IdentityFacts = { readonly issuer: string; readonly subject: string }
export type NewUser = {
  readonly userName: string
  readonly password?: string | undefined
  /** The user may do nothing before the password is changed (P71). */
  readonly mustChangePassword?: boolean | undefined
  /** Makes a digest secret of the password (A12). Absent: none. */
  readonly digest?: DigestConsent | undefined
  readonly email?: string | undefined
  readonly displayName?: string | undefined
  readonly roles?: readonly string[] | undefined
  readonly permissions?: readonly string[] | undefined
}
/** That a digest secret is made; `forAdmin`: that it is valid while the user is Admin. */
export type DigestConsent = { readonly forAdmin: boolean }
export type UserFacts = {
  readonly id: string
  readonly userName: string
  readonly email: string | undefined
  readonly displayName: string | undefined
  readonly disabled: boolean
  readonly hasPassword: boolean
  readonly mustChangePassword: boolean
  /**
   * Whether the user has a digest secret, and whether it is valid: not for an Admin without consent. Absent in lists.
   */
  readonly digest?: 'none' | 'valid' | 'not for Admin' | undefined
  readonly createdAt: Date
  /** In the order granted. */
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
}
export type NewKey = {
  readonly name: string
  readonly userName: string
  /** Absent: all roles that its user holds at each request. Given: those of them that the user still holds. */
  readonly roles?: readonly string[] | undefined
  /**
   * Limits the key to those of these permissions that the user still holds. It then has no roles unless roles are
   * given too.
   */
  readonly permissions?: readonly string[] | undefined
  /** Milliseconds from now. Absent: valid until revoked. */
  readonly expiresInMs?: number | undefined
}
export type KeyFacts = {
  readonly name: string
  readonly userName: string
  /** Undefined: all roles that its user holds. */
  readonly roles: readonly string[] | undefined
  /** Undefined when roles are given: no permissions. */
  readonly permissions?: readonly string[] | undefined
  readonly createdAt: Date
  readonly expiresAt: Date | undefined
  readonly revokedAt: Date | undefined
}
export type AuditFacts = {
  readonly id: number
  readonly at: Date
  readonly event: string
  readonly who: string
  readonly address: string | undefined
  readonly target: string | undefined
  readonly correlationId: string
  readonly before: string | undefined
  readonly after: string | undefined
  readonly reason: string | undefined
}
