/**
 * Ours (O8): with the entry `svc.grants: 1` in the Meta of a role change, the Meta of the answer has the entry
 * `svc.grants`: who granted what, when, why and until when, as JSON. Without it, an assignment that leaves an end alone
 * answers with the grants that keep theirs, and a sign-in with those that end.
 */
export const grantsRequest = { key: 'svc.grants', value: '1' } as const

/** In the Meta of an assignment: when what it grants ends. The answer repeats it. */
export const expiresKey = 'expires'
/** Whether a key of Meta means `expires`. In another letter case or with blanks, as JSV has them, it would grant without end. */
export const isExpiresKey = (key: string): boolean => key.trim().toLowerCase() === expiresKey
/** The value that removes an end. */
export const neverExpires = 'never'
/**
 * In the Meta of an assignment with `expires`: it only moves the ends of what the user holds for a time, to a later
 * instant, and grants nothing new.
 */
export const extensionOnly = { key: 'svc.extends', value: '1' } as const

/** The known facts about a grant. Instants are milliseconds since 1970. */
export type GrantFacts = {
  readonly kind: 'role' | 'permission'
  readonly name: string
  /** Undefined: permanent. */
  readonly endsAt?: number | undefined
  /** Undefined if an earlier version granted it. */
  readonly grantedAt?: number | undefined
  readonly grantedBy?: string | undefined
  readonly reason?: string | undefined
}

const instant = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString()

/** The grants as the value of an entry of Meta. */
export const writeGrants = (grants: readonly GrantFacts[]): string =>
  JSON.stringify(
    grants.map(({ kind, name, endsAt, grantedAt, grantedBy, reason }) => ({
      kind,
      name,
      endsAt: instant(endsAt),
      grantedAt: instant(grantedAt),
      grantedBy,
      reason,
    })),
  )

/**
 * Reads such a value. Undefined for anything else: servers may send anything.
 *
 * @example
 * ```ts
 * readGrants('{}') // undefined
 * ```
 */
export function readGrants(text: string | undefined): readonly GrantFacts[] | undefined {
  const values = text === undefined ? undefined : parsed(text)
  if (!Array.isArray(values)) return undefined
  const grants = values.map(grantIn)
  return grants.every((grant) => grant !== undefined) ? grants : undefined
}

function grantIn(value: unknown): GrantFacts | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { kind, name, ...rest } = value as Readonly<Record<string, unknown>>
  if ((kind !== 'role' && kind !== 'permission') || typeof name !== 'string') return undefined
  const at = (text: unknown): number | undefined => {
    const ms = typeof text === 'string' ? Date.parse(text) : Number.NaN
    return Number.isNaN(ms) ? undefined : ms
  }
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  // An invalid end must not look like a permanent grant.
  if (rest['endsAt'] !== undefined && at(rest['endsAt']) === undefined) return undefined
  return {
    kind,
    name,
    endsAt: at(rest['endsAt']),
    grantedAt: at(rest['grantedAt']),
    grantedBy: text(rest['grantedBy']),
    reason: text(rest['reason']),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
