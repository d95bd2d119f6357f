import { randomUUID } from 'node:crypto'
import { Fault } from '../../base/errors.ts'
import {
  type Authenticate,
  type AuthenticateResponse,
  authPurpose,
  mustChangeCode,
  mustChangeKey,
} from '../../protocol/index.ts'
import type { BrowserSignIn, Call, DigestCredential, PasswordCredential } from '../../protocol/service/service.ts'
import type { Actor, Data, RefreshRow, SignInRecord, User } from '../../store/index.ts'
import { addressOf, endsMeta, type Identity, identify, usable, withClaimed } from './identify.ts'
import { findProvider, providerName } from './providers/index.ts'
import type { Provider, ProviderContext, VerifiedUser } from './providers/provider.ts'
import { type Lifetimes, newToken, readToken } from './tokens.ts'
import { settleSignIn } from './verify.ts'

export type SessionOptions = {
  /** Whether the user asked to stay signed in (RememberMe). */
  readonly permanent: boolean
  /** Undefined: without a refresh token. */
  readonly kind: RefreshRow['kind'] | undefined
  readonly provider: string
  /** The hash of the session that came with the request. The sign-in ends it (A8). */
  readonly endsSession: string | undefined
}

/** The tokens that a sign-in issues. Each is sent once and not stored in clear text. */
export type IssuedTokens = {
  readonly sessionId: string
  readonly bearerToken: string
  readonly refreshToken: string | undefined
}

/** Creates a session, an access token and a refresh token of one family, in one transaction. */
export async function issueSession(
  data: Data,
  lifetimes: Lifetimes,
  now: number,
  user: VerifiedUser,
  options: SessionOptions,
  actor: Actor,
): Promise<IssuedTokens> {
  const { record, tokens } = newSession(lifetimes, now, user, options)
  // A renewal does not ask the provider again, so that these roles end even if the user stays signed in.
  const endsAt = now + lifetimes.session.usual.absolute
  const claimedRoles = user.claimedRoles?.length ? { roles: user.claimedRoles, endsAt } : undefined
  const settles = user.settles && { ...user.settles, user }
  await data.sessions.begin({ ...record, endsSession: options.endsSession, claimedRoles, settles }, actor)
  return tokens
}

/** A session and its tokens, not yet stored. */
export function newSession(
  lifetimes: Lifetimes,
  now: number,
  user: Pick<User, 'id' | 'epoch'>,
  options: Pick<SessionOptions, 'permanent' | 'kind' | 'provider'>,
): { readonly record: Omit<SignInRecord, 'endsSession' | 'settles'>; readonly tokens: IssuedTokens } {
  const { permanent, kind, provider } = options
  const [session, access, refresh] = [newToken('session'), newToken('access'), newToken('refresh')]
  const span = permanent ? 'permanent' : 'usual'
  const issued = { userId: user.id, epoch: user.epoch, familyId: randomUUID() }
  const record = {
    session: {
      ...issued,
      hash: session.hash,
      permanent,
      provider,
      createdAt: now,
      lastUsedAt: now,
      idleMs: lifetimes.session[span].idle,
      endsAt: now + lifetimes.session[span].absolute,
    },
    access: { ...issued, hash: access.hash, expiresAt: now + lifetimes.access },
    refresh: kind && {
      ...issued,
      hash: refresh.hash,
      kind,
      permanent,
      provider,
      createdAt: now,
      idleMs: lifetimes.refresh[span].idle,
      lastUsedAt: now,
      endsAt: now + lifetimes.refresh[span].absolute,
      usedAt: undefined,
      sealedSuccessor: undefined,
    },
  }
  const refreshToken = kind && refresh.text
  return { record, tokens: { sessionId: session.text, bearerToken: access.text, refreshToken } }
}

/** The parts of a call that identify the caller. */
export type Presenting = Pick<Call, 'caller' | 'credential' | 'correlationId' | 'signal'>

