import type { CredentialSource } from '../core/client/index.ts'
import { Fault } from '../core/errors.ts'
import type { Credential, Service } from '../core/service.ts'
import { newCorrelationId } from './correlation.ts'
import { acquire, type Lock } from './lock.ts'
import { credentialOf, expiryOf, isKept, isToken, type Kept, lockPath, type SignIn, tokenStore } from './token-store.ts'
import type { Environment } from './variable.ts'

/** Milliseconds. Its own, whatever the call's: a renewal that the server has made must not be lost. */
const renewalMs = 15_000

export type SourceOptions = {
  readonly always: boolean
  /** Exchanges refresh tokens: a client of the same server, which presents nothing by itself. */
  readonly service: () => Pick<Service, 'getAccessToken'>
  /** Told what went wrong without stopping the call. */
  readonly warn: (text: string) => void
}

/** The stored sign-in of one user at one server, renewed for all processes of this account at once (C5, K4). */
export function storedCredential(signIn: SignIn, env: Environment, options: SourceOptions): CredentialSource {
  const store = tokenStore(signIn, env)
  let known: Kept | undefined
  let reading: Promise<Credential | undefined> | undefined
  let renewing: Promise<Credential | undefined> | undefined
  const current = async (): Promise<Credential | undefined> => {
    known ??= await store.read()
    return known && credentialOf(known)
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
      if (known && !isKept(known, rejected)) return credentialOf(known)
      // Calls of this process that were refused together are renewed together.
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
        // Somebody has just renewed it: to see that, nobody has to queue.
        lock.release()
        const fresh = await reread(rejected)
        if (fresh) return fresh
        lock = await acquire(lockPath(signIn, env), signal)
      }
      const fresh = await reread(rejected)
      if (fresh) return fresh
      if (known?.rt === undefined) throw expired(signIn)
      known = await exchanged(known.rt)
      await store.write(known).catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error
        options.warn(`The renewed token could not be kept, so the next command may ask to sign in: ${error.message}`)
      })
      return credentialOf(known)
    } finally {
      lock.release()
    }
  }

  /** What is stored now, when it is not what was refused. */
  async function reread(rejected: Credential): Promise<Credential | undefined> {
    known = await store.read()
    if (!known) throw expired(signIn)
    return isKept(known, rejected) ? undefined : credentialOf(known)
  }

  async function exchanged(RefreshToken: string): Promise<Kept> {
    const call = {
      caller: { kind: 'local', account: '' },
      correlationId: newCorrelationId(),
      signal: new AbortController().signal,
      timeoutMs: renewalMs,
    } as const
    try {
      const { accessToken, refreshToken } = await options.service().getAccessToken({ RefreshToken }, call)
      if (!isToken(accessToken)) {
        throw new Fault('UnreadableAnswer', `${signIn.server} renewed the sign-in without an access token`)
      }
      // One without a successor stays good (A11).
      return { at: accessToken, rt: isToken(refreshToken) ? refreshToken : RefreshToken, exp: expiryOf(accessToken) }
    } catch (error) {
      const status = error instanceof Fault ? error.details.remoteStatus : undefined
      if (status === 400 || status === 401 || status === 403) throw expired(signIn)
      throw error
    }
  }
}

export const expired = ({ server, user }: Pick<SignIn, 'server' | 'user'>): Fault =>
  new Fault('Unauthorized', `the sign-in of ${user} at ${server} has expired or was revoked`, {
    remoteStatus: 401,
    hints: [`svc login --server ${server} -u ${user}`],
  })

/** A token that was given and not stored: never renewed (K5). */
export const givenCredential = (token: string, always: boolean): CredentialSource => ({
  always,
  current: async () => ({ kind: 'bearer', token }),
  renew: async () => {
    throw new Fault(
      'Unauthorized',
      'the server refused SVC_TOKEN: it has expired, was revoked, or is for another server',
      {
        remoteStatus: 401,
        hints: ['Make a new one, or unset SVC_TOKEN and sign in: svc login'],
      },
    )
  },
})
