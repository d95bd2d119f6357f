/** One entry of the keychain: a server and a user. */
export type KeychainPlace = { readonly service: string; readonly user: string }
export type KeychainQuestion = KeychainPlace & {
  /** `prove` writes, reads and removes an entry that nobody needs. */
  readonly does: 'read' | 'write' | 'remove' | 'prove'
  readonly secret?: string | undefined
  /** Characters that one entry holds; longer secrets are kept in parts. Absent: no limit. */
  readonly longest?: number | undefined
}

export type ProblemKind = 'absent' | 'locked' | 'denied' | 'too large' | 'timed out' | 'failed'
export type KeychainProblem = { readonly kind: ProblemKind; readonly message: string }
/** The one line that the child answers with. `secret` is null when there is no entry. */
export type KeychainAnswer =
  | { readonly secret: string | null }
  | { readonly removed: boolean }
  | { readonly problem: KeychainProblem }