/**
 * Identifies the caller; undefined when the credential is not valid (A9, A10). A password is checked as in a
 * sign-in, and a wrong one is counted and audited in the same way (P5), but no session begins. Throws like a sign-in
 * when there are too many at once, and Forbidden for a user who has to change the password first (P71), unless
 * `mayHaveToChange`.
 */
export async function authenticateCall(
  context: ProviderContext,
  call: Presenting,
  mayHaveToChange = false,
): Promise<Identity | undefined> {
  const identity = await identityOf(context, call)
  if (mayHaveToChange || !identity?.user.mustChangePassword || identity.via === 'key') return identity
  throw new Fault('Forbidden', 'The password must be changed first: svc passwd, or POST /password', {
    errorCode: mustChangeCode,
  })
}

async function identityOf(context: ProviderContext, call: Presenting): Promise<Identity | undefined> {
  const { credential } = call
  if (credential?.kind === 'basic') return await byPassword(context, credential, call)
  if (credential?.kind === 'digest') return await byDigest(context, credential, call)
  return await identify(context.data, context.now, credential)
}

async function byPassword(
  context: ProviderContext,
  { userName, password }: PasswordCredential,
  call: Presenting,
): Promise<Identity | undefined> {
  if (userName.trim() === '' || password.trim() === '') return undefined
  const provider = await findProvider('credentials', context.ways)
  if (!provider) return undefined
  try {
    const user = await provider.signIn(context, { UserName: userName, Password: password }, call)
    await settleSignIn(context, user)
    return forOneRequest(user, 'basic')
  } catch (error) {
    if (error instanceof Fault && error.fault === 'Unauthorized') return undefined
    throw error
  }
}

const forOneRequest = (user: User, via: 'basic' | 'digest'): Identity => ({
  user,
  via,
  sessionId: undefined,
  familyId: undefined,
  ...withClaimed(user),
})

/**
 * The users that digests have proved. A digest is valid once, but a request may need its caller more than once, and a
 * batch needs it for each of its parts.
 */
const provedBy = new WeakMap<DigestCredential, Promise<User | undefined>>()

async function byDigest(
  context: ProviderContext,
  credential: DigestCredential,
  call: Presenting,
): Promise<Identity | undefined> {
  const before = provedBy.get(credential)
  const proved = before ?? userByDigest(context, credential, call)
  provedBy.set(credential, proved)
  const user = await proved
  if (!user) return undefined
  // What happened since then counts (T2).
  const current = before ? await usable(context.data, { userId: user.id, epoch: user.epoch }) : user
  return current && forOneRequest(current, 'digest')
}

/** Throws Unauthorized for a nonce that is no longer valid: with a new one, the client can repeat the request. */
async function userByDigest(context: ProviderContext, signed: DigestCredential, call: Presenting) {
  const provider = await findProvider('digest', context.ways)
  try {
    const user = await provider?.signIn(context, {}, { ...call, signed })
    if (user) await settleSignIn(context, user)
    return user
  } catch (error) {
    if (error instanceof Fault && error.fault === 'Unauthorized' && error.details.challenge !== 'stale')
      return undefined
    throw error
  }
}

export type AuthContext = ProviderContext & {
  readonly lifetimes: Lifetimes
  /** Which refresh tokens exist (A11): both kinds, or only rotating ones. */
  readonly refresh: 'any' | 'rotating'
}

