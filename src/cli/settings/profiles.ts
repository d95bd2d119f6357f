import { dirname, join } from 'node:path'
import { Fault } from '../../core/base/errors.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { awaitShare, readPrivate, settingsFolder, writePrivate } from './private-file.ts'

/** A server that commands can address by a name. It contains no secrets. */
export type ServerProfile = {
  readonly name: string
  /** The base URL, as the client shows it. */
  readonly server: string
  /** Who is signed in there, and where the token is stored. */
  readonly user?: string | undefined
  readonly storage?: 'keychain' | 'file' | undefined
  /** The roles and permissions at the time of the sign-in. */
  readonly roles?: readonly string[] | undefined
  readonly permissions?: readonly string[] | undefined
  /** The provider that signed the user in, unless it was the server itself with a password. */
  readonly provider?: string | undefined
  /** The client of the last sign-in at an OpenID provider. Kept after a sign-out, to recognize servers that share it. */
  readonly openId?: { readonly issuer: string; readonly clientId: string } | undefined
  readonly caFile?: string | undefined
  readonly insecureHttp?: boolean | undefined
  /** Whether health checks send the token always, or only after a 401 (K5). */
  readonly credentials?: 'always' | 'when-asked' | undefined
  /** Whether the server answers a role change with the lists before it, so that one request is enough (O8). */
  readonly roleChangesInOneRequest?: boolean | undefined
}
export type Settings = {
  readonly path: string
  readonly current: string | undefined
  readonly profiles: readonly ServerProfile[]
}

export const settingsPath = (env: ProcessEnvironment): string => join(settingsFolder(env), 'config.json')

/**
 * The settings, empty when there is no file. Throws `Fault` Local for a damaged file, one that others can change, or one
 * on a share that does not answer.
 */
export async function readSettings(env: ProcessEnvironment): Promise<Settings> {
  const path = settingsPath(env)
  await awaitShare(path)
  const text = readPrivate(path, 'unwritable')
  if (text === undefined) return { path, current: undefined, profiles: [] }
  const damaged = (what: string): Fault =>
    new Fault('Local', `${path} ${what}`, { hints: ['Correct the file, or move it away and sign in again.'] })
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw damaged('is not JSON')
  }
  if (!isRecord(json)) throw damaged('does not contain an object')
  const profiles = Object.entries(isRecord(json['profiles']) ? json['profiles'] : {}).map(([name, entry]) => {
    const profile = isRecord(entry) ? readProfile(name, entry) : undefined
    if (!profile) throw damaged(`contains an invalid profile "${name}"`)
    return profile
  })
  const current = json['current']
  return { path, current: typeof current === 'string' ? current : undefined, profiles }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function readProfile(name: string, entry: Readonly<Record<string, unknown>>): ServerProfile | undefined {
  const {
    server,
    user,
    storage,
    roles,
    permissions,
    provider,
    openId,
    caFile,
    insecureHttp,
    credentials,
    roleChangesInOneRequest,
  } = entry
  const texts = (value: unknown): value is string[] =>
    Array.isArray(value) && value.every((one) => typeof one === 'string')
  const fits =
    typeof server === 'string' &&
    [user, provider, caFile].every((value) => value === undefined || typeof value === 'string') &&
    [roles, permissions].every((value) => value === undefined || texts(value)) &&
    (openId === undefined || (isRecord(openId) && Object.values(openId).every((value) => typeof value === 'string'))) &&
    [undefined, 'keychain', 'file'].includes(storage as string | undefined) &&
    [undefined, 'always', 'when-asked'].includes(credentials as string | undefined) &&
    [insecureHttp, roleChangesInOneRequest].every((value) => value === undefined || typeof value === 'boolean')
  return fits ? ({ ...entry, name, server } as ServerProfile) : undefined
}

/**
 * Reads, changes and writes the settings, under a lock. `change` returns the new settings, or undefined to leave them
 * unchanged.
 */
export async function changeSettings(
  env: ProcessEnvironment,
  change: (settings: Settings) => Settings | undefined | Promise<Settings | undefined>,
  signal: AbortSignal,
): Promise<Settings> {
  const path = settingsPath(env)
  const { acquire } = await import('./private-file.ts')
  using _lock = await acquire(join(dirname(path), 'locks', 'config.lock'), signal)
  const before = await readSettings(env)
  const after = await change(before)
  if (!after) return before
  const profiles = Object.fromEntries(after.profiles.map(({ name, ...rest }) => [name, rest]))
  writePrivate(path, `${JSON.stringify({ current: after.current, profiles }, null, 2)}\n`)
  return after
}

/** The settings with a profile added, or replaced by name. */
export const withProfile = (settings: Settings, profile: ServerProfile): Settings => ({
  ...settings,
  profiles: settings.profiles.some(({ name }) => name === profile.name)
    ? settings.profiles.map((one) => (one.name === profile.name ? profile : one))
    : [...settings.profiles, profile],
})

/** The profile without its sign-in. */
export const signedOut = ({
  user: _,
  storage: __,
  roles: ___,
  permissions: ____,
  provider: _____,
  ...rest
}: ServerProfile): ServerProfile => rest

/**
 * The profile of a name. Throws `Fault` Usage, with the nearest name and all names; there is never a silent default.
 */
export async function profileNamed(settings: Settings, name: string, origin: string): Promise<ServerProfile> {
  const match = settings.profiles.find((profile) => profile.name === name)
  if (match) return match
  const { nearestHint } = await import('../../core/base/suggest.ts')
  const names = settings.profiles.map((profile) => profile.name)
  throw new Fault('Usage', `unknown profile "${name}" (${origin})`, {
    hints: [
      ...nearestHint(name, names),
      names.length > 0
        ? `Profiles: ${names.join(' ')}`
        : 'There is no profile yet. To create one: svc login --server URL',
    ],
  })
}

/** Throws `Fault` Usage for an invalid profile name. */
export function checkedName(name: string): string {
  if (/^[A-Za-z0-9][\w.:@/-]{0,99}$/.test(name) && !Object.hasOwn(Object.prototype, name)) return name
  throw new Fault('Usage', 'invalid profile name', {
    hints: ['Use letters, digits and . : @ / _ - , starting with a letter or digit, at most 100.'],
  })
}
