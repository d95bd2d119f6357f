import { ServerType } from './enums.ts'

/** The permission to read the details of health answers. `health:Sql` is the same for one server type. */
const healthPermission = 'health'

/**
 * The permission to send heartbeats. `heartbeat:NAME` is the same for one name, and `heartbeat:NAME*` for all names that
 * begin with NAME.
 */
const heartbeatPermission = 'heartbeat'

/** The permission to drill. There is no part of it. */
export const drillPermission = 'drill'

/** The permission to silence and to acknowledge, and to end both (M8). There is none for less. */
export const silencePermission = 'silence'
/** Its name in earlier versions, whose nodes may still grant it. */
export const formerSilencePermission = 'quiet'

/**
 * The present name of a permission that a store contains or an audit entry records.
 *
 * @example
 * ```ts
 * presentPermission('quiet') // 'silence'
 * presentPermission('health') // 'health'
 * ```
 */
export const presentPermission = (name: string): string => (name === formerSilencePermission ? silencePermission : name)

/** Every name under which a store may contain a permission. */
export const storedPermissions = (name: string): readonly string[] =>
  name === silencePermission ? [silencePermission, formerSilencePermission] : [name]

/** The roles and permissions of a caller. */
type Grants = { readonly roles: readonly string[]; readonly permissions: readonly string[] }

/**
 * Whether a caller reads the details of the health answers of a server type, or without `type` those that belong to no
 * single type (S11): with any role, or with the permission. An account that only sends heartbeats has neither.
 */
export const readsDetails = ({ roles, permissions }: Grants, type?: ServerType): boolean =>
  roles.length > 0 ||
  permissions.includes(healthPermission) ||
  (type !== undefined && permissions.includes(`${healthPermission}:${type}`))

/** Whether a caller may send heartbeats of that name (B2). */
export const maySendHeartbeat = ({ roles, permissions }: Grants, name: string): boolean =>
  roles.includes('Admin') ||
  permissions.some(
    (permission) => permission === heartbeatPermission || isCovered(name, namesOf(permission, heartbeatPermission)),
  )

/** Whether a caller may silence and acknowledge (Q1). */
export const maySilence = ({ roles, permissions }: Grants): boolean =>
  roles.includes('Admin') || permissions.includes(silencePermission)

/** The part after `kind:` in a permission, or undefined for a permission of another kind. */
const namesOf = (permission: string, kind: string): string | undefined =>
  permission.startsWith(`${kind}:`) ? permission.slice(kind.length + 1) : undefined

/** Whether a name, or all names of a narrower pattern, are among those of `pattern`. */
const isCovered = (name: string, pattern: string | undefined): boolean =>
  pattern?.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern

/** Whether the permission, or one of the same kind for less, satisfies an operation that requires `required`. */
export const isOfKind = (permission: string, required: string): boolean =>
  permission === required || namesOf(permission, required) !== undefined

/**
 * Whether a user's key may have the permission: the user holds it, or holds more of the same kind.
 *
 * @example
 * ```ts
 * coversPermission({ roles: [], permissions: ['health'] }, 'health:Sql') // true
 * ```
 */
export function coversPermission(grants: Grants, permission: string): boolean {
  if (grants.permissions.includes(permission)) return true
  const names = namesOf(permission, heartbeatPermission)
  if (names !== undefined) return maySendHeartbeat({ ...grants, roles: [] }, names)
  const type = ServerType.values.find((each) => each === namesOf(permission, healthPermission))
  return (permission === healthPermission || type !== undefined) && readsDetails(grants, type)
}

/**
 * The mistake in a permission, as a sentence without a full stop: after `health:` it must name a server type, and after
 * `heartbeat:` a name, in which `*` may only be the end.
 *
 * @example
 * ```ts
 * permissionMistake('health:Sql') // undefined
 * ```
 */
export function permissionMistake(permission: string): string | undefined {
  const names = namesOf(permission, heartbeatPermission)
  if (names !== undefined) {
    if (names !== '' && names !== '*' && !names.slice(0, -1).includes('*')) return undefined
    return `The permission "${permission}" names no heartbeat: use heartbeat, heartbeat:NAME, or heartbeat:NAME* for all names that begin with NAME`
  }
  if (namesOf(permission, drillPermission) !== undefined) {
    return `The permission "${permission}" does not exist: a drill cannot be limited, use ${drillPermission}`
  }
  if (permission === formerSilencePermission) {
    return `The permission "${permission}" does not exist: use ${silencePermission}`
  }
  if ([silencePermission, formerSilencePermission].some((kind) => namesOf(permission, kind) !== undefined)) {
    return `The permission "${permission}" does not exist: use ${silencePermission}, which is for all monitors`
  }
  if (namesOf(permission, healthPermission) === undefined) return undefined
  const valid = ServerType.values.map((type) => `${healthPermission}:${type}`)
  return valid.includes(permission)
    ? undefined
    : `The permission "${permission}" names no server type: use one of ${valid.join(', ')}`
}