/** Signs in, signs out, or says who is signed in (A1–A8). */
export async function authenticate(
  context: AuthContext,
  request: Authenticate,
  call: Call,
): Promise<AuthenticateResponse> {
  const verb = call.verb ?? 'POST'
  if (request.provider !== undefined && request.provider !== '' && request.provider.trim() === '') throw blankProvider()
  const purpose = authPurpose(verb, request)
  if (purpose === 'sign-out') return await signOut(context, call)
  const provider = request.provider?.trim() ?? ''
  if (verb === 'GET' && provider !== '') {
    const target = await findProvider(provider, context.ways)
    if (!target) throw unknownProvider(provider, request)
    if (target.browse && call.browser)
      return await browse(context, target.browse, call.browser, { provider, request }, call)
    throw new Fault('MethodNotAllowed', 'Sign in with POST: a GET request would leave the password in logs', {
      errorCode: 'NotSupportedException',
      headers: { Allow: 'POST, DELETE, OPTIONS' },
    })
  }
  if (purpose === 'question') return await whoIs(context, call)
  return await signIn(context, provider === '' ? 'credentials' : provider, request, call)
}

async function signIn(
  context: AuthContext,
  name: string,
  request: Authenticate,
  call: Call,
): Promise<AuthenticateResponse> {
  const referrer = acceptedReferrer(call.continueTo)
  const provider = await findProvider(name, context.ways)
  if (!provider) throw unknownProvider(name, request)
  const user = await provider.signIn(context, request, call)
  return await answerFor(context, user, call, {
    provider: providerName(name),
    permanent: request.RememberMe === true,
    kind: refreshKind(context, request),
    // A token names its user, whatever the request says.
    userName: request.AccessToken === undefined ? request.UserName : undefined,
    referrer,
  })
}

/** A step of a sign-in by redirects (A13). The browser gets the session and no tokens. */
async function browse(
  context: AuthContext,
  step: NonNullable<Provider['browse']>,
  browser: BrowserSignIn,
  { provider, request }: { readonly provider: string; readonly request: Authenticate },
  call: Call,
): Promise<AuthenticateResponse> {
  const continueTo = acceptedReferrer(call.continueTo)
  const next = await step(context, browser, { permanent: request.RememberMe === true, continueTo }, call)
  if (next.kind === 'leave') {
    browser.redirect(next)
    return {}
  }
  const { permanent } = next
  const options = {
    provider: providerName(provider),
    permanent,
    kind: undefined,
    userName: undefined,
    referrer: undefined,
  }
  const answer = await answerFor(context, next.user, call, options)
  browser.redirect({ url: next.continueTo ?? `${browser.origin}/`, sealed: undefined, permanent })
  return { ...answer, BearerToken: undefined }
}

type SignInAnswer = Pick<SessionOptions, 'permanent' | 'kind' | 'provider'> & {
  /** The name as the caller wrote it; undefined for the user's own. */
  readonly userName: string | undefined
  readonly referrer: string | undefined
}

/** Begins the session of a verified user and returns the answer of the sign-in (A2). */
async function answerFor(
  context: AuthContext,
  user: VerifiedUser,
  call: Call,
  { userName, referrer, ...options }: SignInAnswer,
): Promise<AuthenticateResponse> {
  const presented = call.credential?.kind === 'session' ? readToken('session', call.credential.secret) : undefined
  const session = await issueSession(
    context.data,
    context.lifetimes,
    context.now(),
    user,
    { ...options, endsSession: presented },
    { who: user.userName, userId: user.id, address: addressOf(call), correlationId: call.correlationId },
  )
  const rights = withClaimed(user, user.claimedRoles)
  return {
    UserId: user.id,
    SessionId: session.sessionId,
    UserName: userName ?? user.userName,
    DisplayName: user.displayName ?? user.userName,
    ...(referrer === undefined ? {} : { ReferrerUrl: referrer }),
    BearerToken: session.bearerToken,
    ...(session.refreshToken === undefined ? {} : { RefreshToken: session.refreshToken }),
    Roles: rights.roles,
    Permissions: rights.permissions,
    ...withMustChange(user, endsMeta(rights)),
  }
}

/** Says in the Meta of a sign-in that the password must be changed first (P71). */
const withMustChange = ({ mustChangePassword }: User, { Meta }: ReturnType<typeof endsMeta>) =>
  Meta || mustChangePassword ? { Meta: { ...Meta, ...(mustChangePassword ? { [mustChangeKey]: '1' } : {}) } } : {}

