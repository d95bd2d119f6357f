/** The address of a keychain entry: a service and a user. */
export type KeychainPlace = { readonly service: string; readonly user: string }
export type KeychainQuestion = KeychainPlace & {
  /** `prove` writes, reads and removes a test entry. */
  readonly does: 'read' | 'write' | 'remove' | 'prove'
  readonly secret?: string | undefined
  /** Characters that one entry can hold. Longer secrets are stored in parts. Absent: no limit. */
  readonly longest?: number | undefined
}

export type ProblemKind = 'absent' | 'locked' | 'denied' | 'too large' | 'timed out' | 'failed'
export type KeychainProblem = { readonly kind: ProblemKind; readonly message: string }
/** The single line that the child replies with. `secret` is null when there is no entry. */
export type KeychainAnswer =
  | { readonly secret: string | null }
  | { readonly removed: boolean }
  | { readonly problem: KeychainProblem }
