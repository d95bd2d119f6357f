import { coversPermission, grantsRequest, writeGrants } from '../../protocol/index.ts'
import type { Call, Credential } from '../../protocol/service/service.ts'
import type { Data, Grant, User } from '../../store/index.ts'
import { ended, readToken, touchShare } from './tokens.ts'

/** The identity behind a credential, read from the store for this request (T2). */
export type Identity = {
  readonly user: User
  readonly via: 'session' | 'bearer' | 'key' | 'basic' | 'digest'
  /** The session secret, only if the request itself presented it (A6). */
  readonly sessionId: string | undefined
  /** The family of the session or token. A key and a password have none. */
  readonly familyId: string | undefined
  /** The roles of its user and those from claims, or the subset that a key is limited to. The same applies to permissions. */
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  /** Those of them that end by themselves (O8). Roles from claims are not among them. */
  readonly ending: readonly Grant[]
}

/** Identifies the user of a session, a token or a key. Undefined when the credential is not valid, without a reason. */
export async function identify(
  data: Data,
  now: () => number,
  credential: Credential | undefined,
): Promise<Identity | undefined> {
  if (credential === undefined) return undefined
  if (credential.kind === 'session') return await bySession(data, now, credential.secret)
  return (await byAccessToken(data, now, credential.token)) ?? (await byKey(data, now, credential.token))
}

async function bySession(data: Data, now: () => number, secret: string): Promise<Identity | undefined> {
  const hash = readToken('session', secret)
  if (hash === undefined) return undefined
  const at = now()
  // Together they cost one round trip to a database server, and the user is read after what the user has been issued.
  const [row, user, claimed] = await Promise.all([
    data.sessions.find(hash),
    data.users.behind('session', hash),
    data.identities.claimedRoles('session', hash, at),
  ])
  if (!row || ended(row, at) || !isUsable(user, row)) return undefined
  if (at - row.lastUsedAt >= row.idleMs * touchShare) await data.sessions.touch(row.hash, at)
  return { user, via: 'session', sessionId: secret, familyId: row.familyId, ...withClaimed(user, claimed) }
}

async function byAccessToken(data: Data, now: () => number, token: string): Promise<Identity | undefined> {
  const hash = readToken('access', token)
  if (hash === undefined) return undefined
  const at = now()
  const [row, user, claimed] = await Promise.all([
    data.tokens.access(hash),
    data.users.behind('access', hash),
    data.identities.claimedRoles('access', hash, at),
  ])
  if (!row || at >= row.expiresAt || !isUsable(user, row)) return undefined
  return { user, via: 'bearer', sessionId: undefined, familyId: row.familyId, ...withClaimed(user, claimed) }
}

async function byKey(data: Data, now: () => number, token: string): Promise<Identity | undefined> {
  const hash = readToken('key', token)
  if (hash === undefined) return undefined
  const [row, user] = await Promise.all([data.keys.find(hash), data.users.behind('key', hash)])
  if (!row || row.revokedAt !== undefined || (row.expiresAt !== undefined && now() >= row.expiresAt)) return undefined
  if (!user || user.disabled) return undefined
  const { roles, permissions = [] } = row
  // A key restricts its user's rights and never extends them, so that a revocation also affects keys.
  const granted = roles
    ? {
        roles: user.roles.filter((role) => roles.includes(role)),
        permissions: permissions.filter((permission) => coversPermission(user, permission)),
      }
    : { roles: user.roles, permissions: user.permissions }
  return { user, via: 'key', sessionId: undefined, familyId: undefined, ...granted, ending: endingOf(user, granted) }
}

/** The user to whom it was issued, unless the user is disabled, gone, or has another password since (T2). */
export async function usable(
  data: Data,
  issued: { readonly userId: string; readonly epoch: number },
): Promise<User | undefined> {
  const user = await data.users.byId(issued.userId)
  return isUsable(user, issued) ? user : undefined
}

const isUsable = (user: User | undefined, issued: { readonly userId: string; readonly epoch: number }): user is User =>
  user?.id === issued.userId && !user.disabled && user.epoch === issued.epoch

type Rights = Pick<Identity, 'roles' | 'permissions' | 'ending'>

/** The rights of a user within a session: the grants, and the roles that the sign-in has from claims (A13). */
export function withClaimed(user: User, claimed: readonly string[] = []): Rights {
  const { roles, permissions } = user
  const granted = { roles: roles.filter((role) => !claimed.includes(role)), permissions }
  return { roles: [...new Set([...roles, ...claimed])], permissions, ending: endingOf(user, granted) }
}

/** The grants of these roles and permissions that end. */
const endingOf = ({ grants }: User, { roles, permissions }: Omit<Rights, 'ending'>): readonly Grant[] =>
  grants.filter(
    ({ kind, name, endsAt }) => endsAt !== undefined && (kind === 'role' ? roles : permissions).includes(name),
  )

/** The Meta of an answer that says who is signed in: which roles and permissions end (O8). Nothing if none does. */
export const endsMeta = ({ ending }: Rights): { readonly Meta?: Readonly<Record<string, string>> } =>
  ending.length > 0 ? { Meta: { [grantsRequest.key]: writeGrants(ending) } } : {}

/** The caller's address, for the audit. */
export const addressOf = ({ caller }: Pick<Call, 'caller'>): string | undefined =>
  caller.kind === 'http' ? caller.address : undefined
