import { exits, Fault } from '../../core/base/errors.ts'
import { type Client, type ClientOptions, openClient } from '../../core/client/index.ts'
import { type AuthenticateResponse, mustChangeCode, mustChangeKey } from '../../core/protocol/index.ts'
import type { Call, Credential } from '../../core/protocol/service/service.ts'
import { signInOf } from '../credentials/credentials.ts'
import {
  credentialFrom,
  credentialOf,
  expiryOf,
  isToken,
  type StoredCredential,
  type StoredSignIn,
  tokenStore,
  underLock,
} from '../credentials/token-store.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { localCall } from '../session/session.ts'
import { changeSettings, checkedName, readSettings, type ServerProfile, withProfile } from '../settings/profiles.ts'

export type PresentedSignIn =
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  /** A bearer token or key to store as it is; for another provider than ours, that provider's token. */
  | { readonly kind: 'token'; readonly token: string }

export type SignedIn = {
  readonly tokens: StoredCredential
  readonly user: string
  /** Undefined when the server does not report them: ServiceStack does since version 5. */
  readonly roles: readonly string[] | undefined
  readonly permissions: readonly string[] | undefined
  /** The provider that signed the user in, unless it was the server itself with a password. */
  readonly provider?: string | undefined
  /** The user may do nothing before the password is changed (P71). */
  readonly mustChange?: true
}

type Connection = Parameters<typeof openClient>[0]

/** Throws Unreachable or Timeout, before the prompt for a password, if the server gives no answer. Any answer will do. */
export async function demandAnswer(connection: Connection, call: Call): Promise<void> {
  using client = openClient({ ...connection, credential: undefined })
  try {
    await client.authenticate({}, { ...call, verb: 'GET' })
  } catch (error) {
    const silent: readonly number[] = [exits.unreachable.code, exits.timeout.code]
    const isSilent = error instanceof Fault && silent.includes(error.exitCode)
    if (isSilent || call.signal?.aborted) throw error
  }
}

/** Signs in. Rejects with a `Fault`, which has status 401 when the server refused. */
export async function signIn(
  connection: Connection,
  presented: PresentedSignIn,
  means: { readonly provider: string; readonly rememberMe: boolean },
  call: Call,
): Promise<SignedIn> {
  const { provider, rememberMe } = means
  using client = openClient(connection)
  if (presented.kind === 'token' && provider === 'credentials') return await verified(client, presented.token, call)
  // Every sign-in of svc requests rotation, which reveals a stolen refresh token (A11).
  const Meta = { refresh: 'rotate' }
  const response = await client.authenticate(
    presented.kind === 'password'
      ? { provider, UserName: presented.user, Password: presented.password, RememberMe: rememberMe, Meta }
      : { provider, AccessToken: presented.token, RememberMe: rememberMe, Meta },
    call,
  )
  const tokens = credentialFrom(response, rememberMe)
  if (tokens) {
    const facts = factsOf(response, presented.kind === 'password' ? presented.user : 'token')
    const mustChange = response.Meta?.[mustChangeKey] === undefined ? {} : ({ mustChange: true } as const)
    return { tokens, ...facts, ...(presented.kind === 'token' ? { provider } : {}), ...mustChange }
  }
  throw new Fault('UnreadableAnswer', 'the server accepted the sign-in, but returned neither a token nor a session', {
    hints: ['If this is a proxy or gateway, add the path of the service behind it to the URL.'],
  })
}

/**
 * Changes the password of a sign-in that may do nothing else before. The server replaces the session; without a change, it
 * ends.
 */
