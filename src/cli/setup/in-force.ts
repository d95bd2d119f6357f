import { Fault } from '../../core/base/errors.ts'
import { unknownName, variable } from '../command/flags.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine, packageJson, packageRoot } from '../io/process.ts'
import { type SessionFlags, shownUrl, storePath } from '../session/session.ts'
import { settingsFolder } from '../settings/private-file.ts'
import type { Settings } from '../settings/profiles.ts'
import { effective } from './config-keys.ts'

/** A setting that a command would use if it started now, and the origin of its value. Values never contain secrets. */
export type InForce = {
  readonly key: string
  readonly value: string | undefined
  /** A flag, a variable, `profile NAME`, a file or `default`. */
  readonly origin: string
  /** A note for the reader: why something is missing or has no effect. */
  readonly note?: string | undefined
}

type Reader = () => Promise<Omit<InForce, 'key'>>
export type InForceFlags = Pick<SessionFlags, 'profile' | 'config' | 'store'>

/**
 * Readers of everything that is in force, by key, in the order of `svc config list`. Each looks up only its own value:
 * the keychain takes a child process to query. They contact no server.
 */
export async function inForce(
  settings: Settings,
  flags: InForceFlags,
  env: ProcessEnvironment,
): Promise<ReadonlyMap<string, Reader>> {
  const rows = await effective(settings, flags, env)
  const row = (key: (typeof rows)[number]['key']): Omit<InForce, 'key'> =>
    rows.find((one) => one.key === key) ?? { value: undefined, origin: 'default' }
  const server = row('server')
  const profile = settings.profiles.find(({ name }) => name === row('profile').value)
  return new Map<string, Reader>([
    ['config', () => configInForce(flags, env)],
    ['store', () => storeInForce(flags, env)],
    ['profile', async () => row('profile')],
    [
      'server',
      async () =>
        server.value === undefined
          ? { ...server, note: 'commands act on this machine' }
          : { ...server, value: shownUrl(server.value) },
    ],
    ['sign-in', async () => signInOf(profile, env)],
    [
      'ca-file',
      async () => ({
        ...row('ca-file'),
        note: row('ca-file').value === undefined ? 'the authorities that Node.js and the system trust' : undefined,
      }),
    ],
    ['insecure-http', async () => row('insecure-http')],
    ['credentials', async () => row('credentials')],
    ['keychain', () => keychainInForce(env)],
    ['proxy', () => proxyInForce(server.value, row('insecure-http').value === 'true', env)],
    ['home', async () => ({ ...row('home'), note: row('home').value === undefined ? 'not set' : undefined })],
    [
      'settings',
      async () => ({ value: settingsFolder(env), origin: env['SVC_HOME'] === undefined ? 'default' : 'SVC_HOME' }),
    ],
    ['svc', async () => ({ value: packageJson().version, origin: packageRoot() })],
    ['node', async () => ({ value: machine.node, origin: machine.execPath })],
  ])
}

/** The key of a reader, in any letter case. Throws `Fault` Usage for an unknown one, with the nearest and all keys. */
export function inForceKey(input: string, keys: readonly string[]): string {
  const match = keys.find((key) => key === input.toLowerCase())
  if (match !== undefined) return match
  throw unknownName('setting', input, keys, 'Settings')
}

const origins = { user: 'default', system: 'default (system)' } as const

/** The svc.yaml that commands read, whether it is valid or not. */
async function configInForce(flags: InForceFlags, env: ProcessEnvironment): Promise<Omit<InForce, 'key'>> {
  const { candidates } = await import('../../core/config/index.ts')
  const places = candidates({
    ...(flags.config === undefined ? {} : { path: flags.config }),
    env,
    platform: machine.platform,
    home: homeOf(env),
  })
  let match: (typeof places)[number] | undefined
  for (const place of places) {
    const presence = await presenceOf(place.path)
    if (presence === 'missing') continue
    if (presence !== 'there') return { value: place.path, origin: place.from, note: presence.silent }
    match = place
    break
  }
  if (!match) {
    const [first] = places
    if (first && (first.from === '--config' || first.from === 'SVC_CONFIG')) {
      return { value: first.path, origin: first.from, note: 'there is no such file' }
    }
    return { value: undefined, origin: 'default', note: `no file at ${places.map(({ path }) => path).join(' or ')}` }
  }
  if (match.from === 'user' && env['SVC_HOME'] !== undefined) return { value: match.path, origin: 'SVC_HOME' }
  return { value: match.path, origin: match.from in origins ? origins[match.from as keyof typeof origins] : match.from }
}

/** The store that local commands use. A database is not contacted. */
async function storeInForce(flags: InForceFlags, env: ProcessEnvironment): Promise<Omit<InForce, 'key'>> {
  const { shownStore, storeKind } = await import('../../core/store/index.ts')
  const store = await storePath(flags, env)
  const origin =
    flags.store !== undefined
      ? '--store'
      : (['SVC_STORE', 'SVC_HOME'].find((name) => env[name] !== undefined) ?? 'default')
  const presence = storeKind(store) === 'sqlite' ? await presenceOf(store) : 'there'
  const note = presence === 'missing' ? 'does not exist yet' : presence === 'there' ? undefined : presence.silent
  return { value: shownStore(store), origin, note }
}

/** Whether something is at a path; for a share that does not answer, what to say of it. */
async function presenceOf(path: string): Promise<'there' | 'missing' | { readonly silent: string }> {
  const { isThere, SilentShareError } = await import('../../core/base/files/index.ts')
  try {
    return (await isThere(path)) ? 'there' : 'missing'
  } catch (error) {
    if (error instanceof SilentShareError) return { silent: error.message }
    throw error
  }
}

function signInOf(profile: Settings['profiles'][number] | undefined, env: ProcessEnvironment): Omit<InForce, 'key'> {
  if (variable(env, 'SVC_TOKEN') !== undefined) {
    return { value: 'token', origin: 'SVC_TOKEN', note: 'only for a server that the command names' }
  }
  if (profile?.user === undefined) return { value: undefined, origin: 'default', note: 'not signed in' }
  const place = profile.storage === 'file' ? 'a file' : 'the keychain'
  return { value: profile.user, origin: `profile ${profile.name}`, note: `token in ${place}` }
}

/** Whether the keychain answers. Reads an entry that does not exist, and writes nothing. */
async function keychainInForce(env: ProcessEnvironment): Promise<Omit<InForce, 'key'>> {
  const { keychainEntry } = await import('../keychain/index.ts')
  const origin = machine.platform === 'linux' ? 'DBUS_SESSION_BUS_ADDRESS' : 'default'
  try {
    await keychainEntry('probe', 'probe', env).read()
    return { value: 'usable', origin }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { value: 'not usable', origin, note: error.details.hints?.[0] ?? error.message }
  }
}

/** The proxy for the server in force, or for any https server when there is none. */
async function proxyInForce(
  server: string | undefined,
  insecureHttp: boolean,
  env: ProcessEnvironment,
): Promise<Omit<InForce, 'key'>> {
  const { proxyFor, readAddress } = await import('../../core/client/index.ts')
  const address = readAddress(server ?? 'https://server.invalid', insecureHttp)
  try {
    const proxy = proxyFor(address, env)
    if (proxy) return { value: proxy.label, origin: proxy.variable }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { value: undefined, origin: 'environment', note: error.message }
  }
  const isSet = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY'].some((name) => env[name])
  const note = isSet ? 'not used for this server' : undefined
  return { value: undefined, origin: isSet ? 'environment' : 'default', note }
}
