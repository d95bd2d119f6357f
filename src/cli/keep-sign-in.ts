import type { ClientOptions } from '../core/client/index.ts'
import { endQuietly, type SignedIn } from './login-run.ts'
import { changeSettings, checkedName, type Profile, readSettings, withProfile } from './profiles.ts'
import { localCall } from './session.ts'
import { signInOf } from './sign-in.ts'
import { type Kept, type SignIn, tokenStore, underLock } from './token-store.ts'
import type { Environment } from './variable.ts'

export type KeptAs = {
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
  { user, kept, roles, permissions }: SignedIn,
  to: {
    readonly server: string
    readonly storage: 'keychain' | 'file'
    readonly connection: ClientOptions
    /** The name to save it under; absent: the host's. */
    readonly profile: string | undefined
  },
  env: Environment,
  signal: AbortSignal,
): Promise<KeptAs> {
  const { server, storage, connection } = to
  const store = tokenStore({ server, user, storage }, env)
  const end = (at: string, what: Kept): Promise<void> =>
    endQuietly({ ...connection, baseUrl: at }, what, localCall(AbortSignal.timeout(endMs)))
  let replaced: { readonly signIn: SignIn; readonly kept: Kept | undefined } | undefined
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
      replaced = { signIn, kept: old }
    }
    await underLock({ server, user, storage }, env, signal, () => store.write(kept))
    await changeSettings(
      env,
      (now) => {
        const before = now.profiles.find((profile) => profile.name === name)
        const profile: Profile = {
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
    await end(server, kept)
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
    if (replaced.kept && !(elsewhere && shared)) await end(signIn.server, replaced.kept)
  }
  return { server, user, roles, permissions, profile: name, storage, where: store.where }
}

const same = (one: SignIn | undefined, other: SignIn): boolean =>
  one?.server === other.server && one.user === other.user && one.storage === other.storage

/** The host's name, with its path where another server has that already. */
function nameFor(server: string, profiles: readonly Profile[]): string {
  const own = profiles.find((profile) => profile.server === server)
  if (own) return own.name
  const { host, pathname } = new URL(server)
  // The brackets and colons of an IPv6 address at the beginning are no name.
  const plain = host.replace(/[[\]]/g, '').replace(/^:+/, '')
  const free = (name: string): boolean => !profiles.some((one) => one.name === name)
  const path = pathname.replace(/\/$/, '').replace(/[^\w.:@/-]/g, '-')
  return [plain, `${plain}${path}`].find(free) ?? `${plain}-${profiles.length + 1}`
}
