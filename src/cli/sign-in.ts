import { type CredentialSource, openClient, readAddress } from '../core/client/index.ts'
import { storedCredential } from './credentials.ts'
import type { Profile, Settings } from './profiles.ts'
import { writeError } from './standard-streams.ts'
import type { Target } from './target.ts'
import type { SignIn } from './token-store.ts'
import type { Environment } from './variable.ts'

type ServerTarget = Extract<Target, { kind: 'server' }>
type Connection = Omit<Parameters<typeof openClient>[0], 'credential'>

/** A base URL as profiles hold it. Throws `Fault` Usage for what is none. */
export const serverOf = (url: string, insecureHttp = true): string => readAddress(url, insecureHttp).shown

/**
 * The profile that is signed in where a command acts: the chosen one; for a URL, the current or first profile of that
 * very server.
 */
export function signedInProfile(target: ServerTarget, settings: Settings): Profile | undefined {
  if (target.profile) return target.profile.user === undefined ? undefined : target.profile
  const server = serverOf(target.url)
  const there = settings.profiles.filter((profile) => profile.user !== undefined && profile.server === server)
  return there.find((profile) => profile.name === settings.current) ?? there[0]
}

export const signInOf = ({ server, user, storage }: Profile): SignIn | undefined =>
  user === undefined ? undefined : { server, user, storage: storage ?? 'keychain' }

/** The stored sign-in for a target, or undefined when nobody is signed in there. */
export function signedInAt(
  target: ServerTarget,
  settings: Settings,
  connection: Connection,
  env: Environment,
): CredentialSource | undefined {
  const profile = signedInProfile(target, settings)
  const signIn = profile && signInOf(profile)
  if (!signIn) return undefined
  return storedCredential(signIn, env, {
    always: target.profile?.credentials === 'always',
    service: () => openClient(connection),
    warn: (text) => writeError(`Warning: ${text}\n`),
  })
}
