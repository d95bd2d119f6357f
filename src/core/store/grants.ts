import type { Grant, GrantEdits, Grants, Holdings, StoredRoleChange } from './data.ts'

/**
 * The decisions about grants over time (O8): pure functions of the grants and an instant, in milliseconds since 1970.
 */

/** The role of administrators, which at least one user must have (O6). */
export const admin = 'Admin'

/**
 * Whether a grant has ended. It holds until the instant before its end.
 *
 * @example
 * ```ts
 * hasEnded({ endsAt: 1_000 }, 999) // false
 * hasEnded({ endsAt: 1_000 }, 1_000) // true
 * ```
 */
export const hasEnded = ({ endsAt }: Pick<Grant, 'endsAt'>, at: number): boolean => endsAt !== undefined && at >= endsAt

/** The grants with their names by kind. */
export const holdingsOf = (grants: readonly Grant[]): Holdings => ({
  roles: namesOf(grants, 'role'),
  permissions: namesOf(grants, 'permission'),
  grants,
})

/** Each once: a node of an earlier version may grant a permission again by its former name (M8). */
const namesOf = (grants: readonly Grant[], kind: Grant['kind']): readonly string[] => [
  ...new Set(grants.flatMap((grant) => (grant.kind === kind ? [grant.name] : []))),
]

/** Who grants, when and why. */
export type Giving = Required<Pick<Grant, 'grantedAt' | 'grantedBy' | 'reason'>>

/** The grants of names that nobody holds yet. */
export const newGrants = ({ roles, permissions }: Grants, endsAt: number | undefined, by: Giving): readonly Grant[] =>
  [
    ...[...new Set(roles)].map((name) => ({ kind: 'role', name }) as const),
    ...[...new Set(permissions)].map((name) => ({ kind: 'permission', name }) as const),
  ].map((grant) => ({ ...grant, endsAt, ...by }))

/** The edits that a change makes to the grants of a user. A name that is both added and removed stays. */
export function grantEdits(
  grants: readonly Grant[],
  { add, remove, endsAt }: Pick<StoredRoleChange, 'add' | 'remove' | 'endsAt'>,
  by: Giving,
): GrantEdits {
  const names = (grants: Grants, kind: Grant['kind']) => (kind === 'role' ? grants.roles : grants.permissions)
  const isIn = (grants: Grants, { kind, name }: Grant): boolean => names(grants, kind).includes(name)
  const end = endsAt === 'never' ? undefined : endsAt
  return {
    removed: grants.filter((grant) => isIn(remove, grant) && !isIn(add, grant)),
    added: newGrants(add, end, by).filter(({ kind, name }) => !isHeld(grants, kind, name)),
    changed: endsAt === undefined ? [] : grants.filter((grant) => isIn(add, grant) && grant.endsAt !== end),
  }
}

const isHeld = (grants: readonly Grant[], kind: Grant['kind'], name: string): boolean =>
  grants.some((grant) => grant.kind === kind && grant.name === name)

export const isNoChange = ({ removed, added, changed }: GrantEdits): boolean =>
  removed.length + added.length + changed.length === 0

/** The grants of the user after the edits, the oldest first. `endsAt`: the end of those that get a new end. */
export const afterEdits = (
  grants: readonly Grant[],
  { removed, added, changed }: GrantEdits,
  endsAt: StoredRoleChange['endsAt'],
  by: Giving,
): Holdings =>
  holdingsOf([
    ...grants
      .filter((grant) => !removed.includes(grant))
      .map((grant) =>
        changed.includes(grant) ? { ...grant, ...by, endsAt: endsAt === 'never' ? undefined : endsAt } : grant,
      ),
    ...added,
  ])

/** The grant of Admin, if there is one. */
export const adminGrant = (grants: readonly Grant[]): Grant | undefined =>
  grants.find(({ kind, name }) => kind === 'role' && name === admin)

/** Whether the edits take Admin away, or give a permanent Admin an end. */
export const endsAdmin = ({ removed, changed }: GrantEdits): boolean =>
  adminGrant(removed) !== undefined || adminGrant(changed.filter(({ endsAt }) => endsAt === undefined)) !== undefined

/**
 * When a key ends that acts as a user with these grants. While the user is a temporary Admin, a key with that role ends
 * with it at the latest (O8). `roles`: those that the key is limited to. Returns `too late` if a later end was
 * requested.
 */
export function keyEnd(
  grants: readonly Grant[],
  roles: readonly string[] | undefined,
  limit: number | undefined,
): number | undefined | 'too late' {
  const end = roles === undefined || roles.includes(admin) ? adminGrant(grants)?.endsAt : undefined
  if (end === undefined) return limit
  if (limit === undefined) return end
  return limit > end ? 'too late' : limit
}

/** Notices come when a tenth of the time is left, at least five minutes and at most a day ahead (O8). */
const noticeShare = 0.1
const leastNoticeMs = 5 * 60_000
export const mostNoticeMs = 86_400_000

/**
 * When receivers of notifications are notified that a grant ends. Undefined for a permanent grant, and for one that is
 * not longer than the least notice.
 */
export function noticeAt({ endsAt, grantedAt }: Pick<Grant, 'endsAt' | 'grantedAt'>): number | undefined {
  if (endsAt === undefined) return undefined
  const length = grantedAt === undefined ? Number.POSITIVE_INFINITY : endsAt - grantedAt
  if (length <= leastNoticeMs) return undefined
  return endsAt - Math.min(mostNoticeMs, Math.max(leastNoticeMs, length * noticeShare))
}
