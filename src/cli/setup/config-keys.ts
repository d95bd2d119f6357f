import { Fault } from '../../core/base/errors.ts'
import { oneOf, unknownName, variable } from '../command/flags.ts'
import { serverOf } from '../credentials/credentials.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { profileNamed, type ServerProfile, type Settings } from '../settings/profiles.ts'

type Key = {
  readonly doc: string
  /** The variable that overrides the profile. */
  readonly variable?: string
  /** The value in a profile, as text. */
  readonly of?: (profile: ServerProfile) => string | undefined
  /**
   * Returns the profile with the new value. Absent for settings outside profiles. Throws `Fault` Usage for an invalid
   * value.
   */
  readonly into?: (profile: ServerProfile, value: string | undefined) => ServerProfile
  readonly otherwise?: string
}

const flag = (value: string): boolean => oneOf('insecure-http', ['true', 'false'] as const, value, 'Values') === 'true'

/** The settings of svc on this machine. Those with `into` can be set in the chosen profile. */
export const configKeys = {
  profile: { doc: 'The current profile', variable: 'SVC_PROFILE' },
  server: {
    doc: 'URL of the server',
    variable: 'SVC_SERVER',
    of: ({ server }) => server,
    into: (profile, value) => {
      if (value === undefined) {
        throw new Fault('Usage', 'a profile requires a server', { hints: [`svc profile remove ${profile.name}`] })
      }
      const server = serverOf(value, profile.insecureHttp ?? false)
      if (profile.user === undefined || server === profile.server) return { ...profile, server }
      // The token belongs to the server that issued it.
      throw new Fault('Usage', `${profile.user} is signed in at ${profile.server} by this profile`, {
        hints: [`svc logout --profile ${profile.name}`, `svc login --server ${server}   (creates another profile)`],
      })
    },
  },
  'ca-file': {
    doc: 'PEM file of a private certificate authority',
    variable: 'SVC_CA_FILE',
    of: ({ caFile }) => caFile,
    into: (profile, caFile) => ({ ...profile, caFile }),
  },
  'insecure-http': {
    doc: 'Whether plain http to another machine is allowed',
    of: ({ insecureHttp }) => (insecureHttp === undefined ? undefined : String(insecureHttp)),
    into: (profile, value) => ({ ...profile, insecureHttp: value === undefined ? undefined : flag(value) }),
    otherwise: 'false',
  },
  credentials: {
    doc: 'When health checks send the token: always, or when-asked (after a 401)',
    of: ({ credentials }) => credentials,
    into: (profile, value) => ({
      ...profile,
      credentials:
        value === undefined ? undefined : oneOf('credentials', ['always', 'when-asked'] as const, value, 'Values'),
    }),
    otherwise: 'when-asked',
  },
  store: { doc: 'The store: a file, or a postgres:// URL', variable: 'SVC_STORE' },
  config: { doc: 'The svc.yaml to use', variable: 'SVC_CONFIG' },
  home: { doc: 'Folder for settings, store and state', variable: 'SVC_HOME' },
} as const satisfies Record<string, Key>
export type ConfigKey = keyof typeof configKeys
export const keyNames = Object.keys(configKeys) as readonly ConfigKey[]

export function configKey(input: string): ConfigKey {
  const match = keyNames.find((name) => name === input.toLowerCase())
  if (match) return match
  throw unknownName('setting', input, keyNames, 'Settings')
}

type Effective = {
  readonly key: ConfigKey
  readonly value: string | undefined
  /** `--profile`, a variable, `profile NAME`, the settings file or `default`. */
  readonly origin: string
}

/** The settings that a command started now would use, with their origin: flag > environment > profile > default. */
export async function effective(
  settings: Settings,
  flags: { readonly profile?: string | undefined },
  env: ProcessEnvironment,
): Promise<readonly Effective[]> {
  const fromEnv = variable(env, 'SVC_PROFILE')
  const name = flags.profile ?? fromEnv ?? settings.current
  const origin = flags.profile !== undefined ? '--profile' : fromEnv !== undefined ? 'SVC_PROFILE' : settings.path
  const profile = name === undefined ? undefined : await profileNamed(settings, name, origin)
  return keyNames.map((key) => {
    if (key === 'profile') return { key, value: name, origin: name === undefined ? 'default' : origin }
    const row: Key = configKeys[key]
    // A flag chooses the server, whatever SVC_SERVER is.
    const chosen = key === 'server' && flags.profile !== undefined
    const input = row.variable === undefined || chosen ? undefined : variable(env, row.variable)
    if (input !== undefined && row.variable !== undefined) return { key, value: input, origin: row.variable }
    const own = profile && row.of?.(profile)
    if (own !== undefined) return { key, value: own, origin: `profile ${name}` }
    return { key, value: row.otherwise, origin: 'default' }
  })
}

/** The settings with one changed in the chosen profile. `undefined` removes it. */
export async function withSetting(
  settings: Settings,
  change: { readonly key: ConfigKey; readonly value: string | undefined },
  flags: { readonly profile?: string | undefined },
  env: ProcessEnvironment,
): Promise<Settings> {
  const { key, value } = change
  if (key === 'profile') {
    if (value !== undefined) await profileNamed(settings, value, 'svc config set profile')
    return { ...settings, current: value }
  }
  const row: Key = configKeys[key]
  if (!row.into) {
    throw new Fault('Usage', `${key} cannot be stored in the settings`, {
      hints: [`Set the variable ${row.variable}.`],
    })
  }
  const name = flags.profile ?? variable(env, 'SVC_PROFILE') ?? settings.current
  if (name === undefined) {
    throw new Fault('Usage', `${key} is a setting of a profile, and no profile is current`, {
      hints: ['svc profile add NAME --server URL', 'svc login --server URL   (creates one)'],
    })
  }
  const before = await profileNamed(settings, name, flags.profile === undefined ? 'current' : '--profile')
  const after = row.into(before, value)
  return { ...settings, profiles: settings.profiles.map((profile) => (profile === before ? after : profile)) }
}
