import { Fault } from '../../core/base/errors.ts'
import { uniqueId } from '../../core/base/format.ts'
import { type CredentialSource, openClient, readAddress } from '../../core/client/index.ts'
import type { Credential, Service } from '../../core/protocol/service/service.ts'
import { variable } from '../command/flags.ts'
import type { Io, ProcessEnvironment } from '../io/io.ts'
import { acquire, type Lock } from '../settings/private-file.ts'
import type { ServerProfile, Settings } from '../settings/profiles.ts'
import type { CommandTarget } from '../settings/target.ts'
import {
  credentialOf,
  expiryOf,
  isStored,
  isToken,
  lockPath,
  type StoredCredential,
  type StoredSignIn,
  tokenStore,
} from './token-store.ts'

/**
 * Milliseconds. A renewal has its own timeout, independent of the call: once the server has made it, it must not be
 * lost.
 */
const renewalMs = 15_000

export type SourceOptions = {
  readonly always: boolean
  /** A client of the same server without credentials, to exchange refresh tokens. */
  readonly service: () => Pick<Service, 'getAccessToken'>
  /** Reports problems that do not stop the call. */
  readonly warn: (text: string) => void
}

/** The stored sign-in of one user at one server. A renewal serves all processes of this account (C5, K4). */
export function storedCredential(
  signIn: StoredSignIn,
  env: ProcessEnvironment,
  options: SourceOptions,
): CredentialSource {
  const store = tokenStore(signIn, env)
  let stored: StoredCredential | undefined
  let reading: Promise<Credential | undefined> | undefined
  let renewing: Promise<Credential | undefined> | undefined
  const current = async (): Promise<Credential | undefined> => {
    stored ??= await store.read()
    return stored && credentialOf(stored)
  }
  return {
    always: options.always,
    current: () => {
      reading ??= current().finally(() => {
        reading = undefined
      })
      return reading
    },
    renew: async (rejected, signal) => {
      if (stored && !isStored(stored, rejected)) return credentialOf(stored)
      // Calls of this process that were refused at the same time share one renewal.
      renewing ??= renew(rejected, signal).finally(() => {
        renewing = undefined
      })
      return await renewing
    },
  }

  async function renew(rejected: Credential, signal: AbortSignal): Promise<Credential | undefined> {
    let lock: Lock = await acquire(lockPath(signIn, env), signal)
    try {
      if (lock.waited) {
        // Another process has just renewed it. Those that only need to see that do not have to queue.
        lock.release()
        const fresh = await reread(rejected)
        if (fresh) return fresh
        lock = await acquire(lockPath(signIn, env), signal)
      }
      const fresh = await reread(rejected)
      if (fresh) return fresh
      if (stored?.rt === undefined) throw expired(signIn)
      stored = await exchanged(stored.rt)
      await store.write(stored).catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error
        options.warn(`The renewed token could not be stored, so you may have to sign in again: ${error.message}`)
      })
      return credentialOf(stored)
    } finally {
      lock.release()
    }
  }

  /** Reads the stored credential again. Undefined when it is the refused one. */
  async function reread(rejected: Credential): Promise<Credential | undefined> {
    stored = await store.read()
    if (!stored) throw expired(signIn)
    return isStored(stored, rejected) ? undefined : credentialOf(stored)
  }

  async function exchanged(RefreshToken: string): Promise<StoredCredential> {
    const call = {
      caller: { kind: 'local', account: '' },
      correlationId: uniqueId(),
      signal: new AbortController().signal,
      timeoutMs: renewalMs,
    } as const
    try {
      const { accessToken, refreshToken } = await options.service().getAccessToken({ RefreshToken }, call)
      if (!isToken(accessToken)) {
        throw new Fault('UnreadableAnswer', `${signIn.server} renewed the sign-in without an access token`)
      }
      // A refresh token without a successor stays valid (A11).
      return { at: accessToken, rt: isToken(refreshToken) ? refreshToken : RefreshToken, exp: expiryOf(accessToken) }
    } catch (error) {
      const status = error instanceof Fault ? error.details.remoteStatus : undefined
      if (status === 400 || status === 401 || status === 403) throw expired(signIn)
      throw error
    }
  }
}