/**
 * The kind of refresh token that a sign-in gets (A11). A client that does not ask for rotation presents its first token
 * again and again, so a rotating one would end its session at the second renewal. If only rotating tokens exist, such a
 * client gets none, and signs in again.
 */
function refreshKind({ refresh }: AuthContext, { Meta }: Authenticate): RefreshRow['kind'] | undefined {
  if (Meta?.refresh === 'rotate') return 'rotating'
  return refresh === 'rotating' ? undefined : 'fixed'
}

/**
 * Ends the session and its refresh family at once (A7). Without a session it does nothing. An expired token still
 * identifies its family, which may live longer.
 */
async function signOut({ data }: AuthContext, call: Call): Promise<AuthenticateResponse> {
  const issued = await presentedRow(data, call.credential)
  if (!issued) return {}
  const user = await data.users.byId(issued.userId)
  await data.sessions.endFamily(issued.familyId, {
    who: user?.userName ?? '-',
    userId: user?.id,
    address: addressOf(call),
    correlationId: call.correlationId,
  })
  return {}
}

async function presentedRow(data: AuthContext['data'], credential: Call['credential']) {
  // A password or a digest alone has no session to end.
  if (credential === undefined || credential.kind === 'basic' || credential.kind === 'digest') return undefined
  const session = credential.kind === 'session'
  const hash = session ? readToken('session', credential.secret) : readToken('access', credential.token)
  if (hash === undefined) return undefined
  return session ? await data.sessions.find(hash) : await data.tokens.access(hash)
}

/**
 * Returns who is signed in (A6). In-process calls without a credential come from the OS account, which is Admin (P8).
 */
async function whoIs(context: AuthContext, call: Call): Promise<AuthenticateResponse> {
  const { caller, credential } = call
  if (caller.kind === 'local' && credential === undefined) {
    const name = `local:${caller.account}`
    return { UserName: name, DisplayName: caller.account, Roles: ['Admin'], Permissions: [] }
  }
  const identity = await authenticateCall(context, call)
  if (!identity) throw new Fault('Unauthorized', undefined, context.ways.digest ? { challenge: 'digest' } : {})
  const { user, sessionId, roles, permissions } = identity
  return {
    UserId: user.id,
    ...(sessionId === undefined ? {} : { SessionId: sessionId }),
    UserName: user.userName,
    DisplayName: user.displayName ?? user.userName,
    Roles: roles,
    Permissions: permissions,
    ...endsMeta(identity),
  }
}

/**
 * The URL to redirect to after the sign-in, always a whole URL (A14): a browser reads a path that begins with two
 * slashes as another host.
 */
function acceptedReferrer(continueTo: Call['continueTo']): string | undefined {
  if (continueTo === undefined || continueTo.url === '') return undefined
  const target = URL.canParse(continueTo.url, continueTo.origin)
    ? new URL(continueTo.url, continueTo.origin)
    : undefined
  const inside = target && target.origin === continueTo.origin && target.username === '' && target.password === ''
  if (!inside) throw new Fault('BadRequest', 'External Redirects are not permitted')
  return target.href
}

function blankProvider(): Fault {
  const field = { ErrorCode: 'NotEmpty', FieldName: 'provider', Message: "'provider' must not be empty." }
  return new Fault('BadRequest', field.Message, { errorCode: 'ValidationException', fields: [field] })
}

const maxShown = 128

/** The fault for an unknown provider (A5), also for the fields of OAuth 1.0a, which no provider supports (A13). */
function unknownProvider(name: string, request: Authenticate): Fault {
  const message = `No configuration was added for OAuth provider '${name.slice(0, maxShown).toWellFormed()}'`
  const oauth1 =
    request.oauth_token !== undefined || request.oauth_verifier !== undefined || request.AccessTokenSecret !== undefined
  return new Fault(oauth1 ? 'BadRequest' : 'NotFound', message)
}
