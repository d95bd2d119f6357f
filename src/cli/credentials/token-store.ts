import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Fault } from '../../core/base/errors.ts'
import type { AuthenticateResponse } from '../../core/protocol/index.ts'
import type { Credential } from '../../core/protocol/service/service.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { machine } from '../io/process.ts'
import { keychainEntry } from '../keychain/index.ts'
import { ownFolder, readPrivate, removePrivate, settingsFolder, writePrivate } from '../settings/private-file.ts'

/** The stored data of a sign-in (K1): an access token with its refresh token, or a session (C6). */
export type StoredCredential = {
  readonly at?: string | undefined
  readonly rt?: string | undefined
  /** Seconds since 1970, if the access token states it. */
  readonly exp?: number | undefined
  readonly sid?: string | undefined
  /** RememberMe, for a session. */
  readonly perm?: boolean | undefined
}
/** A signed-in user at a server, and where the token is stored. */
export type StoredSignIn = { readonly server: string; readonly user: string; readonly storage: 'keychain' | 'file' }

export type TokenStore = {
  /** For people: `OS keychain`, or the file. */
  readonly where: string
  readonly read: () => Promise<StoredCredential | undefined>
  readonly write: (stored: StoredCredential) => Promise<void>
  /** Returns whether there was something to remove. */
  readonly remove: () => Promise<boolean>
  /** Proves by a trial that a credential can be stored. */
  readonly prove: () => Promise<void>
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)

/** The lock of one sign-in: processes at different servers do not wait for each other. */
export const lockPath = ({ server, user }: StoredSignIn, env: ProcessEnvironment): string =>
  join(settingsFolder(env), 'locks', `${digest(`${server}\n${user}`)}.lock`)

/**
 * Changes the stored credential while no other process renews it. A renewal that finished later would restore a token
 * that was signed out, or overwrite a new sign-in with the successor of the old one.
 */
export async function underLock<T>(
  signIn: StoredSignIn,
  env: ProcessEnvironment,
  signal: AbortSignal,
  change: () => Promise<T>,
): Promise<T> {
  const { acquire } = await import('../settings/private-file.ts')
  using _lock = await acquire(lockPath(signIn, env), signal)
  return await change()
}

export function tokenStore(signIn: StoredSignIn, env: ProcessEnvironment): TokenStore {
  return signIn.storage === 'keychain' ? inKeychain(signIn, env) : inFile(signIn, env)
}

function inKeychain({ server, user }: StoredSignIn, env: ProcessEnvironment): TokenStore {
  const entry = keychainEntry(server, user, env)
  return {
    where: 'OS keychain',
    read: async () => {
      const text = await entry.read()
      return text === undefined ? undefined : parseCredential(text, 'The entry in the OS keychain')
    },
    write: (stored) => entry.write(JSON.stringify(stored)),
    remove: entry.remove,
    prove: entry.prove,
  }
}

/** Stores the credential in a file: one for each server and user, in a folder of its own (K3). */
function inFile({ server, user }: StoredSignIn, env: ProcessEnvironment): TokenStore {
  const folder = join(settingsFolder(env), 'credentials')
  const path = join(folder, `${digest(`${server}\n${user}`)}.json`)
  const write = (file: string, content: object): void => {
    ownFolder(folder)
    // Refuses an existing file that others can read, before it is replaced.
    readPrivate(file, 'unreadable')
    writePrivate(file, `${JSON.stringify(content)}\n`)
  }
  return {
    where: path,
    read: async () => {
      const text = readPrivate(path, 'unreadable')
      return text === undefined ? undefined : parseCredential(text, path)
    },
    write: async (stored) => write(path, { server, user, ...stored }),
    remove: async () => removePrivate(path),
    prove: async () => {
      const probe = join(folder, `probe-${machine.pid}`)
      // Refuse a file that is not private now, before the user types the password.
      readPrivate(path, 'unreadable')
      write(probe, {})
      removePrivate(probe)
    },
  }
}

function parseCredential(text: string, where: string): StoredCredential {
  const damaged = (): Fault =>
    new Fault('Local', `${where} has content that svc did not write`, { hints: ['Sign in again: svc login'] })
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw damaged()
  }
  if (typeof json !== 'object' || json === null) throw damaged()
  const { at, rt, exp, sid, perm } = json as Record<string, unknown>
  const texts = [at, rt, sid].every((value) => value === undefined || isToken(value))
  if (!texts || (at === undefined && sid === undefined)) throw damaged()
  return {
    at: at as string | undefined,
    rt: rt as string | undefined,
    exp: typeof exp === 'number' ? exp : undefined,
    sid: sid as string | undefined,
    perm: perm === true,
  }
}

/** Whether a value can be sent in a header unchanged. */
export const isToken = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x21-\x7e]{1,16384}$/.test(value)

/** Reads the credential in a sign-in response: tokens, or a session (C6). */
export function credentialFrom(response: AuthenticateResponse, rememberMe: boolean): StoredCredential | undefined {
  const { BearerToken: at, RefreshToken: rt, SessionId: sid } = response
  if (isToken(at)) return { at, rt: isToken(rt) ? rt : undefined, exp: expiryOf(at) }
  return isToken(sid) ? { sid, perm: rememberMe } : undefined
}

/** The expiry time that a JWT contains, in seconds since 1970. svc's own tokens contain none. */
export function expiryOf(token: string): number | undefined {
  const [, payload, signature] = token.split('.')
  if (payload === undefined || signature === undefined) return undefined
  try {
    const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { exp?: unknown }
    return typeof exp === 'number' ? exp : undefined
  } catch {
    return undefined
  }
}

export function credentialOf({ at, sid, perm }: StoredCredential): Credential | undefined {
  if (at !== undefined) return { kind: 'bearer', token: at }
  return sid === undefined ? undefined : { kind: 'session', secret: sid, permanent: perm }
}

/** Whether a credential is the stored one. */
export const isStored = (stored: StoredCredential, credential: Credential): boolean =>
  credential.kind === 'bearer' ? stored.at === credential.token : stored.sid === credential.secret