export const expired = ({ server, user }: Pick<StoredSignIn, 'server' | 'user'>): Fault =>
  new Fault('Unauthorized', `the sign-in of ${user} at ${server} has expired or was revoked`, {
    remoteStatus: 401,
    hints: [`svc login --server ${server} -u ${user}`],
  })

/** A token that was passed in and not stored. It is never renewed (K5). */
export const fixedCredential = (token: string, always: boolean): CredentialSource => ({
  always,
  current: async () => ({ kind: 'bearer', token }),
  renew: async () => {
    throw new Fault(
      'Unauthorized',
      'the server refused SVC_TOKEN: it has expired, was revoked, or is for another server',
      {
        remoteStatus: 401,
        hints: ['Create a new token, or unset SVC_TOKEN and sign in: svc login'],
      },
    )
  },
})

type ServerTarget = Extract<CommandTarget, { kind: 'server' }>
type Connection = Omit<Parameters<typeof openClient>[0], 'credential'>

/** A base URL as profiles store it. Throws `Fault` Usage for an invalid one. */
export const serverOf = (url: string, insecureHttp = true): string => readAddress(url, insecureHttp).label

/**
 * The signed-in profile for a command's target: the chosen profile; for a URL, the current or first profile of exactly
 * that server.
 */
export function signedInProfile(target: ServerTarget, settings: Settings): ServerProfile | undefined {
  if (target.profile) return target.profile.user === undefined ? undefined : target.profile
  const server = serverOf(target.url)
  const there = settings.profiles.filter((profile) => profile.user !== undefined && profile.server === server)
  return there.find((profile) => profile.name === settings.current) ?? there[0]
}

export const signInOf = ({ server, user, storage }: ServerProfile): StoredSignIn | undefined =>
  user === undefined ? undefined : { server, user, storage: storage ?? 'keychain' }

/** The stored sign-in for a target, or undefined when nobody is signed in there. */
export function signedInAt(
  target: ServerTarget,
  settings: Settings,
  connection: Connection,
  { env, stderr }: Pick<Io, 'env' | 'stderr'>,
): CredentialSource | undefined {
  const profile = signedInProfile(target, settings)
  const signIn = profile && signInOf(profile)
  if (!signIn) return undefined
  return storedCredential(signIn, env, {
    always: target.profile?.credentials === 'always',
    service: () => openClient(connection),
    warn: (text) => stderr.write(`Warning: ${text}\n`),
  })
}

/**
 * `SVC_TOKEN`, only for a server that this call names (K5). With just a current profile it could reach an unintended
 * server. Throws `Fault` Usage, which does not repeat the token.
 */
export function tokenFromEnvironment(target: CommandTarget, env: ProcessEnvironment): string | undefined {
  const token = variable(env, 'SVC_TOKEN')?.trim()
  if (token === undefined || target.kind === 'local') return undefined
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new Fault('Usage', 'SVC_TOKEN contains blanks or characters that are invalid in a token', {
      hints: ['Set it to the token only, on one line.'],
    })
  }
  if (target.origin !== 'current profile') return token
  throw new Fault('Usage', 'SVC_TOKEN is set, but no server is specified for it', {
    hints: ['Specify the server with --server, SVC_SERVER or --profile, or unset SVC_TOKEN.'],
  })
}

/** While SVC_TOKEN is set, a change of the stored sign-in would seem to have no effect, so it is refused. */
export function refuseTokenFromEnvironment(command: 'login' | 'logout' | 'passwd', env: ProcessEnvironment): void {
  if (variable(env, 'SVC_TOKEN') === undefined) return
  throw new Fault(
    'Usage',
    `svc ${command} is refused while SVC_TOKEN is set, because commands then ignore the stored sign-in`,
    {
      hints: ['unset SVC_TOKEN'],
    },
  )
}