export async function changeFirst(
  connection: Connection,
  { mustChange: _, ...signedIn }: SignedIn,
  current: string,
  ask: () => Promise<string>,
): Promise<SignedIn> {
  using client = openClient(connection)
  const call = localCall(new AbortController().signal, {
    credential: credentialOf(signedIn.tokens),
    timeoutMs: changeMs,
  })
  try {
    const answer = await client.changePassword({ CurrentPassword: current, NewPassword: await ask() }, call)
    const tokens = credentialFrom(answer, answer.RememberMe === true)
    if (tokens) return { ...signedIn, tokens }
    throw new Fault('UnreadableAnswer', 'the password is changed, but the server sent no new session', {
      hints: ['Sign in again with the new password.'],
    })
  } catch (error) {
    await endQuietly(connection, signedIn.tokens, localCall(AbortSignal.timeout(endMs)))
    throw error
  }
}

/** For the question who is signed in, before what is also allowed with a password that must be changed. */
export function unlessMustChange(error: unknown): AuthenticateResponse {
  if (error instanceof Fault && error.errorCode === mustChangeCode) return {}
  throw error
}

/** Ends a session that was just created or replaced. Ignores failures, because it expires by itself. */
export async function endQuietly(connection: Connection, tokens: StoredCredential, call: Call): Promise<void> {
  using client = openClient(connection)
  try {
    await client.authenticate({ provider: 'logout' }, { ...call, credential: credentialOf(tokens) })
  } catch {
    // The server is unreachable, or the session has already ended.
  }
}

async function verified(client: Client, token: string, call: Call): Promise<SignedIn> {
  if (!isToken(token))
    throw new Fault('Usage', 'standard input contains blanks or characters that are invalid in a token')
  const response = await client.authenticate({}, { ...call, verb: 'GET', credential: { kind: 'bearer', token } })
  return { tokens: { at: token }, ...factsOf(response, 'token') }
}

const factsOf = (response: AuthenticateResponse, otherwise: string): Omit<SignedIn, 'tokens'> => ({
  user: response.UserName || otherwise,
  roles: response.Roles,
  permissions: response.Permissions,
})

/** `still valid`: the server accepted the sign-out, but the token works there until it expires. */
export type Revocation = 'revoked' | 'ended before' | 'still valid'

/**
 * Ends a sign-in at its server. An expired access token no longer identifies a session, so it is renewed first;
 * otherwise its refresh token would stay valid. Rejects with a `Fault` when the server cannot be reached.
 */
export async function revoke(connection: Connection, call: Call): Promise<Revocation> {
  using client = openClient(connection)
  try {
    // Asks who is signed in. The credential source renews the token after a 401.
    await client.authenticate({}, { ...call, verb: 'GET' }).catch(unlessMustChange)
    const credential = await connection.credential?.current()
    await client.authenticate({ provider: 'logout' }, { ...call, credential })
    return (await outlives(client, credential, call)) ? 'still valid' : 'revoked'
  } catch (error) {
    if (error instanceof Fault && error.details.remoteStatus === 401) return 'ended before'
    throw error
  }
}

/**
 * Whether the token stays valid after the sign-out. ServiceStack keeps no list of its JWTs, so a sign-out cannot end
 * one. Other tokens are looked up and have ended.
 */
async function outlives(client: Client, credential: Credential | undefined, call: Call): Promise<boolean> {
  if (credential?.kind !== 'bearer' || expiryOf(credential.token) === undefined) return false
  try {
    await client.authenticate({}, { ...call, verb: 'GET', credential })
    return true
  } catch (error) {
    if (error instanceof Fault && error.details.remoteStatus === 401) return false
    throw error
  }
}

export type StoredAs = {
  readonly server: string
  readonly user: string
  readonly roles: readonly string[] | undefined
  readonly permissions: readonly string[] | undefined
  readonly provider: string | undefined
  readonly profile: string
  readonly storage: 'keychain' | 'file'
  /** For people: where the token is stored. */
  readonly where: string
}

/** Milliseconds for ending another sign-in: short, because the user is waiting. */
const endMs = 3_000
/** Milliseconds for a change of the password, which must not be lost with its answer. */
export const changeMs = 30_000

/**
 * Stores a sign-in and makes its profile the current one. The sign-in that it replaces ends, at its server and here.
 * The new one ends if it cannot be stored.
 */
