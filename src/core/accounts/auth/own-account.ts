import { emptyField, Fault, invalidField } from '../../base/errors.ts'
import type {
  ChangePassword,
  ChangePasswordResponse,
  EndSession,
  EndSessionResponse,
  GetSessions,
  GetSessionsResponse,
} from '../../protocol/index.ts'
import type { Call } from '../../protocol/service/service.ts'
import type { Actor, SignedInSession, User } from '../../store/index.ts'
import { findUser } from './administration.ts'
import { type AuthContext, newSession } from './authenticate.ts'
import type { Identity } from './identify.ts'
import { refuseFields } from './names.ts'
import { passwordProblems } from './password-policy.ts'
import { findProvider } from './providers/index.ts'
import { settleSignIn } from './verify.ts'

/** The signed-in user, or this machine's account, which has no identity (P8). Never a key. */
export type OwnCaller = { readonly identity: Identity | undefined; readonly actor: Actor }

/**
 * Changes the password of the signed-in user (P9). A wrong current password is counted, audited and delayed like a
 * failed sign-in (P5). Everything that the user was issued before ends, the present session too, because a thief may
 * share it; the answer has a new one in its place.
 */
export async function changePassword(
  context: AuthContext,
  request: ChangePassword,
  call: Call,
  { identity, actor }: OwnCaller,
): Promise<ChangePasswordResponse> {
  if (!identity) {
    throw new Fault('Usage', 'nobody is signed in on this machine: its account administers users instead', {
      hints: ['svc users passwd NAME'],
    })
  }
  const { data, now, passwords } = context
  const { user, familyId } = identity
  const { CurrentPassword: current = '', NewPassword: password = '' } = request
  refuseFields([
    ...(current === '' ? [emptyField('CurrentPassword', 'Current Password')] : []),
    ...(password === ''
      ? [emptyField('NewPassword', 'New Password')]
      : await passwordProblems('NewPassword', password, user)),
  ])
  if (user.passwordHash === undefined) {
    throw new Fault('Conflict', 'This user has no password: an Admin can set the first one', {
      hints: ['An Admin: svc users passwd NAME'],
    })
  }
  await proveCurrent(context, user, current, call)
  if (current === password) refuseFields([invalidField('NewPassword', 'must differ from the current password')])
  const passwordHash = await passwords.hash(password, call.signal)
  const at = now()
  const [present] = familyId === undefined ? [] : await data.sessions.list(user, at, familyId)
  const next =
    present && newSession(context.lifetimes, at, { id: user.id, epoch: user.epoch + 1 }, renewable(context, present))
  const digest = await newDigestSecret(context, user, password)
  const change = { id: user.id, epoch: user.epoch, passwordHash, digest, signIn: next?.record }
  await data.users.changePassword(change, actor)
  if (!next) return {}
  const { sessionId, bearerToken, refreshToken } = next.tokens
  return {
    SessionId: sessionId,
    RememberMe: present.permanent,
    BearerToken: bearerToken,
    ...(refreshToken === undefined ? {} : { RefreshToken: refreshToken }),
  }
}

/** For users who have a digest secret, where digest is on. Elsewhere nobody uses it, and the change removes it. */
async function newDigestSecret({ data, ways }: AuthContext, user: User, password: string) {
  const before = ways.digest ? await data.digest.secret(user.id) : undefined
  if (!before) return undefined
  const { digestSecret } = await import('./digest/secret.ts')
  return digestSecret(user.userName, password, before.forAdmin)
}

/** A family of fixed tokens that the server no longer renews goes on without a refresh token. */
const renewable = ({ refresh }: AuthContext, session: SignedInSession): SignedInSession =>
  session.kind === 'fixed' && refresh === 'rotating' ? { ...session, kind: undefined } : session

/**
 * Throws Fault BadRequest for a wrong password, with the status 400: clients answer a 401 by renewing their token and
 * sending the password again, which would count twice.
 */
async function proveCurrent(context: AuthContext, user: User, password: string, call: Call): Promise<void> {
  const provider = await findProvider('credentials', context.ways)
  try {
    const proved = await provider?.signIn(context, { UserName: user.userName, Password: password }, call)
    if (proved) await settleSignIn(context, proved)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    if (error.fault === 'Unauthorized' || error.errorCode === 'ValidationException') {
      refuseFields([invalidField('CurrentPassword', 'is not the current password')])
    }
    throw error
  }
}

/** Lists the sessions of the signed-in user or, for an Admin, of another user (T8). */
export async function getSessions(
  { data, now }: AuthContext,
  { UserName }: GetSessions,
  caller: OwnCaller,
): Promise<GetSessionsResponse> {
  const user = await whose(data, UserName, caller)
  const sessions = await data.sessions.list(user, now())
  return {
    UserName: user.userName,
    Sessions: sessions.map((session) => ({
      Id: session.familyId,
      ...(session.createdAt === undefined ? {} : { CreatedAt: new Date(session.createdAt) }),
      LastUsedAt: new Date(session.lastUsedAt),
      ExpiresAt: new Date(session.expiresAt),
      RememberMe: session.permanent,
      Provider: session.provider,
      Current: session.familyId === caller.identity?.familyId,
    })),
  }
}

/** Ends one session, all but the present one, or all, with their tokens (T8). */
export async function endSession(
  { data }: AuthContext,
  request: EndSession,
  caller: OwnCaller,
): Promise<EndSessionResponse> {
  const { Id = '', Others: others = false, All: all = false } = request
  if ([Id !== '', others, all].filter(Boolean).length !== 1) {
    refuseFields([invalidField('Id', 'is required, or one of Others and All, and only one of the three')])
  }
  const user = await whose(data, request.UserName, caller)
  if (Id !== '') {
    if (!(await data.sessions.endOf(user.id, Id, caller.actor))) {
      throw new Fault('NotFound', 'There is no such session: it has ended, or belongs to another user')
    }
    return { Ended: 1 }
  }
  // Without a session of the caller's own among them, all are others.
  const keep = others && caller.identity?.user.id === user.id ? caller.identity.familyId : undefined
  return { Ended: await data.users.endSessions(user.id, keep, caller.actor) }
}

/** The user whose sessions are meant. Throws Forbidden where that is another user and the caller is not an Admin. */
async function whose(data: AuthContext['data'], name: string | undefined, { identity }: OwnCaller): Promise<User> {
  if (name === undefined || name === '') {
    if (identity) return identity.user
    throw new Fault('Usage', 'nobody is signed in on this machine: name the user', { hints: ['--user NAME'] })
  }
  // Whether a name exists is for Admins only.
  if (identity && !identity.roles.includes('Admin')) {
    const user = await data.users.find(name)
    if (user?.id === identity.user.id) return user
    throw new Fault('Forbidden')
  }
  return await findUser(data, name)
}
