import { type Client, type ClientOptions, openClient } from '../core/client/index.ts'
import { Fault } from '../core/errors.ts'
import type { AuthenticateResponse } from '../core/protocol/index.ts'
import type { Call, Credential } from '../core/service.ts'
import { signInOf } from './credentials.ts'
import type { ProcessEnvironment } from './flags.ts'
import { changeSettings, checkedName, readSettings, type ServerProfile, withProfile } from './profiles.ts'
import { localCall } from './session.ts'
import {
  credentialFrom,
  credentialOf,
  expiryOf,
  isToken,
  type StoredCredential,
  type StoredSignIn,
  tokenStore,
  underLock,
} from './token-store.ts'

export type PresentedSignIn =
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  /** A bearer token or key to keep as it is; or, with another provider than ours, that provider's. */
  | { readonly kind: 'token'; readonly token: string }

export type SignedIn = {
  readonly tokens: StoredCredential
  readonly user: string
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
}

type Connection = Parameters<typeof openClient>[0]

/** Signs in. Rejects with a `Fault`; one with status 401 says that the server refused. */
export async function signIn(
  connection: Connection,
  presented: PresentedSignIn,
  means: { readonly provider: string; readonly rememberMe: boolean },
  call: Call,
): Promise<SignedIn> {
  const { provider, rememberMe } = means
  const client = openClient(connection)
  try {
    if (presented.kind === 'token' && provider === 'credentials') return await verified(client, presented.token, call)
    // Asked for by every sign-in of svc: a refresh token that was stolen then shows (A11).
    const Meta = { refresh: 'rotate' }
    const response = await client.authenticate(
      presented.kind === 'password'
        ? { provider, UserName: presented.user, Password: presented.password, RememberMe: rememberMe, Meta }
        : { provider, AccessToken: presented.token, RememberMe: rememberMe, Meta },
      call,
    )
    const tokens = credentialFrom(response, rememberMe)
    if (tokens) return { tokens, ...factsOf(response, presented.kind === 'password' ? presented.user : 'token') }
    throw new Fault('UnreadableAnswer', 'the server accepted the sign-in, but gave neither a token nor a session', {
      hints: ['Is that a proxy or gateway, and the service behind it under another path?'],
    })
  } finally {
    client.close()
  }
}

/** Ends what was just made or replaced. Whether that worked is not told: it expires by itself. */
export async function endQuietly(connection: Connection, tokens: StoredCredential, call: Call): Promise<void> {
  const client = openClient(connection)
  try {
    await client.authenticate({ provider: 'logout' }, { ...call, credential: credentialOf(tokens) })
  } catch {
    // The server is gone, or it has ended before.
  } finally {
    client.close()
  }
}

async function verified(client: Client, token: string, call: Call): Promise<SignedIn> {
  if (!isToken(token)) throw new Fault('Usage', 'what came in holds blanks or letters that no token has')
  const response = await client.authenticate({}, { ...call, verb: 'GET', credential: { kind: 'bearer', token } })
  return { tokens: { at: token }, ...factsOf(response, 'token') }
}

const factsOf = (response: AuthenticateResponse, otherwise: string): Omit<SignedIn, 'tokens'> => ({
  user: response.UserName || otherwise,
  roles: response.Roles ?? [],
  permissions: response.Permissions ?? [],
})

/** `still valid`: the server took the sign-out, and the token works there all the same until it expires. */
export type Revocation = 'revoked' | 'ended before' | 'still valid'

/**
 * Ends a sign-in at its server. An access token that has expired names no session any more, so it is renewed first:
 * only then is what could renew it dead too. Rejects with a `Fault` when the server cannot be told.
 */
export async function revoke(connection: Connection, call: Call): Promise<Revocation> {
  const client = openClient(connection)
  try {
    // Who is signed in? The source renews on a 401.
    await client.authenticate({}, { ...call, verb: 'GET' })
    const credential = await connection.credential?.current()
    await client.authenticate({ provider: 'logout' }, { ...call, credential })
    return (await outlives(client, credential, call)) ? 'still valid' : 'revoked'
  } catch (error) {
    if (error instanceof Fault && error.details.remoteStatus === 401) return 'ended before'
    throw error
  } finally {
    client.close()
  }
}

/** ServiceStack keeps no list of its JWTs, so a sign-out there cannot end one. Other tokens are looked up, and gone. */
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
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
  readonly profile: string
  readonly storage: 'keychain' | 'file'
  /** For people: where the token lies. */
  readonly where: string
}

/** Milliseconds for ending another sign-in, which nobody waits for gladly. */
const endMs = 3_000

/**
 * Stores what a sign-in gave and makes its profile the current one. The sign-in that it takes the place of ends, at its
 * server and here; and so does the new one when it cannot be stored.
 */
export async function keepSignIn(
  { user, tokens, roles, permissions }: SignedIn,
  to: {
    readonly server: string
    readonly storage: 'keychain' | 'file'
    readonly connection: ClientOptions
    /** The name to save it under; absent: the host's. */
    readonly profile: string | undefined
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
    const settings = readSettings(env)
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
          ...(connection.caFile === undefined ? {} : { caFile: connection.caFile }),
          ...(connection.insecureHttp ? { insecureHttp: true } : {}),
        }
        return { ...withProfile(now, profile), current: name }
      },
      signal,
    )
  } catch (error) {
    // What nobody can use must not stay valid.
    await end(server, tokens)
    await store.remove().catch(() => {})
    throw error
  }
  if (replaced) {
    const { signIn } = replaced
    const elsewhere = signIn.server !== server || signIn.user !== user || signIn.storage !== storage
    const shared = readSettings(env).profiles.some((profile) => same(signInOf(profile), signIn))
    if (elsewhere && !shared) {
      await tokenStore(signIn, env)
        .remove()
        .catch(() => {})
    }
    if (replaced.tokens && !(elsewhere && shared)) await end(signIn.server, replaced.tokens)
  }
  return { server, user, roles, permissions, profile: name, storage, where: store.where }
}

const same = (one: StoredSignIn | undefined, other: StoredSignIn): boolean =>
  one?.server === other.server && one.user === other.user && one.storage === other.storage

/** The host's name, with its path where another server has that already. */
function nameFor(server: string, profiles: readonly ServerProfile[]): string {
  const own = profiles.find((profile) => profile.server === server)
  if (own) return own.name
  const { host, pathname } = new URL(server)
  // The brackets and colons of an IPv6 address at the beginning are no name.
  const plain = host.replace(/[[\]]/g, '').replace(/^:+/, '')
  const free = (name: string): boolean => !profiles.some((one) => one.name === name)
  const path = pathname.replace(/\/$/, '').replace(/[^\w.:@/-]/g, '-')
  return [plain, `${plain}${path}`].find(free) ?? `${plain}-${profiles.length + 1}`
}