export async function keepSignIn(
  { user, tokens, roles, permissions, provider }: SignedIn,
  to: {
    readonly server: string
    readonly storage: 'keychain' | 'file'
    readonly connection: ClientOptions
    /** The name of the profile. Defaults to the host's name. */
    readonly profile: string | undefined
    /** The client of a sign-in at an OpenID provider. */
    readonly openId?: ServerProfile['openId']
    /**
     * Whether the server announces role changes in one request (O8). Undefined when that could not be read: the profile
     * keeps what it has.
     */
    readonly roleChangesInOneRequest?: boolean | undefined
  },
  env: ProcessEnvironment,
  signal: AbortSignal,
): Promise<StoredAs> {
  const { server, storage, connection } = to
  const store = tokenStore({ server, user, storage }, env)
  const end = (at: string, what: StoredCredential): Promise<void> =>
    endQuietly({ ...connection, baseUrl: at }, what, localCall(AbortSignal.timeout(endMs)))
  let replaced: { readonly signIn: StoredSignIn; readonly tokens: StoredCredential | undefined } | undefined
  let name = ''
  try {
    const settings = await readSettings(env)
    name = to.profile === undefined ? nameFor(server, settings.profiles) : checkedName(to.profile)
    const former = settings.profiles.find((profile) => profile.name === name)
    const signIn = former && signInOf(former)
    if (signIn) {
      const old = await tokenStore(signIn, env)
        .read()
        .catch(() => undefined)
      replaced = { signIn, tokens: old }
    }
    await underLock({ server, user, storage }, env, signal, () => store.write(tokens))
    await changeSettings(
      env,
      (now) => {
        const before = now.profiles.find((profile) => profile.name === name)
        const profile: ServerProfile = {
          ...(before?.server === server ? before : {}),
          name,
          server,
          user,
          storage,
          roles,
          permissions,
          provider,
          ...(to.openId === undefined ? {} : { openId: to.openId }),
          ...(to.roleChangesInOneRequest === undefined
            ? {}
            : { roleChangesInOneRequest: to.roleChangesInOneRequest || undefined }),
          ...(connection.caFile === undefined ? {} : { caFile: connection.caFile }),
          ...(connection.insecureHttp ? { insecureHttp: true } : {}),
        }
        return { ...withProfile(now, profile), current: name }
      },
      signal,
    )
  } catch (error) {
    // A token that nobody can use must not stay valid.
    await end(server, tokens)
    await store.remove().catch(() => {})
    throw error
  }
  if (replaced) {
    const { signIn } = replaced
    const elsewhere = signIn.server !== server || signIn.user !== user || signIn.storage !== storage
    const { profiles: now } = await readSettings(env)
    const shared = now.some((profile) => same(signInOf(profile), signIn))
    if (elsewhere && !shared) {
      await tokenStore(signIn, env)
        .remove()
        .catch(() => {})
    }
    if (replaced.tokens && !(elsewhere && shared)) await end(signIn.server, replaced.tokens)
  }
  return { server, user, roles, permissions, provider, profile: name, storage, where: store.where }
}

const same = (one: StoredSignIn | undefined, other: StoredSignIn): boolean =>
  one?.server === other.server && one.user === other.user && one.storage === other.storage

/** The host's name, with its path when another server already has that name. */
function nameFor(server: string, profiles: readonly ServerProfile[]): string {
  const own = profiles.find((profile) => profile.server === server)
  if (own) return own.name
  const { host, pathname } = new URL(server)
  // Brackets, and colons at the start of an IPv6 address, do not belong in a name.
  const plain = host.replace(/[[\]]/g, '').replace(/^:+/, '')
  const free = (name: string): boolean => !profiles.some((one) => one.name === name)
  const path = pathname.replace(/\/$/, '').replace(/[^\w.:@/-]/g, '-')
  return [plain, `${plain}${path}`].find(free) ?? `${plain}-${profiles.length + 1}`
}
